"""Articles with summaries as people have them on disk: tables, pairs of files, folders.

Every reader yields `Article`s, whose text is read only by the process that needs it. A line or a
file that cannot be read becomes an article whose `read` says so, with file:line; whoever prepares
a corpus counts it.
"""

import contextlib
import csv
import functools
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from datasets import tokenization

SPLITS = ("train", "validation", "test")
TABLES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet")

# Raw text, or sentences that are tokenized already.
Text = str | list[str]


class Article(NamedTuple):
    """An article before it is read.

    Args:
        split: "train", "validation" or "test" as the source says, or None.
        id: name of the article.
        where: file or file:line, for messages.
        read: returns the document and the summary; raises `ValueError` that says why it cannot.
        has_id: whether the source has this id; else it is made of file and line.
        summary_file: the file of the summary, if that is not in the one of the document.
    """

    split: str | None
    id: str
    where: str
    read: Callable[[], tuple[Text, Text]]
    has_id: bool = True
    summary_file: str = ""


def split_of(name: str) -> str | None:
    """The split that a file's name states, as `train-00000-of-00002.parquet` or `val.source` do."""
    found = re.search(r"(?:^|\.)(train|validation|valid|val|dev|test)(?=[-._]|$)", name)
    if not found:
        return None
    return {"valid": "validation", "val": "validation", "dev": "validation"}.get(found[1], found[1])


def name_of(path: pathlib.Path) -> str:
    """Folder and name of a file, wherever the corpus stands: articles without ids begin so."""
    return "/".join(pathlib.Path(os.path.abspath(path)).parts[-2:])  # "." has a name, too.


def sentences(text: Text) -> list[str]:
    """Returns sentences of lowercase tokens, of raw text or of tokenized sentences."""
    if isinstance(text, str):
        return tokenization.sentences(text)
    lines = (" ".join(tokenization.lower(line).split()) for line in text)
    return [tokenization.end_sentence(line) for line in lines if line]


def open_text(path: pathlib.Path) -> io.TextIOBase:
    """Opens a UTF-8 file, packed by gzip or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8", newline="\n")


@contextlib.contextmanager
def reading(path: pathlib.Path) -> Iterator[None]:
    """Makes a `ValueError` that names the file of what may go wrong while it is read.

    Raises:
        ValueError: if the file is missing, a folder, no UTF-8, no CSV, or half a `.gz`.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {_reason(error)}") from error


def read_text(path: pathlib.Path) -> str:
    """Reads a UTF-8 file.

    Raises:
        ValueError: if it is missing, a folder, or no UTF-8.
    """
    with reading(path), open_text(path) as file:
        return file.read()


def tables(path: pathlib.Path) -> list[pathlib.Path]:
    """The tables of a folder in alphabetical order, or the one that a path names."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.iterdir() if file.name.endswith(TABLES))


def from_table(
    path: pathlib.Path, columns: Mapping[str, Sequence[str]], tokenized: bool = False
) -> Iterator[Article]:
    """Reads JSON lines, a JSON list, CSV or parquet (`pip install pyarrow`).

    Args:
        path: the file; names that end in .gz are unpacked.
        columns: the names under which "document", "summary" and "id" may stand. A row without an
            id is named after folder, file and line.
        tokenized: whether texts are tokens already, sentences in lines or found by their full
            stops.

    Raises:
        ValueError: if the format is unknown, or parquet without pyarrow.
    """
    split, named = split_of(path.name), name_of(path)
    for line, row in _rows(path):
        where, name, has_id = f"{path}:{line}", f"{named}:{line}", False
        if isinstance(row, str):
            yield Article(split, name, where, functools.partial(fail, row), has_id)
            continue
        found = {
            name: next((row[key] for key in names if row.get(key) is not None), None)
            for name, names in columns.items()
        }
        if found.get("id") not in (None, ""):
            name = str(found["id"]).encode("utf-8", "replace").decode()  # No half surrogates.
            has_id = True
        texts = [_text(found[side], tokenized) for side in ("document", "summary")]
        if None in texts:
            names = (" or ".join(columns[side]) for side in ("document", "summary"))
            reason = (
                f"expected texts in the columns {', and '.join(names)}; found the columns "
                f"{', '.join(map(str, row))}"
            )
            yield Article(split, name, where, functools.partial(fail, reason), has_id)
            continue
        read = functools.partial(given, *texts, tokenized=tokenized)
        yield Article(split, name, where, read, has_id)


def _text(value, tokenized: bool) -> Text | None:
    """A text of a table: a string, a list of paragraphs, or a list of sentences' tokens."""
    if isinstance(value, list) and all(isinstance(line, list) for line in value):
        return [" ".join(map(str, line)) for line in value]
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return value if tokenized else "\n".join(value)
    return value if isinstance(value, str) else None


def from_pairs(document: pathlib.Path, summary: pathlib.Path, tokenized: bool) -> Iterator[Article]:
    """Reads two files with an article a line: `train.document` and `train.summary`.

    Raises:
        ValueError: if one has more lines than the other, or cannot be read.
    """
    split, named = split_of(document.name), name_of(document)
    both = itertools.zip_longest(_lines(document), _lines(summary))
    for line, (text, short) in enumerate(both, start=1):
        if text is None or short is None:
            raise ValueError(
                f"{document} and {summary} must have one article a line, the same in both, but "
                f"{document if text is None else summary} ends before line {line}."
            )
        read = functools.partial(given, text.strip(), short.strip(), tokenized=tokenized)
        where = f"{document}:{line}"
        yield Article(split, f"{named}:{line}", where, read, False, str(summary))


def _lines(path: pathlib.Path) -> Iterator[str]:
    with reading(path), open_text(path) as file:
        yield from file


def from_folders(
    documents: pathlib.Path, summaries: pathlib.Path, suffixes: tuple[str, str], ids: list[str]
) -> Iterator[Article]:
    """Reads a folder of documents and one of summaries, a tokenized sentence a line."""
    for name in ids or sorted(file.stem for file in documents.glob(f"*{suffixes[0]}")):
        paths = (documents / f"{name}{suffixes[0]}", summaries / f"{name}{suffixes[1]}")
        read = functools.partial(_two_files, *paths)
        yield Article(None, name, str(paths[0]), read, summary_file=str(paths[1]))


def given(document: Text, summary: Text, tokenized: bool = False) -> tuple[Text, Text]:
    """The `read` of an article that is here already.

    Args:
        document: its text.
        summary: its summary.
        tokenized: whether texts are tokens already. Those between marks like <s> always are.

    Returns:
        Both, of which tokens are lists of sentences, without marks.
    """
    return _given(document, tokenized), _given(summary, tokenized)


def _given(text: Text, tokenized: bool) -> Text:
    if isinstance(text, list):
        return [part for line in text for part in tokenization.MARK.split(line)]
    if tokenized or tokenization.is_marked(text):
        return tokenization.split_tokenized(text)
    return text


def fail(reason: str) -> tuple[Text, Text]:
    """The `read` of an article that cannot be read."""
    raise ValueError(reason)


def _two_files(document: pathlib.Path, summary: pathlib.Path) -> tuple[Text, Text]:
    return read_text(document).split("\n"), read_text(summary).split("\n")


def _rows(path: pathlib.Path) -> Iterator[tuple[int, dict | str]]:
    """Yields the line and the row, or why there is none."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        yield from _parquet(path)
    elif name.endswith(".jsonl"):
        yield from _json_lines(path)
    elif name.endswith(".json"):
        yield from _json(path)
    elif name.endswith(".csv"):
        csv.field_size_limit(2**31 - 1)
        with reading(path), open_text(path) as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield reader.line_num, row
    else:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(TABLES)}.")


def _json_lines(path: pathlib.Path) -> Iterator[tuple[int, dict | str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with reading(path), opener(path, "rb") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except ValueError as error:  # No JSON, or no UTF-8.
                yield line, f"expected a line of JSON, but: {error}"
                continue
            yield line, row if isinstance(row, dict) else "expected a JSON object"


def _json(path: pathlib.Path) -> Iterator[tuple[int, dict | str]]:
    """Reads a list of objects, or JSON lines under the name .json, as Hugging Face writes them."""
    text = read_text(path)
    try:
        rows = json.loads(text)
    except ValueError as error:  # Of lines, where the second begins.
        if "\n{" in text and not text.lstrip().startswith("["):
            del text
            yield from _json_lines(path)
            return
        raise ValueError(f"{path}: expected a JSON list of objects, but: {error}") from error
    if isinstance(rows, dict):
        rows = rows.get("data", [rows])
    if not isinstance(rows, list):
        raise ValueError(f"{path}: expected a JSON list of objects, found {str(rows)[:50]!r}.")
    for place, row in enumerate(rows, start=1):
        yield place, row if isinstance(row, dict) else "expected a JSON object"


def _parquet(path: pathlib.Path) -> Iterator[tuple[int, dict]]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            f"{path}: reading parquet takes pyarrow (pip install pyarrow); or export the data set "
            "as JSON lines."
        ) from error
    row = 0
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1000):
            for values in batch.to_pylist():
                row += 1
                yield row, values
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a parquet file, but: {error}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, but: {error}"
    return str(error)
