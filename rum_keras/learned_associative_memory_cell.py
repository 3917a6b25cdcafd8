"""Fast weights whose update rule is learned."""

import math
from typing import Any

import keras
from keras import ops

from rum_keras.fast_weights_cell import FastWeightsCell


@keras.saving.register_keras_serializable(package="rum_keras")
class LearnedAssociativeMemoryCell(FastWeightsCell):
    """`FastWeightsCell` with several memories and a learned rule of what they keep.

    Where fast weights decay and learn at fixed rates, here each memory has two gates, computed from
    the input and the state, for what is kept of the memory and what is written to it:

    ```
    z_t     = x_t C + h_{t-1} W + b                                             (batch, units)
    d_t^k   = sigmoid(x_t C_d^k + h_{t-1} W_d^k + b_d^k)    kept by memory k    (batch, units)
    r_t^k   = sigmoid(x_t C_r^k + h_{t-1} W_r^k + b_r^k)    written to it       (batch, units)
    h_t^0   = f(LN(z_t))                                                        (batch, units)
    h_t^s   = f(LN(z_t + sum_k A_{t-1}^k h_t^{s-1}))    for s = 1, ..., S       (batch, units)
    h_t     = h_t^S
    A_t^k   = (d_t^k d_t^k') * A_{t-1}^k + (r_t^k * h_t) (r_t^k * h_t)'  (batch, units, units)
    ```

    Each memory stays symmetric and positive semidefinite, as an auto-associative memory with an
    energy is. Gates that do not depend on input and state, as they are for gate kernels of zero,
    give `FastWeightsCell(units, decay, rate)`: the rule that training starts near.

    This is a reading of the *abstract* of Zhang and Zhou, which says that several auto-associative
    memories are updated by a rule that is learned with the task. Their equations and their code
    could not be found, so this is not their WeiNet, and nothing here reproduces its results. (Five
    affine maps, as two memories need, have the published number of parameters: 21,850 with 50 units
    and 36 features, "22k".)

    Weights: those of `FastWeightsCell`, `gate_kernel` (features, 2 memories units),
    `gate_recurrent_kernel` (units, 2 memories units) and `gate_bias` (2 memories units), in the
    order `d^1`, ..., `d^K`, `r^1`, ..., `r^K`.

    State: `h` (batch, units) and the flat memories (batch, units * units), initially zero; float32
    (float64 in a float64 layer) under a mixed precision policy, too.

    Args:
        units: Positive integer, the size of `h`.
        memories: Positive integer K.
        decay: Float in (0, 1), the decay from which the rule starts.
        rate: Float in (0, K), the fast learning rate, of all memories together, from which the rule
            starts.
        gate_initializer: Initializer of both kernels of the gates.
        **kwargs: All other arguments of `FastWeightsCell`; the regularizers and constraints are
            those of the gates' weights, too.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h`, shape `(batch, units)`, and the memories, shape
            `(batch, units * units)` each.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.LearnedAssociativeMemoryCell(50), return_state=True)
    >>> output, h, *memories = layer(np.ones((2, 3, 36), "float32"))
    >>> tuple(output.shape), len(memories), layer.count_params()
    ((2, 50), 2, 21850)

    Reference:
        After the abstract of [Zhang and Zhou, 2017](https://arxiv.org/abs/1709.06493) and
        [Ba et al., 2016](https://arxiv.org/abs/1610.06258), Equations 1 to 5.
    """

    def __init__(
        self,
        units: int,
        memories: int = 2,
        decay: float = 0.95,
        rate: float = 0.5,
        gate_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(units, decay, rate, **kwargs)
        if memories != int(memories) or memories < 1:
            raise ValueError(f"`memories` must be a positive integer, received {memories}.")
        if not 0 < decay < 1 or not 0 < rate < memories:
            raise ValueError(
                f"`decay` must be in (0, 1) and `rate` in (0, memories), since gates start from "
                f"them; received {decay} and {rate}."
            )
        self.memories = int(memories)
        self.gate_initializer = keras.initializers.get(gate_initializer)
        self.state_size = [self.units] + [self.units**2] * self.memories

    def build(self, input_shape):
        super().build(input_shape)
        gates = 2 * self.memories * self.units
        for name, shape, kind, initializer in (
            ("gate_kernel", (input_shape[-1], gates), "kernel", self.gate_initializer),
            ("gate_recurrent_kernel", (self.units, gates), "recurrent", self.gate_initializer),
            ("gate_bias", (gates,), "bias", self._initial_gates),
        ):
            weight = self.add_weight(
                shape=shape,
                name=name,
                initializer=initializer,
                regularizer=getattr(self, f"{kind}_regularizer"),
                constraint=getattr(self, f"{kind}_constraint"),
            )
            setattr(self, name, weight)

    def _initial_gates(self, shape, dtype=None):
        keep, write = math.sqrt(self.decay), math.sqrt(self.rate / self.memories)
        half = (shape[0] // 2,)
        return ops.concatenate(
            [ops.full(half, math.log(gate / (1 - gate)), dtype) for gate in (keep, write)]
        )

    def call(self, inputs, states):
        h, *memories = states
        memories = [self._matrix(memory) for memory in memories]
        z = self._affine(inputs, h, self.kernel, self.recurrent_kernel, self.bias)
        gates = ops.sigmoid(
            self._affine(inputs, h, self.gate_kernel, self.gate_recurrent_kernel, self.gate_bias)
        )
        gates = ops.split(gates, 2 * self.memories, axis=-1)
        h = self._settle(z, sum(memories))
        new_states = [h]
        for d, r, A in zip(gates, gates[self.memories :], memories, strict=False):
            stored = r * h
            A = d[:, :, None] * d[:, None, :] * A + stored[:, :, None] * stored[:, None, :]
            new_states.append(self._vector(A))
        return self._output(h), new_states

    def get_config(self):
        config = super().get_config()
        config["memories"] = self.memories
        config["gate_initializer"] = keras.saving.serialize_keras_object(self.gate_initializer)
        return config
