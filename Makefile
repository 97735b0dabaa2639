# Everything runs in the project's own .venv; nothing needs a network beyond the package index.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.installed

.PHONY: help demo test check bench lab format lint types imports clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
ifneq ($(UV),)
	test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[test,postgres]'
else
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,postgres]'
endif
	touch $@

demo: $(STAMP) ## run the whole product offline, with a bundled tool server and the demo model
	$(BIN)/pizzabot demo --home .demo

test: $(STAMP) ## all tests that this machine can run
	$(BIN)/python -m pytest

check: $(STAMP) lint types imports test ## what CI runs: format, lint, types, import rules, tests

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(STAMP) ## put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(STAMP)
	$(BIN)/mypy pizzabot adapters tests

imports: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP) ## benchmarks, as tables with ratios
	$(BIN)/python -m tests.bench

lab: $(STAMP) ## the long forms of the kill -9 labs and of the mail fuzzer (minutes); tests run short ones
	$(BIN)/python -m tests.lab.kill --rounds 60
	$(BIN)/python -m tests.lab.ticks --rounds 100
	$(BIN)/python -m tests.lab.fuzz_mail

clean: ## remove what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .demo
