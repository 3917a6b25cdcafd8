"""Summaries of files of raw text, by a run and by an export."""

import io
import pathlib
import subprocess
import sys
import tempfile
import types
from unittest import mock

import tensorflow as tf
from absl import flags
from absl.testing import absltest

from datasets import tokenization
from exports import text
from tests.zoo.pointer_generator import tiny_run
from zoo.pointer_generator import generate, kept, summarize

ROOT = pathlib.Path(summarize.__file__).parents[2]
ARTICLES = [article for article, _ in tiny_run.ARTICLES[:3]]


class SummarizeTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        _, cls.run_folder = tiny_run.write(folder, coverage=True)
        cls.found = summarize.ask_run(cls.run_folder, [article.encode() for article in ARTICLES])

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_run_summarizes_raw_text_as_it_does_prepared_documents(self):
        rows = [
            {"id": "", "summary": [], "document": tokenization.sentences(article)}
            for article in ARTICLES
        ]
        text_of_run = kept.read(self.run_folder)
        generator = generate.Generator(kept.load_model(self.run_folder), text_of_run, "ours", True)
        expected = [" ".join(row["summaries"]["ours"].split()) for row in generator.rows(rows)]
        self.assertEqual(self.found["summary"].tolist(), text.detokenize(expected).numpy().tolist())
        self.assertLess(self.found["score"].max(), 0)

    def test_the_command_summarizes_a_file_and_the_standard_input_by_a_run(self):
        path = self.folder / "article.txt"
        path.write_text(ARTICLES[0])
        result = subprocess.run(
            [sys.executable, "-m", "zoo.pointer_generator.summarize", path, "-"]
            + [f"--workdir={self.run_folder}"],
            cwd=ROOT,
            input=ARTICLES[1].encode(),
            capture_output=True,
            timeout=300,
        )
        expected = self.found["summary"][:2].tolist()
        self.assertEqual(result.stdout.splitlines(), expected, result.stderr)
        self.assertNotEqual(*expected)

    def test_the_command_asks_an_export_for_the_summary_of_an_article(self):
        def shout(article):
            return {"summary": tf.strings.upper(article)}

        spec = tf.TensorSpec([None], tf.string, name="article")
        signature = tf.function(shout).get_concrete_function(spec)
        tf.saved_model.save(tf.Module(), str(self.folder / "10"), signatures=signature)
        path = self.folder / "article.txt"
        path.write_text("abc")
        options = types.SimpleNamespace(export_dir=self.folder, nbest=False)
        with mock.patch.object(flags, "FLAGS", options):
            with mock.patch("sys.stdout", new_callable=io.StringIO) as stdout:
                summarize.main(["command", path])
        self.assertEqual(stdout.getvalue(), "ABC\n")

    def test_a_run_without_a_model_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "no .*best.keras.*pointer_generator.train"):
            summarize.ask_run(self.folder, [b"a"])


if __name__ == "__main__":
    absltest.main()
