"""run.flags: what is written, and which differences are refused."""

import pathlib
import tempfile

from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from zoo import run, run_flags

FLAGS = flags.FLAGS
flags.DEFINE_flag(
    flags.MultiFlag(
        flags.ArgumentParser(), flags.ArgumentSerializer(), "several", [], "Given several times."
    ),
    module_name="zoo.recall.train",
)
del run  # Imported for the flags that it defines.


class RunFlagsTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(flagsaver.flagsaver())
        self.path = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "run.flags"
        self.parse()
        run_flags.write(self.path, "python -m zoo.recall.train")
        (self.path.parent / "backup").mkdir()

    def parse(self, *more: str):
        FLAGS.unparse_flags()
        for flag in run_flags.recipe_flags():
            FLAGS[flag].unparse()
        FLAGS(
            [
                "zoo/recall/train.py",
                f"--workdir={self.path.parent}",
                "--steps=6",
                "--steps_per_epoch=3",
                *more,
            ]
        )

    def test_the_same_flags_and_those_that_change_no_result_are_taken(self):
        self.parse("--checkpoint_every=7", "--workdir=elsewhere")
        run_flags.check(self.path, "python -m zoo.recall.train")

    @parameterized.parameters(
        ("--seed=1", "then --seed=0   now --seed=1"),
        ("--clip_norm=1", "then no --clip_norm   now --clip_norm=1.0"),
        ("--dtype=mixed_bfloat16", "then --dtype=float32   now --dtype=mixed_bfloat16"),
        ("--steps=3", "then --steps=6   now --steps=3"),
    )
    def test_other_flags_are_refused_and_shown(self, flag, shown):
        self.parse(flag)
        with self.assertRaisesRegex(SystemExit, f"other flags:\n  {shown}\nGo on with that run by"):
            run_flags.check(self.path, "python -m zoo.recall.train")

    def test_a_flag_that_is_given_several_times_is_compared_whole(self):
        self.parse("--several=a=1", "--several=b=2")
        run_flags.write(self.path, "python -m zoo.recall.train")
        run_flags.check(self.path, "python -m zoo.recall.train")
        self.parse("--several=a=3", "--several=b=2")
        with self.assertRaisesRegex(SystemExit, "then --several=a=1\n--several=b=2"):
            run_flags.check(self.path, "python -m zoo.recall.train")

    def test_a_run_that_saved_nothing_does_not_keep_the_folder(self):
        (self.path.parent / "backup").rmdir()
        self.parse("--seed=1")
        run_flags.check(self.path, "python -m zoo.recall.train")

    def test_steps_may_grow_from_whole_epochs(self):
        self.parse("--steps=8")
        run_flags.check(self.path, "python -m zoo.recall.train")
        run_flags.write(self.path, "python -m zoo.recall.train")
        self.parse("--steps=9")
        with self.assertRaisesRegex(SystemExit, "then --steps=8   now --steps=9"):
            run_flags.check(self.path, "python -m zoo.recall.train")

    def test_the_file_can_be_given_back(self):
        self.parse("--clip_norm=0.5", "--nologtostderr")
        run_flags.write(self.path, "python -m zoo.recall.train")
        before = run_flags.recipe_flags()
        FLAGS(["zoo/recall/train.py", f"--flagfile={self.path}", f"--workdir={self.path.parent}"])
        self.assertEqual(run_flags.recipe_flags(), before)


if __name__ == "__main__":
    absltest.main()
