"""The recurrent models of bAbI: a story and a question read in one sequence, then an answer.

At word level the sequence is the words of the story, then those of the question. At sentence
level it is the story's sentences, each the mean of its words' embeddings, then the question as
one last step. The answer is read from the last output, or with attention from the last output and
a mean of the others, weighted by their dot products with it.
"""

import keras
from keras import ops


def _sentences(words, ids, pooling: str):
    """Embeddings (..., words, features) to one of each sentence (..., features)."""
    real = ops.expand_dims(ops.cast(ids != 0, words.dtype), -1)
    total = ops.sum(words * real, axis=-2)
    if pooling == "sum":
        return total
    return total / ops.maximum(ops.sum(real, axis=-2), 1)


def _sequence(story, question, embedding: keras.Layer, level: str, pooling: str):
    """The steps (batch, time, features); which are of the story, and of the question."""
    if level == "word":
        told, asked = story != 0, question != 0
        sequence = embedding(ops.concatenate([story, question], axis=1))
    else:
        told, asked = ops.any(story != 0, axis=2), ops.any(question != 0, axis=1, keepdims=True)
        sentences = _sentences(embedding(story), story, pooling)
        last = _sentences(embedding(question), question, pooling)
        sequence = ops.concatenate([sentences, ops.expand_dims(last, 1)], axis=1)
    of_story = ops.concatenate([told, ops.zeros_like(asked)], axis=1)
    of_question = ops.concatenate([ops.zeros_like(told), asked], axis=1)
    return sequence, of_story, of_question


def babi_model(
    layer: keras.layers.RNN,
    vocabulary: int,
    answers: int,
    level: str = "sentence",
    attention: bool = False,
    embedding: int = 64,
    pooling: str = "mean",
) -> keras.Model:
    """Returns a model that answers a question about a story.

    Id 0 is padding, wherever it stands: it changes no answer. Any number of sentences and words
    can be given.

    Args:
        layer: a recurrent layer; with `attention` it must return sequences, else the last output.
        vocabulary: number of words, without padding.
        answers: number of classes.
        level: "sentence" or "word".
        attention: whether to attend to the story by dot products with the last output.
        embedding: width of a word's embedding.
        pooling: what makes a sentence of its words: "mean", as in the paper, or "sum", as in its
            released code.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), or (batch, words) at word
        level, and `question`, int32 (batch, words), to logits (batch, answers). With attention its
        layer "attention" outputs also the weights, (batch, 1, steps): those of the story's steps,
        then zeros.

    Raises:
        ValueError: for an unknown level or pooling, or a layer that does not return what is asked.

    Example:

    >>> model = babi_model(keras.layers.GRU(50), vocabulary=20, answers=6)
    >>> model.output_shape
    (None, 6)

    Reference:
        Dangovski et al., 2019, section 4.3; Luong et al., 2015, for the attention.
    """
    for name, value, known in (
        ("level", level, ("sentence", "word")),
        ("pooling", pooling, ("mean", "sum")),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    if layer.return_sequences != attention:
        raise ValueError(
            f"layer must {'' if attention else 'not '}return sequences with attention={attention}: "
            f"make it with return_sequences={attention}."
        )
    shape = (None,) if level == "word" else (None, None)
    story = keras.Input(shape, dtype="int32", name="story")
    question = keras.Input((None,), dtype="int32", name="question")
    embed = keras.layers.Embedding(vocabulary + 1, embedding, name="embedding")
    sequence, of_story, of_question = _sequence(story, question, embed, level, pooling)
    outputs = layer(sequence, mask=ops.logical_or(of_story, of_question))
    if attention:
        outputs = _attend(outputs, of_story)
    readout = keras.layers.Dense(answers, name="readout")
    return keras.Model([story, question], readout(outputs), name="babi")


def _attend(outputs, of_story):
    """The last output and a mean of the story's, weighted by dot products with it."""
    # Masked steps repeat the output before them, so the last is that of the last real step.
    query = outputs[:, -1:]
    context, _ = keras.layers.Attention(name="attention")(
        [query, outputs], mask=[None, of_story], return_attention_scores=True
    )
    return ops.concatenate([context[:, 0], query[:, 0]], axis=-1)
