"""Words of raw text, and text of words, in the graph: what the exports of all summarizers share."""

import tensorflow as tf

from datasets.vocabulary import Vocabulary

# (pattern, replacement) in order, that undo what `datasets.tokenization` does to English text. It
# lowers letters, which stay so, and writes a pound sign as #.
DETOKENIZATION = (
    (" *-lrb- *", " ("),
    (" *-rrb-", ")"),
    (" *-lsb- *", " ["),
    (" *-rsb-", "]"),
    (" *-lcb- *", " {"),
    (" *-rcb-", "}"),
    ("`` *", '"'),
    (" *''", '"'),
    ("(^| )` ", "\\1'"),
    # Clitics, and the single quote that ends a quotation or a plural's genitive.
    (" (n't|'(?:s|m|d|ll|re|ve)?)( |$|[^a-z0-9'])", "\\1\\2"),
    (" (n't|'(?:s|m|d|ll|re|ve)?)( |$|[^a-z0-9'])", "\\1\\2"),
    ("\\b(can) (not)\\b", "\\1\\2"),
    ("\\b(gon|wan) (na)\\b", "\\1\\2"),
    ("\\b(got) (ta)\\b", "\\1\\2"),
    (" ([,;:.?!%]|\\.\\.\\.)( |$|[^ a-z0-9])", "\\1\\2"),
    (" ([,;:.?!%]|\\.\\.\\.)( |$|[^ a-z0-9])", "\\1\\2"),
    ("# ([0-9])", "\u00a3\\1"),
    ("([$@]) ([a-z0-9])", "\\1\\2"),
    (" -- ", " \u2013 "),
    ("^ +", ""),
)


def detokenize(text: tf.Tensor) -> tf.Tensor:
    r"""Makes readable text of tokens.

    Args:
        text: Strings of any shape: tokens of `datasets.tokenization`, one blank between them.

    Returns:
        Strings of the same shape.

    Example:

    >>> detokenize("he said : `` it ca n't cost # 1,000 -lrb- yet -rrb- . ''").numpy().decode()
    'he said: "it can\'t cost £1,000 (yet)."'
    """
    for pattern, replacement in DETOKENIZATION:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def join(words: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Joins words with blanks.

    Args:
        words: Strings (..., words).
        lengths: Int (...), how many of them to take.

    Returns:
        Strings (...).

    Example:

    >>> join([["rain", "fell", "."], ["sun", "", ""]], [2, 1]).numpy().tolist()
    [b'rain fell', b'sun']
    """
    taken = tf.sequence_mask(lengths, tf.shape(words)[-1])
    return tf.strings.strip(
        tf.strings.reduce_join(tf.where(taken, words, ""), axis=-1, separator=" ")
    )


class Lexicon(tf.Module):
    """A vocabulary as two tables, a module for `Signature.tracked`.

    Args:
        vocabulary: The vocabulary that the model was trained with.
    """

    def __init__(self, vocabulary: Vocabulary):
        super().__init__()
        self.specials = vocabulary.specials
        words = tf.constant(vocabulary.words)
        ids = tf.range(len(vocabulary), dtype=tf.int64)
        # A word of a text that looks like a special symbol is none: it is unknown.
        first = len(self.specials.symbols)
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(words[first:], ids[first:]),
            default_value=self.specials.unknown,
        )
        self._words = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(ids, words),
            default_value=self.specials.symbols[self.specials.unknown],
        )

    def ids(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the ids of words, int32 (batch, words)."""
        found = tf.ragged.map_flat_values(self._ids.lookup, words)
        return tf.cast(found, tf.int32)

    def words(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the words of ids, strings of the shape of `ids`."""
        return self._words.lookup(tf.cast(ids, tf.int64))
