"""Tests of the report on summaries, up to its page in Chromium."""

import base64
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized

from tests import browser
from zoo import report, rouge, summaries

ROOT = pathlib.Path(__file__).parents[3]
EVIL = "</script><script>document.title = 'broken'</script> {{table}} & <b>"
HOPS, TARGETS, SOURCES = 2, 3, 5


def example(number, **changes):
    weights = np.zeros((HOPS, TARGETS, SOURCES))
    # Hop and target words look at one source word each: hop 1 at 0, 1, 2, hop 2 at 4, 3, 2.
    for target in range(TARGETS):
        weights[0, target, target] = 1
        weights[1, target, SOURCES - 1 - target] = 1
    fields = {
        "id": str(number),
        "document": ["the cats sat", f"on {EVIL} mats"],
        "reference": "cats on mats",
        "summaries": {"lead": "the cats sat", "convs2s": "a cat sits"},
        "attention": {
            "convs2s": summaries.Attention(
                weights.tolist(), ["the", "cats", "sat", "on", "</script>"], ["a", "cat", "sits"]
            )
        },
        "topics": [(0.75, ["cat", "dog"])],
    }
    return summaries.Example(**{**fields, **changes})


class MeasureTest(parameterized.TestCase):
    def test_figures_are_those_of_rouge_and_novelty(self):
        metrics = report.measure([example(1), example(2)], "plain")
        self.assertEqual(metrics["documents"], 2)
        self.assertEqual(list(metrics["systems"]), ["reference", "lead", "convs2s"])
        lead = metrics["systems"]["lead"]
        self.assertAlmostEqual(lead["rouge"]["rouge1"]["f"], 100 / 3)
        self.assertEqual(lead["novel"][1], 0)
        self.assertAlmostEqual(metrics["systems"]["convs2s"]["novel"][1], 100)
        self.assertNotIn("rouge", metrics["systems"]["reference"])

    def test_sentence_tags_are_no_words_and_split_sentences(self):
        tagged = example(
            1, reference="<t> a b </t> <t> c d </t>", summaries={"m": "<t> c d </t> <t> a b </t>"}
        )
        scores = report.measure([tagged], "plain")["systems"]["m"]["rouge"]
        self.assertAlmostEqual(scores["rougeLsum"]["f"], 100)
        self.assertAlmostEqual(scores["rougeL"]["f"], 50)

    def test_the_same_summary_for_all_documents_is_warned_of(self):
        metrics = report.measure([example(number) for number in range(4)], "plain")
        self.assertIn(
            "lead: only 25.0 % of the summaries are distinct", report.warnings(metrics)[1]
        )

    def test_unknown_and_repeated_words_are_warned_of(self):
        texts = {"m": "<unk> and on and on and on"}
        metrics = report.measure([example(1, summaries=texts, reference="a b")], "plain")
        unknown, repeated = report.warnings(metrics)
        self.assertEqual(unknown, "m: 14.3 % of the words are unknown words.")
        self.assertEqual(repeated, "m: 50.0 % of the bigrams are repetitions.")

    def test_the_table_has_the_published_scores_of_systems_with_their_names(self):
        metrics = report.measure([example(1)], "plain")
        head, _, lead, convs2s = report.rows(metrics, {"lead": (16.3, 1.6, 11.95)})
        place = head.index("published")
        self.assertEqual((lead[place], convs2s[place]), ("16.30/1.60/11.95", ""))
        self.assertEqual(lead[head.index("R1")], "33.33")
        self.assertEqual({len(row) for row in (head, lead, convs2s)}, {len(head)})

    def test_no_examples_are_refused(self):
        with self.assertRaisesRegex(ValueError, "no examples"):
            report.measure([])


class PageTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # Two systems' hops would stand under each other; one example has none.
        examples = [example(1), example(2), example(3, attention={}, topics=[])]
        metrics = report.measure(examples, "plain")
        self.examples, self.metrics = examples, metrics
        report.write(self.folder, examples, metrics, "A <report>", {})

    def shown(self, link=""):
        return browser.page(f"file://{self.folder}/report.html{link}")

    def heat(self, dom, number):
        """Returns text and strength of the source words of an example."""
        article = dom[dom.index(f'id="example-{number}"') :]
        source = re.search(r'<p class="source document">(.*?)</p>', article, re.DOTALL)[1]
        words = re.findall(r"<span [^>]*background: rgba?\(([^)]*)\)[^>]*>(.*?)</span>", source)
        return {
            html.unescape(word): float(colour.split(",")[3]) if colour.count(",") == 3 else 1.0
            for colour, word in words
        }

    def test_needs_no_network(self):
        page = (self.folder / "report.html").read_text()
        self.assertNotRegex(page, r"""(?i)(src|href)\s*=|url\(|import\s|https?:|fetch\(""")

    def test_texts_stand_side_by_side_and_stay_texts(self):
        page = self.shown()
        self.assertIn("<title>A &lt;report&gt;</title>", page)
        self.assertIn(html.escape(f"on {EVIL} mats", quote=False), page)
        for text in ("cats on mats", "the cats sat", "a cat sits"):
            self.assertEqual(page.count(f'<p class="summary">{text}</p>'), 3)
        self.assertEqual(page.count("</table>"), 1)
        self.assertRegex(page, r'<meter value="0\.7500"></meter> 0\.750 cat dog')

    def test_attention_is_shown_as_the_mean_of_the_hops_first(self):
        heat = self.heat(self.shown(), 1)
        self.assertEqual(heat, {"the": 1.0, "cats": 0.0, "sat": 0.0, "on": 0.0, "</script>": 1.0})

    @parameterized.parameters(
        ("#2,1,2", {"the": 0.0, "cats": 1.0, "sat": 0.0, "on": 0.0, "</script>": 0.0}),
        ("#2,2,2", {"the": 0.0, "cats": 0.0, "sat": 0.0, "on": 1.0, "</script>": 0.0}),
        ("#2,0,3", {"the": 0.0, "cats": 0.0, "sat": 1.0, "on": 0.0, "</script>": 0.0}),
    )
    def test_a_link_opens_a_hop_and_a_word_of_an_example(self, link, expected):
        dom = self.shown(link)
        self.assertEqual(self.heat(dom, 2), expected)
        self.assertNotEqual(self.heat(dom, 1), expected)

    def test_coverage_sums_what_was_looked_at_up_to_the_word(self):
        # The page's own controls, pressed by a script that is added to it.
        page = (self.folder / "report.html").read_text()
        press = (
            "const box = document.querySelector('#example-1 .attention');"
            "box.querySelector('select').value = '0';"
            "box.querySelector('select').onchange();"
            "box.querySelectorAll('button')[1].click();"
            "box.querySelector('input').click();"
        )
        (self.folder / "report.html").write_text(page + f"<script>{press}</script>")
        heat = self.heat(self.shown(), 1)
        self.assertEqual(heat, {"the": 1.0, "cats": 1.0, "sat": 0.0, "on": 0.0, "</script>": 0.0})

    def test_only_as_many_examples_are_shown_as_asked_for(self):
        report.write(self.folder, self.examples, self.metrics, "A", {}, shown=1)
        page = (self.folder / "report.html").read_text()
        self.assertEqual(page.count("<article"), 1)
        self.assertIn("over 3 documents, of which 1 are shown", page)

    def test_weights_survive_their_packing(self):
        weights = np.random.default_rng(1).dirichlet([0.1] * 400, (3, 4))
        packed = report._packed(summaries.Attention(weights.tolist(), ["w"] * 400, ["v"] * 4))
        levels = np.frombuffer(base64.b64decode(packed["bytes"]), np.uint8)
        largest = np.reshape(packed["largest"], (3, 4, 1))
        unpacked = largest * levels.reshape(packed["shape"]) / 255
        np.testing.assert_allclose(unpacked, weights, atol=weights.max() / 500)


class CommandTest(parameterized.TestCase):
    def test_files_of_two_systems_make_one_report(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for system, text in (("lead", "the cats"), ("t-convs2s-enc_t", "cats were there")):
            row = {"document": "the cats\nwere here", "reference": "cats be here"}
            rows = [{**row, "id": name, "summaries": {system: text}} for name in "ab"]
            summaries.write(folder / f"{system}.jsonl", rows)
        for name in rouge.EXCEPTION_FILES:
            (folder / name).write_text("were be\n")
        command = [sys.executable, "-m", "zoo.xsum.evaluate", f"--exceptions={folder}"]
        command += [f"--summaries={folder}/lead.jsonl,{folder}/t-convs2s-enc_t.jsonl"]
        done = subprocess.run(
            [*command, f"--output={folder}/report"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        self.assertIn("| 31.71/11.38/25.56 |", done.stdout)
        metrics = json.loads((folder / "report/metrics.json").read_text())
        self.assertEqual(metrics["rouge_mode"], "rouge155")
        scores = metrics["systems"]["t-convs2s-enc_t"]["rouge"]
        self.assertAlmostEqual(scores["rouge1"]["recall"], 100 * 2 / 3)
        self.assertIn(done.stdout.split("\n")[0], (folder / "report/table.md").read_text())
        self.assertTrue((folder / "report/report.html").is_file())

    def test_what_cannot_be_evaluated_is_one_sentence(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "file").write_text("no JSON\n")
        for output, expected in (
            ("file", f"--output={folder}/file: expected a folder, but {folder}/file is a file."),
            ("report", f"{folder}/file:1: expected an object of JSON"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "zoo.xsum.evaluate", f"--summaries={folder}/file"]
                + [f"--output={folder / output}"],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 1)
            self.assertStartsWith(done.stderr, f"zoo.xsum.evaluate: {expected}")
            self.assertFalse((folder / "report").exists())


if __name__ == "__main__":
    absltest.main()
