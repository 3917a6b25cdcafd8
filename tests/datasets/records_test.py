"""Tests of TFRecords and of ragged rows in memory."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import records, vocabulary
from datasets.records import Ragged

WORDS = vocabulary.Vocabulary(["the", "won"], vocabulary.SEE)


def ragged(rows):
    values = np.array([x for row in rows for x in row], np.int32)
    return Ragged(values, np.cumsum([0, *map(len, rows)]))


class RaggedTest(parameterized.TestCase):
    @settings(deadline=None, max_examples=20)
    @given(
        st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=6),
        st.booleans(),
        st.none() | st.integers(0, 6),
    )
    def test_padding_keeps_rows_and_their_order(self, rows, left, length):
        matrix = ragged(rows).padded(reversed(range(len(rows))), -1, length, left)
        self.assertEqual(matrix.dtype, np.int32)
        for line, row in zip(matrix, reversed(rows), strict=True):
            cut = row[:length]
            fill = [-1] * (len(line) - len(cut))
            self.assertEqual(line.tolist(), fill + cut if left else cut + fill)

    def test_rows_have_lengths_and_places(self):
        rows = ragged([[1], [], [2, 3]])
        self.assertEqual((len(rows), rows.lengths.tolist()), (3, [1, 0, 2]))
        self.assertEqual(
            (rows[2].tolist(), rows[-1].tolist(), rows[1].tolist()), ([2, 3],) * 2 + ([],)
        )
        with self.assertRaisesRegex(IndexError, "row must be below 3, got 3"):
            rows[3]

    def test_no_rows_are_a_matrix_without_any(self):
        self.assertEqual(ragged([[1]]).padded([], 0).shape, (0, 0))


class RecordsTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "records").mkdir()

    def _write(self, name, articles, topics=None):
        examples = [
            records.encode(f"id{i}", *article, WORDS, None if topics is None else topics[i])
            for i, article in enumerate(articles)
        ]
        return records.write(self.folder / "records" / name, examples)

    def test_an_example_holds_ids_words_and_copied_words(self):
        example = records.encode("é", ["zoe", "the", "zoe"], ["zoe", "won", "eve"], WORDS)
        found = records.parse(
            tf.constant([example]),
            ["document", "summary", "document_words", "summary_words", "copied_words"]
            + ["document_extended", "summary_extended", "id"],
        )
        found = {
            name: (value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy())[0]
            for name, value in found.items()
        }
        self.assertEqual(found.pop("id").decode(), "é")
        self.assertEqual(
            found,
            {
                "document": [0, 4, 0],
                "summary": [0, 5, 0],
                "document_words": [b"zoe", b"the", b"zoe"],
                "summary_words": [b"zoe", b"won", b"eve"],
                "document_extended": [6, 4, 6],
                "summary_extended": [6, 5, 0],
                "copied_words": [b"zoe"],
            },
        )

    def test_a_split_is_read_from_its_files_in_order(self):
        self._write("train-00001-of-00002.tfrecord", [(["won"], ["the"])])
        self._write("train-00000-of-00002.tfrecord", [(["the", "x"], ["won"]), ([], [])])
        split = records.load(self.folder, "train")
        self.assertEqual([split.document[i].tolist() for i in range(3)], [[4, 0], [], [5]])
        self.assertEqual([split.summary[i].tolist() for i in range(3)], [[5], [], [4]])
        self.assertEqual((len(split), split.ids), (3, ["id0", "id1", "id0"]))
        self.assertEqual(split.document.values.dtype, np.int32)
        self.assertIsNone(split.topics_document)

    def test_topics_are_read_where_there_are_some(self):
        topics = np.array([[0.25, 0.75], [1, 0]], np.float32)
        self._write("test-00000-of-00001.tfrecord", [(["won"], ["the"])] * 2, topics)
        np.testing.assert_array_equal(records.load(self.folder, "test").topics_document, topics)

    def test_the_same_article_gives_the_same_bytes(self):
        one, two = (records.encode("a", ["x", "y"], ["x"], WORDS) for _ in range(2))
        self.assertEqual(one, two)

    def test_a_file_appears_when_it_is_complete(self):
        def broken():
            yield records.encode("a", ["x"], ["x"], WORDS)
            raise KeyError("stopped")

        path = self.folder / "records" / "train-00000-of-00001.tfrecord"
        with self.assertRaises(KeyError):
            records.write(path, broken())
        self.assertFalse(path.exists())
        self.assertEqual(self._write(path.name, [(["x"], ["x"])] * 3), 3)

    def test_a_split_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "no records of the split 'dev'"):
            records.load(self.folder, "dev")


if __name__ == "__main__":
    absltest.main()
