"""The encoder of ConvS2S and Topic-ConvS2S."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from rum_keras.gated_conv1d import GatedConv1D
from rum_keras.multi_hop_attention import normal
from rum_keras.positioned_embedding import PositionedEmbedding
from rum_keras.weight_norm import WeightNormDense

# (filters, kernel_size) of each layer of the released summarizers.
LAYERS = ((512, 3),) * 20


def shortcuts(layers: Sequence[tuple[int, int]], dtype: Any) -> list[WeightNormDense | None]:
    """Returns the projection beside each layer; None where the sizes are the same."""
    sizes = [layers[0][0], *(filters for filters, _ in layers)]
    return [
        None
        if before == after
        else WeightNormDense(after, kernel_initializer=normal(1), name=f"shortcut_{i}", dtype=dtype)
        for i, (before, after) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
    ]


@keras.saving.register_keras_serializable(package="rum_keras")
class ConvS2SEncoder(keras.Layer):
    """Encoder of ConvS2S, and of Topic-ConvS2S where it is given topics.

    ```
    e  = D([x + p; t])            ids, positions, and topics of each word    (batch, source, size)
    h  = W e + b                                                          (batch, source, filters)
    h  = (GLU(w * D(h)) + h) s    in each layer                           (batch, source, filters)
    z  = W' h + b'                the keys                                   (batch, source, size)
    v  = (z + e) s                the values                                 (batch, source, size)
    ```

    with s = sqrt(0.5), D dropout, size = units + topics, W, W' and w weight-normalized, and
    h beside a layer projected where its size changes. In the backward pass the gradient of z
    is divided by 2 `hops`, as many attentions as read it, twice.

    Padding changes nothing: convolutions read zeros there, and `MultiHopAttention` gives it no
    weight. `mask_padding=False` reads it like other ids, as the released code does; that makes
    outputs depend on what else is in the batch.

    Weights: `embedding` (`PositionedEmbedding`), `input` (size, filters), `block_0`, ...
    (`GatedConv1D`), `shortcut_1`, ... where sizes change, `output` (filters, size).

    Args:
        vocabulary: Number of ids.
        units: Size of the embeddings.
        topics: Number of topics of each word, 0 for none.
        layers: (filters, kernel_size) of each layer.
        hops: Number of attentions that read the keys.
        dropout: Part of e and of each layer's input that is dropped in training.
        max_positions: Rows of the table of positions; longer sources are cut, with a warning.
        padding: The id of padding.
        mask_padding: Whether padding is masked.
        winograd: See `GatedConv1D`.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        tokens: Int tensor, shape `(batch, source)`.
        topics: None, or float tensor, shape `(batch, source, topics)`: t. Topic-ConvS2S has the
            product of the topics of word and document there, or those of the word alone.
        training: Whether dropout is random.

    Returns:
        z and v, and which ids were read, bool `(batch, source)`.

    Example:

    >>> import numpy as np
    >>> encoder = rum_keras.ConvS2SEncoder(20, units=6, layers=[(4, 3), (4, 3)])
    >>> keys, values, mask = encoder(np.array([[4, 5, 2], [6, 2, 1]]))
    >>> tuple(keys.shape), tuple(values.shape), tuple(mask.shape)
    ((2, 3, 6), (2, 3, 6), (2, 3))

    Reference:
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), Section 3;
        [Narayan et al., 2018](https://arxiv.org/abs/1808.08745), Section 4.2.
    """

    def __init__(
        self,
        vocabulary: int,
        units: int = 512,
        topics: int = 0,
        layers: Sequence[tuple[int, int]] = LAYERS,
        hops: int = 20,
        dropout: float = 0.2,
        max_positions: int = 1024,
        padding: int = 1,
        mask_padding: bool = True,
        winograd: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not layers:
            raise ValueError("`layers` must name at least one layer, received none.")
        self.vocabulary = vocabulary
        self.units = units
        self.topics = topics
        self.layers = [tuple(layer) for layer in layers]
        self.hops = hops
        self.dropout = dropout
        self.max_positions = max_positions
        self.padding = padding
        self.mask_padding = mask_padding
        self.winograd = winograd
        dtype = self.dtype_policy
        self.embedding = PositionedEmbedding(
            vocabulary, units, max_positions, padding, name="embedding", dtype=dtype
        )
        self.noise = keras.layers.Dropout(dropout, dtype=dtype)
        self.input_projection = WeightNormDense(
            self.layers[0][0], kernel_initializer=normal(1 - dropout), name="input", dtype=dtype
        )
        self.blocks = [
            GatedConv1D(*layer, dropout=dropout, winograd=winograd, name=f"block_{i}", dtype=dtype)
            for i, layer in enumerate(self.layers)
        ]
        self.shortcuts = shortcuts(self.layers, dtype)
        self.output_projection = WeightNormDense(
            units + topics, kernel_initializer=normal(1), name="output", dtype=dtype
        )

    def build(self, tokens_shape=None):
        self.embedding.build()
        self.input_projection.build((None, None, self.units + self.topics))
        size = self.layers[0][0]
        for block, shortcut in zip(self.blocks, self.shortcuts, strict=True):
            block.build((None, None, size))
            if shortcut:
                shortcut.build((None, None, size))
            size = block.filters
        self.output_projection.build((None, None, size))
        self.built = True

    def call(self, tokens, topics=None, training=False):
        real = self.embedding.real(tokens) if self.mask_padding else ops.ones_like(tokens, "bool")
        embedded = self.embedding(tokens)
        if topics is not None:
            embedded = ops.concatenate([embedded, ops.cast(topics, embedded.dtype)], axis=-1)
        embedded = self.noise(embedded, training=training)
        hidden = self.input_projection(embedded)
        mask = real if self.mask_padding else None
        for block, shortcut in zip(self.blocks, self.shortcuts, strict=True):
            residual = shortcut(hidden) if shortcut else hidden
            hidden = block(hidden, mask=mask, training=training)
            hidden = (hidden + residual) * math.sqrt(0.5)
        keys = self.output_projection(hidden)
        if self.hops:
            fixed = ops.stop_gradient(keys)
            keys = fixed + (keys - fixed) * (1 / (2 * self.hops))  # Changes the gradient alone.
        return keys, (keys + embedded) * math.sqrt(0.5), real

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "units": self.units,
            "topics": self.topics,
            "layers": self.layers,
            "hops": self.hops,
            "dropout": self.dropout,
            "max_positions": self.max_positions,
            "padding": self.padding,
            "mask_padding": self.mask_padding,
            "winograd": self.winograd,
        }
