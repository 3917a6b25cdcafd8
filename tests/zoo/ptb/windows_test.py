"""Windows of a text: the released code's in training, every character once in evaluation."""

import doctest
import pathlib

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies as st

from zoo.ptb import windows
from zoo.ptb.windows import IGNORED, Windows, evaluation_windows

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"


def arrays(dataset) -> list[tuple[dict, np.ndarray]]:
    return list(dataset.as_numpy_iterator())


class WindowsTest(parameterized.TestCase):
    def test_a_pass_is_that_of_the_released_code(self):
        golden = np.load(GOLDEN / "data_ptb_batching.npz")
        one_pass = Windows(golden["raw"].astype("int32"), batch_size=4, window=5, steps=4)
        self.assertEqual(one_pass.steps_per_pass, 4)
        read = arrays(one_pass.epoch(0))
        np.testing.assert_array_equal([inputs["ids"] for inputs, _ in read], golden["x"])
        np.testing.assert_array_equal([targets for _, targets in read], golden["y"])

    def test_states_start_anew_with_each_pass_only(self):
        text = Windows(np.arange(20, dtype="int32"), 2, 3, steps=7, steps_per_epoch=2)
        self.assertEqual((text.steps_per_pass, text.epochs), (3, 4))
        read = [window for epoch in range(4) for window in arrays(text.epoch(epoch))]
        self.assertLen(read, 7)
        self.assertEqual([inputs["fresh"].tolist() for inputs, _ in read],
                         [[int(step % 3 == 0)] * 2 for step in range(7)])  # fmt: skip
        self.assertEqual([inputs["row"].tolist() for inputs, _ in read], [[0, 1]] * 7)
        self.assertEqual([inputs["ids"][0, 0] for inputs, _ in read], [0, 3, 6, 0, 3, 6, 0])

    @hypothesis.settings(max_examples=8, deadline=None)
    @hypothesis.given(st.integers(1, 12), st.integers(1, 5), st.data())
    def test_the_stream_does_not_depend_on_epochs_or_on_where_it_is_taken_up(
        self, steps, steps_per_epoch, data
    ):
        text = np.arange(20, dtype="int32")
        stream = [x["ids"].tolist() for x, _ in arrays(Windows(text, 2, 3, steps, steps).epoch(0))]
        many = Windows(text, 2, 3, steps, steps_per_epoch)
        step = data.draw(st.integers(0, steps - 1))
        epoch, first = divmod(step, steps_per_epoch)
        taken = [many.epoch(epoch, first), *map(many.epoch, range(epoch + 1, many.epochs))]
        rest = [inputs["ids"].tolist() for part in taken for inputs, _ in arrays(part)]
        self.assertEqual(rest, stream[step:])

    def test_a_text_without_a_window_is_refused(self):
        with self.assertRaisesRegex(ValueError, "20 characters has no window of 5 .* in 4 rows"):
            Windows(np.arange(20), 4, 5, steps=1)

    @hypothesis.settings(max_examples=20, deadline=None)
    @hypothesis.given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 7))
    def test_evaluation_counts_every_character_once_after_those_before_it(self, size, rows, window):
        first, text = 99, np.arange(size, dtype="int32")
        read = arrays(evaluation_windows(text, rows, window, first))
        inputs = np.concatenate([inputs["ids"] for inputs, _ in read], axis=1)
        targets = np.concatenate([targets for _, targets in read], axis=1)
        self.assertEqual(inputs.shape[0], rows)
        for step, (values, _) in enumerate(read):
            begins = [step == 0 or (step == 1 and row == 0 and rows > 1) for row in range(rows)]
            self.assertEqual(values["fresh"].tolist(), begins)
        np.testing.assert_array_equal(np.sort(targets[targets != IGNORED]), text)
        before = np.concatenate([[first], text])
        np.testing.assert_array_equal(inputs[targets >= 0], before[targets[targets >= 0]])
        for row in range(rows if rows > 1 else 0):  # A window of context.
            self.assertTrue((targets[row, :window] == IGNORED).all())
            counted = targets[row][targets[row] != IGNORED]
            if len(counted) and counted[0] > window:
                start = counted[0] - window - 1
                np.testing.assert_array_equal(
                    inputs[row, :window], np.arange(start, start + window)
                )

    def test_the_examples_run(self):
        self.assertEqual(doctest.testmod(windows).failed, 0)


if __name__ == "__main__":
    absltest.main()
