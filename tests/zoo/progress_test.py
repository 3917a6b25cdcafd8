"""What the log holds when a run goes on; whole restarts are in run_test.py."""

import pathlib
import tempfile
import types

from absl.testing import absltest

from zoo import progress
from zoo.babi import train

ROWS = "epoch,step,loss,val_accuracy,val_loss\n0,3,0.5,1.0,0.25\n1,6,0.25,1.0,0.125\n"


class LogTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.path = self.workdir / "log.csv"
        self.path.write_text(ROWS)

    def open_log(self, done):
        """Starts a run again whose checkpoint has `done` epochs."""
        progress.Log(self.workdir, types.SimpleNamespace(epoch=done, step=3 * done))

    def test_a_run_that_goes_on_drops_the_row_of_an_epoch_that_its_checkpoint_has_not(self):
        self.open_log(done=1)
        self.assertEqual([row["epoch"] for row in progress.read_log(self.path)], [0])

    def test_a_run_killed_before_the_checkpoint_of_its_first_epoch_starts_without_a_log(self):
        self.open_log(done=0)
        self.assertFalse(self.path.exists())
        # Else bAbI's recipe would take that row for the end of a run that has no model yet.
        self.assertFalse(train.is_over(self.workdir, patience=1, enough=1.0))

    def test_a_first_start_needs_no_log(self):
        self.path.unlink()
        self.open_log(done=0)
        self.assertEqual(progress.read_log(self.path), [])


if __name__ == "__main__":
    absltest.main()
