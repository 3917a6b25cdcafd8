"""Tests of the XSum corpus in all its forms."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

from absl.testing import absltest, parameterized

from datasets import text_shards, xsum
from datasets.summarization import Settings

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data")) / "xsum"

ARTICLES = {
    "101": ("The sun is out.\nIt is warm", "Summer is here."),
    "102": ("It rains.", "Autumn is here."),
    "103": ("It snows.", "Winter is here."),
}
SPLIT = {"101": "train", "102": "validation", "103": "test"}
SETTINGS = Settings(vocabulary_size=9)


class XSumTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name, "source")
        self.source.mkdir()
        self.output = pathlib.Path(folder.name, "output")

    def _write(self, name, text):
        path = self.source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _write_form(self, form):
        lists = {split: [i for i, s in SPLIT.items() if s == split] for split in SPLIT.values()}
        if form in ("[SN]", "[XSUM]", "folders"):
            self._write("XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json", json.dumps(lists))
        names = {"train": "train", "validation": "validation", "test": "test"}
        if form == "valid":
            names["validation"] = "valid"
        for name, (document, summary) in ARTICLES.items():
            split = names[SPLIT[name]]
            tokens = " ".join(xsum.articles.sentences(document))
            if form in ("[SN]", "[XSUM]"):
                first = "FIRST-SENTENCE" if form == "[SN]" else "INTRODUCTION"
                self._write(
                    f"{name}.{'summary' if form == '[SN]' else 'data'}",
                    f"{form}URL{form}\nhttp://x\n\n{form}{first}{form}\n{summary}\n\n"
                    f"{form}RESTBODY{form}\n{document}\n",
                )
            elif form == "folders":
                lines = "\n".join(xsum.articles.sentences(document))
                self._write(f"document/{name}.document", lines)
                self._write(f"summary/{name}.summary", summary.replace(".", " ."))
            elif form in ("packed", "valid"):
                self._write(f"{split}.document", tokens + "\n")
                self._write(f"{split}.summary", summary.lower().replace(".", " .") + "\n")
            elif form == "source":
                self._write(f"{split}.source", document.replace("\n", " ") + ".\n")
                self._write(f"{split}.target", summary + "\n")
            else:
                row = {"document": document, "summary": summary, "id": name}
                self._write(f"{split}.jsonl", json.dumps(row) + "\n")

    def _prepare(self, **options):
        options = {"allow_partial": True, "processes": 1} | options
        return xsum.prepare([str(self.source)], str(self.output), SETTINGS, **options)

    @parameterized.parameters("[SN]", "[XSUM]", "folders", "packed", "valid", "source", "jsonl")
    def test_every_form_gives_the_same_articles(self, form):
        self._write_form(form)
        manifest = self._prepare()
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [1, 1, 1])
        (row,) = text_shards.load(self.output, "train")
        self.assertEqual(row["document"], ["the sun is out .", "it is warm ."])
        self.assertEqual(row["summary"], ["summer is here ."])
        (row,) = text_shards.load(self.output, "validation")
        self.assertEqual(row["summary"], ["autumn is here ."])

    def test_articles_stand_in_the_order_of_the_authors_list(self):
        self._write_form("folders")
        ids = {"train": ["103", "101", "102"], "validation": [], "test": []}
        self._write("XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json", json.dumps(ids))
        self._prepare()
        rows = text_shards.load(self.output, "train")
        self.assertEqual([row["id"] for row in rows], ["103", "101", "102"])

    def test_summaries_in_their_own_folder_that_were_edited_since_are_refused(self):
        self._write_form("folders")
        self._prepare()
        self._write("summary/102.summary", "Winter has been here .")
        with self.assertRaisesRegex(ValueError, "begun with another text .files .*other sizes"):
            self._prepare()

    def test_a_page_without_its_sections_is_named(self):
        self._write_form("[XSUM]")
        self._write("102.data", "[XSUM]URL[XSUM]\nx\n")
        self.assertEqual(self._prepare()["splits"]["validation"]["kept"], 0)
        dropped = (self.output / "dropped.txt").read_text()
        self.assertRegex(dropped, r"102\.data: expected the sections RESTBODY .*, found URL\n")

    def test_an_id_whose_file_is_missing_is_named(self):
        self._write_form("[SN]")
        (self.source / "103.summary").unlink()
        self._prepare()
        self.assertIn("103.summary: No such file", (self.output / "dropped.txt").read_text())

    def test_sizes_other_than_the_published_need_a_flag(self):
        self._write_form("jsonl")
        with self.assertRaisesRegex(ValueError, "204,045 train .here 1.*add --allow_partial"):
            self._prepare(allow_partial=False)

    def test_holding_out_ignores_the_published_splits(self):
        self._write_form("[SN]")
        manifest = self._prepare(held_out=2)
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [1, 1, 1])

    @parameterized.parameters(
        ("Share this with\nEmail\nCopy this link\nIt rains.", "It rains.", {"share links": 3}),
        ("Media playback is not supported on this device\nRain.", "Rain.", {"player": 1}),
        ("Media playback is unsupported on your device Rain.", "Rain.", {"player": 1}),
        ("1 May 2015 Last updated at 12:26 BST\nRain.", "Rain.", {"date": 1}),
        ("Image copyright PA\nImage caption A man\nRain.", "Rain.", {"picture": 2}),
        ("Rain.\nFollow @BBCSport on Twitter.", "Rain.\n", {"promotion": 1}),
    )
    def test_lines_of_the_site_are_cleaned_and_counted(self, text, rest, counts):
        self.assertEqual(xsum.clean(text), (rest, Counter(counts)))

    @parameterized.parameters(
        "Email\u0020me.", "He used Facebook.", "Follow us home", "Twitter fell"
    )
    def test_sentences_of_an_article_stay(self, text):
        self.assertEqual(xsum.clean(text), (text, Counter()))

    def test_cleaning_is_a_choice(self):
        row = {"document": "Email\nRain", "summary": "Wet", "id": "1"}
        for split in ("train", "validation", "test"):
            self._write(f"{split}.jsonl", json.dumps(row | {"id": split}))
        self.assertEqual(self._prepare()["splits"]["train"]["mean_tokens"]["document"], 4)
        self.output = self.output.with_name("clean")
        manifest = self._prepare(use_cleaner=True)
        self.assertEqual(manifest["splits"]["train"]["mean_tokens"]["document"], 2)
        self.assertEqual(manifest["splits"]["train"]["cleaned"], {"share links": 1})

    def test_what_is_not_there_is_named(self):
        with self.assertRaisesRegex(ValueError, "nowhere: there is no such file"):
            xsum.prepare(["nowhere"], str(self.output), SETTINGS)
        with self.assertRaisesRegex(ValueError, "expected one of the forms .*, found nothing"):
            self._prepare()

    def test_the_command_prepares_and_reports(self):
        self._write_form("jsonl")
        command = [sys.executable, "-m", "datasets.xsum", "prepare", f"--source={self.source}"]
        command += [f"--output={self.output}", "--allow_partial", "--processes=1"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        self.assertIn("train: kept 1 of 1; mean 9.0 document tokens, 4.0 summary", done.stdout)
        self.assertIn("text: 3 of 3 articles", done.stderr)
        self.assertLen(xsum.load(self.output, "test"), 1)
        done = subprocess.run(command[:-2], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("The published splits have", done.stderr)

    def test_the_command_names_an_output_that_it_cannot_write(self):
        self._write_form("jsonl")
        self.output.write_text("A file.")
        command = [sys.executable, "-m", "datasets.xsum", "prepare", f"--source={self.source}"]
        command += [f"--output={self.output}", "--allow_partial", "--processes=1"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"^{self.output}/text: Not a directory. Expected that")

    def test_the_real_pairs_are_all_read(self):
        path = DATA / "pairs_test_split.jsonl.gz"
        if not path.exists():
            self.skipTest("The XSum pairs are not here: set RUM_KERAS_DATA to the data's folder.")
        found = list(xsum.read(path))
        self.assertLen(found, 1713)
        with gzip.open(DATA / "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json.gz", "rt") as file:
            test = json.load(file)["test"]
        self.assertContainsSubset({article.id for article in found}, test)
        document, summary = found[0].read()
        self.assertGreater(len(document), len(summary))


if __name__ == "__main__":
    absltest.main()
