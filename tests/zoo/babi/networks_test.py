"""Tests of the flags that choose bAbI's model: none is ignored."""

import pathlib

from absl import flags
from absl.testing import absltest, parameterized

from datasets import babi
from zoo.babi import networks

FOLDER = pathlib.Path(networks.__file__).parent
FLAGFILES = [*FOLDER.glob("*.flags"), *FOLDER.glob("weights/**/run.flags")]
KNOWN = babi.Vocabulary(("word",) * 20, ("answer",) * 6, 10, 7, 60, 5)


def parse(*arguments):
    """Returns the flags of the model; those of other modules are left out."""
    flag_values = flags.FlagValues()
    networks.define_flags(flag_values)
    flag_values(["program", *arguments], known_only=True)
    return flag_values


class NetworksTest(parameterized.TestCase):
    @parameterized.parameters(
        ("memn2n", ["--units=100"], "--units"),
        ("memn2n", ["--embedding=3", "--attention"], "--attention, no --embedding"),
        ("qrn", ["--pooling=sum", "--cell=lstm"], "--cell, no --pooling"),
        ("dnc", ["--lambda_=0"], "--lambda_"),
        ("sentence", ["--network_options=hops=9"], "--network_options"),
        ("word", ["--network_options=hops=9"], "--network_options"),
        ("word", ["--pooling=sum"], "--pooling"),
    )
    def test_a_flag_that_the_model_does_not_take_is_refused(self, model, arguments, names):
        with self.assertRaisesRegex(SystemExit, rf"\A--model={model} takes no {names}\. [^\n]+\Z"):
            networks.check_flags(parse(f"--model={model}", *arguments))

    @parameterized.parameters(
        ("memn2n", ["--network_options=units=9"]),
        ("sentence", ["--units=9", "--embedding=3", "--attention", "--pooling=sum", "--lambda_=1"]),
        ("word", ["--cell=eurnn", "--capacity=2", "--attention"]),
    )
    def test_flags_that_the_model_takes_are_accepted(self, model, arguments):
        flag_values = parse(f"--model={model}", *arguments)
        networks.check_flags(flag_values)
        self.assertEqual(networks.make_model(20, 6, KNOWN, flag_values).output_shape, (None, 6))

    def test_all_flagfiles_and_all_runs_of_kept_weights_are_accepted(self):
        self.assertGreater(len(FLAGFILES), 40)
        for path in FLAGFILES:
            with self.subTest(path.relative_to(FOLDER)):
                networks.check_flags(parse(f"--flagfile={path}"))

    @parameterized.parameters("hops", "hops=", "hops=2,units=3", "jumps=2")
    def test_options_that_no_network_has_are_refused(self, option):
        flag_values = parse("--model=memn2n", f"--network_options={option}")
        with self.assertRaisesRegex(SystemExit, "--model=memn2n refuses these --network_options"):
            networks.make_model(20, 6, KNOWN, flag_values)


if __name__ == "__main__":
    absltest.main()
