# Two commands matter: `make demo` and `make test`. Both set everything up first, in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow lint docs package setup browser reproduce reproduce-minatar reproduce-atari report \
	certify bench-planning bench-search bench-start bench-throughput torture clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: .venv/ready  ## solve the paper's maze by every lookahead rule, then train QL-DQN on Breakout for a minute
	$(BIN)/adalook demo --out demo --learn-seconds 60

test: lint docs browser  ## lint, type-check, build the documentation and run all tests but the slow ones
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 10

test-slow: .venv/ready browser  ## the slow tests: kill -9 at many moments, long soaks, a Ray cluster
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	$(BIN)/python -m pytest -m slow

browser:  ## install chromium, which the tests of the page drive, unless it is there (Debian)
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)

reproduce: .venv/ready  ## run the paper's planning experiments into results/, going on where the last run stopped
	$(BIN)/adalook reproduce all --out results

reproduce-minatar: .venv/ready  ## QL-DQN against DQN of depth 0 to 3 (hours), going on where the last run stopped
	$(BIN)/adalook reproduce minatar --out results

reproduce-atari: .venv/ready  ## training runs on Atari, 20 minutes each, going on where the last run stopped
	$(BIN)/adalook reproduce atari --out results

report: .venv/ready  ## draw figures, claims and the page from results/ into report/
	$(BIN)/adalook report --out report

lint: .venv/ready  ## style, types, who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

certify: .venv/ready  ## every solver of Auto on 10,000 random models each, against exact rationals
	ADALOOK_CERTIFY_MODELS=10000 $(BIN)/python -m pytest -q tests/planning/test_certificate.py -k whichever_solver

docs: .venv/ready  ## build the documentation into build/site; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs . build/site
	@echo '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">' > build/site/index.html
	@echo open build/site/index.html

package: .venv/ready  ## build wheel and source archive into dist/ and try both in an empty environment
	rm -rf dist build/try
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/try
	build/try/bin/pip install --quiet --constraint constraints.txt dist/*.whl
	cd build/try && bin/adalook --version && bin/adalook solve 'zoo:maze?size=10&seed=1' --out maze
	cd build/try && bin/python -c "import adalook as al; sol = al.solve(al.zoo.chain()); assert sol.certified; print(sol)"
	build/try/bin/pip install --quiet --force-reinstall --no-deps dist/*.tar.gz
	cd build/try && bin/adalook solve zoo:chain

bench-planning: .venv/bench-ready  ## side by side with quantecon, mdpsolver, mdptoolbox and Storm, into results/
	$(BIN)/python -m benchmarks.planning

bench-search: .venv/ready  ## tree search against plain recursion, into results/
	$(BIN)/python -m benchmarks.search

bench-throughput: .venv/bench-ready .venv/cleanrl/ready  ## training steps per second against Stable-Baselines3 and CleanRL, into results/
	$(BIN)/python -m benchmarks.throughput
	$(BIN)/python -m benchmarks.throughput ablation

bench-start: .venv/ready  ## what importing and the first solve cost
	$(BIN)/python -m benchmarks.start

torture: .venv/ready  ## damage, malice and bad luck: certificates, files, kills, environments, into results/ (hours; F=0.05 for minutes)
	$(BIN)/python -m benchmarks.torture --factor $(or $(F),1)

setup: .venv/ready  ## only set up .venv

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/bench-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

# A Python for a script of 2021: Gym as it was, ROMs from today's ALE.
.venv/cleanrl/ready: .venv/ready benchmarks/throughput/cleanrl.txt
	rm -rf .venv/cleanrl
	$(PYTHON) -m venv .venv/cleanrl
	.venv/cleanrl/bin/pip install --quiet 'setuptools<66' 'wheel<0.38'
	.venv/cleanrl/bin/pip install --quiet --no-build-isolation gym==0.21.0
	.venv/cleanrl/bin/pip install --quiet --requirement benchmarks/throughput/cleanrl.txt
	.venv/cleanrl/bin/ale-import-roms .venv/lib/python3*/site-packages/ale_py/roms >/dev/null
	touch $@

clean:  ## remove what was set up and made
	rm -rf .venv demo report build .mypy_cache .ruff_cache .pytest_cache .hypothesis
