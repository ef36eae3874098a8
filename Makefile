# Every target makes .venv by itself; the only thing that must be there is Python 3.11, 3.12 or 3.13.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check soak bench clean

help:  ## What there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo  ## The bank's support bot: killed, resumed, approved, cancelled, rolled back
	@$(BIN)/surestep demo

test: .venv/.dev  ## The tests, in random order
	$(BIN)/python -m pytest -m "not slow"

check: .venv/.dev  ## Lint, strict types, sizes
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/size

soak: .venv/.dev  ## The long runs of the tests too
	$(BIN)/python -m pytest

bench: .venv/.dev  ## A bank's day of dialogues, beside LangGraph
	@$(BIN)/python bench/bank_day

clean:  ## Throw .venv and the caches away
	rm -rf .venv .venv-packages .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# Stamps, newer than pyproject.toml once their packages are installed. The developer's packages include
# the demo's, so after `make test` the demo installs nothing.
.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
		|| { echo "surestep needs Python 3.11 to 3.13; say which: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv && touch $@

.venv/.demo: pyproject.toml | .venv/.python
	@echo "Installing what the demo needs into .venv"
	@$(PIP) -e '.[cli]' && touch $@

.venv/.dev: pyproject.toml | .venv/.python
	@echo "Installing the developer's tools into .venv"
	@$(PIP) -e '.[dev]' && touch .venv/.demo $@
