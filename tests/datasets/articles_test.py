"""Tests of reading articles from tables, pairs of files and folders."""

import contextlib
import gzip
import importlib.util
import json
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from datasets import articles

COLUMNS = {"document": ("document", "text"), "summary": ("summary",), "id": ("id",)}
ROWS = [
    {"id": 7, "document": "It rains.\nWe stay.", "summary": "Rain"},
    {"id": "8", "document": "Sun, é", "summary": "Dry"},
]


class ArticlesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def _write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def _table(self, name):
        path = self.folder / name
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(lines.encode()))
        elif name.endswith(".jsonl"):
            path.write_text(lines)
        elif name.endswith(".json"):
            path.write_text(json.dumps(ROWS))
        elif name.endswith(".csv"):
            path.write_text('id,document,summary\n7,"It rains.\nWe stay.",Rain\n8,"Sun, é",Dry\n')
        else:
            import pyarrow.parquet

            rows = [row | {"id": str(row["id"])} for row in ROWS]
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path

    @parameterized.parameters(
        "train.jsonl", "train.jsonl.gz", "train.json", "train.csv", "train-00000-of-1.parquet"
    )
    def test_every_table_holds_the_same_articles(self, name):
        if name.endswith("parquet") and not importlib.util.find_spec("pyarrow"):
            self.skipTest("pyarrow is not installed.")
        found = list(articles.from_table(self._table(name), COLUMNS))
        self.assertEqual([article.id for article in found], ["7", "8"])
        self.assertTrue(found[0].has_id)
        self.assertEqual({article.split for article in found}, {"train"})
        self.assertEqual(found[0].read(), ("It rains.\nWe stay.", "Rain"))
        self.assertEqual(found[1].read(), ("Sun, é", "Dry"))

    @parameterized.parameters("null", '""')
    def test_a_row_without_an_id_is_named_after_folder_file_and_line(self, empty):
        path = self._write("a.jsonl", f'\n{{"text": "x", "summary": "y", "id": {empty}}}\n')
        (article,) = articles.from_table(path, COLUMNS)
        self.assertEqual(article.id, f"{self.folder.name}/a.jsonl:2")
        self.assertEqual((article.where, article.has_id), (f"{path}:2", False))

    def test_a_name_of_a_file_does_not_hang_on_where_the_command_is_given(self):
        self.enter_context(contextlib.chdir(self.folder))
        for path in ("a.jsonl", f"../{self.folder.name}/a.jsonl", self.folder / "a.jsonl"):
            name = articles.name_of(pathlib.Path(path))
            self.assertEqual(name, f"{self.folder.name}/a.jsonl")

    @parameterized.parameters(
        ("no json", "expected a line of JSON"),
        ("[1]", "expected a JSON object"),
        ('{"document": "x"}', "columns document or text, and summary; found the columns document"),
        ('{"document": 1, "summary": "y"}', "expected texts in the columns"),
    )
    def test_a_bad_line_says_why_and_the_next_is_read(self, line, reason):
        path = self._write("a.jsonl", f'{line}\n{{"text": "x", "summary": "y"}}\n')
        bad, good = articles.from_table(path, COLUMNS)
        self.assertEqual(bad.where, f"{path}:1")
        with self.assertRaisesRegex(ValueError, reason):
            bad.read()
        self.assertEqual(good.read(), ("x", "y"))

    @parameterized.parameters(
        ("[\n{},\n{}\n]\n", [1, 2]),
        ("[{},\n {}]", [1, 2]),
        ("\n[\n {},\n{}]", [1, 2]),
        ('{{"data": [\n{},\n{}]}}', [1, 2]),
        ("{}\n{}\n", [1, 2]),
        ("\n\n{}\r\n{}", [3, 4]),
    )
    def test_json_holds_all_rows_however_they_stand_in_lines(self, form, lines):
        path = self._write("train.json", form.format(*map(json.dumps, ROWS)))
        found = list(articles.from_table(path, COLUMNS))
        self.assertEqual([article.read()[1] for article in found], ["Rain", "Dry"])
        self.assertEqual([article.where for article in found], [f"{path}:{n}" for n in lines])

    def test_a_bad_line_under_the_name_json_is_one_article(self):
        path = self._write("a.json", f"{json.dumps(ROWS[0])}\n{{\n{json.dumps(ROWS[1])}\n")
        first, bad, last = articles.from_table(path, COLUMNS)
        self.assertEqual((first.id, last.id), ("7", "8"))
        with self.assertRaisesRegex(ValueError, "expected a line of JSON"):
            bad.read()

    def test_bytes_that_are_no_text_are_a_bad_line(self):
        path = self.folder / "a.jsonl"
        path.write_bytes(b'{"text": "\xff", "summary": "y"}\n')
        (article,) = articles.from_table(path, COLUMNS)
        with self.assertRaisesRegex(ValueError, "utf-8"):
            article.read()

    def test_an_unknown_format_is_refused(self):
        with self.assertRaisesRegex(ValueError, "a.xml: expected a name that ends in .jsonl"):
            list(articles.from_table(self._write("a.xml", ""), COLUMNS))

    def test_lists_of_tokens_are_sentences(self):
        row = {"document": [["It", "rains", "."], ["So"]], "summary": [["Rain"]]}
        (article,) = articles.from_table(self._write("a.json", json.dumps([row])), COLUMNS)
        document, _ = article.read()
        self.assertEqual(articles.sentences(document), ["it rains .", "so ."])

    @parameterized.product(mark=("s", "t"), tokenized=(False, True))
    def test_sentences_between_marks_are_tokens_and_marks_are_no_words(self, mark, tokenized):
        marked = f"<{mark}> It rains . </{mark}>  <{mark}> U.S. won . So </{mark}>"
        expected = ["it rains .", "u.s. won . so ."]
        row = {"document": "A b .", "summary": marked}
        (article,) = articles.from_table(
            self._write("a.jsonl", json.dumps(row)), COLUMNS, tokenized=tokenized
        )
        self.assertEqual(articles.sentences(article.read()[1]), expected)
        paths = self._write("val.source", "A b .\n"), self._write("val.target", marked + "\n")
        (article,) = articles.from_pairs(*paths, tokenized)
        self.assertEqual(articles.sentences(article.read()[1]), expected)

    @parameterized.parameters(False, True)
    def test_marks_in_lists_of_sentences_are_no_words(self, tokenized):
        row = {"document": [["<s>", "It", "rains", ".", "</s>"]], "summary": ["<t> Wet . </t>"]}
        path = self._write("a.json", json.dumps([row]))
        (article,) = articles.from_table(path, COLUMNS, tokenized)
        found = [articles.sentences(text) for text in article.read()]
        self.assertEqual(found, [["it rains ."], ["wet ."]])

    def test_raw_text_with_a_tag_in_it_stays_raw_and_whole(self):
        text = "It <s>rains</s> snows, can't you see?"
        self.assertEqual(articles.given(text, "Snow")[0], text)

    def test_pairs_of_files_have_an_article_a_line(self):
        document = self._write("val.source", "A b.\nC d.\n")
        summary = self._write("val.target", "A\nC\n")
        found = list(articles.from_pairs(document, summary, tokenized=False))
        self.assertEqual([article.split for article in found], ["validation"] * 2)
        self.assertEqual(found[1].read(), ("C d.", "C"))
        self.assertEqual(found[1].where, f"{document}:2")
        self.assertEqual(found[1].id, f"{self.folder.name}/val.source:2")
        self.assertEqual(found[1].summary_file, str(summary))

    def test_pairs_of_different_lengths_are_refused(self):
        paths = self._write("val.source", "A\nB\n"), self._write("val.target", "A\n")
        with self.assertRaisesRegex(ValueError, "must have one article a line, the same in both"):
            list(articles.from_pairs(*paths, tokenized=False))

    def test_of_pairs_the_file_that_cannot_be_read_is_named(self):
        paths = self._write("val.source", "A\nB\n"), self.folder / "val.target"
        with self.assertRaisesRegex(ValueError, "val.target: No such file"):
            list(articles.from_pairs(*paths, tokenized=False))
        paths[1].write_bytes("A\né\n".encode("latin-1"))
        with self.assertRaisesRegex(ValueError, "val.target: expected UTF-8"):
            list(articles.from_pairs(*paths, tokenized=False))

    @parameterized.parameters(
        ("half.jsonl.gz", gzip.compress(b"{}\n" * 99)[:-9], "Compressed file ended"),
        ("plain.jsonl.gz", b"{}\n", "Not a gzipped file"),
        ("latin.csv", "id,document\n1,é\n".encode("latin-1"), "expected UTF-8"),
        ("cut.json", b'\n [\n{"text": "a"},\n{"te', "expected a JSON list of objects, but: Unterm"),
        ("null.json", b"null", "expected a JSON list of objects, found 'None'"),
        ("text.json", b'{"data": "a"}', "expected a JSON list of objects, found 'a'"),
        ("half.parquet", b"PAR1", "expected a parquet file"),
    )
    def test_a_table_that_cannot_be_read_is_named(self, name, content, reason):
        if name.endswith("parquet") and not importlib.util.find_spec("pyarrow"):
            self.skipTest("pyarrow is not installed.")
        path = self.folder / name
        path.write_bytes(content)
        with self.assertRaisesRegex(ValueError, f"{name}: {reason}"):
            list(articles.from_table(path, COLUMNS))

    def test_an_id_can_be_written_as_utf_8(self):
        path = self._write("a.jsonl", '{"id": "a\\ud800", "document": "b", "summary": "c"}\n')
        (article,) = articles.from_table(path, COLUMNS)
        self.assertEqual(article.id, "a?")

    def test_a_file_that_is_missing_is_named(self):
        for name in ("document", "summary"):
            (self.folder / name).mkdir()
        self._write("document/1.document", "It rains .\n")
        folders = self.folder / "document", self.folder / "summary"
        (article,) = articles.from_folders(*folders, (".document", ".summary"), [])
        with self.assertRaisesRegex(ValueError, "summary/1.summary: No such file"):
            article.read()

    @parameterized.parameters(
        ("train-00000-of-00002.parquet", "train"),
        ("val.source", "validation"),
        ("valid.document", "validation"),
        ("cnndm_sample.train.0.json", "train"),
        ("test_000.bin", "test"),
        ("training.csv", None),
        ("pairs_not_test.jsonl", None),
        ("latest.csv", None),
    )
    def test_a_name_states_the_split(self, name, split):
        self.assertEqual(articles.split_of(name), split)

    def test_tokenized_sentences_are_lowered_and_ended(self):
        self.assertEqual(articles.sentences(["It  rains ", "", "OK ."]), ["it rains .", "ok ."])


if __name__ == "__main__":
    absltest.main()
