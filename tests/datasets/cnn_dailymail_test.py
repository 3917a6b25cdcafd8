"""Tests of the CNN/Daily Mail corpus in all its forms."""

import hashlib
import json
import os
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from datasets import cnn_dailymail, records, see_chunks, text_shards, vocabulary

ROOT = pathlib.Path(__file__).parents[2]
DATA = (
    pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data"))
    / "cnn_dailymail"
)

STORY = (
    "(CNN) -- It rains in Zermatt.\n\nWe stay in.\n\n"
    "@highlight\n\nIt rains\n\n@highlight\n\nIn Zermatt\n"
)
DOCUMENT = ["-lrb- cnn -rrb- -- it rains in zermatt .", "we stay in ."]
SUMMARY = ["it rains .", "in zermatt ."]
SETTINGS = cnn_dailymail.SETTINGS.replaced(vocabulary_size=6)


def name_of(url):
    return hashlib.sha1(url.encode()).hexdigest()


class CnnDailymailTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "output"

    def _write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def _prepare(self, *sources, settings=SETTINGS, **options):
        options = {"allow_partial": True, "processes": 1} | options
        sources = [str(self.folder / source) for source in sources]
        return cnn_dailymail.prepare(sources, str(self.output), settings, **options)

    def _stories(self, folder="stories", story=STORY):
        for split, short in (("train", "train"), ("validation", "val"), ("test", "test")):
            urls = [f"http://{split}/{i}" for i in range(2)]
            self._write(f"url_lists/all_{short}.txt", "\n".join(urls) + "\n")
            for url in urls:
                self._write(f"{folder}/{name_of(url)}.story", story)

    def test_stories_are_split_by_the_hashes_of_their_urls(self):
        self._stories()
        self._write(f"stories/{name_of('http://other')}.story", STORY)
        manifest = self._prepare("stories", split_ids=str(self.folder / "url_lists"))
        self.assertEqual([split["kept"] for split in manifest["splits"].values()], [2, 2, 2])
        rows = list(text_shards.load(self.output, "validation"))
        ids = [name_of(f"http://validation/{i}") for i in range(2)]
        self.assertEqual([row["id"] for row in rows], ids)
        self.assertEqual((rows[0]["document"], rows[0]["summary"]), (DOCUMENT, SUMMARY))

    def test_tokenized_stories_are_taken_as_they_are(self):
        self._stories("cnn_stories_tokenized", "`` It rains . ''\nnow\n@highlight\nRain\n")
        self._prepare("cnn_stories_tokenized", split_ids=str(self.folder / "url_lists"))
        row = next(text_shards.load(self.output, "train"))
        self.assertEqual(row["document"], ["`` it rains . ''", "now ."])
        self.assertEqual(row["summary"], ["rain ."])

    def test_stories_without_text_are_dropped_and_counted(self):
        self._stories()
        self._write(f"stories/{name_of('http://train/1')}.story", "\n\n@highlight\n\nRain\n")
        manifest = self._prepare("stories", split_ids=str(self.folder / "url_lists"))
        self.assertEqual(manifest["splits"]["train"]["dropped"], {"document is empty": 1})

    def test_sizes_other_than_the_published_need_a_flag(self):
        self._stories()
        message = "287,226 train .here 2., 13,368 validation .here 2., 11,490 test .here 2"
        with self.assertRaisesRegex(ValueError, message):
            self._prepare("stories", split_ids=str(self.folder / "url_lists"), allow_partial=False)

    def test_chunks_are_read_and_marks_reach_neither_text_nor_records(self):
        record = {
            "article": " ".join(DOCUMENT).encode(),
            "abstract": b"<s> it rains . </s> <s> in zermatt . </s>",
        }
        for name in ("train_000", "val_000", "test_000"):
            see_chunks.write(self.folder / f"{name}.bin", [record])
        self._prepare(".")
        (row,) = text_shards.load(self.output, "train")
        self.assertEqual((row["document"], row["summary"]), (DOCUMENT, SUMMARY))
        words = vocabulary.read(self.output / "vocabulary.txt")
        self.assertNotIn("<s>", words)
        split = records.load(self.output, "train")
        self.assertEqual(split.summary.lengths.tolist(), [6])

    def test_marks_of_a_table_reach_neither_text_nor_vocabulary(self):
        row = {"article": DOCUMENT, "reference_tagged": "<t> it rains . </t>  <t> so . it is </t>"}
        self._write("train.jsonl", json.dumps(row))
        self._prepare("train.jsonl")
        (row,) = text_shards.load(self.output, "train")
        self.assertEqual(row["summary"], ["it rains .", "so . it is ."])
        words = vocabulary.read(self.output / "vocabulary.txt").words
        self.assertEmpty({"<t>", "</t>", "<", ">", "t", "/t"} & set(words[4:]))

    def test_a_chunk_that_is_cut_short_is_named_with_the_offset(self):
        path = self.folder / "train_000.bin"
        see_chunks.write(path, [{"article": b"rain .", "abstract": b"<s> wet </s>"}] * 2)
        size = path.stat().st_size
        path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(self._prepare("train_000.bin")["splits"]["train"]["kept"], 1)
        dropped = (self.output / "dropped.txt").read_text()
        self.assertIn(f"train_000.bin: byte {size // 2}: the record at byte {size // 2}", dropped)

    def test_tables_and_token_lists_are_read(self):
        article, highlights = STORY.split("\n\n@highlight", 1)
        highlights = highlights.replace("@highlight", "").strip()
        row = {"article": article, "highlights": highlights, "id": "1"}
        self._write("tables/test.jsonl", json.dumps(row))
        lists = [{"src": [line.split() for line in DOCUMENT], "tgt": [s.split() for s in SUMMARY]}]
        self._write("cnndm.train.0.json", json.dumps(lists))
        self._prepare("tables", "cnndm.train.0.json")
        for split in ("train", "test"):
            (row,) = text_shards.load(self.output, split)
            self.assertEqual((row["document"], row["summary"]), (DOCUMENT, SUMMARY))

    @parameterized.parameters("train.jsonl", "train.source", "train_000.bin")
    def test_files_of_one_name_in_two_folders_lose_no_article(self, name):
        for folder in ("cnn", "dailymail"):
            if name.endswith(".bin"):
                (self.folder / folder).mkdir()
                record = {"article": b"rain .", "abstract": b"<s> wet . </s>"}
                see_chunks.write(self.folder / folder / name, [record])
            else:
                row = '{"article": "rain", "highlights": "wet"}'
                self._write(f"{folder}/{name}", f"{row}\n")
                self._write(f"{folder}/train.target", "wet\n")
        manifest = self._prepare("cnn", "dailymail")
        self.assertEqual(manifest["splits"]["train"]["kept"], 2)
        name = name.removesuffix(".bin")
        line = 0 if name == "train_000" else 1
        ids = [f"{folder}/{name}:{line}" for folder in ("cnn", "dailymail")]
        self.assertEqual([row["id"] for row in text_shards.load(self.output, "train")], ids)
        self.assertEqual(records.load(self.output, "train").ids, ids)

    def test_summaries_that_were_edited_since_are_refused(self):
        self._write("train.source", "rain\n")
        self._write("train.target", "wet\n")
        self._prepare(".")
        self._prepare(".")
        self._write("train.target", "very wet\n")
        with self.assertRaisesRegex(ValueError, "begun with another text .files .*other sizes"):
            self._prepare(".")

    def test_the_vocabulary_has_50000_words_with_the_special_symbols(self):
        self.assertEqual(cnn_dailymail.SETTINGS.vocabulary_size + 4, 50_000)

    def _long(self):
        self._write("train.source", " ".join(["a"] * 400 + ["zoe"] * 500) + "\n")
        self._write("train.target", "zoe a\n")

    def test_the_vocabulary_counts_whole_articles(self):
        self._long()
        self._prepare(".", settings=SETTINGS.replaced(vocabulary_size=1), tokenized=True)
        self.assertEqual(vocabulary.read(self.output / "vocabulary.txt").words[4:], ["zoe"])

    def test_what_is_cut_away_cannot_be_copied(self):
        self._long()
        self._write("vocab", "a 400\n")
        words = SETTINGS.replaced(vocabulary=str(self.folder / "vocab"))
        self._prepare(".", settings=words, tokenized=True)
        example = next(records.examples(self.output, "train"))
        features = records.parse([example], ["summary_extended", "copied_words"])
        self.assertEqual(features["summary_extended"].to_list(), [[0, 4, 0]])
        self.assertEqual(features["copied_words"].to_list(), [[]])

    def test_the_published_urls_are_all_of_the_list(self):
        if not (DATA / "url_lists").is_dir():
            self.skipTest("The URL lists are not here: set RUM_KERAS_DATA to the data's folder.")
        found = cnn_dailymail.read_urls(DATA / "url_lists")
        counts = {split: list(found.values()).count(split) for split in ("validation", "test")}
        self.assertEqual(counts, {"validation": 13_368, "test": 11_490})
        # A document of SummEval.
        self.assertEqual(found["404f859482d47c127868964a9a39d1a7645dd2e9"], "test")

    def test_folders_without_lists_or_articles_are_refused(self):
        with self.assertRaisesRegex(ValueError, "expected all_train.txt"):
            cnn_dailymail.read_urls(self.folder)
        with self.assertRaisesRegex(ValueError, "expected one of the forms"):
            self._prepare(".")


if __name__ == "__main__":
    absltest.main()
