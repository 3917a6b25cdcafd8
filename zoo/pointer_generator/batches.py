"""Articles with the ids of words to copy, in batches that seed and step decide."""

import math
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets import records, text_shards, vocabulary
from datasets.records import Ragged
from datasets.vocabulary import SEE, Specials

# Batches that are made of articles of a neighbourhood by length, as the released code has it.
BLOCK = 100


class Articles(NamedTuple):
    """All articles of a split.

    Args:
        document: Ids of the documents; words outside the vocabulary have ids of their own.
        summary: Ids of the summaries; words of the document outside the vocabulary have its ids.
        vocabulary: Number of ids of the vocabulary.
        summary_length: Words that the corpus has of a summary, whose rest it cut; 0: all.
    """

    document: Ragged
    summary: Ragged
    vocabulary: int
    summary_length: int = 0

    def __len__(self) -> int:
        return len(self.document)


class Lengths(NamedTuple):
    """From which step on how much of an article is read.

    Args:
        step: The first step.
        source: Most words of a document.
        target: Most words of a summary, its end among them.
    """

    step: int
    source: int
    target: int


def parse_lengths(texts: Sequence[str]) -> list[Lengths]:
    """Reads a schedule of lengths that grow.

    Args:
        texts: For each stage `step:source:target`.

    Raises:
        ValueError: If a text has another form or the steps do not grow from 0.

    Example:

    >>> parse_lengths(["0:50:20", "1000:400:100"])[1].source
    400
    """
    found = []
    for text in texts:
        parts = text.split(":")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"A stage of lengths is step:source:target, but found {text!r}.")
        found.append(Lengths(*map(int, parts)))
        if found[-1].source < 1 or found[-1].target < 1:
            raise ValueError(f"Lengths must be positive, but found {text!r}.")
    steps = [stage.step for stage in found]
    if not steps or steps[0] != 0 or any(b <= a for a, b in zip(steps, steps[1:], strict=False)):
        raise ValueError(f"The steps of stages must grow from 0, but are {steps}.")
    return found


def load(directory: str | os.PathLike, split: str, articles: int = 0) -> Articles:
    """Reads the ids of a split into memory.

    Args:
        directory: Folder that a corpus was prepared in.
        split: "train", "validation" or "test".
        articles: How many of the first; 0: all.

    Raises:
        FileNotFoundError: If the split or the corpus's manifest is not there.
        ValueError: If it has no articles, or one of them no words.
    """
    words = vocabulary.read(pathlib.Path(directory, "vocabulary.txt"))
    settings = text_shards.read_json(
        pathlib.Path(directory, "manifest.json"), "the command that prepares the corpus"
    )["settings"]
    names = ("document_extended", "summary_extended")
    parts: dict[str, list] = {name: [[], []] for name in names}
    left = articles or math.inf
    for serialized in records.serialized_batches(directory, split):
        serialized = serialized[: min(left, len(serialized))]
        left -= len(serialized)
        batch = records.parse(serialized, names)
        for name, (values, lengths) in parts.items():
            ids = batch[name].values.numpy().astype(np.int32)
            values.append(np.where(ids == words.unknown, np.int32(SEE.unknown), ids))
            lengths.append(batch[name].row_lengths().numpy())
        if not left:
            break
    if not parts[names[0]][0]:
        raise ValueError(f"{directory} has no articles of the split {split!r}.")
    document, summary = (
        Ragged(np.concatenate(values), np.cumsum(np.concatenate([[0], *lengths])))
        for values, lengths in parts.values()
    )
    if not document.lengths.all():
        row = int(np.argmin(document.lengths))
        raise ValueError(f"{directory}: document {row} of the split {split!r} has no words.")
    return Articles(document, summary, len(words), settings["summary_length"] or 0)


class ArticleBatches:
    """The training batches of each epoch, of articles of about the same length.

    The articles are taken in the order of permutations, one after another; pass p over them has
    that of `np.random.default_rng([seed, 0, p])`. Of this stream a block of 100 batches (fewer
    where a pass has fewer) is sorted by the lengths of documents, cut into batches, and these are
    shuffled, as the released code does. All batches are full. Batches of a step are a function of
    seed and step alone, so a run that was stopped anywhere sees, once started again, the batches
    it would have seen. See `zoo.batches.Batches`, whose place this takes.

    Args:
        articles: The articles.
        batch_size: Articles of a batch, over all replicas together.
        steps: Steps of the whole run; the last epoch ends there.
        steps_per_epoch: Steps an epoch.
        seed: Seed of the order.
        lengths: How much is read of articles, and from which step on.
        replicas: Batches of `all` are filled up with articles of no ids to a multiple of it.
        copy: Whether words can be copied; if not, those that the vocabulary lacks are unknown.
        specials: Ids of the special symbols.

    Example:

    >>> rows = Ragged(np.full(9, 4, np.int32), np.array([0, 2, 5, 9]))
    >>> articles = Articles(rows, rows, vocabulary=10)
    >>> batches = ArticleBatches(articles, 2, steps=7, steps_per_epoch=5, seed=0)
    >>> batches.epochs, len(batches.epoch(1))
    (2, 2)
    >>> inputs, target, weights = next(iter(batches.epoch(0)))
    >>> float(tf.reduce_sum(weights))
    1.0
    """

    def __init__(
        self,
        articles: Articles,
        batch_size: int,
        steps: int,
        steps_per_epoch: int,
        seed: int,
        lengths: Sequence[Lengths] = (Lengths(0, 400, 100),),
        replicas: int = 1,
        copy: bool = True,
        specials: Specials = SEE,
    ):
        self.batch_size = batch_size
        self.steps = steps
        self.steps_per_epoch = steps_per_epoch
        self.epochs = -(-steps // steps_per_epoch)
        self.articles = articles
        self._seed = seed
        self._lengths = list(lengths)
        self._replicas = replicas
        self._copy = copy
        self._specials = specials
        self._block_size = min(BLOCK, max(1, len(articles) // batch_size))
        self._block = (None, [])

    @property
    def steps_of_a_pass(self) -> int:
        """How many batches have all articles once, the last in part."""
        return -(-len(self.articles) // self.batch_size)

    def epoch(self, epoch: int, first: int = 0) -> tf.data.Dataset:
        """The batches of one epoch.

        Args:
            epoch: Its number, from 0.
            first: The first batch wanted; not 0 where a run goes on in the middle of the epoch.

        Returns:
            A dataset of known length of inputs as `PointerGenerator` has them, targets, int32
            (batch, target), and weights, float32 (batch, target): 0 at padding, and elsewhere
            1 / (words of the summary * summaries of the batch).
        """
        start = epoch * self.steps_per_epoch
        stop = min(start + self.steps_per_epoch, self.steps)
        return self._dataset(
            lambda: (
                self.batch(self._rows(step), self._stage(step))
                for step in range(start + first, stop)
            ),
            stop - start - first,
        )

    def all(self) -> tf.data.Dataset:
        """All articles once, by length: for validation."""
        order = np.argsort(self.articles.document.lengths, kind="stable")
        cuts = range(0, len(order), self.batch_size)
        return self._dataset(
            lambda: (self.batch(order[cut : cut + self.batch_size]) for cut in cuts), len(cuts)
        )

    def arrays(self) -> tuple[dict, np.ndarray, np.ndarray]:
        """All articles as one batch: more padding than `all` has."""
        return self.batch(np.arange(len(self.articles)))

    def batch(
        self, rows: Sequence[int], lengths: Lengths | None = None
    ) -> tuple[dict, np.ndarray, np.ndarray]:
        """The arrays of some articles: inputs, targets and weights, as `epoch` yields them.

        Args:
            rows: Which articles.
            lengths: How much to read of them; by default that of the last stage.
        """
        pad, unknown = self._specials.pad, self._specials.unknown
        lengths = lengths or self._lengths[-1]
        words = self.articles.vocabulary
        longest = self.articles.document.lengths[rows].max()
        extended = self.articles.document.padded(rows, pad, min(longest, lengths.source))
        target = self._target(rows, lengths.target)
        # A word that is cut from the document cannot be copied.
        copied = np.maximum(extended.max(axis=1, keepdims=True), words - 1)
        copied = copied if self._copy else words - 1
        target = np.where(target > copied, np.int32(unknown), target)
        empty = ((0, -len(rows) % self._replicas), (0, 0))
        extended, target = (
            np.pad(matrix, empty, constant_values=pad) for matrix in (extended, target)
        )
        summary = np.full_like(target, self._specials.start)
        summary[:, 1:] = np.where(target < words, target, unknown)[:, :-1]
        summary[summary == self._specials.end] = pad  # Of rows that are shorter.
        real = (target != pad).astype(np.float32)
        inputs = {
            "document": np.where(extended < words, extended, np.int32(unknown)),
            "document_extended": extended,
            "summary": summary,
        }
        weights = real / np.maximum(real.sum(axis=1, keepdims=True), 1) / len(rows)
        return inputs, target, weights.astype(np.float32)

    def _target(self, rows, most) -> np.ndarray:
        """Returns summaries with their ends; one of `most` words or more is cut and has none."""
        most = min(most, self.articles.summary_length or most)  # Those may have been cut before.
        lengths = self.articles.summary.lengths[rows]
        columns = min(most, lengths.max() + 1)
        matrix = self.articles.summary.padded(rows, self._specials.pad, columns)
        ended = np.flatnonzero(lengths < columns)
        matrix[ended, lengths[ended]] = self._specials.end
        return matrix

    def _stage(self, step: int) -> Lengths:
        return [stage for stage in self._lengths if stage.step <= step][-1]

    def _rows(self, step: int) -> np.ndarray:
        """The articles of a step."""
        number, place = divmod(step, self._block_size)
        latest = self._block  # Read once: the thread of another epoch may replace it.
        if latest[0] != number:
            size = self._block_size * self.batch_size
            rows = self._stream(number * size, (number + 1) * size)
            rows = rows[np.argsort(self.articles.document.lengths[rows], kind="stable")]
            batches = rows.reshape(self._block_size, self.batch_size)
            random = np.random.default_rng([self._seed, 1, number])
            latest = (number, random.permutation(batches))
            self._block = latest
        return latest[1][place]

    def _stream(self, start: int, stop: int) -> np.ndarray:
        """The articles at the places from `start` to `stop` of the stream."""
        count = len(self.articles)
        passes = range(start // count, -(-stop // count))
        stream = [np.random.default_rng([self._seed, 0, p]).permutation(count) for p in passes]
        offset = passes[0] * count
        return np.concatenate(stream)[start - offset : stop - offset]

    def _dataset(self, arrays, length: int) -> tf.data.Dataset:
        ids = tf.TensorSpec((None, None), tf.int32)
        inputs = dict.fromkeys(("document", "document_extended", "summary"), ids)
        weights = tf.TensorSpec((None, None), tf.float32)

        def generate() -> Iterator:
            return iter(arrays())

        dataset = tf.data.Dataset.from_generator(generate, output_signature=(inputs, ids, weights))
        return dataset.apply(tf.data.experimental.assert_cardinality(length)).prefetch(2)
