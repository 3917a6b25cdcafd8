"""Prepare a corpus of articles and summaries: text, vocabulary, TFRecords and a manifest.

    OUTPUT/manifest.json   settings; per split what was kept, what was dropped and why; hashes
    OUTPUT/vocabulary.txt  a word a line; the line's number from 0 is its id
    OUTPUT/dropped.txt     file:line and reason of each article that was dropped
    OUTPUT/text/           whole articles, as sentences of tokens (see `text_shards`)
    OUTPUT/records/        what models read (see `records`)

All work goes by shards. A shard is written under a temporary name and renamed, so a run that was
stopped goes on where it was when the same command is given again.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from datasets import parallel, records, splits, text_shards, vocabulary
from datasets.articles import SPLITS, Article
from datasets.text_shards import write_json

CONVENTIONS = {"xsum": vocabulary.XSUM, "see": vocabulary.SEE}
# How to say that a setting is another one, if not by its values.
_CHANGED = {
    "articles_sha256": "list of articles (--source, --split_ids or --held_out)",
    "files_sha256": "text (files that --source names have other sizes now)",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What decides the bytes of a prepared corpus, beside its articles.

    Args:
        vocabulary_size: number of words, special symbols not counted.
        document_length: tokens kept of a document; 0 keeps all.
        summary_length: tokens kept of a summary; 0 keeps all.
        counted_length: tokens of a training document that count for the vocabulary; 0 counts all.
        specials: convention of special symbols, "xsum" or "see".
        vocabulary: file to read in place of counting words: one written by `Vocabulary.write`, or
            lines of 'word count'.
        examples_per_shard: articles of a file.
        form: what a corpus makes of its articles, where there is a choice.
    """

    vocabulary_size: int = 50_000
    document_length: int = 400
    summary_length: int = 90
    counted_length: int = 400
    specials: str = "xsum"
    vocabulary: str | None = None
    examples_per_shard: int = 2_000
    form: str = ""

    def replaced(self, **fields) -> "Settings":
        """Returns settings of which some fields are others."""
        return dataclasses.replace(self, **fields)


def prepare(
    source: Callable[[], Iterator[Article]],
    places: list[splits.Place],
    output: str | os.PathLike,
    settings: Settings,
    clean: text_shards.Cleaner | None = None,
    processes: int = 2,
) -> dict:
    """Reads, cleans, tokenizes and encodes a corpus.

    Args:
        source: called to run through the articles, in the same order each time.
        places: the answer of `splits.assign` on them.
        output: folder to make or to go on with.
        settings: what decides the result.
        clean: function of a module, applied to raw text, or None.
        processes: how many processes to work with.

    Returns:
        The manifest.

    Raises:
        ValueError: if `output` was begun with other settings or articles, or there is nothing to
            train a vocabulary on.
    """
    output = pathlib.Path(output)
    given = _given_vocabulary(settings)  # Before the long work, not after.
    for folder in ("text", "records", ".done"):
        (output / folder).mkdir(parents=True, exist_ok=True)
    described = {**dataclasses.asdict(settings), "clean": clean and clean.__name__}
    described["articles_sha256"] = _listing(places)
    _check_same(output / ".done" / "settings.json", described)
    # Beside the settings, for a manifest does not depend on where articles stand.
    _check_same(output / ".done" / "files.json", {"files_sha256": splits.files_hash(places)})

    shards = text_shards.write(
        source(), places, output, settings.examples_per_shard, clean, processes
    )
    dropped = [(place.where, place.note) for place in places if not place.split]
    dropped += [pair for shard in shards for pair in shard["dropped"]]
    lines = "".join(f"{where}: {reason}\n" for where, reason in dropped)
    (output / "dropped.txt").write_text(lines)
    _check_kept(output, shards)
    size = _write_vocabulary(output, given, settings, processes)
    write_records(output, settings, processes)
    manifest = {"settings": described, "vocabulary": {"size": size}}
    if (output / "manifest.json").exists():
        # Records may hold topics by now.
        before = json.loads((output / "manifest.json").read_text())
        manifest |= {name: before[name] for name in ("topics",) if name in before}
    manifest["dropped_without_split"] = Counter(p.note for p in places if p.split is None)
    manifest["splits"] = {split: _described(output, split, shards) for split in SPLITS}
    manifest["vocabulary"]["sha256"] = sha256(output / "vocabulary.txt")
    write_json(output / "manifest.json", manifest)
    return manifest


def _listing(places: list[splits.Place]) -> str:
    """A hash of which articles there are and where they go."""
    listing = hashlib.sha256()
    for place in places:
        listing.update(f"{place.id}\t{place.split}\n".encode("utf-8", "replace"))
    return listing.hexdigest()


def _check_same(path: pathlib.Path, described: dict) -> None:
    if path.exists():
        before = json.loads(path.read_text())
        changed = [name for name in described if before.get(name) != described[name]]
        if changed:
            raise ValueError(
                f"{path.parent.parent} was begun with another "
                + ", ".join(
                    _CHANGED.get(name, f"{name} ({before.get(name)}, now {described[name]})")
                    for name in changed
                )
                + ". Choose another --output, or remove that folder."
            )
    write_json(path, described)


def _check_kept(output: pathlib.Path, shards: list[dict]) -> None:
    """Refuses a corpus all of whose training articles were dropped: wrong columns, say."""
    train = [shard for shard in shards if shard["name"].startswith("train-")]
    if train and not any(shard["kept"] for shard in train):
        where, reason = train[0]["dropped"][0]
        raise ValueError(
            f"Not one training article could be used. {where}: {reason}. All are in "
            f"{output / 'dropped.txt'}. Mend them, and remove {output} or choose another --output."
        )


def _given_vocabulary(settings: Settings) -> vocabulary.Vocabulary | None:
    if not settings.vocabulary:
        return None
    specials = CONVENTIONS[settings.specials]
    try:
        return vocabulary.read_any(settings.vocabulary, settings.vocabulary_size, specials)
    except OSError as error:
        raise ValueError(f"--vocabulary={settings.vocabulary}: {error.strerror}.") from error


def _write_vocabulary(
    output: pathlib.Path,
    given: vocabulary.Vocabulary | None,
    settings: Settings,
    processes: int,
) -> int:
    path = output / "vocabulary.txt"
    if path.exists():
        return len(vocabulary.read(path))
    specials, made = CONVENTIONS[settings.specials], given
    if made is None:
        tasks = [(file, settings.counted_length) for file in text_shards.files(output, "train")]
        if not tasks:
            raise ValueError(
                "There are no training articles to make a vocabulary of: give --vocabulary=FILE."
            )
        counted = list(parallel.ordered(_count, tasks, processes))
        # All documents before all summaries decides between words that are as frequent.
        counters = (counter for side in zip(*counted, strict=True) for counter in side)
        made = vocabulary.build(counters, settings.vocabulary_size, specials)
    made.write(path)
    return len(made)


def _count(task) -> tuple[Counter, Counter]:
    path, length = task
    document, summary = Counter(), Counter()
    for row in text_shards.read(path):
        document.update(text_shards.words(row["document"], length))
        summary.update(text_shards.words(row["summary"]))
    return document, summary


def write_records(
    output: pathlib.Path,
    settings: Settings,
    processes: int,
    topics: Mapping[str, list[np.ndarray]] | None = None,
) -> None:
    """Writes records/ from text/; files that are there stay, unless topics are put in.

    Args:
        output: folder of the corpus, with its vocabulary.
        settings: the settings of the corpus.
        processes: how many processes to work with.
        topics: p(topic | document) of each split, a matrix (articles, topics) a text file.
    """
    tasks = []
    for split in SPLITS:
        paths = text_shards.files(output, split)
        parts = topics[split] if topics else [None] * len(paths)
        for path, part in zip(paths, parts, strict=True):
            target = output / "records" / path.name.replace(".jsonl.gz", ".tfrecord")
            tasks.append((path, target, settings, part))
    progress = parallel.Progress("records", len(tasks), "files")
    for fresh in parallel.ordered(_encode_shard, tasks, processes):
        progress.add(1, skipped=not fresh)
    progress.close()


def add_topics(
    output: pathlib.Path, topics: Mapping[str, list[np.ndarray]], processes: int
) -> None:
    """Writes the records of a prepared corpus anew, with topics, and mends its manifest.

    Args:
        output: folder of the corpus.
        topics: p(topic | document) of each split, a matrix (articles, topics) a text file.
        processes: how many processes to work with.
    """
    manifest = json.loads((output / "manifest.json").read_text())
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings(**{name: manifest["settings"][name] for name in names})
    write_records(output, settings, processes, topics)
    for split in manifest["splits"].values():
        split["files"] = {name: sha256(output / name) for name in split["files"]}
    manifest["topics"] = next(part.shape[1] for parts in topics.values() for part in parts)
    write_json(output / "manifest.json", manifest)


def _encode_shard(task) -> bool:
    path, target, settings, topics = task
    if target.exists() and topics is None:
        return False
    words = vocabulary.read(path.parent.parent / "vocabulary.txt")

    def examples():
        for place, row in enumerate(text_shards.read(path)):
            yield records.encode(
                row["id"],
                text_shards.words(row["document"], settings.document_length),
                text_shards.words(row["summary"], settings.summary_length),
                words,
                None if topics is None else topics[place],
            )

    records.write(target, examples())
    return True


def _described(output: pathlib.Path, split: str, shards: list[dict]) -> dict:
    shards = [shard for shard in shards if shard["name"].startswith(f"{split}-")]
    kept = sum(shard["kept"] for shard in shards)
    reasons = Counter(reason for shard in shards for _, reason in shard["dropped"])
    cleaned, tokens = Counter(), Counter()
    for shard in shards:
        cleaned.update(shard["cleaned"])
        tokens.update(shard["tokens"])
    described = {"read": sum(shard["read"] for shard in shards), "kept": kept}
    described |= {"dropped": reasons, "cleaned": cleaned}
    described["mean_tokens"] = {side: round(n / kept, 2) for side, n in tokens.items() if kept}
    described["source_sha256"] = hashlib.sha256(
        "".join(shard["source_sha256"] for shard in shards).encode()
    ).hexdigest()
    described["files"] = {
        f"{folder}/{shard['name']}{suffix}": sha256(output / folder / f"{shard['name']}{suffix}")
        for folder, suffix in (("text", ".jsonl.gz"), ("records", ".tfrecord"))
        for shard in shards
    }
    return described


def sha256(path: pathlib.Path) -> str:
    """Hash of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
