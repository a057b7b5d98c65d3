"""What engines cost, and how far they scale: `python -m benchmarks.engines [costs | overhead | scaling]`.

costs     processor time of an emulated step, a leaf, an update, a message, and decisions per second and core, by game
overhead  decisions per second of trees of depth 2 on Tutankham: Ray with 2 actors against 2 local workers, by turns
scaling   a discrete-event simulation of 1 … 1,000 actors and one learner with those costs, and its figure in docs/

Each part adds to results/engines.json; the page is made from what is there.
"""

from __future__ import annotations

import heapq
import json
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al
from benchmarks.results import ROOT, Record, chosen_parts, machine, write_results

GAMES = ("ALE/Tutankham-v5", "ALE/VideoPinball-v5", "MinAtar/Breakout-v1")
DEPTH = 2
ROUNDS, TURNS = 6, 5
RATIOS = (0.0625, 0.25, 1.0)
"""Updates per decision: a sixteenth, a quarter (DQN's) and one."""
ACTORS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
ENVS_PER_ACTOR = 4
ACTORS_PER_MACHINE = 8
SIMULATED_SECONDS = 60.0
NETWORK_BYTES_PER_SECOND = 1.25e9
"""Ten gigabits, as cloud machines have them."""


def agent_on(game: str, engine: Any = None, **settings: Any) -> al.DQN:
    """DQN on trees of depth 2 that learns from its first round on."""
    small = {"learning_starts_steps": 0, "buffer_transitions": 2_000, "batch_transitions": 32, "overlap": False}
    return al.DQN(game, al.Config.for_env(game, **small | settings), depth=DEPTH, engine=engine)


def seconds_of(call: Callable[[], Any], repeat: int) -> float:
    """Processor seconds of a call: the median of some."""
    taken = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return float(np.median(taken))


def costs_of(game: str) -> Record:
    """The costs of one game, in processor seconds."""
    agent = agent_on(game)
    rounds = agent.rounds()
    for _ in range(6):
        next(rounds)
    trainer, sim = agent.trainer, agent.sim
    state = sim.clone()
    state.reset(seed=0)
    saved = sim.reseed(state.save(), 0)  # as in trees, whose randomness is lighter than that of live environments
    nodes = [saved] * 64
    actions = [i % sim.num_actions for i in range(64)]
    observations = np.repeat(state.observe()[None], 64, axis=0)
    step = seconds_of(lambda: sim.expand(nodes, actions), 7) / 64
    leaf = seconds_of(lambda: agent.leaf_values.values(observations, DEPTH), 7) / 64
    update = seconds_of(lambda: trainer._learn(1_000, 1_000 + 4 * trainer.config.update_period_steps), 7)
    updates = len(trainer._learn(1_000, 1_000 + 4 * trainer.config.update_period_steps))
    done: list[Any] = []
    only_acting = agent_on(game, learning_starts_steps=10**9).rounds()
    next(only_acting)
    decision = seconds_of(lambda: done.append(next(only_acting)), 9) / trainer.config.num_envs
    nodes_each = float(np.mean([each.nodes for one in done for each in one.decisions]))
    reply = pickle.dumps((done[-1].decisions[:1], trainer.acting.state()["envs"]["saved"][:1]), 5)
    message = seconds_of(lambda: pickle.loads(pickle.dumps(done[-1].decisions[:1], 5)), 7)
    return {
        "emulated_step_seconds": step,
        "leaf_seconds": leaf,
        "update_seconds": update / updates,
        "message_seconds": message,
        "reply_bytes": len(reply),
        "weights_bytes": sum(array.nbytes for array in agent.network.weights().values()),
        "nodes_per_decision": nodes_each,
        "decision_seconds": decision,
        "decisions_per_core_second": 1.0 / decision,
    }


def processor_seconds(processes: list[int]) -> list[float]:
    """Processor time of other processes so far."""
    taken = []
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        taken.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    return taken


def hosts_of(agent: Any) -> list[int]:
    """Processes that an agent's engine has started, but for Ray's own."""
    acting = agent.trainer.acting
    if hasattr(acting, "groups"):
        return list(acting._hosts.process_ids)
    expander = agent.actor._expander
    return list(getattr(expander, "process_ids", []))


def measure_overhead() -> Record:
    """Decisions per second of engines, by turns in one run, and the processor time on the critical path of a decision.

    The critical path is the time of this process plus that of the busiest other one: what a round would take on cores
    that nobody else wants. It does not depend on the load of the machine.
    """
    game = GAMES[0]
    never = {"learning_starts_steps": 10**9}
    contenders = {
        "this process alone": agent_on(game, **never),
        "2 processes": agent_on(game, al.LocalProcesses(2), **never),
        "2 processes by nodes": agent_on(game, al.LocalProcesses(2, split="nodes"), **never),
        "Ray, 2 actors": agent_on(game, al.Ray(2), **never),
    }
    rounds = {name: agent.rounds() for name, agent in contenders.items()}
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    paths: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(TURNS + 1):
        for name, going in rounds.items():
            if not turn:  # the first warms up
                next(going)
            others = hosts_of(contenders[name])
            before, own = processor_seconds(others), time.process_time()
            began, decisions = time.perf_counter(), 0
            for _ in range(ROUNDS):
                decisions += len(next(going).decisions)
            seconds, own = time.perf_counter() - began, time.process_time() - own
            spent = [after - start for after, start in zip(processor_seconds(others), before, strict=True)]
            busiest = max(spent, default=0.0)
            if turn:
                rates[name].append(decisions / seconds)
                paths[name].append((own / decisions, busiest / decisions))
    for agent in contenders.values():
        agent.forget_training()
    base, alone = rates["2 processes"], paths["this process alone"]
    whole = float(np.median([sum(part) for part in alone]))
    return {
        name: {
            "decisions_per_second": float(np.median(each)),
            "of_processes": float(np.median(np.array(each) / np.array(base))),
            "driver_seconds": float(np.median([part[0] for part in paths[name]])),
            "busiest_seconds": float(np.median([part[1] for part in paths[name]])),
            "speed_up": whole / float(np.median([sum(part) for part in paths[name]])),
        }
        for name, each in rates.items()
    }


def simulate(costs: Record, actors: int, ratio: float, *, asynchronous: bool, seed: int = 0) -> Record:
    """Decisions per second, and how busy the learner is, of so many actors: a discrete-event simulation.

    An actor takes ENVS_PER_ACTOR decisions per call, of a time that varies as depths do. The driver takes replies one
    after the other: it unpacks, stores, and makes `ratio` updates per decision. Weights go once to each machine.
    """
    rng = np.random.default_rng(seed)
    decide = costs["decision_seconds"] * ENVS_PER_ACTOR
    reply = costs["message_seconds"] * ENVS_PER_ACTOR + costs["reply_bytes"] * ENVS_PER_ACTOR / NETWORK_BYTES_PER_SECOND
    weights = costs["weights_bytes"] / NETWORK_BYTES_PER_SECOND
    learn = ratio * costs["update_seconds"] * ENVS_PER_ACTOR

    def acting() -> float:
        return float(decide * rng.gamma(16.0, 1.0 / 16.0))  # a quarter more or less, as Tutankham's depths make it

    clock = busy = 0.0
    decisions = 0
    if not asynchronous:
        while clock < SIMULATED_SECONDS:
            longest = max(acting() for _ in range(actors))
            driver = actors * learn
            clock += weights * -(-actors // ACTORS_PER_MACHINE) + max(longest, driver) + actors * reply
            busy += driver + actors * reply
            decisions += actors * ENVS_PER_ACTOR
        return {"decisions_per_second": decisions / clock, "learner_busy": busy / clock}
    # Each actor has two calls in flight: it begins the second when the first is done, and waits only for the third.
    events = [(acting(), actor) for actor in range(actors)]
    heapq.heapify(events)
    waiting = [1] * actors  # calls that an actor has been sent beside the one it works on
    idle_since: dict[int, float] = {}
    while events:
        done, actor = heapq.heappop(events)
        if waiting[actor]:
            waiting[actor] -= 1
            heapq.heappush(events, (done + acting(), actor))
        else:
            idle_since[actor] = done
        clock = max(clock, done) + reply + learn + weights / ACTORS_PER_MACHINE
        busy += reply + learn + weights / ACTORS_PER_MACHINE
        decisions += ENVS_PER_ACTOR
        if actor in idle_since:
            begins = max(clock, idle_since.pop(actor))
            heapq.heappush(events, (begins + acting(), actor))
        else:
            waiting[actor] += 1
        if clock > SIMULATED_SECONDS:
            break
    return {"decisions_per_second": decisions / clock, "learner_busy": min(1.0, busy / clock)}


def scaling(costs: Record) -> Record:
    """Simulated decisions per second by ratio, kind of rounds and number of actors, and where learners saturate."""
    found: Record = {}
    for ratio in RATIOS:
        for asynchronous in (False, True):
            runs = {actors: simulate(costs, actors, ratio, asynchronous=asynchronous) for actors in ACTORS}
            saturated = next((actors for actors, run in runs.items() if run["learner_busy"] > 0.9), None)
            name = f"{ratio:g} updates per decision, {'asynchronous' if asynchronous else 'synchronous'}"
            found[name] = {"actors": runs, "saturated_at": saturated}
    return found


def draw(results: Record, path: Path) -> None:
    """Draw decisions per second by actors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    colours = {f"{ratio:g}": colour for ratio, colour in zip(RATIOS, ("#1b6ca8", "#c8553d", "#4f7942"), strict=True)}
    for name, found in results.items():
        runs = found["actors"]
        ratio, _, kind = name.partition(" updates per decision, ")
        style = "-" if kind == "asynchronous" else "--"
        counts, rates = [int(actors) for actors in runs], [run["decisions_per_second"] for run in runs.values()]
        axes.plot(counts, rates, style, color=colours[ratio])
        if kind == "asynchronous":
            text = f"{ratio} updates per decision"
            axes.text(counts[-1], 1.04 * rates[-1], text, ha="right", va="bottom", color=colours[ratio], fontsize=9)
    for style, kind in (("-", "asynchronous"), ("--", "synchronous rounds")):
        axes.plot([], [], style, color="#555555", label=kind)
    axes.set(xscale="log", yscale="log", xlabel="actors of four environments", ylabel="decisions per second")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    axes.set_yticks([20, 50, 100, 200, 500])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_ylim(20, 600)
    axes.set_title("Tutankham, depth 2: simulated from measured costs")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=130)


def page(results: Record) -> str:
    """The page of all results that there are."""
    lines = [
        "# Engines: costs, overhead, scaling",
        "",
        f"Made by `python -m benchmarks.engines` on {results['machine']['cpu']},",
    ]
    lines += [f"{results['machine']['cores']} cores, load {results['machine']['load_before']:.0f}.", ""]
    if "costs" in results:
        lines += ["## Costs, in processor time, depth 2", "", COST_HEAD, "|---|---:|---:|---:|---:|---:|---:|---:|"]
        for game, cost in results["costs"].items():
            lines.append(
                f"| {game} | {cost['emulated_step_seconds'] * 1e6:.0f} | {cost['leaf_seconds'] * 1e6:.0f} "
                f"| {cost['update_seconds'] * 1e3:.1f} | {cost['message_seconds'] * 1e6:.0f} "
                f"| {cost['reply_bytes'] / 1e3:.0f} | {cost['nodes_per_decision']:.0f} "
                f"| {cost['decisions_per_core_second']:.1f} |"
            )
        lines.append("")
    if "overhead" in results:
        lines += [f"## Tutankham, depth {DEPTH}: median of {TURNS} turns", ""]
        lines += ["| engine | decisions/s | of 2 processes | driver ms | busiest other ms | speed-up on free cores |"]
        lines += ["|---|---:|---:|---:|---:|---:|"]
        for name, found in results["overhead"].items():
            lines.append(
                f"| {name} | {found['decisions_per_second']:.1f} | {found['of_processes']:.2f} "
                f"| {1e3 * found['driver_seconds']:.1f} | {1e3 * found['busiest_seconds']:.1f} "
                f"| {found['speed_up']:.2f} |"
            )
        lines += ["", OVERHEAD_NOTE, ""]
    if "scaling" in results:
        lines += ["## Scaling, simulated", "", f"| | {' | '.join(map(str, ACTORS))} | busy at |"]
        lines.append("|---|" + "---:|" * (len(ACTORS) + 1))
        for name, found in results["scaling"].items():
            rates = " | ".join(f"{run['decisions_per_second']:,.0f}" for run in found["actors"].values())
            lines.append(f"| {name} | {rates} | {found['saturated_at'] or 'never'} |")
        lines += [
            "",
            "Decisions per second by actors of four environments each; the learner is busy from the actors in the",
        ]
        lines += ["last column on for more than nine tenths of the time."]
    return "\n".join(lines)


OVERHEAD_NOTE = (
    "Decisions per second are by the clock, with whatever else the machine does. Milliseconds are processor time per "
    "decision; driver plus busiest other process is the critical path of a round, the speed-up one process by that."
)
COST_HEAD = "| game | step µs | leaf µs | update ms | message µs | reply KB | nodes | decisions/s per core |"


def main() -> None:
    """Measure what the arguments name, or everything, and write it."""
    wanted = chosen_parts(("costs", "overhead", "scaling"), __doc__ or "")
    known = ROOT / "results" / "engines.json"
    results: Record = json.loads(known.read_text()) if known.exists() else {}
    results["machine"] = machine()
    if any("driver_seconds" not in found for found in results.get("overhead", {}).values()):
        del results["overhead"]  # measured before critical paths were
    if "costs" in wanted:
        results["costs"] = {game: costs_of(game) for game in GAMES}
    if "overhead" in wanted:
        results["overhead"] = measure_overhead()
    if "scaling" in wanted:
        results["scaling"] = scaling(results["costs"][GAMES[0]])
        draw(results["scaling"], ROOT / "docs" / "images" / "scaling.png")
    write_results(ROOT / "results", "engines", results, page(results))
    print(page(results))


if __name__ == "__main__":
    main()
