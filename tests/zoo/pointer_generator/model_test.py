"""Tests of the pointer-generator: its formulas, its size, what is copied, and training."""

import math
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from tests.backend import to_numpy, weight_gradients
from tests.zoo.pointer_generator.small_model import (
    DOCUMENT,
    EMBEDDING,
    EXTENDED,
    INPUTS,
    REAL,
    SUMMARY,
    TARGET,
    UNITS,
    VOCABULARY,
    distributions,
    model,
    set_gate,
    sigmoid,
    softmax,
)
from zoo.pointer_generator.model import PointerGenerator


class Reference:
    """The LSTM model with coverage in float64, by loops over rows, words and steps."""

    def __init__(self, built):
        self.weights = {
            weight.path.split("/", 1)[1]: np.asarray(ops.convert_to_numpy(weight), np.float64)
            for weight in built.weights
        }

    def dense(self, path, values):
        return values @ self.weights[f"{path}/kernel"] + self.weights[f"{path}/bias"]

    def lstm(self, path, x, h, c):
        z = x @ self.weights[f"{path}/kernel"] + h @ self.weights[f"{path}/recurrent_kernel"]
        i, f, g, o = np.split(z + self.weights[f"{path}/bias"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def encode(self, words):
        embedded = self.weights["embedding/embeddings"][words]
        outputs, last = {}, {}
        for name, order in (("forward", 1), ("backward", -1)):
            h, c, found = np.zeros(UNITS), np.zeros(UNITS), []
            for x in embedded[::order]:
                h, c = self.lstm(f"encoder/{name}/lstm_cell", x, h, c)
                found.append(h)
            outputs[name], last[name] = found[::order], (h, c)
        z = np.concatenate([outputs["forward"], outputs["backward"]], axis=1)
        h, c = (np.concatenate([last["forward"][i], last["backward"][i]]) for i in (0, 1))
        h, c = (
            np.maximum(self.dense(f"encoder/reduce_{name}", value), 0)
            for name, value in (("h", h), ("c", c))
        )
        return z, h, c

    def row(self, words, extended, summary):
        """Returns P, p_gen, attention and coverage loss of each step of one row."""
        z, h, c = self.encode(words)
        context, coverage, found = np.zeros(2 * UNITS), np.zeros(len(words)), []
        attention = {
            name: self.weights[f"decoder/attention/{name}"]
            for name in ("key_kernel", "query_kernel", "bias", "score", "coverage_kernel")
        }
        for word in summary:
            embedded = self.weights["embedding/embeddings"][word]
            x = self.dense("decoder/input", np.concatenate([embedded, context]))
            h, c = self.lstm("decoder/cell", x, h, c)
            d = np.concatenate([c, h])
            e = z @ attention["key_kernel"] + d @ attention["query_kernel"] + attention["bias"]
            e = e + coverage[:, None] * attention["coverage_kernel"]
            a = softmax(np.tanh(e) @ attention["score"])
            repeated = np.minimum(a, coverage).sum()
            coverage, context = coverage + a, a @ z
            gate = self.dense("decoder/pointer_gate", np.concatenate([context, d, x]))
            p_gen = sigmoid(gate[0])
            o = self.dense("decoder/output", np.concatenate([h, context]))
            P = np.concatenate([p_gen * softmax(self.dense("vocabulary", o)), np.zeros(2)])
            for i, copied in enumerate(extended):
                P[copied] += (1 - p_gen) * a[i]
            found.append((P, p_gen, a, repeated))
        return [np.array(values) for values in zip(*found, strict=True)]


class FormulaTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = model(coverage=True, coverage_weight=0.7)
        reference = Reference(cls.model)
        cls.expected = [
            reference.row(words[words != 1], extended[words != 1], summary[real])
            for words, extended, summary, real in zip(
                DOCUMENT, EXTENDED, SUMMARY, REAL, strict=True
            )
        ]
        cls.results = to_numpy(cls.model(INPUTS))

    def test_distributions_are_those_of_the_paper(self):
        found = distributions(self.model)
        for row, (P, *_) in enumerate(self.expected):
            np.testing.assert_allclose(found[row][: len(P)], P, atol=2e-6)

    def test_attention_pointer_and_coverage_are_those_of_the_paper(self):
        for row, (_, p_gen, attention, repeated) in enumerate(self.expected):
            steps, words = attention.shape
            logits = self.results["pointer_logits"][row, :steps]
            np.testing.assert_allclose(sigmoid(logits), p_gen, atol=2e-6)
            found = self.results["attention"][row, :steps]
            np.testing.assert_allclose(found[:, :words], attention, atol=2e-6)
            np.testing.assert_array_equal(found[:, words:], 0)
            found = self.results["coverage_loss"][row, :steps]
            np.testing.assert_allclose(found, repeated, atol=2e-6)

    def test_the_loss_averages_words_then_summaries(self):
        expected = 0
        for row, (P, _, _, repeated) in enumerate(self.expected):
            likelihood = P[np.arange(len(P)), TARGET[row, : len(P)]]
            expected += np.mean(-np.log(likelihood) + 0.7 * repeated) / len(TARGET)
        loss = self.model.compute_loss(INPUTS, TARGET, self.model(INPUTS))
        self.assertAlmostEqual(float(loss), expected, places=5)

    def test_weights_of_the_loss_may_be_given(self):
        results = self.model(INPUTS)
        weights = REAL / REAL.sum(axis=1, keepdims=True) / len(REAL)
        loss = self.model.compute_loss(INPUTS, TARGET, results)
        given = self.model.compute_loss(INPUTS, TARGET, results, weights.astype("float32"))
        self.assertAlmostEqual(float(given), float(loss), places=6)

    def test_coverage_is_what_was_looked_at_before(self):
        attention = self.results["attention"]
        before = np.cumsum(attention, axis=1) - attention
        expected = np.minimum(attention, before).sum(axis=-1)
        np.testing.assert_allclose(self.results["coverage_loss"], expected, atol=1e-6)
        self.assertGreater(expected[:, 1:].min(), 0.1)

    def test_metrics_are_means_over_words(self):
        self.model.reset_metrics()
        self.model.compute_loss(INPUTS, TARGET, self.model(INPUTS))
        losses = [
            -np.log(P[np.arange(len(P)), TARGET[row, : len(P)]])
            for row, (P, *_) in enumerate(self.expected)
        ]
        repeated = np.mean(np.concatenate([row[3] for row in self.expected]))
        expected = np.mean(np.concatenate(losses))
        found = {name: float(value) for name, value in self.model.get_metrics_result().items()}
        self.assertAlmostEqual(found["perplexity"], math.exp(expected), places=3)
        self.assertAlmostEqual(found["coverage_loss"], repeated, places=5)
        self.assertAlmostEqual(found["loss"], expected + 0.7 * repeated, places=5)


class SizeTest(parameterized.TestCase):
    @parameterized.parameters(
        (dict(pointer=False), 21_499_600),
        (dict(), 21_500_753),
        (dict(coverage=True), 21_501_265),
        # Two RUMs of 230,144 in place of two LSTMs of 394,240.
        (dict(encoder="rum"), 21_500_753 - 2 * 164_096),
        # One RUM more; attention and p_gen read h alone; one more reduction, of c and h.
        (dict(decoder="rum"), 21_500_753 - 164_096 - 256 * 512 - 256 + 131_328),
        (dict(encoder="rum", decoder="rum"), 21_500_753 - 3 * 164_096 - 256 * 512 - 256 - 131_328),
    )
    def test_paper_sizes_have_as_many_weights_as_counted(self, options, expected):
        built = PointerGenerator(50_000, **options)
        built.build()
        self.assertEqual(built.count_params(), expected)


class CopyTest(parameterized.TestCase):
    @parameterized.parameters(-200.0, -3.0, 0.0, 3.0, 200.0)
    def test_probabilities_sum_to_one(self, bias):
        built = model()
        set_gate(built, bias)
        np.testing.assert_allclose(distributions(built).sum(axis=-1), 1, atol=1e-5)

    def test_a_pointer_that_generates_copies_nothing(self):
        built = model()
        set_gate(built, 200.0)
        expected = softmax(to_numpy(built(INPUTS)["logits"]))
        found = distributions(built)
        np.testing.assert_allclose(found[..., :VOCABULARY], expected, atol=1e-6)
        np.testing.assert_array_equal(found[..., VOCABULARY:], 0)

    def test_a_pointer_that_copies_adds_up_the_places_of_a_word(self):
        built = model()
        set_gate(built, -200.0)
        attention = to_numpy(built(INPUTS)["attention"])[1]
        found = distributions(built)[1]
        np.testing.assert_allclose(found[:, 5], attention[:, 1] + attention[:, 3], atol=1e-6)
        np.testing.assert_allclose(found[:, 11], attention[:, 0] + attention[:, 4], atol=1e-6)
        np.testing.assert_allclose(found[:, 12], attention[:, 2], atol=1e-6)
        np.testing.assert_allclose(found[:, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]], 0, atol=1e-19)

    @parameterized.parameters(-200.0, 0.0, 200.0)
    def test_loss_and_gradients_are_finite_for_every_target(self, bias):
        built = model(coverage=True)
        set_gate(built, bias)
        # Known and in the document, known and not, copied, and copied from another document.
        target = np.array([[4, 10, 2, 3], [11, 7, 12, 3]])
        self.assert_finite(built, INPUTS, target)
        self.assert_finite(built, INPUTS, target[::-1])

    def assert_finite(self, built, inputs, target):
        loss, gradients = weight_gradients(
            built, lambda: built.compute_loss(inputs, target, built(inputs))
        )
        self.assertTrue(np.isfinite(loss))
        for name, gradient in gradients.items():
            # TensorFlow gives the gradient of an embedding by rows.
            values = gradient.item().values if gradient.dtype == object else gradient
            self.assertTrue(np.isfinite(to_numpy(values)).all(), name)

    def test_a_document_of_padding_alone_has_finite_loss_and_gradients(self):
        built = model(coverage=True)
        inputs = {**INPUTS, "document": np.ones_like(DOCUMENT), "document_extended": 0 * EXTENDED}
        self.assert_finite(built, inputs, TARGET)

    def test_half_precision_is_close(self):
        policy = keras.dtype_policies.DTypePolicy("mixed_float16")
        half, full = model(coverage=True, dtype=policy), model(coverage=True)
        losses = [built.compute_loss(INPUTS, TARGET, built(INPUTS)) for built in (half, full)]
        self.assertAlmostEqual(*map(float, losses), delta=0.02)

    @unittest.skipIf(keras.backend.backend() == "jax", "Keras on JAX has no float64")
    def test_double_precision_is_closer(self):
        policy = keras.dtype_policies.DTypePolicy("float64")
        double, single = model(coverage=True, dtype=policy), model(coverage=True)
        double.set_weights(single.get_weights())
        losses = [built.compute_loss(INPUTS, TARGET, built(INPUTS)) for built in (double, single)]
        self.assertEqual(keras.backend.standardize_dtype(losses[0].dtype), "float64")
        self.assertAlmostEqual(*map(float, losses), delta=1e-5)

    def test_without_pointer_there_is_only_the_vocabulary(self):
        built = model(pointer=False)
        results = built({name: INPUTS[name] for name in ("document", "summary")})
        self.assertNotIn("pointer_logits", results)
        target = np.where(TARGET < VOCABULARY, TARGET, 0)
        P = softmax(to_numpy(results["logits"]).astype(np.float64))
        likelihood = np.take_along_axis(P, target[..., None], axis=-1)[..., 0]
        expected = np.mean([np.mean(-np.log(likelihood[row][REAL[row]])) for row in range(2)])
        self.assertAlmostEqual(
            float(built.compute_loss(INPUTS, target, results)), expected, places=5
        )


class CoverageTest(parameterized.TestCase):
    def test_switching_it_on_adds_one_weight_and_changes_no_other(self):
        built = model(decoder="rum")
        covered = built.with_coverage()
        old = {weight.path.split("/", 1)[1]: to_numpy(weight) for weight in built.weights}
        new = {weight.path.split("/", 1)[1]: to_numpy(weight) for weight in covered.weights}
        self.assertEqual(set(new) - set(old), {"decoder/attention/coverage_kernel"})
        for path, value in old.items():
            np.testing.assert_array_equal(new[path], value)

    def test_the_first_step_is_as_it_was(self):
        built = model()
        first, second = distributions(built), distributions(built.with_coverage())
        np.testing.assert_allclose(first[:, 0], second[:, 0], atol=1e-6)


class TrainingTest(parameterized.TestCase):
    def test_it_learns_to_copy_words_that_have_no_id(self):
        keras.utils.set_random_seed(3)
        generator = np.random.default_rng(0)
        # The summary is the document's last word, which is never in the vocabulary.
        document = generator.integers(4, VOCABULARY, (64, 4))
        document[:, 3] = 0
        extended = document.copy()
        extended[:, 3] = VOCABULARY
        inputs = {
            "document": document,
            "document_extended": extended,
            "summary": np.array([[2, 0]] * 64),
        }
        target = np.array([[VOCABULARY, 3]] * 64)
        built = PointerGenerator(VOCABULARY, embedding=EMBEDDING, units=UNITS, decoder="rum")
        built.compile(keras.optimizers.Adam(0.05), jit_compile=False)
        built.fit(inputs, target, batch_size=32, epochs=8, verbose=0)
        self.assertLess(built.evaluate(inputs, target, verbose=0, return_dict=True)["loss"], 0.2)


if __name__ == "__main__":
    absltest.main()
