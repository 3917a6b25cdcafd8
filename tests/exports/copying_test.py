"""Tests of the text form of the copying memory task, on a loaded export."""

import re
import tempfile
from pathlib import Path

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

import rum_keras
from datasets import copying as data
from exports import check, copying, export
from zoo.copying.model import copying_model

DELAY = 4
GOOD = "1234567812" + "0009" + "0" * 10


def is_well_formed(text: str) -> bool:
    """The form of a text, told once more without the graph."""
    return re.fullmatch(rf"[1-8]{{10}}0{{{DELAY - 1}}}90{{10}}", text) is not None


class CopyingTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        keras.utils.set_random_seed(4)
        cls.model = copying_model(rum_keras.RUM(6, eta=1.0, return_sequences=True), DELAY)
        # As a trained model: one whose answers depend on what it reads.
        for weight in cls.model.weights:
            weight.assign(3 * weight)
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "1"
        export.write(cls.model, copying, directory, "copying")
        cls.servable = cls.enterClassContext(check.Servable(directory))

    def ask(self, texts):
        outputs = self.servable.predict({"text": np.array(texts, object)})
        return [copy.decode() for copy in outputs["copy"]], outputs["probability"]

    def test_served_symbols_and_probability_are_those_of_the_last_ten_steps(self):
        sequences, _ = data.generate(7, DELAY, seed=6)
        texts = ["".join(map(str, sequence)).encode() for sequence in sequences]
        copies, probabilities = self.ask(texts)
        steps = np.asarray(keras.ops.softmax(self.model(sequences, training=False)))[:, -10:]
        expected = ["".join(map(str, row)) for row in np.argmax(steps, axis=2)]
        self.assertEqual(copies, expected)
        np.testing.assert_allclose(probabilities, np.prod(np.max(steps, axis=2), axis=1), rtol=1e-4)

    @parameterized.parameters(
        "", "1234567812", GOOD[:-1], GOOD + "0", GOOD + "\n", "9" + GOOD[1:], "0" + GOOD[1:],
        GOOD.replace("9", "0"), GOOD[:-1] + "1", "1" * 24, "a" * 24, "１" + GOOD[1:],
        b"\xff" * 24, b"\0" * 24, "1" * 1_000_000,
    )  # fmt: skip
    def test_malformed_texts_get_no_answer_and_leave_the_batch_alone(self, text):
        text = text.encode() if isinstance(text, str) else text
        (alone,), (probability_alone,) = self.ask([GOOD.encode()])
        copies, probabilities = self.ask([text, GOOD.encode(), text])
        self.assertEqual(copies, ["", alone, ""])
        np.testing.assert_allclose(probabilities, [0, probability_alone, 0], rtol=1e-4)
        self.assertGreater(probability_alone, 0)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text(), max_size=3), st.integers(0, 23), st.characters(codec="ascii"))
    def test_only_texts_of_the_form_are_answered(self, texts, position, character):
        texts = [*texts, GOOD[:position] + character + GOOD[position + 1 :]]
        copies, probabilities = self.ask([text.encode("utf-8", "surrogatepass") for text in texts])
        for text, copy, probability in zip(texts, copies, probabilities, strict=True):
            self.assertLen(copy, 10 if is_well_formed(text) else 0)
            self.assertEqual(probability > 0, copy != "")

    def test_a_batch_of_none_has_no_answers(self):
        copies, probabilities = self.ask([])
        self.assertEqual(copies, [])
        self.assertEqual(probabilities.shape, (0,))

    def test_a_model_of_any_number_of_steps_is_refused(self):
        model = copying_model(keras.layers.SimpleRNN(3, return_sequences=True), delay=None)
        with self.assertRaisesRegex(ValueError, "copying_model"):
            copying.endpoint(model)


if __name__ == "__main__":
    absltest.main()
