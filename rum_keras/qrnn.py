"""Quasi-recurrent networks: gates by convolution, and a recurrence without matrices."""

from typing import Any

import keras
from keras import ops

from rum_keras.qrnn_cell import QRNNCell


@keras.saving.register_keras_serializable(package="rum_keras")
class QRNN(keras.layers.RNN):
    """Quasi-recurrent network over a sequence: `keras.layers.RNN(QRNNCell(units, ...))`, faster.

    All gates of all steps are one product of matrices for each input of the window; what is left
    for the loop over time is one line of elementwise operations. Weights and states are the cell's.

    Variational dropout between layers is `keras.layers.SpatialDropout1D`.

    Args:
        units: Positive integer, the size of the hidden state.
        weight_dropout: Float in [0, 1), the probability that an element of `kernel` is zero in a
            training step, the same for all rows and steps (DropConnect); the others are scaled.
        return_sequences: Whether to return the outputs of all steps, or of the last only.
        return_state: Whether to return the last states too.
        go_backwards: Whether to process the sequence backwards (and return it in that order).
        stateful: Whether a batch starts from the last states of the batch before.
        zero_output_for_mask: Whether masked steps output zeros rather than the output before.
        activity_regularizer: Regularizer of the output.
        name, dtype, trainable: As in `keras.layers.Layer`.
        **cell_options: All other arguments of `rum_keras.QRNNCell`: `window`, `zoneout`, ...

    Call arguments:
        sequences: Float tensor, shape `(batch, time, features)`.
        initial_state: List of tensors, the states of the cell. Default: zeros.
        mask: Boolean tensor, shape `(batch, time)`; steps where it is False are left out.
        training: Whether dropout and zoneout are random.

    Returns:
        Float tensor, shape `(batch, units)`, or `(batch, time, units)` with `return_sequences`,
        followed by the states with `return_state`.

    Raises:
        ValueError: for an argument outside of its range, or an input that is not of rank 3.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.QRNN(6, window=2, return_sequences=True, return_state=True)
    >>> outputs, h, c, past = layer(np.ones((2, 3, 4), "float32"))
    >>> tuple(outputs.shape), tuple(h.shape), tuple(c.shape), tuple(past.shape)
    ((2, 3, 6), (2, 6), (2, 6), (2, 18))

    Reference:
        [Bradbury et al., 2017](https://arxiv.org/abs/1611.01576), Section 2;
        [Merity et al., 2018](https://arxiv.org/abs/1803.08240), Section 3.2.
    """

    def __init__(
        self,
        units: int,
        *,
        weight_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool = False,
        activity_regularizer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **cell_options: Any,
    ) -> None:
        if not 0 <= weight_dropout < 1:
            raise ValueError(f"`weight_dropout` must be in [0, 1), received {weight_dropout}.")
        super().__init__(
            QRNNCell(units, name="qrnn_cell", dtype=dtype, trainable=trainable, **cell_options),
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            zero_output_for_mask=zero_output_for_mask,
            activity_regularizer=activity_regularizer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        self.weight_dropout = weight_dropout
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def inner_loop(self, sequences, initial_state, mask, training=False):
        x = ops.transpose(sequences, (1, 0, 2))
        mask = None if mask is None else ops.transpose(ops.cast(mask, "bool"))
        if self.go_backwards:
            x = ops.flip(x, axis=0)
            mask = None if mask is None else ops.flip(mask, axis=0)
        if mask is not None:
            x = ops.where(mask[..., None], x, 0)  # Nothing of padding, NaN included, gets out.
        latest = None if mask is None else _latest(mask)
        h, c, *past = initial_state
        z, f, o, past = self._gates(x, past, latest, training)
        if mask is not None:
            f = ops.where(mask[..., None], f, 0)
        C = _pool(f, z, c)
        H = _keep(C if o is None else o * C, h, latest)
        last_states = [H[-1], C[-1], *past]
        if mask is not None:
            # Keras outputs zeros in masked steps, or until the first step that is not masked.
            shown = mask if self.zero_output_for_mask else latest > 0
            H = ops.where(shown[..., None], H, 0)
        return H[-1], ops.transpose(H, (1, 0, 2)), last_states

    def _gates(self, x, past, latest, training):
        """Returns z, f, o, shape (time, batch, units), and the last sums of past products."""
        cell = self.cell
        kernel = ops.convert_to_tensor(cell.kernel)
        if training and self.weight_dropout:
            kernel = keras.random.dropout(kernel, self.weight_dropout, seed=cell.seed_generator)
        last, sums = [], ops.matmul(x, kernel[-1])
        for j in reversed(range(cell.window - 1)):
            kept = _keep(sums, past[j], latest)
            last.insert(0, kept[-1])
            sums = ops.matmul(x, kernel[j]) + ops.concatenate([past[j][None], kept[:-1]])
        z, f, o = cell.gates(sums)
        if cell.zoneout and training:
            noise = keras.random.uniform(ops.shape(f), dtype="float32", seed=cell.seed_generator)
            f = ops.where(noise < cell.zoneout, ops.zeros_like(f), f)
        elif cell.zoneout:
            f = (1 - cell.zoneout) * f
        return z, f, o, last

    def get_config(self):
        config = super().get_config()
        cell = config.pop("cell")["config"]
        del config["unroll"]
        regularizer = keras.regularizers.serialize(self.activity_regularizer)
        return {
            **cell,
            **config,
            "activity_regularizer": regularizer,
            "weight_dropout": self.weight_dropout,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@ops.custom_gradient
def _pool(f, z, c):
    """Returns c of all steps. The gradient takes no more than that: loops keep all they compute."""
    C = _scan(lambda c, f, z: c + f * (z - c), c, f, z)

    def gradient(upstream):
        kept = 1 - f
        after = ops.concatenate([kept[1:], ops.zeros_like(kept[:1])])
        zero = ops.zeros_like(c)
        total = _scan(lambda g, d, kept: d + kept * g, zero, upstream, after, reverse=True)
        before = ops.concatenate([c[None], C[:-1]])
        return total * (z - before), total * f, total[0] * kept[0]

    return C, gradient


def _scan(step, carry, one, other, reverse=False):
    """Returns the carries of all steps."""

    def body(carry, inputs):
        carry = step(carry, *ops.split(inputs, 2, axis=-1))
        return carry, carry

    # One tensor: with two, Keras' scan on TensorFlow fails where time is unknown.
    inputs = ops.concatenate([one, other], axis=-1)
    return ops.scan(body, carry, inputs, reverse=reverse)[1]


def _latest(mask):
    """Returns of each step the number, from 1, of the latest step that is not masked, or 0."""
    time = ops.shape(mask)[0]
    steps = ops.arange(1, time + 1, dtype="int32")[:, None]
    # All steps that are not masked, in order, before the others.
    ordered = ops.sort(ops.where(mask, steps, steps + time), axis=0)
    count = ops.cumsum(ops.cast(mask, "int32"), axis=0)
    latest = ops.take_along_axis(ordered, ops.maximum(count - 1, 0), axis=0)
    return ops.where(count > 0, latest, 0)


def _keep(values, initial, latest):
    """Returns the values (time, batch, size) with those of masked steps as they were before."""
    if latest is None:
        return values
    return ops.take_along_axis(ops.concatenate([initial[None], values]), latest[..., None], axis=0)
