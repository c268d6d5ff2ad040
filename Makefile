PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice the cores of a small machine: tests often wait for a process or a browser.
# Each file stays with one worker.
WORKERS ?= 4
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Each of the thousand programs that the tests start would compile all of its source.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
	--extra postgres --extra s3 --group build $(if $(UPGRADE),--upgrade)

.DEFAULT_GOAL := help
.PHONY: help setup llm demo test test-fast check bench campaign fuzz mutants screenshots lock release accept clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The backend comes from the lock, so the project is installed without build isolation:
# nothing unpinned is fetched.
# Modules are compiled when they are first imported: most of the 17,000 never are.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --no-compile --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@touch $@

setup: $(VENV)/.dev ## install everything that development needs
	@scripts/test-deps

$(VENV)/.llm: requirements-llm.lock $(VENV)/.runtime
	$(PIP) install --require-hashes -r requirements-llm.lock
	@touch $@

llm: $(VENV)/.llm ## install what a model without a program of its own needs, such as Ollama's

demo: $(VENV)/.runtime ## install and show a company at work
	@$(BIN)/remit demo

.PHONY: live
live: $(VENV)/.runtime ## the same, and open for a look in the browser until Ctrl-C
	@exec $(BIN)/remit demo --serve

test: setup ## run the tests
	$(PYTEST)

test-fast: $(VENV)/.dev ## run the quick ones: SQLite, no browser, no programs
	$(PYTEST) --fast

check: setup ## commit subjects, format, lint, types, tests: what has to pass before a commit
	@scripts/commit-subjects
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# The types are checked beside the tests, which leave a core idle now and then.
	$(BIN)/mypy & types=$$!; $(PYTEST); tests=$$?; wait $$types && exit $$tests

bench: $(VENV)/.dev ## measure
	$(BIN)/python -m benchmarks

mutants: setup ## change the code where it carries a promise, and expect a test to notice
	$(BIN)/python -m tests.mutants --workers $(WORKERS)

fuzz: setup ## send all that /openapi.json allows and forbids, as board, agent and nobody
	$(PYTEST) --campaign tests/test_description.py -rP

SEEDS ?= 1-1000
STEPS ?= 1000
campaign: mutants ## the mutants, the tests that take too long, then random companies (SEEDS=1-1000 STEPS=1000)
	$(PYTEST) --campaign
	$(BIN)/remit simulate --seeds $(SEEDS) --steps $(STEPS)

screenshots: setup ## take pictures of every page of the dashboard
	$(BIN)/python scripts/screenshots.py

lock: $(VENV)/.dev ## pin the dependencies again (UPGRADE=1 takes newer versions)
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) --extra llm --constraint requirements.lock --output-file requirements-llm.lock
	$(COMPILE) --extra llm --extra email --extra slack --extra telegram --group dev --constraint requirements-llm.lock --output-file requirements-dev.lock

release: $(VENV)/.dev ## build a release into dist/, compare it, install it and play it
	$(BIN)/python -m tests.releasing release

accept: setup ## release, and all other heavy checks; the result goes to docs/acceptance.md
	$(BIN)/python -m tests.releasing accept

clean: ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .schemathesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
