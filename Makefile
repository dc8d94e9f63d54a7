# Every target creates what it needs: a virtual environment in .venv, then the package in it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help env demo test check lint types layers test-slow mutants bench reproduce architecture clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(READY) ## create .venv and install zerodelta with its development tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: env ## the main job, end to end
	$(BIN)/zerodelta demo

test: env ## all tests but the long statistical ones
	$(BIN)/python -m pytest -n auto -m 'not slow'

check: lint types layers test ## exactly what CI runs

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/mypy

layers: env
	$(BIN)/lint-imports

test-slow: env ## the long statistical runs (1e8 draws a sampler), random examples, and all mutants
	$(BIN)/python -m pytest -n auto -m slow
	$(BIN)/python -m pytest -n auto -m 'hypothesis and not slow' --hypothesis-profile=random

mutants: env ## one-line mistakes in the library, each of which its tests must notice
	$(BIN)/python tests/mutants/run.py

bench: env ## speed and accuracy, beside our peers
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/samplers.py
	$(BIN)/python bench/purify.py
	$(BIN)/python bench/paper.py
	$(BIN)/python bench/study.py
	$(BIN)/python bench/tasks.py
	$(BIN)/python bench/tasks_forecasts.py
	$(BIN)/python bench/defaults_classifiers.py
	$(BIN)/python bench/defaults.py

reproduce: env ## the paper's figures and tables, measured again (an hour; QUICK=1: a minute)
	$(BIN)/python -m reproduce $(if $(QUICK),--quick)

architecture: env ## trace docs/architecture.md again
	$(BIN)/python bench/architecture.py --write

clean: ## remove what the targets above made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
