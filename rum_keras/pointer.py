"""Pointer-generator networks: attention with coverage, and words copied from the source."""

from typing import Any

import keras
from keras import ops

# Copying weighs no target less in the loss: where log 0 is meant, it is -46.
SMALLEST = 1e-20


def _precise(tensor):
    """Returns the tensor in float32, or in float64 if it is."""
    tensor = ops.convert_to_tensor(tensor)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    return ops.cast(tensor, dtype if dtype == "float64" else "float32")


@keras.saving.register_keras_serializable(package="rum_keras")
class CoverageAttention(keras.layers.Layer):
    """Additive attention that can see how much attention each source position got before.

    ```
    e_i = v . tanh(W_h z_i + W_s d + w_c coverage_i + b)                          (batch, source)
    a   = softmax(e) over the positions that are not masked                       (batch, source)
    c   = sum_i a_i z_i                                                         (batch, features)
    ```

    with z the values, encoder outputs, and d the query, the decoder's state. The coverage of a step
    is the sum of a over all steps before. Masked positions get exactly 0, and rows in which all are
    masked a context of 0. The scores are in float32 under mixed precision.

    Weights: `key_kernel` W_h (features, units), `query_kernel` W_s (query features, units), `bias`
    b, `score` v (units) and, last, `coverage_kernel` w_c (units): a model with coverage has one
    weight more than without, and can start from one without.

    Args:
        units: Positive integer, the size of v.
        coverage: Whether there is a coverage.
        kernel_initializer: Initializer of all weights but b.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: Float tensor d, shape `(batch, query features)`, or `(batch, n, query features)` for
            n queries of each row, such as the hypotheses of a beam.
        values: Float tensor z, shape `(batch, source, features)`.
        keys: None, or `keys(values)`, computed once for many queries.
        mask: Boolean tensor, shape `(batch, source)`, False at padding; None masks nothing.
        coverage: Float tensor, shape `(batch, source)` or `(batch, n, source)`; with
            `coverage=True` only.

    Returns:
        The contexts, shape `(batch, features)` or `(batch, n, features)`, in the layer's compute
        dtype, and the weights a, `(batch, source)` or `(batch, n, source)`, in float32 at least.

    Raises:
        ValueError: if `units` is not positive, or a coverage is missing or not expected.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.CoverageAttention(6, coverage=True)
    >>> query, values = np.ones((2, 3), "float32"), np.ones((2, 5, 4), "float32")
    >>> context, weights = layer(query, values, coverage=np.zeros((2, 5), "float32"))
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 4), (2, 5))

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Equations 1 to 3, 10 and 11.
    """

    def __init__(
        self,
        units: int,
        coverage: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be positive, received {units}.")
        self.units = units
        self.coverage = coverage
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, query_shape, values_shape):
        shapes = {
            "key_kernel": (values_shape[-1], self.units),
            "query_kernel": (query_shape[-1], self.units),
            "bias": (self.units,),
            "score": (self.units,),
        }
        if self.coverage:
            shapes["coverage_kernel"] = (self.units,)
        for name, shape in shapes.items():
            initializer = "zeros" if name == "bias" else self.kernel_initializer
            setattr(self, name, self.add_weight(shape=shape, name=name, initializer=initializer))
        self.built = True

    def keys(self, values: Any) -> Any:
        """Returns W_h z, shape `(batch, source, units)`, which does not depend on the query."""
        kernel = ops.cast(self.key_kernel, self.compute_dtype)
        return ops.matmul(ops.cast(values, self.compute_dtype), kernel)

    def call(self, query, values, keys=None, mask=None, coverage=None):
        if (coverage is not None) != self.coverage:
            raise ValueError(
                f"`coverage` must be {'given' if self.coverage else 'None'} with "
                f"`CoverageAttention(..., coverage={self.coverage})`."
            )
        one = len(query.shape) == 2
        if one:
            query = query[:, None]
            coverage = None if coverage is None else coverage[:, None]
        keys = self.keys(values) if keys is None else keys
        sums = keys[:, None] + (ops.matmul(query, self.query_kernel) + self.bias)[:, :, None]
        if coverage is not None:
            sums = sums + ops.cast(coverage, sums.dtype)[..., None] * self.coverage_kernel
        scores = _precise(ops.matmul(ops.tanh(sums), self.score[:, None])[..., 0])
        if mask is None:
            weights = ops.softmax(scores)
        else:
            mask = ops.cast(mask, "bool")[:, None]
            weights = ops.where(mask, ops.softmax(ops.where(mask, scores, -1e30)), 0)
        context = ops.matmul(ops.cast(weights, values.dtype), values)
        return (context[:, 0], weights[:, 0]) if one else (context, weights)

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, query_shape, values_shape):
        first = tuple(query_shape[:-1])
        return (*first, values_shape[-1]), (*first, values_shape[1])

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "coverage": self.coverage,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def coverage_loss(attention: Any) -> Any:
    """Returns how much each step attends to what steps before have attended to.

    ```
    coverage_t = sum_{t' < t} a_t'                                                (batch, source)
    loss_t     = sum_i min(a_ti, coverage_ti)                            in [0, 1]        (batch)
    ```

    Args:
        attention: Float tensor a, shape `(batch, target, source)`.

    Returns:
        Float tensor, shape `(batch, target)`.

    Example:

    >>> import numpy as np
    >>> attention = np.array([[[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]]])
    >>> np.asarray(rum_keras.coverage_loss(attention)).tolist()
    [[0.0, 0.75, 0.25]]

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Equations 10 and 12.
    """
    attention = _precise(attention)
    before = ops.cumsum(attention[:, :-1], axis=1)
    before = ops.concatenate([ops.zeros_like(attention[:, :1]), before], axis=1)
    return ops.sum(ops.minimum(attention, before), axis=-1)


def copy_distribution(
    logits: Any, pointer_logits: Any, attention: Any, source_ids: Any, extra: int
) -> Any:
    """Returns the probabilities of generating or copying each word of an extended vocabulary.

    ```
    P(w) = p_gen P_vocabulary(w) + (1 - p_gen) sum_{i: w_i = w} a_i       p_gen = sigmoid(logit)
    ```

    Words of the source that the vocabulary lacks have the ids `vocabulary`, `vocabulary + 1`, ...
    of its row. Words that appear twice get the sum of both positions' attention; words that the
    row's source does not have, exactly 0 by copying. The probabilities sum to 1 where the attention
    does.

    Args:
        logits: Float tensor, shape `(rows, vocabulary)`, the logits of P_vocabulary.
        pointer_logits: Float tensor, shape `(rows,)`.
        attention: Float tensor a, shape `(rows, source)`, 0 at padding.
        source_ids: Int tensor w, shape `(rows, source)`, less than `vocabulary + extra`.
        extra: Non-negative integer, or on TensorFlow a scalar tensor, the number of ids beyond the
            vocabulary.

    Returns:
        Float tensor, shape `(rows, vocabulary + extra)`, in float32 at least.

    Example:

    >>> import numpy as np
    >>> even = np.zeros((1, 2), "float32")  # A vocabulary of 2 words.
    >>> attention = np.array([[0.5, 0.25, 0.25]], "float32")
    >>> p = rum_keras.copy_distribution(even, np.zeros(1, "float32"), attention, [[2, 0, 2]], 2)
    >>> np.asarray(p).tolist()
    [[0.375, 0.25, 0.375, 0.0]]

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Equation 9.
    """
    logits, pointer_logits, attention = map(_precise, (logits, pointer_logits, attention))
    source_ids = ops.cast(source_ids, "int32")
    generate, copy = (ops.sigmoid(value)[:, None] for value in (pointer_logits, -pointer_logits))
    rows, vocabulary = ops.shape(logits)
    row = ops.broadcast_to(ops.arange(rows, dtype="int32")[:, None], ops.shape(source_ids))
    copied = ops.scatter(  # Adds where ids repeat.
        ops.stack([ops.reshape(row, (-1,)), ops.reshape(source_ids, (-1,))], axis=-1),
        ops.reshape(copy * attention, (-1,)),
        (rows, vocabulary + extra),
    )
    generated = generate * ops.softmax(logits)
    none = ops.zeros((rows, extra), generated.dtype)
    return copied + ops.concatenate([generated, none], axis=-1)


def copy_log_probability(
    logits: Any, pointer_logits: Any, attention: Any, source_ids: Any, targets: Any
) -> Any:
    """Returns the log-probabilities of target words, those of `copy_distribution`, for a loss.

    Nothing of the size of the extended vocabulary is made. The result and its gradients are finite
    for any finite logits and any target: p_gen stays a logarithm, and a word that the source does
    not have is copied with probability 1e-20.

    Args:
        logits: Float tensor, shape `(batch, target, vocabulary)`.
        pointer_logits: Float tensor, shape `(batch, target)`.
        attention: Float tensor, shape `(batch, target, source)`, 0 at padding.
        source_ids: Int tensor, shape `(batch, source)`, of the extended vocabulary.
        targets: Int tensor, shape `(batch, target)`, of the extended vocabulary.

    Returns:
        Float tensor, shape `(batch, target)`, in float32 at least.

    Example:

    >>> import numpy as np
    >>> even = np.zeros((1, 1, 2), "float32")  # A vocabulary of 2 words.
    >>> attention = np.array([[[0.5, 0.25, 0.25]]], "float32")
    >>> gate = np.zeros((1, 1), "float32")
    >>> p = np.exp(rum_keras.copy_log_probability(even, gate, attention, [[2, 0, 2]], [[2]]))
    >>> round(float(p[0, 0]), 5)
    0.375

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Equations 6 and 9.
    """
    logits, pointer_logits, attention = map(_precise, (logits, pointer_logits, attention))
    source_ids, targets = (ops.cast(ids, "int32") for ids in (source_ids, targets))
    known = targets < ops.shape(logits)[-1]
    generated = -ops.sparse_categorical_crossentropy(
        ops.where(known, targets, 0), logits, from_logits=True
    )
    generated = ops.where(known, generated + ops.log_sigmoid(pointer_logits), -1e30)
    same = targets[:, :, None] == source_ids[:, None, :]
    copied = ops.sum(ops.where(same, attention, 0), axis=-1)
    copied = ops.log(ops.maximum(copied, SMALLEST)) + ops.log_sigmoid(-pointer_logits)
    return ops.logaddexp(generated, copied)
