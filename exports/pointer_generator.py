"""Summarization in the graph by a pointer-generator: a raw article in, a summary out.

Three signatures. `serving_default` gives the best `summary` of each `article` and its `score`, the
mean log-probability of its words and its end. `nbest` gives all that the beam search has found,
best first: `summaries` and `scores`, (batch, beam). `attention` gives, beside summary and score,
where the model looked when each word was written, `attention` (batch, target, source), what it had
looked at before, `coverage`, of the same shape, the chance `p_gen` (batch, target) that the word
was generated and not copied (1 for a model that cannot copy), and the words: `summary_words`, which
end with `</s>`, and `source_words`; both are filled up with "".

An article is UTF-8 text. Its first 100,000 bytes are lowered and tokenized as the training data was
(`datasets.tokenization`), and of these the first words, as many as in training, are what the
summary is written from. Words that the vocabulary lacks get ids of their own in each article, in
the graph; those that are copied are in the summary as they are in the article. Should the model
write "unknown word", it is the word most attended to. An article without words has the summary ""
and the score 0.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from datasets.tokenization import tokens_in_graph
from exports.signature import Signature
from exports.text import Lexicon, detokenize, join
from zoo.kept import check_vocabulary
from zoo.pointer_generator import kept
from zoo.summaries import END

BEAM = 4
# More than enough for 400 words; a sentence that the limit cuts is beyond them.
BYTES = 100_000

EXAMPLES = (
    "A bridge that links the two halves of Aberwyvern will stay closed until March, the council "
    "has said.\nEngineers found cracks in three of its piers after last month's floods.\n"
    '"We know how much people rely on it," said Cllr Ann Reid, "but we can\'t take risks."\n'
    "Repairs are expected to cost about £1.2m. A ferry will run every 20 minutes.",
    "Striker Tom Hale scored twice as the visitors came from behind to win 3-1.",
    "",
)


def signatures(model: keras.Model, run: Path, beam: int = BEAM) -> dict[str, Signature]:
    """Returns what is exported of a run.

    Args:
        model: A `zoo.pointer_generator.model.PointerGenerator`.
        run: Its folder, which holds the vocabulary and lengths, as `zoo.pointer_generator.kept`
            says.
        beam: Number of hypotheses of the beam search.

    Raises:
        FileNotFoundError: If the run has kept no vocabulary.
        ValueError: If it is not that of the model.
    """
    text = kept.read(run)
    check_vocabulary(text.vocabulary, model, run)
    summarizer = _Summarizer(model, text, beam)
    nbest, attention = _graph(summarizer.nbest), _graph(summarizer.attention)

    def best(article):
        found = nbest(article)
        return {"summary": found["summaries"][:, 0], "score": found["scores"][:, 0]}

    one, several = {"article": [EXAMPLES[0]]}, {"article": list(EXAMPLES)}
    return {
        "serving_default": Signature(best, [one, several], summarizer.tracked),
        "nbest": Signature(nbest, [one, several]),
        "attention": Signature(attention, [one]),
    }


def _graph(answer: Callable) -> Callable:
    """Makes one graph of a function of articles, for any number of them.

    Whoever calls it calls the same graph, so that the answers in the warm-up requests are those of
    the exported one.
    """

    def of_any_batch(article):
        batch = tf.shape(article)[0]
        # No articles are taken for one without words: TensorFlow's kernels fail at empty batches.
        none = tf.fill([tf.cast(batch == 0, tf.int32)], "")
        outputs = answer(tf.concat([article, none], axis=0))
        return {name: values[:batch] for name, values in outputs.items()}

    spec = tf.TensorSpec([None], tf.string, name="article")
    return tf.function(of_any_batch, input_signature=[spec], autograph=False)


def copied_ids(
    words: tf.RaggedTensor, ids: tf.RaggedTensor, unknown: int, vocabulary: int
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Gives words without an id ids of their own, for each row; see `Vocabulary.encode_copied`.

    Args:
        words: Strings (batch, words).
        ids: Their ids, int32 (batch, words).
        unknown: The id of words that the vocabulary lacks.
        vocabulary: Number of its ids.

    Returns:
        The ids, int32 (batch, words), and the words to copy, (batch, words), in the order of their
        ids.

    Example:

    >>> words = tf.ragged.constant([["a", "x", "y", "x"], ["y"]])
    >>> ids, copied = copied_ids(words, tf.ragged.constant([[4, 0, 0, 0], [0]]), 0, 5)
    >>> ids.to_list(), copied.to_list()
    ([[4, 5, 6, 5], [5]], [[b'x', b'y'], [b'y']])
    """
    flat, rows = ids.flat_values, words.value_rowids()
    places = tf.where(flat == unknown)[:, 0]
    # Numbers of distinct pairs of row and word: of a row they follow each other.
    kinds, kind, _ = tf.unique_with_counts(tf.gather(words.flat_values, places), tf.int64)
    each = tf.maximum(tf.size(kinds, tf.int64), 1)
    pairs, pair, _ = tf.unique_with_counts(tf.gather(rows, places) * each + kind, tf.int64)
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(pairs), pairs // each, words.nrows())
    earlier = tf.cumsum(lengths, exclusive=True)
    own = vocabulary + pair - tf.gather(earlier, tf.gather(rows, places))
    extended = tf.tensor_scatter_nd_update(flat, places[:, None], tf.cast(own, flat.dtype))
    copied = tf.gather(kinds, pairs % each)
    return (
        ids.with_flat_values(extended),
        tf.RaggedTensor.from_row_lengths(copied, lengths, validate=False),
    )


class _Read(NamedTuple):
    """Articles as the model reads them.

    Args:
        words: Ragged strings (batch, words).
        copied: Ragged strings (batch, words): those without an id, each once.
        inputs: `document` and `document_extended`, int32 (batch, source).
    """

    words: tf.RaggedTensor
    copied: tf.RaggedTensor
    inputs: dict[str, tf.Tensor]


class _Summarizer:
    """From strings to strings.

    Args:
        model: The model.
        text: What the run has kept.
        beam: Number of hypotheses.
    """

    def __init__(self, model: keras.Model, text: kept.Kept, beam: int):
        self._model = model
        self._length = text.document_length
        self._size = len(text.vocabulary)
        self._options = {
            "beam": beam,
            "min_length": text.min_length,
            "max_length": text.max_length,
            "extra": text.document_length,
        }
        self._lexicon = Lexicon(text.vocabulary)
        self._specials = text.vocabulary.specials
        self.tracked = [self._lexicon]

    def nbest(self, article: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns `summaries` and `scores`, (batch, beam)."""
        read = self._read(article)
        found = self._search(read)
        # Without the end.
        summaries = join(self._written(read, found), tf.maximum(found.lengths - 1, 0))
        spoken = (read.words.row_lengths() > 0)[:, None]
        # Hypotheses that a small vocabulary does not have: -inf is no number in JSON.
        scores = tf.maximum(found.scores, found.scores.dtype.min)
        return {
            "summaries": tf.where(spoken, detokenize(summaries), ""),
            "scores": tf.where(spoken, scores, 0.0),
        }

    def attention(self, article: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the best summaries, where the model looked, and what it copied."""
        read = self._read(article)
        found = self._search(read)
        spoken = read.words.row_lengths() > 0
        length = tf.where(spoken, found.lengths[:, 0], 0)
        written = self._written(read, found)[:, 0]
        start = tf.fill([read.words.nrows(), 1], self._specials.start)
        summary = tf.concat([start, found.tokens[:, 0, :-1]], axis=1)
        results = self._model({**read.inputs, "summary": summary})
        # What comes after the end is cut, as far as all rows have it.
        longest = tf.reduce_max(length)
        real = tf.sequence_mask(length, longest)
        attention = tf.where(real[:, :, None], results["attention"][:, :longest], 0.0)
        p_gen = tf.ones_like(real, tf.float32)
        if "pointer_logits" in results:
            p_gen = tf.sigmoid(results["pointer_logits"][:, :longest])
        words = tf.where(tf.range(longest) == length[:, None] - 1, END, written[:, :longest])
        return {
            "summary": detokenize(join(written, tf.maximum(length - 1, 0))),
            "score": tf.where(spoken, found.scores[:, 0], 0.0),
            "attention": attention,
            "coverage": tf.cumsum(attention, axis=1, exclusive=True),
            "p_gen": tf.where(real, p_gen, 0.0),
            "summary_words": tf.where(real, words, ""),
            "source_words": _padded(read.words, ""),
        }

    def _read(self, article) -> _Read:
        words = tokens_in_graph(article, self._length, BYTES)
        ids = self._lexicon.ids(words)
        extended, copied = copied_ids(words, ids, self._specials.unknown, self._size)
        pad = self._specials.pad
        inputs = {"document": _padded(ids, pad), "document_extended": _padded(extended, pad)}
        return _Read(words, copied, inputs)

    def _search(self, read):
        inputs = read.inputs["document"], read.inputs["document_extended"]
        return self._model.summarize(*inputs, **self._options)

    def _written(self, read, found):
        """Returns the words of hypotheses, strings (batch, beam, length)."""
        copied, source = _padded(read.copied, ""), _padded(read.words, "")
        own = tf.clip_by_value(found.tokens - self._size, 0, tf.shape(copied)[1] - 1)
        attended = tf.gather(source, tf.maximum(found.alignments, 0), batch_dims=1)
        words = self._lexicon.words(found.tokens)
        words = tf.where(found.tokens == self._specials.unknown, attended, words)
        own = tf.gather(copied, own, batch_dims=1)
        return tf.where(found.tokens < self._size, words, own)


def _padded(rows: tf.RaggedTensor, value) -> tf.Tensor:
    """Returns rows as a matrix of at least one column."""
    matrix = rows.to_tensor(value)
    return tf.pad(
        matrix, [[0, 0], [0, tf.cast(tf.shape(matrix)[1] == 0, tf.int32)]], constant_values=value
    )
