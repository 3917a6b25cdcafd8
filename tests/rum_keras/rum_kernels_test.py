"""The whole-sequence kernels of RUM: equal to the cell's steps, safe, and kept from exports."""

import itertools
import os
import subprocess
import sys
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from tests import backend

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    from rum_keras import rum_gradient, rum_kernels, rum_recurrence

BATCH, TIME, FEATURES, UNITS = 5, 7, 4, 6
# Rows: right, left and scattered padding, nothing but padding, none.
MASK = np.array(
    [[1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0, 1], [0] * 7, [1] * 7], bool
)


def layers(dtype="float64", units=UNITS, features=FEATURES, sequence_options=(), **options):
    """Returns a RUM and an RNN around a cell of the same random weights."""
    sequence_options = {"return_sequences": True, "return_state": True, **dict(sequence_options)}
    layer = rum_keras.RUM(units, dtype=dtype, **sequence_options, **options)
    cell = rum_keras.RUMCell(units, dtype=dtype, **options)
    reference = keras.layers.RNN(cell, dtype=dtype, **sequence_options)
    rng = np.random.default_rng(units)
    for built in (layer, reference):
        built.build((BATCH, TIME, features))
    for ours, theirs in zip(layer.weights, reference.weights, strict=True):
        if "seed" not in ours.path:
            ours.assign(0.7 * rng.normal(size=ours.shape))
            theirs.assign(ours)
    return layer, reference


def arguments(layer, seed=0):
    """Returns random inputs and states, with an orthogonal memory."""
    rng, units = np.random.default_rng(seed), layer.cell.units
    values = [rng.normal(size=(BATCH, TIME, FEATURES)), rng.normal(size=(BATCH, units))]
    if layer.cell.lambda_:
        R = np.linalg.qr(rng.normal(size=(BATCH, units, units)))[0]
        values.append((R - np.eye(units)).reshape(BATCH, -1))
    return [tf.constant(value, layer.cell.compute_dtype) for value in values]


def values_and_gradients(layer, inputs, mask=None, training=False):
    """Returns outputs, states, and the gradients of inputs, states and weights of a random loss."""
    rng = np.random.default_rng(1)
    x, *states = inputs
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = layer(x, initial_state=states, mask=mask, training=training)
        values = [tf.cast(value, "float64") for value in tf.nest.flatten(values)]
        loss = sum(tf.reduce_sum(value * rng.normal(size=value.shape)) for value in values)
    variables = [variable.value for variable in layer.trainable_variables]
    gradients = tape.gradient(loss, [*inputs, *variables], unconnected_gradients="zero")
    return [*values, *gradients]


def degenerate_directions(units, dtype):
    """Returns epsilon and tau, one case a row: (cases, units)."""
    rng = np.random.default_rng(0)
    v, w = np.linalg.qr(rng.normal(size=(units, 2)))[0].T
    zero = np.zeros(units)
    cases = [(v, 2 * v), (v, v + 1e-4 * w), (v, -v), (v, -3 * v), (v, -v + 1e-2 * w)]
    cases += [(v, -v + 1e-4 * w), (zero, w), (v, zero), (zero, zero)]
    if dtype != "mixed_float16":  # Which cannot hold gradients beyond 65,504.
        cases += [(v, -v + 1e-6 * w), (1e-8 * v, w), (1e-5 * v, 1e-5 * w)]
        cases += [(1e3 * v, -1e3 * v), (1e3 * v, 1e-4 * w)]
    return np.array([case[0] for case in cases]), np.array([case[1] for case in cases])


def degenerate_layers(dtype, **options):
    """Returns layers that take `[tau | epsilon]` for input, and three steps of every case of it."""
    x = np.stack([np.hstack(degenerate_directions(UNITS, dtype)[::-1])] * 3, axis=1)
    x[:, 1] = 0.5 * x[::-1, 2]
    built = layers(dtype, UNITS, 2 * UNITS, {"return_state": False}, **options)
    for layer in built:
        blocks, gate = np.eye(2 * UNITS), np.full((2 * UNITS, UNITS), 0.1)
        layer.cell.kernel.assign(np.hstack([blocks[:, :UNITS], gate, blocks[:, UNITS:]]))
        layer.cell.recurrent_kernel.assign(np.zeros((UNITS, 2 * UNITS)))
        layer.cell.bias.assign(np.zeros(3 * UNITS))
    h = np.random.default_rng(2).normal(size=(len(x), UNITS))
    states = [h, np.zeros((len(x), UNITS**2))][: 1 + options["lambda_"]]
    dtype = built[0].cell.compute_dtype
    return built, [tf.constant(value, dtype) for value in (x, *states)]


@unittest.skipIf(keras.backend.backend() != "tensorflow", "The kernels are TensorFlow's.")
class RUMKernelsTest(parameterized.TestCase):
    def assert_equal_to_the_cell(self, built, inputs, tolerance=1e-10, **call):
        results = [values_and_gradients(layer, inputs, **call) for layer in built]
        for ours, theirs in zip(*map(backend.to_numpy, results), strict=True):
            scale = max(1.0, np.abs(theirs).max())
            np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=tolerance)

    @parameterized.parameters(*itertools.product((0, 1), (None, 1.5), (None, MASK)))
    def test_values_and_gradients_are_those_of_the_cell(self, lambda_, eta, mask):
        built = layers(lambda_=lambda_, eta=eta)
        self.assert_equal_to_the_cell(built, arguments(built[0]), mask=mask)

    @parameterized.parameters((0, None, None), (0, 1.5, MASK), (1, None, MASK), (1, 1.5, None))
    def test_compiled_values_and_gradients_are_those_of_the_cell(self, lambda_, eta, mask):
        built = layers(lambda_=lambda_, eta=eta)
        self.assert_equal_to_the_cell(built, arguments(built[0]), mask=mask, training=True)

    @parameterized.parameters("tanh", "sigmoid", "softsign", "linear")
    def test_activations(self, activation):
        built = layers(lambda_=1, activation=activation)
        self.assertTrue(rum_kernels.supports(built[0].cell))
        self.assert_equal_to_the_cell(built, arguments(built[0]))

    @parameterized.parameters(*itertools.product((0, 1), (1, 2, 3)))
    def test_small_states(self, lambda_, units):
        built = layers(lambda_=lambda_, units=units)
        self.assert_equal_to_the_cell(built, arguments(built[0]))

    @parameterized.parameters(
        {"go_backwards": True},
        {"zero_output_for_mask": True},
        {"return_sequences": False},
        {"return_sequences": False, "zero_output_for_mask": True, "go_backwards": True},
    )
    def test_options_of_the_sequence(self, **options):
        built = layers(lambda_=1, eta=0.5, sequence_options=options)
        self.assert_equal_to_the_cell(built, arguments(built[0]), mask=MASK)

    @parameterized.parameters({"trainable_rotation": False}, {"use_bias": False})
    def test_options_of_the_cell(self, **options):
        built = layers(lambda_=1, **options)
        self.assert_equal_to_the_cell(built, arguments(built[0]))

    def test_dropout_of_the_inputs(self):
        built = layers(lambda_=0, dropout=0.5, seed=3)
        self.assert_equal_to_the_cell(built, arguments(built[0]), training=True)

    @parameterized.parameters(*itertools.product(("mixed_float16", "mixed_bfloat16"), (0, 1)))
    def test_mixed_precision_is_that_of_the_cell(self, dtype, lambda_):
        built = layers(dtype=dtype, lambda_=lambda_)
        ours, theirs = (
            backend.to_numpy(values_and_gradients(layer, arguments(layer))) for layer in built
        )
        # Gradients pass through products in half precision, in another order: not to the bit.
        for count, tolerance in ((2 + lambda_, 1e-2), (None, 5e-2)):
            for one, other in zip(ours[:count], theirs[:count], strict=True):
                scale = max(1.0, np.abs(other).max())
                np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=tolerance)

    @parameterized.parameters(*itertools.product((0, 1), (None, 1.0)))
    def test_degenerate_directions_as_in_the_cell(self, lambda_, eta):
        built, inputs = degenerate_layers("float64", lambda_=lambda_, eta=eta)
        # Where |epsilon + tau| = 1e-6, gradients of 1e6 come of nearly equal numbers.
        self.assert_equal_to_the_cell(built, inputs, tolerance=1e-8)

    @parameterized.parameters(
        *itertools.product(("float32", "mixed_float16", "mixed_bfloat16"), (0, 1), (None, 1.0))
    )
    def test_degenerate_directions_give_finite_values_and_gradients(self, dtype, lambda_, eta):
        (layer, _), inputs = degenerate_layers(dtype, lambda_=lambda_, eta=eta)
        for value in values_and_gradients(layer, inputs, training=dtype == "float32"):
            self.assertTrue(np.isfinite(value).all())

    def test_slopes_are_those_of_the_forward_pass_near_antiparallel_directions(self):
        rng = np.random.default_rng(0)
        epsilon = rng.normal(size=(3, 50, UNITS)).astype("float32")
        tau = (-epsilon + 1e-4 * rng.normal(size=epsilon.shape)).astype("float32")
        x = np.concatenate([tau, np.full_like(tau, -200)], -1)  # The gate takes the candidate.
        options = rum_recurrence.Options(UNITS, 1, None, keras.activations.relu, "float32", True)
        sequence = rum_recurrence.Arguments(
            *map(tf.constant, (x, epsilon)),
            None,
            tf.zeros((UNITS, 2 * UNITS)),
            tf.constant(rng.normal(size=(50, UNITS)), "float32"),
            tf.zeros((50, UNITS, UNITS)),
        )
        H, D, saved = rum_kernels._island(rum_recurrence.forward, options)(True, sequence)
        dH = tf.ones_like(H) * [[[1.0]], [[0.0]], [[0.0]]]  # The first step's gradient is delta.
        backward = rum_kernels._island(rum_gradient.backward, options)
        delta = backward(sequence, H, D, saved, dH, tf.zeros_like(D))[-1]
        np.testing.assert_array_equal(delta[0] != 0, H[0] > 0)

    @parameterized.parameters(100, 2000)
    def test_rotations_are_undone_to_rounding(self, time):
        rng, units = np.random.default_rng(0), 64
        x, epsilon = (rng.normal(size=(time, 2, size)) for size in (2 * units, units))
        U = rng.normal(size=(units, 2 * units)) / 8
        options = rum_recurrence.Options(units, 1, 1.0, keras.activations.relu, "float32", True)
        x, epsilon, U = (tf.constant(value, "float32") for value in (x, epsilon, U))
        zeros = tf.zeros((2, units)), tf.zeros((2, units, units))
        sequence = rum_recurrence.Arguments(x, epsilon, None, U, *zeros)
        _, D, saved = rum_kernels._island(rum_recurrence.forward, options)(True, sequence)
        inverse_epsilon = rum_recurrence.inverse_norm(epsilon, 1e-12)
        a = epsilon * inverse_epsilon
        m = rum_recurrence.bisector(a, saved.t)[1]
        two = rum_recurrence.twice(inverse_epsilon, saved.inverse_tau)
        lefts = rum_recurrence.left(saved.Ra, saved.Rm, a, m, two)
        a, m, left_a, left_m = (value.numpy() for value in (a, m, *lefts))
        R = last_R = D.numpy() + np.eye(units, dtype="float32")
        for t in reversed(range(time)):
            R = R - left_a[t, :, :, None] * a[t, :, None] - left_m[t, :, :, None] * m[t, :, None]
        identity = np.broadcast_to(np.eye(units), R.shape)
        np.testing.assert_allclose(R, identity, atol=2e-6)
        np.testing.assert_allclose(last_R.transpose(0, 2, 1) @ last_R, identity, atol=1e-5)

    @parameterized.parameters(*itertools.product((0, 1), (False, True)))
    def test_only_training_is_compiled_by_xla(self, lambda_, training):
        layer = rum_keras.RUM(UNITS, lambda_=lambda_)

        @tf.function(input_signature=[tf.TensorSpec((None, None, FEATURES))])
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, training=training)
            return tape.gradient(y, x)

        definition = str(gradient.get_concrete_function().graph.as_graph_def())
        self.assertEqual("_XlaMustCompile" in definition, training)

    def test_fit_with_an_odd_last_batch_learns_what_the_cell_learns(self):
        built = layers("float32", lambda_=1, sequence_options={"return_state": False})
        x = arguments(built[0])[0].numpy()
        learnt = []
        for layer in built:
            model = keras.Sequential([keras.Input((None, FEATURES)), layer])
            model.compile("sgd", "mse")
            model.fit(x, x[..., :1], batch_size=4, epochs=2, shuffle=False, verbose=0)
            learnt.append(layer.cell.kernel.numpy())
        np.testing.assert_allclose(*learnt, atol=1e-6)

    def test_within_a_strategy_and_within_xla(self):
        built = layers(lambda_=1)
        inputs = arguments(built[0])
        strategy = tf.distribute.MirroredStrategy(["CPU:0"])

        def gradients(layer):
            return values_and_gradients(layer, inputs, training=True)

        expected = backend.to_numpy(gradients(built[1]))
        in_strategy = tf.function(lambda: strategy.run(gradients, args=(built[0],)))
        in_xla = tf.function(lambda: gradients(built[0]), jit_compile=True)
        for function in (in_strategy, in_xla):
            for ours, theirs in zip(backend.to_numpy(function()), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())

    @parameterized.parameters(
        {"layer_norm": True},
        {"zoneout": 0.5},
        {"return_angle": True},
        {"use_update_gate": False},
        {"activation": "elu"},
        {"recurrent_activation": "hard_sigmoid"},
        {"recurrent_dropout": 0.5},
    )
    def test_other_configurations_take_the_steps_of_the_cell(self, **options):
        built = layers(lambda_=1, **options)
        self.assertFalse(rum_kernels.supports(built[0].cell))
        x, *states = arguments(built[0])
        ours, theirs = (layer(x, initial_state=states)[0] for layer in built)
        np.testing.assert_array_equal(ours, theirs)

    @parameterized.parameters(False, True)
    def test_a_second_derivative_is_refused(self, training):
        layer, x = layers("float32", lambda_=0)[0], tf.ones((BATCH, TIME, FEATURES))
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = layer(x, training=training)[0]
            gradient = inner.gradient(y, x)
        with self.assertRaisesRegex(NotImplementedError, "second derivative"):
            outer.gradient(gradient, x)


class WithoutTensorFlowTest(absltest.TestCase):
    def test_rum_runs_where_tensorflow_is_not_installed(self):
        program = (
            "import sys; sys.modules['tensorflow'] = None; import rum_keras, numpy as np; "
            "print(rum_keras.RUM(6, lambda_=1)(np.ones((2, 3, 4), 'float32')).shape)"
        )
        environment = {
            **os.environ,
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        self.assertEqual(result.stdout.strip(), "(2, 6)", msg=result.stderr)


if __name__ == "__main__":
    absltest.main()
