"""Recipes as processes of their own, perhaps killed, and what they leave behind."""

import os
import pathlib
import subprocess
import sys

import tensorflow as tf

from zoo import progress

ROOT = pathlib.Path(__file__).parents[2]

# Ends the process, as kill -9 does, when a step has been made, saved or not.
KILLED = """
import os, signal, sys
from zoo import checkpoint

seen = checkpoint.Checkpoint.on_train_batch_end

def on_train_batch_end(self, batch, logs=None):
    seen(self, batch, logs)
    if self.step == {step}:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.on_train_batch_end = on_train_batch_end
import runpy
sys.argv[0] = "zoo/{recipe}/train.py"
runpy.run_module("zoo.{recipe}.train", run_name="__main__", alter_sys=True)
"""


def train(recipe, *options, killed_at=None):
    """Runs a recipe and returns the process when it has ended, perhaps by a kill at a step."""
    program = ["-m", f"zoo.{recipe}.train"]
    if killed_at:
        program = ["-c", KILLED.format(recipe=recipe, step=killed_at)]
    return subprocess.run(
        [sys.executable, *program, *options],
        cwd=ROOT,
        env={
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "CUDA_VISIBLE_DEVICES": "",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )


def saved(workdir):
    """The variables of the newest checkpoint."""
    reader = tf.train.load_checkpoint(workdir / "backup")
    names = [name for name in reader.get_variable_to_dtype_map() if "variables/" in name]
    return {name: reader.get_tensor(name) for name in sorted(names)}


def rows(workdir):
    """The rows of the log without what the clock says."""
    return [
        {name: value for name, value in row.items() if not name.endswith("_per_second")}
        for row in progress.read_log(workdir / "log.csv")
    ]
