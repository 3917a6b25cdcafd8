"""The training harness in one process: exact restart, stops, flags and data order."""

import csv
import os
import pathlib
import signal
import sys
import tempfile
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from zoo import progress, run

LambdaCallback = keras.callbacks.LambdaCallback
FLAGS = flags.FLAGS
TIME, FEATURES, CLASSES, UNITS = 3, 4, 5, 6
STEPS, STEPS_PER_EPOCH = 8, 3  # The last epoch is shorter than the others.
SAVE = "CheckpointManager.save"
BASELINE = ("chance", np.log(CLASSES))


class Killed(BaseException):
    """Stands for `kill -9`: nothing after it runs."""


def examples(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    inputs = rng.normal(size=(count, TIME, FEATURES)).astype("float32")
    return inputs, rng.integers(CLASSES, size=count)


def noisy_model() -> keras.Model:
    """A model with three random generators, one of them in a cell. Eager, to spare compilation."""
    keras.utils.set_random_seed(FLAGS.seed)
    cell = keras.layers.SimpleRNNCell(UNITS, dropout=0.2, recurrent_dropout=0.3)
    model = keras.Sequential(
        [
            keras.Input((TIME, FEATURES)),
            keras.layers.GaussianNoise(0.1),
            keras.layers.RNN(cell),
            keras.layers.Dropout(0.4),
            keras.layers.Dense(CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.RMSprop(0.1), loss, metrics=["accuracy"], run_eagerly=True)
    return model


def train(train_data=None, more_callbacks=()) -> keras.Model:
    """What a recipe does, between `run.start` and `run.finish`."""
    model = noisy_model()
    batches = run.batches(train_data or examples(count=11))
    checkpoint, callbacks = run.callbacks(model, batches, BASELINE)
    for epoch, data in checkpoint.epochs():
        model.fit(
            data,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=examples(count=5),
            callbacks=[*more_callbacks, *callbacks],
            shuffle=False,
            verbose=0,
        )
    return model


class RunTest(parameterized.TestCase):
    whole = None  # The run that nothing stopped, as (working folder, model); made once.

    def setUp(self):
        super().setUp()
        self.enter_context(flagsaver.flagsaver())
        self.enter_context(mock.patch.object(sys, "argv", ["zoo/recall/train.py"]))
        self.workdir = self.new_workdir()

    def new_workdir(self, *more: str) -> pathlib.Path:
        workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        FLAGS(
            [
                "zoo/recall/train.py",
                f"--workdir={workdir}",
                "--batch_size=2",
                f"--steps={STEPS}",
                f"--steps_per_epoch={STEPS_PER_EPOCH}",
                "--checkpoint_every=2",
                *more,
            ]
        )
        return workdir

    def assert_is_the_whole_run(self, workdir, model):
        if RunTest.whole is None:
            parent = self.enterClassContext(tempfile.TemporaryDirectory())
            with flagsaver.flagsaver(workdir=f"{parent}/whole", checkpoint_every=2, steps=STEPS):
                RunTest.whole = pathlib.Path(FLAGS.workdir), train()
        other_workdir, other = self.whole
        for ours, theirs in zip(model.variables, other.variables, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
        self.assertEqual((workdir / "log.csv").read_text(), (other_workdir / "log.csv").read_text())
        best, other_best = (
            keras.models.load_model(folder / "best.keras", compile=False)
            for folder in (workdir, other_workdir)
        )
        for ours, theirs in zip(best.weights, other_best.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)

    def test_a_run_killed_in_the_middle_of_epochs_ends_as_one_that_was_not(self):
        killed = 0
        while killed < 10:
            seen = iter(range(STEPS))

            def kill(batch, logs, seen=seen):
                if next(seen) == 2:  # The third step of each process.
                    raise Killed

            try:
                model = train(more_callbacks=[LambdaCallback(on_train_batch_end=kill)])
                break
            except Killed:
                killed += 1
        self.assertEqual(killed, 3)
        self.assert_is_the_whole_run(self.workdir, model)

    def test_a_run_killed_between_any_two_writes_ends_as_one_that_was_not(self):
        killed_at = []
        for number in (0, 1, 1, 2, 3):  # Writes of each process before it is killed.
            writes = KillBeforeWrite(number)
            with self.assertRaises(Killed), writes:
                train()
            killed_at.append(writes.names[-1])
        log, best = "os.replace", ["Model.save", "os.replace"]
        self.assertEqual(killed_at, [SAVE, log, *best, SAVE])
        self.assert_is_the_whole_run(self.workdir, train())

    def test_a_run_killed_before_its_checkpoint_is_named_takes_the_one_before(self):
        save = tf.train.CheckpointManager.save
        state = self.workdir / "backup" / "checkpoint"

        def killed_save(manager, checkpoint_number):
            before = state.read_text() if state.exists() else None
            save(manager, checkpoint_number=checkpoint_number)
            if checkpoint_number == 4:
                state.write_text(before)
                raise Killed

        with self.assertRaises(Killed):
            with mock.patch.object(tf.train.CheckpointManager, "save", killed_save):
                train()
        self.assert_is_the_whole_run(self.workdir, train())

    def test_sigterm_saves_and_says_how_to_go_on(self):
        workdir = self.new_workdir("--checkpoint_every=100")
        asked = iter([False, True, False, False])

        def ask(batch, logs):
            if next(asked):
                os.kill(os.getpid(), signal.SIGTERM)

        with self.assertRaises(SystemExit) as stopped, mock.patch("sys.stderr") as stderr:
            train(more_callbacks=[LambdaCallback(on_train_batch_end=ask)])
        self.assertEqual(stopped.exception.code, 143)
        said = "".join(call.args[0] for call in stderr.write.call_args_list)
        said = said.strip().splitlines()[-1]  # Before it, TensorFlow may log how long it took.
        self.assertStartsWith(said, f"Stopped by SIGTERM at step 2 of {STEPS}, saved in {workdir}")
        self.assertIn(f"python -m zoo.recall.train --flagfile={workdir}/run.flags", said)
        self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
        self.assert_is_the_whole_run(workdir, train())

    def test_a_nan_stops_at_its_step_and_keeps_the_last_good_checkpoint(self):
        inputs, targets = examples(count=16)  # A pass is the whole run: each comes once.
        batches = run.batches((np.arange(16),))
        (poisoned, _) = list(batches.epoch(1))[2][0].numpy()
        inputs[poisoned] = np.nan
        with self.assertRaisesRegex(SystemExit, "became nan at step 6, .*step-4 is kept"):
            train((inputs, targets))
        self.assertEqual(tf.train.latest_checkpoint(self.workdir / "backup")[-6:], "step-4")
        best = keras.models.load_model(self.workdir / "best.keras", compile=False)
        self.assertTrue(all(np.isfinite(weight).all() for weight in best.weights))

    def test_weights_that_are_not_finite_are_not_saved(self):
        model = noisy_model()
        checkpoint, _ = run.callbacks(model, run.batches(examples(count=11)), BASELINE)
        model.layers[-1].bias.assign(np.full(CLASSES, np.inf))
        with self.assertRaisesRegex(SystemExit, "bias is not finite after step 0. Nothing had"):
            checkpoint.on_epoch_end(0)
        self.assertIsNone(tf.train.latest_checkpoint(self.workdir / "backup"))

    def test_a_checkpoint_of_another_model_is_refused_in_a_sentence(self):
        train()
        with (
            mock.patch(f"{__name__}.UNITS", 7),
            self.assertRaisesRegex(
                SystemExit, f"Cannot start from {self.workdir}/backup/step-8: .* another --workdir"
            ),
        ):
            train()

    def test_a_damaged_checkpoint_is_refused_and_removing_it_goes_back_to_the_one_before(self):
        train()
        data = self.workdir / "backup" / "step-8.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:100])
        with self.assertRaisesRegex(SystemExit, r"Cannot start from .*remove .*/step-8\.\*"):
            train()
        for file in self.workdir.glob("backup/step-8.*"):
            file.unlink()
        self.assert_is_the_whole_run(self.workdir, train())

    def test_a_log_without_rows_that_are_done_is_refused(self):
        train()
        (self.workdir / "log.csv").unlink()
        with self.assertRaisesRegex(SystemExit, "rows of epochs 0 to 2"):
            train()

    def test_a_longer_run_makes_the_steps_of_one_that_was_long_from_the_start(self):
        FLAGS.steps = 6
        train()
        FLAGS.steps = 8
        self.assert_is_the_whole_run(self.workdir, train())

    def test_the_figure_and_the_log_show_every_epoch(self):
        train()
        with (self.workdir / "log.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["step"] for row in rows], ["3", "6", "8"])
        self.assertEqual(
            list(rows[0]), ["epoch", "step", "accuracy", "loss", "val_accuracy", "val_loss"]
        )
        progress.draw_loss(self.workdir, BASELINE)
        self.assertStartsWith((self.workdir / "figures/loss.png").read_bytes(), b"\x89PNG")
        self.assertEqual([f.name for f in (self.workdir / "figures").iterdir()], ["loss.png"])


class KillBeforeWrite:
    """Kills the program at its `number`-th write; `names` are those it came to."""

    def __init__(self, number: int):
        self.number = number
        self.names = []

    def _write(self, name, real, *args, **kwargs):
        self.names.append(name)
        if len(self.names) - 1 == self.number:
            raise Killed
        return real(*args, **kwargs)

    def __enter__(self):
        self._patches = []
        for owner, name in (
            (os, "replace"),
            (keras.Model, "save"),
            (tf.train.CheckpointManager, "save"),
        ):
            real = getattr(owner, name)

            def write(*args, name=f"{owner.__name__}.{name}", real=real, **kwargs):
                return self._write(name, real, *args, **kwargs)

            patch = mock.patch.object(owner, name, write)
            patch.start()
            self._patches.append(patch)
        return self

    def __exit__(self, *exception):
        for patch in self._patches:
            patch.stop()


if __name__ == "__main__":
    absltest.main()
