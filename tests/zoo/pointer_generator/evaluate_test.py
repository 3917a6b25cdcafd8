"""What is counted of copying, and the report with attention, p_gen and warnings."""

import json
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest

from zoo import report, summaries
from zoo.pointer_generator import evaluate

ROOT = pathlib.Path(evaluate.__file__).parents[2]


def row(number, summary, **more):
    return {
        "id": str(number),
        "document": ["Ann met Bo in Uxbridge .", "it rained ."],
        "reference": "Ann was in Uxbridge .",
        "summaries": {"ptgen": summary},
        **more,
    }


class OutsideWordsTest(absltest.TestCase):
    def test_words_outside_the_vocabulary_are_those_that_were_copied(self):
        documents = [["ann", "met", "bo"], ["it", "rained"]]
        references = [["ann", "saw", "bo"], ["rain", "uxbridge"]]
        texts = [["ann", "met", "ann", "[unk]"], ["uxbridge", "it"]]
        found = evaluate.outside_words(documents, references, texts, {"met", "saw", "it", "rain"})
        # ann twice and uxbridge, in two summaries; the document has not uxbridge.
        self.assertEqual(found["words"], 150)
        self.assertAlmostEqual(found["of_document"], 200 / 3)
        # ann and bo could have been copied, and ann was; uxbridge could not.
        self.assertEqual(found["found"], 50)

    def test_no_summaries_and_no_such_words_give_zeros(self):
        zeros = {"words": 0, "of_document": 0, "found": 0}
        self.assertEqual(evaluate.outside_words([], [], [], {"a"}), zeros)
        self.assertEqual(evaluate.outside_words([["a"]], [["a"]], [["a"]], {"a"}), zeros)


class MetricsTest(absltest.TestCase):
    def metrics(self, rows, vocabulary):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.jsonl")
            summaries.write(path, rows)
            examples = summaries.read([path])
        metrics = report.measure(examples, "plain", processes=1)
        evaluate.add_copied(metrics, examples, vocabulary)
        return metrics

    def test_copied_ngrams_are_those_that_are_not_novel_in_any_case(self):
        metrics = self.metrics([row(1, "ann met Ann"), row(2, "it rained .")], {"met", "it", "."})
        ours = metrics["systems"]["ptgen"]
        self.assertEqual(ours["copied"], {1: 100, 2: 75, 3: 50, 4: 100})
        self.assertEqual(ours["outside"]["words"], 150)
        self.assertEqual(metrics["systems"]["reference"]["outside"]["found"], 100)
        self.assertEqual(ours["outside"]["found"], 100 / 6)

    def test_p_gen_is_the_mean_over_words(self):
        seen = {"attention": [[1, 0]] * 2, "target": ["ann", "</s>"], "p_gen": [0.25, 0.75]}
        metrics = self.metrics([row(1, "ann", source=["ann", "met"], **seen)], None)
        self.assertEqual(metrics["systems"]["ptgen"]["p_gen"], 0.5)
        self.assertNotIn("outside", metrics["systems"]["ptgen"])
        self.assertIn("| 0.500 |", evaluate.copied_table(metrics))


class EvaluateTest(absltest.TestCase):
    def test_the_command_leaves_tables_and_a_page_and_warns_of_repetition(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        seen = {"attention": [[1.0, 0.0]] * 3, "source": ["ann", "met"], "p_gen": [0.2, 0.6, 0.9]}
        rows = [row(i, "it rained", **seen) for i in range(3)]
        summaries.write(folder / "rows.jsonl", rows)
        done = subprocess.run(
            [sys.executable, "-m", "zoo.pointer_generator.evaluate", "--mode=plain"]
            + [f"--summaries={folder / 'rows.jsonl'}", f"--output={folder}", "--processes=1"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: ptgen: only 33.3 % of the summaries are distinct", done.stdout)
        self.assertIn("36.44/15.66/33.42", done.stdout)
        table = (folder / "table.md").read_text()
        self.assertIn("| system | copied 1 |", table)
        metrics = json.loads((folder / "metrics.json").read_text())
        self.assertEqual(metrics["systems"]["ptgen"]["copied"]["1"], 100)
        page = (folder / "report.html").read_text()
        self.assertIn('"p_gen": [0.2, 0.6, 0.9]', page)
        self.assertNotIn("http", page)
        done = subprocess.run(
            [sys.executable, "-m", "zoo.pointer_generator.evaluate", "--mode=plain"]
            + [f"--summaries={folder / 'rows.jsonl'}", f"--output={folder / 'rows.jsonl'}/report"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("rows.jsonl/report: expected a folder", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    absltest.main()
