"""What the replay buffer costs, on real games with real leaves: `python -m benchmarks.replay [games | checkpoint]`.

games: bytes per frame under each codec, bytes per transition, microseconds to add and to sample.
checkpoint: seconds to save and load a large buffer, the first time and after it has moved on.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adalook.learning.depth import DistanceRanks
from adalook.learning.replay.buffer import Experience, Replay
from adalook.learning.replay.codecs import shows_stacked_frames
from adalook.learning.runs.directory import RunDirectory
from adalook.simulators.base import Simulator
from adalook.simulators.make import make_simulator
from benchmarks.results import chosen_parts

ATARI = ["ALE/Breakout-v5", "ALE/Tutankham-v5", "ALE/VideoPinball-v5", "ALE/Solaris-v5", "ALE/Berzerk-v5"]
MINATAR = ["MinAtar/Breakout-v1", "MinAtar/Seaquest-v1"]
DEPTH = 3
MILLION = 1_000_000


def random_lookahead(sim: Simulator, steps: int) -> Iterator[tuple[Experience, dict[int, float]]]:
    """Transitions to leaves at depth 3 along random paths, of which only the first action is taken.

    Every search plans anew, so leaves share as little as they can: two of the three new frames are met by nobody else.
    """
    rng = np.random.default_rng(0)
    observation = sim.reset(seed=0)
    for _ in range(steps):
        first, *later = rng.integers(sim.num_actions, size=DEPTH)
        node, terminated, reward = sim.reseed(sim.save(), seed=int(rng.integers(2**31))), False, 0.0
        for action in (first, *later):
            if not terminated:
                children = sim.expand([node], [int(action)])
                node, leaf, terminated = (
                    children.states[0],
                    children.observations[0].copy(),
                    bool(children.terminated[0]),
                )
                reward += float(children.rewards[0])
        distances = {depth: float(rng.exponential()) for depth in range(1, DEPTH + 1)}
        yield Experience(observation, int(first), reward, leaf, DEPTH, DEPTH, terminated), distances
        result = sim.step(int(first))
        observation = sim.reset() if result.episode_over else result.observation


def microseconds(call: Callable[[], object], repeats: int) -> float:
    """Processor time of one call: nothing here has threads, and the machine may be busy with other work."""
    call()
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats * 1e6


def codecs(frames: np.ndarray[Any, Any]) -> None:
    """Bytes and time of one frame under each codec, single frames in plain Python calls."""
    import lz4.block
    import zstandard

    raw = [frame.tobytes() for frame in frames]
    packer, unpacker = zstandard.ZstdCompressor(level=1, write_content_size=False), zstandard.ZstdDecompressor()
    pairs: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
        "lz4": (
            lambda data: lz4.block.compress(data, store_size=False),
            lambda data: lz4.block.decompress(data, len(raw[0])),
        ),
        "zstd -1": (packer.compress, lambda data: unpacker.decompress(data, max_output_size=len(raw[0]))),
    }
    for name, (pack, unpack) in pairs.items():
        packed = [pack(data) for data in raw]
        pack_us = microseconds(lambda: [pack(data) for data in raw], 3) / len(raw)  # noqa: B023
        unpack_us = microseconds(lambda: [unpack(data) for data in packed], 3) / len(raw)  # noqa: B023
        size = np.mean([len(data) for data in packed])
        print(f"    {name:8} {size:6.0f} bytes a frame, {pack_us:5.1f} µs to pack, {unpack_us:5.1f} µs to unpack")


def game(name: str, steps: int) -> None:
    sim = make_simulator(name)
    ranks = DistanceRanks(min_count=1)
    replay = Replay.for_simulator(sim, MILLION, max_depth=DEPTH, ranks=ranks, compression="auto")
    transitions = list(random_lookahead(sim, steps))
    start = time.process_time()
    for experience, distances in transitions:
        replay.add(experience, distances)
    add_us = (time.process_time() - start) / steps * 1e6
    rng = np.random.default_rng(0)
    sample_us = microseconds(lambda: replay.sample(rng, 32), 300)
    each = replay.bytes_used / steps
    print(f"{name}: {steps:,} transitions at depth {DEPTH}")
    print(
        f"    {each:,.0f} bytes each ({replay.frames_stored / steps:.2f} frames), "
        f"{each * MILLION / 2**30:.2f} GiB per million; add {add_us:.0f} µs, sample of 32 {sample_us:.0f} µs"
    )
    if shows_stacked_frames(sim):
        codecs(np.array([experience.observation[-1] for experience, _ in transitions[:2000]]))


def stamped(pool: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Real frames (n, 84, 84), made distinct by their numbers (n,) in three pixels."""
    frames = pool[numbers % len(pool)]
    frames[:, 0, :3] = numbers[:, None] >> np.array([0, 8, 16]) & 255
    return frames


def checkpoint(transitions: int, moved_on: int) -> None:
    """A buffer of real frames, three new ones per transition, saved, moved on and saved again, then loaded."""
    sim = make_simulator("ALE/Tutankham-v5")
    pool = np.array([experience.observation[-1] for experience, _ in random_lookahead(sim, 1000)])
    settings: dict[str, Any] = {"max_depth": DEPTH, "stacked": True}
    replay, restored = (Replay(transitions, (4, 84, 84), np.dtype(np.uint8), **settings) for _ in range(2))
    rng = np.random.default_rng(0)

    def fill(first: int, count: int) -> None:
        for number in range(first, first + count):
            frames = stamped(pool, np.arange(3 * number, 3 * number + 7))
            experience = Experience(frames[:4], 0, 1.0, frames[3:], DEPTH, DEPTH, False)
            replay.add(experience, dict(enumerate(rng.exponential(size=DEPTH).tolist(), 1)))

    fill(0, transitions)
    print(
        f"{transitions:,} transitions, {replay.bytes_used / 2**30:.2f} GiB, "
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB resident"
    )
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory, RunDirectory(directory) as run:
        for what in ("first checkpoint", f"another {moved_on:,} transitions later", "nothing new"):
            if what.startswith("another"):
                fill(transitions, moved_on)
            start = time.perf_counter()
            run.save(0, {"replay": replay.state()})
            print(f"    {what}: {time.perf_counter() - start:.2f} s")
        start = time.perf_counter()
        newest = run.load_newest()
        assert newest is not None
        restored.load_state(newest.state["replay"])
        print(f"    loading: {time.perf_counter() - start:.2f} s")
    one, other = (buffer.sample(np.random.default_rng(1), 512) for buffer in (replay, restored))
    assert (one.observations == other.observations).all()
    assert (one.leaves == other.leaves).all()


def main() -> None:
    np.ones(2_000_000)  # malloc keeps more of what is freed from now on, as it does once a network has been trained
    wanted = chosen_parts(("games", "checkpoint"), __doc__ or "")
    if "games" in wanted:
        for name in ATARI:
            game(name, steps=6000)
        for name in MINATAR:
            game(name, steps=20_000)
    if "checkpoint" in wanted:
        checkpoint(200_000, moved_on=20_000)


if __name__ == "__main__":
    main()
