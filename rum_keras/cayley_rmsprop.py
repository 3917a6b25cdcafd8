"""RMSprop that moves unitary matrices along the manifold of unitary matrices."""

from typing import Any

import keras
from keras import ops

from rum_keras.unitary import cayley_step


@keras.saving.register_keras_serializable(package="rum_keras")
class CayleyRMSprop(keras.optimizers.RMSprop):
    """RMSprop, with the multiplicative step of Wisdom et al. for the matrices W of their cell.

    The weights called `unitary_kernel`, of `FullCapacityURNNCell(units, multiplicative=True)`, are
    updated by

    ```
    A <- G W^H - W G^H                              G: the gradient, (n, n), complex
    W <- (I + l/2 A)^-1 (I - l/2 A) W
    ```

    which leaves a unitary W unitary, up to rounding, and all others by RMSprop.

    Args:
        learning_rate: Float or schedule, of RMSprop.
        unitary_learning_rate: Positive float l, of the multiplicative step.
        **kwargs: Other arguments of `keras.optimizers.RMSprop`. Clipping applies to G, too.

    Raises:
        ValueError: for a learning rate that is not positive.

    Example:

    >>> cell = rum_keras.FullCapacityURNNCell(6, multiplicative=True)
    >>> model = keras.Sequential([keras.layers.RNN(cell), keras.layers.Dense(1)])
    >>> model.compile(rum_keras.CayleyRMSprop(1e-3, unitary_learning_rate=1e-4), "mse")

    Reference:
        [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), Section 4.
    """

    def __init__(
        self, learning_rate: Any = 1e-3, unitary_learning_rate: float = 1e-6, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate, **kwargs)
        if not unitary_learning_rate > 0:
            raise ValueError(
                f"`unitary_learning_rate` must be positive, received "
                f"unitary_learning_rate={unitary_learning_rate!r}."
            )
        self.unitary_learning_rate = unitary_learning_rate

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        if self._trainable_variables[index].name != "unitary_kernel":
            super().update_step(gradient, variable, learning_rate)
            return
        W, G = ops.convert_to_tensor(variable), ops.cast(gradient, variable.dtype)
        self.assign(variable, cayley_step(W, G, self.unitary_learning_rate))

    def get_config(self):
        return {**super().get_config(), "unitary_learning_rate": self.unitary_learning_rate}
