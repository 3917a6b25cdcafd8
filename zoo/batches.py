"""Training batches whose order is a pure function of the seed and the step."""

import numpy as np
import tensorflow as tf


class Batches:
    """The training batches of each epoch.

    The examples are taken in the order of permutations, one after another; pass `p` over the data
    has the one that `np.random.default_rng([seed, p])` draws. An epoch is `steps_per_epoch` steps
    of this stream, more or less than a pass. Nothing is carried from one epoch to the next, so a
    run that was stopped anywhere sees, once started again, the batches it would have seen.

    Args:
        arrays: tuple of arrays, all (examples, ...): inputs and targets, as `fit` takes them.
        batch_size: examples a step, over all replicas together.
        steps: steps of the whole run; the last epoch ends there.
        steps_per_epoch: steps an epoch.
        seed: seed of the order.

    Example:

    >>> batches = Batches((np.arange(6), np.arange(6)), 2, steps=7, steps_per_epoch=5, seed=0)
    >>> batches.epochs, len(batches.epoch(0)), len(batches.epoch(1))
    (2, 5, 2)
    """

    def __init__(self, arrays: tuple, batch_size: int, steps: int, steps_per_epoch: int, seed: int):
        self.batch_size = batch_size
        self.steps = steps
        self.steps_per_epoch = steps_per_epoch
        self.epochs = -(-steps // steps_per_epoch)
        self._seed = seed
        self._examples = len(arrays[0])
        with tf.device("CPU"):
            self._arrays = tuple(tf.constant(array) for array in arrays)

    def epoch(self, epoch: int, first: int = 0) -> tf.data.Dataset:
        """The batches of one epoch.

        Args:
            epoch: its number, from 0.
            first: the first batch wanted; not 0 where a run goes on in the middle of the epoch.

        Returns:
            A dataset of known length of tuples like `arrays`, each (batch_size, ...).
        """
        start = epoch * self.steps_per_epoch
        stop = min(start + self.steps_per_epoch, self.steps)
        rows = self._order((start + first) * self.batch_size, stop * self.batch_size)
        return (
            tf.data.Dataset.from_tensor_slices(rows.reshape(-1, self.batch_size))
            .map(lambda rows: tuple(tf.gather(array, rows) for array in self._arrays))
            .prefetch(2)
        )

    def _order(self, start: int, stop: int) -> np.ndarray:
        """The examples at the places from `start` to `stop` of the stream."""
        first = start // self._examples
        passes = range(first, -(-stop // self._examples))
        stream = [
            np.random.default_rng([self._seed, p]).permutation(self._examples) for p in passes
        ]
        offset = first * self._examples
        return np.concatenate(stream)[start - offset : stop - offset]
