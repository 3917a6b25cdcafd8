"""Tests of files of summaries."""

import json
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from zoo import summaries

ROW = {"id": "1", "document": "a b\nc", "reference": "a", "summaries": {"lead": "a b"}}
ATTENTION = [[[0.25, 0.75, 0.0]] * 2]


class SummariesTest(parameterized.TestCase):
    def write(self, *rows, name="summaries.jsonl"):
        path = pathlib.Path(self.folder, name)
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return path

    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def test_what_is_written_is_read(self):
        path = pathlib.Path(self.folder, "new", "summaries.jsonl")
        summaries.write(path, [{**ROW, "document": ["a b", "é"]}, {**ROW, "id": "2"}])
        first, second = summaries.read([path])
        self.assertEqual(first, summaries.Example("1", ["a b", "é"], "a", {"lead": "a b"}))
        self.assertEqual(second.document, ["a b", "c"])
        self.assertEqual([file.name for file in path.parent.iterdir()], [path.name])

    def test_files_of_different_systems_are_joined_by_id(self):
        one = [json.dumps({**ROW, "id": name}) + "\n" for name in "12"]
        other = [
            json.dumps({**ROW, "id": name, "summaries": {"model": name}, "topics": [[0.5, ["w"]]]})
            + "\n"
            for name in "21"
        ]
        first, second = summaries.read([self.write(*one), self.write(*other, name="other.jsonl")])
        self.assertEqual(first.summaries, {"lead": "a b", "model": "1"})
        self.assertEqual(second.summaries, {"lead": "a b", "model": "2"})
        self.assertEqual(first.topics, [(0.5, ["w"])])

    def test_attention_is_over_document_and_summary_with_an_end(self):
        row = {**ROW, "summaries": {"model": "x"}, "attention": [[[0.1, 0.2, 0.3, 0.4]] * 2] * 3}
        attention = summaries.read([self.write(row)])[0].attention["model"]
        self.assertEqual(attention.source, ["a", "b", "c", "</s>"])
        self.assertEqual(attention.target, ["x", "</s>"])
        self.assertLen(attention.weights, 3)

    def test_a_single_hop_may_be_given_without_its_axis(self):
        row = {**ROW, "attention": [[0.5, 0.5]] * 2}
        attention = summaries.read([self.write(row)])[0].attention["lead"]
        self.assertEqual(attention.weights, [[[0.5, 0.5], [0.5, 0.5]]])

    def test_what_is_no_text_is_named(self):
        path = self.write(ROW)
        path.write_bytes(b"\xff\xfe")
        with self.assertRaisesRegex(ValueError, "summaries.jsonl: "):
            summaries.read([path])

    @parameterized.named_parameters(
        ("no JSON", ["{"], r"summaries\.jsonl:1: expected an object of JSON"),
        ("no object", ["[]"], r":1: expected an object, found list"),
        ("no reference", [{**ROW, "reference": None}], r":1: `reference` is missing"),
        ("one id twice", [json.dumps(ROW) + "\n", ROW], r":2: the id '1' is in an earlier line"),
        (
            "other systems",
            [json.dumps(ROW) + "\n", {**ROW, "id": "2", "summaries": {}}],
            r":2: expected summaries of \['lead'\] as in line 1",
        ),
        ("a summary of no text", [{**ROW, "summaries": {"lead": 3}}], ":1: expected summaries: "),
        ("a topic without weight", [{**ROW, "topics": [[None, ["a"]]]}], r":1: expected topics:"),
        ("topics of no list", [{**ROW, "topics": 5}], r":1: expected topics: \[\[weight"),
        ("attention of no list", [{**ROW, "attention": [1]}], r":1: expected attention: \[\["),
        ("ragged attention", [{**ROW, "attention": [[[1.0], [0.5, 0.5]]]}], ":1: all rows"),
        (
            "attention over other words",
            [{**ROW, "attention": ATTENTION, "source": ["a"]}],
            ":1: `attention` is 1 x 2 x 3, but there are 2 target words, 1 source words",
        ),
        (
            "attention of no one",
            [{**ROW, "attention": ATTENTION, "attention_of": "other"}],
            r":1: `attention_of` must name one of \['lead'\]",
        ),
    )
    def test_a_bad_line_is_named(self, rows, message):
        with self.assertRaisesRegex(ValueError, message):
            summaries.read([self.write(*rows)])

    @parameterized.named_parameters(
        ("other documents", {"id": "2"}, r"lacks 1 \(\['1'\]\) and has 1 others \(\['2'\]\)"),
        ("the same system", {}, r"the systems \['lead'\] are in an earlier file too"),
        ("another reference", {"reference": "b", "summaries": {"m": ""}}, "the reference of '1'"),
    )
    def test_files_that_do_not_go_together_are_refused(self, changes, message):
        paths = [self.write(ROW), self.write({**ROW, **changes}, name="other.jsonl")]
        with self.assertRaisesRegex(ValueError, message):
            summaries.read(paths)

    def test_a_folder_is_no_file_to_write(self):
        with self.assertRaisesRegex(IsADirectoryError, "is a folder: give the name of a file"):
            summaries.check_output(self.enterContext(tempfile.TemporaryDirectory()))


class SentencesTest(parameterized.TestCase):
    @parameterized.parameters(
        ("<t> a b . </t>  <t> c </t>", "", ["a b .", "c"]),
        ("<s> a </s> <s> b </s>", "", ["a", "b"]),
        ("a . b\nc", "", ["a . b", "c"]),
        ("a 1.5 . b .", ".", ["a 1.5 .", "b ."]),
        ("", ".", []),
    )
    def test_split_at_tags_lines_and_the_given_word(self, text, end, expected):
        self.assertEqual(summaries.sentences(text, end), expected)


if __name__ == "__main__":
    absltest.main()
