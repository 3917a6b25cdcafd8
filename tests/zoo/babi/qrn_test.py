"""Tests of QRN."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests import backend
from tests.zoo.babi.network_checks import (
    ANSWERS,
    SENTENCES,
    VOCABULARY,
    WORDS,
    NetworkChecks,
    examples,
    strengthened,
)
from tests.zoo.babi.position_encoding import formula
from zoo.babi.qrn import linear_recurrence, qrn


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    return qrn(VOCABULARY, ANSWERS, sentences, words, **{"units": 6, **options})


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def expected_logits(weights, story, question, layers, reset, size, shared):
    """The logits of one example, by the paper's equations, step by step."""
    story = story[story.any(-1)]
    x = [formula(weights["embedding"][ids[ids > 0]]) / 2 for ids in story]
    q = [formula(weights["embedding"][question[question > 0]]) / 2] * len(x)
    for layer in range(layers):
        k = 0 if shared else layer

        def gate(t, number, q=q, k=k):
            part = slice(number * size, (number + 1) * size)
            kernel, bias = weights[f"gate_kernel_{k}"], weights[f"gate_bias_{k}"]
            return sigmoid((x[t] * q[t]) @ kernel[:, part] + bias[part])

        def read(order, number, q=q, k=k, gate=gate):
            h, states = np.zeros(6), {}
            for t in order:
                new = np.tanh(np.concatenate([x[t], q[t]]) @ weights[f"kernel_{k}"])
                r = gate(t, number) if number else 1
                z = gate(t, 0)
                h = z * r * new + (1 - z) * h
                states[t] = h
            return [states[t] for t in sorted(states)]

        steps = range(len(x))
        if layer == layers - 1:
            return read(steps, 0)[-1] @ weights["readout_kernel"]
        forward = read(steps, 1 if reset else 0)
        backward = read(reversed(steps), 2 if reset else 0)
        q = [a + b for a, b in zip(forward, backward, strict=True)]


class QRNTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    @parameterized.product(
        reset_gate=(True, False), vector_gates=(True, False), shared_layers=(True, False)
    )
    def test_logits_are_those_of_the_equations(self, **options):
        model = make(layers=3, **options)
        weights = strengthened(model)
        story, question = examples()
        for row, logits in enumerate(self.logits(model, story, question)):
            expected = expected_logits(
                weights,
                story[row],
                question[row],
                3,
                options["reset_gate"],
                6 if options["vector_gates"] else 1,
                options["shared_layers"],
            )
            np.testing.assert_allclose(logits, expected, atol=1e-5)

    @parameterized.product(time=(1, 2, 7), reverse=(True, False))
    def test_the_recurrence_at_once_is_that_in_a_loop(self, time, reverse):
        rng = np.random.default_rng(0)
        keep, new = rng.uniform(size=(2, time, 1)), rng.normal(size=(2, time, 3))
        keep[:, 0] = 0  # A logarithm would not take it.
        expected, h = np.zeros_like(new), 0
        for t in reversed(range(time)) if reverse else range(time):
            expected[:, t] = h = keep[:, t] * h + new[:, t]
        actual = linear_recurrence(keep.astype("float32"), new.astype("float32"), reverse)
        np.testing.assert_allclose(actual, expected, atol=1e-6)

    def test_gates_that_are_shut_have_finite_gradients(self):
        keep = np.zeros((1, 4, 2), "float32")
        _, gradients = backend.value_and_gradients(
            lambda keep, new: keras.ops.sum(linear_recurrence(keep, new)), keep, keep + 1
        )
        np.testing.assert_array_equal(gradients[0][0, :, 0], [0, 1, 1, 1])
        np.testing.assert_array_equal(gradients[1][0, :, 0], [1, 1, 1, 1])

    def test_the_update_gate_alone_starts_nearly_shut(self):
        bias = strengthened(make(gate_bias=2.5))["gate_bias_0"]
        np.testing.assert_array_equal(bias, [-2.5, 0, 0])

    def test_the_weight_decay_is_half_the_square_of_each_matrix(self):
        model = make(weight_decay=0.1)
        squares = sum((w**2).sum() for w in strengthened(model).values() if w.ndim == 2)
        np.testing.assert_allclose(float(sum(model.losses)), 0.05 * squares, rtol=1e-5)

    def test_layers_that_share_have_as_many_weights_as_one(self):
        one, shared = make(layers=2).count_params(), make(layers=3).count_params()
        self.assertEqual(shared, one)
        self.assertGreater(make(layers=3, shared_layers=False).count_params(), one)

    @parameterized.parameters(
        ({"layers": 0}, "`layers` must be positive, received 0"),
        ({"weight_decay": -1.0}, "`weight_decay` must not be negative, received -1.0"),
    )
    def test_a_wrong_argument_is_named(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            make(**options)


if __name__ == "__main__":
    absltest.main()
