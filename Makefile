# Every target sets up what it needs in .venv; a second call goes straight to the work.
# Stamp files under the environment say what is installed, and since when.

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
OLDEST := .venv-oldest
PIP_INSTALL = -m pip --disable-pip-version-check install --quiet
CPP := $(sort $(shell find cpp -name '*.hpp' -o -name '*.cpp' 2>/dev/null))
CORE := CMakeLists.txt pyproject.toml $(CPP)

.DEFAULT_GOAL := help
# Compiled modules and tests are kept, which saves half a minute of processor time in each run.
unexport PYTHONDONTWRITEBYTECODE
.NOTPARALLEL: # two pips must not write into one environment
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-interop test-spark test-oldest test-databases wheels coverage fuzz lint bench bench-commits docs sanitize format clean radius noisy structures pairs rules tables people missing short-rules

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.package ## Fit and report on example data
	$(VENV)/bin/kernelweave demo

test: $(VENV)/.package $(VENV)/.group-test ## Run the tests and the docstring examples
	$(VENV)/bin/python -m pytest -n auto -m "not slow and not databases" $(ARGS)

test-databases: $(VENV)/.package $(VENV)/.group-test ## Run exported SQL in PostgreSQL and MariaDB, where they are installed
	@{ ls /usr/lib/postgresql/*/bin/initdb && command -v mariadb-install-db; } >/dev/null 2>&1 || \
	echo "Some database is not installed, so its tests are skipped; on Debian: apt-get install postgresql mariadb-server"
	$(VENV)/bin/python -m pytest -m databases tests/rules $(ARGS)

test-all: $(VENV)/.package $(VENV)/.group-test ## Run all tests, the long ones too (ARGS="-m slow": only these)
	$(VENV)/bin/python -m pytest -n auto $(ARGS)

test-interop: $(VENV)/.package $(VENV)/.group-test $(VENV)/.group-interop ## Run exported models in onnxruntime
	$(VENV)/bin/python -m pytest tests/io/test_onnx.py $(ARGS)

test-spark: $(VENV)/.package $(VENV)/.group-test $(VENV)/.group-spark ## Score rows on a local Spark, which needs Java
	@command -v java >/dev/null || echo "Java is not installed, so the tests are skipped; on Debian: apt-get install default-jre-headless"
	$(VENV)/bin/python -m pytest tests/io/test_spark.py $(ARGS)

# Old versions use what newer versions of their own dependencies deprecate.
test-oldest: $(OLDEST)/.package ## Run the tests with the oldest versions of the dependencies
	$(OLDEST)/bin/python -m pytest -n auto -m "not slow" -W default::DeprecationWarning $(ARGS)

coverage: $(VENV)/.package $(VENV)/.group-test ## Run all tests and measure the branches they reach
	$(VENV)/bin/python -m pytest -n auto --cov=kernelweave --cov-branch --cov-report=term:skip-covered

MINUTES ?= 30
fuzz: $(VENV)/.package $(VENV)/.group-test ## Hunt for false certificates (MINUTES=30, SEED=, REPLAY=)
	$(VENV)/bin/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(REPLAY),--replay $(REPLAY))

lint: $(VENV)/.package $(VENV)/.group-lint $(VENV)/.group-build ## Check style, formatting and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/reuse lint --quiet
	$(VENV)/bin/clang-format --dry-run --Werror $(CPP)
	@if command -v clang-tidy >/dev/null; then $(tidy); \
	else echo "clang-tidy is not installed, so the C++ files were not analysed."; fi

bench: $(BENCH)/.package $(BENCH)/.peers ## Measure kernelweave beside other packages
	$(BENCH)/bin/python -m benchmarks

COMMITS ?= HEAD^!
bench-commits: $(VENV)/.package $(VENV)/.group-commits ## Measure some tasks at other commits with asv (COMMITS=v0.1.0..HEAD)
	$(VENV)/bin/asv machine --yes
	$(VENV)/bin/asv run $(COMMITS) --skip-existing $(ARGS)

docs: $(VENV)/.package $(VENV)/.group-docs ## Build the documentation
	$(VENV)/bin/sphinx-build -W docs docs/_build/html

wheels: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
wheels: $(VENV)/.group-release ## Build and audit the wheel and the source distribution, and try the wheel
	rm -rf dist && mkdir -p dist/linux
	$(VENV)/bin/python -m build --outdir dist/linux
	mv dist/linux/*.tar.gz dist
	PATH="$$PWD/$(VENV)/bin:$$PATH" $(VENV)/bin/auditwheel repair --wheel-dir dist dist/linux/*.whl && rm -rf dist/linux
	$(VENV)/bin/twine check --strict dist/*
	$(VENV)/bin/check-wheel-contents dist/*.whl
	$(PYTHON) tests/wheel.py dist

sanitize: $(VENV)/.group-build ## Test the C++ core under AddressSanitizer and UBSan
	@$(find_compiler); set -e; set -x; \
	CXX="$$cxx" $(VENV)/bin/cmake -S . -B build/sanitize -DKERNELWEAVE_CORE_TESTS=ON; \
	$(VENV)/bin/cmake --build build/sanitize --parallel; \
	build/sanitize/core_tests

format: $(VENV)/.group-lint ## Rewrite the sources in the project's style
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CPP)

clean: ## Remove the environments and everything that was built
	rm -rf $(VENV) $(BENCH) $(OLDEST) build dist docs/_build docs/api/generated
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Long experiments on the real data, see experiments/README.md. What is done is kept,
# so a second call goes on; options go into ARGS, as in make radius ARGS=--quick.
radius: $(VENV)/.package ## Run the table of radius-based kernel learning again (about half an hour)
	$(VENV)/bin/python -m experiments.radius $(ARGS)

noisy: $(VENV)/.package ## Measure learning from wrong labels (about an hour)
	$(VENV)/bin/python -m experiments.noisy_labels $(ARGS)

structures: $(VENV)/.package ## Compare structured with flat kernel combinations (about ten minutes)
	$(VENV)/bin/python -m experiments.sum_product $(ARGS)

pairs: $(VENV)/.package ## Cluster linked documents by kernels learned from links (about a quarter of an hour)
	$(VENV)/bin/python -m experiments.pairwise $(ARGS)

missing: $(VENV)/.package ## Compare ways to learn from sources that rows lack (half an hour)
	$(VENV)/bin/python -m experiments.missing $(ARGS)

rules: $(VENV)/.package ## Run the tables of rule ensembles again (about half an hour)
	$(VENV)/bin/python -m experiments.rules $(ARGS)

short-rules: $(BENCH)/.package $(BENCH)/.peers ## Compare short rule sets with other readable models (about twenty minutes)
	$(BENCH)/bin/python -m experiments.rules_short --group third $(ARGS)

tables: $(BENCH)/.package $(BENCH)/.peers ## Compare learned metrics with boosting and others on tables (about an hour)
	$(BENCH)/bin/python -m experiments.tables $(ARGS)

people: $(BENCH)/.package $(BENCH)/.peers ## Labels that people gave: annotators, wrong labels, the gain of a review
	$(BENCH)/bin/python -m experiments.people $(ARGS)

# An environment with a pip that knows dependency groups.
$(VENV)/.ready $(BENCH)/.ready $(OLDEST)/.ready: %/.ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "kernelweave needs Python 3.11 or later, but $(PYTHON) is" \
	"$$($(PYTHON) -V 2>/dev/null || echo missing); name another with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	echo "$(PYTHON) lacks the venv module; install it" \
	"(on Debian and Ubuntu the package python3-venv)."; exit 1; }
	$(PYTHON) -m venv $*
	@echo '*' > $*/.gitignore
	$*/bin/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	@touch $@

# The package itself, compiled. Python sources are read in place, but an editable install knows only
# the modules that existed when it was made, so their list is watched beside the core.
MODULES := $(sort $(shell find src -name '*.py'))
$(VENV)/.modules $(BENCH)/.modules: %/.modules: %/.ready FORCE
	@echo '$(MODULES)' | cmp -s - $@ || echo '$(MODULES)' > $@
FORCE:

$(VENV)/.package $(BENCH)/.package: %/.package: %/.ready %/.modules $(CORE)
	@$(find_compiler); set -x; \
	CXX="$$cxx" $*/bin/python $(PIP_INSTALL) --editable '.[cli,io,experiments]'
	@touch $@

GROUPS := $(addprefix $(VENV)/.group-,build test lint docs release interop spark commits)
$(GROUPS): $(VENV)/.group-%: $(VENV)/.ready pyproject.toml
	$(VENV)/bin/python $(PIP_INSTALL) --group $*
	@touch $@

# Every requirement of the package and of its tests at the lowest version that pyproject.toml allows.
$(OLDEST)/.package: $(OLDEST)/.ready $(CORE)
	$(OLDEST)/bin/python -c '$(print_floors)' > $(OLDEST)/floors.txt
	@$(find_compiler); set -x; \
	CXX="$$cxx" $(OLDEST)/bin/python $(PIP_INSTALL) --constraint $(OLDEST)/floors.txt \
	--editable '.[cli,io,dask,experiments]' --group test
	@touch $@

print_floors = import re, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	lists = [project["dependencies"], *project["optional-dependencies"].values(), ["polars>=1.20"]]; \
	print(*sorted({re.sub(r"\[.*?\]", "", item).replace(">=", "==") for group in lists for item in group}), sep="\n")

# A peer that cannot be installed is left out of the comparison; it must not stop it.
$(BENCH)/.peers: $(BENCH)/.package pyproject.toml
	@$(BENCH)/bin/python $(PIP_INSTALL) --group bench || \
	$(BENCH)/bin/python -c '$(print_bench_group)' | while read -r peer; do \
	$(BENCH)/bin/python $(PIP_INSTALL) "$$peer" </dev/null || \
	echo "$$peer could not be installed, so the benchmark goes on without it."; done
	@touch $@

print_bench_group = import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["bench"], sep="\n")

# clang-tidy on each C++ file, with the headers of nanobind and Python; .clang-tidy lists the checks.
tidy = headers=$$($(VENV)/bin/python -c 'import nanobind, sysconfig; \
	print("-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_paths()["include"])'); \
	printf '%s\n' $(filter %.cpp,$(CPP)) | \
	xargs -P 2 -I{} clang-tidy --quiet {} -- -std=c++20 -fopenmp-simd -Icpp $$headers

# Sets cxx to the first compiler that accepts C++20, or stops with a sentence.
find_compiler = cxx=; for try in "$$CXX" c++ g++ clang++; do \
	if [ -n "$$try" ] && printf '\#include <concepts>\nint main() { return [](std::integral auto x) { return x; }(0); }\n' \
	| $$try -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then cxx=$$try; break; fi; done; \
	if [ -z "$$cxx" ]; then echo "kernelweave needs a C++20 compiler, but none of c++, g++ and clang++" \
	"is one; install GCC 11 or Clang 14 or later, or name one with CXX=..."; exit 1; fi
