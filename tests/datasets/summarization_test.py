"""Tests of preparing a corpus: what is kept, what is dropped, and going on after a stop."""

import functools
import json
import pathlib
import tempfile
from collections import Counter

import numpy as np
from absl.testing import absltest

from datasets import (
    articles,
    prepare_command,
    records,
    splits,
    summarization,
    text_shards,
    vocabulary,
)
from datasets.articles import Article
from datasets.summarization import Settings

SMALL = Settings(
    vocabulary_size=5, document_length=4, summary_length=2, counted_length=4, examples_per_shard=2
)
TEXTS = {
    "a": ("The sun. The end of it", "Sun is out"),
    "b": ("rain rain", "Wet"),
    "c": ("", "Nothing"),
    "d": ("Fog", " \n "),
    "e": ("snow", "White"),
    "f": ("wind", "Windy"),
}


def corpus(texts=TEXTS, torn="train"):
    for name, pair in texts.items():
        split = {"e": "validation", "f": "test"}.get(name, "train")
        read = functools.partial(articles.given, *pair)
        yield Article(split, name, f"file:{name}", read)
    read = functools.partial(articles.fail, "it is torn")
    yield Article(torn, "torn", "file:9", read)


def shout(text):
    return text.replace("rain", "hail"), Counter(rain=text.count("rain"))


class SummarizationTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name, "data")

    def _prepare(self, settings=SMALL, source=corpus, **options):
        places = splits.assign(source())
        return summarization.prepare(source, places, self.output, settings, processes=1, **options)

    def _contents(self):
        files = sorted(path for path in self.output.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    def test_the_manifest_says_what_was_kept_and_what_dropped_and_why(self):
        manifest = self._prepare()
        train = manifest["splits"]["train"]
        self.assertEqual((train["read"], train["kept"]), (5, 2))
        reasons = {"document is empty": 1, "summary is empty": 1, "it is torn": 1}
        self.assertEqual(train["dropped"], reasons)
        self.assertEqual(train["mean_tokens"], {"document": 5.5, "summary": 3})
        self.assertEqual(
            (self.output / "dropped.txt").read_text(),
            "file:c: document is empty\nfile:d: summary is empty\nfile:9: it is torn\n",
        )
        self.assertEqual(json.loads((self.output / "manifest.json").read_text()), manifest)
        self.assertIn("train: kept 2 of 5; mean 5.5 document", prepare_command.report(manifest))

    def test_text_is_whole_and_records_are_cut(self):
        self._prepare()
        row = next(text_shards.load(self.output, "train"))
        self.assertEqual(row["document"], ["the sun .", "the end of it ."])
        split = records.load(self.output, "train")
        self.assertEqual((split.ids, split.document.lengths.tolist()), (["a", "b"], [4, 3]))
        words = vocabulary.read(self.output / "vocabulary.txt")
        self.assertEqual(words.decode(split.document[0]), ["the", "sun", ".", "the"])
        self.assertEqual(split.summary.lengths.tolist(), [2, 2])

    def test_the_vocabulary_is_of_cut_training_documents_and_whole_summaries(self):
        self._prepare()
        words = vocabulary.read(self.output / "vocabulary.txt").words[4:]
        # "." 4 times, "the", "rain" and "sun" twice, then "is"; "end" is cut away.
        self.assertEqual(words, [".", "the", "sun", "rain", "is"])

    def test_of_words_as_frequent_those_of_all_documents_come_first(self):
        texts = {"a": ("x.", "s."), "b": ("y.", "t."), "g": ("z.", "u.")}
        self._prepare(SMALL.replaced(vocabulary_size=9), functools.partial(corpus, texts))
        words = vocabulary.read(self.output / "vocabulary.txt").words[4:]
        self.assertEqual(words, [".", "x", "y", "z", "s", "t", "u"])

    def test_hashes_are_those_of_the_files(self):
        manifest = self._prepare()
        files = manifest["splits"]["train"]["files"]
        self.assertLen(files, 6)
        for name, found in files.items():
            self.assertEqual(found, summarization.sha256(self.output / name))

    def test_preparing_again_changes_nothing(self):
        self._prepare()
        before = self._contents()
        self._prepare()
        self.assertEqual(self._contents(), before)

    def test_a_run_that_was_stopped_ends_as_one_that_was_not(self):
        self._prepare()
        before = self._contents()
        for name in ("manifest.json", "vocabulary.txt", "text/train-00001-of-00003.jsonl.gz"):
            (self.output / name).unlink()
        (self.output / "records" / "train-00000-of-00003.tfrecord").unlink()
        (self.output / ".done" / "train-00002-of-00003.json").unlink()
        self._prepare()
        self.assertEqual(self._contents(), before)

    def test_what_is_done_is_not_read_again(self):
        self._prepare()

        def unreadable():
            for article in corpus():
                yield article._replace(read=functools.partial(articles.fail, "read again"))

        self.assertEqual(self._prepare(source=unreadable)["splits"]["train"]["kept"], 2)

    def test_other_settings_or_articles_need_another_folder(self):
        self._prepare()
        with self.assertRaisesRegex(ValueError, "begun with another vocabulary_size .5, now 6"):
            self._prepare(SMALL.replaced(vocabulary_size=6))
        fewer = functools.partial(corpus, {"a": TEXTS["a"]})
        with self.assertRaisesRegex(ValueError, "begun with another list of articles"):
            self._prepare(source=fewer)

    def test_files_that_were_edited_need_another_folder(self):
        path = self.output.parent / "a.jsonl"
        path.write_text("one\n")

        def source():
            for article in corpus():
                yield article._replace(where=f"{path}:1")

        self._prepare(source=source)
        path.write_text("one, mended\n")
        with self.assertRaisesRegex(ValueError, "another text .*have other sizes now"):
            self._prepare(source=source)

    def test_a_corpus_without_one_usable_training_article_is_refused(self):
        texts = {"a": ("It rains", ""), "e": ("snow", "White")}
        with self.assertRaisesRegex(ValueError, "file:a: summary is empty. All are in .*dropped"):
            self._prepare(source=functools.partial(corpus, texts))
        self.assertFalse((self.output / "manifest.json").exists())

    def test_a_vocabulary_that_cannot_be_read_is_refused_before_the_work(self):
        with self.assertRaisesRegex(ValueError, "--vocabulary=nowhere: No such file"):
            self._prepare(SMALL.replaced(vocabulary="nowhere"))
        self.assertFalse(self.output.exists())

    def test_a_damaged_text_file_is_named_and_written_again(self):
        self._prepare()
        before = self._contents()
        path = self.output / "text" / "train-00000-of-00003.jsonl.gz"
        path.write_bytes(path.read_bytes()[:-9])
        with self.assertRaisesRegex(ValueError, "00003.jsonl.gz is damaged: .* Remove it and"):
            list(text_shards.load(self.output, "train"))
        path.unlink()
        self._prepare()
        self.assertEqual(self._contents(), before)

    def test_a_damaged_record_file_is_named(self):
        self._prepare()
        path = self.output / "records" / "train-00000-of-00003.tfrecord"
        path.write_bytes(path.read_bytes()[:-9])
        with self.assertRaisesRegex(ValueError, "00003.tfrecord is damaged or cut short. Remove"):
            records.load(self.output, "train")

    def test_a_cleaner_is_applied_and_counted(self):
        manifest = self._prepare(clean=shout)
        self.assertEqual(manifest["splits"]["train"]["cleaned"], {"rain": 2})
        self.assertEqual(
            list(text_shards.load(self.output, "train"))[1]["document"], ["hail hail ."]
        )

    def test_articles_without_a_split_are_counted(self):
        places = splits.assign(corpus(), {"a": "train", "f": "test"})
        manifest = summarization.prepare(corpus, places, self.output, SMALL, processes=1)
        self.assertEqual(manifest["dropped_without_split"], {"id is not in the list of splits": 5})
        self.assertIn("file:b: id is not", (self.output / "dropped.txt").read_text())

    def test_a_given_vocabulary_is_taken(self):
        self.output.parent.joinpath("counts").write_text("sun 9\nwet 3\n")
        counts = str(self.output.parent / "counts")
        self._prepare(SMALL.replaced(vocabulary=counts, specials="see"))
        words = vocabulary.read(self.output / "vocabulary.txt").words
        self.assertEqual(words, ["[UNK]", "[PAD]", "[START]", "[STOP]", "sun", "wet"])

    def test_without_training_articles_a_vocabulary_must_be_given(self):
        with self.assertRaisesRegex(ValueError, "no training articles .* give --vocabulary"):
            self._prepare(source=functools.partial(corpus, {"f": TEXTS["f"]}, torn="test"))

    def test_two_processes_write_what_one_writes(self):
        self._prepare()
        before = self._contents()
        places = splits.assign(corpus())
        for path in (self.output / "text").iterdir():
            path.unlink()
        shards = text_shards.write(corpus(), places, self.output, 2, None, processes=2)
        self.assertEqual(self._contents(), before)
        self.assertLen(shards, 5)

    def test_an_inference_that_was_stopped_between_two_files_is_told(self):
        self._prepare(SMALL.replaced(examples_per_shard=1))
        paths = [f"train-0000{i}-of-00005.tfrecord" for i in (3, 1)]
        paths = [self.output / "records" / path for path in paths]
        words = vocabulary.read(self.output / "vocabulary.txt")
        for path in paths[1:]:
            records.write(path, [records.encode("b", ["rain"], ["wet"], words, np.ones(3))])
        records.write(paths[0], [records.encode("g", ["rain"], ["wet"], words)])
        (self.output / "records" / "train-00000-of-00005.tfrecord").unlink()
        with self.assertRaisesRegex(ValueError, "have 3 topics .* datasets.topics infer --data="):
            records.load(self.output, "train")

    def test_topics_are_put_into_records_and_manifest(self):
        self._prepare()
        # The three files of the training split hold 2, 0 and 0 articles.
        found = {"train": [np.array([[0, 1], [0.25, 0.75]]), np.zeros([0, 2]), np.zeros([0, 2])]}
        found |= {"validation": [np.ones([1, 2])], "test": [np.ones([1, 2])]}
        summarization.add_topics(self.output, found, processes=1)
        split = records.load(self.output, "train")
        self.assertEqual(split.topics_document.tolist(), [[0, 1], [0.25, 0.75]])
        manifest = json.loads((self.output / "manifest.json").read_text())
        self.assertEqual(manifest["topics"], 2)
        for name, digest in manifest["splits"]["train"]["files"].items():
            self.assertEqual(digest, summarization.sha256(self.output / name))


if __name__ == "__main__":
    absltest.main()
