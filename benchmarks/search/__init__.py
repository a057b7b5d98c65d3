"""Tree search, side by side with plain recursion and plangym: `python -m benchmarks.search`."""
