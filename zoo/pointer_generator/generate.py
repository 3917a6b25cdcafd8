"""Writes the summaries of a split, for `zoo.pointer_generator.evaluate`.

    python -m zoo.pointer_generator.generate --workdir=runs/decrum --data=data/cnn_dailymail \
        --split=test --output=runs/decrum/test.jsonl --attention=20

reads the whole documents that the corpus was prepared with, tokens as they are there, and writes
lines as `zoo/summaries.py` says, a sentence of a summary on a line of its text. The vocabulary and
the lengths are those that the run has kept. A command that was stopped goes on where it was when it
is given again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

from datasets import text_shards, tokenization
from zoo import generate
from zoo.pointer_generator import kept
from zoo.pointer_generator.kept import Kept
from zoo.pointer_generator.model import PointerGenerator
from zoo.summaries import END

FLAGS = flags.FLAGS

# Flags that decide the lines, beside those of the search.
SHOWN = ("system", "attention", "initial_attention", "replace_unknown")
NAMES = {
    ("lstm", "lstm"): "ptgen",
    ("lstm", "rum"): "decrum",
    ("rum", "lstm"): "encrum",
    ("rum", "rum"): "allrum",
}


def name_of(model: PointerGenerator) -> str:
    """Returns the name of a system; "lead", what the RUM paper calls its LSTM, is another one's.

    Example:

    >>> name_of(PointerGenerator(20, units=6, decoder="rum", coverage=True))
    'decrum-6-covg'
    """
    config = model.get_config()
    name = NAMES[config["encoder"], config["decoder"]]
    if name == "ptgen":
        name = name if config["pointer"] else "seq2seq"
    else:
        name += f"-{config['units']}" + ("" if config["pointer"] else "-seq2seq")
    return f"{name}{'-covg' * config['coverage']}"


class Generator:
    """Summarizes documents of words, batch by batch.

    Args:
        model: The model.
        text: What its run has kept.
        system: Name that the summaries have; by default that of `name_of`.
        replace_unknown: Whether an unknown word is the word of the document most attended to.
        **search: Options of `PointerGenerator.summarize`.
    """

    def __init__(
        self,
        model: PointerGenerator,
        text: Kept,
        system: str | None = None,
        replace_unknown: bool = False,
        **search: Any,
    ):
        self.system = system or name_of(model)
        self._model = model
        self._text = text
        self._replace_unknown = replace_unknown
        self._initial_attention = search.get("initial_attention", False)
        options = {"min_length": text.min_length, "max_length": text.max_length, **search}
        spec = tf.TensorSpec([None, None], tf.int32)

        def best(document, extended):
            found = model.summarize(document, extended, extra=text.document_length, **options)
            return found.tokens[:, 0], found.alignments[:, 0], found.lengths[:, 0]

        # One graph, whatever the size of a batch.
        self._search = tf.function(best, input_signature=[spec, spec], autograph=False)

    def rows(self, examples: Sequence[Mapping], with_attention: int = 0) -> list[dict]:
        """Summarizes a batch.

        Args:
            examples: Rows of `datasets.text_shards`.
            with_attention: How many of the first rows get attention.

        Returns:
            Rows of `zoo.summaries`.
        """
        sources = [self._read(example["document"]) for example in examples]
        extended, copied = zip(*map(self._text.vocabulary.encode_copied, sources), strict=True)
        inputs = self._inputs(extended)
        found = zip(*(tensor.numpy() for tensor in self._search(*inputs)), strict=True)
        rows = []
        for i, (example, (tokens, places, length)) in enumerate(zip(examples, found, strict=True)):
            tokens = tokens[: length - 1]  # Without the end.
            words = self._words(sources[i], copied[i], tokens, places)
            row = {"id": example["id"], "document": example["document"]}
            row["reference"] = "\n".join(example["summary"])
            sentences = tokenization.split_tokenized(" ".join(words))
            row["summaries"] = {self.system: "\n".join(sentences)}
            if i < with_attention:
                row |= self._attention(self._inputs(extended[i : i + 1]), tokens)
                row["source"], row["target"] = sources[i], [*words, END]
            rows.append(row)
        return rows

    def _read(self, document: list[str]) -> list[str]:
        """The words that the model reads of a document."""
        return text_shards.words(document, self._text.document_length)

    def _inputs(self, extended: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        vocabulary = self._text.vocabulary
        matrix = np.full((len(extended), max(map(len, extended))), vocabulary.pad, np.int32)
        for line, row in zip(matrix, extended, strict=True):
            line[: len(row)] = row
        return np.where(matrix < len(vocabulary), matrix, np.int32(vocabulary.unknown)), matrix

    def _words(self, source, copied, tokens, places) -> list[str]:
        vocabulary = self._text.vocabulary
        words = vocabulary.decode(tokens, copied)
        if not self._replace_unknown:
            return words
        return [
            source[place] if token == vocabulary.unknown else word
            for word, token, place in zip(words, tokens, places, strict=False)
        ]

    def _attention(self, inputs: tuple, tokens: np.ndarray) -> dict:
        """Attention and p_gen when each word and the end were written."""
        summary = np.concatenate([[self._text.vocabulary.start], tokens]).astype(np.int32)[None]
        memory, state = self._model.start(inputs[0], self._initial_attention)
        found = self._model.decoder(self._model.embed(summary), state, memory)
        row = {"attention": np.round(np.asarray(found["attention"][0], float), 4).tolist()}
        if "pointer_logits" in found:
            p_gen = tf.sigmoid(found["pointer_logits"][0])
            row["p_gen"] = np.round(np.asarray(p_gen, float), 4).tolist()
        return row


def make_generator() -> Generator:
    """Returns the generator that the flags describe."""
    model, text = kept.load_model(FLAGS.workdir), kept.read(FLAGS.workdir)
    names = (*generate.SEARCH, "initial_attention")
    search = {name: FLAGS[name].value for name in names if FLAGS[name].value is not None}
    return Generator(model, text, FLAGS.system, FLAGS.replace_unknown, **search)


def main(_) -> None:
    """Writes the file that the flags name."""
    generate.write(make_generator, SHOWN, "zoo.pointer_generator.generate")


if __name__ == "__main__":
    generate.define_flags()
    flags.DEFINE_integer("beam", 4, "Hypotheses of the beam search.", lower_bound=1)
    flags.DEFINE_integer("max_length", None, "Most words of a summary; by default the run's.", 1)
    flags.DEFINE_integer("min_length", None, "Fewest words; by default the run's.", 0)
    flags.DEFINE_bool(
        "initial_attention", False, "Begin with the attention of a first look, as released."
    )
    flags.DEFINE_bool("replace_unknown", False, "Write the word most attended to for [UNK].")
    app.run(main)
