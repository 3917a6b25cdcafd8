"""Zoneout for any cell, and noise that is new in every step of a sequence."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

# Not exported by Keras, but `keras.layers.RNN` calls the methods overridden here, before and after
# its loop over time, only for subclasses of it.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell


class StepNoise(DropoutRNNCell):
    """Mixin for cells with noise that is new in every step, as `DropoutRNNCell` is for masks.

    A `SeedGenerator` cannot be advanced inside the loop of `keras.layers.RNN`: on JAX the new seed
    would leave the scan that it was traced in. Here the loop only reads the generator's state, and
    a step's seed is that state plus a number made from the bits of the step's own values, so steps
    differ as far as their values do. The generator is advanced once after a sequence, and only if
    noise was drawn: inference leaves it alone. A loop other than `keras.layers.RNN` calls
    `reset_dropout_mask()` after a sequence, as for all cells of Keras that drop out.

    The cell has a `seed_generator`.
    """

    dropout = 0.0
    recurrent_dropout = 0.0

    def step_noise(self, values: Sequence[Any], stream: int = 0) -> Any:
        """Returns uniform noise of the shape of `values[0]`.

        Args:
            values: Float tensors, shapes `(batch, ...)`, that differ between steps.
            stream: Integer, different for different noise in the same step.

        Returns:
            Float32 tensor of the shape of `values[0]`, in [0, 1).
        """
        self._drew_noise = True
        seed = ops.convert_to_tensor(self.seed_generator.state)
        step = sum((i + 1) * _fingerprint(value, seed.dtype) for i, value in enumerate(values))
        seed = seed + ops.stack([step, ops.full_like(step, stream)])
        return keras.random.uniform(ops.shape(values[0]), dtype="float32", seed=_Seed(seed))

    def zone_out(self, old: Any, new: Any, rate: float, training: bool, stream: int = 0) -> Any:
        """Returns `new`, with each element kept at `old` with probability `rate`.

        Args:
            old: Float tensor, shape `(batch, units)`, the state before the step.
            new: Float tensor, shape `(batch, units)`, the state after it.
            rate: Float in [0, 1].
            training: Whether to choose elements at random, or to return the expectation.
            stream: Integer, different for the different states of a cell.

        Returns:
            Float tensor, shape `(batch, units)`.
        """
        if not rate:
            return new
        new = ops.cast(new, old.dtype)  # Cells of their own precision may return another.
        if not training:
            return rate * old + (1 - rate) * new
        return ops.where(self.step_noise([old, new], stream) < rate, old, new)

    def reset_dropout_mask(self) -> None:
        super().reset_dropout_mask()
        if getattr(self, "_drew_noise", False):
            self.seed_generator.next()
            self._drew_noise = False


class _Seed(keras.random.SeedGenerator):
    """A tensor as `keras.random` takes it on every backend."""

    def __init__(self, value):
        self.value = value

    def next(self, ordered=True):
        return self.value


def _fingerprint(tensor, dtype):
    """Returns an integer that changes with any bit of the float tensor, whatever its rows."""
    bits = ops.view(ops.cast(ops.stop_gradient(tensor), "float32"), "int32")
    bits = ops.cast(bits, dtype)
    # High bits, where small integers and signs differ, would be lost in a product modulo 2^32.
    bits = ops.bitwise_xor(bits, ops.right_shift(bits, 15))
    odd = (2 * np.arange(tensor.shape[-1], dtype="uint64") + 1) * 0x9E3779B1 % 2**31
    return ops.sum(bits * ops.convert_to_tensor(odd.astype("int32"), dtype))


@keras.saving.register_keras_serializable(package="rum_keras")
class Zoneout(keras.layers.Layer, StepNoise):
    """Zoneout around any cell: in each step, random elements of its states keep their old values.

    With `s~_t` the state after the step of the wrapped cell, for each of its states,

    ```
    m_t ~ Bernoulli(1 - rate)                                      (batch, units), new in each step
    s_t = m_t * s~_t + (1 - m_t) * s_{t-1}                         in training
    s_t = (1 - rate) * s~_t + rate * s_{t-1}                       in inference
    ```

    The output is the zoned out first state, so the first state of the wrapped cell must be its
    output, as it is for LSTM, GRU and the cells of this package.

    The masks follow from the seed, the number of sequences so far, and the bits of the states: they
    are the same in two steps only where the whole batch repeats its states exactly.

    Args:
        cell: The cell to wrap, a `keras.layers.Layer`.
        rates: Float in [0, 1], or one for each state: the probability that an element is *not*
            updated. For an LSTM, `[rate of h, rate of c]`. (Released code often gives the
            probability that it is.)
        seed: Integer seed of the masks.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`. `dtype` is the wrapped
            cell's by default.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: The states of the wrapped cell.
        training: Whether to choose elements at random.

    Raises:
        ValueError: for rates outside of [0, 1] or of another number than the cell has states, and
            for a cell whose output is not of the size of its first state.

    Example:

    >>> import numpy as np
    >>> cell = rum_keras.Zoneout(keras.layers.LSTMCell(6), rates=[0.05, 0.5], seed=1)
    >>> outputs = keras.layers.RNN(cell)(np.ones((2, 3, 4), "float32"), training=True)
    >>> tuple(outputs.shape)
    (2, 6)

    Reference:
        [Krueger et al., 2017](https://arxiv.org/abs/1606.01305), Equations 2 to 6.
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        rates: float | Sequence[float],
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = cell.dtype_policy
        # autocast would round the wrapped cell's states to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        sizes = keras.tree.flatten(cell.state_size)
        self.rates = [float(rate) for rate in keras.tree.flatten(rates)]
        if len(self.rates) == 1:
            self.rates = self.rates * len(sizes)
        if len(self.rates) != len(sizes) or not all(0 <= rate <= 1 for rate in self.rates):
            raise ValueError(
                f"`rates` must be a probability, or {len(sizes)}, one for each state; "
                f"received {rates}."
            )
        if isinstance(cell, keras.layers.StackedRNNCells):
            raise ValueError("Wrap each cell of the StackedRNNCells in Zoneout, not all together.")
        if getattr(cell, "output_size", sizes[0]) != sizes[0]:
            raise ValueError(
                f"The output of `cell` must be its first state, of size {sizes[0]}, but its output "
                f"is of size {cell.output_size}."
            )
        self.cell = cell
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = cell.state_size
        self.output_size = sizes[0]

    @property
    def compute_dtype(self) -> str:
        """The dtype of the wrapped cell's states. `RNN` casts states to it."""
        return self.cell.compute_dtype

    def build(self, input_shape):
        if not self.cell.built:
            self.cell.build(input_shape)
            self.cell.built = True
        self.built = True

    def call(self, inputs, states, training=False):
        output, new_states = self.cell(inputs, states)  # Keras hands `training` on.
        old_states = keras.tree.flatten(states)
        new_states = [
            self.zone_out(old, new, rate, training, stream)
            for stream, (old, new, rate) in enumerate(
                zip(old_states, keras.tree.flatten(new_states), self.rates, strict=True)
            )
        ]
        output = ops.cast(new_states[0], output.dtype)
        return output, new_states if isinstance(states, (list, tuple)) else new_states[0]

    def get_dropout_mask(self, step_input):
        if isinstance(self.cell, DropoutRNNCell):
            return self.cell.get_dropout_mask(step_input)
        return None

    def get_recurrent_dropout_mask(self, step_input):
        if isinstance(self.cell, DropoutRNNCell):
            return self.cell.get_recurrent_dropout_mask(step_input)
        return None

    def reset_dropout_mask(self):
        super().reset_dropout_mask()
        if isinstance(self.cell, DropoutRNNCell):
            self.cell.reset_dropout_mask()

    def reset_recurrent_dropout_mask(self):
        if isinstance(self.cell, DropoutRNNCell):
            self.cell.reset_recurrent_dropout_mask()

    def get_initial_state(self, batch_size=None):
        """Returns the initial states of the wrapped cell."""
        if hasattr(self.cell, "get_initial_state"):
            return self.cell.get_initial_state(batch_size=batch_size)
        return keras.tree.map_structure(
            lambda size: ops.zeros((batch_size, size), self.compute_dtype), self.state_size
        )

    def get_config(self):
        config = super().get_config()
        cell = keras.saving.serialize_keras_object(self.cell)
        return {**config, "cell": cell, "rates": self.rates, "seed": self.seed}

    @classmethod
    def from_config(cls, config):
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**{**config, "cell": cell})
