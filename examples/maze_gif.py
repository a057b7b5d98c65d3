"""A moving picture: policy iteration and WLPI side by side on the paper's maze, pass by pass."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import adalook as al


def main(path: str = "maze-passes.gif", size: int = 30) -> None:
    """Solve from a random policy by both methods and draw how far each state's value is from V* after each pass."""
    mdp = al.zoo.maze(size=size, seed=0, discount=0.98)
    start = np.random.default_rng(0).integers(mdp.num_actions, size=mdp.num_states)
    best = al.solve(mdp).values
    methods = {"policy iteration": al.PolicyIteration(), "WLPI, ours": al.WLPI()}
    runs = {name: al.solve(mdp, method, initial_policy=start).trace for name, method in methods.items()}
    passes = max(len(trace) for trace in runs.values())
    frames = [_frame(mdp, best, runs, number) for number in range(passes)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=[700] * (passes - 1) + [2500], loop=0)
    print(f"wrote {Path(path).name}: {passes} passes")


def _frame(mdp: al.MDP, best: np.ndarray, runs: dict, number: int) -> Image.Image:
    """Return one picture: the distance to V* in every state, in one colour scale."""
    figure = Figure(figsize=(8.0, 4.4), dpi=90, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for panel, (name, trace) in zip(figure.subplots(1, 2), runs.items(), strict=True):
        item = trace[min(number, len(trace) - 1)]
        shown = mdp.layout.grid(best - item.values)
        panel.imshow(shown, cmap="magma_r", vmin=0.0, vmax=float(best.max()))
        done = ": done" if number >= len(trace) - 1 else ""
        panel.set_title(f"{name}, pass {min(number, len(trace) - 1) + 1}{done}", fontsize=11)
        panel.set_axis_off()
    figure.suptitle("distance of the policy's value to V*", fontsize=11)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return picture.quantize(64)


if __name__ == "__main__":
    main()
