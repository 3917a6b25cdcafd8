"""The flags and the closing words that the `prepare` commands of all corpora share."""

import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from absl import flags

from datasets import splits, summarization

FLAGS = flags.FLAGS


def define(settings: summarization.Settings) -> None:
    """Defines the flags, whose defaults are the settings of a corpus."""
    flags.DEFINE_list("source", None, "Folders or files to read, separated by commas. Required.")
    flags.DEFINE_string("output", None, "Folder to prepare the corpus in. Required.")
    flags.DEFINE_string("split_ids", None, "List of what is in which split, if not by file names.")
    flags.DEFINE_integer(
        "held_out",
        0,
        "Ignore the published splits and hold so many articles out of training, half of them for "
        "validation, half for test.",
        lower_bound=0,
    )
    flags.DEFINE_bool("allow_partial", False, "Go on where splits have not their published sizes.")
    flags.DEFINE_integer(
        "vocabulary_size",
        settings.vocabulary_size,
        "Words of the vocabulary, special symbols not counted.",
        lower_bound=1,
    )
    flags.DEFINE_string(
        "vocabulary", None, "Take this vocabulary, or these 'word count' lines, and count none."
    )
    flags.DEFINE_integer(
        "document_length", settings.document_length, "Tokens kept of a document; 0: all.", 0
    )
    flags.DEFINE_integer(
        "summary_length", settings.summary_length, "Tokens kept of a summary; 0: all.", 0
    )
    flags.DEFINE_integer(
        "examples_per_shard", settings.examples_per_shard, "Articles of an output file.", 1
    )
    flags.DEFINE_integer("processes", 2, "Processes to work with.", lower_bound=1)


def existing(sources: Sequence[str]) -> list[pathlib.Path]:
    """Returns paths.

    Raises:
        ValueError: if one is not there.
    """
    paths = [pathlib.Path(source) for source in sources]
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder.")
    return paths


def check_sizes(places: Iterable[splits.Place], expected: Mapping[str, int], partial: bool) -> None:
    """Compares the sizes of splits with the published ones.

    Raises:
        ValueError: if they differ, unless it is meant to be `partial`, which is said.
    """
    unexpected = splits.unexpected_sizes(places, expected)
    if unexpected and not partial:
        raise ValueError(f"{unexpected}. If that is meant, add --allow_partial.")
    if unexpected:
        print(f"{unexpected}: figures will not compare with published ones.")


def report(manifest: dict) -> str:
    """Says in some lines what was kept, what was dropped and why."""
    lines = []
    for split, found in manifest["splits"].items():
        means = ", ".join(f"{n:.1f} {side} tokens" for side, n in found["mean_tokens"].items())
        means = f"; mean {means}" if means else ""
        lines.append(f"{split}: kept {found['kept']:,} of {found['read']:,}{means}")
        for kind in ("dropped", "cleaned"):
            lines += [f"  {kind} {count:,}: {why}" for why, count in found[kind].items()]
    for why, count in manifest["dropped_without_split"].items():
        lines.append(f"in no split {count:,}: {why}")
    lines.append(f"vocabulary: {manifest['vocabulary']['size']:,} with special symbols")
    return "\n".join(lines)


def run(argv: Sequence[str], settings: summarization.Settings, prepare: Callable) -> None:
    """Runs `python -m datasets.CORPUS prepare` and reports.

    Args:
        argv: the command line without its flags.
        settings: the settings of the corpus, whose flagged fields are replaced.
        prepare: function of (sources, output, settings) and the keywords `split_ids`,
            `held_out`, `allow_partial` and `processes`, that returns the manifest.

    Raises:
        SystemExit: with one sentence for what the user has to mend.
    """
    if list(argv[1:]) != ["prepare"] or not FLAGS.source or not FLAGS.output:
        sys.exit(
            f"Usage: python -m datasets.{pathlib.Path(argv[0]).stem} prepare --source=PATH "
            "--output=FOLDER (--helpfull for all flags)"
        )
    names = (
        "vocabulary_size",
        "vocabulary",
        "document_length",
        "summary_length",
        "examples_per_shard",
    )
    try:
        manifest = prepare(
            FLAGS.source,
            FLAGS.output,
            settings.replaced(**{name: FLAGS[name].value for name in names}),
            split_ids=FLAGS.split_ids,
            held_out=FLAGS.held_out,
            allow_partial=FLAGS.allow_partial,
            processes=FLAGS.processes,
        )
    except OSError as error:
        sys.exit(
            f"{error.filename or FLAGS.output}: {error.strerror or error}. Expected that --source "
            "names what can be read, and --output a folder that can be written."
        )
    except ValueError as error:
        sys.exit(str(error))
    print(report(manifest))
    print(f"Left in {FLAGS.output}: manifest.json, vocabulary.txt, dropped.txt, text/, records/")
