"""The RUM layer is RNN(RUMCell), as a layer of its own."""

import os
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs


class RUMInKerasTest(CellChecks, parameterized.TestCase):
    """The checks of the cells, on the layer."""

    def make_cell(self, dtype=None):
        return rum_keras.RUMCell(6, lambda_=1, dtype=dtype)

    def make_layer(self, cell=None, dtype=FLOAT, **options):
        layer = rum_keras.RUM(6, lambda_=1, dtype=dtype, **options)
        if cell is not None:
            layer.cell = cell
        return layer


class RUMTest(parameterized.TestCase):
    @parameterized.product(
        options=[{}, dict(lambda_=1), dict(lambda_=1, eta=1.0, layer_norm=True, activation="tanh")],
        layer_options=[{}, dict(return_sequences=True, return_state=True, go_backwards=True)],
    )
    def test_equals_a_cell_in_an_rnn(self, options, layer_options):
        layer = rum_keras.RUM(6, dtype=FLOAT, **options, **layer_options)
        cell = rum_keras.RUMCell(6, dtype=FLOAT, **options)
        rnn = keras.layers.RNN(cell, dtype=FLOAT, **layer_options)
        x = inputs()
        mask = np.array([[True] * 5, [False, True, True, False, False]])
        rnn.build(x.shape)
        layer.build(x.shape)
        layer.set_weights(rnn.get_weights())
        for one, other in zip(
            keras.tree.flatten(backend.to_numpy(layer(x, mask=mask))),
            keras.tree.flatten(backend.to_numpy(rnn(x, mask=mask))),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, atol=tolerance(1e-12))

    def test_every_option_survives_a_keras_file(self):
        options = dict(
            lambda_=1,
            eta=0.5,
            activation="softsign",
            recurrent_activation="hard_sigmoid",
            use_bias=False,
            use_update_gate=True,
            trainable_rotation=False,
            layer_norm=True,
            zoneout=0.1,
            return_angle=True,
            kernel_initializer="glorot_normal",
            kernel_regularizer="l2",
            recurrent_constraint="unit_norm",
            dropout=0.2,
            recurrent_dropout=0.3,
            seed=7,
            return_sequences=True,
            zero_output_for_mask=True,
            activity_regularizer="l1",
        )
        sequence = keras.Input((None, 4))
        model = keras.Model(sequence, rum_keras.RUM(6, **options)(sequence))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.models.load_model(path)
        layer, again = model.layers[-1], loaded.layers[-1]
        self.assertEqual(again.get_config(), layer.get_config())
        for name, value in options.items():
            holder = again if hasattr(again, name) else again.cell
            if isinstance(value, (bool, float, int)):
                self.assertEqual(getattr(holder, name), value, msg=name)
        x = inputs(dtype="float32")
        np.testing.assert_array_equal(backend.to_numpy(loaded(x)), backend.to_numpy(model(x)))

    def test_a_reset_layer_starts_from_the_identity(self):
        layer = rum_keras.RUM(6, lambda_=1, stateful=True, return_state=True)
        x = inputs(dtype="float32")
        first = backend.to_numpy(layer(x))
        layer(x)
        layer.reset_state()
        for one, other in zip(backend.to_numpy(layer(x)), first, strict=True):
            np.testing.assert_array_equal(one, other)

    @parameterized.parameters("mixed_float16", "mixed_bfloat16")
    def test_a_stateful_memory_is_not_rounded_between_batches(self, policy):
        layer = rum_keras.RUM(6, lambda_=1, stateful=True, dtype=policy)
        for seed in range(3):
            layer(inputs(seed=seed, dtype="float32"))
        R = backend.to_numpy(layer.states[1]).reshape(-1, 6, 6) + np.eye(6)
        products = R @ R.transpose(0, 2, 1)
        np.testing.assert_allclose(products, np.broadcast_to(np.eye(6), products.shape), atol=1e-5)

    def test_works_in_both_directions(self):
        layer = keras.layers.Bidirectional(rum_keras.RUM(6, lambda_=1, return_sequences=True))
        x = inputs(dtype="float32")
        outputs = backend.to_numpy(layer(x))
        backward = backend.to_numpy(layer.backward_layer(x))[:, ::-1]
        np.testing.assert_allclose(outputs[..., 6:], backward, atol=1e-6)

    def test_trains_in_a_model(self):
        keras.utils.set_random_seed(1)
        sequence = keras.Input((5, 4))
        outputs = keras.layers.Dense(1)(rum_keras.RUM(6, lambda_=1, dropout=0.1)(sequence))
        model = keras.Model(sequence, outputs)
        model.compile("adam", "mse")
        x = inputs(batch=8, dtype="float32")
        y = x[:, 0, :1]
        before = model.evaluate(x, y, verbose=0)
        model.fit(x, y, epochs=15, verbose=0)
        self.assertLess(model.evaluate(x, y, verbose=0), before)

    def test_an_input_of_rank_2_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected ndim=3, found ndim=2"):
            rum_keras.RUM(6)(np.ones((2, 4), "float32"))

    @parameterized.named_parameters(
        ("h_alone", [(2, 6)], r"h \(batch, 6\) and memory \(batch, 36\); received .*\(2, 6\)"),
        ("a_square_memory", [(2, 6), (2, 6, 6)], r"received .*\(2, 6, 6\)"),
        ("a_wide_h", [(2, 7), (2, 36)], r"received .*\(2, 7\)"),
    )
    def test_wrong_initial_states_are_refused(self, shapes, message):
        states = [np.zeros(shape, "float32") for shape in shapes]
        for layer in (rum_keras.RUM(6, lambda_=1), keras.layers.RNN(rum_keras.RUMCell(6, 1))):
            with self.assertRaisesRegex(ValueError, message):
                layer(inputs(dtype="float32"), initial_state=states)

    @parameterized.product(units=[1, 2, 8], distance=[0.0, 1e-6, 1e-3], training=[False, True])
    def test_compiled_memories_are_orthogonal_near_antiparallel_directions_too(
        self, units, distance, training
    ):
        # XLA rounds what it computes twice differently unless it is kept from it.
        rng = np.random.default_rng(0)
        kernel = rng.normal(size=(4, units))
        gate = np.zeros((4, units))
        target = -2.7 * kernel + distance * rng.normal(size=(4, units))
        layer = rum_keras.RUM(units, lambda_=1, return_state=True)
        cell = keras.layers.RNN(rum_keras.RUMCell(units, lambda_=1), return_state=True)
        x = rng.normal(size=(4, 20, 4)).astype("float32")
        for each in (layer, cell):
            each.build(x.shape)
            each.set_weights(
                [
                    np.concatenate([target, gate, kernel], axis=-1),
                    np.zeros((units, 2 * units)),
                    np.zeros(3 * units),
                ]
            )
            R = backend.to_numpy(compiled(each, x, training)[-1]).reshape(-1, units, units)
            R = R + np.eye(units)
            np.testing.assert_allclose(
                R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(units), R.shape), atol=5e-5
            )


def compiled(layer, x, training):
    """Calls the layer compiled by XLA."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(lambda x: layer(x, training=training))(x)
    import tensorflow as tf

    return tf.function(lambda x: layer(x, training=training), jit_compile=True)(x)


if __name__ == "__main__":
    absltest.main()
