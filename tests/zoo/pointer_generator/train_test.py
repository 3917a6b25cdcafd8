"""The recipe: what a run leaves behind, and coverage from a run without it."""

import json

import numpy as np
from absl.testing import absltest

from tests.zoo.pointer_generator.recipe_folder import RecipeFolder, train
from tests.zoo.recipe import rows
from zoo import progress
from zoo.pointer_generator import kept


class RecipeTest(RecipeFolder):
    def test_a_run_leaves_its_figures_and_all_that_summarizing_takes(self):
        self.assertEqual(self.process.returncode, 0, self.process.stderr)
        metrics = json.loads((self.whole / "metrics.json").read_text())
        self.assertEqual(metrics["recipe"], "zoo.pointer_generator.train")
        self.assertEqual(metrics["steps_taken"], 6)
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
        options = "--coverage", start, "--learning_rate=0", "--steps=3"
        # Before its first checkpoint, which is at step 2: it has taken no weights for good.
        self.assertEqual(train(self.data, workdir, *options, killed_at=1).returncode, -9)
        done = train(self.data, workdir, *options)
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

    def test_options_of_rums_without_a_rum_are_refused(self):
        options = "--decoder=lstm", "--eta=1", "--activation=tanh"
        done = train(self.data, self.folder / "lstms", *options)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--eta, --activation: for RUMs, but encoder and decoder are", done.stderr)

    def test_weights_of_another_model_are_refused(self):
        start = f"--from={self.whole}"
        done = train(self.data, self.folder / "other", start, "--decoder=lstm", "--units=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("decoder is 'rum', not 'lstm'", done.stderr)
        self.assertIn("units is 3, not 4", done.stderr)


if __name__ == "__main__":
    absltest.main()
