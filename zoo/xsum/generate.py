"""Writes the summaries of a split, for `zoo.xsum.evaluate`.

    python -m zoo.xsum.generate --workdir=runs/xsum --data=data/xsum --split=test \
        --output=runs/xsum/test.jsonl --attention=20

reads the whole documents that `python -m datasets.xsum prepare` left, tokens as they are there, and
writes lines as `zoo/summaries.py` says. The vocabulary and the topics are those that the run has
kept. A command that was stopped goes on where it was when it is given again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

from datasets import text_shards
from zoo import generate, summaries
from zoo.xsum import kept
from zoo.xsum.kept import Kept
from zoo.xsum.model import TopicConvS2S

FLAGS = flags.FLAGS

# Flags that decide the lines, beside those of the search.
SHOWN = ("system", "attention", "topics")
TOPIC_WORDS = 10


def name_of(model: TopicConvS2S) -> str:
    """Returns the name of a system in Table 4, as `zoo.xsum.evaluate` writes them.

    Example:

    >>> name_of(TopicConvS2S(20, topics=3, encoder_topics="word"))
    't-convs2s-enc_t-dec_td'
    """
    config = model.get_config()
    if not config["topics"]:
        return "convs2s"
    encoder = {"word": "enc_t", "word_document": "enc_t_td"}[config["encoder_topics"]]
    return f"t-convs2s-{encoder}{'-dec_td' * config['decoder_topics']}"


class Generator:
    """Summarizes documents of words, batch by batch.

    Args:
        model: The model.
        text: What its run has kept.
        system: Name that the summaries have; by default that of Table 4.
        topics: How many topics of each document to name.
        **search: Options of `TopicConvS2S.summarize`.
    """

    def __init__(
        self,
        model: TopicConvS2S,
        text: Kept,
        system: str | None = None,
        topics: int = 0,
        **search: Any,
    ):
        self.system = system or name_of(model)
        self._model = model
        self._text = text
        self._topics = topics if text.topics else 0
        self._top_words = text.topics.top_words(TOPIC_WORDS) if self._topics else []
        specs = {"document": tf.TensorSpec([None, None], tf.int32)}
        if text.topics:
            specs["topics"] = tf.TensorSpec([None, len(text.topics.alpha)], tf.float32)

        def best(batch):
            found = model.summarize(batch["document"], batch.get("topics"), **search)
            return found.tokens[:, 0], found.alignments[:, 0], found.lengths[:, 0]

        # One graph, whatever the size of a batch.
        self._search = tf.function(best, input_signature=[specs], autograph=False)

    def rows(self, examples: Sequence[Mapping], with_attention: int = 0) -> list[dict]:
        """Summarizes a batch.

        Args:
            examples: Rows of `datasets.text_shards`.
            with_attention: How many of the first rows get attention.

        Returns:
            Rows of `zoo.summaries`.
        """
        batch = self._inputs([text_shards.words(example["document"]) for example in examples])
        found = zip(*(tensor.numpy() for tensor in self._search(batch)), strict=True)
        rows = []
        for i, (example, (tokens, alignments, length)) in enumerate(
            zip(examples, found, strict=True)
        ):
            # Without the end.
            tokens, alignments = tokens[: length - 1], alignments[: length - 1]
            source = self._read(text_shards.words(example["document"]))
            words = self._words(source, tokens, alignments)
            row = {"id": example["id"], "document": example["document"]}
            row["reference"] = "\n".join(example["summary"])
            row["summaries"] = {self.system: " ".join(words)}
            if self._topics:
                row["topics"] = self._named(batch["topics"][i])
            if i < with_attention:
                one = {name: array[i : i + 1] for name, array in batch.items()}
                one["document"] = one["document"][:, : len(source) + 1]
                row["attention"] = self._attention(one, tokens)
                row["source"], row["target"] = [*source, summaries.END], [*words, summaries.END]
            rows.append(row)
        return rows

    def _read(self, document: list[str]) -> list[str]:
        """What the model reads of a document."""
        return document[: self._text.document_length or None]

    def _inputs(self, documents: list[list[str]]) -> dict[str, np.ndarray]:
        vocabulary = self._text.vocabulary
        rows = [vocabulary.encode(self._read(document)) for document in documents]
        matrix = np.full((len(rows), max(map(len, rows)) + 1), vocabulary.pad, np.int32)
        for line, row in zip(matrix, rows, strict=True):
            line[: len(row)] = row
            line[len(row)] = vocabulary.end
        if not self._text.topics:
            return {"document": matrix}
        topics = np.stack([self._text.topics.infer(document) for document in documents])
        return {"document": matrix, "topics": topics}

    def _words(self, source, tokens, alignments) -> list[str]:
        """The words of ids; an unknown one is the word of the source most attended to."""
        vocabulary = self._text.vocabulary
        return [
            source[place] if token == vocabulary.unknown else vocabulary.words[token]
            for token, place in zip(tokens, alignments, strict=True)
        ]

    def _attention(self, one: dict, tokens: np.ndarray) -> list:
        """Attention of each hop, when a summary and its end were written."""
        start = self._text.vocabulary.start
        summary = np.concatenate([[start], tokens]).astype(np.int32)[None]
        found = self._model.attention({**one, "summary": summary})[0]
        return np.round(np.asarray(found, np.float64), 4).tolist()

    def _named(self, weights: np.ndarray) -> list:
        best = np.argsort(-weights, kind="stable")[: self._topics]
        return [[round(float(weights[topic]), 4), self._top_words[topic]] for topic in best]


def make_generator() -> Generator:
    """Returns the generator that the flags describe."""
    model, text = kept.load_model(FLAGS.workdir), kept.read(FLAGS.workdir)
    search = {name: FLAGS[name].value for name in generate.SEARCH}
    return Generator(model, text, FLAGS.system, FLAGS.topics, **search)


def main(_) -> None:
    """Writes the file that the flags name."""
    generate.write(make_generator, SHOWN, "zoo.xsum.generate")


if __name__ == "__main__":
    generate.define_flags()
    flags.DEFINE_integer("beam", 10, "Hypotheses of the beam search.", lower_bound=1)
    flags.DEFINE_integer("max_length", 90, "Most words of a summary.", lower_bound=1)
    flags.DEFINE_integer("min_length", 1, "Fewest words of a summary.", lower_bound=0)
    flags.DEFINE_integer("topics", 5, "Name so many topics of each document.", lower_bound=0)
    app.run(main)
