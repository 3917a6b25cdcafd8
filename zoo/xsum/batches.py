"""Training batches of articles, alike in length, in an order that seed and step decide."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from datasets.records import Ragged, Split
from datasets.vocabulary import XSUM, Specials


class SummaryBatches:
    """The training batches of each epoch, of articles and summaries of about the same length.

    A pass over the articles shuffles them, sorts them by the lengths of document and summary (so
    that of equals chance decides), cuts the line into batches and shuffles those, as the released
    code does. Pass `p` has the random numbers of `np.random.default_rng([seed, p])`. An epoch is
    `steps_per_epoch` steps of this stream, more or less than a pass. Nothing is carried from one
    epoch to the next, so a run that was stopped anywhere sees, once started again, the batches it
    would have seen. See `zoo.batches.Batches`, whose place this takes.

    Args:
        split: the articles.
        batch_size: most articles of a batch, over all replicas together.
        steps: steps of the whole run; the last epoch ends there.
        steps_per_epoch: steps an epoch.
        seed: seed of the order.
        max_tokens: most ids of a batch: articles times the longest document or summary, each with
            its end symbol. Longer articles are batches of their own. 0: as many as there are.
        replicas: batches are filled up with articles of no ids and no weight to a multiple of it.
        max_positions: longest document, with its end symbol; longer ones are cut, with a message.
        specials: ids of padding and of the end.

    Example:

    >>> def rows(lengths):
    ...     offsets = np.concatenate([[0], np.cumsum(lengths)])
    ...     return Ragged(np.full(offsets[-1], 9, np.int32), offsets)
    >>> split = Split(rows([3, 4, 4, 8]), rows([2, 1, 2, 2]), ["a", "b", "c", "d"], None)
    >>> batches = SummaryBatches(split, 2, steps=7, steps_per_epoch=5, seed=0, max_tokens=10)
    >>> batches.steps_of_a_pass, batches.epochs, len(batches.epoch(1))
    (3, 2, 2)
    >>> inputs, target, weights = next(iter(batches.epoch(0)))
    >>> sorted(inputs), round(float(tf.reduce_sum(weights)), 3)
    (['document', 'summary'], 1.0)
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        steps: int,
        steps_per_epoch: int,
        seed: int,
        max_tokens: int = 0,
        replicas: int = 1,
        max_positions: int = 1022,
        specials: Specials = XSUM,
    ):
        if not len(split):
            raise ValueError("split must have at least one article, got none.")
        self.batch_size = batch_size
        self.steps = steps
        self.steps_per_epoch = steps_per_epoch
        self.epochs = -(-steps // steps_per_epoch)
        self._seed = seed
        self._split = split
        self._max_tokens = max_tokens
        self._replicas = replicas
        self._max_positions = max_positions
        self._specials = specials
        # With their end symbols.
        self._source = np.minimum(split.document.lengths + 1, max_positions)
        self._target = split.summary.lengths + 1
        cut = np.count_nonzero(split.document.lengths + 1 > max_positions)
        if cut:
            print(f"{cut} of {len(split)} documents are cut to {max_positions - 1} words.")
        self._cuts = self._cut(self._sorted(np.arange(len(split))))
        self._pass = (None, [])

    @property
    def steps_of_a_pass(self) -> int:
        """The number of batches that all articles make; the same in every pass."""
        return len(self._cuts) - 1

    def epoch(self, epoch: int, first: int = 0) -> tf.data.Dataset:
        """The batches of one epoch.

        Args:
            epoch: its number, from 0.
            first: the first batch wanted; not 0 where a run goes on in the middle of the epoch.

        Returns:
            A dataset of known length of inputs as `TopicConvS2S` has them, targets, int32
            (batch, target), and weights, float32 (batch, target): 0 at padding, and elsewhere
            1 / (tokens of the batch).
        """
        start = epoch * self.steps_per_epoch
        stop = min(start + self.steps_per_epoch, self.steps)
        return self._dataset(
            lambda: map(self._rows, range(start + first, stop)), stop - start - first
        )

    def all(self) -> tf.data.Dataset:
        """All articles once, by length: for validation."""
        order = self._sorted(np.arange(len(self._split)))
        cuts = self._cuts
        return self._dataset(
            lambda: (order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)), len(cuts) - 1
        )

    def arrays(self) -> tuple[dict, np.ndarray, np.ndarray]:
        """All articles as one batch: more padding than `all` has."""
        return self.batch(np.arange(len(self._split)))

    def batch(self, rows: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray]:
        """The arrays of some articles: inputs, targets and weights, as `epoch` yields them."""
        pad, end = self._specials.pad, self._specials.end
        rows = list(rows)
        empty = -len(rows) % self._replicas
        document = _with_end(self._split.document, rows, self._max_positions, pad, end)
        target = _with_end(self._split.summary, rows, None, pad, end)
        document, target = (
            np.pad(matrix, ((0, empty), (0, 0)), constant_values=pad)
            for matrix in (document, target)
        )
        summary = np.full_like(target, self._specials.start)
        summary[:, 1:] = target[:, :-1]
        summary[summary == end] = pad  # Of rows that are shorter: nothing follows the end.
        summary[:, 0] = self._specials.start
        inputs = {"document": document, "summary": summary}
        topics = self._split.topics_document
        if topics is not None:
            inputs["topics"] = np.pad(topics[rows], ((0, empty), (0, 0)))
        real = target != pad
        return inputs, target, (real / real.sum()).astype(np.float32)

    def _sorted(self, order: np.ndarray) -> np.ndarray:
        return order[np.lexsort((self._target[order], self._source[order]))]

    def _cut(self, order: np.ndarray) -> np.ndarray:
        """Returns where batches of the articles in this order begin, and the end."""
        longest = np.maximum(self._source, self._target)[order]
        cuts, most = [0], 0
        for place, length in enumerate(longest):
            most, count = max(most, length), place - cuts[-1]
            full = count == self.batch_size
            full |= bool(self._max_tokens) and (count + 1) * most > self._max_tokens
            if count and full:
                cuts.append(place)
                most = length
        return np.array([*cuts, len(order)])

    def _rows(self, step: int) -> np.ndarray:
        """The articles of a step."""
        number, place = divmod(step, self.steps_of_a_pass)
        latest = self._pass  # Read once: the thread of another epoch may replace it.
        if latest[0] != number:
            random = np.random.default_rng([self._seed, number])
            order = self._sorted(random.permutation(len(self._split)))
            pieces = np.split(order, self._cuts[1:-1])
            latest = (number, [pieces[i] for i in random.permutation(len(pieces))])
            self._pass = latest
        return latest[1][place]

    def _dataset(self, rows, length: int) -> tf.data.Dataset:
        def arrays() -> Iterator:
            return map(self.batch, rows())

        ids = tf.TensorSpec((None, None), tf.int32)
        inputs = {"document": ids, "summary": ids}
        topics = self._split.topics_document
        if topics is not None:
            inputs["topics"] = tf.TensorSpec((None, topics.shape[1]), tf.float32)
        weights = tf.TensorSpec((None, None), tf.float32)
        dataset = tf.data.Dataset.from_generator(arrays, output_signature=(inputs, ids, weights))
        return dataset.apply(tf.data.experimental.assert_cardinality(length)).prefetch(2)


def _with_end(rows: Ragged, picked: list[int], most: int | None, pad: int, end: int) -> np.ndarray:
    """Returns rows as a matrix, each with the end symbol, at most `most` ids long with it."""
    lengths = rows.lengths[picked]
    if most is not None:
        lengths = np.minimum(lengths, most - 1)
    matrix = np.full((len(picked), lengths.max() + 1), pad, np.int32)
    matrix[:, :-1] = rows.padded(picked, pad, lengths.max())
    matrix[np.arange(len(picked)), lengths] = end
    return matrix
