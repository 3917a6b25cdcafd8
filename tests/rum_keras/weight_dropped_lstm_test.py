"""WeightDroppedLSTM against Keras' LSTM with the weights that are left."""

import os
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.weight_dropped_lstm import WeightDroppedLSTM
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import BATCH, flat, inputs

UNITS = 6


def make_layer(**options):
    options = {"return_sequences": True, "dtype": FLOAT, "seed": 1, **options}
    layer = WeightDroppedLSTM(UNITS, **options)
    layer.build((BATCH, None, 4))
    return layer


class WeightDroppedLSTMTest(parameterized.TestCase):
    def test_inference_and_rate_0_are_the_lstm_of_keras(self):
        plain = keras.layers.LSTM(UNITS, return_sequences=True, dtype=FLOAT)
        x = inputs()
        expected = plain(x)
        for layer, training in (
            (make_layer(weight_dropout=0.5), False),
            (make_layer(weight_dropout=0.0), True),
        ):
            layer.set_weights(plain.get_weights())
            np.testing.assert_allclose(
                layer(x, training=training), expected, rtol=0, atol=tolerance(1e-12)
            )

    def test_training_is_the_lstm_with_some_weights_dropped_and_the_others_scaled(self):
        layer = make_layer(weight_dropout=0.25)
        x = inputs()
        state = backend.to_numpy(layer.cell.seed_generator.state)
        actual = backend.to_numpy(layer(x, training=True))
        layer.cell.seed_generator.state.assign(state)
        kernel = backend.to_numpy(layer.cell.recurrent_kernel)
        dropped = backend.to_numpy(
            keras.random.dropout(kernel, 0.25, seed=layer.cell.seed_generator)
        )
        kept = dropped != 0
        np.testing.assert_allclose(dropped[kept], kernel[kept] / 0.75, rtol=1e-6)
        self.assertBetween(kept.mean(), 0.6, 0.9)
        plain = keras.layers.LSTM(UNITS, return_sequences=True, dtype=FLOAT)
        plain.build(x.shape)
        weights = layer.get_weights()
        plain.set_weights([weights[0], dropped, weights[2]])
        np.testing.assert_allclose(actual, plain(x), rtol=0, atol=tolerance(1e-12))

    def test_rows_and_steps_share_a_mask_and_batches_do_not(self):
        layer = make_layer(weight_dropout=0.5)
        x = np.repeat(inputs(batch=1), 2, axis=0)
        first, second = (flat(layer(x, training=True))[0] for _ in range(2))
        np.testing.assert_array_equal(first[0], first[1])
        np.testing.assert_array_equal(first[:, 0], second[:, 0])  # From h = 0: no weight is seen.
        self.assertFalse(np.array_equal(first, second))

    def test_the_layer_keeps_its_own_kernel(self):
        layer = make_layer(weight_dropout=0.5)
        before = layer.get_weights()
        kernel = layer.cell.recurrent_kernel
        layer(inputs(), training=True)
        self.assertIs(layer.cell.recurrent_kernel, kernel)
        self.assertLen(layer.trainable_variables, 3)
        for one, other in zip(layer.get_weights()[:3], before[:3], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_dropped_weights_have_no_gradient_and_the_others_have(self):
        layer = make_layer(weight_dropout=0.5)
        state = backend.to_numpy(layer.cell.seed_generator.state)
        _, gradients = backend.weight_gradients(
            layer, lambda: keras.ops.sum(layer(inputs(), training=True))
        )
        layer.cell.seed_generator.state.assign(state)
        kernel = backend.to_numpy(layer.cell.recurrent_kernel)
        dropped = keras.random.dropout(kernel, 0.5, seed=layer.cell.seed_generator)
        np.testing.assert_array_equal(
            gradients["recurrent_kernel"] != 0, backend.to_numpy(dropped) != 0
        )

    def test_masks_and_initial_states_work_in_training(self):
        layer = make_layer(weight_dropout=0.5, return_state=True)
        mask = np.array([[True, True, True, False, False]] * 2)
        x = inputs()
        state = backend.to_numpy(layer.cell.seed_generator.state)
        outputs, h, c = flat(layer(x, mask=mask, training=True))
        layer.cell.seed_generator.state.assign(state)
        expected = flat(layer(x[:, :3], training=True))
        for one, other in zip((outputs[:, :3], h, c), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-12))

    def test_a_model_survives_a_keras_file_and_trains_in_a_graph(self):
        sequence = keras.Input((None, 4))
        hidden = keras.layers.Bidirectional(
            WeightDroppedLSTM(UNITS, weight_dropout=0.25, return_sequences=True)
        )(sequence)
        model = keras.Model(sequence, WeightDroppedLSTM(5)(hidden))
        model.compile("adam", "mse")
        x = inputs(dtype="float32")
        self.assertTrue(np.isfinite(model.train_on_batch(x, np.zeros((BATCH, 5)))))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.saving.load_model(path)
        np.testing.assert_allclose(loaded(x), model(x), rtol=0, atol=1e-6)
        self.assertEqual(loaded.layers[1].forward_layer.weight_dropout, 0.25)

    def test_a_rate_out_of_range_is_named(self):
        for rate in (-0.1, 1.0):
            with self.assertRaisesRegex(ValueError, r"`weight_dropout` must be in \[0, 1\)"):
                WeightDroppedLSTM(UNITS, weight_dropout=rate)

    def test_parameters_of_the_language_model(self):
        # Merity et al.'s for characters, with one bias where PyTorch has two.
        count = 50 * 200 + 50
        for features, units in ((200, 1000), (1000, 1000), (1000, 200)):
            layer = WeightDroppedLSTM(units, recurrent_initializer="zeros")
            layer.build((None, None, features))
            count += sum(int(np.prod(weight.shape)) for weight in layer.trainable_variables)
        self.assertEqual(count, 13_778_850)


if __name__ == "__main__":
    absltest.main()
