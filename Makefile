# optimizer-zoo: `make help` lists what there is. Everything is set up in .venv on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# torch first and by itself: the pin keeps a plain `torch` from pulling another build.
TORCH := torch==2.13.0

.DEFAULT_GOAL := help
.PHONY: help setup race test test-slow lint format docs bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt setuptools wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt \
		--no-build-isolation --editable '.[race,dev]'
	@touch $(READY)

setup: $(READY)  ## install everything into .venv

race: $(READY)  ## train a small network with several optimizers; table and picture in race/
	$(BIN)/zoo race adam adamw lion sgd

test: lint  ## lint, types and the test-suite
	$(BIN)/python -m pytest -q

test-slow: $(READY)  ## the long tests: compiled kernels, long trainings
	$(BIN)/python -m pytest -q -m slow

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## let ruff format and fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

bench: $(READY)  ## measure speed and memory; table, JSON and charts in benchmarks/results/
	$(BIN)/python -m benchmarks --memory

clean:  ## remove the environment and what was built
	rm -rf $(VENV) build dist *.egg-info race benchmarks/results .pytest_cache .mypy_cache .ruff_cache
