"""What a run keeps of its corpus, and the measurements of its gradients."""

import json
import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from datasets import vocabulary
from datasets.records import Ragged
from tests.zoo.pointer_generator import tiny_run
from zoo.pointer_generator import diagnostics, kept
from zoo.pointer_generator.batches import ArticleBatches, Articles
from zoo.pointer_generator.model import PointerGenerator


class KeptTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data = tiny_run.prepare(cls.folder, "xsum")

    def setUp(self):
        super().setUp()
        self.run_folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_the_words_of_any_corpus_follow_the_symbols_of_see(self):
        kept.keep(self.data, self.run_folder, 12, 2, 7)
        text = kept.read(self.run_folder)
        self.assertEqual(text[1:], (12, 2, 7))
        self.assertEqual(text.vocabulary.specials, vocabulary.SEE)
        corpus = vocabulary.read(self.data / "vocabulary.txt")
        self.assertEqual(corpus.specials, vocabulary.XSUM)
        self.assertEqual(text.vocabulary.words[4:], corpus.words[4:])

    def test_no_more_is_read_than_the_corpus_holds(self):
        kept.keep(self.data, self.run_folder, 400, 2, 7)
        self.assertEqual(kept.read(self.run_folder).document_length, 20)

    def test_going_on_with_another_corpus_is_refused(self):
        kept.keep(self.data, self.run_folder, 12, 2, 7)
        (self.run_folder / "log.csv").touch()
        kept.keep(self.data, self.run_folder, 12, 2, 7)
        with self.assertRaisesRegex(ValueError, "another corpus.*document_length, min_length diff"):
            kept.keep(self.data, self.run_folder, 13, 3, 7)
        path = self.run_folder / "corpus.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "vocabulary_sha256": "x"}))
        with self.assertRaisesRegex(ValueError, "vocabulary_sha256 differ"):
            kept.keep(self.data, self.run_folder, 12, 2, 7)

    def test_a_run_of_another_recipe_is_refused(self):
        (self.run_folder / "corpus.json").write_text('{"document_length": 9}')
        with self.assertRaisesRegex(ValueError, "no run of zoo.*has no min_length, max_length"):
            kept.read(self.run_folder)

    def test_lengths_that_contradict_each_other_are_refused(self):
        with self.assertRaisesRegex(ValueError, "from 0 to max_length, 7, but is 8"):
            kept.keep(self.data, self.run_folder, 12, 8, 7)

    def test_a_folder_without_corpus_or_run_is_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "manifest.json.*datasets"):
            kept.keep(self.run_folder, self.run_folder, 12, 2, 7)
        with self.assertRaisesRegex(FileNotFoundError, "corpus.json.*train"):
            kept.read(self.run_folder)
        with self.assertRaisesRegex(FileNotFoundError, "best.keras.*first epoch"):
            kept.load_model(self.run_folder)

    def test_a_model_of_mixed_precision_is_loaded_in_that_of_its_weights(self):
        kept.keep(self.data, self.run_folder, 12, 2, 7)
        words = len(kept.read(self.run_folder).vocabulary)
        options = {"embedding": 3, "units": 2, "decoder": "rum", "dtype": "mixed_bfloat16"}
        model = PointerGenerator(words, **options)
        model.build()
        model.save(self.run_folder / "best.keras")
        inputs = {"document": np.array([[4, 5]]), "summary": np.array([[2, 6]])}
        outputs = kept.load_model(self.run_folder)(inputs)
        self.assertEqual(keras.backend.standardize_dtype(outputs["logits"].dtype), "float32")


class DiagnosticsTest(parameterized.TestCase):
    @parameterized.parameters(
        {"decoder": "rum", "coverage": True}, {"pointer": False}, {"dtype": "mixed_bfloat16"}
    )
    def test_gradients_reach_every_word_and_no_padding(self, **options):
        rows = Ragged(np.array([4, 5, 6, 12, 4], np.int32), np.array([0, 4, 5]))
        options, copy = {"dtype": None, **options}, options.get("pointer", True)
        batch = ArticleBatches(Articles(rows, rows, 12), 2, 1, 1, 0, copy=copy).batch([0, 1])
        model = tiny_run.make_model(12, **options)
        found = diagnostics.measure(model, batch)
        self.assertLen(found["encoder"], 4)
        self.assertLen(found["decoder"], 5)
        self.assertGreater(min(found["encoder"] + found["decoder"] + [found["hidden_norm"]]), 0)
        # Of the second article no more than its own words is counted: alone it gives the rest.
        alone = ArticleBatches(Articles(rows, rows, 12), 1, 1, 1, 0, copy=copy)
        first, second = (diagnostics.measure(model, alone.batch([i])) for i in (0, 1))
        if options["dtype"] is None:
            # A batch's loss is the mean over its articles.
            both = (first["encoder"][0] + second["encoder"][0]) / 4
            self.assertAlmostEqual(found["encoder"][0], both, delta=1e-4 * both)
            self.assertAlmostEqual(found["encoder"][3], first["encoder"][3] / 2, places=6)

    def test_the_gradient_is_that_of_the_models_loss(self):
        rows = Ragged(np.array([4, 5, 12], np.int32), np.array([0, 3]))
        inputs, target, weights = ArticleBatches(Articles(rows, rows, 12), 1, 1, 1, 0).batch([0])
        model = tiny_run.make_model(12, coverage=True)

        def loss():
            return float(model.compute_loss(inputs, target, model(inputs), weights))

        # Word 5 is read by encoder and decoder at one step each; word 4 the same.
        table, step = model.embedding.embeddings, 1e-3
        before, norm = table.numpy(), []
        inputs = {**inputs, "summary": np.array([[2, 7, 7, 7]], np.int32)}
        for i in range(table.shape[1]):
            moved = []
            for sign in (1, -1):
                changed = before.copy()
                changed[5, i] += sign * step
                table.assign(changed)
                moved.append(loss())
            norm.append((moved[0] - moved[1]) / (2 * step))
        table.assign(before)
        found = diagnostics.measure(model, (inputs, target, weights))["encoder"][1]
        self.assertAlmostEqual(found, np.linalg.norm(norm), delta=2e-2 * np.linalg.norm(norm))


if __name__ == "__main__":
    absltest.main()
