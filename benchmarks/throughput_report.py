"""How the throughput benchmark is shown: a line per run, a page of Markdown."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
BUSY_LOAD = 0.5
"""A load average above this, before the run, means that others use the machine."""

FAIRNESS = (
    "One run each, on one machine with two cores, on the CPU. Steps are agent steps: decisions of the agent, four "
    "frames each on Atari. The watch runs once learning goes on, so starting, compiling and filling the memory are not "
    "in it.",
    "The same for all: the world (no sticky actions, minimal action set, lost lives as ends, clipped rewards, 84×84 "
    "grey by area, four frames stacked; MinAtar's own games), the network, the optimiser, batch, updates per step, "
    "buffer, discount, target period, and 5 % random actions.",
    "Each as its users run it: ours with its preset for the family (eight worlds that act together; on Atari targets "
    "are computed on the second core while gradients are on the first). SB3 and CleanRL may use both cores too: the "
    "table has them with one thread and with two, SB3 with one world, its default, and with eight, "
    "which batches its passes as ours are batched and updates as often per step. Ours is held against the fastest.",
    "What differs: SB3 and CleanRL clip the gradient's norm (without a switch for it), and press FIRE after a reset; "
    "CleanRL's loss is the squared error; ours compresses its frames, which costs it time and saves memory; SB3 has "
    "`optimize_memory_usage=True`.",
    "CleanRL is `dqn_atari.py` of its last release on PyPI, 0.4.8, as it is, with today's torch, Gym 0.21, which it "
    "wants, and ALE 0.8.1, whose answers are put in that Gym's form.",
)


def verdict(goal: list[Any]) -> str:
    return f"goal {goal[0]:g}×: {'met' if goal[1] else '**missed**'}"


def line(setting: Record) -> str:
    """One run, or one setting, in a line."""
    name = f"{setting['contender']}, {_worlds(setting)}, {_threads(setting)}"
    if "failure" in setting:
        return f"{name:<44} {setting['failure']}"
    return (
        f"{name:<44} {setting['steps_per_second']:7.1f} steps/s, "
        f"{1e3 * setting['processor_seconds_per_step']:6.2f} ms of processor time per step"
    )


def verdicts(case: Record) -> str:
    """All ratios of a case in a line."""
    shown = [
        f"{ratio:.2f}× {peer} ({verdict(case['goals'][peer])})" if ratio is not None else f"{peer}: did not run"
        for peer, ratio in case["ratios"].items()
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
        f"{about['python']}, {versions}. Plain DQN (depth 0). Medians of {results['repeats']} turns, each run in a "
        f"process of its own; all numbers are in `{stem}.json`.",
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
        f"{shared['buffer_transitions']:,}, learning from step {shared['learning_starts_steps']:,}, timed over "
        f"{shared['measured_steps']:,} steps from step "
        f"{shared['learning_starts_steps'] + shared['warm_up_steps']:,} on.",
        "",
        "| | worlds | threads | steps per second | ours makes | processor ms per step |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    mine = next((one for one in case["settings"] if "failure" not in one), None)
    for setting in case["settings"]:
        name = f"| {setting['contender']} | {setting['envs']} | {setting['threads']} |"
        if "failure" in setting:
            rows.append(f"{name} {setting['failure']} | | |")
            continue
        rate = setting["steps_per_second"]
        ratio = "" if mine is None or setting is mine else f"{mine['steps_per_second'] / rate:.2f}×"
        rows.append(f"{name} {rate:,.0f} | {ratio} | {1e3 * setting['processor_seconds_per_step']:.2f} |")
    return [*rows, ""]


def _worlds(setting: Record) -> str:
    return f"{setting['envs']} world{'s' if setting['envs'] > 1 else ''}"


def _threads(setting: Record) -> str:
    return f"{setting['threads']} thread{'s' if setting['threads'] > 1 else ''}"
