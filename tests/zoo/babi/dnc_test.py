"""Tests of DNC."""

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import backend
from tests.backend import FLOAT
from tests.rum_keras.cell_checks import CellChecks, inputs
from tests.zoo.babi.network_checks import (
    ANSWERS,
    SENTENCES,
    VOCABULARY,
    WORDS,
    NetworkChecks,
    examples,
)
from zoo.babi.dnc import dnc
from zoo.babi.dnc_cell import DNCCell, allocation_weighting, content_weighting

UNITS, MEMORY, WIDTH, HEADS = 6, 5, 3, 2
STATES = ("output", "c", "memory", "usage", "written", "precedence", "links", "read")


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    sizes = {"units": UNITS, "memory": MEMORY, "width": WIDTH, "read_heads": HEADS}
    return dnc(VOCABULARY, ANSWERS, sentences, words, **sizes, **options)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def softmax(values):
    return np.exp(values) / np.exp(values).sum(-1, keepdims=True)


def allocation(usage):
    """The allocation weighting of one example, by sorting; usage is kept off 0 by 1e-6."""
    usage = 1e-6 + (1 - 1e-6) * usage
    a, product = np.zeros_like(usage), 1.0
    for place in np.argsort(usage, kind="stable"):
        a[place] = (1 - usage[place]) * product
        product *= usage[place]
    return a


def content(memory, key, strength):
    norms = np.sqrt((memory**2).sum(-1) + 1e-6) * np.sqrt((key**2).sum() + 1e-6)
    return softmax(strength * (memory @ key) / norms)


def step(weights, x, state):
    """One step of one example, by the paper's equations."""
    kernel, recurrent, bias, interface, offset = weights
    h, r = state["output"][:UNITS], state["output"][UNITS:]
    z = np.concatenate([x, r]) @ kernel + h @ recurrent + bias
    i, f, new, o = z.reshape(4, UNITS)  # Keras's order.
    c = sigmoid(f) * state["c"] + sigmoid(i) * np.tanh(new)
    h = sigmoid(o) * np.tanh(c)
    sizes = [HEADS * WIDTH, HEADS, HEADS, 3 * HEADS, WIDTH, 1, WIDTH, WIDTH, 1]
    parts = np.split(h @ interface + offset, np.cumsum(sizes))
    keys, strengths, free, modes, write_key, write_strength, erase, value, g_a, g_w = parts
    read = state["read"].reshape(HEADS, MEMORY)
    u = state["usage"] + state["written"] - state["usage"] * state["written"]
    for head in range(HEADS):
        u = u * (1 - sigmoid(free[head]) * read[head])
    memory = state["memory"].reshape(MEMORY, WIDTH)
    looked_up = content(memory, write_key, 1 + np.log1p(np.exp(write_strength)))
    w = sigmoid(g_w) * (sigmoid(g_a) * allocation(u) + (1 - sigmoid(g_a)) * looked_up)
    memory = memory * (1 - np.outer(w, sigmoid(erase))) + np.outer(w, value)
    links = state["links"].reshape(MEMORY, MEMORY).copy()
    for row in range(MEMORY):
        for column in range(MEMORY):
            links[row, column] *= 1 - w[row] - w[column]
            links[row, column] += w[row] * state["precedence"][column]
    np.fill_diagonal(links, 0)
    pi = softmax(modes.reshape(HEADS, 3))
    new_read = []
    for head, key in enumerate(keys.reshape(HEADS, WIDTH)):
        by_content = content(memory, key, 1 + np.log1p(np.exp(strengths[head])))
        ways = [links.T @ read[head], by_content, links @ read[head]]
        new_read.append(pi[head] @ np.stack(ways))
    return {
        "output": np.concatenate([h, *(weighting @ memory for weighting in new_read)]),
        "c": c,
        "memory": memory.ravel(),
        "usage": u,
        "written": w,
        "precedence": (1 - w.sum()) * state["precedence"] + w,
        "links": links.ravel(),
        "read": np.concatenate(new_read),
    }


class DNCTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    def test_words_are_read_one_after_another_and_the_question_last(self):
        network = make().layers[-1]
        story, question = examples()
        words = np.concatenate([story[1][story[1] > 0], question[1][question[1] > 0]])
        sequence = np.eye(VOCABULARY, dtype="float32")[words - 1]
        expected = network.readout(network.reader(sequence[None]))
        actual = network([story[1:2], question[1:2]])
        np.testing.assert_allclose(actual, expected, atol=1e-6)


class DNCCellTest(parameterized.TestCase):
    # Of what cells must do: what is not tested of the network.
    assert_all_close = CellChecks.assert_all_close
    make_layer = CellChecks.make_layer
    test_masked_steps_keep_the_states = CellChecks.test_masked_steps_keep_the_states
    test_gradients_equal_finite_differences = CellChecks.test_gradients_equal_finite_differences

    def make_cell(self, dtype=None):
        keras.utils.set_random_seed(1)
        return DNCCell(UNITS, MEMORY, WIDTH, HEADS, usage_gradient=True, dtype=dtype)

    def run_cell(self, scale, time, start=None):
        """Returns a layer with strong weights, its inputs, and its states after them, by name."""
        layer = self.make_layer(return_state=True)
        x = scale * inputs(time=time)
        layer.build(x.shape)
        for variable in layer.trainable_variables:
            variable.assign(scale * variable)
        _, *states = layer(x, initial_state=start and list(start.values()))
        return layer, x, dict(zip(STATES, backend.to_numpy(states), strict=True))

    def test_states_are_those_of_the_equations(self):
        rng = np.random.default_rng(0)
        # All different, lest the order of locations hang on rounding; sums stay below 1.
        start = {
            name: rng.uniform(0, 1 / MEMORY, (2, size)).astype(FLOAT)
            for name, size in zip(STATES, self.make_cell().state_size, strict=True)
        }
        layer, x, states = self.run_cell(2.0, 4, start)
        weights = [array.astype("float64") for array in layer.get_weights()]
        for row in range(len(x)):
            state = {name: values[row].astype("float64") for name, values in start.items()}
            for now in x[row]:
                state = step(weights, now, state)
            for name, expected in state.items():
                with self.subTest(name):
                    self.assert_all_close(states[name][row], expected, float32=1e-4)

    def test_weightings_and_usage_are_in_their_bounds(self):
        _, _, states = self.run_cell(scale=10.0, time=20)
        links = states["links"].reshape(-1, MEMORY, MEMORY)
        read = states["read"].reshape(-1, HEADS, MEMORY)
        self.assertGreater(states["usage"].max(), 0.5)  # Something happened.
        self.assertGreater(links.max(), 0.1)
        for weighting in (states["written"], states["precedence"], read):
            self.assertGreaterEqual(weighting.min(), -1e-6)
            self.assertLessEqual(weighting.sum(-1).max(), 1 + 1e-5)
        self.assertGreaterEqual(states["usage"].min(), 0)
        self.assertLessEqual(states["usage"].max(), 1)
        for axis in (1, 2):
            self.assertLessEqual(links.sum(axis).max(), 1 + 1e-5)
        self.assertGreaterEqual(links.min(), -1e-6)
        np.testing.assert_array_equal(np.diagonal(links, axis1=1, axis2=2), 0)

    def test_gradients_pass_from_usage_to_writing_on_demand(self):
        written = np.full((1, MEMORY), 0.1, "float32")

        def usage(written, cell):
            read, free = np.zeros((1, HEADS, MEMORY), "float32"), np.zeros((1, HEADS), "float32")
            return keras.ops.sum(cell._usage(np.zeros_like(written), written, read, free))

        for through in (True, False):
            cell = DNCCell(UNITS, MEMORY, WIDTH, HEADS, usage_gradient=through)
            _, (gradient,) = backend.value_and_gradients(lambda w, c=cell: usage(w, c), written)
            np.testing.assert_array_equal(gradient, np.full((1, MEMORY), float(through)))

    def test_the_controller_is_clipped(self):
        keras.utils.set_random_seed(1)
        cell = DNCCell(UNITS, MEMORY, WIDTH, HEADS, clip=0.01)
        output = keras.ops.convert_to_numpy(keras.layers.RNN(cell)(inputs(dtype="float32")))
        self.assertAlmostEqual(abs(output[:, :UNITS]).max(), 0.01, places=6)

    def test_a_wrong_argument_is_named(self):
        with self.assertRaisesRegex(ValueError, "`width` must be positive, received 0"):
            DNCCell(UNITS, MEMORY, 0, HEADS)


class WeightingTest(parameterized.TestCase):
    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.integers(0, 20), min_size=6, max_size=6))
    def test_allocation_is_that_of_sorting_and_sums_to_at_most_1(self, twentieths):
        usage = np.array([twentieths], "float32") / 20
        a = keras.ops.convert_to_numpy(allocation_weighting(usage))
        np.testing.assert_allclose(a[0], allocation(usage[0].astype("float64")), atol=1e-5)
        self.assertLessEqual(a.sum(), 1 + 1e-5)

    def test_allocation_takes_the_first_of_equally_free_locations(self):
        for usage in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]):
            a = keras.ops.convert_to_numpy(allocation_weighting(np.array([usage], "float32")))
            np.testing.assert_allclose(a[0], np.eye(3)[int(usage[0])], atol=1e-5)

    def test_allocation_has_finite_gradients_at_the_bounds(self):
        usage = np.array([[0.0, 1.0, 0.0, 1.0]], "float32")
        place = np.arange(4, dtype="float32")
        _, (gradient,) = backend.value_and_gradients(
            lambda usage: keras.ops.sum(allocation_weighting(usage) * place), usage
        )
        self.assertTrue(np.isfinite(gradient).all())

    def test_content_of_an_empty_memory_is_everywhere_alike(self):
        keys, strengths = np.ones((1, 2, 3), "float32"), np.ones((1, 2), "float32")
        weighting = content_weighting(np.zeros((1, 4, 3), "float32"), keys, strengths)
        np.testing.assert_allclose(weighting, np.full((1, 2, 4), 0.25), atol=1e-6)

    def test_a_strong_key_finds_its_location(self):
        memory = np.eye(4, dtype="float32")[None]
        weighting = content_weighting(memory, 2 * memory[:, 2:3], np.full((1, 1), 50, "float32"))
        np.testing.assert_allclose(weighting[0, 0], np.eye(4)[2], atol=1e-6)


if __name__ == "__main__":
    absltest.main()
