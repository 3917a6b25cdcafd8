"""How far summaries are from their documents' own words (Table 5 of Narayan et al., 2018).

    python -m zoo.novelty summaries.jsonl baselines.jsonl

The files are as `zoo/summaries.py` says. Proportions are of all n-grams of all summaries together.
Give whole documents: a sentence that a model was not shown is not new for that.
"""

from collections.abc import Callable, Iterable, Sequence

from absl import app

from zoo import summaries

ORDERS = (1, 2, 3, 4)
# The word for words that a vocabulary lacks, as the corpora and the released outputs spell it.
UNKNOWN = ("<unk>", "unk", "[unk]")


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Returns the n-grams of `words`, in order and as often as they come.

    Example:

    >>> ngrams(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def novel_ngrams(
    documents: Sequence[Sequence[str]], texts: Sequence[Sequence[str]], n: int
) -> float:
    """Returns the percentage of the n-grams of summaries that their documents do not have.

    Args:
        documents: The words of each document, in the case of the summaries.
        texts: The words of each summary.
        n: The length of an n-gram.

    Returns:
        Between 0 and 100; 0 if no summary has n words.

    Raises:
        ValueError: If the numbers of documents and summaries differ.

    Example:

    >>> novel_ngrams([["it", "rains", "here"]], [["here", "it", "rains"]], 2)
    50.0
    """
    if len(documents) != len(texts):
        raise ValueError(f"There are {len(documents)} documents, but {len(texts)} summaries.")
    novel = total = 0
    for document, text in zip(documents, texts, strict=True):
        known = set(ngrams(document, n))
        found = ngrams(text, n)
        novel += sum(ngram not in known for ngram in found)
        total += len(found)
    return 100 * novel / max(total, 1)


def repeated_ngrams(texts: Iterable[Sequence[str]], n: int) -> float:
    """Returns the percentage of n-grams that their own summary had before.

    Example:

    >>> repeated_ngrams([["on", "and", "on", "and", "on"]], 2)
    50.0
    """
    found = [ngrams(text, n) for text in texts]
    total = sum(len(grams) for grams in found)
    return 100 * (total - sum(len(set(grams)) for grams in found)) / max(total, 1)


def figures(documents: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> dict:
    """Counts everything about one system's summaries.

    Args:
        documents: The words of each document.
        texts: The words of each summary.

    Returns:
        `words`: the mean length; `novel` and `repeated`: from n = 1 to 4, in per cent;
        `unknown`: the percentage of words that stand for unknown ones; `distinct`: the percentage
        of summaries that are no other document's summary too.
    """
    documents, texts = ([_lower(words) for words in group] for group in (documents, texts))
    total = sum(map(len, texts))
    return {
        "words": total / max(len(texts), 1),
        "novel": {n: novel_ngrams(documents, texts, n) for n in ORDERS},
        "repeated": {n: repeated_ngrams(texts, n) for n in ORDERS},
        "unknown": 100 * sum(word in UNKNOWN for text in texts for word in text) / max(total, 1),
        "distinct": 100 * len(set(map(tuple, texts))) / max(len(texts), 1),
    }


def by_system(examples: Sequence[summaries.Example]) -> dict[str, dict]:
    """Counts for `reference` and each system; see `figures`."""
    documents = [summaries.words(example.document) for example in examples]
    readers: dict[str, Callable] = {"reference": lambda example: example.reference}
    for system in examples[0].summaries if examples else ():
        readers[system] = lambda example, system=system: example.summaries[system]
    return {
        system: figures(documents, [summaries.words(text(example)) for example in examples])
        for system, text in readers.items()
    }


def _lower(words):
    return [word.lower() for word in words]


def main(argv: Sequence[str]) -> None:
    """Prints Table 5 of the files in `argv`."""
    if len(argv) < 2:
        raise app.UsageError("Name files of JSON lines; see zoo/summaries.py.")
    print(f"{'':24}{'words':>8}" + "".join(f"{f'new {n}':>8}" for n in ORDERS) + f"{'unk':>8}")
    for system, found in by_system(summaries.read(argv[1:])).items():
        numbers = [found["words"], *found["novel"].values(), found["unknown"]]
        print(f"{system:24}" + "".join(f"{number:8.2f}" for number in numbers))


if __name__ == "__main__":
    app.run(main)
