# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FLOORS := .venv-floors
TORCH := .venv-torch

# One BLAS thread per process: tests and benchmarks run several processes.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# The tools that build the package come from the lock, too.
export PIP_CONSTRAINT := $(abspath requirements/lock.txt)
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes: what one has compiled, the next need not.
unexport PYTHONDONTWRITEBYTECODE
# The paper's data sets, where they lie beside the checkout.
ifneq ($(wildcard ../shared/data),)
export PROBGAP_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo docs test test-torch test-browser lint types contracts unit coverage slow floors peers reproduce docs-reproduction reading figures dist lock clean

help:
	@echo "make demo    set up, hide labels of a real data set, win them back (offline, under two minutes)"
	@echo "make test    set up, then lint, types, import contracts and tests"
	@echo "make docs    the documentation, every block of code run, into docs/_build/html (a minute)"
	@echo "make test-torch  exact kernels by torch on the processor, in an environment of its own"
	@echo "make test-browser  the page of a fit in Chromium, where there is one"
	@echo "make coverage  all tests, with the lines that they reach"
	@echo "make slow    the slow tests: theory at growing n, the full accuracy table"
	@echo "make floors  the tests at the oldest supported versions"
	@echo "make peers   the methods against other people's code"
	@echo "make reproduce  the paper's experiments, resumed where they stopped (an hour on two cores)"
	@echo "make reading    simulate tasks and fit the network of the default (an hour)"
	@echo "make dist    wheel and sdist, checked, and tried in environments of their own"
	@echo "make figures | lock | clean"

# The stamp is younger than what it was made from; installing again is left out until then.
$(VENV)/.core: pyproject.toml requirements/lock.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed; say make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e '.[tool]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

demo: $(VENV)/.core
	$(BIN)/probgap demo --out probgap-demo --force

test: lint types contracts unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

# Counting lines makes tests take nearly twice as long (on Python 3.11): it is done where
# every branch of the stages must be reached, and for all of the package by make coverage.
# A file's tests run in one process, where they share what was fitted once.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
STAGES := tests/reweight $(addprefix tests/test_,boundary.py device.py gap.py relabel.py) \
  tests/pgpu/test_html.py tests/dask/test_classifier.py

unit: $(VENV)/.dev
	$(PYTEST) $(addprefix --ignore=,$(STAGES))
	$(PYTEST) --cov --cov-config=tests/stages.toml --cov-report=term $(STAGES)

coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report=term

# torch comes without CUDA from the index that pip has; it stays out of the other environment.
$(TORCH)/.torch: pyproject.toml requirements/lock.txt
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet -e '.[test]' torch==2.13.0
	touch $@

test-torch: $(TORCH)/.torch
	$(TORCH)/bin/python -m pytest tests/torch research/tests/test_train.py --cov --cov-config=tests/torch/coverage.toml --cov-report=term

$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e '.[dev,browser]'
	touch $@

# Chromium is the system's own: installed where we may, and where there is none the tests say so.
test-browser: $(VENV)/.browser
	@command -v chromium > /dev/null || test -n "$$PROBGAP_CHROMIUM" \
	  || { test "$$(id -u)" = 0 && apt-get install -y -qq chromium; } || true
	$(BIN)/python -m pytest -rs tests/browser

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m slow

floors: requirements/floors.txt
	$(PYTHON) -m venv $(FLOORS)
	PIP_CONSTRAINT=requirements/floors.txt $(FLOORS)/bin/python -m pip install --quiet -e '.[dask,test]'
	$(FLOORS)/bin/python -m pytest -n 2 -p no:cacheprovider

peers: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	PIP_CONSTRAINT= .venv-peers/bin/python -m pip install --quiet -e '.[test,peers]'
	.venv-peers/bin/python -m pytest -p no:cacheprovider tests/methods/test_peers.py tests/audit/test_audit.py

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -e '.[tool,dask,docs]'
	touch $@

# From nothing, so that what the pages show is what the code does now.
docs: $(VENV)/.docs
	rm -rf docs/_build docs/api docs/gallery docs/layers.md
	$(BIN)/sphinx-build -W --keep-going --jobs 2 --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"

reproduce: $(VENV)/.dev
	$(BIN)/python -m research.paper --out reproduction --resume

# Keep the rows of a full run, and the page and figures made of them, in the repository.
# Other rows: make docs-reproduction ROWS=other.jsonl
ROWS ?= reproduction/rows.jsonl
docs-reproduction: $(VENV)/.dev
	$(BIN)/python -m research.paper --report $(ROWS) --out docs/reproduction --keep

# The network that reads boundary and count off scores: simulate tasks, then fit it. The
# package holds the result; an hour on two cores.
reading: $(TORCH)/.torch
	mkdir -p build
	$(TORCH)/bin/python -m research.reading.train tasks --jobs 2 --out build/tasks.npz
	$(TORCH)/bin/python -m research.reading.train fit build/tasks.npz --out src/probgap/reading/weights.npz

figures: $(VENV)/.dev
	$(BIN)/python examples/figure_three_panels.py

$(VENV)/.dist: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -e '.[dist]'
	touch $@

# The wheel is built from the sdist, so that both hold what a build needs.
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist

lock: pyproject.toml
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv
	.venv-lock/bin/uv pip compile pyproject.toml --extra dev --extra docs --extra browser --extra dist --universal --python-version 3.11 --no-header --no-annotate --upgrade --output-file requirements/lock.txt
	rm -rf .venv-lock

clean:
	rm -rf probgap-demo $(VENV) $(FLOORS) $(TORCH) .venv-lock .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* dist docs/_build docs/api docs/gallery docs/layers.md
