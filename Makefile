# Two commands matter: `make demo` and `make test`. Both set everything up first, in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint setup bench-planning bench-start clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: .venv/ready  ## solve the paper's maze with every method and draw the depth used per state
	$(BIN)/adalook demo --out demo

test: lint  ## lint, type-check and run all tests but the slow ones
	$(BIN)/python -m pytest -n 2

lint: .venv/ready  ## style, types, who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-planning: .venv/bench-ready  ## side by side with quantecon, mdpsolver, mdptoolbox and Storm, into results/
	$(BIN)/python -m benchmarks.planning

bench-start: .venv/ready  ## what importing and the first solve cost
	$(BIN)/python -m benchmarks.start

setup: .venv/ready  ## only set up .venv

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/bench-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:  ## remove what was set up and made
	rm -rf .venv demo build .mypy_cache .ruff_cache .pytest_cache .hypothesis
