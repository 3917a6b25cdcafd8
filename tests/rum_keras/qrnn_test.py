"""QRNN and its cell against a NumPy reference and each other."""

import os
import tempfile
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.qrnn import QRNN
from rum_keras.qrnn_cell import QRNNCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import BATCH, TIME, CellChecks, flat, inputs


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def randomize(layer, seed=0):
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))


def reference(layer, x, zoneout=0.0):
    """Returns h and c of all steps of the definition, in float64, for inputs from zero states."""
    weights = {weight.name: backend.to_numpy(weight).astype("float64") for weight in layer.weights}
    kernel, units = weights["kernel"], layer.cell.units
    past = np.pad(x.astype("float64"), ((0, 0), (len(kernel) - 1, 0), (0, 0)))
    c, H, C = np.zeros((len(x), units)), [], []
    for t in range(x.shape[1]):
        newest = t + len(kernel) - 1
        a = weights["bias"] + sum(past[:, newest - j] @ kernel[j] for j in range(len(kernel)))
        z, f = np.tanh(a[:, :units]), sigmoid(a[:, units : 2 * units])
        f = (1 - zoneout) * f
        c = f * z + (1 - f) * c
        H.append(sigmoid(a[:, 2 * units :]) * c if layer.cell.output_gate else c)
        C.append(c)
    return np.stack(H, 1), np.stack(C, 1)


class DefinitionTest(parameterized.TestCase):
    @parameterized.product(window=[1, 2, 3], output_gate=[True, False])
    def test_equals_the_definition(self, window, output_gate):
        layer = QRNN(
            6,
            window=window,
            output_gate=output_gate,
            return_sequences=True,
            return_state=True,
            dtype=FLOAT,
        )
        x = inputs(time=20)
        layer.build(x.shape)
        randomize(layer)
        H, C = reference(layer, x)
        outputs, h, c, *past = flat(layer(x))
        np.testing.assert_allclose(outputs, H, rtol=0, atol=tolerance(1e-12))
        np.testing.assert_allclose(h, H[:, -1], rtol=0, atol=tolerance(1e-12))
        np.testing.assert_allclose(c, C[:, -1], rtol=0, atol=tolerance(1e-12))
        self.assertLen(past, window - 1)

    def test_an_open_gate_takes_the_new_value_alone(self):
        # The sign of the released code: in the paper, f weighs the old value.
        layer = QRNN(6, output_gate=False, return_sequences=True, dtype=FLOAT)
        x = inputs()
        layer.build(x.shape)
        layer.cell.bias.assign(np.repeat([0.0, 100.0], 6))
        kernel = backend.to_numpy(layer.cell.kernel)[0]
        kernel[:, 6:] = 0
        layer.cell.kernel.assign(kernel[None])
        z = np.tanh(x @ kernel[:, :6])
        np.testing.assert_allclose(layer(x), z, rtol=0, atol=tolerance(1e-12))

    def test_parameters_of_six_layers_of_the_language_model(self):
        # Merity et al.'s for characters: 1,000 units, inputs of 200, as many outputs.
        sizes = [(200, 1000, 2), *[(1000, 1000, 1)] * 4, (1000, 200, 1)]
        count = 0
        for features, units, window in sizes:
            cell = QRNNCell(units, window)
            cell.build((None, features))
            count += cell.count_params()
        self.assertEqual(count + 50 * 200 + 50, 13_825_650)


class LayerTest(parameterized.TestCase):
    """The layer beside `keras.layers.RNN` over its cell."""

    def make_pair(self, window=2, **options):
        layer = QRNN(6, window=window, dtype=FLOAT, **options)
        layer.build((None, None, 4))
        randomize(layer)
        options = {key: value for key, value in options.items() if key != "zoneout"}
        return layer, keras.layers.RNN(layer.cell, dtype=FLOAT, **options)

    def assert_all_close(self, actual, expected):
        for one, other in zip(flat(actual), flat(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-12))

    @parameterized.product(
        window=[1, 3], go_backwards=[False, True], zoneout=[0.0, 0.3], masked=[False, True]
    )
    def test_equals_steps_of_the_cell(self, masked, **options):
        layer, steps = self.make_pair(return_sequences=True, return_state=True, **options)
        mask = None
        if masked:
            mask = np.array([[True, True, False, True, False], [False, False, True, True, True]])
            if options["go_backwards"]:  # Keras on JAX starts from the state, not from zeros.
                mask[0, -1] = mask[1, -1] = True
            else:
                mask[1, 0] = True
        states = [inputs(time=size)[:, :, 0] for size in layer.cell.state_size]
        x = inputs()
        self.assert_all_close(
            layer(x, mask=mask, initial_state=states), steps(x, mask=mask, initial_state=states)
        )

    def test_gradients_equal_those_of_the_steps(self):
        layer, steps = self.make_pair(return_sequences=True)
        mask = np.array([[True, True, False, True, False], [True, False, True, True, True]])
        x, c = inputs(), inputs(features=6, seed=1)
        results = []
        for one in (layer, steps):

            def loss(x, *states, one=one):
                states = list(states) or None
                return keras.ops.sum(one(x, mask=mask, initial_state=states) * c)

            states = [inputs(time=size)[:, :, 0] for size in layer.cell.state_size]
            _, gradients = backend.value_and_gradients(loss, x, *states)
            _, weight_gradients = backend.weight_gradients(layer, lambda loss=loss: loss(x))
            results.append([*gradients, *weight_gradients.values()])
        self.assert_all_close(*results)

    def test_padding_of_any_value_changes_nothing(self):
        layer, _ = self.make_pair(return_state=True)
        x, mask = inputs(), np.ones((BATCH, TIME), bool)
        mask[0, 3:] = mask[1, :2] = False
        padded = np.where(mask[..., None], x, np.nan)
        actual = flat(layer(padded, mask=mask))
        for row in range(BATCH):
            alone = flat(layer(x[row : row + 1][:, mask[row]]))
            self.assert_all_close([one[row] for one in actual], [one[0] for one in alone])

    def test_masked_steps_output_zeros_if_asked_to(self):
        layer, _ = self.make_pair(return_sequences=True, zero_output_for_mask=True)
        mask = np.array([[True, True, False, True, False]] * 2)
        outputs = backend.to_numpy(layer(inputs(), mask=mask))
        np.testing.assert_array_equal(abs(outputs).max(-1) > 0, mask)

    def test_states_go_on_in_the_next_batch(self):
        layer = QRNN(6, window=3, stateful=True, return_sequences=True, dtype=FLOAT)
        x = inputs(time=7)
        layer.build((BATCH, None, 4))
        randomize(layer)
        H, _ = reference(layer, x)
        self.assert_all_close(
            [layer(x[:, :2]), layer(x[:, 2:3]), layer(x[:, 3:])], [H[:, :2], H[:, 2:3], H[:, 3:]]
        )
        layer.reset_state()
        self.assert_all_close(layer(x), H)

    def test_zoneout_keeps_elements_in_training_and_averages_in_inference(self):
        layer = QRNN(500, zoneout=0.3, output_gate=False, return_sequences=True, seed=1)
        x = np.ones((1, 3, 4), "float32")
        layer.build(x.shape)
        layer.cell.bias.assign(np.repeat([1.0, 100.0], 500))  # f = 1
        first, second = (flat(layer(x, training=True))[0] for _ in range(2))
        kept = (first[:, 0] == 0).mean()
        self.assertAlmostEqual(kept, 0.3, delta=0.08)
        self.assertFalse(np.array_equal(first == 0, second == 0))
        self.assertAlmostEqual((first[:, 1] == 0).mean(), 0.09, delta=0.05)
        z = np.tanh(1 + x[0, 0] @ backend.to_numpy(layer.cell.kernel)[0, :, :500])
        inference = flat(layer(x))[0]
        np.testing.assert_allclose(inference[0, 0], 0.7 * z, rtol=1e-5)
        np.testing.assert_array_equal(inference, flat(layer(x))[0])

    def test_zoneout_of_everything_keeps_the_state(self):
        for one in self.make_pair(zoneout=1.0, return_state=True):
            states = [inputs(time=size)[:, :, 0] for size in one.cell.state_size]
            for training in (True, False):
                _, _, c, _ = flat(one(inputs(), initial_state=states, training=training))
                np.testing.assert_array_equal(c, states[1])

    def test_weight_dropout_is_one_mask_for_all_rows_and_steps(self):
        layer = QRNN(1, weight_dropout=0.5, output_gate=False, return_sequences=True, seed=1)
        x = np.tile(np.eye(40, dtype="float32"), (2, 1, 1))  # Step t sees weight t alone.
        layer.build(x.shape)
        kernel = np.zeros((1, 40, 2))
        kernel[..., 0] = 0.1
        layer.cell.kernel.assign(kernel)
        layer.cell.bias.assign([0.0, 100.0])
        first, second = (flat(layer(x, training=True))[0][..., 0] for _ in range(2))
        np.testing.assert_array_equal(first[0], first[1])
        self.assertFalse(np.array_equal(first, second))
        np.testing.assert_allclose(np.unique(first), [0, np.tanh(0.2)], rtol=1e-5)
        np.testing.assert_allclose(flat(layer(x))[0], np.tanh(0.1), rtol=1e-5)

    def test_a_model_survives_a_keras_file_without_custom_objects(self):
        sequence = keras.Input((None, 4))
        hidden = keras.layers.Bidirectional(
            QRNN(6, window=2, zoneout=0.1, weight_dropout=0.2, return_sequences=True)
        )(sequence)
        model = keras.Model(sequence, QRNN(5, output_gate=False)(hidden))
        x = inputs(dtype="float32")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.saving.load_model(path)
        np.testing.assert_allclose(loaded(x), model(x), rtol=0, atol=1e-6)
        self.assertEqual(loaded.layers[1].forward_layer.weight_dropout, 0.2)

    def test_a_compiled_training_step_of_any_length_runs(self):
        model = keras.Sequential([keras.Input((None, 4)), QRNN(6, window=2, zoneout=0.1)])
        model.compile("adam", "mse")
        for time in (3, 5):
            loss = model.train_on_batch(inputs(time=time), np.zeros((BATCH, 6)))
            self.assertTrue(np.isfinite(loss))

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "SavedModels are TensorFlow's")
    def test_a_saved_model_of_any_length_gives_the_same(self):
        import tensorflow as tf

        model = keras.Sequential([keras.Input((None, 4)), QRNN(6, window=2)])
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, verbose=False)
            loaded = tf.saved_model.load(folder)
            for time in (1, 5):
                x = inputs(time=time, dtype="float32")
                np.testing.assert_allclose(loaded.serve(x), model(x), rtol=0, atol=1e-6)

    def test_arguments_out_of_range_are_named(self):
        for options, message in (
            (dict(units=0), "`units` must be positive, received 0"),
            (dict(units=6, window=0), "`window` must be positive, received 0"),
            (dict(units=6, zoneout=1.5), r"`zoneout` must be in \[0, 1\], received 1.5"),
            (dict(units=6, weight_dropout=1.0), r"`weight_dropout` must be in \[0, 1\)"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                QRNN(**options)


class QRNNCellInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return QRNNCell(6, window=2, zoneout=0.1, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
