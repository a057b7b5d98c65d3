# Two commands matter: `make demo` and `make test`. Both set everything up first, in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow lint setup browser reproduce report bench-planning bench-search bench-start clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: .venv/ready  ## solve the paper's maze with every method and draw the depth used per state
	$(BIN)/adalook demo --out demo

test: lint browser  ## lint, type-check and run all tests but the slow ones
	$(BIN)/python -m pytest -n 2

test-slow: .venv/ready browser  ## the slow tests: kill -9 at many moments, long soaks, a Ray cluster
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	$(BIN)/python -m pytest -m slow

browser:  ## install chromium, which the tests of the page drive, unless it is there (Debian)
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)

reproduce: .venv/ready  ## run the paper's planning experiments into results/, going on where the last run stopped
	$(BIN)/adalook reproduce all --out results

report: .venv/ready  ## draw figures, claims and the page from results/ into report/
	$(BIN)/adalook report --out report

lint: .venv/ready  ## style, types, who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-planning: .venv/bench-ready  ## side by side with quantecon, mdpsolver, mdptoolbox and Storm, into results/
	$(BIN)/python -m benchmarks.planning

bench-search: .venv/ready  ## tree search against plain recursion, into results/
	$(BIN)/python -m benchmarks.search

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
	rm -rf .venv demo report build .mypy_cache .ruff_cache .pytest_cache .hypothesis
