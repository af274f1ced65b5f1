# Two commands do everything: `make bench` measures, `make test` tests. Both create what they need.
# PYTHON=… chooses the interpreter (3.11 or newer); otherwise the first suitable one is taken.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
BIN := .venv/bin

.PHONY: help setup setup-dev bench test test-historic lint docs perf clean

help:
	@echo "make bench   compare the headline systems on this machine (under 8 minutes on 2 cores)"
	@echo "make test    lint, types and all tests except those of old frameworks"
	@echo "make test-historic   old frameworks, in the old interpreters (3.6 to 3.10) this machine has"
	@echo "make setup   only create .venv with rnnbench in it"
	@echo "make setup-dev   the same, with what tests, lint and docs need"
	@echo "make docs    the documentation as a site in site/, built strictly: a broken link is an error"
	@echo "make perf    how fast the tool itself is"
	@echo "make clean   remove .venv (environments stay in the cache: rnnbench env list)"

setup: .venv/.ready
setup-dev: .venv/.dev

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.venv/.ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "rnnbench needs Python 3.11 or newer; give it as make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(INSTALL) .
	@touch $@

# What only tests, lint and docs need takes longer to install than rnnbench itself.
.venv/.dev: .venv/.ready
	$(INSTALL) '.[dev]'
	@touch $@

bench: setup
	$(BIN)/rnnbench run --headline --effort quick

# One process for each core, or launches fail whose time is checked. In which order files begin is in tests/conftest.py.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
MARKED ?= not historic
test: lint
	$(PYTEST) -m "$(MARKED)"

test-historic: setup-dev
	$(PYTEST) -m historic

# A benchmark that imports torch runs in the PyTorch environment, which mypy does not see.
lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(shell grep -LE '^ *(import|from) torch\b' benchmarks/*.py)

docs: setup-dev
	$(BIN)/zensical build --clean --strict

perf: setup-dev
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/overhead.py

clean:
	rm -rf .venv site
