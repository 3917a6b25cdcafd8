"""Tests of the command that summarizes articles."""

import pathlib
import subprocess
import sys
import tempfile

import tensorflow as tf
from absl.testing import absltest

from datasets import tokenization
from exports import text
from tests.zoo.xsum import tiny_run
from zoo.xsum import generate, kept, summarize

ROOT = pathlib.Path(summarize.__file__).parents[2]
DOCUMENTS = [document.encode() for document, _ in tiny_run.ARTICLES[:2]]


class SummarizeTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_run_summarizes_raw_text_as_it_does_prepared_documents(self):
        _, run = tiny_run.write(self.folder)
        found = summarize.ask_run(run, DOCUMENTS)
        rows = [
            {"id": "", "summary": [], "document": tokenization.sentences(document.decode())}
            for document in DOCUMENTS
        ]
        generator = generate.Generator(
            kept.load_model(run), kept.read(run), "ours", beam=10, max_length=90
        )
        expected = [row["summaries"]["ours"] for row in generator.rows(rows)]
        self.assertEqual(found["summary"].tolist(), text.detokenize(expected).numpy().tolist())
        self.assertLess(found["score"].max(), 0)

    def test_the_command_asks_an_export_for_the_summary_of_a_document(self):
        def size(document):
            return {"summary": tf.strings.as_string(tf.strings.length(document))}

        spec = tf.TensorSpec([None], tf.string, name="document")
        signature = tf.function(size).get_concrete_function(spec)
        tf.saved_model.save(tf.Module(), str(self.folder / "10"), signatures=signature)
        path = self.folder / "article.txt"
        path.write_bytes(b"abc\xff")
        result = subprocess.run(
            [sys.executable, "-m", "zoo.xsum.summarize", path, "-", f"--export_dir={self.folder}"],
            cwd=ROOT,
            input=b"a" * 11,
            capture_output=True,
            timeout=200,
        )
        self.assertEqual(result.stdout, b"4\n11\n", result.stderr)

    def test_a_run_without_a_model_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "no .*best.keras.*zoo.xsum.train"):
            summarize.ask_run(self.folder, DOCUMENTS)


if __name__ == "__main__":
    absltest.main()
