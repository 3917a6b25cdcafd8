"""Extreme summarization in the graph: a raw document in, a sentence out.

Three signatures. `serving_default` gives the best `summary` of each `document` and its `score`, the
mean log-probability of its words and its end. `nbest` gives all that the beam search has found,
best first: `summaries` and `scores`, (batch, beam). `attention` gives, beside summary and score,
where each hop looked when each word was written, (batch, hops, target, source), and the words:
`summary_words`, which end with `</s>`, and `source_words`; both are filled up with "".

A document is UTF-8 text. It is lowered and tokenized as the training data was
(`datasets.tokenization`); its first million bytes and 10,000 words say what its topics are, and
its first 400 words are what the summary is written from. A word of the summary that the vocabulary
lacks is the word of the document that was most attended to when it was written. A document
without words has the summary "" and the score 0.
"""

from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from datasets.tokenization import tokens_in_graph
from datasets.topics_in_graph import TopicInference
from exports.signature import Signature
from exports.text import Lexicon, detokenize, join
from zoo.kept import check_vocabulary
from zoo.xsum import kept

BEAM = 10
# Words of a summary, the paper's limit; the released code generates up to 200.
LONGEST = 90

EXAMPLES = (
    "A bridge that links the two halves of the town will stay closed until March, the council "
    "has said.\nEngineers found cracks in three of its piers after last month's floods.\n"
    '"We know how much people rely on it," said Cllr Ann Reid, "but we can\'t take risks."\n'
    "Repairs are expected to cost about £1.2m. A ferry will run every 20 minutes.",
    "Striker Tom Hale scored twice as the visitors came from behind to win 3-1.",
    "",
)


def signatures(
    model: keras.Model, run: Path, beam: int = BEAM, longest: int = LONGEST
) -> dict[str, Signature]:
    """Returns what is exported of a run.

    Args:
        model: A `zoo.xsum.model.TopicConvS2S`.
        run: Its folder, which holds the vocabulary and the topics, as `zoo.xsum.kept` says.
        beam: Number of hypotheses of the beam search.
        longest: Most words of a summary.

    Raises:
        FileNotFoundError: If the run has kept no vocabulary.
        ValueError: If it is not that of the model.
    """
    text = kept.read(run)
    check_vocabulary(text.vocabulary, model, run)
    summarizer = _Summarizer(model, text, beam, longest)
    nbest, attention = _graph(summarizer.nbest), _graph(summarizer.attention)

    def best(document):
        found = nbest(document)
        return {"summary": found["summaries"][:, 0], "score": found["scores"][:, 0]}

    one, several = {"document": [EXAMPLES[0]]}, {"document": list(EXAMPLES)}
    return {
        "serving_default": Signature(best, [one, several], summarizer.tracked),
        "nbest": Signature(nbest, [one, several]),
        "attention": Signature(attention, [one]),
    }


def _graph(answer: Callable) -> Callable:
    """Makes one graph of a function of documents, for any number of them.

    Whoever calls it calls the same graph, so that the answers in the warm-up requests are those of
    the exported one.
    """

    def of_any_batch(document):
        batch = tf.shape(document)[0]
        # No documents are taken for one without words: TensorFlow's kernels fail at empty batches.
        none = tf.fill([tf.cast(batch == 0, tf.int32)], "")
        outputs = answer(tf.concat([document, none], axis=0))
        return {name: values[:batch] for name, values in outputs.items()}

    spec = tf.TensorSpec([None], tf.string, name="document")
    return tf.function(of_any_batch, input_signature=[spec], autograph=False)


class _Summarizer:
    """From strings to strings.

    Args:
        model: The model.
        text: What the run has kept.
        beam: Number of hypotheses.
        longest: Most words of a summary.
    """

    def __init__(self, model: keras.Model, text: kept.Kept, beam: int, longest: int):
        self._model = model
        self._length = text.document_length
        self._options = {"beam": beam, "max_length": longest}
        self._lexicon = Lexicon(text.vocabulary)
        self._specials = text.vocabulary.specials
        self._topics = text.topics and TopicInference(text.topics)
        self.tracked = [self._lexicon, self._topics] if text.topics else [self._lexicon]
        # Traced once for all signatures.
        self._search = tf.function(
            self._search_words, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )

    def nbest(self, document: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns `summaries` and `scores`, (batch, beam)."""
        words, _, found, written = self._search(document)
        # Without the end.
        summaries = detokenize(join(written, tf.maximum(found.lengths - 1, 0)))
        spoken = (words.row_lengths() > 0)[:, None]
        # Hypotheses that a small vocabulary does not have: -inf is no number in JSON.
        scores = tf.maximum(found.scores, found.scores.dtype.min)
        return {
            "summaries": tf.where(spoken, summaries, ""),
            "scores": tf.where(spoken, scores, 0.0),
        }

    def attention(self, document: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the best summaries and where each hop looked."""
        words, inputs, found, written = self._search(document)
        spoken = words.row_lengths() > 0
        length, written = tf.where(spoken, found.lengths[:, 0], 0), written[:, 0]
        start = tf.fill([words.nrows(), 1], self._specials.start)
        summary = tf.concat([start, found.tokens[:, 0, :-1]], axis=1)
        # What comes after the end is cut, as far as all rows have it.
        longest = tf.reduce_max(length)
        read = tf.sequence_mask(length, longest)
        end = tf.fill([words.nrows(), 1], self._specials.symbols[self._specials.end])
        return {
            "summary": detokenize(join(written, tf.maximum(length - 1, 0))),
            "score": tf.where(spoken, found.scores[:, 0], 0.0),
            "attention": self._model.attention({**inputs, "summary": summary})[:, :, :longest],
            "summary_words": tf.where(read, written[:, :longest], ""),
            "source_words": tf.concat([words, end], axis=1).to_tensor(""),
        }

    def _search_words(self, document):
        """Returns what is read, as words and as inputs, and what is found, as ids and as words."""
        words = tokens_in_graph(document)
        inputs = {"topics": self._topics(words)} if self._topics else {}
        if self._length:
            words = words[:, : self._length]
        end = tf.fill([words.nrows(), 1], self._specials.end)
        ids = tf.concat([self._lexicon.ids(words), end], axis=1)
        inputs["document"] = ids.to_tensor(self._specials.pad)
        found = self._model.summarize(inputs["document"], inputs.get("topics"), **self._options)
        return words, inputs, found, self._written(words, found)

    def _written(self, words, found):
        """Returns the words of hypotheses, strings (batch, beam, length)."""
        source = tf.concat([words, tf.fill([words.nrows(), 1], "")], axis=1).to_tensor("")
        attended = tf.gather(source, tf.maximum(found.alignments, 0), batch_dims=1)
        unknown = found.tokens == self._specials.unknown
        return tf.where(unknown, attended, self._lexicon.words(found.tokens))
