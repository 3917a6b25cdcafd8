"""Tests of the associative recall data."""

import pathlib
import subprocess
import sys

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import recall

ROOT = pathlib.Path(__file__).parents[2]


class RecallTest(parameterized.TestCase):
    @parameterized.parameters(10, 50)
    def test_legacy_reproduces_the_released_code(self, length):
        golden = np.load(ROOT / f"tests/golden/data_recall_T{length}.npz")
        sequences, digits = recall.generate(6, length, seed=0, legacy=True)
        np.testing.assert_array_equal(sequences, golden["x"])
        np.testing.assert_array_equal(digits, golden["y"])

    @settings(deadline=None, max_examples=50)
    @given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 2**63), st.booleans())
    def test_the_answer_is_the_digit_after_the_queried_letter(self, examples, pairs, seed, legacy):
        length = 2 * pairs
        sequences, digits = recall.generate(examples, length, seed % 2**32, legacy)
        self.assertEqual((sequences.dtype, digits.dtype), (np.int32, np.int32))
        self.assertEqual((sequences.shape, digits.shape), ((examples, length + 3), (examples,)))
        self.assertLess(sequences.max(), recall.vocabulary_size(length))
        for sequence, digit in zip(sequences, digits, strict=True):
            letters, values = sequence[0:length:2], sequence[1:length:2]
            self.assertCountEqual(letters, range(1, pairs + 1))
            self.assertTrue((values > pairs).all())
            np.testing.assert_array_equal(sequence[length:-1], [0, 0])
            value = values[letters == sequence[-1]]
            np.testing.assert_array_equal(value, [pairs + 1 + digit])

    def test_every_answer_and_query_is_equally_likely(self):
        sequences, digits = recall.load("validation", length=12)
        for counts in (np.bincount(digits), np.bincount(sequences[:, -1])[1:]):
            expected = 10_000 / len(counts)
            # Four standard deviations of a Poisson count.
            np.testing.assert_allclose(counts, expected, atol=4 * np.sqrt(expected))

    @parameterized.parameters(("train", 100_000), ("validation", 10_000), ("test", 20_000))
    def test_splits_have_the_sizes_of_the_paper(self, split, examples):
        self.assertEqual(recall.load(split, length=4)[0].shape, (examples, 7))

    def test_splits_and_seeds_are_different_streams(self):
        draws = [recall.generate(50, length=20, seed=s)[0] for s in (0, 1, [0, 1])]
        draws += [recall.load(split, length=20)[0][:50] for split in ("validation", "test")]
        draws += [recall.load("train", length=20, seed=1)[0][:50]]
        self.assertLen({draw.tobytes() for draw in draws}, len(draws))

    def test_a_seed_fixes_the_examples(self):
        first, again = (recall.load("validation", length=8, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first[0], again[0])
        np.testing.assert_array_equal(first[1], again[1])

    @parameterized.parameters(0, -2, 7)
    def test_a_length_without_whole_pairs_is_refused(self, length):
        with self.assertRaisesRegex(ValueError, f"length must be an even .* got {length}"):
            recall.generate(2, length)

    def test_fewer_than_one_example_is_refused(self):
        with self.assertRaisesRegex(ValueError, "examples must be at least 1, got 0"):
            recall.generate(0)

    def test_an_unknown_split_is_refused(self):
        with self.assertRaisesRegex(ValueError, "one of train, validation, test, got 'dev'"):
            recall.load("dev")

    def test_text_writes_letters_digits_and_question_marks(self):
        self.assertEqual(recall.to_text(np.array([3, 4, 1, 13, 2, 7, 0, 0, 2])), "c0a9b3??b")

    def test_text_has_room_for_52_letters(self):
        sequences, _ = recall.generate(1, length=104)
        self.assertLen(set(recall.to_text(sequences[0])[0:104:2]), 52)
        sequences, _ = recall.generate(1, length=106)
        with self.assertRaisesRegex(ValueError, "53 different letters"):
            recall.to_text(sequences[0])

    def test_the_command_prints_examples(self):
        command = [sys.executable, "-m", "datasets.recall", "--length=6", "--examples=3"]
        lines = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        self.assertLen(lines, 3)
        for line in lines:
            self.assertRegex(line, r"^([abc]\d){3}\?\?([abc]) -> \d$")
            self.assertEqual(line[line.index(line[8]) + 1], line[-1])


if __name__ == "__main__":
    absltest.main()
