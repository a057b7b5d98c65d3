"""How the throughput benchmark is shown: a line per run, a page of Markdown."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
BUSY_LOAD = 0.5
"""A load average above this, before the run, means that others use the machine."""

FAIRNESS = (
    "One run, on one machine with two cores, on the CPU. Steps are agent steps: decisions of the agent, four frames "
    "each on Atari. All contenders are alive at the same time, each in a process of its own, and train by turns, once "
    "each has learnt for a while: starting, compiling and filling the buffer are not in the figures. A ratio is taken "
    "in every turn and the median counts, so that neighbours who slow the machine down slow both sides of it.",
    "The same for all: the env (no sticky actions, minimal action set, lost lives as ends, clipped rewards, 84×84 "
    "grey by area, four frames stacked; MinAtar's own games), the network, the optimizer, batch, updates per step, "
    "buffer, discount, target period, and 5 % random actions.",
    "Each as its users run it: ours with its preset for the family (eight envs that act together; on Atari one thread "
    "acts while two learn). SB3 and CleanRL may use both cores too: the "
    "table has them with one thread and with two, SB3 with one env, its default, and with eight, "
    "which batches its passes as ours are batched and updates as often per step. Ours is held against the fastest.",
    "What differs: SB3 and CleanRL clip the gradient's norm (without a switch for it), and press FIRE after a reset; "
    "CleanRL's loss is the squared error; ours compresses its frames, which costs it time and saves memory; SB3 has "
    "`optimize_memory_usage=True`.",
    "CleanRL is `dqn_atari.py` of its last release on PyPI, 0.4.8, as it is, with today's torch, Gym 0.21, which it "
    "wants, and ALE 0.8.1, whose answers are put in that Gym's form.",
)


def line(setting: Record) -> str:
    """One run, or one setting, in a line."""
    name = f"{setting['contender']}, {_envs(setting)}, {_threads(setting)}"
    if "failure" in setting:
        return f"{name:<44} {setting['failure']}"
    return (
        f"{name:<44} {setting['steps_per_second']:7.1f} steps/s, "
        f"{1e3 * setting['processor_seconds_per_step']:6.2f} ms of processor time per step"
    )


def verdicts(case: Record) -> str:
    """All goals of a case in a line."""
    shown = [
        f"nothing to compare with {peer}, as one of the two did not run"
        if goal is None
        else f"{goal['ratio']:.2f}× {peer} (goal {goal['goal']:g}×: {'met' if goal['met'] else '**missed**'})"
        for peer, goal in case["goals"].items()
    ]
    return "ours: " + "; ".join(shown)


def markdown(results: Record, stem: str) -> str:
    """The page."""
    about = results["machine"]
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in ("torch", "stable_baselines3", "ale-py"))
    parts = [
        "# Training steps per second, side by side",
        "",
        f"Made by `python -m benchmarks.throughput` on {about['date']}: {about['cpu']}, {about['cores']} cores, Python "
        f"{about['python']}, {versions}. Plain DQN (depth 0). Medians of {results['turns']} turns, with the "
        f"range of the ratios in brackets; all numbers are in `{stem}.json`.",
        "",
    ]
    if about["load_before"] > BUSY_LOAD:
        parts += [f"**Others used the machine (load {about['load_before']:.1f}): the numbers are provisional.**", ""]
    for case in results["cases"]:
        parts += _case(case)
    return "\n".join([*parts, "## What is compared", "", *(f"* {note}" for note in FAIRNESS), ""])


def _case(case: Record) -> list[str]:
    shared = case["shared"]
    rows = [
        f"## {case['env']}",
        "",
        f"{verdicts(case)}.".replace("ours:", "Ours makes", 1),
        "",
        f"Batches of {shared['batch_transitions']}, an update every {shared['update_period_steps']} steps, a buffer of "
        f"{shared['buffer_transitions']:,}, learning from step {shared['learning_starts_steps']:,}, turns of "
        f"{shared['turn_steps']:,} steps from step "
        f"{shared['learning_starts_steps'] + shared['warm_up_steps']:,} on.",
        "",
        "| | envs | threads | steps per second | ours makes | processor ms per step |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for setting in case["settings"]:
        name = f"| {setting['contender']} | {setting['num_envs']} | {setting['threads']} |"
        if "failure" in setting:
            rows.append(f"{name} {setting['failure']} | | |")
            continue
        ratio = f"{setting['ratio']:.2f}× [{_range(setting['ratios'])}]" if "ratio" in setting else ""
        processor = 1e3 * setting["processor_seconds_per_step"]
        rows.append(f"{name} {setting['steps_per_second']:,.0f} | {ratio} | {processor:.2f} |")
    return [*rows, ""]


def _range(ratios: list[float]) -> str:
    return f"{min(ratios):.2f}–{max(ratios):.2f}"


def _envs(setting: Record) -> str:
    return f"{setting['num_envs']} env{'s' if setting['num_envs'] > 1 else ''}"


def _threads(setting: Record) -> str:
    return f"{setting['threads']} thread{'s' if setting['threads'] > 1 else ''}"
