PYTHON ?= python3
WORKERS ?= 2

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Neighbours stay in one worker, which then sets up what they share once. Tests start many
# processes: bytecode is kept even where the environment says otherwise.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The stamps make pip run again only when what it would install has changed.
RUNTIME := .venv/.runtime-installed
DEV := .venv/.dev-installed

.PHONY: help demo test test-all lint types docs bench ci clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(RUNTIME)  ## what one-bit weights can do: a table, a picture, the next command
	$(BIN)/vitrail demo

test: $(DEV)  ## the fast tests
	$(PYTEST)

PARTS := clang nodejs gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc-avr avr-libc simavr time

test-all: $(DEV)  ## the long tests too, with fresh examples; what was skipped, and why, comes last
	@echo "exports are tested with real parts where they are installed; Debian has them all:"
	@echo "apt install $(PARTS)"
	$(PYTEST) -m "" -rs --hypothesis-profile fresh

lint: $(DEV)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)  ## pyright
	$(BIN)/pyright

docs: $(DEV)  ## the documentation, strictly, into site/
	$(BIN)/mkdocs build --strict

bench: $(RUNTIME)  ## time every update against the paper's formulation
	$(BIN)/vitrail bench

ci: ## everything that must hold before a merge
	.ci/run

clean:  ## remove what was built, keep .venv
	rm -rf build dist site .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

$(RUNTIME): pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing vitrail into .venv (once; a few minutes)"
	$(PIP) -e '.[lab]'
	@touch $@

$(DEV): pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing vitrail and its development tools into .venv (once; a few minutes)"
	$(PIP) -e '.[dev]'
	@touch $@ $(RUNTIME)
