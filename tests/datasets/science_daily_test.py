"""Tests of the Science Daily corpus, on pages of our own making."""

import gzip
import json
import os
import pathlib
import re
import tempfile
from importlib.util import find_spec

from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import science_daily, see_chunks, text_shards, vocabulary

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data"))

PAGE = """<html><head><title>Site</title><script>var x = "<p>no</p>";</script></head><body>
<div id="menu"><p>Top stories</p></div>
<h1 id="headline" class="headline">Snails sing</h1>
<dl><dt>Date:</dt><dd id="date_posted">May 1, 2018</dd>
<dt>Summary:</dt><dd id="abstract">Snails were <em>heard</em> to sing.</dd></dl>
<div id="story_text"><p id="first" class="lead">Snails can sing.</p>
<div id="text"><p>They do so
at night.</p><figure><p>A snail.</p></figure><p> </p><p>Few hear it.</p></div></div>
<div id="journal_references"><p>Snail, A. 2018.</p></div></body></html>"""
STORY = "Snails can sing.\nThey do so at night.\nFew hear it."
SETTINGS = science_daily.SETTINGS.replaced(vocabulary_size=50)


class ParsePageTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        if not find_spec("bs4"):
            self.skipTest("beautifulsoup4 is not installed.")

    def test_title_summary_and_story_are_found_and_nothing_else(self):
        found = science_daily.parse_page(PAGE)
        expected = {"title": "Snails sing", "summary": "Snails were heard to sing.", "story": STORY}
        self.assertEqual(found, expected)

    def test_a_lead_inside_the_text_is_taken_once(self):
        lead = '<p id="first" class="lead">Snails can sing.</p>'
        page = PAGE.replace(lead, "").replace('<div id="text">', f'<div id="text">{lead}')
        self.assertEqual(science_daily.parse_page(page)["story"], STORY)

    @parameterized.parameters(
        ('id="headline" class="headline"', "title \\(id=headline\\)"),
        ('id="abstract"', "summary \\(id=abstract\\)"),
        ('id="(first|text)"', "story \\(p in id=text\\)"),
    )
    def test_a_page_without_a_part_is_refused(self, mark, part):
        page = re.sub(mark, "", PAGE)
        with self.assertRaisesRegex(ValueError, f"expected a Science Daily page, found no {part}"):
            science_daily.parse_page(page)

    def test_pages_of_other_sites_are_refused(self):
        pages = sorted(DATA.glob("science_news/html/*.html.gz"))
        if not pages:
            self.skipTest("No saved pages are here: set RUM_KERAS_DATA to the data's folder.")
        for path in pages:
            with self.assertRaisesRegex(ValueError, "expected a Science Daily page"):
                science_daily.parse_page(gzip.decompress(path.read_bytes()).decode("utf-8"))


class ShuffledTest(parameterized.TestCase):
    @settings(deadline=None, max_examples=20)
    @given(st.lists(st.text("ab", min_size=1), max_size=8), st.integers(0, 9))
    def test_paragraphs_change_their_order_alone(self, lines, seed):
        found = science_daily.shuffled(lines, "id", seed)
        self.assertCountEqual(found, lines)
        self.assertEqual(science_daily.shuffled(lines, "id", seed), found)

    def test_the_order_hangs_on_seed_and_story(self):
        lines = [str(i) for i in range(30)]
        orders = [("a", 0), ("b", 0), ("a", 1)]
        orders = {tuple(science_daily.shuffled(lines, *order)) for order in orders}
        self.assertLen(orders | {tuple(lines)}, 4)


class ScienceDailyTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.source = self.folder / "source"
        self.source.mkdir()
        self.output = self.folder / "output"

    def _lists(self):
        for short in ("train", "val", "test"):
            (self.folder / f"all_{short}.txt").write_text(f"{short}.html\n")

    def _prepare(self, task, settings=SETTINGS, **options):
        options = {"split_ids": str(self.folder), "processes": 1} | options
        return science_daily.prepare(
            [str(self.source)], str(self.output), settings, task, **options
        )

    def _row(self, split="train"):
        return next(text_shards.load(self.output, split))

    def _pages(self):
        if not find_spec("bs4"):
            self.skipTest("beautifulsoup4 is not installed.")
        self._lists()
        for short in ("train", "val", "test"):
            (self.source / f"{short}.html").write_text(PAGE)

    def test_s2s_is_story_to_summary(self):
        self._pages()
        manifest = self._prepare("s2s")
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [1, 1, 1])
        row = self._row()
        document = ["snails can sing .", "they do so at night .", "few hear it ."]
        self.assertEqual(row["document"], document)
        self.assertEqual(row["summary"], ["snails were heard to sing ."])

    def test_names_of_saved_pages_have_blanks(self):
        self._pages()
        for short in ("train", "val", "test"):
            name = f"{short} story _ ScienceDaily.html"
            (self.source / f"{short}.html").rename(self.source / name)
            (self.folder / f"all_{short}.txt").write_text(f"\n {name}\r\n")
        manifest = self._prepare("s2s")
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [1, 1, 1])

    def test_sh2s_is_the_same_in_another_order(self):
        self._pages()
        orders = set()
        for seed in range(4):
            self.output = self.folder / f"output{seed}"
            self._prepare("sh2s", shuffle_seed=seed)
            row = self._row()
            self.assertEqual(row["summary"], ["snails were heard to sing ."])
            self.assertLen(row["document"], 3)
            orders.add(tuple(row["document"]))
        self.assertGreater(len(orders), 1)

    def test_s2t_is_story_to_title(self):
        self._pages()
        self._prepare("s2t")
        self.assertEqual(self._row()["summary"], ["snails sing ."])

    def test_oods2s_tests_on_all_with_the_words_of_another_corpus(self):
        self._pages()
        with self.assertRaisesRegex(ValueError, "give --vocabulary="):
            self._prepare("oods2s", split_ids=None)
        vocabulary.Vocabulary(["sing"], vocabulary.SEE).write(self.folder / "vocabulary.txt")
        given_words = SETTINGS.replaced(vocabulary=str(self.folder / "vocabulary.txt"))
        manifest = self._prepare("oods2s", given_words, split_ids=None)
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [0, 0, 3])
        self.assertLen(vocabulary.read(self.output / "vocabulary.txt"), 5)

    def test_tasks_do_not_share_a_folder(self):
        self._pages()
        self._prepare("s2s")
        with self.assertRaisesRegex(ValueError, "begun with another form .s2s, now s2t"):
            self._prepare("s2t")

    def test_a_page_of_another_site_is_dropped_and_named(self):
        self._pages()
        (self.source / "val.html").write_text("<p>404</p>")
        self._prepare("s2s")
        dropped = (self.output / "dropped.txt").read_text()
        self.assertIn("val.html: expected a Science Daily page, found no title", dropped)

    def test_tables_have_the_columns_of_the_task(self):
        row = {"story": STORY, "summary": "They sing.", "title": "Snails", "url": "http://a"}
        (self.source / "train.jsonl").write_text(json.dumps(row))
        for task, summary in (("s2s", "they sing ."), ("s2t", "snails .")):
            self.output = self.folder / task
            self._prepare(task, split_ids=None)
            self.assertEqual((self._row()["id"], self._row()["summary"]), ("http://a", [summary]))

    def test_papers_are_read_to_1000_words_and_highlights_to_100(self):
        row = {"paper": ["a b c"] * 400, "highlight": "d " * 120, "id": "p"}
        (self.source / "train.jsonl").write_text(json.dumps(row))
        settings_of_papers = SETTINGS.replaced(document_length=1000)
        self._prepare("paper", settings_of_papers, split_ids=None)
        split = science_daily.load(self.output, "train")
        self.assertEqual(split.document.lengths.tolist(), [1000])
        self.assertEqual(split.summary.lengths.tolist(), [100])

    def test_folders_with_files_of_the_same_names_are_pairs(self):
        self._lists()
        for folder, text in (("stories", "They sing."), ("titles", "Snails")):
            (self.source / folder).mkdir()
            (self.source / folder / "train.html").write_text(text)
        self._prepare("s2t")
        self.assertEqual(self._row()["summary"], ["snails ."])
        (self.source / "titles" / "train.html").write_text("Singing snails")
        with self.assertRaisesRegex(ValueError, "begun with another text .files .*other sizes"):
            self._prepare("s2t")

    def test_chunks_of_the_authors_script_have_no_marks(self):
        record = {"abstract": b"snails sing", "article": b"they sing . loudly ."}
        see_chunks.write(self.source / "train.bin", [record])
        self._prepare("s2t", split_ids=None)
        self.assertEqual(self._row()["document"], ["they sing .", "loudly ."])
        self.assertEqual(self._row()["summary"], ["snails sing ."])

    def test_real_papers_without_a_highlight_are_dropped(self):
        path = DATA / "science_news" / "plos_story_abstract.jsonl.gz"
        if not path.exists():
            self.skipTest("No papers are here: set RUM_KERAS_DATA to the data's folder.")
        self.source = path
        manifest = self._prepare("paper", split_ids=None, held_out=2)
        split = manifest["splits"]["train"]
        self.assertGreater(split["kept"], 20)
        self.assertEqual(split["read"], split["kept"] + sum(split["dropped"].values()))


if __name__ == "__main__":
    absltest.main()
