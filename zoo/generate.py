"""Writes the summaries of a split: what the `generate` commands of recipes share.

Lines are as `zoo/summaries.py` says. A command that was stopped goes on where it was when it is
given again.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from datasets import parallel, summarization, text_shards
from zoo import summaries

FLAGS = flags.FLAGS
flags.disclaim_key_flags()  # Those of `define_flags` are the command's own.

# Flags of the beam search.
SEARCH = ("beam", "max_length", "min_length", "length_penalty", "blocked_ngram")


def define_flags() -> None:
    """Defines the flags that all commands have; beam and lengths are left to the recipe."""
    flags.DEFINE_string("workdir", None, "The run, or folder of weights, to summarize with.")
    flags.DEFINE_string("data", None, "Folder that a corpus of articles was prepared in.")
    flags.DEFINE_enum("split", "test", text_shards.SPLITS, "Which part of it.")
    flags.DEFINE_string("output", None, "The file to write.")
    flags.DEFINE_string("system", None, "Name of the system; by default that of its model.")
    flags.DEFINE_integer("documents", 0, "How many documents; 0: all.", lower_bound=0)
    flags.DEFINE_integer("batch_size", 8, "Documents at a time.", lower_bound=1)
    flags.DEFINE_float("length_penalty", 1.0, "0 sums log-probabilities, 1 means them.", 0.0)
    flags.DEFINE_integer("blocked_ngram", 0, "No so many words twice in a summary; 0: may.", 0)
    flags.DEFINE_integer("attention", 0, "Give the attention of so many documents.", 0)
    flags.mark_flags_as_required(["workdir", "data", "output"])


@contextlib.contextmanager
def unfinished(output: pathlib.Path, described: Mapping) -> Iterator[tuple[pathlib.Path, int]]:
    """Holds the file that a command has begun to write, cut after its last whole line.

    Args:
        output: What it becomes.
        described: All that decides its lines.

    Yields:
        The file, made if absent, and the number of its lines.

    Raises:
        BlockingIOError: If another process holds it.
    """
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    path = output.with_name(f".{output.name}.{digest[:12]}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"Another process is writing {output}: let it end, or give another --output."
            ) from error
        file.seek(0)
        size = count = 0
        for line in file:
            if line.endswith(b"\n"):
                size, count = size + len(line), count + 1
        file.truncate(size)
        yield path, count


def append(
    path: pathlib.Path,
    make_rows: Callable[[Sequence[Mapping], int], Iterable[Mapping]],
    examples: Iterable[Mapping],
    batch_size: int = 8,
    with_attention: int = 0,
) -> Iterator[int]:
    """Adds the summaries of examples to a file; one that fails before the first leaves no file.

    Args:
        path: The file.
        make_rows: Makes its rows of examples; takes too how many of the first get attention.
        examples: Rows of `datasets.text_shards`.
        batch_size: How many at a time.
        with_attention: How many of the first rows get attention.

    Yields:
        After each batch, how many lines were added.
    """
    examples = iter(examples)
    try:
        with path.open("a", encoding="utf-8") as file:
            while batch := list(itertools.islice(examples, batch_size)):
                file.writelines(map(summaries.line_of, make_rows(batch, with_attention)))
                file.flush()
                with_attention -= len(batch)
                yield len(batch)
    except BaseException:
        if not path.stat().st_size:
            path.unlink()
        raise


def write(make_generator: Callable[[], Any], shown: Sequence[str], command: str) -> None:
    """Writes the file that the flags name.

    Args:
        make_generator: Returns what summarizes: it has the name of the `system`, and `rows`, which
            makes rows of `zoo.summaries` as `append` asks.
        shown: Flags that decide the lines, beside the model, the corpus and `SEARCH`.
        command: The module, for messages.

    Raises:
        SystemExit: With a sentence, if run or corpus lack something.
    """
    start = time.monotonic()
    output = pathlib.Path(FLAGS.output)
    try:
        summaries.check_output(output)
        generator, described = make_generator(), _described(shown)
        total = described["documents"]
        with unfinished(output, described) as (path, done):
            examples = itertools.islice(text_shards.load(FLAGS.data, FLAGS.split), done, total)
            progress = parallel.Progress("summaries", total, "documents")
            progress.add(done, skipped=True)
            attention = FLAGS.attention - done
            for count in append(path, generator.rows, examples, FLAGS.batch_size, attention):
                progress.add(count)
            progress.close()
            os.replace(path, output)
    except (OSError, ValueError) as error:
        sys.exit(f"{command}: {error}")
    print(f"{output}: {total} documents in {time.monotonic() - start:.1f} s, {generator.system}")


def _described(shown: Sequence[str]) -> dict:
    """All that decides the lines of the file."""
    manifest = text_shards.read_json(
        pathlib.Path(FLAGS.data, "manifest.json"), "the command that prepares the corpus"
    )
    total = manifest["splits"][FLAGS.split]["kept"]
    return {
        "model": summarization.sha256(pathlib.Path(FLAGS.workdir, "best.keras")),
        "texts": {n: s for n, s in manifest["splits"][FLAGS.split]["files"].items() if "text" in n},
        "split": FLAGS.split,
        "documents": min(FLAGS.documents or total, total),
        **{name: FLAGS[name].value for name in (*SEARCH, *shown)},
    }
