"""Tests of the flags that choose the layers: none is ignored."""

import pathlib

from absl import flags
from absl.testing import absltest, parameterized

from zoo.ptb import layers

FOLDER = pathlib.Path(layers.__file__).parent
FLAGFILES = [*FOLDER.glob("*.flags"), *FOLDER.glob("weights/*/run.flags")]


def parse(*arguments):
    """Returns the flags of the layers; those of other modules are left out."""
    flag_values = flags.FlagValues()
    layers.define_flags(flag_values)
    flag_values(["program", *arguments], known_only=True)
    return flag_values


# A value of each flag that is not its default.
OTHER = {
    "layers": "--layers=2",
    "last_units": "--last_units=4",
    "fast_cells": "--fast_cells=3",
    "fast_units": "--fast_units=4",
    "zoneout_h": "--zoneout_h=0.5",
    "zoneout_c": "--zoneout_c=0.5",
    "first_window": "--first_window=3",
    "weight_dropout": "--weight_dropout=0.5",
    "eta": "--eta=0.5",
    "lambda_": "--lambda_=1",
    "activation": "--activation=tanh",
    "update_gate": "--noupdate_gate",
    "rum_layer_norm": "--norum_layer_norm",
}


def plain(config):
    """The configuration without names, which count up."""
    if isinstance(config, dict):
        return {key: plain(value) for key, value in config.items() if key != "name"}
    return [plain(value) for value in config] if isinstance(config, list | tuple) else config


class LayersTest(parameterized.TestCase):
    @parameterized.parameters(
        ("fs_rum", "--layers=3", "no --layers"),
        ("fs_lstm", "--last_units=3", "no --last_units"),
        ("fs_lstm", "--lambda_=1", "no --lambda_"),
        ("fs_goru", "--dropout=0.1,0.2,0.3", "more than two of --dropout"),
        ("hyper_lstm", "--zoneout_c=0.5", "no --zoneout_c"),
        ("layer_norm_lstm", "--norum_layer_norm", "no --rum_layer_norm"),
        ("lstm", "--eta=1", "no --eta"),
        ("lstm", "--weight_dropout=0.5", "no --weight_dropout"),
        ("lstm", "--fast_cells=4", "no --fast_cells"),
        ("nas", "--zoneout_h=0.5", "no --zoneout_h"),
        ("nas", "--activation=tanh", "no --activation"),
        ("qrnn", "--zoneout_h=0.5", "no --zoneout_h"),
        ("rum", "--zoneout_c=0.5", "no --zoneout_c"),
        ("rum", "--first_window=3", "no --first_window"),
        ("weight_dropped_lstm", "--noupdate_gate", "no --update_gate"),
        ("weight_dropped_lstm", "--fast_units=7", "no --fast_units"),
    )
    def test_a_flag_that_the_model_does_not_take_is_refused(self, model, argument, message):
        flag_values = parse(f"--model={model}", argument)
        expected = rf"\A--model={model} does not take these flags: {message}[^\n]+\Z"
        with self.assertRaisesRegex(SystemExit, expected):
            layers.layers_from_flags(flag_values)

    def test_all_flags_that_the_model_does_not_take_are_named_with_the_models_that_do(self):
        flag_values = parse("--model=lstm", "--eta=1", "--first_window=3")
        message = r"no --first_window \(it is for qrnn\); no --eta \(it is for fs_rum, rum\)\."
        with self.assertRaisesRegex(SystemExit, message):
            layers.check_flags(flag_values)

    @parameterized.parameters(*layers.FAST_SLOW, *layers.STACKS)
    def test_every_flag_that_a_model_takes_changes_its_layers(self, model):
        sizes = ["--units=8", "--fast_units=6"] if model in layers.FAST_SLOW else ["--units=8"]

        def configurations(*more):
            made = layers.layers_from_flags(parse(f"--model={model}", *sizes, *more))
            return [plain(layer.get_config()) for layer in made]

        before = configurations()
        self.assertEqual(configurations(), before)
        for name, models in layers.TAKEN_BY.items():
            if model in models:
                with self.subTest(name):
                    self.assertNotEqual(configurations(OTHER[name]), before)

    @parameterized.parameters("--dropout=1.5", "--dropout=-0.1", "--dropout=half", "--dropout=0.1,")
    def test_dropout_that_is_no_fraction_is_refused(self, argument):
        with self.assertRaisesRegex(flags.IllegalFlagValueError, "must be fractions from 0 to 1"):
            parse(argument)

    def test_all_flagfiles_and_all_runs_of_kept_weights_are_accepted(self):
        self.assertGreater(len(FLAGFILES), 18)
        for path in FLAGFILES:
            with self.subTest(path.relative_to(FOLDER)):
                layers.check_flags(parse(f"--flagfile={path}"))


if __name__ == "__main__":
    absltest.main()
