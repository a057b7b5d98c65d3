"""The examples of docs/search.md run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path


def test_examples_run():
    text = (Path(__file__).parents[2] / "docs" / "search.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, "docs/search.md", "exec"), names)
    rule = names["UntilReward"](4)
    root = names["Root"].of(names["sim"])
    result = names["search"](names["sim"], root, names["value_fn"], rule, discount=0.99)
    assert result.depth == 4 or result.value > 0
