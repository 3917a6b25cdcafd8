"""Tests of Penn Treebank tokens, in Python and in a graph."""

import gzip
import json
import os
import pathlib

import tensorflow as tf
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import tokenization

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data")) / "xsum"


class TokenizationTest(parameterized.TestCase):
    @parameterized.parameters(
        ("It can't rain, won't it?", "it ca n't rain , wo n't it ?"),
        ("The UK's plan: they'll go. I'd go", "the uk 's plan : they 'll go . i 'd go ."),
        ('He said: "No (not now)."', "he said : `` no -lrb- not now -rrb- . ''"),
        ("\u201cYes,\u201d she said", "`` yes , '' she said ."),
        ("He called it 'fine' and left.", "he called it ` fine ' and left ."),
        ("Fans' choice", "fans ' choice ."),
        ("It cost \u00a31,000.50 or \u20ac9", "it cost # 1,000.50 or $ 9 ."),
        ("At 10:30 on 1-2-2017", "at 10:30 on 1-2-2017 ."),
        ("A deal \u2013 for now\u2026", "a deal -- for now ..."),
        ("Mr. Smith of the U.S. won.", "mr. smith of the u.s. won ."),
        ("S&P gave 3.6bn to A&E & co", "s&p gave 3.6 bn to a&e & co ."),
        ("You cannot [sic]", "you can not -lsb- sic -rsb- ."),
        ("50% of #1 @bbc", "50 % of # 1 @ bbc ."),
        ("\u00c9milie ATE", "\u00c9milie ate ."),
    )
    def test_tokens_are_those_of_the_penn_treebank(self, text, tokens):
        self.assertEqual(" ".join(tokenization.tokens(text)), tokens)

    @parameterized.parameters(
        ("It rains. We stay", ["it rains .", "we stay ."]),
        ("It rains\nwe stay", ["it rains .", "we stay ."]),
        ('"Go." He left. "Why?" she', ["`` go . ''", "he left .", "`` why ? ''", "she ."]),
        ("Dr. No met J. Bond at 5 p.m. in Rome.", ["dr. no met j. bond at 5 p.m. in rome ."]),
        ("See bbc.co.uk. It is 3.5 miles.", ["see bbc.co.uk .", "it is 3.5 miles ."]),
        (" \n\n ", []),
        ("", []),
    )
    def test_sentences_end_where_they_end(self, text, sentences):
        self.assertEqual(tokenization.sentences(text), sentences)

    @parameterized.parameters("rain .", "why ?", "no !", "he said ''", "( so )", "it ;")
    def test_a_sentence_with_an_end_is_left_as_it_is(self, sentence):
        self.assertEqual(tokenization.end_sentence(sentence), sentence)

    def test_only_ascii_letters_are_lowered(self):
        self.assertEqual(tokenization.lower("AZ\u00c9\u0130"), "az\u00c9\u0130")

    @parameterized.parameters(
        ("<s> a b . c </s> <s> d </s>", ["a b . c", "d"]),
        ("<t> a b . c </t>  <t> d </t>\n", ["a b . c", "d"]),
        ("<s> a\nb </s>", ["a\nb"]),
        ("<s> it rains . </s> so . <t> cut", ["it rains .", "so .", "cut"]),
        ("it rains . `` we stay . '' so", ["it rains .", "`` we stay . ''", "so"]),
        ("mr. x won\nhe did", ["mr. x won", "he did"]),
    )
    def test_tokenized_text_is_split_by_marks_or_lines_or_full_stops(self, text, sentences):
        self.assertEqual(tokenization.split_tokenized(text), sentences)

    def test_the_authors_tokens_of_nearly_all_summaries_are_reproduced(self):
        path = DATA / "pairs_test_split.jsonl.gz"
        if not path.exists():
            self.skipTest("The XSum pairs are not here: set RUM_KERAS_DATA to the data's folder.")
        with gzip.open(DATA / "model_predictions/gold-test-sentences.txt.gz", "rt") as file:
            gold = file.read().splitlines()
        with gzip.open(path, "rt") as file:
            rows = [json.loads(line) for line in file]
        same = [
            " ".join(tokenization.tokens(row["summary"])) == gold[row["test_line"]] for row in rows
        ]
        # Of 1,713; what is left is Welsh, mojibake and "hk$".
        self.assertGreaterEqual(sum(same), 1705)


class TokensInGraphTest(parameterized.TestCase):
    def assertSameTokens(self, texts):
        # Hypothesis' lone surrogates are no UTF-8, which a served text is.
        found = tokenization.tokens_in_graph(tf.constant(texts)).to_list()
        for text, words in zip(texts, found, strict=True):
            self.assertEqual([word.decode() for word in words], tokenization.tokens(text), text)

    def test_the_graph_finds_the_same_tokens(self):
        self.assertSameTokens(
            ["", " \n ", "a", "It can't, 'e said. \"No!\"", 'x\n\ny"', "\ue000.", "1,0,0,0", "''"]
        )

    @settings(deadline=None, max_examples=20)
    @given(st.lists(st.text("aAsS1.,:!?'\"`()- \n\u2019\u201c\u00a3&$e", max_size=30), max_size=20))
    def test_the_graph_finds_the_same_tokens_in_any_text(self, texts):
        self.assertSameTokens(texts + [""])

    def test_only_core_operations_and_no_crash_on_bytes(self):
        graph = tf.function(
            tokenization.tokens_in_graph, input_signature=[tf.TensorSpec([None], tf.string)]
        ).get_concrete_function()
        self.assertFalse([op.type for op in graph.graph.get_operations() if ">" in op.type])
        words = graph(tf.constant([b"\xff\x00 a", "\u00e9 \U0001f600".encode(), b"x" * 100_000]))
        self.assertEqual(words[0].numpy().tolist(), ["\ufffd".encode(), b"a", b"."])

    def test_tokens_and_bytes_have_a_limit(self):
        words = tokenization.tokens_in_graph(tf.constant(["a " * 50]), limit=7)
        self.assertEqual(words.row_lengths().numpy().tolist(), [7])
        words = tokenization.tokens_in_graph(tf.constant(["a " * 50]), byte_limit=6)
        self.assertEqual(words.row_lengths().numpy().tolist(), [4])


if __name__ == "__main__":
    absltest.main()
