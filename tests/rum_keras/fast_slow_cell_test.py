"""FastSlowCell against the released code's numbers, its definition and the published sizes."""

import pathlib
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from rum_keras.fast_slow_cell import FastSlowCell
from rum_keras.goru_cell import GORUCell
from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from rum_keras.zoneout import Zoneout
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras import released_lstm
from tests.rum_keras.cell_checks import CellChecks, flat, inputs

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
ZEROS = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}  # Quick to fill.
PREFIX = "m.fsrnn_cell.FSRNNCell"
RELEASED_RUM = f"{PREFIX}.Slow.rum_cell"


def lstm(units, dtype=None):
    return Zoneout(LayerNormLSTMCell(units, dtype=dtype), [0.1, 0.5])


def released_rum(arrays, kind, features=5):
    """Returns weights ("w") or gradients ("g") of the released RUM in the layout of RUMCell."""
    a = {
        key.removeprefix(f"{kind}_{RELEASED_RUM}."): value
        for key, value in arrays.items()
        if key.startswith(f"{kind}_{RELEASED_RUM}.")
    }
    target, gate = (a[f"gates.{name}.weights"] for name in ("fully_connected", "fully_connected_1"))
    gain, offset = (a[f"gates.ln_r_u.layer_norm_{name}"] for name in ("alpha", "bias"))
    return {
        "kernel": np.concatenate(
            [target[:features], gate[:features], a["candidate.fully_connected.weights"]], -1
        ),
        "recurrent_kernel": np.concatenate([target[features:], gate[features:]], -1),
        "bias": np.concatenate(
            [
                a["gates.fully_connected.biases"],
                a["gates.fully_connected_1.biases"],
                # The embedded input has none in the released code.
                np.full(8, 0.0 if kind == "w" else np.nan),
            ]
        ),
        "target_gain": gain[:8],
        "target_offset": offset[:8],
        "gate_gain": gain[8:],
        "gate_offset": offset[8:],
        "candidate_gain": a["candidate.ln_c.alpha"],
        "candidate_offset": a["candidate.ln_c.bias"],
    }


class ReleasedGORUCell(GORUCell):
    """With the singular matrix of the released code, which loses the last unit."""

    def recurrent_matrix(self):
        matrix = super().recurrent_matrix()
        kept = np.arange(self.units) < self.units - 1
        return matrix * keras.ops.cast(kept, matrix.dtype)


def released_goru(arrays, kind):
    """Returns weights ("w") or gradients ("g") of the released GORU in the layout of GORUCell."""
    prefix = f"{kind}_{PREFIX}.Slow.goru_cell"
    kernels = [arrays[f"{prefix}.W_{gate}"] for gate in "rg"]
    biases = [arrays[f"{prefix}.bias_{block}"] for block in "crg"]
    angles = [arrays[f"{kind}_m.goru.theta_{layer}"][0] for layer in (0, 1)]
    return {
        "kernel": arrays[f"{prefix}.U"],
        "recurrent_kernel": np.concatenate(kernels, -1),
        "bias": np.concatenate(biases),
        "theta": np.concatenate(angles),
    }


def golden_layer(slow, arrays, dtype):
    """Returns the layer with a golden file's weights, and pairs of a cell and its gradients."""
    slow_cell = {
        "lstm": lambda: lstm(7, dtype),
        "rum": lambda: rum_keras.RUMCell(8, eta=1.0, layer_norm=True, zoneout=0.1, dtype=dtype),
        "goru": lambda: ReleasedGORUCell(8, dtype=dtype),
    }[slow]()
    cell = FastSlowCell([lstm(5, dtype), lstm(5, dtype)], slow_cell, dtype=dtype)
    layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=dtype)
    layer.build((None, None, 4))
    lstms = {f"{PREFIX}.Fast_{i}": fast.cell for i, fast in enumerate(cell.fast_cells)}
    if slow == "lstm":
        lstms[f"{PREFIX}.Slow"] = slow_cell.cell
    for prefix, one in lstms.items():
        released_lstm.assign(one, arrays, prefix)
    gradients = [(one, released_lstm.gradients(arrays, prefix)) for prefix, one in lstms.items()]
    if slow != "lstm":
        released = {"rum": released_rum, "goru": released_goru}[slow]
        for name, value in released(arrays, "w").items():
            getattr(slow_cell, name).assign(value)
        gradients.append((slow_cell, released(arrays, "g")))
    return layer, gradients


class FastSlowGoldenTest(parameterized.TestCase):
    @parameterized.parameters("lstm", "rum", "goru")
    @unittest.skipIf(FLOAT == "float32", "the test below runs in float32")
    def test_equals_the_released_code_in_float32(self, slow):
        self.check_values(slow, "float32", 5e-5)

    @parameterized.parameters("lstm", "rum", "goru")
    def test_equals_the_released_code_and_its_gradients(self, slow):
        self.check_gradients(*self.check_values(slow, FLOAT, tolerance(1e-9, 5e-5)))

    def check_values(self, slow, dtype, atol):
        with np.load(GOLDEN / f"fsrnn_fast2_slow{slow}.npz") as file:
            arrays = dict(file)
        layer, weights = golden_layer(slow, arrays, dtype)
        names = ["fast_h", "fast_c", "slow_h", "slow_c"][: len(layer.cell.state_size)]
        x, *states = (arrays[name].astype(dtype) for name in ["x"] + [f"{n}0" for n in names])
        actual = flat(layer(x, initial_state=states))
        for value, name in zip(actual, ["y"] + [f"{n}T" for n in names], strict=True):
            np.testing.assert_allclose(value, arrays[name], rtol=0, atol=atol, err_msg=name)
        return layer, weights, arrays, names

    def check_gradients(self, layer, weights, arrays, names):
        x, *states = (arrays[name].astype(FLOAT) for name in ["x"] + [f"{n}0" for n in names])

        def loss(x, *states):
            outputs, *_ = layer(x, initial_state=list(states))
            return keras.ops.sum(outputs * arrays["c"].astype(FLOAT))

        _, gradients = backend.value_and_gradients(loss, x, *states)
        wanted = [arrays[f"g_{name}"] for name in ["x"] + [f"{n}0" for n in names]]
        pairs = list(zip(gradients, wanted, strict=True))
        for cell, expected in weights:
            _, actual = backend.weight_gradients(cell, lambda: loss(x, *states))
            self.assertEqual(set(actual), set(expected))
            pairs += [(actual[name], expected[name]) for name in expected]
        for gradient, want in pairs:
            known = ~np.isnan(want)
            scale = tolerance(1e-9, 1e-4) * max(1, abs(want[known]).max())
            np.testing.assert_allclose(gradient[known], want[known], rtol=0, atol=scale)


class FastSlowCellTest(parameterized.TestCase):
    def test_is_the_composition_of_its_cells(self):
        fast = [keras.layers.LSTMCell(6, dtype=FLOAT) for _ in range(4)]
        slow = keras.layers.GRUCell(7, dtype=FLOAT)
        cell = FastSlowCell(fast, slow, dtype=FLOAT)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
        x = inputs()
        outputs, *last = flat(layer(x))
        self.assertEqual([one.kernel.shape[0] for one in fast], [4, 7, 1, 1])
        chain, state, expected = [np.zeros((2, 6), FLOAT)] * 2, np.zeros((2, 7), FLOAT), []
        for t in range(x.shape[1]):
            output, chain = fast[0](x[:, t], chain)
            output, (state,) = slow(output, [state])
            output, chain = fast[1](output, chain)
            for one in fast[2:]:
                output, chain = one(np.zeros((2, 1), FLOAT), chain)
            expected.append(backend.to_numpy(output))
        np.testing.assert_allclose(outputs, np.stack(expected, 1), rtol=0, atol=tolerance(1e-12))
        for actual, want in zip(last, flat([*chain, state]), strict=True):
            np.testing.assert_allclose(actual, want, rtol=0, atol=tolerance(1e-12))

    @parameterized.named_parameters(
        ("FS_LSTM_2", 2, 700, lambda: LayerNormLSTMCell(400, **ZEROS), 7_225_050),
        ("FS_LSTM_4", 4, 500, lambda: LayerNormLSTMCell(400, **ZEROS), 6_565_050),
        # The embedded input's bias, that the released code leaves out, is 1,000 more.
        (
            "FS_RUM_2",
            2,
            700,
            lambda: rum_keras.RUMCell(1000, eta=1.0, layer_norm=True, **ZEROS),
            11_247_450 + 1_000,
        ),
    )
    def test_language_models_have_the_published_number_of_parameters(
        self, fast, units, slow_cell, count
    ):
        fast_cells = [Zoneout(LayerNormLSTMCell(units, **ZEROS), [0.1, 0.5]) for _ in range(fast)]
        model = keras.Sequential(
            [
                keras.Input((None,), dtype="int32"),
                keras.layers.Embedding(50, 128),
                keras.layers.RNN(FastSlowCell(fast_cells, slow_cell()), return_sequences=True),
                keras.layers.Dense(50),
            ]
        )
        self.assertEqual(model.count_params(), count)

    def test_dropout_is_drawn_anew_in_each_step_and_only_in_training(self):
        class Identity(keras.layers.Layer):
            """Returns its input, so that what was dropped can be seen."""

            state_size = 8

            def call(self, inputs, states):
                return inputs, [states[0] + 1]  # The noise of steps with equal values is equal.

        layer = keras.layers.RNN(
            FastSlowCell([Identity(), Identity()], Identity(), dropout=0.2, seed=1),
            return_sequences=True,
        )
        x = np.ones((64, 10, 8), "float32")
        np.testing.assert_array_equal(flat(layer(x))[0], x)
        first, second = (flat(layer(x, training=True))[0] for _ in range(2))
        np.testing.assert_allclose(np.unique(first), [0, 1 / 0.8**3], rtol=1e-6)
        self.assertAlmostEqual((first > 0).mean(), 0.8**3, delta=4 * 0.5 / np.sqrt(first.size))
        for t in range(1, 10):
            self.assertTrue((first[:, t] != first[:, t - 1]).any())
        self.assertTrue((first != second).any())

    def test_trains_with_dropout_and_zoneout_of_all_cells_in_compiled_loops(self):
        fast_cells = [
            Zoneout(keras.layers.GRUCell(6, dropout=0.2, recurrent_dropout=0.1), 0.1),
            Zoneout(keras.layers.GRUCell(6), 0.1),
        ]
        slow_cell = rum_keras.RUMCell(7, zoneout=0.1, dropout=0.3)
        cell = FastSlowCell(fast_cells, slow_cell, dropout=0.35, seed=1)
        model = keras.Sequential([keras.Input((None, 4)), keras.layers.RNN(cell)])
        model.compile("sgd", "mse")
        model.fit(inputs(batch=4, dtype="float32"), np.zeros((4, 6)), batch_size=2, verbose=0)
        self.assertEqual(backend.to_numpy(cell.seed_generator.state).tolist(), [1, 2])
        for one in (*cell.fast_cells, cell.slow_cell):
            self.assertGreaterEqual(backend.to_numpy(one.seed_generator.state)[1], 2)

    @unittest.skipIf(FLOAT == "float32", "the same on JAX")
    def test_a_memory_stays_in_float32_beside_cells_in_half_precision(self):
        fast = [keras.layers.GRUCell(6, dtype="mixed_bfloat16") for _ in range(2)]
        cell = FastSlowCell(fast, rum_keras.RUMCell(7, lambda_=1, dtype="mixed_bfloat16"))
        self.assertEqual(cell.compute_dtype, "float32")
        layer = keras.layers.RNN(cell, return_state=True, dtype="mixed_bfloat16")
        output, *_ = layer(inputs(dtype="float32"))
        self.assertEqual(keras.backend.standardize_dtype(output.dtype), "bfloat16")

    def test_cells_that_cannot_be_combined_are_named(self):
        gru = keras.layers.GRUCell
        with self.assertRaisesRegex(ValueError, "share them; received .*\\[6\\], \\[5\\]"):
            FastSlowCell([gru(6), gru(5)], gru(7))
        with self.assertRaisesRegex(ValueError, "two or more"):
            FastSlowCell([gru(6)], gru(7))
        stack = keras.layers.StackedRNNCells([keras.layers.LSTMCell(6)])
        with self.assertRaisesRegex(ValueError, "flat lists of states"):
            FastSlowCell([gru(6), gru(6)], stack)
        with self.assertRaisesRegex(ValueError, "`dropout` must be .* below 1, received 1.0"):
            FastSlowCell([gru(6), gru(6)], gru(7), dropout=1.0)


class FastSlowInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        fast_cells = [keras.layers.GRUCell(5, dtype=dtype) for _ in range(2)]
        return FastSlowCell(fast_cells, GORUCell(7, dtype=dtype), dtype=dtype)


if __name__ == "__main__":
    absltest.main()
