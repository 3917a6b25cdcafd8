"""bAbI in the graph: a story and a question in, an answer out, and the sentence it rests on.

`story` is told in sentences that end with a full stop or a new line, oldest first; `question` is
one question. Case does not matter. Of a long story the newest sentences are read, as many as in
training. A model knows the words of its task, and sentences and questions no longer than those it
was trained on: anything else, and a question without words, gets the answer "" and probability 0,
and so does an empty story. Models with attention tell as `sentence` the sentence of the story with
the most weight.
"""

import json
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from exports.signature import Signature
from zoo.babi import dmn_plus, dnc, entnet, gmemn2n, memn2n, qrn  # noqa: F401  (registers layers)


def _vocabulary(run: Path | None) -> dict:
    if run is None or not (Path(run) / "vocabulary.json").is_file():
        raise FileNotFoundError(
            f"There is no vocabulary.json in {run}: export the folder of one task, such as "
            "--workdir=runs/babi/qa01."
        )
    return json.loads((Path(run) / "vocabulary.json").read_text())


def _table(words: list[str]) -> tf.lookup.StaticHashTable:
    """From word to id, which counts from 1; 0 for any other."""
    ids = tf.range(1, len(words) + 1, dtype=tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, ids), 0)


def _words(text: tf.Tensor | tf.RaggedTensor) -> tf.RaggedTensor:
    """The words of texts, as `datasets.babi_files.tokenize` finds them."""
    spaced = tf.strings.regex_replace(tf.strings.lower(text), r"([.,;:?!])", r" \1 ")
    return tf.strings.split(spaced)


def _sentences(story: tf.Tensor) -> tf.RaggedTensor:
    """The sentences of stories as written, (batch, sentences), each with its full stop."""
    lines = tf.strings.regex_replace(story, r"(?:\s*[.\n])+\s*", ".\n")
    lines = tf.strings.regex_replace(lines, r"^[\s.]+|\s+$", "")
    lines = tf.strings.split(lines, "\n")
    lines = tf.ragged.boolean_mask(lines, lines != "")
    return tf.strings.regex_replace(lines, r"\.?$", ".")


def _count(what: tf.RaggedTensor) -> tf.Tensor:
    """How many are true of each example."""
    return tf.reduce_sum(tf.cast(what, tf.int32), axis=1)


def _limited(text: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Texts of at most `size` bytes, others empty; and which those are."""
    small = tf.strings.length(text) <= size
    return tf.where(small, text, ""), small


def _newest(story: tf.Tensor, sentences: int, size: int) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """The newest sentences of stories, found in the last `size` bytes; and where they are there.

    They are not where a longer story is cut within them, nor where there is none.
    """
    length = tf.strings.length(story)
    surplus = tf.maximum(length - size, 0)
    told = _sentences(tf.strings.substr(story, surplus, length - surplus))
    found = told.row_lengths()
    # Where it was cut, the first sentence may be the end of one: there must be one more.
    there = (found > 0) & ((surplus == 0) | (found > sentences))
    return told[:, -sentences:], there


def _newest_words(ids: tf.Tensor, most: int) -> tf.Tensor:
    """The ids with 0, padding, for all but the newest words, as `datasets.babi.arrays` has them."""
    newer = tf.cumsum(tf.cast(ids != 0, tf.int32), axis=1, reverse=True)
    return tf.where(newer <= most, ids, 0)


def _dense(ids: tf.RaggedTensor, shape: list[int | None]) -> tf.Tensor:
    return ids.to_tensor(shape=shape)


def _weights(model: keras.Model) -> keras.Model:
    """The model with its attention on each step as a second output, if it has attention."""
    names = [layer.name for layer in model.layers]
    if "attention" not in names:
        return model
    _, scores = model.get_layer("attention").output
    return keras.Model(model.inputs, [model.output, scores])


def endpoint(
    model: keras.Model, vocabulary: dict, table: tf.lookup.StaticHashTable
) -> Callable[..., dict[str, tf.Tensor]]:
    """Makes the function that TensorFlow Serving calls.

    Args:
        model: A model of bAbI, from `story` and `question`, int32 ids, to logits (batch, answers).
        vocabulary: What vocabulary.json of the run holds.
        table: From word to id.

    Returns:
        A function of `story` and `question`, strings (batch,), to `answer`, strings (batch,),
        `probability`, float32 (batch,), and for models with attention `sentence`, strings (batch,).
    """
    sentences, width = vocabulary["sentences"], vocabulary["sentence_words"]
    asked_words, answers = vocabulary["question_words"], vocabulary["answers"]
    # Bytes of a word, with space around it.
    longest = max(len(word.encode()) for word in vocabulary["words"]) + 2
    inner = _weights(model)
    attends = inner is not model
    word_level = vocabulary["level"] == "word"

    def answer(story, question):
        told, form = _newest(story, sentences, longest * (sentences + 1) * width)
        question, question_fits = _limited(question, longest * asked_words)
        words, asked = _words(told), _words(question)
        ids = words.with_flat_values(table.lookup(words.flat_values))
        asked_ids = asked.with_flat_values(table.lookup(asked.flat_values))
        form &= question_fits
        form &= (asked.row_lengths() > 0) & (asked.row_lengths() <= asked_words)
        form &= _count(words.row_lengths(axis=2) > width) == 0
        form &= _count(tf.reduce_sum(tf.cast(ids == 0, tf.int32), axis=2)) == 0
        form &= _count(asked_ids == 0) == 0
        padded = _dense(ids, [None, sentences, width])
        if word_level:
            flat = tf.reshape(padded, [-1, sentences * width])
            padded = _newest_words(flat, vocabulary["story_words"])
        outputs = inner([padded, _dense(asked_ids, [None, asked_words])], training=False)
        logits, scores = outputs if attends else (outputs, None)
        # Models that tasks share have classes beyond those of this one; no training saw them.
        probabilities = tf.nn.softmax(tf.cast(logits, tf.float32))[:, : len(answers)]
        best = tf.gather(answers, tf.argmax(probabilities, axis=1))
        found = {
            "answer": tf.where(form, best, ""),
            "probability": tf.where(form, tf.reduce_max(probabilities, axis=1), 0.0),
        }
        if attends:
            steps = sentences * width if word_level else sentences
            weight = tf.reshape(scores[:, 0, :steps], [-1, sentences, steps // sentences])
            place = tf.argmax(tf.reduce_sum(weight, axis=2), axis=1, output_type=tf.int32)
            texts = told.to_tensor(shape=[None, sentences])
            found["sentence"] = tf.where(form, tf.gather(texts, place, batch_dims=1), "")
        return found

    return answer


def signatures(model: keras.Model, run: Path | None) -> dict[str, Signature]:
    """Returns what is exported of `model`.

    Args:
        model: A model of bAbI.
        run: The folder of the task: it holds vocabulary.json.

    Raises:
        FileNotFoundError: If there is no vocabulary.json.
    """
    vocabulary = _vocabulary(run)
    table = _table(vocabulary["words"])
    names = [word for word in vocabulary["words"] if word[0].isalnum()]
    # Any words will do to warm up; a question of a task is in vocabulary.json of no run.
    stories = [f"{names[0]} {names[-1]}.", f"{names[-1]}. {names[0]} {names[1]}."]
    question = f"{names[1]} {names[0]}?" if "?" in vocabulary["words"] else names[0]
    requests = [
        {"story": stories[:1], "question": [question]},
        {"story": stories, "question": [question] * 2},
        {"story": [stories[0], "", "malformed", stories[0]], "question": [question] * 3 + [""]},
    ]
    return {"serving_default": Signature(endpoint(model, vocabulary, table), requests, [table])}
