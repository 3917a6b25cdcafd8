"""Tests of the model of the copying memory task."""

import math
import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from datasets import copying
from zoo.copying.model import copying_model


class CopyingModelTest(parameterized.TestCase):
    @parameterized.parameters(3, None)
    def test_logits_are_those_of_the_formula(self, delay):
        model = copying_model(keras.layers.SimpleRNN(5, return_sequences=True), delay)
        kernel, recurrent, bias, readout, offset = model.get_weights()
        inputs, _ = copying.generate(2, delay=3)
        state, expected = np.zeros((2, 5)), []
        for step in range(23):
            state = np.tanh(np.eye(10)[inputs[:, step]] @ kernel + state @ recurrent + bias)
            expected.append(state @ readout + offset)
        logits = model.predict(inputs, verbose=0)
        np.testing.assert_allclose(logits, np.stack(expected, axis=1), atol=1e-5)

    def test_the_readout_starts_as_in_the_released_code(self):
        layer = keras.layers.LSTM(400, return_sequences=True)
        kernel, bias = copying_model(layer, delay=3).get_layer("readout").get_weights()
        limit = math.sqrt(6 / (9 + 10))
        self.assertLessEqual(abs(kernel).max(), limit)
        self.assertGreater(abs(kernel).max(), 0.98 * limit)
        np.testing.assert_array_equal(bias, np.full(9, 0.01, np.float32))

    @parameterized.parameters(3, None)
    def test_a_saved_model_gives_the_same_logits(self, delay):
        model = copying_model(rum_keras.RUM(6, lambda_=1, return_sequences=True), delay)
        inputs, _ = copying.generate(2, delay=3)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "copying.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
        logits = model.predict(inputs, verbose=0)
        np.testing.assert_array_equal(loaded.predict(inputs, verbose=0), logits)

    def test_training_falls_below_the_loss_without_memory_of_the_marker(self):
        # A model that cannot see when to speak spreads its guesses over all steps.
        keras.utils.set_random_seed(1)
        model = copying_model(keras.layers.GRU(12, return_sequences=True), delay=4)
        model.compile(
            optimizer=keras.optimizers.RMSprop(0.01),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(*copying.generate(2000, delay=4), batch_size=50, epochs=3, verbose=0)
        loss = model.evaluate(*copying.generate(200, delay=4, seed=1), verbose=0)
        blind = math.log(24 / 14) * 14 / 24 + math.log(24 / 10 * 8) * 10 / 24
        self.assertLess(loss, blind)
        self.assertLess(loss, 1.1 * copying.memoryless_loss(4))

    def test_a_layer_that_returns_the_last_output_is_refused(self):
        with self.assertRaisesRegex(ValueError, r"\(None, 6\).*return_sequences=True"):
            copying_model(keras.layers.GRU(6), delay=4)


if __name__ == "__main__":
    absltest.main()
