"""What the memory networks share: padded sentences in, their encoding, attention over real ones."""

from typing import Any

import keras
from keras import ops


def position_encoded_sum(vectors: Any, real: Any) -> Any:
    """Sums the word vectors of sentences, each weighted by the place of its word.

    With `J` the number of words of the sentence, `j` the place of the word and `k` the component of
    the vector, both from 1, the weight is (Sukhbaatar et al., 2015, Section 4.1, in the scale of
    the authors' code):

    ```
    l_kj = 1 + 4 (k - (d + 1) / 2) (j - (J + 1) / 2) / (d J)
    ```

    Args:
        vectors: float, `(..., words, d)`.
        real: bool, `(..., words)`, False for padding, wherever that is: it counts in neither `j`
            nor `J`.

    Returns:
        `(..., d)`; zero for a sentence without words.

    Example:

    >>> tuple(position_encoded_sum(np.ones((1, 3, 4), "float32"), np.ones((1, 3), bool)).shape)
    (1, 4)
    """
    words = ops.cast(real, "int32")
    length = ops.maximum(ops.sum(words, axis=-1, keepdims=True), 1)
    place = ops.cast(2 * ops.cumsum(words, axis=-1) - length - 1, "float32")  # 2 (j - (J + 1) / 2)
    place = place / (2.0 * ops.cast(length, "float32"))
    size = vectors.shape[-1]
    component = 4.0 / size * (ops.arange(1, size + 1, dtype="float32") - (size + 1) / 2)
    # The weight is 1 plus a product of a factor of j and one of k: two sums of words suffice.
    factors = ops.stack([ops.ones_like(place), place], axis=-2)
    factors = factors * ops.cast(ops.expand_dims(real, -2), "float32")
    sums = ops.matmul(ops.cast(factors, vectors.dtype), vectors)
    return sums[..., 0, :] + ops.cast(component, vectors.dtype) * sums[..., 1, :]


def attention(scores: Any, real: Any) -> Any:
    """Softmax over what is real alone.

    Args:
        scores: float, `(..., n)`.
        real: bool, `(..., n)`, False for padding.

    Returns:
        Probabilities like `scores`, exactly 0 for padding, with the sum 1; all 0 where nothing is
        real.

    Example:

    >>> np.asarray(attention(np.zeros((1, 2), "float32"), np.array([[True, False]]))).tolist()
    [[1.0, 0.0]]
    """
    # Padding gets the lowest score there is, whatever its own: the largest is that of a real one.
    lowest = ops.min(scores, axis=-1, keepdims=True)
    scores = ops.where(real, scores, ops.stop_gradient(lowest))
    scores = scores - ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    exponentials = ops.exp(scores) * ops.cast(real, scores.dtype)
    total = ops.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / ops.where(total > 0, total, ops.ones_like(total))


def question_answering(network: keras.Layer, sentences: int) -> keras.Model:
    """Returns the functional model of a layer that answers a question about a story.

    Args:
        network: takes `[story, question]`, returns logits (batch, answers).
        sentences: sentences of the longest story.

    Returns:
        A model from `story`, int32 (batch, sentences, words), and `question`, int32 (batch, words
        of the question), to the logits.
    """
    story = keras.Input((sentences, None), dtype="int32", name="story")
    question = keras.Input((None,), dtype="int32", name="question")
    return keras.Model([story, question], network([story, question]), name=network.name)
