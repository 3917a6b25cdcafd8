"""Tests of the export of a run: a whole version or nothing."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import rum_keras
from datasets import recall as data
from exports import check, copying, export, recall
from zoo.recall.model import recall_model

ROOT = Path(export.__file__).parents[1]
TEXT = "a1s2d3f4g5??d"


def small_model(units: int = 6) -> keras.Model:
    return recall_model(rum_keras.RUM(units, lambda_=1), length=10)


class LastStep(keras.layers.Layer):
    """The input of the last step, with a gradient that XLA compiles."""

    def call(self, sequences):
        @tf.custom_gradient
        def last(x):
            return x[:, -1], tf.function(lambda g: tf.stack([g] * 13, axis=1), jit_compile=True)

        return last(sequences)


def write_run(directory: Path, model: keras.Model, recipe: str = "zoo.recall.train") -> Path:
    """Writes what an export needs of a run."""
    directory.mkdir()
    model.save(directory / "best.keras")
    (directory / "metrics.json").write_text(json.dumps({"recipe": recipe}))
    return directory


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "exports.export", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )


class ExportTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.export_dir = self.folder / "recall"

    def test_the_command_writes_the_next_version_of_a_run(self):
        run = write_run(self.folder / "run", small_model())
        (self.export_dir / "9").mkdir(parents=True)
        result = command(f"--workdir={run}", f"--export_dir={self.export_dir}")
        self.assertEqual(result.stdout, f"{self.export_dir / '10'}\n", result.stderr)
        self.assertEqual(sorted(path.name for path in self.export_dir.iterdir()), ["10", "9"])
        self.assertTrue(check.check(self.export_dir / "10"))
        # The server may run as another user than the one who exported.
        modes = {path.stat().st_mode & 0o044 for path in (self.export_dir / "10").rglob("*")}
        self.assertEqual(modes, {0o044})

    def test_the_manifest_is_what_sha256sum_reads(self):
        export.write(small_model(), recall, self.folder / "1", "recall")
        command = ["sha256sum", "--check", "--strict", check.MANIFEST]
        result = subprocess.run(command, cwd=self.folder / "1", capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("saved_model.pb: OK", result.stdout)

    def test_gradients_stay_behind(self):
        export.write(recall_model(LastStep(), 10), recall, self.folder / "1", "recall")
        self.assertIn("none in", check.check_xla(self.folder / "1"))

    def test_every_signature_has_inputs_of_its_own_types(self):
        model = small_model()

        class Task:
            """A text and numbers go in; a table outside of the model is used."""

            @staticmethod
            def signatures(model, run):
                table = tf.lookup.StaticHashTable(
                    tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), -1.0
                )

                def score(text, length, temperature):
                    known = table.lookup(text)
                    return {"score": known * tf.cast(length, tf.float32) / temperature}

                requests = [{"temperature": [0.5, 1.0], "length": [3, 1], "text": ["a", "x"]}]
                scored = export.Signature(score, requests, tracked=[table])
                return recall.signatures(model) | {"score": scored}

        export.write(model, Task, self.folder / "1", "recall")
        with check.Servable(self.folder / "1") as servable:
            outputs = servable.predict(
                {"text": np.array([b"b"]), "length": np.array([2]), "temperature": np.array([4.0])},
                "score",
            )
        np.testing.assert_array_equal(outputs["score"], [1.0])
        self.assertTrue(check.check(self.folder / "1"))

    @parameterized.parameters("4", "04")
    def test_a_version_that_exists_is_refused(self, name):
        (self.export_dir / name).mkdir(parents=True)
        with self.assertRaisesRegex(FileExistsError, "Version 4 exists in .* never overwritten"):
            export.export(small_model(), recall, self.export_dir, version=4)
        self.assertEqual([path.name for path in self.export_dir.iterdir()], [name])

    def test_a_version_that_another_process_was_faster_with_is_kept(self):
        staging, target = self.folder / ".tmp-1-x", self.folder / "1"
        for path in (staging, target):
            path.mkdir()
            (path / "saved_model.pb").write_text(path.name)
        with self.assertRaises(OSError):
            export.publish(staging, target)
        self.assertEqual((target / "saved_model.pb").read_text(), "1")

    def test_an_export_that_fails_its_check_leaves_nothing(self):
        model = small_model()
        model.weights[0].assign(model.weights[0] * float("nan"))
        with self.assertRaisesRegex(RuntimeError, "was not published.*\n.*(\n.*)*FAIL  warm-up"):
            export.export(model, recall, self.export_dir)
        self.assertFalse(self.export_dir.exists())

    def test_an_export_that_fails_midway_leaves_nothing(self):
        class Midway:
            """The text form of recall, whose requests fail in the warm-up."""

            @staticmethod
            def signatures(model, run):
                (signature,) = recall.signatures(model).values()
                requests = [*signature.requests, {"text": [], "other": ["no such input"]}]
                return {"serving_default": signature._replace(requests=requests)}

        with self.assertRaisesRegex(KeyError, "other"):
            export.export(small_model(), Midway, self.export_dir)
        self.assertFalse(self.export_dir.exists())

    def test_versions_count_up_from_the_latest(self):
        self.assertEqual(export.next_version(self.export_dir), 1)
        for name in ("2", "10", ".tmp-77-x", "notes"):
            (self.export_dir / name).mkdir(parents=True)
        self.assertEqual(export.next_version(self.export_dir), 11)
        self.assertEqual(export.next_version(self.export_dir, version=3), 3)


class RunTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_the_recipe_of_a_run_tells_its_text_form(self):
        model = small_model(4)
        for recipe, task in (("zoo.recall.train", recall), ("zoo.copying.train", copying)):
            loaded, found = export.load_run(write_run(self.folder / recipe, model, recipe))
            self.assertIs(found, task)
            self.assertEqual(loaded.count_params(), model.count_params())

    @parameterized.parameters(
        lambda: keras.layers.GRU(5, dtype="mixed_bfloat16"),
        lambda: rum_keras.RUM(5, lambda_=1, dtype="mixed_float16"),
    )
    def test_mixed_precision_is_served_in_the_precision_of_the_weights(self, make_layer):
        layer = make_layer()
        run = write_run(self.folder / "run", recall_model(layer, length=10))
        loaded, _ = export.load_run(run)
        config = layer.get_config() | {"dtype": "float32"}
        full = recall_model(type(layer).from_config(config), length=10)
        full.set_weights(loaded.get_weights())
        sequences, _ = data.generate(3, length=10)
        np.testing.assert_array_equal(loaded(sequences), full(sequences))

    def test_the_command_needs_no_packages_but_those_of_the_demo(self):
        absent = dict.fromkeys(("gensim", "matplotlib", "nltk", "pyarrow", "rouge_score"))
        code = f"import sys; sys.modules.update({absent}); import exports.export"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)

    @parameterized.parameters("best.keras", "metrics.json")
    def test_a_run_that_has_not_ended_is_refused(self, missing):
        run = write_run(self.folder / "run", small_model(4))
        (run / missing).unlink()
        with self.assertRaisesRegex(FileNotFoundError, f"There is no {missing} in"):
            export.load_run(run)

    @parameterized.parameters("best.keras", "metrics.json")
    def test_a_run_with_half_a_file_is_refused(self, damaged):
        run = write_run(self.folder / "run", small_model(4))
        (run / damaged).write_bytes((run / damaged).read_bytes()[:20])
        with self.assertRaisesRegex(ValueError, f"run/{damaged} is damaged"):
            export.load_run(run)

    def test_a_recipe_without_an_export_is_refused(self):
        run = write_run(self.folder / "run", small_model(4), "zoo.nothing.train")
        with self.assertRaisesRegex(ValueError, "names the recipe 'zoo.nothing.train', but only"):
            export.load_run(run)


if __name__ == "__main__":
    absltest.main()
