"""The file of the best model; restarts are in run_test.py."""

import pathlib
import tempfile
import zipfile
from unittest import mock

import h5py
import keras
import numpy as np
from absl.testing import absltest

from zoo.checkpoint import SaveBest

INPUTS = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
TARGETS = np.arange(6) % 3


def make_model() -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"], jit_compile=False)
    return model


def fit(model: keras.Model, callbacks=()) -> None:
    """Two epochs of three steps, by two calls, as recipes train."""
    for epoch in range(2):
        model.fit(
            INPUTS,
            TARGETS,
            batch_size=2,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=(INPUTS, TARGETS),
            callbacks=list(callbacks),
            shuffle=False,
            verbose=0,
        )


def weights_in(path: pathlib.Path) -> dict[str, tuple]:
    """Returns the shapes of the arrays in a `.keras` file, by name."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item.shape

    with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as weights:
        with h5py.File(weights) as file:
            file.visititems(visit)
    return found


class SaveBestTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "best.keras"

    def test_the_file_has_the_weights_of_the_model_and_nothing_of_the_optimizer(self):
        model = make_model()
        fit(model, [SaveBest(self.path)])
        model.save(self.folder / "all.keras")
        self.assertIn("optimizer", str(weights_in(self.folder / "all.keras")))
        self.assertCountEqual(weights_in(self.path).values(), [(4, 3), (3,)])
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"all.keras", "best.keras"})

    def test_the_model_that_is_read_is_as_good_as_the_one_that_was_saved(self):
        model = make_model()
        fit(model, [SaveBest(self.path)])
        loaded = keras.saving.load_model(self.path, compile=False)
        loaded.compile(loss=model.loss, metrics=["accuracy"])
        self.assertEqual(
            loaded.evaluate(INPUTS, TARGETS, verbose=0), model.evaluate(INPUTS, TARGETS, verbose=0)
        )

    def test_training_goes_on_as_if_nothing_had_been_saved(self):
        saved, unsaved = make_model(), make_model()
        fit(saved, [SaveBest(self.path)])
        fit(unsaved)
        ours, theirs = (model.variables + model.optimizer.variables for model in (saved, unsaved))
        for variable, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(variable, other, err_msg=variable.path)

    def test_a_model_that_could_not_be_saved_keeps_its_optimizer_and_the_file_before(self):
        model = make_model()
        best = SaveBest(self.path)
        fit(model, [best])
        optimizer, before = model.optimizer, self.path.read_bytes()
        full = OSError("No space left on device")
        with mock.patch.object(keras.Model, "save", side_effect=full), self.assertRaises(OSError):
            best.on_epoch_end(2, {"val_loss": 0.0})
        self.assertIs(model.optimizer, optimizer)
        self.assertEqual(self.path.read_bytes(), before)

    def test_only_a_lower_loss_is_saved(self):
        best = SaveBest(self.path)
        best.set_model(make_model())
        for loss, expected in (
            (2.0, True),
            (2.0, False),
            (3.0, False),
            (np.nan, False),
            (1.0, True),
        ):
            self.path.unlink(missing_ok=True)
            best.on_epoch_end(0, {"val_loss": loss})
            self.assertEqual(self.path.exists(), expected, loss)
        self.assertEqual(best.best.numpy(), 1.0)


if __name__ == "__main__":
    absltest.main()
