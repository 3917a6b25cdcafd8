"""Whole articles as sentences of lowercase tokens, in files of some thousands.

A row of `text/SPLIT-00000-of-00002.jsonl.gz` is `{"id", "document", "summary"}`, the last two
lists of sentences, tokens with one blank between them. Records are made from these files, topics
are trained on them, and extractive baselines choose among their sentences.
"""

import gzip
import hashlib
import json
import os
import pathlib
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from datasets import articles, parallel, splits
from datasets.articles import SPLITS, Article

# Takes a raw text and returns it without a site's own lines, and how many of each kind it took.
Cleaner = Callable[[str], tuple[str, Counter]]


def files(output: str | os.PathLike, split: str) -> list[pathlib.Path]:
    """The text files of a split, in order; none if the split is not there."""
    return sorted(pathlib.Path(output, "text").glob(f"{split}-*.jsonl.gz"))


def read(path: str | os.PathLike) -> Iterator[dict]:
    """Yields the rows of a text file.

    Raises:
        ValueError: naming the file, if a part of it is gone.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for line in file:
                yield json.loads(line)
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged: {error}. Remove it and give the command again that prepared the "
            "corpus, which writes what is missing."
        ) from error


def load(directory: str | os.PathLike, split: str) -> Iterator[dict]:
    """Yields the rows of a split, in the order of its records.

    Raises:
        FileNotFoundError: if the split is not there.
    """
    found = files(directory, split)
    if not found:
        raise FileNotFoundError(f"{directory} has no text of the split {split!r}.")
    for path in found:
        yield from read(path)


def words(sentences: Iterable[str], length: int = 0) -> list[str]:
    """The words of sentences: the first `length` of them, or all for 0."""
    flat = [word for sentence in sentences for word in sentence.split(" ")]
    return flat[:length] if length else flat


def write(
    source: Iterable[Article],
    places: list[splits.Place],
    output: pathlib.Path,
    examples_per_shard: int,
    clean: Cleaner | None,
    processes: int,
) -> list[dict]:
    """Reads, cleans and tokenizes all articles; what an earlier run has done is left as it is.

    Args:
        source: the articles, in the order of `places`.
        places: split of each.
        output: folder of the corpus.
        examples_per_shard: articles of a file.
        clean: function of a module, applied to raw text, or None.
        processes: how many processes to work with.

    Returns:
        What each shard says of itself: its name, how many it has `read`, which it `dropped`, how
        often the cleaner was right, numbers of tokens, and the hash of the raw articles.
    """
    sizes = splits.sizes(places)
    progress = parallel.Progress("text", sum(sizes.values()))

    def tasks():
        for split, shard, batch in _batches(source, places, examples_per_shard):
            count = -(-sizes[split] // examples_per_shard)
            yield output, f"{split}-{shard:05d}-of-{count:05d}", batch, clean

    shards = []
    for shard, fresh in parallel.ordered(_write_shard, tasks(), processes):
        progress.add(shard["read"], skipped=not fresh)
        shards.append(shard)
    progress.close()
    return sorted(shards, key=lambda shard: shard["name"])


def _batches(source, places, size) -> Iterator[tuple[str, int, list[Article]]]:
    """Yields split, number and articles of each shard as soon as it is full."""
    waiting: dict[str, list] = {split: [] for split in SPLITS}
    shards: Counter = Counter()
    for article, place in zip(source, places, strict=True):
        if place.split is None:
            continue
        batch = waiting[place.split]
        batch.append(article)
        if len(batch) == size:
            yield place.split, shards[place.split], batch
            shards[place.split] += 1
            waiting[place.split] = []
    for split, batch in waiting.items():
        if batch:
            yield split, shards[split], batch


def _write_shard(task) -> tuple[dict, bool]:
    """Writes one file, and beside it what it says of itself; tells whether it was to be done."""
    output, name, batch, clean = task
    done = output / ".done" / f"{name}.json"
    path = output / "text" / f"{name}.jsonl.gz"
    if done.exists() and path.exists():
        return json.loads(done.read_text()), False
    shard = {"name": name, "read": len(batch), "kept": 0, "dropped": []}
    cleaned, lengths, source = Counter(), Counter(), hashlib.sha256()
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for article in batch:
            try:
                texts = article.read()
                source.update(repr((article.id, texts)).encode("utf-8", "replace"))
                document, summary = _sentences(texts, clean, cleaned)
            except ValueError as error:
                shard["dropped"].append((article.where, str(error)))
                continue
            shard["kept"] += 1
            lengths.update(document=len(words(document)), summary=len(words(summary)))
            row = {"id": article.id, "document": document, "summary": summary}
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    os.replace(temporary, path)
    shard |= {"cleaned": cleaned, "tokens": lengths, "source_sha256": source.hexdigest()}
    write_json(done, shard)
    return shard, True


def _sentences(texts, clean: Cleaner | None, cleaned: Counter) -> list[list[str]]:
    both = []
    for side, text in zip(("document", "summary"), texts, strict=True):
        if not clean:
            sentences = articles.sentences(text)
        elif isinstance(text, str):
            text, taken = clean(text)
            cleaned.update(taken)
            sentences = articles.sentences(text)
        else:
            lines = []
            for line in text:
                line, taken = clean(line)
                cleaned.update(taken)
                lines.append(line)
            sentences = articles.sentences(lines)
        if not sentences:
            raise ValueError(f"{side} is empty")
        both.append(sentences)
    return both


def read_json(path: pathlib.Path, source: str) -> dict:
    """Reads a file of JSON.

    Args:
        path: The file.
        source: The command that makes it.

    Raises:
        FileNotFoundError: Naming the command, if it is not there.
        ValueError: Naming file and command, if it is damaged.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}: it comes from {source}.")
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. It comes from {source}.") from error


def write_json(path: pathlib.Path, content) -> None:
    """Writes JSON under a temporary name and renames it."""
    # Workers may write it at once.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(temporary, path)
