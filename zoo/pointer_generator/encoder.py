"""The encoder of the pointer-generator: both directions of a document, and the decoder's start."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

import rum_keras

CELLS = ("lstm", "rum")


def lstm_options() -> dict[str, Any]:
    """Returns how See et al.'s code initializes LSTMs: uniform kernels, a forget bias of 1."""
    uniform = {
        name: keras.initializers.RandomUniform(-0.02, 0.02)
        for name in ("kernel_initializer", "recurrent_initializer")
    }
    return {**uniform, "unit_forget_bias": True}


@keras.saving.register_keras_serializable(package="zoo")
class BidirectionalEncoder(keras.layers.Layer):
    """Reads embedded words in both directions and reduces the last states to the decoder's first.

    ```
    z_i = [forward h_i; backward h_i]                                  (batch, source, 2 units)
    LSTM to LSTM:  c_0 = relu([fw c; bw c] W_c + b_c), h_0 = relu([fw h; bw h] W_h + b_h)
    RUM to LSTM:   both of [fw h; bw h], since a RUM has no cell state
    LSTM to RUM:   h_0 = relu([c; h] W_r + b_r), of the c and h of LSTM to LSTM
    RUM to RUM:    h_0 = relu([fw h; bw h] W_h + b_h)
    ```

    as the released code of the RUM paper has it. With `lambda_` a RUM decoder's associative memory
    starts as the identity.

    Args:
        units: Size of each direction and of the decoder's state.
        cell: `"lstm"` or `"rum"`, of the encoder.
        decoder_cell: The same of the decoder.
        rum_options: Further arguments of `rum_keras.RUM`.
        **kwargs: `name` and `dtype` of `keras.layers.Layer`.

    Call arguments:
        embedded: Float tensor, shape `(batch, source, features)`.
        mask: Bool tensor, shape `(batch, source)`, False at padding.

    Returns:
        z, shape `(batch, source, 2 * units)`, and the list of the decoder's first states, each of
        shape `(batch, units)`: `[h, c]` or `[h]`.

    Raises:
        ValueError: for an unknown cell.

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Section 2.1, and
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Section 4.5.
    """

    def __init__(
        self,
        units: int,
        cell: str = "lstm",
        decoder_cell: str = "lstm",
        rum_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        for name, value in (("cell", cell), ("decoder_cell", decoder_cell)):
            if value not in CELLS:
                raise ValueError(f"`{name}` must be one of {CELLS}, received {value!r}.")
        self.units = units
        self.cell = cell
        self.decoder_cell = decoder_cell
        self.rum_options = dict(rum_options or {})
        self.directions = [self._direction("forward"), self._direction("backward")]
        self.reductions = {
            name: keras.layers.Dense(
                units,
                activation="relu",
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=1e-4),
                bias_initializer=keras.initializers.TruncatedNormal(stddev=1e-4),
                name=f"reduce_{name}",
                dtype=self.dtype_policy,
            )
            for name in self._reduced()
        }

    def _direction(self, name):
        options = {
            "return_sequences": True,
            "return_state": True,
            "go_backwards": name == "backward",
            "name": name,
            "dtype": self.dtype_policy,
        }
        if self.cell == "lstm":
            return keras.layers.LSTM(self.units, **options, **lstm_options())
        return rum_keras.RUM(self.units, **options, **self.rum_options)

    def _reduced(self):
        if self.cell == self.decoder_cell == "rum":
            return ["h"]
        return ["c", "h"] if self.decoder_cell == "lstm" else ["c", "h", "both"]

    def build(self, embedded_shape, mask_shape=None):
        for direction in self.directions:
            direction.build(embedded_shape)
        for reduction in self.reductions.values():
            reduction.build((None, 2 * self.units))
        self.built = True

    def call(self, embedded, mask=None, training=False):
        outputs, states = [], []
        for direction in self.directions:
            output, *state = direction(embedded, mask=mask, training=training)
            backward = direction.name == "backward"
            outputs.append(ops.flip(output, axis=1) if backward else output)
            # A RUM's associative memory stays with its encoder.
            states.append(state[: 2 if self.cell == "lstm" else 1])
        h, *c = [ops.concatenate(pair, axis=-1) for pair in zip(*states, strict=True)]
        return ops.concatenate(outputs, axis=-1), self._first_states(h, c[0] if c else h)

    def _first_states(self, h, c):
        reduce = self.reductions
        h = reduce["h"](h)
        if "c" in reduce:
            c = reduce["c"](c)
        if self.decoder_cell == "lstm":
            return [h, c]
        return [reduce["both"](ops.concatenate([c, h], axis=-1))] if "both" in reduce else [h]

    def get_config(self):
        config = {
            name: getattr(self, name) for name in ("units", "cell", "decoder_cell", "rum_options")
        }
        return {**super().get_config(), **config}
