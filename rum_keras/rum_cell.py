"""The Rotational Unit of Memory (RUM) as a Keras cell."""

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from rum_keras.fractional_rotation import check_lambda, fade
from rum_keras.rotation import DIRECTION_FLOOR, direction, dot, reflections
from rum_keras.zoneout import StepNoise

LAYER_NORM_EPSILON = 1e-3  # Of the released code, inside the square root.


@keras.saving.register_keras_serializable(package="rum_keras")
class RUMCell(keras.layers.Layer, StepNoise):
    """Cell that rotates its hidden state, for `keras.layers.RNN`.

    The input proposes a direction, `epsilon`; input and state together propose where it should
    point, the target `tau`. The state is turned by the rotation that takes one to the other, which
    preserves its norm, and so what it remembers. With `lambda_=1` rotations accumulate in an
    associative memory, the orthogonal matrix `R`; between 0 and 1 it fades:

    ```
    tau_t     = x_t W_tau + h_{t-1} U_tau + b_tau               target              (batch, units)
    u_t       = sigmoid(x_t W_u + h_{t-1} U_u + b_u)            update gate         (batch, units)
    epsilon_t = x_t W_epsilon + b_epsilon                       embedded input      (batch, units)
    R_t       = (R_{t-1})^lambda R(epsilon_t, tau_t)            rotation     (batch, units, units)
    c_t       = f(epsilon_t + R_t h_{t-1})                      candidate           (batch, units)
    h'_t      = u_t * h_{t-1} + (1 - u_t) * c_t                 new state           (batch, units)
    h_t       = eta h'_t / |h'_t|                               time normalization, if eta is given
    ```

    `R(epsilon, tau)` is the identity where either vector vanishes (an all-zero input without bias,
    padding); `h_t` is left alone where `h'_t` vanishes. With `layer_norm`, as in the released code,
    `tau`, the update gate after its sigmoid, and `epsilon + R h` are normalized over the units.

    Weights: `kernel` (features, 3 units), in the order target | gate | embedded input;
    `recurrent_kernel` (units, 2 units), target | gate; `bias` (3 units). Without update gate the
    gate's block is absent. With `layer_norm`, `target_gain`, `target_offset` (units) and the same
    for gate and candidate.

    State: `h` (batch, units) and, unless `lambda_=0`, the flat memory `vec(R - I)`
    (batch, units * units): all-zero, as Keras initializes and resets states, means `R = I`. Both
    are float32 (float64 in a float64 layer) under a mixed precision policy, too: in half precision
    `R` would stop being orthogonal. (`StackedRNNCells` hands states over in its own dtype: give
    it `dtype="float32"`.)

    Args:
        units: Positive integer N_h, the size of the hidden state.
        lambda_: 0, or 1 for the associative memory, or a float between, the paper's future work:
            `(R_{t-1})^lambda` is then `fractional_rotation`, which takes O(units^3) a step instead
            of O(units^2).
        eta: Positive norm of the state (time normalization), or `None` for no normalization.
        activation: The activation f of the candidate. The paper recommends ReLU.
        recurrent_activation: Activation of the update gate.
        use_bias: Whether target, gate and embedded input have biases.
        use_update_gate: Whether there is an update gate; without, `h'_t = c_t`.
        trainable_rotation: Whether the weights of the target and of the embedded input, between
            which the state is rotated, are trained. `False` is the paper's ablation RUM': their
            gradient is zero. (The released code fixes target and gate instead.)
        layer_norm: Whether to use layer normalization.
        zoneout: Float in [0, 1], the probability of a unit to keep its old state in a step (in
            training; in inference the new state is mixed with the old by it). `R` is not affected.
        return_angle: Whether the output is `[cos(theta_t), h_t]`, `units + 1` wide, theta being
            the angle of the step's rotation.
        kernel_initializer: Initializer of each block of `kernel` (`W_tau`, `W_u`, `W_epsilon`).
        recurrent_initializer: Initializer of each block of `recurrent_kernel` (`U_tau`, `U_u`).
        bias_initializer: Initializer of the biases. By default (`None`) the paper's: ones for
            target and gate, so that the state is kept at first, zeros for the embedded input.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: Regularizers of the weights.
        kernel_constraint, recurrent_constraint, bias_constraint: Constraints of the weights.
        dropout: Float in [0, 1), the fraction of inputs dropped, the same ones in all steps.
        recurrent_dropout: Float in [0, 1), the fraction of `h_{t-1}` dropped before `U_tau` and
            `U_u`, the same units in all steps. The rotated state is not dropped.
        seed: Integer seed of dropout and zoneout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h`, shape `(batch, units)`, and unless `lambda_=0` the memory, shape
            `(batch, units * units)`.
        training: Whether dropout and zoneout are random.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> cell = rum_keras.RUMCell(6, lambda_=1, eta=1.0, activation="tanh")
    >>> layer = keras.layers.RNN(cell, return_sequences=True)
    >>> outputs = layer(np.ones((2, 3, 4), "float32"))
    >>> outputs.shape
    TensorShape([2, 3, 6])
    >>> bool(np.allclose(np.linalg.norm(outputs, axis=-1), 1.0))
    True

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Section 3, Algorithm 1.
    """

    def __init__(
        self,
        units: int,
        lambda_: float = 0,
        eta: float | None = None,
        activation: str | Callable = "relu",
        recurrent_activation: str | Callable = "sigmoid",
        use_bias: bool = True,
        use_update_gate: bool = True,
        trainable_rotation: bool = True,
        layer_norm: bool = False,
        zoneout: float = 0.0,
        return_angle: bool = False,
        kernel_initializer: Any = "orthogonal",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        # autocast would round the states to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        _check_arguments(units, lambda_, eta)
        for name, rate in {
            "zoneout": zoneout,
            "dropout": dropout,
            "recurrent_dropout": recurrent_dropout,
        }.items():
            most = 1 if name == "zoneout" else math.nextafter(1, 0)
            if not (isinstance(rate, numbers.Real) and 0 <= rate <= most):
                interval = "[0, 1]" if name == "zoneout" else "[0, 1)"
                raise ValueError(f"`{name}` must be a probability in {interval}, got {rate!r}.")
        self.units = int(units)
        self.lambda_ = int(lambda_) if lambda_ in (0, 1) else float(lambda_)
        self.eta = eta
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.use_bias = use_bias
        self.use_update_gate = use_update_gate
        self.trainable_rotation = trainable_rotation
        self.layer_norm = layer_norm
        self.zoneout = zoneout
        self.return_angle = return_angle
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = [self.units, self.units**2] if self.lambda_ else self.units
        self.output_size = self.units + int(return_angle)

    @property
    def compute_dtype(self) -> str:
        """The dtype of states and rotations: never half precision. `RNN` casts states to it."""
        return "float64" if self.dtype_policy.compute_dtype == "float64" else "float32"

    def build(self, input_shape):
        blocks = 3 if self.use_update_gate else 2
        self.kernel = self.add_weight(
            shape=(input_shape[-1], blocks * self.units),
            name="kernel",
            initializer=_blockwise(self.kernel_initializer, blocks),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, (blocks - 1) * self.units),
            name="recurrent_kernel",
            initializer=_blockwise(self.recurrent_initializer, blocks - 1),
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(blocks * self.units,),
                name="bias",
                initializer=self.bias_initializer or self._initial_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        if self.layer_norm:
            for name in ("target", "gate", "candidate") if blocks == 3 else ("target", "candidate"):
                for part, value in (("gain", "ones"), ("offset", "zeros")):
                    weight = self.add_weight(
                        shape=(self.units,), name=f"{name}_{part}", initializer=value
                    )
                    setattr(self, f"{name}_{part}", weight)
        self.built = True

    def _initial_bias(self, shape, dtype=None):
        ones = ops.ones((shape[0] - self.units,), dtype)
        return ops.concatenate([ones, ops.zeros((self.units,), dtype)])

    def call(self, inputs, states, training=False):
        nested = isinstance(states, (list, tuple))
        check_states(states if nested else [states], self.state_size)
        h, *memory = states if nested else [states]
        state_dtype = h.dtype
        h = ops.cast(h, self.compute_dtype)
        tau, u, epsilon = self._project(inputs, h, training)
        left, right, cosine = _rank_two_rotation(epsilon, tau)
        if self.lambda_:
            D = ops.cast(ops.reshape(memory[0], (-1, self.units, self.units)), h.dtype)
            D = fade(D, self.lambda_)
            vectors = ops.concatenate([left, h[:, None]], axis=1)
            vectors = vectors + ops.matmul(vectors, ops.transpose(D, (0, 2, 1)))
            left, h_remembered = vectors[:, :2], vectors[:, 2]  # R_{t-1}^lambda left, and h
            D = D + ops.matmul(ops.transpose(left, (0, 2, 1)), right)
            memory = [ops.cast(ops.reshape(D, (-1, self.units**2)), state_dtype)]
        else:
            h_remembered = h
        rotated = h_remembered + ops.sum(left * dot(right, h[:, None]), axis=1)
        new_h = self._mix(h, u, epsilon + rotated, training)
        output = ops.cast(new_h, self.dtype_policy.compute_dtype)
        if self.return_angle:
            output = ops.concatenate([ops.cast(cosine, output.dtype), output], axis=-1)
        new_states = [ops.cast(new_h, state_dtype), *memory]
        return output, new_states if nested else new_states[0]

    def _project(self, inputs, h, training):
        """Returns target, update gate (`None` without) and embedded input: the step's products."""
        dtype, units = self.dtype_policy.compute_dtype, self.units
        kernel, recurrent_kernel, bias = (
            weight if weight is None else ops.cast(weight, dtype)
            for weight in (self.kernel, self.recurrent_kernel, self.bias)
        )
        if not self.trainable_rotation:
            kernel, recurrent_kernel, bias = map(
                self._fix_rotation, (kernel, recurrent_kernel, bias)
            )
        recurrent_inputs = h
        if training and self.dropout:
            inputs = inputs * self.get_dropout_mask(inputs)
        if training and self.recurrent_dropout:
            recurrent_inputs = h * self.get_recurrent_dropout_mask(h)
        x = ops.matmul(ops.cast(inputs, dtype), kernel)
        if bias is not None:
            x = x + bias
        z = ops.matmul(ops.cast(recurrent_inputs, dtype), recurrent_kernel)
        x, z = ops.cast(x, self.compute_dtype), ops.cast(z, self.compute_dtype)
        tau, u, epsilon = x[:, :units] + z[:, :units], None, x[:, -units:]
        if self.use_update_gate:
            u = self.recurrent_activation(x[:, units : 2 * units] + z[:, units:])
        if self.layer_norm:
            tau = _layer_norm(tau, self.target_gain, self.target_offset)
            u = u if u is None else _layer_norm(u, self.gate_gain, self.gate_offset)
        return tau, u, epsilon

    def _fix_rotation(self, weight):
        """Stops the gradient at the blocks of target (first) and embedded input (last)."""
        if weight is None:
            return None
        target, rest = weight[..., : self.units], weight[..., self.units :]
        gate, embedded = rest[..., : self.units], rest[..., self.units :]
        if not self.use_update_gate:
            gate, embedded = rest[..., :0], rest
        return ops.concatenate(
            [ops.stop_gradient(target), gate, ops.stop_gradient(embedded)], axis=-1
        )

    def _mix(self, h, u, candidate, training):
        """Returns the new state: activation, update gate, time normalization, zoneout."""
        if self.layer_norm:
            candidate = _layer_norm(candidate, self.candidate_gain, self.candidate_offset)
        new_h = self.activation(candidate)
        if self.use_update_gate:
            new_h = u * h + (1 - u) * new_h
        if self.eta is not None:
            unit, exists = direction(new_h, DIRECTION_FLOOR)
            new_h = ops.where(exists, self.eta * unit, new_h)
        return self.zone_out(h, new_h, self.zoneout, training)

    def get_initial_state(self, batch_size=None):
        """Returns all-zero states: `h = 0` and, unless `lambda_=0`, `R = I`."""
        sizes = [self.units, self.units**2] if self.lambda_ else [self.units]
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    def get_config(self):
        config = super().get_config()
        for name in (
            "units",
            "lambda_",
            "eta",
            "use_bias",
            "use_update_gate",
            "trainable_rotation",
            "layer_norm",
            "zoneout",
            "return_angle",
            "dropout",
            "recurrent_dropout",
            "seed",
        ):
            config[name] = getattr(self, name)
        for name in ("activation", "recurrent_activation"):
            config[name] = keras.activations.serialize(getattr(self, name))
        for weight in ("kernel", "recurrent", "bias"):
            for kind in ("initializer", "regularizer", "constraint"):
                value = getattr(self, f"{weight}_{kind}")
                config[f"{weight}_{kind}"] = keras.saving.serialize_keras_object(value)
        return config


def _rank_two_rotation(epsilon, tau):
    """Returns `left`, `right` (batch, 2, units), `R(epsilon, tau) = I + left' right`, and cos."""
    u, m, w, twice = reflections(epsilon, tau)
    left = ops.stack([-twice * (u - 2 * dot(m, u) * m), -twice * m], axis=1)
    cosine = 1 + twice / 2 * (dot(u, w) - 1)
    return left, ops.stack([u, m], axis=1), cosine


def _layer_norm(values, gain, offset):
    centered = values - ops.mean(values, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    gain, offset = ops.cast(gain, values.dtype), ops.cast(offset, values.dtype)
    return centered * ops.rsqrt(variance + LAYER_NORM_EPSILON) * gain + offset


def _blockwise(initializer, blocks):
    """Returns an initializer that fills equal blocks of columns each as a matrix of its own."""

    def initialize(shape, dtype=None):
        shape = (shape[0], shape[1] // blocks)
        return ops.concatenate(
            [_reseeded(initializer, block)(shape, dtype) for block in range(blocks)], axis=-1
        )

    return initialize if blocks > 0 else initializer


def _reseeded(initializer, block):
    """Keras' initializers with an integer seed give the same values in every block: shift it."""
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += block
    return initializer.__class__.from_config(config)


def check_states(states: Sequence[Any], state_size: int | list[int]) -> None:
    """Raises ValueError if the number or the widths of states are not those of a RUMCell."""
    sizes = state_size if isinstance(state_size, list) else [state_size]
    shapes = [tuple(state.shape) for state in states]
    if len(shapes) != len(sizes) or any(
        len(shape) != 2 or shape[1] not in (size, None)
        for shape, size in zip(shapes, sizes, strict=True)
    ):
        wanted = [f"h (batch, {sizes[0]})", *(f"memory (batch, {size})" for size in sizes[1:])]
        raise ValueError(
            f"The states of this RUM are {' and '.join(wanted)}; "
            f"received shapes {shapes}. The memory is vec(R - I): zeros are the identity."
        )


def _check_arguments(units, lambda_, eta):
    real = isinstance(units, numbers.Real) and math.isfinite(units)
    if not real or isinstance(units, bool) or units != int(units) or units <= 0:
        raise ValueError(f"`units` must be a positive integer, received units={units!r}.")
    check_lambda(lambda_)
    if eta is not None and not (isinstance(eta, numbers.Real) and 0 < eta < math.inf):
        raise ValueError(
            f"`eta`, the norm of the state, must be positive, or None for no time "
            f"normalization; received eta={eta!r}."
        )
