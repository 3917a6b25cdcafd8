"""What every recurrent cell must do inside Keras: a mixin for the cells' tests."""

import json
import os
import tempfile
import unittest

import keras
import numpy as np

from tests import backend
from tests.backend import FLOAT, tolerance

BATCH, TIME, FEATURES = 2, 5, 4


def inputs(batch=BATCH, time=TIME, features=FEATURES, seed=0, dtype=FLOAT):
    return np.random.default_rng(seed).normal(size=(batch, time, features)).astype(dtype)


def flat(values):
    return [np.asarray(value) for value in keras.tree.flatten(backend.to_numpy(values))]


class CellChecks:
    """Mix into a `parameterized.TestCase` that defines `make_cell(dtype=None)`.

    `make_cell` returns a new cell of the same configuration each time, deterministic in inference.
    Set `half_precision_tolerance` where the cell amplifies rounding.
    """

    half_precision_tolerance = 0.1

    def setUp(self):
        super().setUp()
        keras.utils.set_random_seed(0)  # Chance weights would now and then amplify rounding.

    def make_layer(self, cell=None, dtype=FLOAT, **options):
        return keras.layers.RNN(cell or self.make_cell(dtype=dtype), dtype=dtype, **options)

    def assert_all_close(self, actual, expected, float64=1e-12, float32=1e-5):
        actual, expected = flat(actual), flat(expected)
        self.assertEqual(len(actual), len(expected))
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(float64, float32))

    def test_outputs_and_states_have_the_declared_shapes(self):
        layer = self.make_layer(return_sequences=True, return_state=True)
        outputs, *states = layer(inputs())
        self.assertEqual(tuple(outputs.shape), (BATCH, TIME, layer.cell.output_size))
        sizes = keras.tree.flatten(layer.cell.state_size)
        shapes = [tuple(state.shape) for state in keras.tree.flatten(states)]
        self.assertEqual(shapes, [(BATCH, size) for size in sizes])
        symbolic = layer(keras.Input((None, FEATURES), dtype=FLOAT))
        self.assertEqual(symbolic[0].shape, (None, None, layer.cell.output_size))

    def test_a_model_with_it_survives_a_keras_file_without_custom_objects(self):
        sequence = keras.Input((None, FEATURES))
        hidden = keras.layers.Bidirectional(
            keras.layers.RNN(self.make_cell(), return_sequences=True)
        )(sequence)
        hidden = keras.layers.RNN([self.make_cell(), self.make_cell()], return_sequences=True)(
            hidden
        )
        model = keras.Model(sequence, keras.layers.RNN(self.make_cell())(hidden))
        x = inputs(dtype="float32")
        expected = backend.to_numpy(model(x))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.models.load_model(path)
        np.testing.assert_array_equal(backend.to_numpy(loaded(x)), expected)
        for one, other in zip(loaded.layers, model.layers, strict=True):
            self.assertEqual(type(one), type(other))
        configs = (
            json.dumps(m.layers[-1].cell.get_config(), sort_keys=True) for m in (loaded, model)
        )
        self.assertEqual(*configs)  # As JSON: a wrapped cell's shapes come back as lists.

    def test_masked_steps_keep_the_states(self):
        layer = self.make_layer(return_state=True)
        x = inputs()
        mask = np.ones((BATCH, TIME), bool)
        mask[0, 3:] = False
        mask[1, :2] = False
        padded = x.copy()
        padded[~mask] = 100.0
        actual = flat(layer(padded, mask=mask))
        for row in range(BATCH):
            alone = flat(layer(x[row : row + 1][:, mask[row]]))
            self.assert_all_close([value[row] for value in actual], [value[0] for value in alone])

    def test_a_row_alone_gives_the_same_as_in_a_batch(self):
        layer = self.make_layer(return_sequences=True)
        x = inputs(batch=3)
        together = backend.to_numpy(layer(x))
        self.assert_all_close(layer(x[1:2]), together[1:2])

    def test_a_sequence_in_two_parts_gives_the_same(self):
        layer = self.make_layer(return_sequences=True, return_state=True)
        x = inputs()
        whole, *last = layer(x)
        first, *states = layer(x[:, :2])
        second, *states = layer(x[:, 2:], initial_state=states)
        self.assert_all_close(keras.ops.concatenate([first, second], axis=1), whole)
        self.assert_all_close(states, last)

    def test_stateful_layers_go_on_and_reset_to_the_start(self):
        layer = self.make_layer(stateful=True)
        x = inputs()
        whole = backend.to_numpy(self.make_layer(layer.cell)(x))
        start = backend.to_numpy(layer(x[:, :2]))
        self.assert_all_close(layer(x[:, 2:]), whole)
        layer.reset_state()
        self.assert_all_close(layer(x[:, :2]), start)

    def test_going_backwards_is_the_reversed_sequence(self):
        layer = self.make_layer()
        x = inputs()
        backwards = self.make_layer(layer.cell, go_backwards=True)
        self.assert_all_close(backwards(x), layer(x[:, ::-1]))

    def test_unrolling_changes_nothing(self):
        layer = self.make_layer(return_sequences=True)
        x = inputs()
        unrolled = self.make_layer(layer.cell, return_sequences=True, unroll=True)
        self.assert_all_close(unrolled(x), layer(x))

    @unittest.skipIf(FLOAT == "float32", "Keras on JAX has no float64")
    def test_gradients_equal_finite_differences(self):
        layer = self.make_layer(return_sequences=True)
        x = inputs()
        rng = np.random.default_rng(1)
        c = rng.normal(size=layer(x).shape)

        def loss(x):
            return keras.ops.sum(layer(x) * c)

        _, (gradient,) = backend.value_and_gradients(loss, x)
        _, weight_gradients = backend.weight_gradients(layer, lambda: loss(x))
        step, along = 1e-6, rng.normal(size=x.shape)
        slope = float(loss(x + step * along) - loss(x - step * along)) / (2 * step)
        self.assertAlmostEqual(
            float((gradient * along).sum()), slope, delta=1e-6 * (1 + abs(slope))
        )
        for variable, (name, gradient) in zip(
            layer.trainable_variables, weight_gradients.items(), strict=True
        ):
            value, along = backend.to_numpy(variable), rng.normal(size=variable.shape)
            ends = []
            for sign in (1, -1):
                variable.assign(value + sign * step * along)
                ends.append(float(loss(x)))
            variable.assign(value)
            slope = (ends[0] - ends[1]) / (2 * step)
            actual = float((gradient * along).sum())
            self.assertAlmostEqual(actual, slope, delta=1e-6 * (1 + abs(slope)), msg=name)

    def test_half_precision_is_close_to_float32(self):
        x = inputs(time=8, dtype="float32")
        reference = self.make_layer(dtype="float32", return_sequences=True)
        expected = backend.to_numpy(reference(x))
        for policy in ("mixed_float16", "mixed_bfloat16"):
            layer = self.make_layer(dtype=policy, return_sequences=True)
            layer.build(x.shape)
            layer.set_weights(reference.get_weights())
            actual = layer(x)
            self.assertEqual(
                keras.backend.standardize_dtype(actual.dtype), policy.removeprefix("mixed_")
            )
            actual = backend.to_numpy(keras.ops.cast(actual, "float32"))
            np.testing.assert_allclose(
                actual, expected, rtol=0, atol=self.half_precision_tolerance, err_msg=policy
            )

    def test_all_zero_inputs_give_finite_values_and_gradients(self):
        layer = self.make_layer(dtype="float32", return_sequences=True)
        x = np.zeros((BATCH, TIME, FEATURES), "float32")
        value, (gradient,) = backend.value_and_gradients(
            lambda x: keras.ops.sum(keras.ops.square(layer(x))), x
        )
        self.assertTrue(np.isfinite(value) and np.isfinite(gradient).all())

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "tf.function is TensorFlow's")
    def test_a_compiled_graph_gives_the_same(self):
        import tensorflow as tf

        layer = self.make_layer(dtype="float32", return_sequences=True)
        x = inputs(dtype="float32")
        expected = layer(x)
        compiled = tf.function(layer, jit_compile=True)
        self.assert_all_close(compiled(x), expected, float64=1e-5)

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "SavedModels are TensorFlow's")
    def test_a_saved_model_in_a_v1_session_gives_the_same(self):
        import tensorflow as tf

        sequence = keras.Input((None, FEATURES), name="x")
        model = keras.Model(sequence, keras.layers.RNN(self.make_cell())(sequence))
        x = inputs(dtype="float32")
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, verbose=False)
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                loaded = tf.compat.v1.saved_model.load(session, ["serve"], folder)
                signature = loaded.signature_def["serving_default"]
                (output,) = (info.name for info in signature.outputs.values())
                (feed,) = (info.name for info in signature.inputs.values())
                actual = session.run(output, {feed: x})
        self.assert_all_close(actual, model(x), float64=1e-5)

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "float64 is TensorFlow's")
    def test_float32_agrees_with_float64(self):
        precise = self.make_layer(dtype="float64", return_sequences=True)
        x = inputs(dtype="float64")
        expected = precise(x)
        layer = self.make_layer(dtype="float32", return_sequences=True)
        layer.build(x.shape)
        layer.set_weights(precise.get_weights())
        self.assert_all_close(layer(x.astype("float32")), expected, float64=1e-5)
