"""Batches with words to copy: every article in turn, cut to growing lengths, the same again."""

import pathlib
import tempfile

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies as st

from datasets.records import Ragged
from tests.zoo.pointer_generator import tiny_run
from zoo.pointer_generator import batches, kept
from zoo.pointer_generator.batches import ArticleBatches, Articles, Lengths

UNKNOWN, PAD, START, END = range(4)
WORDS = 10
WHOLE = (Lengths(0, 400, 100),)


def ragged(rows):
    offsets = np.cumsum([0, *map(len, rows)])
    return Ragged(np.concatenate(rows).astype(np.int32), offsets)


def articles(lengths):
    """Articles whose first word, beyond the vocabulary, tells them apart."""
    documents = [np.r_[WORDS + i, np.full(length - 1, 4)] for i, length in enumerate(lengths)]
    return Articles(ragged(documents), ragged([[5]] * len(lengths)), WORDS)


def seen(dataset):
    """The articles of each batch."""
    return [(x["document_extended"][:, 0].numpy() - WORDS).tolist() for x, _, _ in dataset]


class ArticleBatchesTest(parameterized.TestCase):
    def some(self, documents, summaries, lengths=WHOLE, replicas=1):
        found = Articles(ragged(documents), ragged(summaries), WORDS)
        return ArticleBatches(found, 2, 9, 9, 0, lengths, replicas)

    @hypothesis.settings(max_examples=8, deadline=None)
    @hypothesis.given(
        lengths=st.lists(st.integers(1, 9), min_size=1, max_size=9),
        batch_size=st.integers(1, 4),
        steps=st.integers(1, 12),
        steps_per_epoch=st.integers(1, 5),
        data=st.data(),
    )
    def test_the_stream_does_not_depend_on_epochs_or_on_where_it_is_taken_up(
        self, lengths, batch_size, steps, steps_per_epoch, data
    ):
        some = articles(lengths)
        whole = seen(ArticleBatches(some, batch_size, steps, steps, seed=3).epoch(0))
        self.assertEqual({len(batch) for batch in whole}, {batch_size})
        many = ArticleBatches(some, batch_size, steps, steps_per_epoch, seed=3)
        step = data.draw(st.integers(0, steps - 1))
        epoch, first = divmod(step, steps_per_epoch)
        taken = [many.epoch(epoch, first), *map(many.epoch, range(epoch + 1, many.epochs))]
        self.assertEqual([rows for part in taken for rows in seen(part)], whole[step:])

    def test_a_pass_has_every_article_once(self):
        batched = ArticleBatches(articles([3] * 6), 2, 9, 9, seed=0)
        stream = np.concatenate(seen(batched.epoch(0)))
        for start in (0, 6, 12):
            self.assertCountEqual(stream[start : start + 6], range(6))
        self.assertNotEqual(stream[:6].tolist(), stream[6:12].tolist())

    def test_articles_of_a_batch_are_alike_in_length(self):
        lengths = np.random.default_rng(0).integers(1, 50, 64)
        batched = ArticleBatches(articles(lengths), 4, 16, 16, seed=0)
        spread = [np.ptp(lengths[rows]) for rows in seen(batched.epoch(0))]
        self.assertLess(max(spread), 10)
        short = [lengths[rows].mean() for rows in seen(batched.epoch(0))]
        self.assertNotEqual(short, sorted(short))

    def test_a_batch_holds_inputs_targets_and_weights_as_the_model_takes_them(self):
        inputs, target, weights = self.some([[4, 10, 5], [11]], [[10, 6], [0, 5, 7]]).batch([0, 1])
        self.assertEqual(inputs["document_extended"].tolist(), [[4, 10, 5], [11, PAD, PAD]])
        self.assertEqual(inputs["document"].tolist(), [[4, UNKNOWN, 5], [UNKNOWN, PAD, PAD]])
        self.assertEqual(target.tolist(), [[10, 6, END, PAD], [0, 5, 7, END]])
        self.assertEqual(inputs["summary"].tolist(), [[START, UNKNOWN, 6, PAD], [START, 0, 5, 7]])
        third, fourth = 1 / 3 / 2, 1 / 4 / 2
        np.testing.assert_allclose(weights, [[third] * 3 + [0], [fourth] * 4], rtol=1e-6)

    def test_a_word_that_is_cut_from_the_document_cannot_be_copied(self):
        short = self.some([[4, 10, 11]], [[10, 11]], [Lengths(0, 2, 9)])
        inputs, target, _ = short.batch([0])
        self.assertEqual(inputs["document_extended"].tolist(), [[4, 10]])
        self.assertEqual(target.tolist(), [[10, UNKNOWN, END]])
        none = self.some([[4, 10]], [[10, 9]], [Lengths(0, 1, 9)])
        self.assertEqual(none.batch([0])[1].tolist(), [[UNKNOWN, 9, END]])

    def test_a_model_that_cannot_copy_is_asked_for_unknown_words(self):
        found = Articles(ragged([[4, 10]]), ragged([[10, 5]]), WORDS)
        batched = ArticleBatches(found, 1, 9, 9, 0, copy=False)
        self.assertEqual(batched.batch([0])[1].tolist(), [[UNKNOWN, 5, END]])

    @parameterized.parameters((4, [5, 6, 7, END]), (3, [5, 6, 7]), (2, [5, 6]))
    def test_a_summary_that_is_cut_has_no_end(self, most, expected):
        batched = self.some([[4]], [[5, 6, 7]], [Lengths(0, 9, most)])
        inputs, target, _ = batched.batch([0])
        self.assertEqual(target.tolist(), [expected])
        self.assertEqual(inputs["summary"].tolist(), [[START, *[5, 6, 7][: most - 1]]])

    @parameterized.parameters((0, [5, 6, 7, END]), (4, [5, 6, 7, END]), (3, [5, 6, 7]))
    def test_a_summary_that_the_corpus_may_have_cut_has_no_end(self, kept, expected):
        found = Articles(ragged([[4]]), ragged([[5, 6, 7]]), WORDS, summary_length=kept)
        _, target, _ = ArticleBatches(found, 1, 9, 9, 0).batch([0])
        self.assertEqual(target.tolist(), [expected])

    def test_lengths_grow_at_their_steps_and_validation_has_the_last(self):
        stages = [Lengths(0, 2, 2), Lengths(3, 4, 3), Lengths(7, 8, 9)]
        batched = self.some([[4] * 8] * 4, [[5] * 5] * 4, stages)
        shapes = [(x["document"].shape[1], y.shape[1]) for x, y, _ in batched.epoch(0)]
        self.assertEqual(shapes, [(2, 2)] * 3 + [(4, 3)] * 4 + [(8, 6)] * 2)
        self.assertEqual([y.shape[1] for _, y, _ in batched.all()], [6, 6])

    def test_validation_has_every_article_once_filled_up_to_the_replicas(self):
        batched = self.some([[4], [10, 4], [11, 4, 4]], [[5], [5], [5, 6]], replicas=2)
        (_, first, _), (inputs, target, weights) = batched.all()
        self.assertEqual(first.shape[0], 2)
        self.assertEqual(inputs["document_extended"].numpy().tolist(), [[11, 4, 4], [PAD] * 3])
        self.assertEqual(target.numpy()[0].tolist(), [5, 6, END])
        np.testing.assert_allclose(weights, [[1 / 3] * 3, [0] * 3], rtol=1e-6)

    @parameterized.parameters(
        ("0:5", "step:source:target"),
        ("0:a:4", "step:source:target"),
        ("0:0:4", "must be positive"),
        ("5:10:4", "grow from 0"),
        ("0:9:4,0:9:5", "grow from 0"),
    )
    def test_a_malformed_schedule_is_refused(self, text, message):
        with self.assertRaisesRegex(ValueError, message):
            batches.parse_lengths(text.split(","))


class LoadTest(parameterized.TestCase):
    @parameterized.parameters("see", "xsum")
    def test_either_convention_of_symbols_gives_the_same_ids(self, specials):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        data, run = tiny_run.prepare(folder, specials), folder / "run"
        run.mkdir()
        kept.keep(data, run, 12, 1, 9)
        words = kept.read(run).vocabulary
        found = batches.load(data, "train")
        self.assertEqual(found.vocabulary, len(words))
        self.assertLen(batches.load(data, "train", 2), 2)
        # In the order of the records, whatever it is: ids are words of the corpus or to copy.
        self.assertNotIn(PAD, found.document.values)
        self.assertGreater(found.document.values.max(), len(words))
        known = found.document.values[found.document.values < len(words)]
        self.assertIn("the", [words.words[i] for i in known])
        self.assertTrue(set(found.summary.values[found.summary.values < 4]) <= {UNKNOWN})


if __name__ == "__main__":
    absltest.main()
