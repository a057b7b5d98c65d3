"""Score against time per decision: trained agents alone, and with `al.Lookahead` at several budgets.

    python -m benchmarks.lookahead cartpole --training 10000 --episodes 10 --nodes 2 14 62 126
    python -m benchmarks.lookahead lander --training 50000 --episodes 4 --nodes 40
    python -m benchmarks.lookahead minatar --agent agents/minatar-breakout --episodes 10 --nodes 48 192 --steps 300
    python -m benchmarks.lookahead ale --agent agents/atari-tutankham-dqn --episodes 2 --nodes 64 --steps 400

The agents are a DQN of Stable-Baselines3 (CartPole, LunarLander) and shipped agents of adalook (a QL-DQN for MinAtar's
Breakout, played with sticky actions and without its own search, and a DQN for Atari's Tutankham); they are trained here
or loaded with `--agent`. Each plays the same episodes alone,
boldly (correction 0) and cautiously (1). Time is the process's own, so that other work does not count. Rows are printed
as JSON and added to results/lookahead.json, from which the page and its figure are drawn.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import torch
from matplotlib.figure import Figure

import adalook as al
from adalook.learning.evaluation import Evaluation
from adalook.learning.lookahead import Lookahead
from adalook.learning.runs.run import load_agent
from benchmarks.results import ROOT, machine, write_results

ENVS = {
    "cartpole": "CartPole-v1",
    "lander": "LunarLander-v3?replay=true",
    "minatar": "MinAtar/Breakout-v1?sticky=0.1",
    "ale": "ALE/Tutankham-v5",
}
OPTIONS: dict[str, dict[str, Any]] = {"lander": {"samples": 1}}
"""Arguments of `al.Lookahead`: LunarLander's trees are replayed, and one future is all that time allows."""


def trained(what: str, steps: int) -> Any:
    """Return an agent that was trained for so many steps."""
    if what in ("minatar", "ale"):
        agent = al.DQN(ENVS[what].partition("?")[0], seed=0)
        agent.learn(steps=steps, progress=False)
        return agent
    from stable_baselines3 import DQN

    settings: dict[str, Any] = {
        "cartpole": {"learning_rate": 1e-3, "learning_starts": 500, "exploration_fraction": 0.3},
        "lander": {"learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "exploration_fraction": 0.12},
    }[what]
    env = gymnasium.make(ENVS[what].partition("?")[0])
    return DQN("MlpPolicy", env, target_update_interval=250, seed=0, device="cpu", **settings).learn(steps)


def loaded(what: str, path: str) -> Any:
    """Return an agent that was saved."""
    if what in ("minatar", "ale"):
        return load_agent(Path(path))
    from stable_baselines3 import DQN

    return DQN.load(path, device="cpu")


def environment(what: str, model: Any) -> Any:
    """Return what is played: in Atari the agent's own simulator, whose rewards and lives are those of its training."""
    return model.sim if what == "ale" else ENVS[what]


def rows(what: str, model: Any, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Play the same episodes alone and with every budget, and return a row for each."""
    found: list[dict[str, Any]] = []
    env = environment(what, model)

    def add(nodes: int, correction: float, evaluation: Evaluation, seconds: float) -> None:
        row = {
            "what": what,
            "nodes": nodes,
            "correction": None if math.isinf(correction) else correction,
            "mean": round(evaluation.mean, 2),
            "standard_error": round(evaluation.standard_error, 2) if given.episodes > 1 else None,
            "episodes": given.episodes,
            "scores": evaluation.scores.tolist(),
            "cut": evaluation.cut,
            "ms_per_decision": round(1e3 * seconds / float(evaluation.steps.sum()), 2),
        }
        print(json.dumps(row), flush=True)
        found.append(row)

    play = {"episodes": given.episodes, "max_episode_steps": given.steps, "seed": 1}
    for nodes in given.nodes:
        for correction in given.corrections:
            agent = Lookahead(model, env, nodes=nodes, correction=correction, **OPTIONS.get(what, {}))
            if not found:
                begin = time.process_time()
                alone = agent.tune(corrections=(), **play)[math.inf]
                add(0, math.inf, alone, time.process_time() - begin)
                agent = Lookahead(model, env, nodes=nodes, correction=correction, **OPTIONS.get(what, {}))
            begin = time.process_time()
            evaluation = agent.evaluate(**play)
            add(nodes, correction, evaluation, time.process_time() - begin)
            agent.close()
    return found


def figure(found: list[dict[str, Any]]) -> Figure:
    """Return score against time per decision, a panel for each environment."""
    kinds = [what for what in ENVS if any(row["what"] == what for row in found)]
    lines = -(-len(kinds) // 2)
    made = Figure(figsize=(7.0, 2.7 * lines), layout="constrained")
    for panel, what in zip(made.subplots(lines, 2, squeeze=False).flat, kinds, strict=False):
        for correction, label, colour in ((0.0, "bold", "#d55e00"), (1.0, "cautious", "#0072b2")):
            mine = [row for row in found if row["what"] == what and row["correction"] == correction]
            errors = [row["standard_error"] or 0.0 for row in mine]
            times, means = [row["ms_per_decision"] for row in mine], [row["mean"] for row in mine]
            panel.errorbar(times, means, errors, marker="o", ms=4, color=colour, label=label, capsize=2)
        (alone,) = [row["mean"] for row in found if row["what"] == what and row["correction"] is None]
        panel.axhline(alone, color="#555555", ls="--", lw=1, label="alone")
        panel.set(title=ENVS[what].partition("?")[0], xlabel="ms per decision")
        panel.set_xlim(left=0.0, right=1.15 * max(row["ms_per_decision"] for row in found if row["what"] == what))
        panel.set_ylim(bottom=0.0, top=max(1.0, panel.get_ylim()[1]))
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylabel("score")
    for panel in made.axes[len(kinds) :]:
        panel.axis("off")
    made.axes[0].legend(frameon=False, fontsize=8)
    return made


def _origin(run: dict[str, Any]) -> str:
    """Return what made the rows of an environment; the command lines of older runs were not kept."""
    command = run.get("command")
    return f"`{command}`" if command else "an agent that had been saved, by a command line that was not kept"


def page(found: list[dict[str, Any]], runs: dict[str, dict[str, Any]]) -> str:
    """Return all rows as Markdown."""
    lines = [
        "# Lookahead for trained agents",
        "",
        "Score against processor time per decision, `python -m benchmarks.lookahead …`; ± one standard error. Bold "
        "takes every lead, cautious asks for more than the values usually err. Every row was written by its run:",
        "",
        *(f"- {ENVS[what]}: {_origin(run)}, {run['machine']['date'][:10]}" for what, run in runs.items()),
        "",
        "![Score against time per decision](lookahead.png)",
        "",
        "| environment | nodes | correction | score | episodes | cut off | ms per decision |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    names = {None: "alone", 0.0: "bold", 1.0: "cautious"}
    for row in found:
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.1f}"
        lines.append(
            f"| {ENVS[row['what']]} | {row['nodes']} | {names.get(row['correction'], row['correction'])} | "
            f"{row['mean']:.1f}{error} | {row['episodes']} | {row['cut']} | {row['ms_per_decision']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run one benchmark and add its rows to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=ENVS)
    parser.add_argument("--training", type=int, default=10_000, help="steps")
    parser.add_argument("--agent", help="a saved agent, instead of training one")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10_000, help="episodes are cut off after so many")
    parser.add_argument("--nodes", type=int, nargs="+", default=[14, 62])
    parser.add_argument("--corrections", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    run = {"command": " ".join(["python -m benchmarks.lookahead", *sys.argv[1:]]), "machine": machine()}
    model = loaded(given.what, given.agent) if given.agent else trained(given.what, given.training)
    found = rows(given.what, model, given)
    kept = given.out / "lookahead.json"
    before = json.loads(kept.read_text()) if kept.exists() else {"runs": {}, "rows": []}
    everything = [row for row in before["rows"] if row["what"] != given.what] + found
    everything.sort(key=lambda row: list(ENVS).index(row["what"]))
    runs = {what: (before["runs"] | {given.what: run})[what] for what in {row["what"]: None for row in everything}}
    write_results(given.out, "lookahead", {"runs": runs, "rows": everything}, page(everything, runs))
    figure(everything).savefig(given.out / "lookahead.png", dpi=130)


if __name__ == "__main__":
    main()
