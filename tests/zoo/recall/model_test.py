"""Tests of the model of associative recall."""

import math
import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from datasets import recall
from zoo.recall.model import recall_model


class RecallModelTest(parameterized.TestCase):
    def test_logits_are_those_of_the_formula(self):
        model = recall_model(keras.layers.SimpleRNN(5), length=4)
        kernel, recurrent, bias, readout, offset = model.get_weights()
        sequences, _ = recall.generate(3, length=4)
        state = np.zeros((3, 5))
        for step in range(7):
            state = np.tanh(np.eye(13)[sequences[:, step]] @ kernel + state @ recurrent + bias)
        logits = model.predict(sequences, verbose=0)
        np.testing.assert_allclose(logits, state @ readout + offset, atol=1e-5)

    @parameterized.parameters((6, 14), (50, 36))
    def test_the_readout_starts_as_in_the_released_code(self, length, vocabulary):
        layer = keras.layers.LSTM(400)
        kernel, bias = recall_model(layer, length).get_layer("readout").get_weights()
        limit = math.sqrt(6 / (10 + vocabulary))
        self.assertLessEqual(abs(kernel).max(), limit)
        self.assertGreater(abs(kernel).max(), 0.98 * limit)
        np.testing.assert_array_equal(bias, np.full(10, 0.01, np.float32))

    @parameterized.parameters(0, 1)
    def test_a_saved_model_gives_the_same_logits(self, lambda_):
        model = recall_model(rum_keras.RUM(6, lambda_=lambda_), length=4)
        sequences, _ = recall.generate(2, length=4)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "recall.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
        logits = model.predict(sequences, verbose=0)
        np.testing.assert_array_equal(loaded.predict(sequences, verbose=0), logits)

    def test_it_learns_to_read_a_single_pair(self):
        keras.utils.set_random_seed(1)
        model = recall_model(keras.layers.GRU(12), length=2)
        sequences, digits = recall.generate(2000, length=2)
        model.compile(
            optimizer=keras.optimizers.RMSprop(0.01),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(sequences, digits, batch_size=50, epochs=3, verbose=0)
        fresh = recall.generate(500, length=2, seed=1)
        self.assertGreater(model.evaluate(*fresh, verbose=0)[1], 0.99)

    def test_a_layer_that_returns_sequences_is_refused(self):
        with self.assertRaisesRegex(ValueError, r"\(None, 7, 6\).*return_sequences=False"):
            recall_model(keras.layers.GRU(6, return_sequences=True), length=4)


if __name__ == "__main__":
    absltest.main()
