"""Tests of what a run keeps of its corpus."""

import json
import pathlib
import shutil
import tempfile

import keras
import numpy as np
from absl.testing import absltest

from datasets import topics, vocabulary
from tests.zoo.xsum import tiny_run
from zoo.xsum import kept
from zoo.xsum.model import TopicConvS2S


class KeptTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.data, self.run_folder = tiny_run.write(self.folder)

    def test_a_run_reads_text_as_its_corpus_when_that_is_gone(self):
        words, corpus = vocabulary.read(self.data / "vocabulary.txt"), topics.load(self.data)
        shutil.rmtree(self.data)
        text = kept.read(self.run_folder)
        self.assertEqual(text.vocabulary.words, words.words)
        self.assertEqual(text.document_length, tiny_run.DOCUMENT_LENGTH)
        document = ["the", "rain", "fell", "on", "march", "zzz"]
        np.testing.assert_array_equal(text.topics.infer(document), corpus.infer(document))

    def test_going_on_with_another_corpus_is_refused(self):
        kept.keep(self.data, self.run_folder, with_topics=True)
        path = self.data / "topics" / "topics.json"
        described = json.loads(path.read_text())
        described["files"]["topics.npz"] = "other"
        path.write_text(json.dumps(described))
        with self.assertRaisesRegex(ValueError, "begun with another corpus.*topics_sha256 differ"):
            kept.keep(self.data, self.run_folder, with_topics=True)

    def test_a_run_that_made_nothing_can_be_begun_with_another_corpus(self):
        folder = self.folder / "new"
        folder.mkdir()
        kept.keep(self.data, folder, with_topics=True)
        kept.keep(self.data, folder, with_topics=False)
        self.assertIsNone(kept.read(folder).topics)

    def test_a_vocabulary_that_is_not_the_corpus_s_own_is_refused(self):
        path = self.data / "vocabulary.txt"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
        with self.assertRaisesRegex(ValueError, "vocabulary.txt is not the vocabulary that"):
            kept.keep(self.data, self.folder / "new", with_topics=True)
        path.unlink()
        with self.assertRaisesRegex(FileNotFoundError, "no .*vocabulary.txt"):
            kept.keep(self.data, self.folder / "new", with_topics=True)

    def test_damaged_files_of_a_run_are_named(self):
        path = self.run_folder / "vocabulary.txt"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
        with self.assertRaisesRegex(ValueError, "vocabulary.txt has .* words, but the model has"):
            kept.load_model(self.run_folder)
        (self.run_folder / "best.keras").write_text("no archive")
        with self.assertRaisesRegex(
            ValueError, "best.keras is damaged, or no model of this version of zoo.xsum"
        ):
            kept.load_model(self.run_folder)
        (self.run_folder / "corpus.json").write_text("{")
        with self.assertRaisesRegex(ValueError, "corpus.json is damaged.*train"):
            kept.read(self.run_folder)

    def test_a_corpus_without_topics_is_refused_where_they_are_needed(self):
        shutil.rmtree(self.data / "topics")
        kept.keep(self.data, self.folder, with_topics=False)
        with self.assertRaisesRegex(FileNotFoundError, "no .*topics.json.*datasets.topics"):
            kept.keep(self.data, self.folder / "other", with_topics=True)

    def test_a_model_of_mixed_precision_is_loaded_in_that_of_its_weights(self):
        options = {"units": 4, "encoder_layers": [(4, 3)], "decoder_layers": [(4, 3)]}
        words = len(kept.read(self.run_folder).vocabulary)
        model = TopicConvS2S(words, dtype="mixed_bfloat16", **options)
        model.build()
        model.save(self.run_folder / "best.keras")
        loaded = kept.load_model(self.run_folder)
        full = TopicConvS2S(words, dtype="float32", **options)
        full.build()
        full.set_weights(model.get_weights())
        inputs = {"document": np.array([[4, 5, 2]]), "summary": np.array([[2, 6]])}
        np.testing.assert_array_equal(loaded(inputs), full(inputs))
        self.assertEqual(keras.backend.standardize_dtype(loaded(inputs).dtype), "float32")


if __name__ == "__main__":
    absltest.main()
