"""Tests of the text part of summarizers' exports."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from datasets import text_shards, tokenization
from datasets.vocabulary import SEE, XSUM, Vocabulary
from exports import text
from tests import shared_data

READABLE = (
    "mr. ray can't say it's over, he said.",
    '"it won\'t rain," she said: "we\'ll see."',
    "the towns' mayors paid £1,000 (or $2m) for 5.5% of the '90s hall!",
    "it... may rain.",
    "is it the side's best [or worst] game? no; it isn't.",
    "he cannot wait - they gotta go.",
    "at 7:30 the well-known b.b.c. came.",
)


class DetokenizeTest(parameterized.TestCase):
    def test_readable_text_comes_back_from_its_tokens(self):
        tokens = [" ".join(tokenization.tokens(line)) for line in READABLE]
        found = text.detokenize(tokens).numpy().tolist()
        self.assertEqual([line.decode() for line in found], list(READABLE))

    def test_any_shape_stays_and_nothing_stays_nothing(self):
        found = text.detokenize([["a .", ""], ["", "`` b ''"]]).numpy().tolist()
        self.assertEqual(found, [[b"a.", b""], [b"", b'"b"']])

    def test_what_is_tokenized_again_is_the_same_in_nearly_all_real_summaries(self):
        path = shared_data.folder("xsum") / "pairs_test_split.jsonl.gz"
        rows = [row for _, row in zip(range(500), text_shards.read(path), strict=False)]
        tokens = [" ".join(tokenization.tokens(row["summary"])) for row in rows]
        found = [line.decode() for line in text.detokenize(tokens).numpy()]
        again = [" ".join(tokenization.tokens(line)) for line in found]
        same = sum(a == b for a, b in zip(tokens, again, strict=True))
        self.assertGreaterEqual(same, 0.99 * len(rows))


class JoinTest(absltest.TestCase):
    def test_as_many_words_are_joined_as_the_length_says(self):
        words = [[["a", "b", "c"], ["d", "", "e"]], [["f", "g", "h"], ["i", "j", "k"]]]
        found = text.join(tf.constant(words), tf.constant([[2, 1], [0, 3]]))
        self.assertEqual(found.numpy().tolist(), [[b"a b", b"d"], [b"", b"i j k"]])


class LexiconTest(parameterized.TestCase):
    @parameterized.parameters(XSUM, SEE)
    def test_ids_are_those_of_the_vocabulary_and_back(self, *specials):
        vocabulary = Vocabulary(["the", "cat", "café"], type(XSUM)(*specials))
        rows = [["the", "dog", "café"], [], ["cat", *vocabulary.specials.symbols]]
        lexicon = text.Lexicon(vocabulary)
        found = lexicon.ids(tf.ragged.constant(rows, dtype=tf.string))
        self.assertEqual(found.to_list(), [vocabulary.encode(row).tolist() for row in rows])
        words = lexicon.words(tf.range(len(vocabulary))).numpy().tolist()
        self.assertEqual([word.decode() for word in words], vocabulary.words)


if __name__ == "__main__":
    absltest.main()
