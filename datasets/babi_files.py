"""The files of bAbI: found in a folder or an archive, and read line by line."""

import functools
import gzip
import re
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")

# What reading a damaged archive raises; RuntimeError is for one that seems to be encrypted.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    RuntimeError,
)


class Question(NamedTuple):
    """A question and all that was told before it in its story.

    Args:
        story: the sentences, each a tuple of words; the newest is last.
        question: its words.
        answer: the answer, lower-cased; a list is joined by commas.
        facts: places in `story` of the sentences that decide.
    """

    story: tuple[tuple[str, ...], ...]
    question: tuple[str, ...]
    answer: str
    facts: tuple[int, ...]


def tokenize(text: str) -> tuple[str, ...]:
    """Returns the words of a text.

    Example:

    >>> tokenize("Where is Mary? ")
    ('where', 'is', 'mary', '?')
    """
    return tuple(re.sub(r"([.,;:?!])", r" \1 ", text.lower()).split())


def parse(text: str, name: str) -> list[Question]:
    """Reads the text of a file.

    Args:
        text: the text.
        name: the file's name, for messages.

    Raises:
        ValueError: for the first line that is malformed, with its number and what is wrong.
    """
    questions, story, places, expected = [], [], {}, 1
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        identifier, _, rest = line.strip().partition(" ")
        if not identifier.isdecimal() or not rest.strip():
            raise ValueError(f"{where}: expected a line number, a space and text, found {line!r}.")
        if int(identifier) == 1:
            story, places, expected = [], {}, 1
        if int(identifier) != expected:
            raise ValueError(
                f"{where}: expected line {expected} of its story, or 1 for a new story, found "
                f"{identifier}: are lines missing?"
            )
        expected += 1
        if "\t" in rest:
            questions.append(_question(rest.split("\t"), story, places, where))
        else:
            places[int(identifier)] = len(story)
            story.append(tokenize(rest))
    if not questions:
        raise ValueError(f"{name}: expected questions with an answer after a tab, found none.")
    return questions


def _question(fields: list[str], story: list, places: dict[int, int], where: str) -> Question:
    question, answer = tokenize(fields[0]), fields[1].strip().lower()
    if len(fields) > 3 or not question or not answer:
        raise ValueError(
            f"{where}: expected question<TAB>answer<TAB>line numbers, found {len(fields)} fields: "
            f"{fields}."
        )
    facts = fields[2].split() if len(fields) == 3 else []
    if not all(fact.isdecimal() and int(fact) in places for fact in facts):
        raise ValueError(
            f"{where}: expected numbers of earlier sentences of the story after the second tab, "
            f"found {fields[2]!r}."
        )
    return Question(tuple(story), question, answer, tuple(places[int(fact)] for fact in facts))


def read(path: str | Path) -> list[Question]:
    """Reads one file, .gz or not; raises as `parse`."""
    path = Path(path)
    return _decode(path.read_bytes(), str(path))


def _decode(content: bytes, name: str) -> list[Question]:
    try:
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        return parse(content.decode(), name)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name}:{line}: expected UTF-8, found byte {content[error.start]:#x}."
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: not a whole gzip file ({error}): fetch it again.") from error


@functools.lru_cache(maxsize=4)
def _archive(path: Path) -> dict[str, bytes]:
    """The task files of an archive by name; refuses names that lead out of the folder."""
    try:
        return _unpacked(path)
    except _DAMAGED as error:
        # What each packer says is left out.
        reason = str(error).partition("\n")[0].rstrip(":") or "it is cut short"
        raise ValueError(
            f"{path}: not a whole archive ({reason}): name the folder tasks_1-20_v1-2, or fetch "
            "it again."
        ) from error


def _unpacked(path: Path) -> dict[str, bytes]:
    found = {}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [_inside(path, info.filename) for info in archive.infolist()]
            found = {name: archive.read(name) for name in names if _is_task_file(name)}
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                name = _inside(path, member.name)
                if member.isfile() and _is_task_file(name):
                    found[name] = archive.extractfile(member).read()
            while archive.fileobj.read(1 << 20):  # The checksum of a .gz is at its end.
                pass
    return found


def _inside(archive: Path, name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
        raise ValueError(
            f"{archive}: the member {name!r} leaves the folder: this is not the official archive."
        )
    return name


def _is_task_file(name: str) -> bool:
    return re.match(r"qa\d+_.*\.txt(\.gz)?$", PurePosixPath(name).name) is not None


def _contents(data: Path) -> dict[str, bytes | Path]:
    """The task files of `data` by name: their content, or where it is."""
    if data.is_dir():
        files = {
            path.relative_to(data).as_posix(): path
            for path in sorted(data.rglob("qa*"))
            if _is_task_file(path.name) and path.is_file()
        }
    elif data.is_file() and data.name.endswith(ARCHIVES):
        files = _archive(data)
    elif data.is_file():
        stem = re.sub(r"(train|valid|test)\.txt(\.gz)?$", "", data.name)
        files = {p.name: p for p in sorted(data.parent.glob(f"{stem}*")) if _is_task_file(p.name)}
    else:
        raise FileNotFoundError(
            f"There is no {data}: name the folder tasks_1-20_v1-2, its archive, or a file of it."
        )
    return files


def find(data: str | Path, task: int, language: str, split: str) -> list[Question] | None:
    """Reads the questions of one split as it is on disk.

    Args:
        data: as for `load`.
        task: 1 to 20.
        language: the folder's name: en, en-10k, en-valid-10k, hn, shuffled, ...
        split: train, valid or test.

    Returns:
        The questions, or None if there is no such file.

    Raises:
        FileNotFoundError: if there is no `data`.
        ValueError: if a line is malformed, or the archive is damaged or not safe to read.
    """
    data = Path(data)
    pattern = re.compile(rf"qa{task}_(?:.*_)?{split}\.txt(?:\.gz)?")
    for name, content in _contents(data).items():
        path = PurePosixPath(name)
        # Files with no folder above them are those of the one language there is.
        if path.parent.name in ("", language) and pattern.fullmatch(path.name):
            label = str(data / name) if data.is_dir() else f"{data}:{name}"
            if isinstance(content, Path):
                label, content = str(content), content.read_bytes()
            return _decode(content, label)
    return None
