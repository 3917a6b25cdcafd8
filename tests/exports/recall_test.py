"""Tests of the text form of associative recall, on a loaded export."""

import re
import string
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

import rum_keras
from datasets import recall as data
from exports import check, export, recall
from zoo.recall.model import recall_model

LENGTH = 10
GOOD = "a1s2d3f4g5??d"


def is_well_formed(text: str) -> bool:
    """The form of a text, told once more without the graph."""
    if not re.fullmatch(rf"([A-Za-z][0-9]){{{LENGTH // 2}}}\?\?[A-Za-z]", text):
        return False
    letters = text[0:LENGTH:2]
    return len(set(letters)) == len(letters) and text[-1] in letters


class RecallTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        keras.utils.set_random_seed(3)
        cls.model = recall_model(rum_keras.RUM(6, lambda_=1), LENGTH)
        # As a trained model: one whose answers depend on what it reads.
        for weight in cls.model.weights:
            weight.assign(3 * weight)
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "1"
        export.write(cls.model, recall, directory, "recall")
        cls.servable = cls.enterClassContext(check.Servable(directory))

    def ask(self, texts):
        outputs = self.servable.predict({"text": np.array(texts, object)})
        return [digit.decode() for digit in outputs["digit"]], outputs["probability"]

    def test_served_probabilities_are_the_softmax_of_the_models_logits(self):
        sequences, _ = data.generate(7, LENGTH, seed=5)
        alphabet = "BXemq"  # in ASCII order, as the ids 1 to 5
        symbols = "?" + alphabet + string.digits
        texts = ["".join(symbols[i] for i in sequence) for sequence in sequences]
        digits, probabilities = self.ask([text.encode() for text in texts])
        expected = keras.ops.softmax(self.model(sequences, training=False))
        np.testing.assert_allclose(probabilities, np.max(expected, axis=1), atol=1e-6)
        self.assertEqual(digits, [str(digit) for digit in np.argmax(expected, axis=1)])
        self.assertGreater(np.std(probabilities), 1e-3)

    def test_letters_count_by_their_order_alone(self):
        (digit, other), (probability, other_probability) = self.ask(
            [b"d1a2c3e4b5??a", b"Z1B2Y3z4F5??B"]
        )
        self.assertEqual(digit, other)
        self.assertEqual(probability, other_probability)

    @parameterized.parameters(
        "", " ", "?", "a1s2d3f4??d", "a1s2d3f4g5h6??d", "a1s2d3f4a5??d", "a1s2d3f4g5??z",
        "a1s2d3f4g5??D", "a1s2d3f4gx??d", "a1s2d3f4g5?d", "a1s2d3f4g5??", "a1s2d3f4g5??dd",
        GOOD + "\n", " " + GOOD, "a1s2d3f4g5\0?d", "á1s2d3f4g5??d", "a1s2d3f4g٣??d",
        b"\xff" * 13, b"a1s2d3f4g5??\xff", b"\xc3\xa1s2d3f4g5??d", "a1" * 500_000,
    )  # fmt: skip
    def test_malformed_texts_get_no_answer_and_leave_the_batch_alone(self, text):
        text = text.encode() if isinstance(text, str) else text
        (alone,), (probability_alone,) = self.ask([GOOD.encode()])
        digits, probabilities = self.ask([text, GOOD.encode(), text])
        self.assertEqual(digits, ["", alone, ""])
        np.testing.assert_allclose(probabilities, [0, probability_alone, 0], atol=1e-6)
        self.assertGreater(probability_alone, 0.1)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text() | st.text("asdfgA12?", min_size=13, max_size=13), max_size=4))
    def test_any_strings_are_answered_by_a_digit_or_not_at_all(self, texts):
        digits, probabilities = self.ask([text.encode("utf-8", "surrogatepass") for text in texts])
        for text, digit, probability in zip(texts, digits, probabilities, strict=True):
            self.assertEqual(digit != "", is_well_formed(text))
            self.assertEqual(probability > 0, digit != "")

    @settings(deadline=None, max_examples=60)
    @given(st.integers(0, len(GOOD) - 1), st.characters(codec="ascii"))
    def test_one_changed_character_is_noticed_where_it_matters(self, position, character):
        text = GOOD[:position] + character + GOOD[position + 1 :]
        (digit,), _ = self.ask([text.encode()])
        self.assertEqual(digit != "", is_well_formed(text))

    def test_a_batch_of_none_has_no_answers(self):
        digits, probabilities = self.ask([])
        self.assertEqual(digits, [])
        self.assertEqual(probabilities.shape, (0,))


class RecallModelTest(parameterized.TestCase):
    @parameterized.parameters(None, 3, 8, 109)
    def test_a_model_that_reads_no_pairs_of_letters_is_refused(self, steps):
        ids = keras.Input((steps,), dtype="int32")
        with self.assertRaisesRegex(ValueError, "input shape is"):
            recall.endpoint(keras.Model(ids, ids))

    @parameterized.parameters(2, 30, 104)
    def test_lengths_up_to_both_alphabets_are_answered(self, length):
        model = recall_model(keras.layers.SimpleRNN(3), length)
        texts = recall.example_texts(model)
        outputs = recall.endpoint(model)(tf.constant(texts))
        self.assertNotIn(b"", outputs["digit"].numpy().tolist())


if __name__ == "__main__":
    absltest.main()
