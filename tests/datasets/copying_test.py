"""Tests of the copying memory data."""

import pathlib
import subprocess
import sys

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import copying

ROOT = pathlib.Path(__file__).parents[2]


class CopyingTest(parameterized.TestCase):
    @parameterized.parameters(3, 20)
    def test_legacy_reproduces_the_released_code(self, delay):
        golden = np.load(ROOT / f"tests/golden/data_copying_T{delay}.npz")
        inputs, targets = copying.generate(4, delay, seed=0, legacy=True)
        np.testing.assert_array_equal(inputs, golden["x"])
        np.testing.assert_array_equal(targets, golden["y"])

    @settings(deadline=None, max_examples=50)
    @given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
    def test_the_data_symbols_are_due_after_the_marker(self, examples, delay, seed, legacy):
        inputs, targets = copying.generate(examples, delay, seed, legacy)
        self.assertEqual((inputs.dtype, targets.dtype), (np.int32, np.int32))
        self.assertEqual(inputs.shape, (examples, delay + 20))
        marker = delay + 9
        np.testing.assert_array_equal(inputs[:, marker], np.full(examples, 9))
        data = inputs[:, :10]
        self.assertTrue(((data >= 1) & (data <= 8)).all())
        self.assertFalse(np.delete(inputs[:, 10:], marker - 10, axis=1).any())
        self.assertFalse(targets[:, : marker + 1].any())
        np.testing.assert_array_equal(targets[:, marker + 1 :], data)

    def test_every_data_symbol_is_equally_likely(self):
        inputs, _ = copying.generate(1000, delay=1)
        counts = np.bincount(inputs[:, :10].ravel(), minlength=9)[1:]
        # Four standard deviations of a Poisson count.
        np.testing.assert_allclose(counts, 1250, atol=4 * np.sqrt(1250))

    @parameterized.parameters(("train", 50_000), ("validation", 500), ("test", 500))
    def test_splits_have_the_sizes_of_the_paper(self, split, examples):
        self.assertEqual(copying.load(split, delay=2)[0].shape, (examples, 22))

    def test_splits_and_seeds_are_different_streams(self):
        draws = [copying.generate(50, delay=2, seed=s)[0] for s in (0, 1, [0, 1])]
        draws += [copying.load(split, delay=2)[0][:50] for split in ("validation", "test")]
        draws += [copying.load("train", delay=2, seed=1)[0][:50]]
        self.assertLen({draw.tobytes() for draw in draws}, len(draws))

    def test_a_seed_fixes_the_examples(self):
        first, again = (copying.load("test", delay=4, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first[0], again[0])

    @parameterized.parameters((500, 0.0400), (200, 0.0945), (1000, 0.0204))
    def test_the_memoryless_loss_is_that_of_the_literature(self, delay, loss):
        self.assertAlmostEqual(copying.memoryless_loss(delay), loss, places=4)

    def test_the_memoryless_loss_is_the_entropy_of_the_targets(self):
        _, targets = copying.generate(1000, delay=5)
        chance = np.bincount(targets[:, -10:].ravel(), minlength=9)[1:] / 10_000
        entropy = -10 * (chance * np.log(chance)).sum() / targets.shape[1]
        self.assertAlmostEqual(copying.memoryless_loss(5), entropy, places=3)

    def test_a_delay_below_one_is_refused(self):
        with self.assertRaisesRegex(ValueError, "delay must be at least 1, got 0"):
            copying.generate(2, delay=0)

    def test_fewer_than_one_example_is_refused(self):
        with self.assertRaisesRegex(ValueError, "examples must be at least 1, got -3"):
            copying.generate(-3)

    def test_an_unknown_split_is_refused(self):
        with self.assertRaisesRegex(ValueError, "one of train, validation, test, got 'valid'"):
            copying.load("valid")

    def test_the_command_prints_examples(self):
        command = [sys.executable, "-m", "datasets.copying", "--delay=4", "--examples=2"]
        lines = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        self.assertLen(lines, 2)
        for line in lines:
            self.assertRegex(line, r"^([1-8]{10})00090{10} -> 0{14}\1$")


if __name__ == "__main__":
    absltest.main()
