"""The language model's recipe with all noise, XLA and half precision, and grown to more epochs."""

import pytest
from absl.testing import absltest

from tests.zoo.ptb.recipe_folder import RecipeFolder

FAST_SLOW = "--model=fs_rum --fast_units=5 --units=6 --eta=1 --zoneout_h=0.1 --dropout=0.1".split()


@pytest.mark.slow
class PtbRecipeTest(RecipeFolder):
    def test_xla_in_half_precision_and_a_learning_rate_that_is_zero_from_an_epoch_on(self):
        done = self.run_recipe(
            "xla", *FAST_SLOW, "--epochs=3", "--max_steps=8", "--jit_compile=true",
            "--dtype=mixed_bfloat16", "--learning_rates=1e-2,0", "--learning_rate_epochs=1",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        rows = self.log("xla")
        self.assertEqual([row["step"] for row in rows], [5, 8])
        self.assertEqual(rows[0]["val_loss"], rows[1]["val_loss"])
        self.assertNotAlmostEqual(rows[0]["loss"], rows[1]["loss"])

    def test_a_run_goes_on_for_more_epochs(self):
        for epochs in (1, 2):
            done = self.run_recipe("grown", *FAST_SLOW, f"--epochs={epochs}")
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("Going on from step 5", done.stdout)
        whole = self.run_recipe("whole", *FAST_SLOW, "--epochs=2")
        self.assertEqual(whole.returncode, 0, whole.stderr[-2000:])
        for ours, theirs in zip(self.log("grown"), self.log("whole"), strict=True):
            for row in (ours, theirs):
                del row["characters_per_second"]
            self.assertEqual(ours, theirs)

    def test_flags_that_do_not_fit_are_told(self):
        for flag, message in (
            ("--strategy=multi_worker", "--strategy=mirrored"),
            ("--learning_rates=1,2", "one more than --learning_rate_epochs"),
        ):
            done = self.run_recipe("refused", flag)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    absltest.main()
