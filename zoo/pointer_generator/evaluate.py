"""Evaluates summaries as the papers do, counts what they copy, and writes one report.

    python -m zoo.pointer_generator.evaluate --vocabulary=runs/decrum --corpus=cnn_dailymail \
        --summaries=runs/decrum/test.jsonl,runs/lead/test.jsonl --output=runs/report

Files are as `zoo/summaries.py` says, one or more, of the same documents. The report is a folder:
`metrics.json` (ROUGE with intervals, novel and repeated n-grams, unknown words, what was copied),
`table.md`, and `report.html` with examples side by side: for each word where the model looked, what
it had looked at before (coverage), and p_gen, in a page that needs no network.
"""

import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from absl import app, flags

from zoo import novelty, report, rouge, summaries
from zoo.pointer_generator import kept

FLAGS = flags.FLAGS

# ROUGE-1, 2 and L on the whole test sets, under the names that `generate` gives systems: lines 10
# and 11 of Table 4 of Dangovski et al. (2019), and Table 4 of Narayan et al. (2018).
PUBLISHED = {
    "cnn_dailymail": {"ptgen": (36.44, 15.66, 33.42), "ptgen-covg": (39.53, 17.28, 36.38)},
    "xsum": {
        "seq2seq": (28.42, 8.77, 22.48),
        "ptgen": (29.70, 9.21, 23.24),
        "ptgen-covg": (28.10, 8.02, 21.72),
    },
    "science_daily": {},
}


def outside_words(
    documents: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    texts: Sequence[Sequence[str]],
    vocabulary: Collection[str],
) -> dict[str, float]:
    """Counts the words outside a vocabulary, which a model can only have copied.

    Args:
        documents: The words of each document.
        references: The words of each reference.
        texts: The words of each summary.
        vocabulary: All words with ids.

    Returns:
        `words`: how many there are in a hundred summaries; `of_document`: the percentage of them
        that their document has, 100 by construction for what was copied; `found`: of the distinct
        ones that reference and document have, the percentage that the summary has too.

    Example:

    >>> outside_words([["ann", "ran"]], [["ann", "sat"]], [["ann", "ann", "ran"]], {"ran", "sat"})
    {'words': 200.0, 'of_document': 100.0, 'found': 100.0}
    """
    written = known = wanted = found = 0
    for document, reference, text in zip(documents, references, texts, strict=True):
        outside = [w for w in text if w not in vocabulary and w not in novelty.UNKNOWN]
        written += len(outside)
        known += sum(word in set(document) for word in outside)
        needed = {w for w in reference if w not in vocabulary} & set(document)
        wanted += len(needed)
        found += len(needed & set(text))
    return {
        "words": 100 * written / max(len(texts), 1),
        "of_document": 100 * known / max(written, 1),
        "found": 100 * found / max(wanted, 1),
    }


def add_copied(
    metrics: dict, examples: Sequence[summaries.Example], vocabulary: Collection[str] | None
) -> None:
    """Adds what was copied to the metrics of each system.

    Args:
        metrics: What `zoo.report.measure` returns. Each system gets `copied`, from n = 1 to 4 the
            percentage of n-grams that the document has; with a vocabulary `outside`, as
            `outside_words` gives it; with p_gen in the files, `p_gen`, its mean.
        examples: The same that were measured.
        vocabulary: The words with ids, or None.
    """

    def words(text):
        return [word.lower() for word in summaries.words(text)]

    documents = [words(example.document) for example in examples]
    references = [words(example.reference) for example in examples]
    for system, figures in metrics["systems"].items():
        figures["copied"] = {n: 100 - rate for n, rate in figures["novel"].items()}
        texts = references
        if system != "reference":
            texts = [words(example.summaries[system]) for example in examples]
        if vocabulary is not None:
            figures["outside"] = outside_words(documents, references, texts, vocabulary)
        looked = [e.attention[system] for e in examples if system in e.attention]
        chances = [chance for attention in looked for chance in attention.p_gen]
        if chances:
            figures["p_gen"] = sum(chances) / len(chances)


def copied_table(metrics: Mapping) -> str:
    """Returns what was copied as a table in Markdown."""
    head = ["system", *(f"copied {n}" for n in novelty.ORDERS)]
    head += ["outside, of 100", "of those asked for", "p_gen"]
    rows = [head]
    for system, figures in metrics["systems"].items():
        row = [system, *(f"{rate:.2f}" for rate in figures["copied"].values())]
        outside = figures.get("outside")
        row += [f"{outside[n]:.2f}" if outside else "" for n in ("words", "found")]
        rows.append([*row, f"{figures['p_gen']:.3f}" if "p_gen" in figures else ""])
    return report.markdown(rows)


def _add(path: Path, text: str) -> None:
    staged = path.with_name(f".tmp-{path.name}")
    staged.write_text(text, encoding="utf-8")
    os.replace(staged, path)


def main(_) -> None:
    """Writes the report and prints its tables."""
    start = time.monotonic()
    published = PUBLISHED[FLAGS.corpus]
    try:
        report.check_folder(FLAGS.output)
        vocabulary = None
        if FLAGS.vocabulary:
            vocabulary = set(kept.read(FLAGS.vocabulary).vocabulary.words)
        examples = summaries.read(FLAGS.summaries)
        metrics = report.measure(
            examples, FLAGS.mode, FLAGS.exceptions, FLAGS.seed, FLAGS.processes
        )
        add_copied(metrics, examples, vocabulary)
        shown = FLAGS.title, published, FLAGS.examples
        paths = report.write(FLAGS.output, examples, metrics, *shown)
        tables = report.markdown(report.rows(metrics, published)) + "\n" + copied_table(metrics)
        _add(Path(FLAGS.output, "table.md"), tables)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.pointer_generator.evaluate: {error}")
    print(tables)
    for warning in report.warnings(metrics):
        print(f"Warning: {warning}")
    print(f"{len(examples)} documents in {time.monotonic() - start:.1f} s: {paths[-1]}")


if __name__ == "__main__":
    flags.DEFINE_list("summaries", None, "Files as zoo/summaries.py says, of the same documents.")
    flags.DEFINE_string("vocabulary", None, "Run whose vocabulary says which words are outside.")
    flags.DEFINE_enum("corpus", "cnn_dailymail", sorted(PUBLISHED), "Whose published figures.")
    flags.DEFINE_string("output", "runs/report", "Folder for the report.")
    flags.DEFINE_string("title", "Summaries of pointer-generators", "Of the page.")
    flags.DEFINE_enum("mode", "rouge155", rouge.MODES, "Stemmer of ROUGE.")
    flags.DEFINE_string("exceptions", "/usr/share/wordnet", "Folder of WordNet's *.exc lists.")
    flags.DEFINE_integer("seed", 0, "Of the bootstrap.")
    flags.DEFINE_integer("examples", 20, "How many to show on the page.", lower_bound=0)
    flags.DEFINE_integer("processes", None, "As many as there are cores if not given.")
    flags.mark_flag_as_required("summaries")
    app.run(main)
