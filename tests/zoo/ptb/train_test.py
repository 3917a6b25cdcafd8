"""The recipe: exact restart amid a pass, two devices equal to one, its flags."""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

import keras
import numpy as np
from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from tests.zoo.ptb.model_test import lstm_model
from zoo import run
from zoo.ptb.model import BitsPerCharacter, SummedCrossentropy
from zoo.ptb.windows import Windows, evaluation_windows

ROOT = pathlib.Path(__file__).parents[3]
FLAGS = flags.FLAGS
TEXT = np.random.default_rng(0).integers(5, size=20).astype("int32")
SMALL = (
    "--model=lstm --units=6 --embedding_units=4 --batch_size=4 --window=3 --evaluation_rows=4 "
    "--clip_norm=0.1 --checkpoint_every=2"
).split()


class Killed(BaseException):
    """Stands for `kill -9`: nothing after it runs."""


def train(more_callbacks=()) -> keras.Model:
    """What the recipe does, between `run.start` and `run.finish`; eager, to spare compilation."""
    keras.utils.set_random_seed(1)
    windows = Windows(TEXT, batch_size=2, window=3, steps=6, steps_per_epoch=4)  # A pass is 3.
    validation = evaluation_windows(TEXT[:7], rows=2, window=3, first=0)
    model = lstm_model(1, dropout=0.3, training_rows=2, evaluation_rows=2)
    model.compile(
        keras.optimizers.Adam(0.01, global_clipnorm=1.0),
        SummedCrossentropy(),
        metrics=[BitsPerCharacter()],
        run_eagerly=True,
    )
    checkpoint, callbacks = run.callbacks(model, windows, ("chance", 5.0))
    for epoch, data in checkpoint.epochs():
        model.fit(
            data,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=validation,
            callbacks=[*more_callbacks, *callbacks],
            shuffle=False,
            verbose=0,
        )
    return model


class RestartTest(parameterized.TestCase):
    def in_new_folder(self):
        folder = self.enter_context(tempfile.TemporaryDirectory())
        FLAGS(["zoo/ptb/train.py", f"--workdir={folder}", "--checkpoint_every=2"])
        return pathlib.Path(folder)

    def test_a_run_killed_amid_a_pass_ends_as_one_that_was_not(self):
        self.enter_context(flagsaver.flagsaver())
        self.enter_context(mock.patch.object(sys, "argv", ["zoo/ptb/train.py"]))
        whole_folder = self.in_new_folder()
        whole = train()
        folder = self.in_new_folder()
        steps = iter(range(99))

        def kill(batch, logs):
            if next(steps) == 2:  # Step 3, amid an epoch and at the end of a pass.
                raise Killed

        with self.assertRaises(Killed):
            train([keras.callbacks.LambdaCallback(on_train_batch_end=kill)])
        model = train()
        self.assertGreater(np.abs(model.carried[True][0]).max(), 0)
        for ours, theirs in zip(model.variables, whole.variables, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
        self.assertEqual((folder / "log.csv").read_text(), (whole_folder / "log.csv").read_text())


class RecipeFolder(absltest.TestCase):
    """Runs the recipe as the README says, on a tiny text."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        rng = np.random.default_rng(0)
        for split, size in (("train", 70), ("valid", 13), ("test", 11)):
            text = "".join(rng.choice(list("ab c\n"), size)) + "abc \n"
            (self.folder / f"ptb.{split}.txt").write_text(text)

    def run_recipe(self, name: str, *more: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "zoo.ptb.train", *SMALL, f"--data={self.folder}"]
        command += [f"--workdir={self.folder / name}", *more]
        environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    def log(self, name: str) -> list[dict[str, float]]:
        with (self.folder / name / "log.csv").open() as file:
            return [
                {key: float(value) for key, value in row.items()} for row in csv.DictReader(file)
            ]


class RecipeTest(RecipeFolder):
    def test_two_devices_make_the_steps_of_one(self):
        for name, more in (("one", []), ("two", ["--strategy=mirrored", "--logical_devices=2"])):
            done = self.run_recipe(name, "--epochs=2", *more)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            self.assertRegex(done.stdout, r"test  bits_per_character \d\.\d{4}")
        for ours, theirs in zip(self.log("two"), self.log("one"), strict=True):
            self.assertGreater(ours.pop("characters_per_second"), 0)
            for name, value in ours.items():
                self.assertAlmostEqual(value, theirs[name], delta=2e-5 * max(1, abs(value)))

    def test_data_that_is_not_there_is_told_in_a_sentence(self):
        done = self.run_recipe("refused", "--data=nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--data=nowhere: nowhere has no train split", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    absltest.main()
