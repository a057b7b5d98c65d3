# Two commands matter: `make demo` and `make test`. Both set everything up first, in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint setup bench-planning clean

demo: .venv/ready  ## solve the paper's maze with every method, draw the depth used per state
	$(BIN)/python -m adalook.cli demo --out demo

test: .venv/ready lint  ## all tests but the slow ones
	$(BIN)/python -m pytest -n 2

test-slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -m slow

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-planning: .venv/bench-ready  ## side by side with quantecon, mdpsolver, mdptoolbox, Storm
	$(BIN)/python -m benchmarks.planning

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/bench-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:
	rm -rf .venv demo build .mypy_cache .ruff_cache .pytest_cache .hypothesis
