"""Extreme summarization in the graph: a raw document in, a sentence out.

Two signatures. `serving_default` gives the best `summary` of each `document` and its `score`, the
mean log-probability of its words and its end; `nbest` gives all that the beam search has found,
best first: `summaries` and `scores`, (batch, beam).

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
    """
    text = kept.read(run)
    lexicon = Lexicon(text.vocabulary)
    topics = text.topics and TopicInference(text.topics)
    find = _find(model, lexicon, topics, text.document_length, beam, longest)

    def best(document):
        summaries, scores = find(document)
        return {"summary": summaries[:, 0], "score": scores[:, 0]}

    def nbest(document):
        summaries, scores = find(document)
        return {"summaries": summaries, "scores": scores}

    requests = [{"document": [EXAMPLES[0]]}, {"document": list(EXAMPLES)}]
    tracked = [lexicon] if topics is None else [lexicon, topics]
    return {
        "serving_default": Signature(best, requests, tracked),
        "nbest": Signature(nbest, requests),
    }


def _find(model, lexicon, topics, document_length, beam, longest) -> Callable:
    """Makes the function of raw documents, strings (batch,), to summaries, (batch, beam).

    Returns:
        A function that returns strings, and their scores, float32.
    """
    specials = lexicon.specials

    def find(document):
        batch = tf.shape(document)[0]
        # No documents are read as one without words: TensorFlow's kernels fail at empty batches.
        document = tf.concat([document, tf.fill([tf.cast(batch == 0, tf.int32)], "")], axis=0)
        words = tokens_in_graph(document)
        topics_document = topics and topics(words)
        if document_length:
            words = words[:, :document_length]
        end = tf.fill([words.nrows(), 1], specials.end)
        ids = tf.concat([lexicon.ids(words), end], axis=1).to_tensor(specials.pad)
        found = model.summarize(ids, topics_document, beam=beam, max_length=longest)
        summaries = detokenize(_text(found, words, lexicon))
        spoken = (words.row_lengths() > 0)[:, None]
        # Hypotheses that a small vocabulary does not have: -inf is no number in JSON.
        scores = tf.maximum(found.scores, found.scores.dtype.min)
        return tf.where(spoken, summaries, "")[:batch], tf.where(spoken, scores, 0.0)[:batch]

    # One graph whoever calls it, so that the answers in the warm-up requests are those of the
    # exported graph to the last bit.
    documents = tf.TensorSpec([None], tf.string)
    return tf.function(find, input_signature=[documents], autograph=False)


def _text(found, words: tf.RaggedTensor, lexicon: Lexicon) -> tf.Tensor:
    """Returns the words of hypotheses, joined by blanks, strings (batch, beam)."""
    source = tf.concat([words, tf.fill([words.nrows(), 1], "")], axis=1).to_tensor("")
    attended = tf.gather(source, tf.maximum(found.alignments, 0), batch_dims=1)
    unknown = found.tokens == lexicon.specials.unknown
    written = tf.where(unknown, attended, lexicon.words(found.tokens))
    return join(written, tf.maximum(found.lengths - 1, 0))  # Without the end.
