"""The cell of quasi-recurrent networks."""

from typing import Any

import keras
from keras import ops

from rum_keras.zoneout import StepNoise


@keras.saving.register_keras_serializable(package="rum_keras")
class QRNNCell(keras.layers.Layer, StepNoise):
    """One step of a quasi-recurrent network; `QRNN` computes all steps of a sequence at once.

    ```
    z_t, f_t, o_t = tanh, sigmoid, sigmoid of sum_j x_{t-j} W_j + b   j < window  (batch, 3 units)
    c_t = f_t * z_t + (1 - f_t) * c_{t-1}                                           (batch, units)
    h_t = o_t * c_t                                                                 (batch, units)
    ```

    The gate f weighs the new value, as in Merity et al.'s released code; the f of Bradbury et al.
    is 1 - f here. Zoneout sets random elements of f to 0, which keeps those of c; in inference f
    is multiplied by `1 - zoneout`.

    Weights: `kernel` (window, features, 3 units), `kernel[j]` for the input j steps before, and
    `bias` (3 units), both in the order z | f | o. State: `h`, `c`, and with a window, for each j
    from 1 on, the sum of products of past inputs that comes into the gates j steps later,
    (batch, 3 units).

    Args:
        units: Positive integer, the size of `h` and `c`.
        window: Positive integer, the number of inputs that the gates see.
        output_gate: Whether there is o; without, `h_t = c_t`, and the blocks are z | f.
        zoneout: Float in [0, 1], the probability that an element of c is not updated.
        activation: Activation function of z.
        use_bias: Whether b is added.
        kernel_initializer: Initializer of `kernel`.
        bias_initializer: Initializer of `bias`.
        seed: Integer seed of zoneout.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of the states.
        training: Whether zoneout is random.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.QRNNCell(6, window=2))
    >>> tuple(layer(np.ones((2, 3, 4), "float32")).shape)
    (2, 6)

    Reference:
        [Bradbury et al., 2017](https://arxiv.org/abs/1611.01576), Section 2;
        [Merity et al., 2018](https://arxiv.org/abs/1803.08240), Section 3.2.
    """

    def __init__(
        self,
        units: int,
        window: int = 1,
        output_gate: bool = True,
        zoneout: float = 0.0,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, value in (("units", units), ("window", window)):
            if value < 1:
                raise ValueError(f"`{name}` must be positive, received {value}.")
        if not 0 <= zoneout <= 1:
            raise ValueError(f"`zoneout` must be in [0, 1], received {zoneout}.")
        self.units = units
        self.window = window
        self.output_gate = output_gate
        self.zoneout = zoneout
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.blocks = 3 if output_gate else 2
        self.state_size = [units, units, *[self.blocks * units] * (window - 1)]
        self.output_size = units

    def build(self, input_shape):
        size = self.blocks * self.units
        self.kernel = self.add_weight(
            shape=(self.window, input_shape[-1], size),
            name="kernel",
            initializer=self.kernel_initializer,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(size,), name="bias", initializer=self.bias_initializer
            )
        self.built = True

    def call(self, inputs, states, training=False):
        _, c, *past = states
        products = [ops.matmul(inputs, self.kernel[j]) for j in range(self.window)]
        sums = [a + b for a, b in zip(products, past, strict=False)] + products[len(past) :]
        z, f, o = self.gates(sums[0])
        if self.zoneout and training:
            f = ops.where(self.step_noise([f, c]) < self.zoneout, ops.zeros_like(f), f)
        elif self.zoneout:
            f = (1 - self.zoneout) * f
        c = c + f * (z - c)
        h = c if o is None else o * c
        return h, [h, c, *sums[1:]]

    def gates(self, sums: Any) -> tuple:
        """Returns z, f and o, or None for it, of their sums of products, `(..., blocks units)`."""
        if self.bias is not None:
            sums = sums + self.bias
        z, f, *o = ops.split(sums, self.blocks, axis=-1)
        return self.activation(z), ops.sigmoid(f), ops.sigmoid(o[0]) if o else None

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "window": self.window,
            "output_gate": self.output_gate,
            "zoneout": self.zoneout,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "seed": self.seed,
        }
