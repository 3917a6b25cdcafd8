"""The start of a run: flags that do not go together, folders that cannot be, finished runs."""

import pathlib
import tempfile

from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from zoo import run

FLAGS = flags.FLAGS


class StartTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(flagsaver.flagsaver())
        self.workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def parse(self, *more: str):
        FLAGS(["zoo/recall/train.py", f"--workdir={self.workdir}", "--steps=5", *more])

    @parameterized.parameters(
        (["--workdir="], "--workdir=FOLDER"),
        (["--jit_compile=true", "--strategy=mirrored"], "leave one of them out"),
        (["--logical_devices=2"], "is for --strategy=mirrored"),
        (["--strategy=multi_worker"], "needs TF_CONFIG"),
    )
    def test_flags_that_do_not_go_together_are_refused(self, more, message):
        self.parse(*more)
        with self.assertRaisesRegex(SystemExit, message):
            run.start()

    def test_a_folder_that_cannot_be_is_told_in_a_sentence(self):
        file = self.workdir / "file"
        file.touch()
        for workdir, message in (
            (file, f"--workdir={file} is a file: give the name of a folder."),
            (file / "run", f"--workdir={file}/run cannot be made: Not a directory."),
            (file / "run" / "deep", f"--workdir={file}/run/deep cannot be made: Not a directory."),
        ):
            self.parse(f"--workdir={workdir}")
            with self.subTest(message), self.assertRaises(SystemExit) as ended:
                run.start()
            self.assertEqual(ended.exception.code, message)

    def test_a_folder_where_nothing_can_be_written_is_told_in_a_sentence(self):
        self.parse()
        # As another user's folder: the one who tests may be root, who can write everywhere.
        (self.workdir / ".lock").mkdir()
        with self.assertRaisesRegex(SystemExit, f"{self.workdir} cannot be written: Is a dir"):
            run.start()

    def test_a_finished_run_says_so_and_trains_no_more(self):
        self.parse()
        (self.workdir / "metrics.json").write_text('{"steps": 5}')
        with self.assertRaises(SystemExit) as done:
            run.start()
        self.assertEqual(done.exception.code, 0)

    def test_two_processes_cannot_train_in_one_folder(self):
        self.parse()
        run.start()
        with self.assertRaisesRegex(SystemExit, "Another process is training"):
            run.start()


if __name__ == "__main__":
    absltest.main()
