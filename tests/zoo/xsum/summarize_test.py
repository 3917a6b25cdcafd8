"""Tests of the command that summarizes articles."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from datasets import tokenization
from exports import text
from tests.zoo.xsum import tiny_run
from zoo.xsum import generate, kept, summarize

ROOT = pathlib.Path(summarize.__file__).parents[2]
DOCUMENTS = [document.encode() for document, _ in tiny_run.ARTICLES[:2]]


def write_version(directory):
    """Writes a SavedModel whose summary is the length of the document, or twice that."""
    module = tf.Module()

    def size(document, factor):
        return tf.strings.as_string(factor * tf.strings.length(document))

    def best(document):
        return {"summary": size(document, 1), "score": tf.zeros_like(document, tf.float32)}

    def nbest(document):
        summaries = tf.stack([size(document, 1), size(document, 2)], axis=1)
        return {"summaries": summaries, "scores": tf.zeros_like(summaries, tf.float32)}

    spec = tf.TensorSpec([None], tf.string, name="document")
    signatures = {
        name: tf.function(function).get_concrete_function(spec)
        for name, function in (("serving_default", best), ("nbest", nbest))
    }
    tf.saved_model.save(module, str(directory), signatures=signatures)


class SummarizeTest(parameterized.TestCase):
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

    def test_the_command_prints_a_line_a_file_by_the_latest_version(self):
        (self.folder / "9").mkdir()
        write_version(self.folder / "10")
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

    def test_an_export_gives_all_it_found(self):
        write_version(self.folder / "1")
        outputs = summarize.ask_export(self.folder, [b"abc"], summarize.ALL)
        self.assertEqual(outputs["summaries"].tolist(), [[b"3", b"6"]])

    def test_all_that_was_found_is_printed_with_its_score(self):
        outputs = {
            "summaries": np.array([[b"a b", b"\xc3\xa9"], [b"c", b"d"]], object),
            "scores": np.array([[-0.5, -1.25], [-2, -3]]),
        }
        self.assertEqual(
            list(summarize.lines(outputs)),
            ["-0.5000  a b", "-1.2500  é", "-2.0000  c", "-3.0000  d"],
        )

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "no .*best.keras.*zoo.xsum.train"):
            summarize.ask_run(self.folder, DOCUMENTS)
        with self.assertRaisesRegex(FileNotFoundError, "no version in .*exports.export --workdir"):
            summarize.ask_export(self.folder / "none", DOCUMENTS)


if __name__ == "__main__":
    absltest.main()
