"""CNN/Daily Mail: news stories and their highlights, not anonymised (See et al. 2017).

    python -m datasets.cnn_dailymail prepare --source=cnn/stories,dailymail/stories \
        --split_ids=url_lists --output=data/cnn_dailymail

`--source` is what you have of the corpus:

    folders of *.story                        raw, or tokenized where the folder's name says so
                                              (cnn_stories_tokenized); with --split_ids, the folder
                                              of all_train.txt, all_val.txt and all_test.txt: URLs
    finished_files, finished_files/chunked    See et al.'s .bin files
    {train,val,test}.{source,target}          an article a line
    *.jsonl, *.csv, *.parquet (or one)        Hugging Face's columns article, highlights, id
    *.train.0.json                            PreSumm's lists of tokens

Nothing is downloaded and no Java is run: `tokenization` makes Penn Treebank tokens. A vocabulary
of 50,000, the four special symbols among them, is counted on whole training articles and
summaries, or read: --vocabulary=finished_files/vocab. Records hold the first 400 tokens of an
article and 100 of a summary; a summary of 100 was perhaps cut, and so ends without [STOP]. A
summary is a list of sentences in `text`; marks, <s> and <t>, are read and nowhere written.
"""

import functools
import hashlib
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from absl import app, flags

from datasets import (
    articles,
    prepare_command,
    records,
    see_chunks,
    splits,
    summarization,
    text_shards,
)
from datasets.articles import Article

# Of the training stories 114 have no text; they are dropped, which leaves 287,112 or, by See et
# al.'s own count, 287,113.
SIZES = {"train": 287_226, "validation": 13_368, "test": 11_490}

SETTINGS = summarization.Settings(
    vocabulary_size=50_000 - 4,
    document_length=400,
    summary_length=100,
    counted_length=0,
    specials="see",
)

load = records.load
load_text = text_shards.load

_COLUMNS = {
    "document": ("article", "document", "src", "text"),
    "summary": ("highlights", "abstract", "summary", "tgt", "reference_tagged", "reference"),
    "id": ("id", "doc_index"),
}


def read(
    source: pathlib.Path, ids: Sequence[str] = (), tokenized: bool = False
) -> Iterator[Article]:
    """Finds the articles of a folder or file, whatever its form (see the module's head).

    Args:
        source: the folder or file.
        ids: names of the stories to look for, in this order; none: all that are there.
        tokenized: whether the texts of tables and of lines are tokens already. (Chunks always
            are; stories are if their folder's name says so.)

    Raises:
        ValueError: if there is nothing to read.
    """
    if source.is_file() and source.suffix != ".bin":
        yield from articles.from_table(source, _COLUMNS, tokenized)
    elif source.suffix == ".bin" or next(source.glob("*.bin"), None):
        for path in [source] if source.is_file() else sorted(source.glob("*.bin")):
            yield from from_chunk(path)
    elif next(source.glob("*.story"), None):
        yield from _from_stories(source, ids)
    elif next(source.glob("*.source"), None):
        for path in sorted(source.glob("*.source")):
            yield from articles.from_pairs(path, path.with_suffix(".target"), tokenized)
    elif articles.tables(source):
        for path in articles.tables(source):
            yield from articles.from_table(path, _COLUMNS, tokenized)
    else:
        raise ValueError(
            f"{source}: expected one of the forms that python -m datasets.cnn_dailymail --help "
            "lists, found "
            f"{', '.join(sorted(path.name for path in source.iterdir())[:5]) or 'nothing'}."
        )


def _from_stories(source: pathlib.Path, ids: Sequence[str]) -> Iterator[Article]:
    tokenized = "tokenized" in source.name
    there = {path.stem for path in source.glob("*.story")}
    # The lists name the stories of both papers; those of the other one are in another folder.
    for name in (name for name in ids if name in there) if ids else sorted(there):
        path = source / f"{name}.story"
        yield Article(None, name, str(path), functools.partial(read_story, path, tokenized))


def read_story(path: pathlib.Path, tokenized: bool) -> tuple[articles.Text, articles.Text]:
    """Reads the text of a story and the highlights that follow marks of their own.

    Returns:
        Raw texts with a line a paragraph, or where `tokenized` lists of sentences.

    Raises:
        ValueError: if the file cannot be read.
    """
    article, highlights, is_highlight = [], [], False
    for line in articles.read_text(path).split("\n"):
        line = line.strip()
        if line == "@highlight":
            is_highlight = True
        elif line:
            (highlights if is_highlight else article).append(line)
    if tokenized:
        return article, highlights
    return "\n".join(article), "\n".join(highlights)


def from_chunk(path: pathlib.Path) -> Iterator[Article]:
    """Reads a `.bin` file; its articles are tokenized and lowercase already."""
    split = articles.split_of(path.stem.split("_")[0])
    named = articles.name_of(path.with_suffix(""))
    for number, record in enumerate(see_chunks.read(path)):
        read_record = (
            functools.partial(articles.fail, record.error)
            if record.error
            else functools.partial(_read_record, record.features)
        )
        where = f"{path}: byte {record.offset}"
        yield Article(split, f"{named}:{number}", where, read_record, has_id=False)


def _read_record(features: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    try:
        article, abstract = (features[name].decode() for name in ("article", "abstract"))
    except (KeyError, UnicodeDecodeError) as error:
        raise ValueError(
            f"expected UTF-8 texts article and abstract, found {', '.join(features)}: {error}"
        ) from error
    return articles.given(article, abstract, tokenized=True)


def read_urls(folder: pathlib.Path) -> dict[str, str]:
    """Reads which story is of which split from lists of URLs.

    Args:
        folder: folder of all_train.txt, all_val.txt and all_test.txt, or some of them, which may
            be packed by gzip. A story's name is the SHA-1 of its URL.

    Raises:
        ValueError: if there is no list.
    """
    found = {}
    for split, short in (("train", "train"), ("validation", "val"), ("test", "test")):
        for path in folder.glob(f"all_{short}.txt*"):
            urls = articles.read_text(path).split("\n")
            names = (hashlib.sha1(url.strip().encode()).hexdigest() for url in urls if url.strip())
            found |= dict.fromkeys(names, split)
    if not found:
        raise ValueError(f"{folder}: expected all_train.txt, all_val.txt and all_test.txt.")
    return found


def prepare(
    sources: Sequence[str],
    output: str,
    settings: summarization.Settings = SETTINGS,
    split_ids: str | None = None,
    held_out: int = 0,
    allow_partial: bool = False,
    processes: int = 2,
    tokenized: bool = False,
) -> dict:
    """Prepares the corpus; the command `prepare` with its flags as arguments.

    Raises:
        ValueError: if a source cannot be read, or a split has not its published size and neither
            `held_out` nor `allow_partial` says that this is meant.
    """
    paths = prepare_command.existing(sources)
    by_id = read_urls(pathlib.Path(split_ids)) if split_ids and not held_out else None

    def source() -> Iterator[Article]:
        ids = tuple(by_id or ())
        return itertools.chain.from_iterable(read(path, ids, tokenized) for path in paths)

    places = splits.assign(source(), by_id, held_out)
    prepare_command.check_sizes(places, SIZES, bool(held_out or allow_partial))
    settings = settings.replaced(form="tokenized" if tokenized else "")
    return summarization.prepare(source, places, output, settings, processes=processes)


def main(argv: Sequence[str]) -> None:
    """Runs the command."""
    prepare_command.run(argv, SETTINGS, functools.partial(prepare, tokenized=flags.FLAGS.tokenized))


if __name__ == "__main__":
    prepare_command.define(SETTINGS)
    flags.DEFINE_bool("tokenized", False, "Texts of tables and of lines are tokens already.")
    app.run(main)
