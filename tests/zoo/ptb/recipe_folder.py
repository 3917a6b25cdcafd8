"""A tiny text, and the recipe run on it."""

import pathlib
import subprocess
import tempfile

import numpy as np
from absl.testing import absltest

from tests.zoo import recipe
from zoo import progress

SMALL = (
    "--model=lstm --units=6 --embedding_units=4 --batch_size=4 --window=3 --evaluation_rows=4 "
    "--clip_norm=0.1 --checkpoint_every=2"
).split()


class RecipeFolder(absltest.TestCase):
    """Runs the recipe as the README says, on a tiny text."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        rng = np.random.default_rng(0)
        for split, size in (("train", 70), ("valid", 13), ("test", 11)):
            text = "".join(rng.choice(list("ab c\n"), size)) + "abc \n"
            (self.folder / f"ptb.{split}.txt").write_text(text)

    def run_recipe(self, name: str, *more: str) -> subprocess.CompletedProcess:
        folders = f"--data={self.folder}", f"--workdir={self.folder / name}"
        return recipe.train("ptb", *SMALL, *folders, *more)

    def log(self, name: str) -> list[dict[str, float]]:
        return progress.read_log(self.folder / name / "log.csv")
