"""The decoder of ConvS2S and Topic-ConvS2S, for whole targets and id by id."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from rum_keras.conv_s2s_encoder import LAYERS, shortcuts
from rum_keras.gated_conv1d import GatedConv1D
from rum_keras.multi_hop_attention import MultiHopAttention, normal
from rum_keras.positioned_embedding import PositionedEmbedding
from rum_keras.weight_norm import WeightNormDense


@keras.saving.register_keras_serializable(package="rum_keras")
class ConvS2SDecoder(keras.Layer):
    """Decoder of ConvS2S, and of Topic-ConvS2S where it is given topics.

    ```
    g  = D([x + p; t])               ids, positions, topics of the document  (batch, target, size)
    h  = W g + b                                                          (batch, target, filters)
    h' = A(GLU(w * D(h)), g, z, v)   in each layer, w sees no later step  (batch, target, filters)
    h  = (h' + h) s                                                       (batch, target, filters)
    l  = V D(U h + b') + b''         the logits                        (batch, target, vocabulary)
    ```

    with s = sqrt(0.5), D dropout, size = units + topics, A `MultiHopAttention` on keys z, values v
    of `ConvS2SEncoder`, W, w, U, V weight-normalized, and h projected where its size changes.

    `start` and `step` give the same id by id, with the work of one step: they keep what
    convolutions see, and beams of a document share its keys and values.

    Weights: `embedding` (`PositionedEmbedding`), `input` (size, filters), `block_0`, ...
    (`GatedConv1D`), `attention_0`, ..., `shortcut_1`, ... where sizes change, `hidden`
    (filters, output_units), `logits` (output_units, vocabulary).

    Args:
        vocabulary: Number of ids.
        units: Size of the embeddings.
        topics: Number of topics of the document, 0 for none.
        layers: (filters, kernel_size) of each layer.
        attention: Whether layers have attention: one bool for all, or one each.
        output_units: Size of what is before the logits.
        share_embedding: Whether V is the ids' embedding; then `output_units` must be `units`.
        dropout: Part of g, of each layer's input and of U h that is dropped in training.
        max_positions: Rows of the table of positions; later ids have the last of them.
        padding: The id of padding.
        scaled: See `MultiHopAttention`.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        tokens: Int tensor, shape `(batch, target)`: the end symbol, then the target but its last.
        keys: z. Float tensor, shape `(batch, source, size)`.
        values: v. Float tensor, shape `(batch, source, size)`.
        mask: Bool tensor, shape `(batch, source)`, of what is source.
        topics: None, or float tensor, shape `(batch, topics)`: t.
        training: Whether dropout is random.

    Returns:
        Logits, shape `(batch, target, vocabulary)`, never in half precision, and the attention of
        each hop, shape `(batch, hops, target, source)`.

    Raises:
        ValueError: For arguments that do not go together.

    Example:

    >>> import numpy as np
    >>> encoder = rum_keras.ConvS2SEncoder(20, units=6, layers=[(4, 3)])
    >>> decoder = rum_keras.ConvS2SDecoder(20, units=6, layers=[(4, 3)], output_units=5)
    >>> source, target = np.array([[4, 5, 6, 2]]), np.array([[2, 7, 8]])
    >>> logits, attention = decoder(target, *encoder(source))
    >>> tuple(logits.shape), tuple(attention.shape)
    ((1, 3, 20), (1, 1, 3, 4))

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
        attention: bool | Sequence[bool] = True,
        output_units: int = 256,
        share_embedding: bool = False,
        dropout: float = 0.2,
        max_positions: int = 1024,
        padding: int = 1,
        scaled: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary = vocabulary
        self.units = units
        self.topics = topics
        self.layers = [tuple(layer) for layer in layers]
        hops = attention if isinstance(attention, Sequence) else [attention] * len(layers)
        self.attention = [bool(hop) for hop in hops]
        self.output_units = output_units
        self.share_embedding = share_embedding
        self.dropout = dropout
        self.max_positions = max_positions
        self.padding = padding
        self.scaled = scaled
        self._check()
        self.embedding = PositionedEmbedding(
            vocabulary, units, max_positions, padding, name="embedding", dtype=self.dtype_policy
        )
        self._make_layers(self.dtype_policy)

    def _check(self):
        if len(self.attention) != len(self.layers):
            raise ValueError(
                f"`attention` must have one entry for each of the {len(self.layers)} layers, "
                f"received {len(self.attention)}."
            )
        if not any(self.attention):
            raise ValueError("`attention` must be True in at least one layer, received none.")
        size, units = self.output_units, self.units
        if self.share_embedding and size != units:
            raise ValueError(
                f"`output_units` must be `units` = {units} to share the embedding, received {size}."
            )

    def _make_layers(self, dtype):
        def projection(units, scale, name):
            return WeightNormDense(units, kernel_initializer=normal(scale), name=name, dtype=dtype)

        self.noise = keras.layers.Dropout(self.dropout, dtype=dtype)
        self.input_projection = projection(self.layers[0][0], 1 - self.dropout, "input")
        self.blocks = [
            GatedConv1D(*layer, "causal", self.dropout, name=f"block_{i}", dtype=dtype)
            for i, layer in enumerate(self.layers)
        ]
        size = self.units + self.topics
        self.hops = [
            MultiHopAttention(size, self.scaled, name=f"attention_{i}", dtype=dtype)
            if hop
            else None
            for i, hop in enumerate(self.attention)
        ]
        self.shortcuts = shortcuts(self.layers, dtype)
        self.hidden_projection = projection(self.output_units, 1, "hidden")
        self.hidden_noise = keras.layers.Dropout(self.dropout, dtype=dtype)
        self.logits_projection = None
        if not self.share_embedding:
            self.logits_projection = projection(self.vocabulary, 1 - self.dropout, "logits")

    def build(self, tokens_shape=None):
        self.embedding.build()
        self.input_projection.build((None, None, self.units + self.topics))
        size = self.layers[0][0]
        for block, hop, shortcut in zip(self.blocks, self.hops, self.shortcuts, strict=True):
            block.build((None, None, size))
            if shortcut:
                shortcut.build((None, None, size))
            size = block.filters
            if hop:
                hop.build((None, None, size))
        self.hidden_projection.build((None, None, size))
        if self.logits_projection:
            self.logits_projection.build((None, None, self.output_units))
        else:
            self.logits_bias = self.add_weight(
                shape=(self.vocabulary,), name="logits_bias", initializer="zeros"
            )
        self.built = True

    def call(self, tokens, keys, values, mask, topics=None, training=False):
        embedded = self._with_topics(self.embedding(tokens), topics)
        embedded = self.noise(embedded, training=training)
        source = (ops.transpose(keys, (0, 2, 1)), values, mask)

        def convolve(i, hidden, kernel):
            return self.blocks[i](hidden, kernel=kernel, training=training)

        logits, attention = self._decode(
            embedded, source, self.effective_kernels(), convolve, training
        )
        return logits, ops.stack(attention, axis=1)

    def _with_topics(self, embedded, topics):
        if topics is None:
            return embedded
        shape = (*ops.shape(embedded)[:2], self.topics)
        topics = ops.broadcast_to(ops.cast(topics, embedded.dtype)[:, None], shape)
        return ops.concatenate([embedded, topics], axis=-1)

    def effective_kernels(self) -> dict[str, Any]:
        """Returns the kernels of all weight-normalized layers, for loops to compute once."""
        if self.logits_projection:
            logits = self.logits_projection.effective_kernel()
        else:
            table = ops.convert_to_tensor(self.embedding.tokens.embeddings)
            logits = ops.cast(ops.transpose(table), self.compute_dtype)
        return {
            "input": self.input_projection.effective_kernel(),
            "blocks": [block.convolution.effective_kernel() for block in self.blocks],
            "attention": [hop.effective_kernels() if hop else () for hop in self.hops],
            "shortcuts": [s.effective_kernel() if s else () for s in self.shortcuts],
            "hidden": self.hidden_projection.effective_kernel(),
            "logits": logits,
        }

    def _decode(self, embedded, source, kernels, convolve, training=False):
        """Returns logits and the attention of each hop, for g and a way to convolve."""
        hidden = self.input_projection(embedded, kernel=kernels["input"])
        found = []
        for i, (hop, shortcut) in enumerate(zip(self.hops, self.shortcuts, strict=True)):
            kernel = kernels["shortcuts"][i]
            residual = shortcut(hidden, kernel=kernel) if shortcut else hidden
            hidden = convolve(i, hidden, kernels["blocks"][i])
            if hop:
                hidden, attention = hop(hidden, embedded, *source, kernels=kernels["attention"][i])
                found.append(attention)
            hidden = (hidden + residual) * math.sqrt(0.5)
        hidden = self.hidden_projection(hidden, kernel=kernels["hidden"])
        hidden = self.hidden_noise(hidden, training=training)
        if self.logits_projection:
            logits = self.logits_projection(hidden, kernel=kernels["logits"])
        else:
            logits = ops.matmul(hidden, kernels["logits"]) + self.logits_bias
        precise = "float64" if self.compute_dtype == "float64" else "float32"
        return ops.cast(logits, precise), found

    def start(
        self, keys: Any, values: Any, mask: Any, topics: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns what every step of a loop reads, and the state before the first step.

        Args:
            keys: z, like the others as when calling the layer.
            values: v.
            mask: Which ids are source.
            topics: None, or t.

        Returns:
            The memory, for `step`, and the state, whose first axes are the batch: rows may be
            repeated (each one's copies side by side), picked and reordered.
        """
        sizes = [self.layers[0][0], *(filters for filters, _ in self.layers)]
        past = [
            ops.zeros((ops.shape(keys)[0], kernel_size - 1, size), self.compute_dtype)
            for size, (_, kernel_size) in zip(sizes[:-1], self.layers, strict=True)
        ]
        memory = {
            "source": (ops.transpose(keys, (0, 2, 1)), values, mask),
            "topics": topics,
            "kernels": self.effective_kernels(),
        }
        return memory, {"place": ops.zeros_like(mask[:, 0], "int32"), "past": past}

    def step(
        self, tokens: Any, state: dict[str, Any], memory: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Reads one more id of each target.

        Args:
            tokens: Int tensor, shape `(rows,)`, at first the end symbol. Each source has as many
                rows as the others, side by side.
            state: from `start` or the step before, its first axes `rows`.
            memory: from `start`.

        Returns:
            Logits, shape `(rows, vocabulary)`, the sum of the hops' attention divided by the number
            of layers, shape `(rows, source)`, and the next state.
        """
        batch = ops.shape(memory["source"][1])[0]
        place = state["place"] + 1
        embedded = self.embedding.at(tokens, place)
        # As (batch, targets, size): rows of a source are to attention what steps are in `call`.
        embedded = ops.reshape(embedded, (batch, -1, self.units))
        embedded = self._with_topics(embedded, memory["topics"])
        past = []

        def convolve(i, hidden, kernel):
            flat = ops.reshape(hidden, (-1, hidden.shape[-1]))
            flat, seen = self.blocks[i].step(flat, state["past"][i], kernel)
            past.append(seen)
            return ops.reshape(flat, (batch, -1, flat.shape[-1]))

        logits, found = self._decode(embedded, memory["source"], memory["kernels"], convolve)
        rows = ops.shape(tokens)[0]
        attention = sum(found) / len(self.layers)
        return (
            ops.reshape(logits, (rows, self.vocabulary)),
            ops.reshape(attention, (rows, -1)),
            {"place": place, "past": past},
        )

    def get_config(self):
        names = ("vocabulary", "units", "topics", "layers", "attention", "output_units", "padding")
        names += ("share_embedding", "dropout", "max_positions", "scaled")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
