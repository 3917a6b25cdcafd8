"""Embeddings of ids and of their positions."""

import warnings
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rum_keras")
class PositionedEmbedding(keras.Layer):
    """Sum of an embedding of each id and of a learned embedding of its position.

    ```
    y_i = x_i + p_n            with x_i the id's row and n - padding = 1, 2, ... the place of i
                               among the ids that are not padding                        (units)
    ```

    Positions count real ids only, so padding may stand on either side; padding itself has the row
    `padding` of both tables. Ids after the last row of the table of positions cannot be told
    apart: `real` says that they are padding, with a warning where the number of columns is known.

    Weights: `tokens/embeddings` (vocabulary, units), `positions/embeddings`
    (max_positions, units), both at first from a normal distribution of deviation 0.1.

    Args:
        vocabulary: Number of ids.
        units: Size of the embeddings.
        max_positions: Rows of the table of positions; `max_positions - padding - 1` have use.
        padding: The id of padding.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        tokens: Int tensor, shape `(batch, time)`.

    Returns:
        Float tensor, shape `(batch, time, units)`.

    Raises:
        ValueError: if `max_positions` leaves no position.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.PositionedEmbedding(20, 6)
    >>> tuple(layer(np.array([[4, 5, 2], [6, 2, 1]])).shape)
    (2, 3, 6)

    Reference:
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), Section 3.1.
    """

    def __init__(
        self,
        vocabulary: int,
        units: int,
        max_positions: int = 1024,
        padding: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if max_positions < padding + 2:
            raise ValueError(
                f"`max_positions` must be at least `padding` + 2 = {padding + 2}, received "
                f"{max_positions}: rows up to that of padding are no positions."
            )
        self.vocabulary = vocabulary
        self.units = units
        self.max_positions = max_positions
        self.padding = padding
        self.tokens, self.positions = (
            keras.layers.Embedding(
                rows,
                units,
                embeddings_initializer=keras.initializers.RandomNormal(stddev=0.1),
                name=name,
                dtype=self.dtype_policy,
            )
            for name, rows in (("tokens", vocabulary), ("positions", max_positions))
        )

    def build(self, input_shape=None):
        self.tokens.build()
        self.positions.build()
        self.built = True

    def real(self, tokens: Any) -> Any:
        """Returns which ids are neither padding nor beyond the table, bool `(batch, time)`."""
        length = self.max_positions - self.padding - 1
        if tokens.shape[1] is not None and tokens.shape[1] > length:
            warnings.warn(
                f"{self.path}: {tokens.shape[1]} columns of ids, of which the first {length} that "
                f"are not padding are read: the table has {self.max_positions} positions.",
                stacklevel=2,
            )
        real = ops.not_equal(tokens, self.padding)
        return ops.logical_and(real, ops.cumsum(ops.cast(real, "int32"), axis=1) <= length)

    def call(self, tokens):
        count = ops.cast(ops.not_equal(tokens, self.padding), "int32")
        return self.at(tokens, ops.cumsum(count, axis=1) * count)

    def at(self, tokens: Any, places: Any) -> Any:
        """Returns the embeddings of ids at given places.

        Args:
            tokens: Int tensor of any shape.
            places: Int tensor of the same shape: 1 for a first id, 0 for padding.
        """
        positions = ops.minimum(places + self.padding, self.max_positions - 1)
        return self.tokens(tokens) + self.positions(positions)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "units": self.units,
            "max_positions": self.max_positions,
            "padding": self.padding,
        }
