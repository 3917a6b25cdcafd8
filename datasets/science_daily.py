"""Science Daily: stories on research, their summaries and titles (RUM, section 4.5).

    python -m datasets.science_daily prepare --task=s2s --source=pages --output=data/science_daily

`--source` is what you have of the corpus; its terms forbid to hand it on, so nothing is
downloaded and no data comes with this code:

    folders of *.html                saved pages (`pip install beautifulsoup4`)
    *.jsonl, *.csv, *.parquet        columns story, summary, title, url
    finished_files/*.bin             what the authors' script makes; holds one task
    a folder with stories/ and abstracts/ or titles/    files of the same names

`--split_ids` names a folder of all_train.txt, all_val.txt and all_test.txt, which list file names,
one a line (the authors' own lists are not published), or choose with --held_out. The tasks:

    s2s       story to summary
    sh2s      the same with the paragraphs of each story in random order, by --shuffle_seed
    s2t       story to title
    oods2s    test on stories out of the domain of training: all articles become the test split of
              s2s, in the --vocabulary of the corpus that a model was trained on
    paper     from JSON lines: full text of a paper, of which 1,000 words are read, to its
              highlight, of at most 100

No Science Daily text was at hand when this was written: it is tested on pages of our own making.
"""

import functools
import hashlib
import itertools
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
from absl import app, flags

from datasets import (
    articles,
    cnn_dailymail,
    prepare_command,
    records,
    splits,
    summarization,
    text_shards,
)
from datasets.articles import Article

SETTINGS = cnn_dailymail.SETTINGS
TASKS = ("s2s", "sh2s", "s2t", "oods2s", "paper")

load = records.load
load_text = text_shards.load

_STORY = ("story", "text", "article", "document")
_COLUMNS = {
    "s2s": {"document": _STORY, "summary": ("summary", "abstract"), "id": ("id", "url")},
    "s2t": {"document": _STORY, "summary": ("title", "headline"), "id": ("id", "url")},
    "paper": {
        "document": ("paper", "full_text", "story_paragraphs", *_STORY),
        "summary": ("highlight", "highlights", "lay_summary", "summary"),
        "id": ("id", "doi", "url"),
    },
}


def parse_page(html: str) -> dict[str, str]:
    """Finds the title, the summary and the story of a saved page.

    Args:
        html: the page.

    Returns:
        "title", "summary" and "story", whose paragraphs are lines.

    Raises:
        ValueError: if the page has not all three, as pages of other sites, or bs4 is missing.
    """
    try:
        import bs4
    except ImportError as error:
        raise ValueError("reading pages takes pip install beautifulsoup4") from error
    page = bs4.BeautifulSoup(html, "html.parser")
    for part in page(["script", "style", "figure", "figcaption"]):
        part.decompose()
    found = {}
    for name, selectors in (
        ("title", ("#headline", "h1.headline")),
        ("summary", ("#abstract", "dd.abstract")),
    ):
        part = next(filter(None, map(page.select_one, selectors)), None)
        found[name] = _flat(part) if part else ""
    first = page.select_one("p#first.lead") or page.select_one("p#first")
    paragraphs = [first] if first else []
    paragraphs += [p for p in page.select("#text p") if p is not first]
    found["story"] = "\n".join(filter(None, map(_flat, paragraphs)))
    missing = [f"{name} ({mark})" for name, mark in _MARKS.items() if not found[name]]
    if missing:
        raise ValueError(f"expected a Science Daily page, found no {', '.join(missing)}")
    return found


_MARKS = {"title": "id=headline", "summary": "id=abstract", "story": "p in id=text"}


def _flat(part) -> str:
    return " ".join(part.get_text(" ").split())


def shuffled(story: articles.Text, name: str, seed: int) -> articles.Text:
    r"""Returns the paragraphs of a story in random order.

    Args:
        story: raw text with a line a paragraph, or a list of sentences.
        name: id of the story; the order hangs on it and the seed alone, not on other stories.
        seed: seed of all orders.

    Example:

    >>> sorted(shuffled("a\nb\nc", "1", seed=0).split("\n"))
    ['a', 'b', 'c']
    """
    lines = story.split("\n") if isinstance(story, str) else story
    digest = hashlib.sha256(f"{seed}\t{name}".encode()).digest()
    order = np.random.default_rng(list(digest)).permutation(len(lines))
    lines = [lines[i] for i in order]
    return "\n".join(lines) if isinstance(story, str) else lines


def read(source: pathlib.Path, task: str) -> Iterator[Article]:
    """Finds the stories of a folder or file, for "s2s", "s2t" or "paper".

    Raises:
        ValueError: if there is nothing to read.
    """
    short = "title" if task == "s2t" else "summary"
    pages = sorted(itertools.chain(*map(source.glob, ("*.html", "*.htm", "*.html.gz"))))
    names = ("titles",) if task == "s2t" else ("abstracts", "summaries")
    folders = [source / name for name in names if (source / name).is_dir()]
    if pages:
        for path in pages:
            yield Article(None, path.name, str(path), functools.partial(_read_page, path, short))
    elif (source / "stories").is_dir() and folders:
        for path in sorted((source / "stories").iterdir()):
            summary = folders[0] / path.name
            pair = functools.partial(_read_pair, path, summary)
            yield Article(None, path.name, str(path), pair, summary_file=str(summary))
    elif source.suffix == ".bin" or next(source.glob("*.bin"), None):
        yield from cnn_dailymail.read(source)
    elif articles.tables(source):
        for path in articles.tables(source):
            yield from articles.from_table(path, _COLUMNS[task])
    else:
        raise ValueError(
            f"{source}: expected one of the forms that python -m datasets.science_daily --help "
            "lists."
        )


def _read_page(path: pathlib.Path, short: str) -> tuple[str, str]:
    page = parse_page(articles.read_text(path))
    return page["story"], page[short]


def _read_pair(story: pathlib.Path, short: pathlib.Path) -> tuple[str, str]:
    return articles.read_text(story), articles.read_text(short)


def _shuffled(article: Article, seed: int) -> Article:
    return article._replace(read=functools.partial(_read_shuffled, article, seed))


def _read_shuffled(article: Article, seed: int) -> tuple[articles.Text, articles.Text]:
    story, short = article.read()
    return shuffled(story, article.id, seed), short


def read_names(folder: pathlib.Path) -> dict[str, str]:
    """Reads which file is of which split from all_train.txt, all_val.txt and all_test.txt.

    They have a name a line, blanks in it or not.

    Raises:
        ValueError: if there is no such list.
    """
    found = {}
    for split, short in (("train", "train"), ("validation", "val"), ("test", "test")):
        if (path := folder / f"all_{short}.txt").is_file():
            names = (line.strip() for line in articles.read_text(path).split("\n"))
            found |= dict.fromkeys(filter(None, names), split)
    if not found:
        raise ValueError(f"{folder}: expected all_train.txt, all_val.txt and all_test.txt.")
    return found


def prepare(
    sources: Sequence[str],
    output: str,
    settings: summarization.Settings = SETTINGS,
    task: str = "s2s",
    shuffle_seed: int = 0,
    split_ids: str | None = None,
    held_out: int = 0,
    allow_partial: bool = False,
    processes: int = 2,
) -> dict:
    """Prepares a task of the corpus; the command `prepare` with its flags as arguments.

    There are no published sizes of splits, so `allow_partial` changes nothing.

    Raises:
        ValueError: if a source cannot be read, or "oods2s" has no vocabulary.
    """
    del allow_partial
    paths = prepare_command.existing(sources)
    if task == "oods2s" and not settings.vocabulary:
        raise ValueError(
            "oods2s tests a model of another corpus: give --vocabulary=FOLDER/vocabulary.txt of "
            "the corpus that it was trained on."
        )
    by_name = read_names(pathlib.Path(split_ids)) if split_ids and not held_out else None

    def source() -> Iterator[Article]:
        kind = "s2s" if task in ("sh2s", "oods2s") else task
        for article in itertools.chain.from_iterable(read(path, kind) for path in paths):
            if task == "oods2s":
                article = article._replace(split="test")
            yield _shuffled(article, shuffle_seed) if task == "sh2s" else article

    places = splits.assign(source(), by_name, held_out)
    form = f"{task}, seed {shuffle_seed}" if task == "sh2s" else task
    settings = settings.replaced(form=form)
    return summarization.prepare(source, places, output, settings, processes=processes)


def main(argv: Sequence[str]) -> None:
    """Runs the command."""
    FLAGS = flags.FLAGS
    settings = SETTINGS
    if FLAGS.task == "paper" and not FLAGS["document_length"].present:
        FLAGS.document_length = 1000
    options = {"task": FLAGS.task, "shuffle_seed": FLAGS.shuffle_seed}
    prepare_command.run(argv, settings, functools.partial(prepare, **options))


if __name__ == "__main__":
    prepare_command.define(SETTINGS)
    flags.DEFINE_enum("task", "s2s", TASKS, "Which pairs to make.")
    flags.DEFINE_integer("shuffle_seed", 0, "Seed of the order of paragraphs of sh2s.")
    app.run(main)
