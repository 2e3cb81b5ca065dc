# Every target works on a fresh clone: what it needs is installed into .venv first.
#
#   make demo               a program is run, edited and run again; what is known is not computed again
#   make test               the tests, on the default Python; of Spark programs, on Sail, a small part
#   make test-quick         the part of the tests that tells most, in some three minutes
#   make test-wheel         the wheel in empty environments, installed without an index: programs are reused there
#   make test-sail          all tests of Spark programs, on Sail, in an environment of their own
#   make test-spark         the same on a Spark server (needs Java); make test-spark SPARK=4.2.0: on that version
#   make check              ruff, mypy, import-linter, deptry
#   make test-deep          the long tests too
#   make test-all-pythons   the tests on every supported Python that is installed here; TESTS=test-quick: that part
#   make test-other-pythons the quick part on every one of them but that of .venv
#   make bench              all benchmarks; make bench-fingerprint: one of them
#   make bench-spark-server the benchmark of Spark programs on a Spark server (needs Java)
#   make docs               the documentation as a web site, in site/
#   make clean              removes everything that make has made

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 3
MINORS ?= 11 12 13# as KNOWN_PYTHONS in src/nectar/keys/bytecode/operation.py
TESTS ?= test
# Fingerprints, which depend on the version of Python most; then a part of everything that a program meets.
QUICK := $(addprefix tests/,golden keys/bytecode keys/values keys/purity keys/test_*.py store catalog dialects/python \
	$(addprefix dialects/polars/test_,api.py engine.py content.py plan.py derived.py incremental.py regressions.py) \
	integration/test_exit.py test_session.py test_threads.py test_public_api.py)
TOPICS := fingerprint store memo sick overhead polars incremental derived service spark dask locality

comma := ,
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
SAIL_VENV ?= $(VENV)-sail
SAIL_READY := $(SAIL_VENV)/.ready
WHEELS := .cache/wheels/$(notdir $(VENV))
WHEELS_READY := $(WHEELS)/.ready
SPARK ?=
SPARK_VENV ?= .venv-spark$(addprefix -,$(SPARK))
SPARK_READY := $(SPARK_VENV)/.ready
# DuckDB's extension makes the tables and queries of TPC-DS.
TPCDS := duckdb duckdb-extension-tpcds
SPARK_NEEDS := -e . 'pyspark[connect]$(if $(SPARK),==$(SPARK),>=4.2$(comma)<4.4)' 'pandas<3' 'sqlglot>=30,<31' pytest hypothesis $(TPCDS)
SAIL_TESTS := pytest pytest-xdist hypothesis $(TPCDS)
BENCHES := $(foreach topic,$(TOPICS),$(if $(wildcard benchmarks/$(topic).py),bench-$(topic)))

# uv is used where it is already there; it is never installed. Of pip only errors are shown.
install = if command -v uv >/dev/null 2>&1; \
	then uv pip install --quiet --python $(BIN)/python -c constraints.txt $(1); \
	else $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt $(1); fi

# Tests and benchmarks start many processes; compiling everything anew in each would take most of their time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-quick test-wheel test-other-pythons test-sail-small test-sail test-spark test-spark-with-java test-deep test-all-pythons check format bench docs clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

venv: $(READY)

# pyproject.toml and constraints.txt say what belongs into the environment; the stamp says that it is there.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Nectar needs Python 3.11 or newer; say which one with make PYTHON=/path/to/python"; exit 1; }
	@echo "Setting up $(VENV) (once; a few minutes at most)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(call install,-e '.[dev]')
	@touch $@

$(DOCS_READY): $(READY)
	@$(call install,-e '.[docs]')
	@touch $@

# Sail wants older versions of pandas and PyArrow than the rest is tested with, so constraints.txt is not for it.
$(SAIL_READY): pyproject.toml
	@echo "Setting up $(SAIL_VENV) (once; a few minutes at most)"
	@test -x $(SAIL_VENV)/bin/python || $(PYTHON) -m venv $(SAIL_VENV)
	@if command -v uv >/dev/null 2>&1; \
		then uv pip install --quiet --python $(SAIL_VENV)/bin/python -e '.[sail]' $(SAIL_TESTS); \
		else $(SAIL_VENV)/bin/python -m pip install -qq --disable-pip-version-check -e '.[sail]' $(SAIL_TESTS); fi
	@touch $@

# The whole of Spark, server included: some 500 MB.
$(SPARK_READY): pyproject.toml
	@echo "Setting up $(SPARK_VENV) (once; some minutes)"
	@test -x $(SPARK_VENV)/bin/python || $(PYTHON) -m venv $(SPARK_VENV)
	@if command -v uv >/dev/null 2>&1; \
		then uv pip install --quiet --python $(SPARK_VENV)/bin/python $(SPARK_NEEDS); \
		else $(SPARK_VENV)/bin/python -m pip install -qq --disable-pip-version-check $(SPARK_NEEDS); fi
	@touch $@

demo: $(READY)
	@$(BIN)/nectar demo

test: $(READY)
	$(BIN)/python -m pytest -n $(JOBS)
	@$(MAKE) --no-print-directory test-sail-small

test-quick: $(READY)
	$(BIN)/python -m pytest -q -n $(JOBS) $(QUICK)

# What the wheel needs, and what builds it. The wheel itself is built anew by every test.
$(WHEELS_READY): $(READY)
	@echo "Getting wheels into $(WHEELS) (once)"
	@$(BIN)/python -m pip wheel -qq -c constraints.txt -w $(WHEELS) hatchling '.[polars]'
	@touch $@

test-wheel: $(WHEELS_READY)
	@rm -f $(WHEELS)/nectar_data-*
	@$(BIN)/python -m pip wheel -qq --no-index --find-links $(WHEELS) --no-deps -w $(WHEELS) .
	NECTAR_TEST_WHEELS=$(WHEELS) $(BIN)/python -m pytest -q tests/integration/test_wheel.py

# Sail has no wheels for some systems, and comes late to new versions of Python.
test-sail-small:
	@if $(MAKE) --silent --no-print-directory $(SAIL_READY); \
	then $(SAIL_VENV)/bin/python -m pytest -q -n $(JOBS) -m small tests/dialects/spark; \
	else echo "Left out: the tests of Spark programs, since Sail cannot be installed here"; fi

test-sail: $(SAIL_READY)
	$(SAIL_VENV)/bin/python -m pytest tests/dialects/spark tests/benchmarks/test_spark.py

test-spark:
	@if ! java -version >/dev/null 2>&1; then echo "Skipped: there is no Java, which Spark needs"; \
	else $(MAKE) --no-print-directory test-spark-with-java SPARK=$(SPARK); fi

test-spark-with-java: $(SPARK_READY)
	NECTAR_TEST_SPARK=spark $(SPARK_VENV)/bin/python -m pytest tests/dialects/spark

test-deep: $(READY)
	NECTAR_TEST_PROFILE=deep $(BIN)/python -m pytest -n $(JOBS) -m ""

# A python3.X on the PATH may be a shim that leads nowhere, so each candidate is asked for its version first.
test-all-pythons:
	@tested=""; failed=""; absent=""; \
	for minor in $(MINORS); do \
		absent="$$absent 3.$$minor"; \
		for candidate in "python3.$$minor" "$$HOME"/.pyenv/versions/3.$$minor.*/bin/python; do \
			"$$candidate" -c "import sys; sys.exit(sys.version_info[:2] != (3, $$minor))" 2>/dev/null || continue; \
			echo "== Python 3.$$minor"; \
			tested="$$tested 3.$$minor"; absent="$${absent% 3.$$minor}"; \
			$(MAKE) --no-print-directory $(TESTS) PYTHON="$$candidate" VENV=.venv-3.$$minor || failed="$$failed 3.$$minor"; \
			break; \
		done; \
	done; \
	echo "Not tested: Python 3.14 and newer, whose bytecode Nectar does not read yet"; \
	if test -n "$$absent"; then echo "Not found on the PATH or under ~/.pyenv/versions, so not tested:$$absent"; fi; \
	if test -n "$$failed"; then echo "Failed on:$$failed (tested:$$tested)"; exit 1; \
	elif test -n "$$tested"; then echo "Passed on:$$tested"; fi

test-other-pythons: $(READY)
	@this=$$($(BIN)/python -c 'import sys; print(sys.version_info[1])'); \
	others=$$(for minor in $(MINORS); do test $$minor = $$this || printf '%s ' $$minor; done); \
	$(MAKE) --no-print-directory test-all-pythons TESTS=test-quick MINORS="$$others"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCHES)

bench-%: $(READY)
	@test -f benchmarks/$*.py || { echo "There is no benchmark of $*; there are: $(BENCHES)"; exit 2; }
	@$(BIN)/python -P benchmarks/$*.py

# Its Spark programs run in Sail's environment, if that can be had.
bench-overhead: $(READY)
	@$(MAKE) --silent --no-print-directory $(SAIL_READY) || true
	@$(BIN)/python -P benchmarks/overhead.py --sail $(SAIL_VENV)/bin/python

bench-spark: $(SAIL_READY)
	@$(SAIL_VENV)/bin/python -P benchmarks/spark.py

bench-spark-server:
	@if ! java -version >/dev/null 2>&1; then echo "Skipped: there is no Java, which Spark needs"; \
	else $(MAKE) --no-print-directory $(SPARK_READY) && $(SPARK_VENV)/bin/python -P benchmarks/spark.py --engine spark; fi

docs: $(DOCS_READY)
	$(BIN)/zensical build --clean --config-file mkdocs.yml

clean:
	rm -rf .venv .venv-3.* .venv-sail .venv-spark* .cache site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
