"""A recipe killed three times at random and started again ends as one that was left alone.

By default a short run of Table 1's flags; flags of one's own take their place, as in

    python -m tests.slow.resume_test --flagfile=zoo/recall/table1_rum_lambda1_t30.flags
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
import tensorflow as tf
from absl import flags
from absl.testing import absltest

ROOT = pathlib.Path(__file__).parents[2]
FLAGFILE = ROOT / "zoo/recall/table1_rum_lambda1_t30.flags"
KILLS = 3


def recipe_flags() -> list[str]:
    """The flags of this test's command line, or those of a short run with noise in it."""
    given = sys.argv[1:] if pathlib.Path(sys.argv[0]).name == "resume_test.py" else []
    return given or [
        f"--flagfile={FLAGFILE}",
        "--steps=120",
        "--steps_per_epoch=50",
        "--checkpoint_every=5",
        "--zoneout=0.1",
        "--batch_size=16",
    ]


def start(workdir: pathlib.Path) -> subprocess.Popen:
    """Starts the recipe in a working folder."""
    command = [sys.executable, "-m", "zoo.recall.train", *recipe_flags(), f"--workdir={workdir}"]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "KERAS_BACKEND": "tensorflow"})


def last_step(workdir: pathlib.Path) -> int:
    """The step of the newest checkpoint; 0 where there is none."""
    latest = tf.train.latest_checkpoint(workdir / "backup")
    return int(latest.rpartition("-")[2]) if latest else 0


def last_weights(workdir: pathlib.Path) -> dict[str, np.ndarray]:
    """Everything in the last checkpoint but the time spent."""
    reader = tf.train.load_checkpoint(workdir / "backup")
    names = sorted(name for name in reader.get_variable_to_dtype_map() if "seconds" not in name)
    return {name: reader.get_tensor(name) for name in names}


@pytest.mark.slow
class ResumeTest(absltest.TestCase):
    def kill_at_random(self, workdir: pathlib.Path, process: subprocess.Popen, step: int):
        """Kills a run at a random moment soon after it has saved a step that late."""
        while process.poll() is None and last_step(workdir) < step:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.2))
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL, "it ended before it was killed")

    def test_a_run_killed_three_times_at_random_ends_as_one_that_was_left_alone(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        alone, killed = folder / "alone", folder / "killed"
        self.assertEqual(start(alone).wait(), 0)
        steps = sorted(random.sample(range(1, last_step(alone) // 2), KILLS))
        for step in steps:
            self.kill_at_random(killed, start(killed), step)
        self.assertEqual(start(killed).wait(), 0)

        expected, weights = last_weights(alone), last_weights(killed)
        self.assertEqual(list(weights), list(expected))
        for name, value in weights.items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
        self.assertEqual((killed / "log.csv").read_text(), (alone / "log.csv").read_text())

    def test_sigterm_saves_and_the_run_goes_on(self):
        workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        process = start(workdir)
        while process.poll() is None and not last_step(workdir):
            time.sleep(0.05)
        process.terminate()
        self.assertEqual(process.wait(), 143)
        self.assertEqual(start(workdir).wait(), 0)


if __name__ == "__main__":
    flags.FLAGS(sys.argv[:1])
    absltest.main(argv=sys.argv[:1])
