"""The recipe: exact restart amid a pass, two devices equal to one, its flags."""

import json
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

import keras
import numpy as np
from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from tests.zoo import recipe
from tests.zoo.ptb.recipe_folder import SMALL, RecipeFolder
from tests.zoo.ptb.small_model import lstm_model
from zoo import run
from zoo.ptb.model import BitsPerCharacter, SummedCrossentropy
from zoo.ptb.windows import Windows, evaluation_windows

FLAGS = flags.FLAGS
TEXT = np.random.default_rng(0).integers(5, size=20).astype("int32")


# Flags of the recipe, and what is said of them.
REFUSED = (
    (["--model=nas", "--eta=1"], "does not take these flags: no --eta (it is for fs_rum, rum)."),
    (["--tie_embedding"], "zoo.ptb.train: `tie_embedding` asks for a last layer of"),
    (["--dropout=0.1,0.2,0.3"], "zoo.ptb.train: `dropout` must be a fraction, or 2, one for each"),
    (["--dropout=1.5"], "flag --dropout=['1.5']: must be fractions from 0 to 1"),
    (["--learning_rates=abc"], "flag --learning_rates=['abc']: must be numbers, with commas"),
    (["--learning_rates=nan"], "flag --learning_rates=['nan']: must be numbers, with commas"),
    (["--learning_rate_epochs=-1"], "flag --learning_rate_epochs=['-1']: must be numbers"),
    (["--window=70"], "zoo.ptb.train: A text of 75 characters has no window of 70 characters in 4"),
)

# Run as a program: starts the recipe on lists of flags, and prints what it says when it ends.
PROBE = """
import json, runpy, sys
from absl import app, flags
from absl.testing import flagsaver

cases, sys.argv = json.loads(sys.argv[1]), ["zoo/ptb/train.py"]
app.run = lambda main: None
recipe = runpy.run_module("zoo.ptb.train", run_name="__main__")
said = []
for arguments in cases:
    with flagsaver.flagsaver():
        try:
            flags.FLAGS(["zoo/ptb/train.py", *arguments])
            recipe["main"](None)
        except (SystemExit, flags.Error) as error:
            said.append(str(error))
print(json.dumps(said))
"""


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

    def test_flags_that_cannot_be_are_told_in_a_sentence(self):
        one_line = self.folder / "one_line"
        one_line.mkdir()
        for split in ("train", "valid", "test"):
            (one_line / f"ptb.{split}.txt").write_text("abc")
        refused = [*REFUSED, ([f"--data={one_line}"], "the train split has no ends of lines")]
        cases = [
            [*SMALL, f"--data={self.folder}", f"--workdir={self.folder / str(number)}", *more]
            for number, (more, _) in enumerate(refused)
        ]
        program = [sys.executable, "-c", PROBE, json.dumps(cases)]
        done = subprocess.run(program, cwd=recipe.ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        said = json.loads(done.stdout.splitlines()[-1])
        for (more, message), sentence in zip(refused, said, strict=True):
            with self.subTest(more):
                self.assertIn(message, sentence)
                self.assertNotIn("\n", sentence)

    def test_data_that_is_not_there_is_told_in_a_sentence(self):
        done = self.run_recipe("refused", "--data=nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--data=nowhere: nowhere has no train split", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    absltest.main()
