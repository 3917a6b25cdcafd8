"""The pointer-generator's recipe, killed, on two devices, in half precision, and by heart."""

import numpy as np
import pytest
from absl.testing import absltest

from tests.zoo.pointer_generator.recipe_folder import RecipeFolder, train
from tests.zoo.recipe import rows, saved
from zoo.pointer_generator import kept


@pytest.mark.slow
class PointerGeneratorRecipeTest(RecipeFolder):
    def test_a_run_killed_between_checkpoints_ends_as_one_that_was_not(self):
        workdir, options = self.folder / "killed", ("--diagnostics", "--patience=9")
        self.assertEqual(train(self.data, workdir, *options, killed_at=5).returncode, -9)
        again = train(self.data, workdir, *options)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("Going on from step 4", again.stdout)
        expected = saved(self.whole)
        for name, value in saved(workdir).items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
        self.assertEqual(rows(workdir), rows(self.whole))

    def test_two_devices_train_like_one(self):
        workdir = self.folder / "two"
        devices = ("--strategy=mirrored", "--logical_devices=2")
        done = train(self.data, workdir, "--diagnostics", "--patience=9", *devices)
        self.assertEqual(done.returncode, 0, done.stderr)
        for row, other in zip(rows(workdir), rows(self.whole), strict=True):
            np.testing.assert_allclose(list(row.values()), list(other.values()), rtol=1e-4)
        ours, theirs = (kept.load_model(folder).weights for folder in (workdir, self.whole))
        for weight, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(weight, other, rtol=1e-4, atol=1e-6, err_msg=weight.path)

    def test_xla_which_cannot_train_it_is_refused(self):
        workdir = self.folder / "xla"
        done = train(self.data, workdir, "--jit_compile=true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--jit_compile=true: XLA has no gradient", done.stderr)
        self.assertFalse((workdir / "corpus.json").exists())

    def test_half_precision_trains(self):
        for dtype in ("mixed_float16", "mixed_bfloat16"):
            workdir = self.folder / dtype
            done = train(self.data, workdir, f"--dtype={dtype}", "--diagnostics")
            self.assertEqual(done.returncode, 0, done.stderr)
            for row, other in zip(rows(workdir), rows(self.whole), strict=True):
                self.assertAlmostEqual(row["val_loss"], other["val_loss"], delta=0.05)

    def test_articles_are_learnt_by_heart_and_training_ends_without_gain(self):
        workdir = self.folder / "overfit"
        options = ("--overfit=2", "--units=12", "--embedding=12", "--steps=300")
        more = ("--steps_per_epoch=50", "--lengths=0:20:12", "--patience=2")
        done = train(self.data, workdir, *options, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(rows(workdir)[-1]["val_loss"], 0.5)


if __name__ == "__main__":
    absltest.main()
