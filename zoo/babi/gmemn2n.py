"""Gated End-To-End Memory Network, GMemN2N."""

from typing import Any

import keras
from keras import ops

from zoo.babi.memn2n import MemN2N
from zoo.babi.sentences import question_answering


@keras.saving.register_keras_serializable(package="rum_keras")
class GMemN2N(MemN2N):
    """MemN2N that decides at each hop how much of what it read to take in.

    In the letters of `MemN2N`, with `T` the transform gate (units), each hop ends with

    ```
    T^k     = sigmoid(W_T^k u^k + b_T^k)                                                   (units)
    u^{k+1} = o^k * T^k + u^k * (1 - T^k)                                                  (units)
    ```

    in place of `u^{k+1} = u^k + o^k`; under `tying="layerwise"`, `H u^k` is carried in place of
    `u^k`.

    Args: all those of `gmemn2n` by the same names, but `sentences` and `words`, which are those of
    its input; and `seed`, of the random noise.

    Call arguments:
        inputs: As for `MemN2N`.
        training: As for `MemN2N`.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Liu and Perez, 2017](https://arxiv.org/abs/1610.04211), Section 3.
    """

    def __init__(self, *args: Any, gates: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if gates not in ("hop", "global"):
            raise ValueError(f'`gates` must be "hop" or "global", received {gates!r}.')
        self.gates = gates

    def _build_update(self):
        count = self.hops if self.gates == "hop" else 1
        self.gate_kernels = [self._matrix(f"gate_kernel_{k}", self.units) for k in range(count)]
        self.gate_biases = [
            self.add_weight(
                shape=(self.units,),
                initializer=keras.initializers.RandomNormal(stddev=0.1),
                name=f"gate_bias_{k}",
            )
            for k in range(count)
        ]

    def _update(self, u, o, hop):
        gate = hop if self.gates == "hop" else 0
        t = ops.sigmoid(ops.matmul(u, self.gate_kernels[gate]) + self.gate_biases[gate])
        if self.tying == "layerwise":
            u = ops.matmul(u, self.recurrent_kernel)
        return o * t + u * (1 - t)

    def get_config(self):
        return {**super().get_config(), "gates": self.gates}


def gmemn2n(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 20,
    hops: int = 3,
    memory: int = 50,
    tying: str = "adjacent",
    gates: str = "hop",
    position_encoding: bool = True,
    temporal_encoding: bool = True,
    linear_start: int = 0,
    random_noise: float = 0.1,
    tied_readout: bool = False,
) -> keras.Model:
    """Returns a GMemN2N over padded stories, with the paper's settings for a single task.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question; nothing depends on it.
        units: `d`, the size of all vectors.
        hops: `K`.
        memory: the most sentences that are remembered.
        tying: "adjacent" or "layerwise".
        gates: "hop" for a gate of its own for each hop, or "global" for one that all share.
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

    >>> gmemn2n(vocabulary=9, answers=5, sentences=3, words=4).output_shape
    (None, 5)
    """
    network = GMemN2N(
        vocabulary,
        answers,
        units=units,
        hops=hops,
        memory=memory,
        tying=tying,
        gates=gates,
        position_encoding=position_encoding,
        temporal_encoding=temporal_encoding,
        linear_start=linear_start,
        random_noise=random_noise,
        tied_readout=tied_readout,
        name="gmemn2n",
    )
    return question_answering(network, sentences)
