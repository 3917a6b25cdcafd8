"""What the commands that summarize raw texts share."""

import io
import pathlib
import tempfile
import types
from unittest import mock

import numpy as np
import tensorflow as tf
from absl import app, flags
from absl.testing import absltest

from zoo import summarize


def write_version(folder):
    """Writes a SavedModel whose summary is the length of the article, or twice that."""
    module = tf.Module()

    def size(article, factor):
        return tf.strings.as_string(factor * tf.strings.length(article))

    def best(article):
        return {"summary": size(article, 1), "score": tf.zeros_like(article, tf.float32)}

    def nbest(article):
        summaries = tf.stack([size(article, 1), size(article, 2)], axis=1)
        return {"summaries": summaries, "scores": tf.zeros_like(summaries, tf.float32)}

    spec = tf.TensorSpec([None], tf.string, name="article")
    signatures = {
        name: tf.function(function).get_concrete_function(spec)
        for name, function in (("serving_default", best), ("nbest", nbest))
    }
    tf.saved_model.save(module, str(folder), signatures=signatures)


def ask(run, texts, signature):
    """Answers with what it was asked."""
    return {"summary": [f"{run} {signature} ".encode() + text for text in texts]}


class SummarizeTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "article.txt"
        self.path.write_bytes(b"abc\xff")

    def run_command(self, *paths, ask_run=ask, stdin=b"", **options):
        """Returns what the command prints."""
        options = {"workdir": "runs/x", "export_dir": None, "nbest": False, **options}
        self.enter_context(mock.patch.object(flags, "FLAGS", types.SimpleNamespace(**options)))
        stdin = mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with stdin, mock.patch("sys.stdout", new_callable=io.StringIO) as stdout:
            summarize.run(["command", *paths], ask_run, "article", "zoo.some.summarize")
        return stdout.getvalue()

    def test_a_line_is_printed_for_each_file_and_the_standard_input(self):
        self.path.write_text("abc")
        printed = self.run_command(self.path, "-", stdin=b"d")
        self.assertEqual(printed, "runs/x serving_default abc\nruns/x serving_default d\n")
        self.assertEqual(self.run_command(self.path, nbest=True), "runs/x nbest abc\n")

    def test_an_export_is_asked_by_its_latest_version(self):
        (self.folder / "9").mkdir()
        write_version(self.folder / "10")
        printed = self.run_command(self.path, "-", export_dir=self.folder, stdin=b"a" * 11)
        self.assertEqual(printed, "4\n11\n")
        printed = self.run_command(self.path, export_dir=self.folder, nbest=True)
        self.assertEqual(printed, "0.0000  4\n0.0000  8\n")

    def test_all_that_was_found_is_printed_with_its_score(self):
        outputs = {
            "summaries": np.array([[b"a b", b"\xc3\xa9"], [b"c", b"d"]], object),
            "scores": np.array([[-0.5, -1.25], [-2, -3]]),
        }
        self.assertEqual(
            list(summarize.lines(outputs)),
            ["-0.5000  a b", "-1.2500  é", "-2.0000  c", "-3.0000  d"],
        )

    def test_what_is_missing_is_said_in_a_sentence(self):
        def refuse(run, texts, signature):
            raise FileNotFoundError(f"There is no {run}.")

        with self.assertRaisesRegex(SystemExit, "zoo.some.summarize: There is no runs/x"):
            self.run_command(self.path, ask_run=refuse)
        with self.assertRaisesRegex(SystemExit, "zoo.some.summarize: .*No such file.*missing"):
            self.run_command(self.folder / "missing")
        with self.assertRaisesRegex(SystemExit, "no version in .*exports.export --workdir"):
            self.run_command(self.path, export_dir=self.folder / "none")
        with self.assertRaisesRegex(SystemExit, "The standard input is empty: there is nothing"):
            self.run_command(self.path, "-", stdin=b" \n")
        with self.assertRaisesRegex(app.UsageError, "Name a file"):
            self.run_command()


if __name__ == "__main__":
    absltest.main()
