"""A recipe on several devices and in several processes, against the same on one device."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from zoo import progress

ROOT = pathlib.Path(__file__).parents[2]
FLAGS = [
    "--cell=gru",
    "--units=6",
    "--length=4",
    "--batch_size=128",
    "--steps=24",
    "--steps_per_epoch=10",
    "--checkpoint_every=4",
]
# Runs the recipe and kills itself after a step, as a machine may fail.
KILLED_AFTER_STEP = """
import os, runpy, signal
from zoo import checkpoint

def on_train_batch_end(self, batch, logs=None, end=checkpoint.Checkpoint.on_train_batch_end):
    end(self, batch, logs)
    if self.step == {step}:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.on_train_batch_end = on_train_batch_end
runpy.run_module("zoo.recall.train", run_name="__main__", alter_sys=True)
"""


def start(workdir, *more, program=("-m", "zoo.recall.train"), env=None) -> subprocess.Popen:
    """Starts the recipe; what it says goes to a file, which cannot fill up as a pipe can."""
    said = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(
        [sys.executable, *program, *FLAGS, f"--workdir={workdir}", *more],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", **(env or {})},
        stdout=said,
        stderr=subprocess.STDOUT,
    )
    process.said = said
    return process


def wait(process: subprocess.Popen, seconds: float) -> str:
    """Waits for a process to end, or kills it after so many seconds; returns what it said."""
    try:
        process.wait(seconds)
    finally:
        process.kill()
        process.said.seek(0)
        output = process.said.read()
        process.said.close()
    return output


def start_workers(workdir, *programs) -> list[subprocess.Popen]:
    sockets = [socket.socket() for _ in programs]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    cluster = {"worker": ["{}:{}".format(*one.getsockname()) for one in sockets]}
    for one in sockets:
        one.close()
    return [
        start(
            workdir,
            "--strategy=multi_worker",
            program=program,
            env={
                "TF_CONFIG": json.dumps(
                    {"cluster": cluster, "task": {"type": "worker", "index": index}}
                )
            },
        )
        for index, program in enumerate(programs)
    ]


class StrategiesTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.one_device = cls.folder / "one_device"
        cls.said = cls.finish(start(cls.one_device))

    @classmethod
    def finish(cls, process) -> str:
        said = wait(process, seconds=400)
        assert process.returncode == 0, said
        return said

    def assert_ends_like_one_device(self, workdir):
        reader, expected = (
            tf.train.load_checkpoint(folder / "backup") for folder in (workdir, self.one_device)
        )
        saved = [name for name in expected.get_variable_to_dtype_map() if "variables/" in name]
        # The last four are the sums and counts of loss and accuracy: each worker counts its own.
        self.assertGreater(len(saved), 10 + 4)
        for index in range(len(saved) - 4):
            name = f"variables/{index}/.ATTRIBUTES/VARIABLE_VALUE"
            np.testing.assert_allclose(
                reader.get_tensor(name), expected.get_tensor(name), rtol=1e-4, atol=1e-6
            )
        rows, expected = (
            progress.read_log(folder / "log.csv") for folder in (workdir, self.one_device)
        )
        self.assertEqual([row["step"] for row in rows], [10, 20, 24])
        for row, other in zip(rows, expected, strict=True):
            np.testing.assert_allclose(list(row.values()), list(other.values()), rtol=1e-4)

    def test_a_recipe_leaves_its_figures_behind(self):
        metrics = json.loads((self.one_device / "metrics.json").read_text())
        self.assertEqual(metrics["recipe"], "zoo.recall.train")
        self.assertBetween(metrics["test"]["accuracy"], 0, 0.5)
        for left in ("log.csv", "best.keras", "run.flags", "figures/loss.png"):
            self.assertTrue((self.one_device / left).exists(), left)
        self.assertLen(list((self.one_device / "tensorboard").iterdir()), 1)
        self.assertRegex(self.said, r"step 24/24  loss \S+ \(chance, 10 %: 2.3026\)  .* left\n")
        self.assertNotIn("\r", self.said)

    def test_two_devices_train_like_one(self):
        self.finish(start(self.folder / "two", "--strategy=mirrored", "--logical_devices=2"))
        self.assert_ends_like_one_device(self.folder / "two")

    def test_workers_that_lost_one_say_how_to_go_on_and_then_end_like_one_device(self):
        workdir = self.folder / "workers"
        recipe = ("-m", "zoo.recall.train")
        workers = start_workers(workdir, recipe, ("-c", KILLED_AFTER_STEP.format(step=13)))
        wait(workers[1], seconds=400)
        self.assertEqual(workers[1].returncode, -signal.SIGKILL)
        said = wait(workers[0], seconds=60)
        self.assertEqual(workers[0].returncode, 1, said)
        self.assertRegex(said.splitlines()[-1], "Lost another worker.*Start all workers again")
        self.assertNotIn("Traceback", said)

        workers = start_workers(workdir, recipe, recipe)
        said = [self.finish(worker) for worker in workers]
        self.assertIn("Going on from step 12", said[0])
        self.assert_ends_like_one_device(workdir)
        self.assertTrue((workdir / "metrics.json").exists())


if __name__ == "__main__":
    absltest.main()
