# Every target sets up what it needs in .venv: a fresh clone, Python >= 3.11, pip and make suffice.
PYTHON ?= python3
RUN := .venv/bin/python -m
# A process a core; a file's tests stay together, since many share what its first one made.
PARALLEL = --numprocesses=auto --dist=loadfile
BAZEL_TESTS = //...
JAX_TESTS = tests/rum_keras $(wildcard tests/zoo/*/model_test.py tests/zoo/*/decoding_test.py)

export KERAS_HOME := $(CURDIR)/build/keras
export TF_CPP_MIN_LOG_LEVEL ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-jax slow lint format bench bazel cpp-check addons index clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/demo.installed  ## train RUM on associative recall, export it, ask the export
	rm -rf runs/demo
	$(RUN) zoo.recall.train --flagfile=zoo/recall/demo.flags --workdir=runs/demo
	$(RUN) exports.export --workdir=runs/demo --export_dir=exports/models/recall
	$(RUN) exports.client --export_dir=exports/models/recall --text='a1s2d3f4g5??d'

test: .venv/test.installed  ## everything but tests/slow
	$(RUN) pytest -m 'not slow' $(PARALLEL)

test-jax: .venv/test.installed  ## what runs on the JAX backend too
	KERAS_BACKEND=jax $(RUN) pytest -m 'not slow' --numprocesses=auto $(JAX_TESTS)

slow: .venv/test.installed  ## crashes and restarts, several workers, trained models
	$(RUN) pytest -m slow

lint: .venv/test.installed  ## ruff; `make format` mends what it can
	$(RUN) ruff check .
	$(RUN) ruff format --check .

format: .venv/test.installed
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: .venv/test.installed  ## time and memory: RUM beside keras.layers.GRU, then the recipes at paper size
	$(RUN) tests.bench.bench
	$(RUN) tests.bench.ptb
	$(RUN) tests.bench.xsum
	$(RUN) tests.bench.pointer_generator

bazel: .venv/test.installed  ## the tests again, under Debian's bazel-bootstrap, offline
	PATH="$(CURDIR)/.venv/bin:$$PATH" bazel build //...
	PATH="$(CURDIR)/.venv/bin:$$PATH" bazel test $(BAZEL_TESTS)

CPP_CHECK_FLAGS = -O0 -w -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=1 -DEIGEN_MAX_ALIGN_BYTES=64
CPP_CHECK_LIBRARIES = -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2
TENSORFLOW = $$(.venv/bin/python -c \
  'import importlib.util as u; print(u.find_spec("tensorflow").submodule_search_locations[0])')

cpp-check: build/cpp_check  ## an export, by the C++ loader that TensorFlow Serving is built on
	rm -rf build/models
	$(RUN) exports.export --weights=zoo/recall/weights/table1_rum_lambda1_t30 --export_dir=build/models/recall
	build/cpp_check build/models/recall/1 'a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5??d' | tee /dev/stderr | \
	  grep -q '^digit: 4'

# The flags are those of the TensorFlow wheel.
build/cpp_check: exports/cpp_check.cc .venv/test.installed
	@mkdir -p build
	T=$(TENSORFLOW) && $(CXX) $(CPP_CHECK_FLAGS) -isystem "$$T/include" $< -o $@ \
	  -L"$$T" $(CPP_CHECK_LIBRARIES) -Wl,-rpath,"$$T"

addons: .venv-addons/addons.installed .venv/test.installed  ## our cells beside tensorflow-addons itself
	.venv-addons/bin/python -W ignore tests/addons/oracle.py build/addons
	RUM_KERAS_ADDONS=build/addons $(RUN) pytest tests/addons

# pip installs dependency groups from 25.1 on.
.venv-addons/addons.installed: pyproject.toml
	$(PYTHON) -m venv .venv-addons
	.venv-addons/bin/pip install --quiet --upgrade 'pip>=25.1'
	.venv-addons/bin/pip install --quiet --group addons
	@touch $@

index: .venv/test.installed  ## the README's index, from the flagfiles' first lines
	$(RUN) zoo.index

clean:  ## remove the environments and what the targets built
	rm -rf build .venv .venv-addons runs/demo

# What an environment holds follows pyproject.toml, so a change there installs again.
.venv/demo.installed: EXTRAS = tensorflow,figures,serving
.venv/test.installed: EXTRAS = tensorflow,jax,serving,figures,data,topics,rouge,test
.venv/%.installed: pyproject.toml | .venv/bin/python
	@echo "Installing TensorFlow, Keras and what else this target needs: about a minute."
	.venv/bin/pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
