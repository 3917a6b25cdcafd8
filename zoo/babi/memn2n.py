"""End-To-End Memory Network, MemN2N."""

import math
from typing import Any

import keras
from keras import ops

from zoo.babi.sentences import attention, position_encoded_sum, question_answering


@keras.saving.register_keras_serializable(package="rum_keras")
class MemN2N(keras.layers.Layer):
    """Reads a story with the question in hand, several times over.

    Each sentence `x_i` is a memory in two ways, `m_i` to find it by and `c_i` to read. A hop finds
    the memories that match the controller's state `u`, and adds what they hold to it:

    ```
    m_i     = sum_j l_j * A x_ij + T_A(i)      c_i = sum_j l_j * C x_ij + T_C(i)           (units)
    u^1     = sum_j l_j * B q_j                                                            (units)
    p_i     = softmax(u^T m_i)                 o   = sum_i p_i c_i             (sentences), (units)
    u^{k+1} = u^k + o                          logits = W u^{K+1}                (units), (answers)
    ```

    with `l_j` (units) the position encoding of word `j`, `T(i)` (units) the temporal encoding,
    where `i` counts from the newest sentence, and `K` hops. Under `tying="adjacent"` each hop has
    its own matrices, `A^{k+1} = C^k`, `T_A^{k+1} = T_C^k`, and `B = A^1`; under `"layerwise"` all
    hops share theirs, and `u^{k+1} = H u^k + o`.

    Padding is never attended to. Of more than `memory` sentences the newest are remembered.

    Args: all those of `memn2n` by the same names, but `sentences` and `words`, which are those of
    its input; and `seed`, of the random noise.

    Call arguments:
        inputs: A pair of int tensors: the story `(batch, sentences, words)`, the newest sentence
            last, and the question `(batch, words)`; 0 is padding, anywhere.
        training: Whether there is random noise, and whether the step counts for `linear_start`.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Sukhbaatar et al., 2015](https://arxiv.org/abs/1503.08895), Equations 1 to 3, Sections 2.2
        and 4.1.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        *,
        units: int,
        hops: int,
        memory: int,
        tying: str,
        position_encoding: bool,
        temporal_encoding: bool,
        linear_start: int,
        random_noise: float,
        tied_readout: bool,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in ("vocabulary", "answers", "units", "hops", "memory"):
            if not locals()[name] >= 1:
                raise ValueError(f"`{name}` must be positive, received {locals()[name]}.")
        if tying not in ("adjacent", "layerwise"):
            raise ValueError(f'`tying` must be "adjacent" or "layerwise", received {tying!r}.')
        if linear_start < 0 or not 0 <= random_noise <= 1:
            raise ValueError(
                "`linear_start` must not be negative and `random_noise` must be in [0, 1], "
                f"received {linear_start} and {random_noise}."
            )
        if tied_readout and answers != vocabulary:
            raise ValueError(
                "`tied_readout` makes words of answers: `answers` must equal `vocabulary`, "
                f"received {answers} and {vocabulary}."
            )
        self.vocabulary, self.answers, self.units = vocabulary, answers, units
        self.hops, self.memory, self.tying = hops, memory, tying
        self.position_encoding, self.temporal_encoding = position_encoding, temporal_encoding
        self.linear_start, self.random_noise = linear_start, random_noise
        self.tied_readout, self.seed = tied_readout, seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        # Under adjacent tying, hop k finds by matrix k - 1 and reads by matrix k.
        sets = self.hops + 1 if self.tying == "adjacent" else 2
        self.embeddings = [self._matrix(f"embedding_{k}", self.vocabulary + 1) for k in range(sets)]
        if self.temporal_encoding:
            self.temporal = [self._matrix(f"temporal_{k}", self.memory) for k in range(sets)]
        if self.tying == "layerwise":
            self.question_embedding = self._matrix("question_embedding", self.vocabulary + 1)
            self.recurrent_kernel = self._matrix("recurrent_kernel", self.units)
        if not self.tied_readout:
            self.readout_kernel = self._matrix("readout_kernel", self.units, self.answers)
        if self.linear_start:
            self.steps = self.add_weight(
                shape=(),
                dtype="int32",
                initializer="zeros",
                trainable=False,
                aggregation="only_first_replica",
                name="steps",
            )
        self._build_update()
        self.built = True

    def _matrix(self, name, rows, columns=None):
        initializer = keras.initializers.RandomNormal(stddev=0.1)
        shape = (rows, self.units if columns is None else columns)
        return self.add_weight(shape=shape, initializer=initializer, name=name)

    def _build_update(self):
        """For networks that take in what they read in another way."""

    def _update(self, u, o, hop):
        """Returns the controller's state after a hop, counted from 0."""
        if self.tying == "layerwise":
            u = ops.matmul(u, self.recurrent_kernel)
        return u + o

    def call(self, inputs, training=False):
        return self.read(*inputs, training=training)[0]

    def read(self, story: Any, question: Any, training: bool = False) -> tuple[Any, Any]:
        """Answers, and says what it looked at.

        Args:
            story: int, `(batch, sentences, words)`.
            question: int, `(batch, words)`.
            training: as for a call.

        Returns:
            The logits `(batch, answers)` and the attention of each hop on each sentence,
            `(batch, hops, sentences)`.
        """
        if self.tying == "layerwise":
            u = self._encode(question, self.question_embedding)
        else:
            u = self._encode(question, self.embeddings[0])
        age, real = self._ages(story)
        time = self._noisy(age, real) if training and self.random_noise else age
        memories = [self._remember(story, time, real, k) for k in range(len(self.embeddings))]
        found = []
        for hop in range(self.hops):
            first = hop if self.tying == "adjacent" else 0
            p = self._attend(ops.einsum("bu,bsu->bs", u, memories[first]), real)
            o = ops.einsum("bs,bsu->bu", p, memories[first + 1])
            u = self._update(u, o, hop)
            found.append(p)
        if self.linear_start and training:
            self.steps.assign_add(1)
        if self.tied_readout:
            kernel = ops.transpose(self.embeddings[-1][1:])  # Answers are no padding.
        else:
            kernel = self.readout_kernel
        return ops.matmul(u, kernel), ops.stack(found, axis=1)

    def _encode(self, words, embedding):
        vectors, real = ops.take(embedding, words, axis=0), ops.not_equal(words, 0)
        if self.position_encoding:
            return position_encoded_sum(vectors, real)
        return ops.sum(vectors * ops.cast(ops.expand_dims(real, -1), vectors.dtype), axis=-2)

    def _ages(self, story):
        """For each sentence, how many real ones follow it, and whether it is remembered."""
        real = ops.any(ops.not_equal(story, 0), axis=-1)
        count = ops.cumsum(ops.cast(real, "int32"), axis=-1)
        age = count[:, -1:] - count
        return age, ops.logical_and(real, age < self.memory)

    def _noisy(self, age, real):
        """Ages with up to `ceil(random_noise * n)` empty memories strewn among `n` sentences.

        The ages become a random increasing choice of `n` of `n + empty` numbers, as in the authors'
        code.
        """
        real = ops.cast(real, "int32")
        sentences = ops.sum(real, axis=-1, keepdims=True)
        most = ops.ceil(self.random_noise * ops.cast(sentences, "float32"))
        draw = keras.random.uniform(ops.shape(sentences), seed=self.seed_generator)
        slots = sentences + ops.cast(ops.floor(draw * (most + 1)), "int32")
        remembered = min(age.shape[-1], self.memory)
        slot = ops.arange(remembered + math.ceil(self.random_noise * remembered))
        keys = keras.random.uniform((ops.shape(age)[0], slot.shape[0]), seed=self.seed_generator)
        keys = ops.where(slot < slots, keys, 2.0)  # Slots that this story has not come last.
        taken = ops.argsort(ops.argsort(keys, axis=-1), axis=-1) < sentences
        before = ops.cumsum(ops.cast(taken, "int32"), axis=-1)
        # The slot that is taken as number `age` is that many slots from the start:
        time = ops.sum(before[:, None, :] <= age[:, :, None], axis=-1)
        return ops.cast(time, "int32")

    def _remember(self, story, time, real, k):
        memory = self._encode(story, self.embeddings[k])
        if self.temporal_encoding:
            time = ops.clip(time, 0, self.memory - 1)
            memory = memory + ops.take(self.temporal[k], time, axis=0)
        return memory * ops.cast(ops.expand_dims(real, -1), memory.dtype)

    def _attend(self, scores, real):
        p = attention(scores, real)
        if not self.linear_start:
            return p
        linear = scores * ops.cast(real, scores.dtype)
        return ops.where(self.steps < self.linear_start, linear, p)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], self.answers)

    def get_config(self):
        names = (
            *("vocabulary", "answers", "units", "hops", "memory", "tying", "position_encoding"),
            *("temporal_encoding", "linear_start", "random_noise", "tied_readout", "seed"),
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def memn2n(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 20,
    hops: int = 3,
    memory: int = 50,
    tying: str = "adjacent",
    position_encoding: bool = True,
    temporal_encoding: bool = True,
    linear_start: int = 0,
    random_noise: float = 0.1,
    tied_readout: bool = False,
) -> keras.Model:
    """Returns a MemN2N over padded stories, with the paper's settings for a single task.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question; nothing depends on it.
        units: `d`, the size of all vectors.
        hops: `K`.
        memory: the most sentences that are remembered.
        tying: "adjacent" or "layerwise".
        position_encoding: whether the place of a word counts; if not, `l_j = 1`: a bag of words.
        temporal_encoding: whether there is `T`.
        linear_start: the training steps at the beginning in which `p_i = u^T m_i`, without the
            softmax. Their count is saved with the weights.
        random_noise: the part of empty memories, at most, that training puts between the
            sentences: they hold nothing, but move `i` in `T(i)`.
        tied_readout: whether `W` is the transpose of the last `C`: then the answers are the
            words, answer `a` the word with id `a + 1`, and `answers` must equal `vocabulary`.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), and `question`, int32
        (batch, words), to logits (batch, answers).

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> memn2n(vocabulary=9, answers=5, sentences=3, words=4).output_shape
    (None, 5)
    """
    network = MemN2N(
        vocabulary,
        answers,
        units=units,
        hops=hops,
        memory=memory,
        tying=tying,
        position_encoding=position_encoding,
        temporal_encoding=temporal_encoding,
        linear_start=linear_start,
        random_noise=random_noise,
        tied_readout=tied_readout,
        name="memn2n",
    )
    return question_answering(network, sentences)
