# Every target creates what it needs: a virtual environment in .venv, then the package in it.
# `make test DEPENDENCIES=lowest` does so in .venv-lowest, with the oldest versions that are allowed,
# but without Spark, which is no wheel; where Spark or Java 17 is missing its jobs are skipped.
PYTHON ?= python3
DEPENDENCIES ?= highest
VENV   := $(if $(filter lowest,$(DEPENDENCIES)),.venv-lowest,.venv)
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help env demo docs test quick check bridges lint types layers proofs resolve test-slow mutants bench reproduce architecture clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(READY) ## create .venv and install zerodelta with its development tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
ifeq ($(DEPENDENCIES),lowest)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --resolution lowest-direct \
		--only-binary :all: --requirement pyproject.toml --extra dev
	$(BIN)/python -m pip install --quiet --editable . --no-deps
else
	$(BIN)/python -m pip install --quiet --editable '.[dev,spark]'
endif
	@touch $@

demo: env ## the main job, end to end
	$(BIN)/zerodelta demo

docs: env ## the documentation site, into site/: open site/index.html, no network needed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open site/index.html"

test: env ## all tests but the long statistical ones
	$(BIN)/python -m pytest -n auto -m 'not slow'

quick: env ## completeness, and for a minute the tests that reach what differs from REF (HEAD)
	$(BIN)/python tests/quick.py $(REF)

check: lint types layers test ## exactly what CI runs

bridges: env ## the tests of zerodelta.interop, where OpenDP, dp-accounting, skops, ONNX, Opacus and JAX-Privacy install
	.ci/bridges

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff check --select F --target-version py314 .
	$(BIN)/ruff format --check .

types: env ## for the oldest Python and for the newest
	$(BIN)/mypy --python-version 3.10
	$(BIN)/mypy --python-version 3.14

layers: env
	$(BIN)/lint-imports

proofs: ## check proofs/ with Coq, and what each theorem rests on
	@command -v coqc >/dev/null || { echo "Coq is not installed. On Debian: apt-get install" \
		"coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-interval" >&2; exit 1; }
	cd proofs && coq_makefile -f _CoqProject -o CoqMakefile && $(MAKE) --no-print-directory -f CoqMakefile -j 2
	$(PYTHON) proofs/check.py

# Needs the network; the extras that are built for some Pythons only stay out.
resolve: env ## check that every Python has a lowest and a highest set of dependencies
	$(BIN)/python -m pip install --quiet uv
	for python in 3.10 3.11 3.12 3.13 3.14; do for system in linux macos; do \
	for kind in lowest-direct highest; do echo "$$python $$system $$kind"; \
		$(BIN)/uv pip compile --quiet --resolution $$kind --only-binary :all: --python-version $$python \
			--python-platform $$system --extra all --extra dev pyproject.toml >/dev/null || exit 1; \
	done; done; done

test-slow: env ## the long statistical runs (1e8 draws a sampler), random examples, and all mutants
	$(BIN)/python -m pytest -n auto -m slow
	$(BIN)/python -m pytest -n auto -m 'hypothesis and not slow' --hypothesis-profile=random

mutants: env ## one-line mistakes in the library, each of which its tests must notice
	$(BIN)/python tests/mutants/run.py

bench: env ## speed and accuracy, beside our peers
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/samplers.py
	$(BIN)/python bench/matrix_noise.py
	$(BIN)/python bench/purify.py
	$(BIN)/python bench/paper.py
	$(BIN)/python bench/study.py
	$(BIN)/python bench/tasks.py
	$(BIN)/python bench/tasks_forecasts.py
	$(BIN)/python bench/defaults_classifiers.py
	$(BIN)/python bench/tables_classifiers.py
	$(BIN)/python bench/defaults.py
	$(BIN)/python bench/purify_your_own.py
	$(BIN)/python bench/audit.py
	$(BIN)/python bench/peers_attacks.py
	$(BIN)/python bench/mixing_time.py
	$(BIN)/python bench/ledger.py

reproduce: env ## the paper, measured again (half an hour; QUICK=1: two minutes; KEEP=1: the site shows it)
	$(BIN)/python -m reproduce $(if $(QUICK),--quick) $(if $(KEEP),--keep .)

architecture: env ## trace calls through the files, and write the rooms of docs/architecture.md again
	$(BIN)/python bench/architecture.py

clean: ## remove what the targets above made
	rm -rf .venv .venv-lowest .venv-bridges dist site screenshots gallery-output .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
	cd proofs && rm -f CoqMakefile* .CoqMakefile* .*.aux .*.cache *.glob *.vo *.vok *.vos
