"""Ours against tensorflow-addons: its committed values, or those that `make addons` computed.

`make addons` sets RUM_KERAS_ADDONS to the folder of values that it has just recomputed.
"""

import os
import pathlib
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.beam_search import beam_search
from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from rum_keras.nas_cell import NASCell
from rum_keras.weight_norm import WeightNormConv1D, WeightNormDense
from tests import backend
from tests.rum_keras.cell_checks import flat

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
COMPUTED = os.environ.get("RUM_KERAS_ADDONS")
CELLS = {
    "layer_norm_lstm": lambda: LayerNormLSTMCell(6, "separate"),
    "nas": lambda: NASCell(6, use_bias=True),
    "nas_projection": lambda: NASCell(6, projection=3),
}
LAYERS = {
    "weight_norm_dense": lambda **start: WeightNormDense(6, **start),
    "weight_norm_conv1d": lambda **start: WeightNormConv1D(6, 3, padding="causal", **start),
}
# Ours: theirs, where the names differ.
THEIR_NAMES = {
    "v": "kernel",
    "kernel_gain": "kernel_norm_gamma",
    "kernel_offset": "kernel_norm_beta",
    "recurrent_gain": "recurrent_norm_gamma",
    "recurrent_offset": "recurrent_norm_beta",
    "state_gain": "state_norm_gamma",
    "state_offset": "state_norm_beta",
    "projection_kernel": "projection_weights",
}


def load(name, folder):
    with np.load(pathlib.Path(folder) / f"addons_{name}.npz") as file:
        return dict(file)


def their_name(weight):
    return "weight_" + THEIR_NAMES.get(weight.name, weight.name)


class AddonsTest(parameterized.TestCase):
    @parameterized.parameters(*CELLS)
    def test_values_and_gradients_are_equal(self, name):
        theirs = load(name, COMPUTED or GOLDEN)
        cell = CELLS[name]()
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True)
        layer.build(theirs["x"].shape)
        used = {their_name(weight) for weight in cell.weights}
        self.assertEqual(used, {key for key in theirs if key.startswith("weight_")})
        for weight in cell.weights:
            weight.assign(theirs[their_name(weight)])
        # The states of their NASCell are [c, h].
        order = ["0", "1"] if name == "layer_norm_lstm" else ["1", "0"]
        x, *states = (theirs[key] for key in ["x", *(f"state{i}" for i in order)])
        actual = flat(layer(x, initial_state=states))
        for one, key in zip(actual, ["y", *(f"last{i}" for i in order)], strict=True):
            np.testing.assert_allclose(one, theirs[key], rtol=0, atol=1e-5, err_msg=key)

        def loss(x, *states):
            return keras.ops.sum(layer(x, initial_state=list(states))[0] * theirs["cotangent"])

        _, gradients = backend.value_and_gradients(loss, x, *states)
        _, weight_gradients = backend.weight_gradients(layer, lambda: loss(x, *states))
        keys = ["x", *(f"state{i}" for i in order)]
        keys += [their_name(weight) for weight in layer.trainable_variables]
        for key, one in zip(keys, [*gradients, *weight_gradients.values()], strict=True):
            want = theirs[f"gradient_{key}"]
            scale = max(1, np.abs(want).max())
            np.testing.assert_allclose(one, want, rtol=0, atol=2e-5 * scale, err_msg=key)

    @parameterized.parameters(*LAYERS)
    def test_layers_and_their_gradients_are_equal(self, name):
        theirs = load(name, COMPUTED or GOLDEN)
        layer = LAYERS[name](
            kernel_initializer=lambda shape, dtype=None: keras.ops.convert_to_tensor(
                theirs["initial_kernel"], dtype
            )
        )
        layer.build(theirs["x"].shape)
        np.testing.assert_allclose(layer.g, theirs["initial_g"], rtol=1e-6)
        for weight in layer.weights:
            weight.assign(theirs[their_name(weight)])
        np.testing.assert_allclose(layer(theirs["x"]), theirs["y"], rtol=0, atol=1e-5)

        def loss(x):
            return keras.ops.sum(layer(x) * theirs["cotangent"])

        _, gradients = backend.value_and_gradients(loss, theirs["x"])
        _, weight_gradients = backend.weight_gradients(layer, lambda: loss(theirs["x"]))
        keys = ["x", *(their_name(weight) for weight in layer.trainable_variables)]
        for key, one in zip(keys, [*gradients, *weight_gradients.values()], strict=True):
            want = theirs[f"gradient_{key}"]
            scale = max(1, np.abs(want).max())
            np.testing.assert_allclose(one, want, rtol=0, atol=1e-5 * scale, err_msg=key)

    @parameterized.parameters(1, 40)
    def test_beam_search_finds_the_same_where_both_are_exact(self, beam):
        # Greedy, and a beam that holds all sequences: between, the two follow different rules.
        theirs = load("beam_search", COMPUTED or GOLDEN)
        table = theirs["table"]

        def step(tokens, state):
            position, code = state
            code = (5 * code + 3 * tokens + 1) % table.shape[1]
            rows = position * table.shape[1] + code
            flat_table = table.reshape(-1, table.shape[2])
            return keras.ops.take(flat_table, rows, axis=0), (position + 1, code)

        ours = beam_search(
            step,
            (np.int32(0), np.arange(3, dtype="int32")),
            np.zeros(3),
            end_id=0,
            beam=beam,
            max_length=len(table) - 1,
            length_penalty=0.0,
        )
        np.testing.assert_array_equal(ours.tokens, theirs[f"tokens{beam}"])
        np.testing.assert_allclose(ours.scores, theirs[f"scores{beam}"], rtol=1e-5)

    @parameterized.parameters(*CELLS, *LAYERS, "beam_search")
    @unittest.skipIf(COMPUTED is None, "computed by `make addons` only")
    def test_computed_values_are_the_committed_ones(self, name):
        computed, golden = load(name, COMPUTED), load(name, GOLDEN)
        self.assertEqual(set(computed), set(golden))
        for key, value in computed.items():
            np.testing.assert_allclose(value, golden[key], rtol=0, atol=1e-5, err_msg=key)


if __name__ == "__main__":
    absltest.main()
