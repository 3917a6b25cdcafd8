"""The Fast-Slow RNN, a composition of any recurrent cells."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from rum_keras.zoneout import DropoutRNNCell, StepNoise


@keras.saving.register_keras_serializable(package="rum_keras")
class FastSlowCell(keras.layers.Layer, StepNoise):
    """Fast-Slow RNN (FS-RNN-k): k fast cells, one after the other in each step, and a slow one.

    The fast cells `F_1`, ..., `F_k` share one chain of states: each continues from the states the
    one before left, `F_1` from those that `F_k` left in the step before. The slow cell `S` is
    updated once in a step, so what it remembers passes fewer updates:

    ```
    f_1 = F_1(drop(x_t), states of F_k in step t - 1)                   (batch, fast units)
    s_t = S(drop(f_1), states of S in step t - 1)                       (batch, slow units)
    f_2 = F_2(drop(s_t), states of F_1)                                 (batch, fast units)
    f_i = F_i(0, states of F_{i-1})           for i = 3, ..., k         (batch, fast units)
    ```

    The output is `f_k`. As in the released code, the input of `F_3`, ..., `F_k` is one column of
    zeros, for which those cells have one (unused) row of input weights.

    The published FS-LSTM-2 is `FastSlowCell` over two fast and a slow `LayerNormLSTMCell`, FS-RUM-2
    one with a slow `RUMCell`, all with zoneout; they also drop outputs, which is a
    `keras.layers.Dropout` behind the recurrent layer.

    States: those of the fast cells, then those of the slow cell, as one flat list. They are in the
    widest dtype of the cells.

    Args:
        fast_cells: At least two cells with states of the same sizes.
        slow_cell: A cell. The states of all cells are flat lists.
        dropout: Float in [0, 1), the fraction dropped of the inputs of `F_1`, `S` and `F_2`. Unlike
            the dropout of Keras's cells, it is drawn anew in each step.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`; `dtype` does not change
            that of the cells.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of the states, shape `(batch, size)` each.
        training: Whether dropout (and zoneout and dropout of the cells) is random.

    Raises:
        ValueError: for fewer than two fast cells, fast cells that cannot share their states, cells
            with nested states, or a dropout outside of its range.

    Example:

    >>> import numpy as np
    >>> fast_cells = [rum_keras.Zoneout(rum_keras.LayerNormLSTMCell(6), [0.1, 0.5]) for _ in "12"]
    >>> slow_cell = rum_keras.RUMCell(7, eta=1.0, layer_norm=True, zoneout=0.1)
    >>> layer = keras.layers.RNN(rum_keras.FastSlowCell(fast_cells, slow_cell, dropout=0.35))
    >>> tuple(layer(np.ones((2, 3, 4), "float32")).shape)
    (2, 6)

    Reference:
        [Mujika et al., 2017](https://arxiv.org/abs/1705.08639), Equations 3 to 7.
    """

    def __init__(
        self,
        fast_cells: Sequence[keras.layers.Layer],
        slow_cell: keras.layers.Layer,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        # autocast would round the states of the cells to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        sizes = [_flat_sizes(cell) for cell in fast_cells]
        if len(sizes) < 2 or any(size != sizes[0] for size in sizes):
            raise ValueError(
                f"`fast_cells` must be two or more cells with states of equal sizes, since they "
                f"share them; received cells with states of sizes {sizes}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be a probability below 1, received {dropout}.")
        self.fast_cells = list(fast_cells)
        self.slow_cell = slow_cell
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = sizes[0] + _flat_sizes(slow_cell)
        self.output_size = _output_size(self.fast_cells[-1])

    @property
    def compute_dtype(self) -> str:
        """The dtype of the states, the widest of the cells'. `RNN` casts states to it."""
        return keras.backend.result_type(*(cell.compute_dtype for cell, _ in self._steps()))

    def _steps(self):
        """Returns the cells in their order in a step, each with the size of its input."""
        first, second, *others = self.fast_cells
        return [
            (first, None),
            (self.slow_cell, _output_size(first)),
            (second, _output_size(self.slow_cell)),
            *((cell, 1) for cell in others),
        ]

    def build(self, input_shape):
        for cell, features in self._steps():
            if not cell.built:
                cell.build((input_shape[0], features or input_shape[-1]))
                cell.built = True
        self.built = True

    def call(self, inputs, states, training=False):
        split = len(_flat_sizes(self.slow_cell))
        fast, slow = list(states[:-split]), list(states[-split:])
        output = inputs
        for step, (cell, _) in enumerate(self._steps()):
            if step > 2:
                output = ops.zeros_like(output[:, :1])
            elif training and self.dropout:
                keep = self.step_noise([output, fast[0]], step) >= self.dropout
                output = output * ops.cast(keep, output.dtype) / (1 - self.dropout)
            if cell is self.slow_cell:
                output, slow = self._call_cell(cell, output, slow)
            else:
                output, fast = self._call_cell(cell, output, fast)
        return output, fast + slow

    def _call_cell(self, cell, inputs, states):
        output, new_states = cell(inputs, states)  # Keras hands `training` on.
        new_states = keras.tree.flatten(new_states)
        return output, [
            ops.cast(new, old.dtype) for new, old in zip(new_states, states, strict=True)
        ]

    # `keras.layers.RNN` asks for the dropout masks of a sequence before its loop: so do we of the
    # cells. Only the shapes of the arguments matter.

    def get_dropout_mask(self, step_input):
        batch = ops.shape(step_input)[0]
        for cell, features in self._steps():
            if isinstance(cell, DropoutRNNCell):
                shape = (batch, features or step_input.shape[-1])
                cell.get_dropout_mask(ops.zeros(shape, cell.compute_dtype))

    def get_recurrent_dropout_mask(self, step_input):
        for cell, _ in self._steps():
            if isinstance(cell, DropoutRNNCell):
                shape = (ops.shape(step_input)[0], _flat_sizes(cell)[0])
                cell.get_recurrent_dropout_mask(ops.zeros(shape, cell.compute_dtype))

    def reset_dropout_mask(self):
        super().reset_dropout_mask()
        for cell, _ in self._steps():
            if isinstance(cell, DropoutRNNCell):
                cell.reset_dropout_mask()

    def reset_recurrent_dropout_mask(self):
        for cell, _ in self._steps():
            if isinstance(cell, DropoutRNNCell):
                cell.reset_recurrent_dropout_mask()

    def get_initial_state(self, batch_size=None):
        """Returns the initial states of the first fast cell and of the slow cell."""
        states = []
        for cell in (self.fast_cells[0], self.slow_cell):
            if hasattr(cell, "get_initial_state"):
                states += keras.tree.flatten(cell.get_initial_state(batch_size=batch_size))
            else:
                states += [ops.zeros((batch_size, size)) for size in _flat_sizes(cell)]
        return [ops.cast(state, self.compute_dtype) for state in states]

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "fast_cells": [serialize(cell) for cell in self.fast_cells],
            "slow_cell": serialize(self.slow_cell),
            "dropout": self.dropout,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        fast_cells = [deserialize(cell) for cell in config["fast_cells"]]
        slow_cell = deserialize(config["slow_cell"])
        return cls(**{**config, "fast_cells": fast_cells, "slow_cell": slow_cell})


def _flat_sizes(cell):
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    if any(isinstance(size, (list, tuple)) for size in sizes):
        raise ValueError(f"Cells must have flat lists of states, received sizes {sizes}.")
    return list(sizes)


def _output_size(cell):
    return getattr(cell, "output_size", _flat_sizes(cell)[0])
