"""Tests of what the `generate` commands share."""

import itertools
import json
import pathlib
import tempfile

from absl.testing import absltest

from zoo import generate


class UnfinishedTest(absltest.TestCase):
    """A command that writes a file batch by batch, and is stopped."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.examples = [{"id": str(number), "document": ["é"]} for number in range(4)]

    def make_rows(self, examples, with_attention):
        self.batches.append([example["id"] for example in examples])
        return [{**row, "attention": i < with_attention} for i, row in enumerate(examples)]

    def append(self, path, examples, **options):
        """Returns the lines added after each batch."""
        self.batches = []
        return list(generate.append(path, self.make_rows, examples, **options))

    def test_lines_are_added_batch_by_batch_and_the_first_have_attention(self):
        path = self.folder / "summaries.jsonl"
        self.assertEqual(self.append(path, self.examples, batch_size=3, with_attention=2), [3, 1])
        self.assertEqual(self.batches, [["0", "1", "2"], ["3"]])
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        shown = [True, True, False, False]
        expected = [{**row, "attention": shown[i]} for i, row in enumerate(self.examples)]
        self.assertEqual(rows, expected)

    def test_what_was_stopped_goes_on_after_its_last_whole_line(self):
        whole, output = self.folder / "whole", self.folder / "new" / "out.jsonl"
        self.append(whole, self.examples, batch_size=3, with_attention=3)
        lines = whole.read_bytes().splitlines(keepends=True)
        with generate.unfinished(output, {"documents": 4}) as (path, done):
            self.assertEqual(done, 0)
            path.write_bytes(lines[0] + lines[1][:-9])
        with generate.unfinished(output, {"documents": 4}) as (again, done):
            self.assertEqual((again, done), (path, 1))
        rest = itertools.islice(self.examples, done, None)
        self.assertEqual(self.append(path, rest, batch_size=2, with_attention=3 - done), [2, 1])
        self.assertEqual(path.read_bytes(), whole.read_bytes())

    def test_what_fails_before_its_first_line_leaves_no_file(self):
        with generate.unfinished(self.folder / "out.jsonl", {}) as (path, _):
            pass
        with self.assertRaises(ZeroDivisionError):
            list(generate.append(path, lambda *_: 1 / 0, self.examples))
        self.assertEmpty(list(self.folder.iterdir()))

    def test_what_fails_later_keeps_its_lines(self):
        with generate.unfinished(self.folder / "out.jsonl", {}) as (path, _):
            pass
        self.append(path, self.examples[:1])
        with self.assertRaises(ZeroDivisionError):
            list(generate.append(path, lambda *_: 1 / 0, self.examples[1:]))
        self.assertLen(path.read_text().splitlines(), 1)

    def test_a_command_with_other_flags_begins_anew(self):
        output = self.folder / "other.jsonl"
        with generate.unfinished(output, {"beam": 3, "split": "test"}) as (path, _):
            path.write_text("{}\n")
        with generate.unfinished(output, {"split": "test", "beam": 3}) as found:
            self.assertEqual(found, (path, 1))
        with generate.unfinished(output, {"beam": 4, "split": "test"}) as (_, done):
            self.assertEqual(done, 0)

    def test_a_command_that_runs_twice_at_once_is_refused(self):
        output = self.folder / "out.jsonl"
        with generate.unfinished(output, {}) as (path, _):
            self.append(path, self.examples)
            with self.assertRaisesRegex(BlockingIOError, "Another process is writing .*out.jsonl"):
                with generate.unfinished(output, {}):
                    pass
        with generate.unfinished(output, {}) as (_, done):
            self.assertEqual(done, 4)


if __name__ == "__main__":
    absltest.main()
