"""Tests of the characters of the Penn Treebank, on tiny files and, where it exists, on the data."""

import contextlib
import doctest
import gzip
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import ptb
from tests import shared_data

ROOT = pathlib.Path(__file__).parents[2]
TEXTS = {"train": " a b n't <unk> N \n", "valid": " b a \n", "test": " n't \n"}


class PtbTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.said = self.enter_context(contextlib.redirect_stderr(io.StringIO()))

    def write(self, names: str, texts=None, folder=""):
        for split, text in (texts or TEXTS).items():
            path = self.folder / folder / names.format(split)
            path.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)

    @parameterized.parameters(
        "ptb.{}.txt", "ptb.{}.txt.gz", "{}.txt", "{}", "{}.gz", "simple-examples/data/ptb.{}.txt"
    )
    def test_files_are_found_by_the_names_that_papers_and_archives_give_them(self, names):
        self.write(names)
        for split, name in (("train", "train"), ("validation", "valid"), ("test", "test")):
            ids, symbols = ptb.load(self.folder, split)
            self.assertEqual(ids.dtype, np.int32)
            self.assertEqual("".join(symbols[i] for i in ids), TEXTS[name])

    def test_an_archive_is_read_without_unpacking(self):
        self.packed("../../simple-examples/data")
        self.assertEqual(ptb.read(self.folder / "simple-examples.tgz", "test"), TEXTS["test"])
        self.assertCountEqual(
            [path.name for path in self.folder.iterdir()], ["x", "simple-examples.tgz"]
        )

    def test_files_of_characters_are_the_other_form(self):
        chars = {"train": "a _ b\nN _ b \n ", "valid": "b\n"}
        self.write("ptb.char.{}.txt", chars)
        self.write("ptb.{}.txt")
        self.assertEqual(ptb.read(self.folder, "train", "characters"), "a b\nN b\n")
        self.assertEqual(ptb.load(self.folder, "train", form="characters")[1], "\n bNa")
        self.assertEqual(ptb.read(self.folder, "train", "bytes"), TEXTS["train"])

    def test_a_file_of_words_is_no_file_of_characters(self):
        self.write("ptb.char.{}.txt", {"test": "a _ b\nc _ word \n"})
        with self.assertRaisesRegex(ValueError, "ptb.char.test.txt:2: 'word' is not one character"):
            ptb.read(self.folder, "test", "characters")

    @settings(deadline=None, max_examples=20)
    @given(st.text("abc \n", min_size=1))
    def test_symbols_are_those_of_the_text_the_most_frequent_first(self, text):
        symbols = ptb.symbols_of(text)
        self.assertCountEqual(symbols, set(text))
        order = [(-text.count(symbol), symbol) for symbol in symbols]
        self.assertEqual(order, sorted(order))

    def test_a_character_that_training_does_not_have_is_named_with_its_line(self):
        self.write("ptb.{}.txt", {**TEXTS, "valid": " b \n a \n a z\n"})
        with self.assertRaisesRegex(
            ValueError, "Line 3 of the validation split .* 'z'.* of the 12"
        ):
            ptb.load(self.folder, "validation")

    def test_missing_and_empty_files_and_wrong_words_are_told(self):
        with self.assertRaisesRegex(FileNotFoundError, "no test split .*ptb.test.txt, ptb.test.tx"):
            ptb.read(self.folder, "test")
        self.write("{}", {"test": ""})
        with self.assertRaisesRegex(ValueError, "test is empty"):
            ptb.read(self.folder, "test")
        with self.assertRaisesRegex(ValueError, "one of train, validation, test, got 'dev'"):
            ptb.read(self.folder, "dev")
        with self.assertRaisesRegex(ValueError, "one of bytes, characters, got 'words'"):
            ptb.read(self.folder, "test", "words")

    def packed(self, where="simple-examples/data"):
        self.write("ptb.{}.txt", folder="x")
        path = self.folder / "simple-examples.tgz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(self.folder / "x", where)
        return path

    def test_a_file_that_is_no_archive_is_told(self):
        self.write("ptb.{}.txt")
        message = r"ptb.train.txt: not a whole archive \(file could not be opened successfully\): "
        with self.assertRaisesRegex(ValueError, message):
            ptb.load(self.folder / "ptb.train.txt", "train")

    def test_a_damaged_archive_is_told_wherever_it_is_damaged(self):
        path = self.packed()
        whole = path.read_bytes()
        for place in range(0, len(whole) - 8):
            for damaged in (whole[:place], whole[:place] + b"\x99" + whole[place + 1 :]):
                path.write_bytes(damaged)
                try:
                    self.assertEqual(ptb.read(path, "test"), TEXTS["test"])
                except ValueError as error:
                    self.assertIn(f"{path}: not a whole archive (", str(error))

    @parameterized.parameters(-9, 12)
    def test_a_file_of_half_a_gzip_is_told(self, end):
        self.write("{}.gz")
        path = self.folder / "test.gz"
        path.write_bytes(path.read_bytes()[:end])
        with self.assertRaisesRegex(ValueError, "test.gz: not a whole gzip file .*: fetch it"):
            ptb.read(self.folder, "test")

    def test_a_file_under_the_name_of_a_gzip_is_told(self):
        (self.folder / "test.gz").write_bytes(b"rain")
        with self.assertRaisesRegex(ValueError, "test.gz: not a whole gzip file"):
            ptb.read(self.folder, "test")

    def test_other_data_is_read_but_said_to_be_other(self):
        self.write("{}")
        ptb.read(self.folder, "test")
        self.assertRegex(self.said.getvalue(), r"test has 6 characters.* has 449,945\.")

    def test_the_examples_run(self):
        results = doctest.testmod(ptb)
        self.assertGreater(results.attempted, 0)
        self.assertEqual(results.failed, 0)

    def test_the_command_says_what_there_is(self):
        self.write("ptb.{}.txt")
        command = [sys.executable, "-m", "datasets.ptb", f"--data={self.folder}"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^train +18 characters of 12 kinds  \" a b n't")
        self.assertRegex(lines[3], "^symbols, the most frequent first: .* n")

    def test_the_command_ends_with_a_sentence_where_it_cannot_read(self):
        for name in ("cut.tgz", "nowhere"):
            (self.folder / "cut.tgz").write_bytes(gzip.compress(b"rain")[:-1])
            command = [sys.executable, "-m", "datasets.ptb", f"--data={self.folder / name}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, f"^datasets.ptb: {self.folder / name}[^\n]*\n$")


class RealDataTest(parameterized.TestCase):
    @parameterized.product(form=list(ptb.SIZES), split=list(ptb.SPLITS))
    def test_splits_have_the_sizes_of_the_papers_and_fifty_symbols(self, form, split):
        ids, symbols = ptb.load(shared_data.folder("ptb"), split, form=form)
        self.assertLen(ids, ptb.SIZES[form][split])
        self.assertLen(symbols, 50)
        self.assertLen(np.unique(ids), 48 if split == "test" else 50)
        self.assertEqual(symbols[:6], " etano")


if __name__ == "__main__":
    absltest.main()
