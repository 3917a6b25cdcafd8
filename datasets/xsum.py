"""XSum: BBC articles and their one-sentence summaries (Narayan, Cohen and Lapata 2018).

    python -m datasets.xsum prepare --source=bbc-summary-data --output=data/xsum

`--source` is what you have of the corpus:

    a folder of BBCID.summary or BBCID.data    [SN]FIRST-SENTENCE[SN] or [XSUM]INTRODUCTION[XSUM]
    xsum-preprocessed/                         document/BBCID.document, summary/BBCID.summary
    {train,validation,test}.{document,summary} tokenized, an article a line; `valid` is fine, too
    {train,val,test}.{source,target}           raw text, an article a line
    *.jsonl, *.csv, *.parquet (or one)         Hugging Face's columns document, summary, id

The first two need the authors' list of ids, XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json: put it into
the folder or name it with --split_ids. Nothing is downloaded. Documents are cut to 400 tokens,
summaries to 90, letters lowered, and the 50,000 most frequent words of the training articles
make the vocabulary, as in the paper.
"""

import functools
import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from absl import app, flags

from datasets import articles, prepare_command, records, splits, summarization, text_shards
from datasets.articles import Article

SIZES = {"train": 204_045, "validation": 11_332, "test": 11_334}

load = records.load
load_text = text_shards.load

_COLUMNS = {
    "document": ("document", "text", "article"),
    "summary": ("summary", "target", "highlights"),
    "id": ("id", "bbcid"),
}
_SPLIT_IDS = "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json"
_SECTION = re.compile(r"^\[(?:SN|XSUM)\]([A-Z-]+)\[(?:SN|XSUM)\]$", re.MULTILINE)

# Lines that the BBC's pages put around articles, whole lines unless ".*" says more. The released
# data keeps them (EdinburghNLP/XSum issues 14 and 29), so cleaning is a choice.
_BOILERPLATE = {
    "share links": "Share this with|Email|Facebook|Messenger|Twitter|Pinterest|WhatsApp|LinkedIn|"
    "Copy this link|Read more about sharing\\.?|"
    "These are external links and will open in a new window",
    "player": "Media playback is (?:not supported|unsupported) on (?:this|your) device",
    "date": "\\d{1,2} \\w+ \\d{4} Last updated at \\d\\d:\\d\\d [A-Z]{3}",
    "picture": "Image (?:copyright|caption) .*",
    "reader": "Most computers will open PDF documents automatically, but you may need Adobe Reader|"
    "Download the reader here",
    "promotion": "(?:Follow|Like|Find) (?:us|@BBC\\w+) on .*|Subscribe to the BBC .*|"
    "Find all the latest football transfers on our dedicated page\\.",
}
_LINES = {
    kind: re.compile(f"^[ \t]*(?:{pattern})[ \t]*(?:\n|$)", re.MULTILINE)
    for kind, pattern in _BOILERPLATE.items()
}
# These are no English sentence and go from the middle of a line, too.
_INLINE = re.compile(f"(?:{_BOILERPLATE['player']}) *")


def clean(text: str) -> tuple[str, Counter]:
    r"""Takes the lines of the site, not of the article, out of a raw text.

    Returns:
        The text, and how many lines of each kind were taken.

    Example:

    >>> clean("Share this with\nEmail\nIt rains.")
    ('It rains.', Counter({'share links': 2}))
    """
    taken: Counter = Counter()
    for kind, pattern in (*_LINES.items(), ("player", _INLINE)):
        text, count = pattern.subn("", text)
        if count:
            taken[kind] += count
    return text, taken


def read(source: pathlib.Path, ids: Sequence[str] = ()) -> Iterator[Article]:
    """Finds the articles of a folder or file, whatever its form (see the module's head).

    Args:
        source: the folder or file.
        ids: ids to look for, where an article is a file; none: all that are there.

    Raises:
        ValueError: if there is nothing to read.
    """
    if source.is_file():
        yield from articles.from_table(source, _COLUMNS)
    elif (source / "document").is_dir() and (source / "summary").is_dir():
        folders = source / "document", source / "summary"
        yield from articles.from_folders(*folders, (".document", ".summary"), list(ids))
    elif next(source.glob("*.data"), None) or next(source.glob("[0-9]*.summary"), None):
        yield from _from_pages(source, ids)
    elif next(source.glob("*.document"), None):
        yield from _from_pairs(source, ".document", ".summary", tokenized=True)
    elif next(source.glob("*.source"), None):
        yield from _from_pairs(source, ".source", ".target", tokenized=False)
    elif articles.tables(source):
        for path in articles.tables(source):
            if path.name.removesuffix(".gz") != _SPLIT_IDS:
                yield from articles.from_table(path, _COLUMNS)
    else:
        raise ValueError(
            f"{source}: expected one of the forms that python -m datasets.xsum --help lists, found "
            f"{', '.join(sorted(path.name for path in source.iterdir())[:5]) or 'nothing'}."
        )


def _from_pairs(source, document, summary, tokenized) -> Iterator[Article]:
    for path in sorted(source.glob(f"*{document}")):
        yield from articles.from_pairs(path, path.with_suffix(summary), tokenized)


def _from_pages(source: pathlib.Path, ids: Sequence[str]) -> Iterator[Article]:
    suffix = ".data" if next(source.glob("*.data"), None) else ".summary"
    for name in ids or sorted(path.stem for path in source.glob(f"*{suffix}")):
        path = source / f"{name}{suffix}"
        yield Article(None, name, str(path), functools.partial(read_page, path))


def read_page(path: pathlib.Path) -> tuple[str, str]:
    """Reads the document and the summary of a page that the authors' scripts extracted.

    Raises:
        ValueError: if the file cannot be read or lacks one of the two sections.
    """
    parts = _SECTION.split(articles.read_text(path))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    summary = sections.get("FIRST-SENTENCE", sections.get("INTRODUCTION"))
    document = sections.get("RESTBODY")
    if document is None or summary is None:
        raise ValueError(
            "expected the sections RESTBODY and FIRST-SENTENCE or INTRODUCTION between [SN] or "
            f"[XSUM] marks, found {', '.join(sections) or 'none'}"
        )
    return document.strip(), summary.strip()


def _split_ids(sources: list[pathlib.Path], given: str | None) -> dict[str, str] | None:
    if given:
        return splits.read_ids(pathlib.Path(given))
    for folder in itertools.chain.from_iterable((path, path.parent) for path in sources):
        for name in (_SPLIT_IDS, f"{_SPLIT_IDS}.gz"):
            if (folder / name).is_file():
                print(f"Splits: {folder / name}")
                return splits.read_ids(folder / name)
    return None


def prepare(
    sources: Sequence[str],
    output: str,
    settings: summarization.Settings,
    split_ids: str | None = None,
    held_out: int = 0,
    allow_partial: bool = False,
    use_cleaner: bool = False,
    processes: int = 2,
) -> dict:
    """Prepares the corpus; the command `prepare` with its flags as arguments.

    Raises:
        ValueError: if a source cannot be read, or a split has not its published size and neither
            `held_out` nor `allow_partial` says that this is meant.
    """
    paths = prepare_command.existing(sources)
    by_id = None if held_out else _split_ids(paths, split_ids)

    def source() -> Iterator[Article]:
        return itertools.chain.from_iterable(read(path, tuple(by_id or ())) for path in paths)

    places = splits.assign(source(), by_id, held_out)
    prepare_command.check_sizes(places, SIZES, bool(held_out or allow_partial))
    cleaner = clean if use_cleaner else None
    return summarization.prepare(source, places, output, settings, cleaner, processes)


def main(argv: Sequence[str]) -> None:
    """Runs the command."""
    prepare_command.run(
        argv,
        summarization.Settings(),
        functools.partial(prepare, use_cleaner=flags.FLAGS.clean),
    )


if __name__ == "__main__":
    prepare_command.define(summarization.Settings())
    flags.DEFINE_bool("clean", False, "Take share links, player notices and the like out.")
    app.run(main)
