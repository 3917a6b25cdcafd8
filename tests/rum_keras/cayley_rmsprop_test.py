"""CayleyRMSprop: unitary matrices by the paper's step, all else by RMSprop."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.cayley_rmsprop import CayleyRMSprop
from rum_keras.full_capacity_urnn_cell import FullCapacityURNNCell
from rum_keras.unitary import cayley_step, unitarity_error
from tests import backend
from tests.rum_keras.cell_checks import inputs


def compiled(optimizer):
    cell = FullCapacityURNNCell(6, multiplicative=True)
    model = keras.Sequential([keras.Input((3, 4)), keras.layers.RNN(cell), keras.layers.Dense(2)])
    model.compile(optimizer, "mse")
    return model, cell


class CayleyRMSpropTest(parameterized.TestCase):
    def test_one_step_is_the_papers_for_w_and_rmsprops_for_the_rest(self):
        model, cell = compiled(CayleyRMSprop(1e-2, unitary_learning_rate=0.1))
        x, y = inputs(time=3, dtype="float32"), np.ones((2, 2), "float32")
        before = {v.path: backend.to_numpy(v) for v in model.trainable_variables}
        _, gradients = backend.weight_gradients(
            cell, lambda: keras.ops.mean(keras.ops.square(model(x) - y))
        )
        model.train_on_batch(x, y)
        W = keras.ops.convert_to_tensor(before[cell.unitary_kernel.path])
        G = keras.ops.convert_to_tensor(gradients["unitary_kernel"])
        np.testing.assert_allclose(cell.unitary_kernel, cayley_step(W, G, 0.1), atol=1e-6)
        g = gradients["kernel"]
        expected = before[cell.kernel.path] - 1e-2 * g / np.sqrt(0.1 * g**2 + 1e-7)
        np.testing.assert_allclose(cell.kernel, expected, atol=1e-5)

    def test_training_lowers_the_loss_and_keeps_w_unitary(self):
        model, cell = compiled(CayleyRMSprop(1e-3, unitary_learning_rate=1e-2))
        x, y = inputs(batch=8, time=3, dtype="float32"), np.ones((8, 2), "float32")
        losses = model.fit(x, y, batch_size=2, epochs=3, verbose=0).history["loss"]
        self.assertLess(losses[-1], losses[0])
        self.assertLess(unitarity_error(cell.recurrent_matrix()), 1e-5)

    def test_its_configuration_survives(self):
        optimizer = CayleyRMSprop(1e-2, unitary_learning_rate=0.1, rho=0.8)
        loaded = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
        self.assertIsInstance(loaded, CayleyRMSprop)
        self.assertEqual(loaded.get_config(), optimizer.get_config())

    def test_a_bad_learning_rate_is_named(self):
        with self.assertRaisesRegex(ValueError, "`unitary_learning_rate`"):
            CayleyRMSprop(unitary_learning_rate=0)


if __name__ == "__main__":
    absltest.main()
