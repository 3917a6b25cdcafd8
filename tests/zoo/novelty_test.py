"""Tests of novel n-grams."""

import re

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shared_data
from zoo import novelty

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


class NoveltyTest(parameterized.TestCase):
    @parameterized.parameters((1, 100 * 1 / 5), (2, 100 * 1 / 4), (3, 100 * 2 / 3), (4, 100.0))
    def test_n_grams_that_the_document_lacks_are_new(self, n, expected):
        document, summary = "the cat sat the mat".split(), "cat sat the cat ran".split()
        self.assertAlmostEqual(novelty.novel_ngrams([document], [summary], n), expected)

    def test_a_new_word_counts_as_often_as_it_comes(self):
        self.assertEqual(novelty.novel_ngrams([["a"]], [["b", "b", "b", "a"]], 1), 75)

    def test_long_summaries_weigh_more_than_short_ones(self):
        documents, texts = [["a"], ["a"]], [["b"], ["a"] * 9]
        self.assertEqual(novelty.novel_ngrams(documents, texts, 1), 10)

    @given(WORDS, WORDS, st.integers(1, 4))
    @settings(max_examples=20, deadline=None)
    def test_an_extract_has_nothing_new(self, before, extract, n):
        self.assertEqual(novelty.novel_ngrams([before + extract], [extract], n), 0)

    def test_repeated_n_grams_are_those_after_the_first(self):
        self.assertEqual(novelty.repeated_ngrams([list("abab"), list("cd")], 2), 25)

    def test_case_does_not_make_a_word_new(self):
        figures = novelty.figures([["The", "Cat"]], [["the", "CAT"]])
        self.assertEqual(figures["novel"][1], 0)

    def test_the_same_summary_of_two_documents_is_not_distinct(self):
        figures = novelty.figures([["a"]] * 4, [["a"], ["a"], ["b"], ["<unk>"]])
        self.assertEqual(figures["distinct"], 75)
        self.assertEqual(figures["unknown"], 25)
        self.assertEqual(figures["words"], 1)

    def test_summaries_shorter_than_n_have_no_n_grams(self):
        self.assertEqual(novelty.figures([["a"]], [[]])["novel"], {1: 0, 2: 0, 3: 0, 4: 0})

    def test_as_many_documents_as_summaries_are_asked_for(self):
        with self.assertRaisesRegex(ValueError, "1 documents, but 2 summaries"):
            novelty.novel_ngrams([[]], [[], []], 1)


class HumanEvaluationDocumentsTest(parameterized.TestCase):
    """The 40 documents of the paper's human evaluation, with the authors' own tokens."""

    @parameterized.parameters(
        ("Reference", (31.2, 82.6, 96.4, 99.1)),
        ("Pointer-Generator", (23.9, 74.0, 90.2, 96.0)),
        ("ConvS2S", (28.5, 77.6, 92.8, 97.9)),
        ("Topic-ConvS2S", (26.1, 77.7, 93.1, 97.9)),
        ("LEAD", (0.0, 0.0, 0.0, 0.0)),
        ("Ext-Oracle", (0.0, 0.0, 0.0, 0.0)),
    )
    def test_novelty_is_as_counted_before(self, system, expected):
        path = shared_data.folder("xsum") / "xsum-human-evaluation-data.40.txt"
        documents, texts = [], []
        for part in re.split(r"^==\d+==\n", path.read_text(), flags=re.MULTILINE)[1:]:
            sections = dict(
                section.split("\n", maxsplit=1) for section in part.strip().split("\n\n")
            )
            documents.append(sections["Document-Full"].split())
            texts.append(sections[system].split())
        self.assertLen(texts, 40)
        found = novelty.figures(documents, texts)["novel"]
        np.testing.assert_allclose(list(found.values()), expected, atol=0.051)


if __name__ == "__main__":
    absltest.main()
