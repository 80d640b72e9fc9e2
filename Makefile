# Each target does its own set-up: a virtual environment, a build, an install. Repeated, it does
# only what has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(shell find native -type f)

.PHONY: demo demo-spark dev test test-arm crash check docs bench figures papers wheel format clean java chromium aarch64 FORCE
.DELETE_ON_ERROR:

demo: $(VENV)/package
	@$(BIN)/lookalike demo

# Everything that changing the package takes: the environment, the compiled core, the tools of check and test.
dev: $(VENV)/package $(VENV)/test $(VENV)/check java chromium
	@echo "ready: run '. $(BIN)/activate', then lookalike, pytest, ruff or mypy"

# A master and two workers on loopback, the demo's corpus in several files, and the local job beside it.
demo-spark: $(VENV)/package $(VENV)/spark java
	@$(BIN)/python tools/demo_spark.py

# Those in a browser and on Spark come last and by themselves: Playwright has an event loop of its own, and
# the workers of Spark are processes that take all cores.
test: $(VENV)/package $(VENV)/test java chromium
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/spark --ignore tests/page
	$(BIN)/python -m pytest -rs tests/page tests/spark

# Kills writers, damages databases and every byte of files, lets system calls fail, uses ids again and
# de-duplicates chains, hubs and templates, by the thousand: docs/trust.md. `make test` does a share.
# Then all property tests, with random seeds and EXPLORE times as many examples as `make test` draws.
# And on Spark, 100,000 variants of one template.
EXPLORE ?= 4
crash: $(VENV)/package $(VENV)/test java
	LOOKALIKE_CRASHES=1000 LOOKALIKE_DAMAGES=2000 LOOKALIKE_CHANGES=every LOOKALIKE_FAULTS=every \
		LOOKALIKE_STATES=2000 LOOKALIKE_CASES=1400 LOOKALIKE_DAMAGE=all LOOKALIKE_EXPLORE=1 \
		$(BIN)/python -m pytest -n auto --dist worksteal -rsP tests/collection/test_crashes.py \
		tests/crash tests/indexes/slices/test_slice_states.py tests/dedup/test_guarantee.py \
		tests/dedup/test_damaged_work.py tests/corpora/test_s3.py
	LOOKALIKE_EXPLORE=$(EXPLORE) $(BIN)/python -m pytest -n auto --dist worksteal -m hypothesis \
		--ignore tests/spark --ignore tests/page
	LOOKALIKE_HOSTILE=all $(BIN)/python -m pytest -s -rs tests/service/test_service_hostile.py \
		tests/service/test_service_abandoned.py
	LOOKALIKE_VARIANTS=100000 \
		$(BIN)/python -m pytest -s -rs tests/spark/test_spark_dedup.py::test_skewed_input

# Builds the core for aarch64 and tests kernels, signers, golden signatures and indexes under qemu-user.
test-arm: $(VENV)/build aarch64
	$(BIN)/python tools/test_arm.py

check: $(VENV)/package $(VENV)/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(filter %pp,$(NATIVE)) papers/*.cpp
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell *.md docs benchmarks examples native papers src tools
	$(BIN)/python tools/check_style.py
	$(BIN)/python tools/make_docs.py

# The documentation site, in build/site.
docs: $(VENV)/package $(VENV)/docs
	$(BIN)/python tools/make_docs.py

bench: $(VENV)/package $(VENV)/bench java
	$(BIN)/python -m benchmarks

# Writes what `make bench` measured into README.md and docs.
figures: $(VENV)/package
	$(BIN)/python -m benchmarks.figures

# SCALE=paper for the papers' own sizes; LOOKALIKE_DATA names the folder with the texts.
papers: $(VENV)/package $(VENV)/papers
	$(BIN)/python -m papers

# For each Python that is there, from 3.11 on: built, repaired for manylinux, tried in a new environment.
wheel: $(VENV)/build $(VENV)/wheel
	$(BIN)/python tools/make_wheels.py

format: $(VENV)/check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter %pp,$(NATIVE)) papers/*.cpp

# What Spark runs on, where it is not there and may be installed; else its tests and demo say how.
java:
	@if ! command -v java >/dev/null && [ -z "$$JAVA_HOME" ] && [ "$$(id -u)" = 0 ] \
		&& command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends \
			openjdk-17-jre-headless || true; fi

# What the page of the service is looked at with, likewise.
chromium:
	@if ! command -v chromium >/dev/null && [ -z "$$LOOKALIKE_CHROMIUM" ] && [ "$$(id -u)" = 0 ] \
		&& command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium || true; fi

# The cross-compiler and the emulator of `make test-arm`, likewise.
aarch64:
	@if ! { command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64; } >/dev/null \
		&& [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends \
			g++-aarch64-linux-gnu qemu-user || true; fi

clean:
	rm -rf $(VENV) build

# The stamps below are files in the environment, so that removing it removes them too.

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/build: pyproject.toml | $(VENV)/python
	$(BIN)/python -m pip install --quiet --group build
	@touch $@

# An editable install knows the paths of the modules, so one that was moved needs a new install.
$(VENV)/modules: FORCE | $(VENV)/python
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort > $@

$(VENV)/package: $(VENV)/build $(VENV)/modules $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	@touch $@

$(VENV)/test $(VENV)/check $(VENV)/docs $(VENV)/wheel $(VENV)/bench: pyproject.toml | $(VENV)/python
	$(BIN)/python -m pip install --quiet --group $(notdir $@)
	@touch $@

$(VENV)/papers: $(VENV)/package
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[plot,stem]'
	@touch $@

$(VENV)/spark: $(VENV)/package
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[spark]'
	@touch $@
