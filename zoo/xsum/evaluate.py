"""Evaluates summaries of XSum as the paper does, and writes one report.

    python -m zoo.xsum.evaluate --summaries=runs/xsum/test.jsonl,runs/baselines.jsonl \
        --output=runs/xsum/report --exceptions=/usr/share/wordnet

Files are as `zoo/summaries.py` says, one or more, of the same documents. The report is a folder:
`metrics.json` (ROUGE with intervals, novel n-grams, lengths), `table.md`, and `report.html` with
examples side by side.
"""

import sys
import time

from absl import app, flags

from zoo import report, rouge, summaries

FLAGS = flags.FLAGS

# Table 4 of Narayan et al. (2018), ROUGE-1, 2 and L on the 11,334 test documents, under the names
# that our recipes give their systems.
PUBLISHED = {
    "random": (15.16, 1.78, 11.27),
    "lead": (16.30, 1.60, 11.95),
    "ext-oracle": (29.79, 8.81, 22.66),
    "seq2seq": (28.42, 8.77, 22.48),
    "ptgen": (29.70, 9.21, 23.24),
    "ptgen-covg": (28.10, 8.02, 21.72),
    "convs2s": (31.27, 11.07, 25.23),
    "t-convs2s-enc_t": (31.71, 11.38, 25.56),
    "t-convs2s-enc_t-dec_td": (31.71, 11.34, 25.61),
    "t-convs2s-enc_t_td": (31.61, 11.30, 25.51),
    "t-convs2s-enc_t_td-dec_td": (31.89, 11.54, 25.75),
}


def main(_) -> None:
    """Writes the report and prints its table."""
    start = time.monotonic()
    options = FLAGS.mode, FLAGS.exceptions, FLAGS.seed, FLAGS.processes
    try:
        report.check_folder(FLAGS.output)
        examples = summaries.read(FLAGS.summaries)
        metrics = report.measure(examples, *options)
        shown = FLAGS.title, PUBLISHED, FLAGS.examples
        paths = report.write(FLAGS.output, examples, metrics, *shown)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.xsum.evaluate: {error}")
    print(report.markdown(report.rows(metrics, PUBLISHED)))
    for warning in report.warnings(metrics):
        print(f"Warning: {warning}")
    print(f"{len(examples)} documents in {time.monotonic() - start:.1f} s: {paths[-1]}")


if __name__ == "__main__":
    flags.DEFINE_list("summaries", None, "Files as zoo/summaries.py says, of the same documents.")
    flags.DEFINE_string("output", "runs/report", "Folder for the report.")
    flags.DEFINE_string("title", "Extreme summarization", "Of the page.")
    flags.DEFINE_enum("mode", "rouge155", rouge.MODES, "Stemmer of ROUGE.")
    flags.DEFINE_string("exceptions", "/usr/share/wordnet", "Folder of WordNet's *.exc lists.")
    flags.DEFINE_integer("seed", 0, "Of the bootstrap.")
    flags.DEFINE_integer("examples", 20, "How many to show on the page.", lower_bound=0)
    flags.DEFINE_integer("processes", None, "As many as there are cores if not given.")
    flags.mark_flag_as_required("summaries")
    app.run(main)
