PYTHON3 ?= python3
VENV ?= .venv
PYTHON := $(VENV)/bin/python
PIP := $(PYTHON) -m pip --disable-pip-version-check
SOURCES := pyproject.toml meson.build README.md LICENSE $(wildcard licenses/*) \
	$(shell find src -name __pycache__ -prune -o -print)

# What `make sanitize` adds to the build. Unoptimised, the kernels compile in less than half the time, and
# the tests, which mostly draw random arguments, take no longer.
SANITIZE := -C setup-args=-Dbuildtype=debug \
	-C setup-args=-Db_sanitize=address,undefined -C setup-args=-Db_lundef=false \
	-C 'setup-args=-Dc_args=-fno-sanitize-recover=all -g1'

.PHONY: help demo environment test test-optimised oldest-environment test-oldest test-oldest-part coverage attack lint docs \
	bench bench-report page page-check sanitize-build sanitize wheel-check clean
.DELETE_ON_ERROR:

## help: list the targets
help:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | expand -t 18

## demo: install into .venv, draw a tree and a page, compare with CART; takes one to two minutes
demo: $(VENV)/package $(VENV)/demo.extra
	$(PYTHON) examples/demo.py

# Spark is large, and needs Java: it is tested where that is.
SPARK := $(if $(shell command -v java),$(VENV)/spark.extra)

# Workers take tests in the order of their files, and from each other's ends, so that none is idle.
TEST = $(PYTHON) -m pytest -n auto --dist worksteal

## test: all tests, doctests included
test: $(VENV)/package $(VENV)/test.extra $(SPARK) $(VENV)/shapetree-bench
	$(TEST) --durations=25 --pyargs shapetree tests bench/tests

## test-optimised: some tests without assertions, as under python -O
# The tests of what runs on rows in parts, as Python runs it without assertions. pytest keeps those of
# the tests themselves.
test-optimised: $(VENV)/package $(VENV)/test.extra
	$(PYTHON) -O -m pytest -n auto --dist worksteal -q -W ignore::pytest.PytestConfigWarning tests/test_dask.py tests/test_files.py \
		tests/test_joined_rows.py tests/test_parts.py tests/test_targets.py tests/test_pair_search.py

## test-oldest: the tests with the oldest versions that are allowed; needs Python 3.11
# Warnings are no errors there: old versions warn of what has changed since.
TEST_OLDEST = .venv-oldest/bin/python -m pytest -n auto --dist worksteal -q -W default

test-oldest: oldest-environment
	$(TEST_OLDEST) --pyargs shapetree tests

## test-oldest-part: of these, the tests of what differs most between versions of other packages
# Tables and their columns, numbers of any size, files, the command, pictures, ONNX and Dask.
test-oldest-part: oldest-environment
	$(TEST_OLDEST) $(patsubst %,tests/test_%.py,bad_input cli cli_folders cli_formats corners dask dates export_onnx \
		files kinds naming odd_columns parts plot rows_to_predict table targets)

oldest-environment: .venv-oldest/package

.venv-oldest/package: $(VENV)/wheel
	$(PYTHON3) -m venv --clear .venv-oldest
	$(PYTHON) tools/requirements.py test --oldest | xargs .venv-oldest/bin/python -m pip install -q
	.venv-oldest/bin/python -m pip install -q --no-deps $(VENV)/dist/*.whl
	touch $@

## coverage: the share of the Python lines that tests run; less than 95 % is an error
coverage: $(VENV)/package $(VENV)/test.extra $(VENV)/coverage.extra
	$(TEST) -q --cov --cov-report=term:skip-covered --pyargs shapetree tests

## attack: random trees, spoilt model files and properties, by the thousand and by chance
# Tests try the first few of these, the same ones in every run. Each failure says how to repeat it: a tree
# by its seed, a property by a line to put above the test; that example also comes first in the next run.
attack: $(VENV)/package $(VENV)/test.extra
	ATTACK=0:5000 MUTANTS=20000 $(TEST) -q tests/test_attack.py tests/test_model_mutations.py
	EXAMPLES=20 FUZZ=500 $(TEST) -q -m "hypothesis or by_chance" tests

## environment: install all that test, lint and docs need into .venv
environment: $(VENV)/package $(VENV)/test.extra $(SPARK) $(VENV)/shapetree-bench $(VENV)/lint.extra \
	$(VENV)/docs.extra page/node_modules

## lint: ruff, mypy and cython-lint
lint: $(VENV)/test.extra $(VENV)/lint.extra
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	PATH="$(VENV)/bin:$$PATH" cython-lint src

## docs: the documentation, into build/docs/html; warnings are errors, and examples are run
docs: $(VENV)/package $(VENV)/docs.extra
	PATH="$(VENV)/bin:$$PATH" $(PYTHON) -m sphinx -q -W --keep-going -b html -d build/docs/doctrees docs build/docs/html
	@echo "open build/docs/html/index.html"

## bench: speed, as ratios to scikit-learn, LightGBM and sgtlearn
bench: $(VENV)/package $(VENV)/bench.extra
	$(PYTHON) -m asv_bench.ratios

## bench-report: docs/benchmark and the tables from bench/results
# What is made from the results that are kept with the code; the tests see that they agree.
bench-report: $(VENV)/package $(VENV)/shapetree-bench
	$(VENV)/bin/shapetree-bench report bench/results --out docs/benchmark
	$(VENV)/bin/shapetree-bench readme bench/results

## page: rebuild the page that export_html fills (needs Node.js)
# The page that `export_html` fills; its parts come from npm, its build is kept with the package.
page: page/node_modules
	cd page && npm run --silent build

## page-check: lint the page's sources; check that the page kept with the package is up to date
page-check: page/node_modules
	cd page && npm run --silent lint && npm run --silent check-format
	mkdir -p build/page
	cd page && node build.mjs ../build/page/page.html && node build-module.mjs ../build/page/module.js
	cmp build/page/page.html src/shapetree/export/page.html
	cmp build/page/module.js src/shapetree/export/module.js

page/node_modules: page/package-lock.json
	cd page && npm ci --silent
	touch $@

# A build with address and undefined-behaviour sanitizers.
sanitize-build:
	$(MAKE) VENV=.venv-sanitize BUILD_FLAGS="$(SANITIZE)" .venv-sanitize/package .venv-sanitize/fuzz.extra

## sanitize: fuzz tests on a build with address and undefined-behaviour sanitizers
sanitize: sanitize-build
	FUZZ=150 ATTACK=0:20 LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	.venv-sanitize/bin/python -m pytest -n auto --max-worker-restart 0 -s tests/test_fuzz.py tests/test_attack.py

## wheel-check: build a wheel, check what it holds, and try it in an environment of its own
wheel-check: $(VENV)/wheel
	$(PYTHON) tools/check_wheel.py $(VENV)/dist/*.whl
	$(PYTHON3) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip --disable-pip-version-check install -q $(VENV)/dist/*.whl
	.venv-wheel/bin/python -I tools/fit_predict.py

## clean: remove all that these targets make
clean:
	rm -rf .venv .venv-sanitize .venv-wheel .venv-oldest build dist .coverage* .mesonpy-* page/node_modules \
		docs/generated docs/gallery docs/api/generated

$(PYTHON):
	$(PYTHON3) -m venv --upgrade-deps $(VENV)

# The package, built in isolation from nothing but its sources.
$(VENV)/wheel: $(SOURCES) | $(PYTHON)
	rm -rf $(VENV)/dist
	$(PIP) wheel -q --no-deps $(BUILD_FLAGS) -w $(VENV)/dist .
	touch $@

$(VENV)/package: $(VENV)/wheel
	$(PIP) install -q --force-reinstall --no-deps $(VENV)/dist/*.whl
	$(PIP) install -q $(VENV)/dist/*.whl
	touch $@

# The benchmark beside it, without the peers, which are extras.
$(VENV)/shapetree-bench: bench/pyproject.toml $(VENV)/package
	$(PIP) install -q -e bench
	touch $@

# The requirements of the package and of one extra, without building the package.
$(VENV)/%.extra: pyproject.toml | $(PYTHON)
	$(PYTHON) tools/requirements.py $* | xargs $(PIP) install -q
	touch $@
