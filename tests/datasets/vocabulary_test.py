"""Tests of words and ids."""

import pathlib
import tempfile
from collections import Counter

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import vocabulary
from datasets.vocabulary import SEE, XSUM, Vocabulary

WORDS = st.lists(st.text("abcd", min_size=1, max_size=2), max_size=12)


class VocabularyTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @parameterized.parameters(
        (XSUM, ["<Lua heritage>", "<pad>", "</s>", "<unk>"], (1, 3, 2, 2)),
        (SEE, ["[UNK]", "[PAD]", "[START]", "[STOP]"], (1, 0, 2, 3)),
    )
    def test_special_symbols_have_the_ids_of_the_released_codes(self, specials, symbols, ids):
        words = Vocabulary(["rain"], specials)
        self.assertEqual(words.words, [*symbols, "rain"])
        self.assertEqual((words.pad, words.unknown, words.start, words.end), ids)
        self.assertEqual(words["rain"], 4)

    def test_frequent_words_come_first_and_earlier_ones_among_equals(self):
        documents = [Counter(["b", "a", "c", "c"]), Counter(["d", "a"])]
        summaries = [Counter(["e", "d"])]
        words = vocabulary.build([*documents, *summaries], size=4)
        self.assertEqual(words.words[4:], ["a", "c", "d", "b"])

    def test_special_symbols_and_sentence_marks_of_texts_are_no_words(self):
        counts = [Counter({"[PAD]": 9, "<s>": 8, "</s>": 7, "rain": 1})]
        self.assertEqual(vocabulary.build(counts, 5, SEE).words[4:], ["rain"])

    def test_a_text_cannot_end_a_summary(self):
        self.assertEqual(Vocabulary(["rain"]).encode(["</s>", "rain", "<pad>"]).tolist(), [3, 4, 3])

    def test_copied_words_have_ids_in_order_of_first_occurrence(self):
        words = Vocabulary(["the", "won"], SEE)
        ids, copied = words.encode_copied(["zoe", "the", "ann", "zoe", "won"])
        self.assertEqual((ids.tolist(), copied), ([6, 4, 7, 6, 5], ["zoe", "ann"]))
        self.assertEqual(words.decode(ids, copied), ["zoe", "the", "ann", "zoe", "won"])

    def test_a_summary_copies_only_what_its_article_holds(self):
        words = Vocabulary(["won"], SEE)
        ids = words.encode_target(["ann", "won", "eve"], ["zoe", "ann"])
        self.assertEqual((ids.dtype, ids.tolist()), (np.int32, [6, 4, 0]))

    @settings(deadline=None, max_examples=20)
    @given(WORDS, WORDS)
    def test_extended_ids_decode_to_the_article(self, known, article):
        words = Vocabulary(dict.fromkeys(known), SEE)
        ids, copied = words.encode_copied(article)
        self.assertEqual(words.decode(ids, copied), article)
        self.assertEqual(
            list(dict.fromkeys(ids[ids >= len(words)])),
            list(range(len(words), len(words) + len(copied))),
        )
        np.testing.assert_array_equal(np.where(ids < len(words), ids, 0), words.encode(article))

    def test_an_id_that_nothing_has_is_refused(self):
        for i in (-1, 6):
            with self.assertRaisesRegex(ValueError, f"below 5 words \\+ 1 copied ones, got {i}"):
                Vocabulary(["rain"]).decode([i], ["zoe"])

    def test_the_line_of_a_file_is_the_id(self):
        words = Vocabulary(["rain", "é", "zoe"], SEE)
        words.write(self.folder / "vocabulary.txt")
        lines = (self.folder / "vocabulary.txt").read_bytes().decode().splitlines()
        self.assertEqual(lines, words.words)
        again = vocabulary.read(self.folder / "vocabulary.txt")
        self.assertEqual((again.words, again.specials), (words.words, SEE))
        self.assertLen(list(self.folder.iterdir()), 1)

    def test_lines_of_words_and_counts_are_read_without_special_symbols(self):
        path = self.folder / "vocab"
        path.write_text("the 9\n[PAD] 8\nnew york 7\nrain 5\nsnow 4\n")
        self.assertEqual(vocabulary.read_counts(path, 2, SEE).words[4:], ["the", "rain"])
        self.assertEqual(vocabulary.read_any(path, 3, SEE).words[4:], ["the", "rain", "snow"])

    def test_a_vocabulary_of_another_convention_is_refused(self):
        path = self.folder / "vocabulary.txt"
        Vocabulary(["rain"], SEE).write(path)
        with self.assertRaisesRegex(
            ValueError, "vocabulary.txt:1: expected the special symbols <L"
        ):
            vocabulary.read_any(path, 5, XSUM)
        path.write_text("rain\n")
        with self.assertRaisesRegex(ValueError, "vocabulary.txt:1: a vocabulary begins with"):
            vocabulary.read(path)
        with self.assertRaisesRegex(ValueError, "vocabulary.txt:1: expected lines 'word count'"):
            vocabulary.read_counts(path, 5, XSUM)

    @parameterized.parameters((["a", "a"], "'a' is there 2"), (["a b"], "'a b'"), ([""], "''"))
    def test_words_that_no_file_could_hold_are_refused(self, words, message):
        with self.assertRaisesRegex(ValueError, message):
            Vocabulary(words)

    def test_a_size_below_one_is_refused(self):
        with self.assertRaisesRegex(ValueError, "size must be at least 1 word, got 0"):
            vocabulary.build([], 0)


if __name__ == "__main__":
    absltest.main()
