# `make` lists the targets. All targets need Python 3.11, make and g++. `make
# bazel` also needs Debian's bazel-bootstrap, see .ci/run.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile
TENSORFLOW := tensorflow>=2.21,<2.22
# The tools have an environment of their own, because tf-agents and mypy need
# different releases of typing-extensions. The formatter has one fixed release,
# because other releases format differently.
TOOLS := $(VENV)/tools/bin
TOOL_PACKAGES := clang-format==23.1.5 mypy==2.4.1 ruff==0.17.6 yapf==0.43.0 \
    mkdocs-material==9.8.1 mkdocstrings-python==2.0.11
# Number of graphs of `make fuzz`. FUZZ_ARGS, such as "--seed=9
# --placers=heft", adds other arguments.
FUZZ_GRAPHS ?= 300
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export TF_CPP_MIN_LOG_LEVEL ?= 3
# Programs and tests use the installed package, not this tree.
unexport PYTHONPATH

# Sources of the installed package. Folders are included, because their time
# changes when a file is added or removed.
SOURCES := setup.py pyproject.toml bazel/native_sources.bzl $(shell find \
    gdp_grappler placer_model \( -name __pycache__ -o -path gdp_grappler/lib \) \
    -prune -o \( -type d -o -type f ! -name '*.pyc' \) -print)

# Files that git tracks or would add, by the end of the name.
files = $(wildcard $(shell \
    git ls-files --cached --others --exclude-standard $(1)))
PYTHON_FILES := $(call files,'*.py')
NATIVE_FILES := $(call files,'*.c' '*.cc' '*.h')
# Runs yapf: $(1) is the files, $(2) the arguments. The first run of yapf writes
# a cache, which parallel runs must not read before it is complete.
yapf = $(TOOLS)/yapf --version > /dev/null && echo $(1) \
    | xargs -n 16 -P $$(nproc) $(TOOLS)/yapf $(2)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test fuzz fidelity pretrain pretrain_policy paper gpu format lint docs pictures bazel bazel_build wheel install clean

help:  ## list these targets
	@sed -n 's/^\([a-z_]*\):.*## /make \1\t/p' $(firstword $(MAKEFILE_LIST)) \
	    | expand -t 22

demo: $(VENV)/installed  ## train a policy for InceptionV3 and fit with it
	$(BIN)/python -P demo/inception.py

test: $(VENV)/installed  ## run all tests against the installed package
	@# From tests/, because interpreters that tests start look into the current
	@# folder first. tests/conftest.py orders the files: the longest first.
	cd tests && ../$(BIN)/python -P -m pytest --numprocesses=auto \
	    --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(PYTEST_ARGS)

fuzz: $(VENV)/installed  ## random graphs (FUZZ_GRAPHS=300) for every placer, damaged files
	cd tests && ../$(BIN)/python -m fuzz --graphs=$(FUZZ_GRAPHS) $(FUZZ_ARGS)

fidelity: $(VENV)/installed  ## price and measure placements: the simulator's error
	$(BIN)/python -m benchmarks.fidelity $(FIDELITY_ARGS)

pretrain: $(VENV)/installed  ## train the move network that ships; a quarter of an hour, can be resumed
	$(BIN)/gdp_pretrain --model_dir=build/pretrain --config=full $(PRETRAIN_ARGS)
	cp build/pretrain/policy/weights.npz gdp_grappler/placers/search/moves/shipped_moves.npz

pretrain_policy: $(VENV)/installed  ## train the policy that ships; half an hour, can be resumed
	$(BIN)/gdp_pretrain --network=placer --model_dir=build/placer --config=full $(PRETRAIN_ARGS)
	for name in policy.json saved_model.pb fingerprint.pb variables; do \
	    rm -rf placer_model/pretrained/$$name && \
	    cp -r build/placer/policy/$$name placer_model/pretrained/ || exit 1; done

paper: $(VENV)/installed  ## the papers' tables and figures; a day, can be resumed
	$(BIN)/python -m benchmarks.paper $(PAPER_ARGS)

gpu: $(VENV)/installed  ## checks that need a card; five minutes, can be resumed
	$(BIN)/python -m benchmarks.gpu --out_dir=build/gpu $(GPU_ARGS)

format: $(VENV)/tools/installed  ## format all Python and C++
	$(TOOLS)/ruff check --quiet --select I --fix .
	@$(call yapf,$(PYTHON_FILES),--in-place)
	$(TOOLS)/clang-format -i $(NATIVE_FILES)
	@touch $(VENV)/tools/formatted

lint: $(VENV)/installed $(VENV)/tools/formatted  ## ruff, formats, types, layers, no generated file in git
	$(TOOLS)/ruff check .
	$(TOOLS)/clang-format --dry-run -Werror $(NATIVE_FILES)
	$(BIN)/lint-imports --no-cache --no-logo
	$(TOOLS)/mypy --python-executable $(BIN)/python
	@generated=$$(git ls-files --cached --ignored --exclude-standard); \
	if [ -n "$$generated" ]; then \
	  echo "Generated files are in git. Run git rm --cached on:"; \
	  echo "$$generated"; exit 1; \
	fi

docs: $(VENV)/tools/installed  ## build the pages of docs/ in build/docs, offline
	@# Not --quiet, which would let warnings pass.
	NO_MKDOCS_2_WARNING=1 $(TOOLS)/mkdocs build --clean

pictures: $(VENV)/installed  ## make anew what docs/ shows: notebooks, sessions, pictures
	PYTHONPATH=tests $(BIN)/python -m benchmarks.showing $(PICTURES)

bazel: bazel_build $(VENV)/installed  ## build and test with Bazel, offline
	bazel test //...

# Needs only TensorFlow, so that it can run while other packages are installed.
bazel_build: $(VENV)/tensorflow
	bazel build //...

wheel: dist/built  ## build dist/*.whl for this platform
	@ls dist/*.whl

install: $(VENV)/installed  ## only make .venv with everything in it

clean:  ## remove .venv and all built files
	rm -rf $(VENV) build dist demo_output gdp_grappler/lib *.egg-info \
	    .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	if command -v bazel > /dev/null; then bazel clean --expunge; fi

# The build reads the installed TensorFlow, so TensorFlow is installed first.
# Packages of [train] import pkg_resources, which later setuptools lack.
$(VENV)/tensorflow:
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is missing." \
	    "Install Python 3.11, or run make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'setuptools>=70.1,<81' wheel '$(TENSORFLOW)'
	@touch $@

dist/built: $(VENV)/tensorflow $(SOURCES)
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps \
	    --wheel-dir dist .
	@touch $@

# Installs the wheel that users get. Without --force-reinstall pip would keep an
# older wheel of the same version.
$(VENV)/installed: dist/built
	$(PIP) --no-build-isolation "$$(ls dist/*.whl)[train,bench,report,completion,dev]"
	$(PIP) --no-deps --force-reinstall dist/*.whl
	@# pip would compile on one core. Some .py files of packages do not compile,
	@# so errors are ignored.
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

$(VENV)/tools/installed: Makefile | $(VENV)/tensorflow
	$(PYTHON) -m venv $(VENV)/tools
	$(TOOLS)/python -m pip install --quiet $(TOOL_PACKAGES)
	@touch $@

# Checking all files would take a minute, so only changed files are checked.
$(VENV)/tools/formatted: $(VENV)/tools/installed pyproject.toml $(PYTHON_FILES)
	@$(call yapf,$(if $(filter-out %.py,$?),$(PYTHON_FILES),$?),--diff) \
	    || { echo "Run make format."; exit 1; }
	@touch $@
