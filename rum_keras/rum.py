"""The RUM layer: a RUMCell over a sequence."""

from typing import Any

import keras
from keras import ops

from rum_keras.rum_cell import RUMCell, check_states


@keras.saving.register_keras_serializable(package="rum_keras")
class RUM(keras.layers.RNN):
    """Rotational Unit of Memory over a sequence, as `keras.layers.GRU` is a GRU over a sequence.

    Equal to `keras.layers.RNN(RUMCell(units, ...))`, with the same weights, but on TensorFlow
    several times as fast, and with `lambda_=1` in a memory that does not grow by units^2 a step:
    the whole sequence is one operation with a gradient derived by hand, in training compiled by
    XLA (once for each batch size and length: seconds, so pad to few lengths). That covers
    `lambda_` 0 and 1, the activations relu, tanh, sigmoid, softsign and linear with the default
    `recurrent_activation`, and every `eta`, `trainable_rotation`, `dropout`, mask and initial
    state (whose R must be orthogonal, as every returned one is). `lambda_` in between,
    `layer_norm`, `zoneout`, `recurrent_dropout`, `return_angle`, `unroll`,
    `use_update_gate=False` and other backends take the cell's steps, as do second derivatives: ask
    `keras.layers.RNN` for these.

    Args:
        units: Positive integer N_h, the size of the hidden state.
        return_sequences: Whether to return the outputs of all steps, or of the last only.
        return_state: Whether to return the last states too: `h` and, unless `lambda_=0`, the flat
            memory `vec(R - I)`.
        go_backwards: Whether to process the sequence backwards (and return it in that order).
        stateful: Whether a batch starts from the last states of the batch before.
        unroll: Whether to unroll the loop over time.
        zero_output_for_mask: Whether masked steps output zeros rather than the output before.
        activity_regularizer: Regularizer of the output.
        name, dtype, trainable: As in `keras.layers.Layer`.
        **cell_options: All other arguments of `rum_keras.RUMCell`: `lambda_`, `eta`,
            `activation`, `use_update_gate`, `layer_norm`, `zoneout`, `dropout`, ...

    Call arguments:
        sequences: Float tensor, shape `(batch, time, features)`.
        initial_state: List of tensors, `h` (batch, units) and, unless `lambda_=0`, the memory
            (batch, units * units). Default: zeros, that is `h = 0` and `R = I`.
        mask: Boolean tensor, shape `(batch, time)`; where False, states are kept.
        training: Whether dropout and zoneout are random.

    Returns:
        Float tensor, shape `(batch, units)`, or `(batch, time, units)` with `return_sequences`
        (`units + 1` with `return_angle`), followed by the states with `return_state`.

    Raises:
        ValueError: for an argument outside of its range, or an input that is not of rank 3.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.RUM(6, lambda_=1, return_sequences=True, return_state=True)
    >>> outputs, h, memory = layer(np.ones((2, 3, 4), "float32"))
    >>> tuple(outputs.shape), tuple(h.shape), tuple(memory.shape)
    ((2, 3, 6), (2, 6), (2, 36))

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Section 3, Algorithm 1.
    """

    def __init__(
        self,
        units: int,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        activity_regularizer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **cell_options: Any,
    ) -> None:
        super().__init__(
            RUMCell(units, name="rum_cell", dtype=dtype, trainable=trainable, **cell_options),
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            zero_output_for_mask=zero_output_for_mask,
            activity_regularizer=activity_regularizer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def build(self, sequences_shape, initial_state_shape=None):
        super().build(sequences_shape, initial_state_shape)
        for variable in self.states or []:
            # Keras would round states that are read under a mixed policy, the memory R too.
            variable._autocast = False

    def call(self, sequences, initial_state=None, mask=None, training=False):
        outputs = super().call(sequences, initial_state=initial_state, mask=mask, training=training)
        if self.stateful:
            # RNN has rounded them to the policy's compute dtype.
            for variable, state in zip(self.states, self._last_states, strict=True):
                variable.assign(state)
        del self._last_states
        return outputs

    def inner_loop(self, sequences, initial_state, mask, training=False):
        check_states(initial_state, self.cell.state_size)
        last_output, outputs, states = self._loop(sequences, initial_state, mask, training)
        self._last_states = tuple(states)
        return last_output, outputs, states

    def _loop(self, sequences, initial_state, mask, training):
        if keras.backend.backend() != "tensorflow" or self.unroll:
            return super().inner_loop(sequences, initial_state, mask, training)
        from rum_keras import rum_kernels  # Imports TensorFlow, which other backends may lack.

        if not rum_kernels.supports(self.cell):
            return super().inner_loop(sequences, initial_state, mask, training)
        if self.go_backwards:
            sequences = ops.flip(sequences, axis=1)
            mask = None if mask is None else ops.flip(mask, axis=1)
        outputs, states = rum_kernels.run(self.cell, sequences, initial_state, mask, training)
        if mask is not None:
            # Keras outputs zeros in masked steps, or until the first step that is not masked.
            shown = (
                mask if self.zero_output_for_mask else ops.cumsum(ops.cast(mask, "int32"), 1) > 0
            )
            outputs = ops.where(shown[:, :, None], outputs, 0.0)
        return outputs[:, -1], outputs, states

    def get_config(self):
        config = super().get_config()
        cell = config.pop("cell")["config"]
        regularizer = keras.regularizers.serialize(self.activity_regularizer)
        return {**cell, **config, "activity_regularizer": regularizer}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
