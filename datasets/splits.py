"""Which split an article belongs to, and whether splits have their published sizes."""

import hashlib
import json
import os
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from datasets import articles
from datasets.articles import SPLITS, Article


class Place(NamedTuple):
    """Where an article goes.

    Args:
        split: "train", "validation", "test", or None for an article that is dropped.
        id: name of the article.
        where: file or file:line of it.
        note: why it is dropped, else "".
        summary_file: the file of the summary, if that is not in the one of the document.
    """

    split: str | None
    id: str
    where: str
    note: str = ""
    summary_file: str = ""


def assign(
    found: Iterable[Article], split_ids: Mapping[str, str] | None = None, held_out: int = 0
) -> list[Place]:
    """Decides which split each article goes to.

    Args:
        found: the articles, in order; none of them is read.
        split_ids: split of each id; an article that it lacks is dropped. None: as `found` says.
        held_out: so many articles are kept from training, whatever split they are of: a first
            half for validation, a second for test, chosen by a hash of their ids.

    Returns:
        The place of each article.

    Raises:
        ValueError: if articles have no split, there are too few to hold some out, or two of
            different files, which have no ids, have one name.
    """
    places: list[Place] = []
    seen: dict[str, str] = {}
    for article in found:
        split, note = "train" if held_out else article.split, ""
        if split_ids and not held_out:
            split = split_ids.get(article.id)
            note = "" if split else "id is not in the list of splits"
        if article.id in seen:
            _check_is_the_same(article, seen[article.id])
            split, note = None, "an article with this id came before"
        elif split is None and not split_ids:
            raise ValueError(
                f"{article.where}: nothing says which split this is of. Name files after splits "
                "(train.jsonl), give --split_ids=FILE, or choose some with --held_out=NUMBER."
            )
        seen[article.id] = article.where
        places.append(Place(split, article.id, article.where, note, article.summary_file))
    if not places:
        listed = f", of the {len(split_ids):,} ids of --split_ids" if split_ids else ""
        raise ValueError(f"Expected articles in what --source names, found not one{listed}.")
    if held_out:
        _hold_out(places, held_out)
    return places


def _check_is_the_same(article: Article, where: str) -> None:
    """Refuses to drop an article whose id, made of file and line, is that of another file's."""
    if not article.has_id and article.where != where:
        raise ValueError(
            f"{article.where} and {where}: articles without ids are named after folder, file and "
            f"line, and both of these would be {article.id!r}. Rename one of the two folders."
        )


def _hold_out(places: list[Place], held_out: int) -> None:
    kept = [i for i, place in enumerate(places) if place.split]
    if not 2 <= held_out < len(kept):
        raise ValueError(
            f"--held_out must be at least 2 and below the {len(kept)} articles, got {held_out}."
        )
    # A hash of the id: the same articles are held out in whatever order they come.
    kept.sort(key=lambda i: hashlib.sha256(places[i].id.encode()).digest())
    for rank, i in enumerate(kept[:held_out]):
        split = "validation" if rank < held_out // 2 else "test"
        places[i] = places[i]._replace(split=split)


def sizes(places: Iterable[Place]) -> dict[str, int]:
    """Number of articles of each split."""
    counts = Counter(place.split for place in places)
    return {split: counts[split] for split in SPLITS}


def files_hash(places: Iterable[Place]) -> str:
    """A hash of the sizes of the files that articles stand in: all but surely another if edited."""
    paths: dict[str, None] = {}
    for place in places:
        paths[re.sub(r":( byte)? ?\d+$", "", place.where)] = None
        if place.summary_file:
            paths[place.summary_file] = None
    sizes = [os.path.getsize(path) if os.path.isfile(path) else -1 for path in paths]
    return hashlib.sha256(repr(sizes).encode()).hexdigest()


def unexpected_sizes(places: Iterable[Place], expected: Mapping[str, int]) -> str:
    """Returns a sentence about sizes that are not the published ones, or ""."""
    found = sizes(places)
    if found == dict(expected):
        return ""
    return "The published splits have " + ", ".join(
        f"{expected[split]:,} {split} (here {found[split]:,})" for split in SPLITS
    )


def read_ids(path: pathlib.Path) -> dict[str, str]:
    """Reads the split of each id from JSON `{"train": [ids], "validation": ..., "test": ...}`.

    Raises:
        ValueError: if the file has another form, or an id is in two splits.
    """
    try:
        lists = json.loads(articles.read_text(path))
        splits = {name: articles.split_of(name) for name in lists}
        pairs = [(str(i), splits[name]) for name, ids in lists.items() for i in ids]
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{path}: expected JSON with lists of ids under train, validation and test, but: "
            f"{error}"
        ) from error
    split_ids = dict(pairs)
    if None in splits.values() or len(split_ids) < len(pairs):
        raise ValueError(
            f"{path}: expected the keys train, validation and test and each id once, found the "
            f"keys {', '.join(map(str, lists))} and {len(pairs) - len(split_ids)} ids again."
        )
    return split_ids
