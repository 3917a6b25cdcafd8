"""Windows of one long text, in the order of reading, for models that carry their states on."""

import numpy as np
import tensorflow as tf

IGNORED = -1  # The target of a character that does not count.


class Windows:
    """The training windows of each epoch; the counterpart of `zoo.batches.Batches`.

    The text is cut into `batch_size` rows of equal length, one below the other, and windows of
    `window` characters are read of all rows at once, from left to right; what is left over at the
    ends of the text and of the rows is not read. A pass over the text is so many steps; the states
    are carried on within it and start from zero with the next. An epoch is `steps_per_epoch`
    steps, more or less than a pass. All follows from the number of the step, so a run that was
    stopped anywhere sees, once started again, the windows it would have seen.

    Args:
        ids: int32 (characters,), the text.
        batch_size: rows, over all replicas together.
        window: characters of each row a step.
        steps: steps of the whole run; the last epoch ends there.
        steps_per_epoch: steps an epoch. By default a pass.

    Raises:
        ValueError: if the text is too short for one window.

    Example:

    >>> windows = Windows(np.arange(13), batch_size=2, window=2, steps=5)
    >>> inputs, targets = next(iter(windows.epoch(0, first=1)))
    >>> inputs["ids"].numpy().tolist(), targets.numpy().tolist()
    ([[2, 3], [8, 9]], [[3, 4], [9, 10]])
    """

    def __init__(
        self,
        ids: np.ndarray,
        batch_size: int,
        window: int,
        steps: int,
        steps_per_epoch: int | None = None,
    ):
        self.steps_per_pass = steps_per_pass(len(ids), batch_size, window)
        self.batch_size = batch_size
        self.steps = steps
        self.steps_per_epoch = steps_per_epoch or self.steps_per_pass
        self.epochs = -(-steps // self.steps_per_epoch)
        self._window = window
        length = len(ids) // batch_size
        with tf.device("CPU"):
            self._rows = tf.constant(ids[: batch_size * length].reshape(batch_size, length))

    def epoch(self, epoch: int, first: int = 0) -> tf.data.Dataset:
        """The windows of one epoch.

        Args:
            epoch: its number, from 0.
            first: the first window wanted; not 0 where a run goes on in the middle of the epoch.

        Returns:
            A dataset of known length of the inputs and the targets of
            `zoo.ptb.model.CharacterModel`: `ids` (batch_size, window), `row` (batch_size,) and
            `fresh` (batch_size,), 1 where states start from zero, else 0; and the characters that
            follow, (batch_size, window).
        """
        start = epoch * self.steps_per_epoch
        stop = min(start + self.steps_per_epoch, self.steps)
        numbers = np.arange(start + first, stop) % self.steps_per_pass

        def read(number):
            left = number * self._window
            characters = self._rows[:, left : left + self._window + 1]
            characters = tf.ensure_shape(characters, (self.batch_size, self._window + 1))
            return _inputs(characters[:, :-1], number == 0), characters[:, 1:]

        return tf.data.Dataset.from_tensor_slices(numbers).map(read).prefetch(2)


def steps_per_pass(characters: int, batch_size: int, window: int) -> int:
    """Returns how many windows of all rows are read in a pass over the text.

    Raises:
        ValueError: if it is none.
    """
    steps = (characters // batch_size - 1) // window
    if steps < 1:
        raise ValueError(
            f"A text of {characters:,} characters has no window of {window} characters in "
            f"{batch_size} rows: choose a smaller window or batch_size."
        )
    return steps


def evaluation_windows(ids: np.ndarray, rows: int, window: int, first: int) -> tf.data.Dataset:
    """Windows in which every character of a text counts as a target once.

    Unlike in training, nothing is left out: the first character is predicted from `first`, and what
    the last row and the last windows lack is filled up with targets `IGNORED`. So that no row has
    to predict without a context, each but the first begins with a window that does not count, the
    end of the row before.

    Args:
        ids: int32 (characters,), the text.
        rows: how many parts of the text are read at once. Their cost is a window each; with 1,
            the text is read as a whole.
        window: characters of each row a step.
        first: the id that stands before the text, that of the end of a line.

    Returns:
        A dataset of inputs and targets, as of `Windows.epoch`.
    """
    length = -(-len(ids) // rows)
    context = window if rows > 1 else 0
    width = context + length
    width += -width % window
    inputs = np.full((rows, width), first, np.int32)
    targets = np.full((rows, width), IGNORED, np.int32)
    before = np.concatenate([np.full(context + 1, first, np.int32), ids])
    for row in range(rows):
        start, stop = row * length, min((row + 1) * length, len(ids))
        if start < stop:
            targets[row, context : context + stop - start] = ids[start:stop]
            inputs[row, : context + stop - start] = before[start : context + stop]

    def read(number):
        left = number * window
        cut = slice(left, left + window)
        targets_now = tf.ensure_shape(all_targets[:, cut], (rows, window))
        # The first row begins with its second window, if others have a context.
        fresh = (number == 0) | ((left == context) & (tf.range(rows) == 0))
        inputs_now = tf.ensure_shape(all_inputs[:, cut], (rows, window))
        return _inputs(inputs_now, fresh), targets_now

    with tf.device("CPU"):
        all_inputs, all_targets = tf.constant(inputs), tf.constant(targets)
    return tf.data.Dataset.range(width // window, output_type=tf.int32).map(read).prefetch(2)


def _inputs(ids: tf.Tensor, fresh: tf.Tensor) -> dict[str, tf.Tensor]:
    rows = ids.shape[0]
    fresh = tf.broadcast_to(tf.cast(fresh, tf.int32), [rows])
    return {"ids": ids, "row": tf.range(rows), "fresh": fresh}
