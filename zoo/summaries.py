"""Documents with the summaries of several systems, in JSON lines: what all evaluation reads.

A line is an object with

- `id`: a text;
- `document`: a text with a sentence a line, or a list of sentences; tokens, one blank between them;
- `reference`: a text; several sentences stand on lines, or in `<t> </t>` or `<s> </s>`;
- `summaries`: from the name of each system to its text, as `reference`;
- `attention` (optional): hops x target x source numbers of the one system in `summaries`, or of
  the system that `attention_of` names. One hop may be given as target x source;
- `source`, `target` (optional): the words that `attention` is over. Without them they are the
  first words of the document and the words of the summary; one more may be its end;
- `p_gen` (optional): for each target word the chance that it was generated, not copied;
- `topics` (optional): the topics of the document, pairs of a weight and a list of words.

Files of different systems are read together, by `id`.
"""

import dataclasses
import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from datasets import articles

END = "</s>"


@dataclasses.dataclass
class Attention:
    """Where a system looked.

    Args:
        weights: hops x target x source.
        source: The words of the document that were read.
        target: The words that were written.
        p_gen: For each word written the chance that it was generated; empty without pointer.
    """

    weights: list[list[list[float]]]
    source: list[str]
    target: list[str]
    p_gen: list[float] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Example:
    """A document, its reference and what systems made of it.

    Args:
        id: Its name.
        document: Its sentences.
        reference: The summary that its editor wrote.
        summaries: That of each system.
        attention: Where systems looked, of those that say so.
        topics: Pairs of a weight and the words of a topic.
    """

    id: str
    document: list[str]
    reference: str
    summaries: dict[str, str]
    attention: dict[str, Attention] = dataclasses.field(default_factory=dict)
    topics: list[tuple[float, list[str]]] = dataclasses.field(default_factory=list)


def sentences(text: str, end: str = "") -> list[str]:
    """Splits a summary at its sentence tags, which are no words.

    Args:
        text: `<t> a b . </t> <t> c . </t>`, the same with `<s>`, or lines.
        end: A word that ends a sentence, such as "."; none if empty.

    Returns:
        The sentences that are not empty, without tags.
    """
    text = re.sub(r"</?[st]>", "\n", text)
    if end:
        text = re.sub(rf"(?<!\S){re.escape(end)}(?!\S)", f"{end}\n", text)
    return [line.strip() for line in text.split("\n") if line.strip()]


def words(text: str | Iterable[str]) -> list[str]:
    """Returns the words of a text or of sentences, without sentence tags.

    Example:

    >>> words("<t> Rain . </t> <t> Sun . </t>")
    ['Rain', '.', 'Sun', '.']
    """
    texts = [text] if isinstance(text, str) else text
    return [word for text in texts for line in sentences(text) for word in line.split()]


def read(paths: Iterable[str | os.PathLike]) -> list[Example]:
    """Reads files of JSON lines, `.gz` or not, and joins what they say of the same document.

    Args:
        paths: The files. The first says which documents there are, and in which order.

    Raises:
        ValueError: Naming file:line, if a line is no example, if a file has documents that the
            first has not, or lacks some, or if two files have a system of the same name.
    """
    examples: dict[str, Example] | None = None
    for path in paths:
        found = {}
        for where, row in _rows(path):
            example = _example(row, where)
            if example.id in found:
                raise ValueError(f"{where}: the id {example.id!r} is in an earlier line too.")
            found[example.id] = example
            first = next(iter(found.values()))
            if set(example.summaries) != set(first.summaries):
                raise ValueError(
                    f"{where}: expected summaries of {sorted(first.summaries)} as in line 1, "
                    f"found those of {sorted(example.summaries)}."
                )
        if examples is None:
            examples = found
            continue
        if set(found) != set(examples):
            missing, new = set(examples) - set(found), set(found) - set(examples)
            raise ValueError(
                f"{path} must have the documents of the first file, but lacks {len(missing)} "
                f"({sorted(missing)[:3]}) and has {len(new)} others ({sorted(new)[:3]})."
            )
        for name, example in found.items():
            _join(examples[name], example, path)
    return list((examples or {}).values())


def check_output(path: str | os.PathLike) -> None:
    """Checks the file that is to be written before the work is done.

    Raises:
        IsADirectoryError: If it is a folder.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"--output={path} is a folder: give the name of a file.")


def write(path: str | os.PathLike, rows: Iterable[Mapping]) -> None:
    """Writes rows as JSON lines, under a temporary name first."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".tmp-{path.name}")
    with staged.open("w", encoding="utf-8") as file:
        file.writelines(map(line_of, rows))
    os.replace(staged, path)


def line_of(row: Mapping) -> str:
    """Returns a row as a line of a file."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def _rows(path) -> Iterator[tuple[str, dict]]:
    """Yields file:line and object of each line."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with articles.reading(Path(path)), opener(path, "rt", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}:{number}"
            try:
                yield where, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where}: expected an object of JSON: {error}.") from error


def _example(row, where) -> Example:
    """Checks a row and makes an example of it."""
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object, found {type(row).__name__}.")
    kinds = {"id": (str, int), "document": (str, list), "reference": str, "summaries": dict}
    for key, kind in kinds.items():
        if not isinstance(row.get(key), kind):
            raise ValueError(
                f"{where}: `{key}` is missing or of the wrong kind ({row.get(key)!r}); "
                "expected {id, document, reference, summaries: {system: text}}."
            )
    document = row["document"]
    if isinstance(document, str):
        document = document.splitlines()
    document = [line for line in document if line.strip()]
    _check_kinds(row, where)
    topics = [(float(weight), list(words)) for weight, words in row.get("topics") or ()]
    example = Example(
        str(row["id"]), document, row["reference"], dict(row["summaries"]), {}, topics
    )
    if row.get("attention"):
        system = row.get("attention_of") or next(iter(example.summaries), None)
        if system not in example.summaries or (
            len(example.summaries) > 1 and "attention_of" not in row
        ):
            raise ValueError(
                f"{where}: `attention_of` must name one of {sorted(example.summaries)}, "
                f"but is {row.get('attention_of')!r}."
            )
        example.attention[system] = _attention(row, example, system, where)
    return example


def _check_kinds(row, where) -> None:
    """Checks what is inside of `summaries`, `topics` and `attention`."""
    right = {
        "summaries: {system: text}": all(isinstance(s, str) for s in row["summaries"].values()),
        "topics: [[weight, [word, ...]], ...]": all(
            isinstance(topic, list)
            and len(topic) == 2
            and isinstance(topic[0], (int, float))
            and isinstance(topic[1], list)
            for topic in _list(row.get("topics"))
        ),
        "attention: [[weight, ...], ...], or hops of them": all(
            isinstance(line, list) and line for line in _list(row.get("attention"))
        ),
    }
    for expected, is_so in right.items():
        if not is_so:
            raise ValueError(f"{where}: expected {expected}.")


def _list(value) -> list:
    """What should be a list; of anything else a list of it, which is of no right kind."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _attention(row, example, system, where) -> Attention:
    """Checks that weights and words are as many."""
    weights = row["attention"]
    if not isinstance(weights[0][0], list):
        weights = [weights]
    targets, sources = len(weights[0]), len(weights[0][0])
    if any(len(hop) != targets or any(len(line) != sources for line in hop) for hop in weights):
        raise ValueError(f"{where}: all rows of `attention` must have the same length.")
    source = row.get("source") or [*words(example.document), END][:sources]
    target = row.get("target") or [*words(example.summaries[system]), END][:targets]
    p_gen = row.get("p_gen") or []
    if len(source) != sources or len(target) != targets or len(p_gen) not in (0, targets):
        raise ValueError(
            f"{where}: `attention` is {len(weights)} x {targets} x {sources}, but there are "
            f"{len(target)} target words, {len(source)} source words and {len(p_gen)} of p_gen; "
            "give the words as `target` and `source`."
        )
    return Attention(weights, source, target, p_gen)


def _join(example, other, path) -> None:
    """Adds the systems of another file to an example."""
    both = sorted(set(example.summaries) & set(other.summaries))
    if both:
        raise ValueError(f"{path}: the systems {both} are in an earlier file too.")
    if example.reference != other.reference:
        raise ValueError(
            f"{path}: the reference of {example.id!r} differs from that of the first file: "
            f"{other.reference!r}, {example.reference!r}."
        )
    example.summaries |= other.summaries
    example.attention |= other.attention
    example.topics = example.topics or other.topics
