"""Tests of the choice of a recurrent layer."""

from unittest import mock

import keras
from absl import flags
from absl.testing import absltest, parameterized

import rum_keras
from zoo import cells


def layer_from(*arguments, return_sequences=False):
    """Returns the layer that command line arguments choose."""
    flag_values = flags.FlagValues()
    cells.define_flags(flag_values)
    flag_values(["program", *arguments])
    return cells.layer_from_flags(return_sequences, flag_values)


class CellsTest(parameterized.TestCase):
    @parameterized.product(cell=sorted(cells.CELLS), return_sequences=(False, True))
    def test_every_cell_gives_a_recurrent_layer(self, cell, return_sequences):
        layer = cells.recurrent_layer(cell, 6, return_sequences)
        shape = layer(keras.Input((3, 4), batch_size=2)).shape
        units = 12 if cell in ("urnn", "urnn_full") else 6  # Real and imaginary parts.
        self.assertEqual(shape, (2, 3, units) if return_sequences else (2, units))

    def test_a_bare_cell_is_wrapped(self):
        with mock.patch.dict(cells.CELLS, simple=keras.layers.SimpleRNNCell):
            layer = cells.recurrent_layer("simple", 6, return_sequences=True, activation="relu")
        self.assertIsInstance(layer.cell, keras.layers.SimpleRNNCell)
        self.assertEqual(layer.cell.get_config()["activation"], "relu")
        self.assertEqual(layer(keras.Input((3, 4), batch_size=2)).shape, (2, 3, 6))

    def test_an_unknown_cell_is_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(ValueError, "one of eurnn, .*rum.*got 'vanilla'"):
            cells.recurrent_layer("vanilla", 6)

    @parameterized.parameters(
        ("lstm", "--eta=1", "eta"),
        ("gru", "--lambda_=0", "lambda_"),
        ("lstm", "--noupdate_gate", "use_update_gate"),
        ("gru", "--zoneout=0.1", "zoneout"),
    )
    def test_an_option_of_another_cell_is_refused(self, cell, argument, option):
        with self.assertRaisesRegex(SystemExit, f"(?i){cell}.*'{option}'"):
            layer_from(f"--cell={cell}", argument)

    def test_flags_reach_rum(self):
        layer = layer_from(
            "--units=6",
            "--lambda_=1",
            "--eta=0.5",
            "--activation=tanh",
            "--noupdate_gate",
            "--notrainable_rotation",
            "--layer_norm",
            "--zoneout=0.25",
            return_sequences=True,
        )
        self.assertIsInstance(layer, rum_keras.RUM)
        self.assertTrue(layer.return_sequences)
        expected = {
            "units": 6,
            "lambda_": 1,
            "eta": 0.5,
            "activation": "tanh",
            "use_update_gate": False,
            "trainable_rotation": False,
            "layer_norm": True,
            "zoneout": 0.25,
        }
        self.assertEqual(layer.cell.get_config() | expected, layer.cell.get_config())

    def test_without_flags_the_defaults_of_the_cell_hold(self):
        config = layer_from("--units=6").cell.get_config()
        default = rum_keras.RUM(6).cell.get_config()
        self.assertEqual(config | {"name": None}, default | {"name": None})


if __name__ == "__main__":
    absltest.main()
