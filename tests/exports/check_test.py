"""Tests that the checks find what would fail in the server."""

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from exports import check, export, recall
from zoo.recall.model import recall_model

TEXT = tf.TensorSpec([None], tf.string, name="text")


def save(function, directory: Path, spec: tf.TensorSpec = TEXT) -> Path:
    """Saves one function of a text as serving_default."""
    module = tf.Module()
    module.function = tf.function(function, input_signature=[spec])
    tf.saved_model.save(module, str(directory), signatures=module.function)
    return directory


class CheckTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = recall_model(keras.layers.LSTM(5), 6)
        cls.good = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "1"
        export.write(cls.model, recall, cls.good, "recall")

    def setUp(self):
        super().setUp()
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory())) / "1"

    def lines(self, directory):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            passed = check.check(directory)
        lines = [line.split("  ", 1)[1] for line in output.getvalue().splitlines()]
        self.assertEqual(passed, all(line.startswith("ok ") for line in lines))
        return {line.split(":")[0].split()[1]: line for line in lines}

    def test_a_good_export_passes_with_a_line_a_check(self):
        lines = self.lines(self.good)
        self.assertEqual(list(lines), ["manifest", "ops", "xla", "signatures", "warm-up"])
        self.assertTrue(all(line.startswith("ok ") for line in lines.values()), lines)

    @parameterized.parameters("changed", "missing", "added")
    def test_a_file_that_is_not_as_exported_is_named(self, what):
        shutil.copytree(self.good, self.directory)
        name = "added.txt" if what == "added" else "fingerprint.pb"
        if what == "missing":
            (self.directory / name).unlink()
        else:
            (self.directory / name).write_bytes(b"other")
        self.assertRegex(self.lines(self.directory)["manifest"], f"FAIL .*exported: {name}$")

    def test_a_keras_model_saved_without_an_export_archive_fails_as_in_the_server(self):
        module = tf.Module()
        module.model = self.model
        module.answer = tf.function(recall.endpoint(self.model), input_signature=[TEXT])
        tf.saved_model.save(module, str(self.directory), signatures=module.answer)
        tf.saved_model.load(str(self.directory))  # finds nothing wrong
        (self.directory / "assets.extra").mkdir()
        shutil.copy(self.good / check.WARMUP, self.directory / check.WARMUP)
        self.assertRegex(self.lines(self.directory)["warm-up"], "FAIL .*Could not find variable")

    def test_answers_other_than_the_exported_models_are_found(self):
        shutil.copytree(self.good, self.directory)
        other = recall_model(keras.layers.LSTM(5), 6)
        export.write_warmup(self.directory, "recall", recall.signatures(other))
        self.assertRegex(self.lines(self.directory)["warm-up"], "FAIL .*but the exported model's")

    def test_weights_that_are_not_numbers_are_found(self):
        model = recall_model(keras.layers.LSTM(5), 6)
        model.weights[0].assign(model.weights[0] * float("nan"))
        export.write(model, recall, self.directory, "recall")
        self.assertRegex(self.lines(self.directory)["warm-up"], "FAIL .*probability is .*nan")

    def test_xla_is_found_in_the_function_library(self):
        compiled = tf.function(lambda x: x * x, jit_compile=True)
        save(lambda text: {"n": compiled(tf.strings.length(text))}, self.directory)
        with self.assertRaisesRegex(ValueError, "asks for XLA by _XlaMustCompile"):
            check.check_xla(self.directory)

    def test_an_op_that_stock_servers_lack_must_be_allowed_by_name(self):
        save(lambda text: {"file": tf.map_fn(tf.io.read_file, text)}, self.directory)
        with self.assertRaisesRegex(ValueError, "core ops: ReadFile$"):
            check.check_ops(self.directory)
        self.assertRegex(check.check_ops(self.directory, ["ReadFile"]), "all on the list")

    @parameterized.parameters(
        (tf.TensorSpec([], tf.string, name="text"), "text of serving_default has no batch"),
        (tf.TensorSpec([3], tf.string, name="text"), "text of serving_default has no batch"),
        (tf.TensorSpec([None], tf.bool, name="text"), "text of serving_default is not of strings"),
    )
    def test_inputs_that_the_server_cannot_batch_are_found(self, spec, message):
        save(lambda text: {"same": tf.identity(text)}, self.directory, spec)
        with self.assertRaisesRegex(ValueError, message):
            check.check_signatures(self.directory)

    def test_a_question_that_the_export_does_not_take_is_refused(self):
        with check.Servable(self.good) as servable:
            with self.assertRaisesRegex(ValueError, r"takes \['text'\], but \['story'\] was given"):
                servable.predict({"story": np.array(["a"], object)})
            with self.assertRaisesRegex(ValueError, r"has the signatures \['serving_default'\]"):
                servable.predict({}, "nbest")

    def test_a_folder_without_a_savedmodel_fails_every_check(self):
        lines = self.lines(self.directory)
        self.assertTrue(all(line.startswith("FAIL ") for line in lines.values()), lines)


if __name__ == "__main__":
    absltest.main()
