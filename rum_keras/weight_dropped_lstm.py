"""LSTM with dropped recurrent weights, of the AWD-LSTM language model."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rum_keras")
class WeightDroppedLSTM(keras.layers.LSTM):
    """LSTM whose recurrent weights are dropped at random: DropConnect, once for a whole sequence.

    ```
    M ~ Bernoulli(1 - p)                           (units, 4 units), drawn anew for each batch
    U~ = M * U / (1 - p)                                                     (units, 4 units)
    h_t, c_t = LSTM step with U~ in place of the recurrent kernel U           (batch, units) each
    ```

    The same weights are dropped in all steps and rows, so the loop over time is that of any LSTM,
    cuDNN's included. Nothing is dropped in inference.

    The rest of AWD-LSTM is in Keras: variational dropout between layers is
    `keras.layers.SpatialDropout1D`, weight decay the optimizer's `weight_decay`, and carried states
    are `stateful=True` or `initial_state`.

    Weights and states are those of `keras.layers.LSTM`.

    Args:
        units: Positive integer, the size of `h` and `c`.
        weight_dropout: Float p in [0, 1).
        seed: Integer seed of all dropout.
        **kwargs: All other arguments of `keras.layers.LSTM`.

    Call arguments:
        sequences: Float tensor, shape `(batch, time, features)`.
        initial_state: List of `h` and `c`, shape `(batch, units)` each.
        mask: Boolean tensor, shape `(batch, time)`.
        training: Whether weights are dropped.

    Returns:
        As `keras.layers.LSTM`.

    Raises:
        ValueError: if `weight_dropout` is out of its range.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.WeightDroppedLSTM(6, weight_dropout=0.5)
    >>> tuple(layer(np.ones((2, 3, 4), "float32"), training=True).shape)
    (2, 6)

    Reference:
        [Merity et al., 2018](https://arxiv.org/abs/1708.02182), Section 3;
        [Wan et al., 2013](https://proceedings.mlr.press/v28/wan13.html).
    """

    def __init__(
        self, units: int, weight_dropout: float = 0.5, seed: int | None = None, **kwargs: Any
    ) -> None:
        if not 0 <= weight_dropout < 1:
            raise ValueError(f"`weight_dropout` must be in [0, 1), received {weight_dropout}.")
        super().__init__(units, seed=seed, **kwargs)
        self.weight_dropout = weight_dropout

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if not (training and self.weight_dropout):
            return super().inner_loop(sequences, initial_state, mask, training)
        cell = self.cell
        kernel = cell.recurrent_kernel
        dropped = keras.random.dropout(
            ops.convert_to_tensor(kernel), self.weight_dropout, seed=cell.seed_generator
        )
        # Whatever loop Keras takes, it takes the kernel from the cell.
        cell.recurrent_kernel = dropped
        try:
            return super().inner_loop(sequences, initial_state, mask, training)
        finally:
            cell.recurrent_kernel = kernel

    def get_config(self):
        return {**super().get_config(), "weight_dropout": self.weight_dropout}
