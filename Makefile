# The commands of README.md. Each runs setup first if needed.
SHELL := /bin/bash
PYTHON ?= python3
PORT ?= 5000
# An empty value, as in PYTHON="$UNSET", means the default.
ifeq ($(strip $(PYTHON)),)
override PYTHON := python3
endif
ifeq ($(strip $(PORT)),)
override PORT := 5000
endif
RECIPES = $(notdir $(basename $(wildcard recipes/*.yaml)))
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := 1
# for a user without a name or a folder to write to, as in `docker run -u`
export USER ?= $(shell id -u)
ifeq ($(HOME),)
export HOME := $(CURDIR)/work/home
endif
ifneq ($(shell test -w "$(HOME)" && echo yes),yes)
export XDG_CACHE_HOME ?= $(CURDIR)/work/cache
endif
# the tests and the pipeline start hundreds of processes, which would compile all modules again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup reproduce table test test-fast test-slow test-long test-cluster debian lint ui recipe docs

help:
	@echo "make reproduce     run the experiment in params.yaml, print its table"
	@echo "make table         print its table once more"
	@echo "make recipe NAME=  put recipes/NAME.yaml in place of params.yaml"
	@echo "make ui            compare the trainings in MLflow"
	@echo "make docs          the manual as a site, work/site/index.html"
	@echo "make test          the tests"
	@echo "make test-fast     the unit tests, in about two minutes; for one package: TESTS=tests/scoring"
	@echo "make test-slow     tests of browser pages, documents, variants and whole corpora"
	@echo "make test-long     the longest: faults and kills at many moments"
	@echo "make test-cluster  tests on a real SLURM, on several hosts, with a real S3 server"
	@echo "make debian        Chromium, SLURM, QEMU and LaTeX, for these tests; needs root"
	@echo "make lint          ruff, mypy, lint-imports, snakemake --lint, snakefmt"
	@echo "make setup         make .venv; the others run it if needed"

# in a project that was moved, the commands in .venv name a Python that is not there
ifneq ($(wildcard .venv/bin/bleuprint),)
ifeq ($(wildcard $(shell head -n 1 .venv/bin/bleuprint | cut -c 3-)),)
MOVED := .venv
.PHONY: .venv/.ready
endif
endif

setup: .venv/.ready

.venv/.ready: constraints.txt pyproject.toml $(wildcard setup.py) $(wildcard src/bleuprint/native/*.cpp)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "bleuprint needs Python 3.11 or newer: make setup PYTHON=python3.11"; exit 1; }
	@rm -rf $(MOVED)
	@echo "making .venv, in about two minutes"
	@# sleep must not hold a pipe open that this writes to
	@while sleep 5 &> /dev/null; do \
	  if mb=$$({ du -sm .venv | cut -f1; } 2> /dev/null) && [ "$${mb:-0}" -ge 100 ]; \
	  then echo ".venv: $$mb MB of some 3,000 unpacked after $$SECONDS s (with CUDA 7,000)"; \
	  else echo ".venv: $$SECONDS s, downloading packages, of which some 3,000 MB will be unpacked"; fi; \
	done & trap "kill $$!" EXIT; \
	if command -v uv > /dev/null; then \
	  uv venv --quiet --seed --allow-existing --python "$$(command -v $(PYTHON))" .venv && \
	  uv pip install --quiet --compile-bytecode --python .venv/bin/python -c constraints.txt -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv .venv && \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@# a full disk cuts compiled modules that are written later
	@.venv/bin/python -m compileall -q src stages
	@# pip says nothing of a compiler that is missing or fails
	@.venv/bin/python -m bleuprint.native
	@touch .venv/.ready

reproduce: setup
	@bleuprint reproduce

table: setup
	@bleuprint table

# one worker more than cores, since many tests wait for the processes they start
test: setup
	python -m pytest -n "$$(($$(nproc) + 1))" --maxprocesses 4 --dist loadfile --no-loadscope-reorder

TESTS = tests tools
FAST = not processes and not slow and not long and not cluster and not gpu
# one thread each, since the workers keep the cores busy
test-fast: setup
	OMP_NUM_THREADS=1 python -m pytest -m "$(FAST)" -n "$$(($$(nproc) + 1))" --maxprocesses 4 --dist loadfile $(TESTS)

test-slow: setup
	python -m pytest -m slow -n "$$(($$(nproc) + 1))" --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-long: setup
	python -m pytest -m long -n logical --maxprocesses 4

test-cluster: setup
	python -m pytest -m cluster -n 4 --dist loadfile --no-loadscope-reorder

# browser, cluster, QEMU and LaTeX tests are skipped without these programs
DEBIAN = chromium chromium-driver slurmctld slurmd slurm-client munge iproute2 qemu-user g++ \
  texlive-latex-base util-linux
debian:
	@if dpkg-query -W $(DEBIAN) > /dev/null 2>&1; then :; \
	elif ! command -v apt-get > /dev/null || [ "$$(id -u)" != 0 ]; then \
	  echo "no root or no apt-get: tests that need $(DEBIAN) will be skipped"; \
	else \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq --no-install-recommends $(DEBIAN) > /dev/null \
	  || echo "could not install $(DEBIAN): tests that need them will be skipped"; \
	fi

lint: setup
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-cache
	snakefmt --check Snakefile
	snakemake --lint

# from docs/ and README.md, without a network; a broken link is an error
docs: setup
	sphinx-build -q --fail-on-warning --keep-going -c docs -d work/doctrees . work/site
	@echo "open $(CURDIR)/work/site/index.html"

ui: setup
	@bleuprint ui --port $(PORT)

recipe:
	@test -n "$(strip $(NAME))" || { echo "make recipe NAME=...: one of $(RECIPES)"; exit 2; }
	@test -f "recipes/$(NAME).yaml" || { echo "no recipe $(NAME); there are: $(RECIPES)"; \
	  $(PYTHON) -c 'import difflib, sys; [print(f"did you mean {name}?") for name in \
	  difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1)]' "$(NAME)" $(RECIPES); exit 2; }
	@# a params.yaml that equals no recipe has been edited
	@test -e params.yaml || exit 0; for recipe in recipes/*.yaml; do cmp -s params.yaml $$recipe && exit; done; \
	  cp --backup=numbered params.yaml params.yaml.before && echo "params.yaml is kept as params.yaml.before"
	cp "recipes/$(NAME).yaml" params.yaml
