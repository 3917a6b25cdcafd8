"""Words and their ids, and ids for the words that a vocabulary lacks but an article holds.

Two conventions of special symbols, those of the two released codes:

    XSUM  0 <Lua heritage>  1 <pad>  2 </s>   3 <unk>     a summary starts with </s>, too
    SEE   0 [UNK]           1 [PAD]  2 [START]  3 [STOP]  See et al. (2017)

A vocabulary is a text file of one word a line, whose line number, from 0, is the word's id: the
form that `tf.lookup.TextFileInitializer` reads.
"""

import os
import pathlib
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Specials(NamedTuple):
    """The four special symbols in the order of their ids, and which id does what.

    Args:
        symbols: the symbols of ids 0 to 3.
        pad: id that fills a batch.
        unknown: id of every word outside the vocabulary.
        start: id that a decoder reads first.
        end: id that ends a summary.
    """

    symbols: tuple[str, str, str, str]
    pad: int
    unknown: int
    start: int
    end: int


XSUM = Specials(("<Lua heritage>", "<pad>", "</s>", "<unk>"), pad=1, unknown=3, start=2, end=2)
SEE = Specials(("[UNK]", "[PAD]", "[START]", "[STOP]"), pad=1, unknown=0, start=2, end=3)


class Vocabulary:
    """Words, frequent first, after four special symbols.

    Args:
        words: the words, distinct, without the special symbols.
        specials: the convention, `XSUM` or `SEE`.

    Raises:
        ValueError: if a word occurs twice, is a special symbol, is empty or holds a blank.

    Example:

    >>> vocabulary = Vocabulary(["the", "cat"], SEE)
    >>> vocabulary.encode(["the", "dog"]).tolist(), vocabulary.decode([5, 0])
    ([4, 0], ['cat', '[UNK]'])
    """

    def __init__(self, words: Iterable[str], specials: Specials = XSUM):
        self.specials = specials
        self.words = list(specials.symbols)
        self.words.extend(words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            word, count = Counter(self.words).most_common(1)[0]
            raise ValueError(f"words must be distinct, but {word!r} is there {count} times.")
        for word in self.words[len(specials.symbols) :]:
            if not word or len(word.split()) != 1:
                raise ValueError(f"a word must be a string without blanks, got {word!r}.")

    @property
    def pad(self) -> int:
        """Id that fills a batch."""
        return self.specials.pad

    @property
    def unknown(self) -> int:
        """Id of every word outside the vocabulary."""
        return self.specials.unknown

    @property
    def start(self) -> int:
        """Id that a decoder reads first."""
        return self.specials.start

    @property
    def end(self) -> int:
        """Id that ends a summary."""
        return self.specials.end

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def __getitem__(self, word: str) -> int:
        """The id of a word, `unknown` for one outside the vocabulary."""
        return self._ids.get(word, self.unknown)

    def encode(self, words: Sequence[str]) -> np.ndarray:
        """Returns the ids of words, int32 (words,), without start or end.

        A word of a text that looks like a special symbol is unknown, so that no text can end a
        summary.
        """
        ids = np.fromiter((self._ids.get(word, self.unknown) for word in words), np.int32)
        return np.where(ids < len(self.specials.symbols), np.int32(self.unknown), ids)

    def decode(self, ids: Iterable[int], copied: Sequence[str] = ()) -> list[str]:
        """Returns the words of ids.

        Args:
            ids: ids of the vocabulary, or from `len(vocabulary)` on of `copied` words.
            copied: the article's words outside the vocabulary, as `encode_copied` gives them.

        Raises:
            ValueError: if an id is neither of the vocabulary nor of a copied word.
        """
        words = []
        for i in map(int, ids):
            if not 0 <= i < len(self) + len(copied):
                raise ValueError(
                    f"ids must be below {len(self)} words + {len(copied)} copied ones, got {i}."
                )
            words.append(self.words[i] if i < len(self) else copied[i - len(self)])
        return words

    def encode_copied(self, article: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Gives the words that the vocabulary lacks ids of their own, for this article alone.

        They are `len(vocabulary)` and up, in order of first occurrence (See et al. 2017). Cut the
        article to its length first: what is cut away cannot be copied.

        Returns:
            The ids, int32 (words,), and the copied words in the order of their ids.
        """
        ids = self.encode(article)
        copied: dict[str, int] = {}
        for i in np.flatnonzero(ids == self.unknown):
            ids[i] = copied.setdefault(article[i], len(self) + len(copied))
        return ids, list(copied)

    def encode_target(self, summary: Sequence[str], copied: Sequence[str]) -> np.ndarray:
        """Returns the ids of a summary, int32 (words,), where words of the article can be copied.

        A word that neither the vocabulary nor `copied` holds is unknown.
        """
        ids = self.encode(summary)
        places = {word: len(self) + i for i, word in enumerate(copied)}
        for i in np.flatnonzero(ids == self.unknown):
            ids[i] = places.get(summary[i], self.unknown)
        return ids

    def write(self, path: str | os.PathLike) -> None:
        """Writes one word a line; the line's number from 0 is the id."""
        path = pathlib.Path(path)
        # Workers may write it at once.
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        temporary.write_text("\n".join(self.words) + "\n", encoding="utf-8", newline="\n")
        os.replace(temporary, path)


def build(counters: Iterable[Counter], size: int, specials: Specials = XSUM) -> Vocabulary:
    """Makes the vocabulary of the most frequent words.

    Args:
        counters: counts of words. Of two words that are as frequent, the one that comes first in
            the earliest counter wins, as in the released codes: give documents, then summaries.
        size: number of words, special symbols not counted.
        specials: the convention, `XSUM` or `SEE`.

    Raises:
        ValueError: if `size` is below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 word, got {size}.")
    total: Counter = Counter()
    for counter in counters:
        total.update(counter)
    for symbol in (*specials.symbols, "<s>", "</s>"):
        total.pop(symbol, None)
    return Vocabulary((word for word, _ in total.most_common(size)), specials)


def read(path: str | os.PathLike) -> Vocabulary:
    """Reads a vocabulary that `Vocabulary.write` wrote.

    Raises:
        ValueError: if the file does not begin with the special symbols, with file:line.
    """
    lines = _lines(path)
    for specials in (XSUM, SEE):
        if tuple(lines[:4]) == specials.symbols:
            return Vocabulary(lines[4:], specials)
    raise ValueError(
        f"{path}:1: a vocabulary begins with the lines {', '.join(XSUM.symbols)} or "
        f"{', '.join(SEE.symbols)}, found {', '.join(lines[:4])}. "
        "For a file of 'word count' lines use read_counts."
    )


def read_counts(path: str | os.PathLike, size: int, specials: Specials) -> Vocabulary:
    """Reads 'word count' lines, most frequent first: `finished_files/vocab`, fairseq's dict.txt.

    Args:
        path: the file. Lines of another form are skipped, as See et al.'s reader does: words that
            hold a blank.
        size: number of words to keep, special symbols not counted.
        specials: the convention, `XSUM` or `SEE`.

    Raises:
        ValueError: if the file has no such line.
    """
    words = [line.split(" ")[0] for line in _lines(path) if len(line.split()) == 2]
    words = [word for word in words if word not in (*specials.symbols, "<s>", "</s>")]
    if not words:
        raise ValueError(f"{path}:1: expected lines 'word count', found none.")
    return Vocabulary(words[:size], specials)


def read_any(path: str | os.PathLike, size: int, specials: Specials) -> Vocabulary:
    """Reads a vocabulary of either form and checks its convention.

    Raises:
        ValueError: if it was written with other special symbols than `specials`.
    """
    if _lines(path)[0] not in (XSUM.symbols[0], SEE.symbols[0]):
        return read_counts(path, size, specials)
    found = read(path)
    if found.specials != specials:
        raise ValueError(
            f"{path}:1: expected the special symbols {', '.join(specials.symbols)}, found "
            f"{', '.join(found.specials.symbols)}."
        )
    return Vocabulary(found.words[4:][:size], specials)


def _lines(path: str | os.PathLike) -> list[str]:
    with open(path, encoding="utf-8", newline="\n") as file:
        try:
            return file.read().removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected UTF-8, but: {error}.") from error
