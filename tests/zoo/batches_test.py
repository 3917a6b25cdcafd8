"""The order of training batches is a function of the seed and the step alone."""

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies as st

from zoo.batches import Batches


class BatchesTest(parameterized.TestCase):
    @hypothesis.settings(max_examples=20, deadline=None)
    @hypothesis.given(
        examples=st.integers(1, 9),
        batch_size=st.integers(1, 4),
        steps=st.integers(1, 12),
        steps_per_epoch=st.integers(1, 5),
        data=st.data(),
    )
    def test_the_stream_does_not_depend_on_epochs_or_on_where_it_is_taken_up(
        self, examples, batch_size, steps, steps_per_epoch, data
    ):
        rows = (np.arange(examples),)
        one = Batches(rows, batch_size, steps, steps_per_epoch=steps, seed=3)
        stream = np.concatenate([batch.numpy() for (batch,) in one.epoch(0)])
        many = Batches(rows, batch_size, steps, steps_per_epoch, seed=3)
        step = data.draw(st.integers(0, steps - 1))
        epoch, first = divmod(step, steps_per_epoch)
        taken = [many.epoch(epoch, first), *map(many.epoch, range(epoch + 1, many.epochs))]
        rest = np.concatenate([batch.numpy() for part in taken for (batch,) in part])
        np.testing.assert_array_equal(rest, stream[step * batch_size :])
        for start in range(0, len(stream) - examples + 1, examples):
            self.assertCountEqual(stream[start : start + examples], rows[0])

    def test_passes_and_seeds_have_orders_of_their_own(self):
        def order(seed, epoch):
            batches = Batches((np.arange(50),), 50, 2, steps_per_epoch=1, seed=seed)
            return next(iter(batches.epoch(epoch)))[0].numpy().tolist()

        self.assertNotEqual(order(0, 0), order(0, 1))
        self.assertNotEqual(order(0, 0), order(1, 0))


if __name__ == "__main__":
    absltest.main()
