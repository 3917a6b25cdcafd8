# Every target sets up what it needs in .venv: a fresh clone, Python >= 3.11, pip and make suffice.
PYTHON ?= python3
RUN := .venv/bin/python -m
JAX_TESTS = tests/rum_keras $(wildcard tests/zoo/*/model_test.py)

export KERAS_HOME := $(CURDIR)/build/keras
export TF_CPP_MIN_LOG_LEVEL ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-jax slow lint format bench bazel cpp-check addons clean

demo: .venv/demo.installed  ## train RUM on associative recall, export it, ask the export
	rm -rf runs/demo
	$(RUN) zoo.recall.train --flagfile=zoo/recall/demo.flags --workdir=runs/demo
	$(RUN) exports.export --workdir=runs/demo --export_dir=exports/models/recall
	$(RUN) exports.client --export_dir=exports/models/recall --text='a1s2d3f4g5??d'

test: .venv/test.installed  ## everything but tests/slow
	$(RUN) pytest -m 'not slow'

test-jax: .venv/test.installed  ## what runs on the JAX backend too
	KERAS_BACKEND=jax $(RUN) pytest -m 'not slow' $(JAX_TESTS)

slow: .venv/test.installed  ## crashes and restarts, several workers, trained models
	$(RUN) pytest -m slow

lint: .venv/test.installed
	$(RUN) ruff check .
	$(RUN) ruff format --check .

format: .venv/test.installed
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: .venv/test.installed  ## time and memory of RUM beside keras.layers.GRU
	$(RUN) tests.bench.bench

bazel: .venv/test.installed  ## the tests again, under Debian's bazel-bootstrap, offline
	PATH="$(CURDIR)/.venv/bin:$$PATH" bazel test //...

clean:
	rm -rf build .venv .venv-addons runs/demo

# What an environment holds follows pyproject.toml, so a change there installs again.
.venv/demo.installed: EXTRAS = tensorflow,figures,serving
.venv/test.installed: EXTRAS = tensorflow,jax,serving,figures,test
.venv/%.installed: pyproject.toml | .venv/bin/python
	@echo "Installing TensorFlow, Keras and what else this target needs: about a minute."
	.venv/bin/pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
