"""The decoder of the pointer-generator: a recurrent cell that attends to the document."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

import rum_keras
from rum_keras.pointer import CoverageAttention, coverage_loss
from zoo.pointer_generator.encoder import CELLS, lstm_options


@keras.saving.register_keras_serializable(package="zoo")
class AttentionDecoder(keras.layers.Layer):
    """Writes a summary word by word, looking at the document.

    With y_{t-1} the word before, d_t the state of the cell, z_i the encoder's outputs:

    ```
    x_t     = [E y_{t-1}; c_{t-1}] W_x + b_x                 input              (batch, embedding)
    s_t     = cell(x_t, s_{t-1})                             state
    a_t     = attention of d_t over z, given the coverage    weights               (batch, source)
    c_t     = sum_i a_ti z_i                                 context             (batch, 2 units)
    p_gen,t = sigmoid([c_t; d_t; x_t] w_p + b_p)             chance to generate        (batch, 1)
    o_t     = [h_t; c_t] W_o + b_o                           output               (batch, units)
    ```

    d_t is `[cell state; h_t]` of an LSTM, as in See et al.; a RUM has no cell state, so it is h_t
    alone, and the weights of d_t are half as many. The coverage is the sum of the weights a of all
    steps before. The context is zero before the first step, in training and in decoding (the
    released code decodes from other values; see `start`).

    Args:
        units: Size of the state; the encoder's outputs are twice as wide.
        cell: `"lstm"` or `"rum"`.
        pointer: Whether there is p_gen.
        coverage: Whether attention reads the coverage.
        rum_options: Further arguments of `rum_keras.RUMCell`.
        **kwargs: `name` and `dtype` of `keras.layers.Layer`.

    Call arguments:
        embedded: Float tensor, shape `(batch, target, embedding)`: E y_{t-1} of all steps.
        state: The first state, and
        memory: what all steps share: both from `start`.

    Returns:
        Dictionary of o, (batch, target, units); `attention`, (batch, target, source); `hidden`, h,
        (batch, target, units); with pointer `pointer_logits`, (batch, target), whose sigmoid is
        p_gen; and with coverage `coverage_loss`, (batch, target): sum_i min(a_i, coverage_i).

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), Equations 1 to 13.
    """

    def __init__(
        self,
        units: int,
        cell: str = "lstm",
        pointer: bool = True,
        coverage: bool = False,
        rum_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        # autocast would round the coverage to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        if cell not in CELLS:
            raise ValueError(f"`cell` must be one of {CELLS}, received {cell!r}.")
        self.units = units
        self.cell_name = cell
        self.pointer = pointer
        self.coverage = coverage
        self.rum_options = dict(rum_options or {})
        options = {"name": "cell", "dtype": self.dtype_policy}
        if cell == "lstm":
            self.cell = keras.layers.LSTMCell(units, **options, **lstm_options())
        else:
            self.cell = rum_keras.RUMCell(units, **options, **self.rum_options)
        self.attend = CoverageAttention(
            2 * units, coverage=coverage, name="attention", dtype=self.dtype_policy
        )
        self.pointer_gate = None
        if pointer:
            self.pointer_gate = self._dense(1, "pointer_gate", "glorot_uniform", "zeros")

    @property
    def precise_dtype(self) -> str:
        """The dtype of coverage and p_gen, as of attention: never half precision."""
        return "float64" if self.compute_dtype == "float64" else "float32"

    def _dense(self, units, name, kernel, bias):
        return keras.layers.Dense(
            units,
            kernel_initializer=kernel,
            bias_initializer=bias,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, embedded_shape, *_):
        features, units = embedded_shape[-1], self.units
        state = units * (2 if self.cell_name == "lstm" else 1)
        self.input_projection = self._dense(features, "input", "glorot_uniform", "zeros")
        self.output_projection = self._dense(units, "output", "glorot_uniform", "zeros")
        self.input_projection.build((None, features + 2 * units))
        self.cell.build((None, features))
        self.attend.build((None, state), (None, None, 2 * units))
        if self.pointer:
            self.pointer_gate.build((None, 2 * units + state + features))
        self.output_projection.build((None, 3 * units))
        self.built = True

    def start(
        self, outputs: Any, mask: Any, states: list[Any], initial_attention: bool = False
    ) -> tuple[dict, dict]:
        """Returns what all steps share, and the first state.

        Args:
            outputs: z, shape `(batch, source, 2 * units)`.
            mask: Bool tensor, shape `(batch, source)`.
            states: The first states of the cell, as `BidirectionalEncoder` returns them.
            initial_attention: Whether the first context and coverage are those of attention from
                the first state, as See et al.'s code has them when it decodes, but not when it
                trains.
        """
        memory = {"outputs": outputs, "keys": self.attend.keys(outputs), "mask": mask}
        first = self.cell.get_initial_state(batch_size=ops.shape(outputs)[0])
        first = list(first) if isinstance(first, (list, tuple)) else [first]
        # h and c of the encoder; the memory of a RUM starts as the identity, which is zeros.
        first[: len(states)] = [
            ops.cast(value, old.dtype) for value, old in zip(states, first, strict=False)
        ]
        state = {
            "cell": first,
            "context": ops.zeros_like(outputs[:, 0]),
            "coverage": ops.zeros_like(memory["keys"][:, :, 0]),
        }
        state["coverage"] = ops.cast(state["coverage"], self.precise_dtype)
        if initial_attention:
            context, weights = self._attend(first, state["coverage"], memory)
            state = {**state, "context": context, "coverage": weights}
        return memory, state

    def _query(self, states):
        values = [states[1], states[0]] if self.cell_name == "lstm" else [states[0]]
        return ops.cast(ops.concatenate(values, axis=-1), self.compute_dtype)

    def _attend(self, states, coverage, memory):
        return self.attend(
            self._query(states),
            memory["outputs"],
            keys=memory["keys"],
            mask=memory["mask"],
            coverage=coverage if self.coverage else None,
        )

    def _input(self, embedded, context):
        return self.input_projection(ops.concatenate([embedded, context], axis=-1))

    def _advance(self, embedded, state, memory, training):
        """Returns the next state, and the weights of attention."""
        x = self._input(embedded, state["context"])
        _, states = self.cell(x, state["cell"], training=training)
        context, weights = self._attend(states, state["coverage"], memory)
        coverage = state["coverage"] + weights
        return {"cell": list(states), "context": context, "coverage": coverage}, weights

    def _results(self, embedded, before, after, weights):
        """Returns what was written: the rest of one step, or of all steps at once.

        Args:
            embedded: The words before, (..., embedding).
            before: The context before, (..., 2 * units).
            after: Context and states of the cell after.
            weights: Attention, (..., source).
        """
        hidden = ops.cast(after["cell"][0], self.compute_dtype)
        results = {
            "output": self.output_projection(ops.concatenate([hidden, after["context"]], axis=-1)),
            "attention": weights,
            "hidden": hidden,
        }
        if self.pointer:
            x = self._input(embedded, before)
            gate = ops.concatenate([after["context"], self._query(after["cell"]), x], axis=-1)
            results["pointer_logits"] = ops.cast(
                self.pointer_gate(gate)[..., 0], self.precise_dtype
            )
        return results

    def step(self, embedded: Any, state: dict, memory: dict, training: bool = False) -> tuple:
        """Takes one step.

        Args:
            embedded: Float tensor, shape `(batch, embedding)`: the word before.
            state: As `start` or the step before returned it.
            memory: As `start` returned it.
            training: Whether a RUM's dropout and zoneout are random.

        Returns:
            The dictionary of a call without its axis of time and the coverage loss, and the new
            state.
        """
        new, weights = self._advance(embedded, state, memory, training)
        return self._results(embedded, state["context"], new, weights), new

    def call(self, embedded, state, memory, training=False):
        def step(state, now):
            new, weights = self._advance(now, state, memory, training)
            # What a scan gathers must look like the state. All else is computed after the loop.
            return new, {**new, "coverage": weights}

        after = ops.scan(step, state, ops.swapaxes(embedded, 0, 1))[1]
        after = keras.tree.map_structure(lambda value: ops.swapaxes(value, 0, 1), after)
        weights = after["coverage"]
        before = ops.concatenate([state["context"][:, None], after["context"][:, :-1]], axis=1)
        results = self._results(embedded, before, after, weights)
        if self.coverage:
            results["coverage_loss"] = coverage_loss(weights)
        return results

    def get_config(self):
        config = {name: getattr(self, name) for name in ("units", "pointer", "coverage")}
        config |= {"cell": self.cell_name, "rum_options": self.rum_options}
        return {**super().get_config(), **config}
