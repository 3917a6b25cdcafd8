"""Tests of training topics, of p(topic | word), and of the topics' files."""

import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from gensim.models import LdaModel

from datasets import (
    articles,
    records,
    released_topics,
    splits,
    summarization,
    text_shards,
    topic_model,
    topic_training,
    topics,
    vocabulary,
)
from datasets.articles import Article
from datasets.topic_model import Topics

ROOT = pathlib.Path(__file__).parents[2]
WEATHER = "The storm brings rain. Storms bring rain and more snow."
SPORT = "The striker scored a goal. Strikers score goals for a team."


def corpus():
    for i in range(24):
        document = (WEATHER, SPORT)[i % 2]
        split = {22: "validation", 23: "test"}.get(i, "train")
        read = functools.partial(articles.given, document, "A summary")
        yield Article(split, str(i), f"file:{i}", read)


@functools.cache
def _prepared():
    """A corpus with two topics; cached, for training takes a second."""
    folder = tempfile.TemporaryDirectory()
    data = pathlib.Path(folder.name, "data")
    settings = summarization.Settings(vocabulary_size=30, examples_per_shard=10)
    places = splits.assign(corpus())
    summarization.prepare(corpus, places, data, settings, processes=1)
    trained, described = topic_training.train(data, topics=2, passes=12, chunk=8, processes=1)
    topics.save(trained, data, described)
    topics.infer(data, processes=1)
    return folder, data


class TrainedTopicsTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.data = _prepared()[1]
        self.topics = topics.load(self.data)

    def test_topics_are_over_lemmas_of_training_words(self):
        self.assertIn("storm", self.topics.lemmas)
        self.assertNotIn("storms", self.topics.lemmas)
        ids = self.topics.word_ids
        self.assertEqual(ids["storms"], ids["storm"])
        self.assertEqual(ids["goals"], ids["goal"])
        self.assertNoCommonElements(ids, ["the", ".", "summary", "more"])

    def test_documents_of_two_kinds_have_two_topics(self):
        split = records.load(self.data, "train")
        found = split.topics_document.argmax(axis=1)
        kinds = np.array([int(name) % 2 for name in split.ids])
        self.assertIn((found == kinds).mean(), (0, 1))
        self.assertTrue((split.topics_document.max(axis=1) > 0.9).all())

    def test_inferred_topics_are_those_of_whole_documents_in_order(self):
        rows = list(text_shards.load(self.data, "train"))
        expected = [self.topics.infer(text_shards.words(row["document"])) for row in rows]
        found = np.load(self.data / "topics" / "documents-train.npy")
        np.testing.assert_array_equal(found, np.array(expected))
        np.testing.assert_array_equal(records.load(self.data, "train").topics_document, found)

    def test_top_words_are_shown_as_in_table_3(self):
        lines = topics.show(self.topics, 2, 3).splitlines()
        self.assertLen(lines, 2)
        tops = {tuple(sorted(line.split("%  ")[1].split(", "))) for line in lines}
        self.assertIn(("bring", "rain", "storm"), tops)
        first = topics.show(self.topics, 1, 3, text="Rain, rain and storms")
        self.assertIn("rain", first)
        self.assertLen(first.splitlines(), 1)

    def test_the_files_say_what_they_were_made_with(self):
        described = json.loads((self.data / "topics" / "topics.json").read_text())
        self.assertEqual((described["topics"], described["documents"]), (2, 22))
        self.assertGreater(described["documents_a_second"], 0)
        self.assertGreater(described["inferred_a_second"], 0)
        for name, digest in described["files"].items():
            self.assertEqual(digest, summarization.sha256(self.data / "topics" / name))

    def test_no_file_needs_a_pickle(self):
        with np.load(self.data / "topics" / "topics.npz", allow_pickle=False) as arrays:
            names = ["topic_words", "alpha", "prior", "word_topics", "word_topics_released"]
            self.assertSameElements(arrays.files, names)
            self.assertEqual(arrays["word_topics"].dtype, np.float32)
            words = vocabulary.read(self.data / "vocabulary.txt")
            self.assertEqual(arrays["word_topics"].shape, (len(words), 2))

    def test_a_seed_fixes_the_topics_of_one_process(self):
        again, _ = topic_training.train(self.data, topics=2, passes=12, chunk=8, processes=1)
        np.testing.assert_array_equal(again.topic_words, self.topics.topic_words)

    @parameterized.parameters("normalised", "released")
    def test_word_topics_are_read_without_the_model(self, form):
        words = vocabulary.read(self.data / "vocabulary.txt")
        expected = self.topics.word_topics(words, form)
        np.testing.assert_array_equal(topics.load_word_topics(self.data, form), expected)

    def test_the_command_shows_topics_and_keeps_what_is_trained(self):
        command = [sys.executable, "-m", "datasets.topics", "show", f"--data={self.data}"]
        done = subprocess.run(
            command + ["--count=1"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        self.assertRegex(done.stdout, r"^T[01] +\d+\.\d%  \w+, ")
        command[3] = "train"
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertIn("holds topics already: --overwrite", done.stderr)

    def test_a_folder_without_topics_or_articles_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for load in (topics.load, topics.load_word_topics):
                with self.assertRaisesRegex(FileNotFoundError, "datasets.topics train --data="):
                    load(folder)
            with self.assertRaisesRegex(FileNotFoundError, "no training documents: prepare"):
                topic_training.train(pathlib.Path(folder))

    def _damaged(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        data = pathlib.Path(folder.name, "data")
        shutil.copytree(self.data, data)
        (data / name).write_bytes((data / name).read_bytes()[:30])
        return data

    @parameterized.parameters("topics.npz", "words.json")
    def test_damaged_topics_are_named(self, name):
        data = self._damaged(f"topics/{name}")
        with self.assertRaisesRegex(ValueError, "data/topics is damaged: .* --overwrite"):
            topics.load(data)

    @parameterized.parameters("topics/topics.json", "manifest.json")
    def test_what_inference_lacks_is_named_with_the_command_that_makes_it(self, name):
        data = self._damaged(name)
        with self.assertRaisesRegex(ValueError, f"{name} is damaged: .* python -m datasets"):
            topics.infer(data, processes=1)
        (data / name).unlink()
        with self.assertRaisesRegex(FileNotFoundError, f"no .*{name}: it comes from python -m"):
            topics.infer(data, processes=1)

    def test_the_command_names_a_file_that_it_cannot_read(self):
        command = [sys.executable, "-m", "datasets.topics", "show", f"--data={self.data}"]
        command.append(f"--article={self.data}")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"datasets.topics: --article: {self.data}: Is a directory.\n")

    def test_the_command_says_what_to_install(self):
        code = "import runpy, sys; sys.modules['gensim'] = sys.modules['gensim.models'] = None; "
        code += f"sys.argv = ['topics', 'train', '--data={self.data}', '--overwrite']; "
        code += "runpy.run_module('datasets.topics', run_name='__main__')"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^datasets.topics: .*; pip install -e '.\[topics\]' brings")

    def test_training_asks_for_the_vocabulary_before_its_work(self):
        data = self._damaged("manifest.json")
        (data / "vocabulary.txt").unlink()
        command = [sys.executable, "-m", "datasets.topics", "train", f"--data={data}"]
        command.append("--overwrite")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^datasets.topics: There is no .*vocabulary.txt: give the")


class WordTopicsTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        topic_words = np.array([[6.0, 2.0, 1e-9], [2.0, 1e-9, 6.0]], np.float32)
        self.topics = Topics.of(
            ["rain", "sun", "goal"], {"rain": 0, "suns": 1, "goal": 2}, topic_words, [1, 3]
        )
        self.words = vocabulary.Vocabulary(["goal", "the", "rain"])

    def test_normalised_rows_are_p_of_topic_given_word(self):
        found = self.topics.word_topics(self.words, "normalised")
        prior = [0.25, 0.75]
        expected = [prior, [0, 0], prior, prior, [0, 1], prior, [0.75, 0.25]]
        np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_released_rows_are_expectations_with_a_floor(self):
        found = self.topics.word_topics(self.words, "released")
        kept = self.topics.expected[self.topics.expected >= 1e-8]
        self.assertLen(kept, 4)
        np.testing.assert_array_equal(found[6], self.topics.expected[0])
        np.testing.assert_array_equal(found[4], [kept.min(), self.topics.expected[2, 1]])
        np.testing.assert_array_equal(found[5], [kept.min()] * 2)
        np.testing.assert_array_equal(found[1], [0, 0])

    def test_the_released_form_is_the_default(self):
        np.testing.assert_array_equal(
            self.topics.word_topics(self.words), self.topics.word_topics(self.words, "released")
        )

    def test_another_form_is_refused(self):
        with self.assertRaisesRegex(ValueError, "normalised or released, got 'raw'"):
            self.topics.word_topics(self.words, "raw")

    def test_special_symbols_are_unknown_even_if_a_document_holds_them(self):
        odd = Topics.of(["<unk>"], {"<unk>": 0}, [[1.0], [3.0]], [1, 1])
        np.testing.assert_allclose(odd.word_topics(self.words, "normalised")[3], [0.5, 0.5])

    def test_top_words_are_the_likeliest_first(self):
        self.assertEqual(self.topics.top_words(2), [["rain", "sun"], ["goal", "rain"]])


class ReleasedTopicsTest(absltest.TestCase):
    def test_a_pickle_is_loaded_only_on_trust(self):
        model = _prepared()[1] / "manifest.json"
        with self.assertRaisesRegex(ValueError, "pickle.* add --i_trust_this_file"):
            released_topics.convert(model, _prepared()[1])

    def test_a_model_of_gensim_becomes_plain_arrays(self):
        data = _prepared()[1]
        names = ["storm", "goal", "tax"]
        lda = LdaModel(
            [[(0, 3)], [(1, 2)]], num_topics=2, id2word=dict(enumerate(names)), random_state=0
        )
        with tempfile.TemporaryDirectory() as folder:
            lda.save(f"{folder}/lda.model")
            copy = pathlib.Path(folder, "data")
            (copy / "text").mkdir(parents=True)
            for path in [data / "vocabulary.txt", *(data / "text").iterdir()]:
                (copy / path.relative_to(data)).write_bytes(path.read_bytes())
            model = pathlib.Path(folder, "lda.model")
            released_topics.convert(model, copy, i_trust_this_file=True, processes=1)
            found = topic_model.load(copy)
        self.assertEqual(found.lemmas, names)
        expected = {"storm": 0, "storms": 0, "goal": 1, "goals": 1, "tax": 2}
        self.assertEqual(found.word_ids, expected)
        np.testing.assert_allclose(found.topic_words, lda.state.get_lambda(), rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
