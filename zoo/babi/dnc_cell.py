"""The cell of the Differentiable Neural Computer: an LSTM that reads and writes a memory."""

from typing import Any

import keras
from keras import ops

EPSILON = 1e-6  # Of norms and usage, as in the authors' code.


def content_weighting(memory: Any, keys: Any, strengths: Any) -> Any:
    """Weights locations by how much they look like keys: C(M, k, beta).

    Args:
        memory: float, `(batch, memory, width)`.
        keys: float, `(batch, heads, width)`.
        strengths: float, `(batch, heads)`, at least 1.

    Returns:
        `(batch, heads, memory)`, softmax of the cosines times the strengths.
    """

    def normalized(values):
        square = ops.sum(ops.square(values), axis=-1, keepdims=True)
        return values * ops.rsqrt(square + EPSILON)

    cosines = ops.einsum("bhw,bnw->bhn", normalized(keys), normalized(memory))
    return ops.softmax(cosines * strengths[..., None], axis=-1)


def allocation_weighting(usage: Any) -> Any:
    """Weights locations to write to by how free they are: all on the freest, what is left next.

    With `phi` the order of growing usage, `a[phi_j] = (1 - u[phi_j]) prod_{i < j} u[phi_i]`. Here
    the products are sums of logarithms over the pairs of locations, without sorting.

    Args:
        usage: float, `(batch, memory)`, in [0, 1].

    Returns:
        `(batch, memory)`, with a sum of at most 1.
    """
    dtype = keras.backend.standardize_dtype(usage.dtype)
    usage = ops.cast(usage, dtype if dtype == "float64" else "float32")
    usage = EPSILON + (1 - EPSILON) * usage
    place = ops.arange(usage.shape[-1])
    this, other = usage[:, :, None], usage[:, None, :]
    tie = ops.logical_and(ops.equal(other, this), place[:, None] > place[None, :])
    freer = ops.cast(ops.logical_or(other < this, tie), usage.dtype)
    return ops.cast((1 - usage) * ops.exp(ops.einsum("bji,bi->bj", freer, ops.log(usage))), dtype)


@keras.saving.register_keras_serializable(package="rum_keras")
class DNCCell(keras.layers.Layer):
    """LSTM cell that reads and writes a memory matrix.

    The controller, an LSTM cell, sees the input and what was read at the step before; a dense layer
    makes of its output `h` the interface: for each of R heads to read a key `k^r`, a strength
    `beta^r`, a free gate `f` and three modes `pi`; for the head to write a key `k^w`, a strength
    `beta^w`, what to erase, `e`, and to write, `v`, an allocation gate `g^a` and a write gate
    `g^w`. Then, with all of the step before on the right unless named before,

    ```
    u    = (u + w^w - u * w^w) * prod_heads (1 - f w^r)             usage             (memory)
    w^w  = g^w (g^a a(u) + (1 - g^a) C(M, k^w, beta^w))             write weighting   (memory)
    M    = M * (1 - w^w e^T) + w^w v^T                              memory     (memory, width)
    L_ij = (1 - w^w_i - w^w_j) L_ij + w^w_i p_j,  L_ii = 0          links     (memory, memory)
    p    = (1 - sum w^w) p + w^w                                    precedence        (memory)
    w^r  = pi_1 L^T w^r + pi_2 C(M, k^r, beta^r) + pi_3 L w^r       for each head     (memory)
    r    = M^T w^r                                                  for each head      (width)
    ```

    `a` is `allocation_weighting`, `C` is `content_weighting`. The output is `h` and all `r` side by
    side, (units + heads width). States, all flat: the output, the cell state of the LSTM (units),
    `M`, `u`, `w^w`, `p`, `L` and all `w^r`, at first 0.

    Args:
        units: Positive integer, the size of `h`.
        memory: Positive integer, the number of locations.
        width: Positive integer, the size of a location.
        read_heads: Positive integer, R.
        clip: Positive float, the largest absolute value of `h`.
        usage_gradient: Whether gradients pass from the usage to the write weighting before it: in
            the paper they do, in the authors' code they do not.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, `(batch, features)`.
        states: List of the states.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Graves et al., 2016](https://doi.org/10.1038/nature20101), Methods.
    """

    def __init__(
        self,
        units: int,
        memory: int,
        width: int,
        read_heads: int,
        clip: float = 20.0,
        usage_gradient: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in ("units", "memory", "width", "read_heads", "clip"):
            if not locals()[name] > 0:
                raise ValueError(f"`{name}` must be positive, received {locals()[name]}.")
        self.units, self.memory, self.width = units, memory, width
        self.read_heads, self.clip, self.usage_gradient = read_heads, clip, usage_gradient
        self.output_size = units + read_heads * width
        self.state_size = [
            *(self.output_size, units, memory * width, memory, memory, memory),
            *(memory * memory, read_heads * memory),
        ]
        self.controller = keras.layers.LSTMCell(units, dtype=self.dtype_policy)
        # The parts of the interface: read keys, strengths, free gates and modes, then the writer's.
        self._sizes = [
            *(read_heads * width, read_heads, read_heads, 3 * read_heads),
            *(width, 1, width, width, 1, 1),
        ]
        self.interface = keras.layers.Dense(sum(self._sizes), dtype=self.dtype_policy)

    def build(self, input_shape):
        self.controller.build((None, input_shape[-1] + self.read_heads * self.width))
        self.interface.build((None, self.units))
        self.built = True

    def call(self, inputs, states):
        output, c, memory, usage, written, precedence, links, read = states
        batch, heads = ops.shape(inputs)[0], self.read_heads
        memory = ops.reshape(memory, (batch, self.memory, self.width))
        links = ops.reshape(links, (batch, self.memory, self.memory))
        read = ops.reshape(read, (batch, heads, self.memory))

        sight = ops.concatenate([inputs, output[:, self.units :]], axis=-1)
        h, (_, c) = self.controller(sight, [output[:, : self.units], c])
        h = ops.clip(h, -self.clip, self.clip)
        reading, writing = self._interface(h, batch)

        usage = self._usage(usage, written, read, reading["free"])
        written = self._write_weighting(memory, usage, writing)
        memory = memory * (1 - written[..., None] * writing["erase"][:, None])
        memory = memory + written[..., None] * writing["value"][:, None]
        links = self._links(links, written, precedence)
        precedence = (1 - ops.sum(written, axis=-1, keepdims=True)) * precedence + written

        content = content_weighting(memory, reading["keys"], reading["strengths"])
        backward = ops.einsum("bij,bhi->bhj", links, read)
        forward = ops.einsum("bij,bhj->bhi", links, read)
        ways = ops.stack([backward, content, forward], axis=2)
        read = ops.einsum("bhm,bhmn->bhn", reading["modes"], ways)
        found = ops.reshape(ops.matmul(read, memory), (batch, heads * self.width))

        output = ops.concatenate([h, found], axis=-1)
        new = [c, memory, usage, written, precedence, links, read]
        sizes = self.state_size[1:]
        flat = [ops.reshape(v, (batch, size)) for v, size in zip(new, sizes, strict=True)]
        return output, [output, *flat]

    def _interface(self, h, batch):
        """Returns what the controller says of reading and of writing."""
        ends = [sum(self._sizes[:part]) for part in range(1, len(self._sizes))]
        parts = ops.split(self.interface(h), ends, axis=-1)
        keys, strengths, free, modes = parts[:4]
        reading = {
            "keys": ops.reshape(keys, (batch, self.read_heads, self.width)),
            "strengths": 1 + ops.softplus(strengths),
            "free": ops.sigmoid(free),
            "modes": ops.softmax(ops.reshape(modes, (batch, self.read_heads, 3)), axis=-1),
        }
        key, strength, erase, value, allocation, write = parts[4:]
        writing = {
            "key": key[:, None],
            "strength": 1 + ops.softplus(strength),
            "erase": ops.sigmoid(erase),
            "value": value,
            "allocation": ops.sigmoid(allocation),
            "write": ops.sigmoid(write),
        }
        return reading, writing

    def _usage(self, usage, written, read, free):
        if not self.usage_gradient:
            written = ops.stop_gradient(written)
        kept = ops.prod(1 - free[..., None] * read, axis=1)
        return (usage + written - usage * written) * kept

    def _write_weighting(self, memory, usage, writing):
        content = content_weighting(memory, writing["key"], writing["strength"])[:, 0]
        gate = writing["allocation"]
        weighting = gate * allocation_weighting(usage) + (1 - gate) * content
        return writing["write"] * weighting

    def _links(self, links, written, precedence):
        row, column = written[:, :, None], written[:, None, :]
        links = (1 - row - column) * links + row * precedence[:, None, :]
        return links * (1 - ops.eye(self.memory, dtype=links.dtype))

    def get_config(self):
        names = ("units", "memory", "width", "read_heads", "clip", "usage_gradient")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
