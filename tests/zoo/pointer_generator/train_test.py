"""The recipe: what a run leaves behind, and coverage from a run without it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.zoo.pointer_generator import tiny_run
from zoo import progress
from zoo.pointer_generator import kept

ROOT = pathlib.Path(__file__).parents[3]
FLAGS = (
    "--units=3 --embedding=4 --decoder=rum --batch_size=2 --steps=6 --steps_per_epoch=3 "
    "--checkpoint_every=2 --lengths=0:6:4,4:20:9 --min_length=2 --max_length=7"
).split()

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
sys.argv[0] = "zoo/pointer_generator/train.py"
runpy.run_module("zoo.pointer_generator.train", run_name="__main__", alter_sys=True)
"""


def train(data, workdir, *more, killed_at=None):
    """Runs the recipe and returns the process when it has ended."""
    program = ["-m", "zoo.pointer_generator.train"]
    if killed_at:
        program = ["-c", KILLED.format(step=killed_at)]
    return subprocess.run(
        [sys.executable, *program, f"--data={data}", f"--workdir={workdir}", *FLAGS, *more],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""},
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
        {name: value for name, value in row.items() if name != "tokens_per_second"}
        for row in progress.read_log(workdir / "log.csv")
    ]


class RecipeFolder(absltest.TestCase):
    """A corpus and a whole run of the recipe."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data = tiny_run.prepare(cls.folder, "xsum")
        cls.whole = cls.folder / "whole"
        cls.process = train(cls.data, cls.whole, "--diagnostics", "--patience=9")


class RecipeTest(RecipeFolder):
    def test_a_run_leaves_its_figures_and_all_that_summarizing_takes(self):
        self.assertEqual(self.process.returncode, 0, self.process.stderr)
        metrics = json.loads((self.whole / "metrics.json").read_text())
        self.assertEqual(metrics["recipe"], "zoo.pointer_generator.train")
        test = metrics["test"]
        self.assertAlmostEqual(test["perplexity"], np.exp(test["loss"]), delta=1e-3)
        for left in ("best.keras", "vocabulary.txt", "corpus.json", "figures/gradients.png"):
            self.assertTrue((self.whole / left).exists(), left)
        log = progress.read_log(self.whole / "log.csv")
        self.assertEqual([row["step"] for row in log], [3, 6])
        for row in log:
            self.assertAlmostEqual(row["val_perplexity"], np.exp(row["val_loss"]), delta=1e-3)
            for name in ("tokens_per_second", "gradient_norm", "hidden_norm"):
                self.assertGreater(row[name], 0)
        lines = (self.whole / "diagnostics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines], [3, 6])

    def test_coverage_from_a_run_without_it_adds_its_weight_and_nothing_else(self):
        workdir, start = self.folder / "coverage", f"--from={self.whole}"
        done = train(self.data, workdir, "--coverage", start, "--learning_rate=0", "--steps=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        before, after = kept.load_model(self.whole), kept.load_model(workdir)
        ours, theirs = (
            {w.path.split("/", 1)[1]: w.numpy() for w in model.weights} for model in (after, before)
        )
        self.assertEqual(set(ours) - set(theirs), {"decoder/attention/coverage_kernel"})
        self.assertLessEqual(set(theirs), set(ours))
        for name, value in theirs.items():
            np.testing.assert_array_equal(ours[name], value, err_msg=name)
        self.assertGreater(rows(workdir)[0]["val_coverage_loss"], 0)

    def test_weights_of_another_model_are_refused(self):
        start = f"--from={self.whole}"
        done = train(self.data, self.folder / "other", start, "--decoder=lstm", "--units=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("decoder is 'rum', not 'lstm'", done.stderr)
        self.assertIn("units is 3, not 4", done.stderr)


if __name__ == "__main__":
    absltest.main()
