"""A corpus, and the recipe run on it."""

import pathlib
import tempfile

from absl.testing import absltest

from tests.zoo import recipe
from tests.zoo.pointer_generator import tiny_run

FLAGS = (
    "--units=3 --embedding=4 --decoder=rum --batch_size=2 --steps=6 --steps_per_epoch=3 "
    "--checkpoint_every=2 --lengths=0:6:4,4:20:9 --min_length=2 --max_length=7"
).split()


def train(data, workdir, *more, killed_at=None):
    """Runs the recipe and returns the process when it has ended."""
    options = f"--data={data}", f"--workdir={workdir}", *FLAGS, *more
    return recipe.train("pointer_generator", *options, killed_at=killed_at)


class RecipeFolder(absltest.TestCase):
    """A corpus and a whole run of the recipe."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data = tiny_run.prepare(cls.folder, "xsum")
        cls.whole = cls.folder / "whole"
        cls.process = train(cls.data, cls.whole, "--diagnostics", "--patience=9")
