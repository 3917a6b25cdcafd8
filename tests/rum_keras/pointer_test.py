"""Attention with coverage and copying against NumPy in float64, and the laws of both."""

import os
import tempfile
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from rum_keras.pointer import (
    CoverageAttention,
    copy_distribution,
    copy_log_probability,
    coverage_loss,
)
from tests import backend
from tests.backend import FLOAT, tolerance

BATCH, SOURCE, TARGET, FEATURES, QUERY, UNITS, VOCABULARY = 2, 5, 3, 4, 7, 6, 8
MASK = np.array([[True] * 5, [True, True, True, False, False]])


def normal(*shape, seed=0, dtype=FLOAT):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, "float64")))


def make_attention(coverage=True, dtype=FLOAT, seed=0):
    layer = CoverageAttention(UNITS, coverage=coverage, dtype=dtype)
    layer.build((BATCH, QUERY), (BATCH, SOURCE, FEATURES))
    for i, weight in enumerate(layer.weights):
        weight.assign(normal(*weight.shape, seed=seed + i))
    return layer


def attention_inputs(dtype=FLOAT):
    return (
        normal(BATCH, QUERY, seed=10, dtype=dtype),
        normal(BATCH, SOURCE, FEATURES, seed=11, dtype=dtype),
        abs(normal(BATCH, SOURCE, seed=12, dtype=dtype)),
    )


def attention_reference(layer, query, values, mask, coverage):
    """Returns context and weights, in float64, position by position."""
    w = {weight.name: backend.to_numpy(weight).astype("float64") for weight in layer.weights}
    scores = np.full((len(query), values.shape[1]), -np.inf)
    for row, i in np.argwhere(mask):
        total = values[row, i] @ w["key_kernel"] + query[row] @ w["query_kernel"] + w["bias"]
        if coverage is not None:
            total = total + coverage[row, i] * w["coverage_kernel"]
        scores[row, i] = w["score"] @ np.tanh(total)
    weights = softmax(scores)
    return np.einsum("bi,bif->bf", weights, values), weights


class CoverageAttentionTest(parameterized.TestCase):
    @parameterized.parameters(True, False)
    def test_equals_the_definition(self, with_coverage):
        layer = make_attention(with_coverage)
        query, values, coverage = attention_inputs()
        coverage = coverage if with_coverage else None
        context, weights = layer(query, values, mask=MASK, coverage=coverage)
        expected = attention_reference(layer, query, values, MASK, coverage)
        np.testing.assert_allclose(context, expected[0], rtol=0, atol=tolerance(1e-12))
        np.testing.assert_allclose(weights, expected[1], rtol=0, atol=tolerance(1e-12))

    def test_gradients_equal_finite_differences(self):
        layer = make_attention()
        query, values, coverage = attention_inputs()
        c = normal(BATCH, FEATURES, seed=3)

        def loss(*arrays):
            context, weights = layer(arrays[0], arrays[1], mask=MASK, coverage=arrays[2])
            return ops.sum(context * c) + ops.sum(ops.square(weights))

        arrays = (query, values, coverage)
        _, gradients = backend.value_and_gradients(loss, *arrays)
        step = tolerance(1e-6, 1e-2)
        for i, gradient in enumerate(gradients):
            along = normal(*arrays[i].shape, seed=20)
            ends = [
                float(loss(*arrays[:i], arrays[i] + sign * step * along, *arrays[i + 1 :]))
                for sign in (1, -1)
            ]
            slope = (ends[0] - ends[1]) / (2 * step)
            self.assertAlmostEqual((gradient * along).sum(), slope, delta=tolerance(1e-6, 1e-2))

    def test_keys_computed_before_give_the_same(self):
        layer = make_attention()
        query, values, coverage = attention_inputs()
        expected = layer(query, values, mask=MASK, coverage=coverage)
        actual = layer(query, values, keys=layer.keys(values), mask=MASK, coverage=coverage)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_many_queries_of_a_row_give_the_same_as_one_by_one(self):
        layer = make_attention()
        _, values, _ = attention_inputs()
        queries, coverage = normal(BATCH, 3, QUERY), abs(normal(BATCH, 3, SOURCE))
        together = layer(queries, values, mask=MASK, coverage=coverage)
        for i in range(3):
            one = layer(queries[:, i], values, mask=MASK, coverage=coverage[:, i])
            for actual, expected in zip(together, one, strict=True):
                np.testing.assert_allclose(actual[:, i], expected, rtol=0, atol=tolerance(1e-12))

    def test_masked_positions_get_exactly_0_and_no_value_there_matters(self):
        layer = make_attention()
        query, values, coverage = attention_inputs()
        context, weights = layer(query, values, mask=MASK, coverage=coverage)
        np.testing.assert_array_equal(weights[1, 3:], [0, 0])
        np.testing.assert_allclose(ops.sum(weights, -1), [1, 1], rtol=1e-6)
        changed = np.where(MASK[..., None], values, 1e3).astype(FLOAT)
        np.testing.assert_array_equal(
            layer(query, changed, mask=MASK, coverage=coverage)[0], context
        )

    def test_a_row_alone_and_without_its_padding_gives_the_same(self):
        layer = make_attention()
        query, values, coverage = attention_inputs()
        context, weights = layer(query, values, mask=MASK, coverage=coverage)
        alone = layer(query[1:], values[1:, :3], coverage=coverage[1:, :3])
        np.testing.assert_allclose(context[1], alone[0][0], rtol=0, atol=tolerance(1e-12))
        np.testing.assert_allclose(weights[1, :3], alone[1][0], rtol=0, atol=tolerance(1e-12))

    def test_a_row_of_padding_alone_gives_zeros_and_finite_gradients(self):
        layer = make_attention()
        query, values, coverage = attention_inputs()
        mask = np.array([[True] * 5, [False] * 5])
        context, weights = layer(query, values, mask=mask, coverage=coverage)
        np.testing.assert_array_equal(context[1], np.zeros(FEATURES))
        np.testing.assert_array_equal(weights[1], np.zeros(SOURCE))
        _, gradients = backend.value_and_gradients(
            lambda q, v: ops.sum(layer(q, v, mask=mask, coverage=coverage)[0]), query, values
        )
        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients))

    def test_coverage_adds_one_weight_and_nothing_changes_before_the_first_step(self):
        without, layer = make_attention(coverage=False), make_attention()
        names = [weight.name for weight in without.weights]
        self.assertEqual([*names, "coverage_kernel"], [weight.name for weight in layer.weights])
        query, values, coverage = attention_inputs()
        np.testing.assert_array_equal(
            layer(query, values, coverage=0 * coverage)[1], without(query, values)[1]
        )
        difference = layer(query, values, coverage=coverage)[1] - without(query, values)[1]
        self.assertGreater(abs(backend.to_numpy(difference)).max(), 0.01)

    @parameterized.parameters((False, 525_312), (True, 525_312 + 512))
    def test_number_of_parameters_at_the_paper_s_size(self, coverage, count):
        layer = CoverageAttention(512, coverage=coverage)
        layer.build((None, 512), (None, None, 512))
        self.assertEqual(layer.count_params(), count)

    @parameterized.parameters("mixed_float16", "mixed_bfloat16")
    def test_half_precision_is_close_to_float32_and_weights_stay_float32(self, policy):
        query, values, coverage = attention_inputs("float32")
        expected = make_attention(dtype="float32")(query, values, mask=MASK, coverage=coverage)
        actual = make_attention(dtype=policy)(query, values, mask=MASK, coverage=coverage)
        self.assertEqual(keras.backend.standardize_dtype(actual[1].dtype), "float32")
        self.assertEqual(
            keras.backend.standardize_dtype(actual[0].dtype), policy.removeprefix("mixed_")
        )
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(
                backend.to_numpy(ops.cast(one, "float32")), other, rtol=0, atol=0.05
            )

    def test_a_model_survives_a_keras_file_without_custom_objects(self):
        query, values = keras.Input((QUERY,)), keras.Input((None, FEATURES))
        outputs = CoverageAttention(UNITS)(query, values)
        self.assertEqual([o.shape for o in outputs], [(None, FEATURES), (None, None)])
        model = keras.Model([query, values], outputs)
        inputs = list(attention_inputs("float32")[:2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.saving.load_model(path)
        np.testing.assert_allclose(loaded(inputs)[0], model(inputs)[0], rtol=0, atol=1e-6)

    def test_wrong_arguments_are_named(self):
        query, values, coverage = attention_inputs()
        with self.assertRaisesRegex(ValueError, "`units` must be positive, received 0"):
            CoverageAttention(0)
        with self.assertRaisesRegex(ValueError, "`coverage` must be given"):
            make_attention()(query, values)
        with self.assertRaisesRegex(ValueError, "`coverage` must be None"):
            make_attention(coverage=False)(query, values, coverage=coverage)


class CoverageLossTest(parameterized.TestCase):
    def test_equals_the_definition_and_is_between_0_and_1(self):
        attention = softmax(2 * normal(BATCH, 9, SOURCE))
        loss = backend.to_numpy(coverage_loss(attention))
        coverage = np.zeros((BATCH, SOURCE))
        for t in range(9):
            expected = np.minimum(attention[:, t], coverage).sum(-1)
            np.testing.assert_allclose(loss[:, t], expected, rtol=0, atol=tolerance(1e-12))
            coverage += attention[:, t]
        self.assertTrue((loss >= 0).all() and (loss <= 1 + 1e-6).all())

    def test_looking_at_new_positions_costs_nothing_and_at_one_all(self):
        np.testing.assert_array_equal(coverage_loss(np.eye(4)[None]), np.zeros((1, 4)))
        same = np.broadcast_to(np.eye(4)[0], (1, 4, 4))
        np.testing.assert_array_equal(coverage_loss(same), [[0, 1, 1, 1]])


def pointer_inputs(seed=0, extra=3):
    """Returns logits, pointer logits, attention, source ids, of one step of each row."""
    rng = np.random.default_rng(seed)
    attention = softmax(rng.normal(size=(BATCH, SOURCE))) * MASK
    attention /= attention.sum(-1, keepdims=True)
    return (
        rng.normal(size=(BATCH, VOCABULARY)).astype(FLOAT),
        rng.normal(size=BATCH).astype(FLOAT),
        attention.astype(FLOAT),
        rng.integers(0, VOCABULARY + extra, size=(BATCH, SOURCE)),
    )


def copy_reference(logits, pointer_logits, attention, source_ids, extra):
    p_gen = sigmoid(pointer_logits)[:, None]
    result = np.pad(p_gen * softmax(logits.astype("float64")), ((0, 0), (0, extra)))
    for row, ids in enumerate(source_ids):
        for i, word in enumerate(ids):
            result[row, word] += (1 - p_gen[row, 0]) * attention[row, i]
    return result


class CopyDistributionTest(parameterized.TestCase):
    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 999))
    def test_equals_the_definition_and_sums_to_1(self, seed):
        inputs = pointer_inputs(seed)
        actual = backend.to_numpy(copy_distribution(*inputs, 3))
        expected = copy_reference(*inputs, 3)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(1e-12, 1e-6))
        np.testing.assert_allclose(actual.sum(-1), [1, 1], rtol=1e-5)

    def test_p_gen_1_is_the_vocabulary_alone(self):
        logits, _, attention, ids = pointer_inputs()
        actual = copy_distribution(logits, np.full(BATCH, 1e4, FLOAT), attention, ids, 3)
        expected = np.pad(softmax(logits), ((0, 0), (0, 3)))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(1e-12, 1e-6))
        np.testing.assert_array_equal(backend.to_numpy(actual)[:, VOCABULARY:], np.zeros((2, 3)))

    def test_p_gen_0_is_the_attention_alone_and_words_that_appear_twice_get_the_sum(self):
        logits, _, attention, _ = pointer_inputs()
        ids = np.array([[1, 9, 1, 9, 1], [10, 2, 10, 0, 0]])
        actual = copy_distribution(logits, np.full(BATCH, -1e4, FLOAT), attention, ids, 3)
        a, expected = attention, np.zeros((2, 11))
        expected[0, [1, 9]] = a[0, 0] + a[0, 2] + a[0, 4], a[0, 1] + a[0, 3]
        expected[1, [10, 2]] = a[1, 0] + a[1, 2], a[1, 1]
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(1e-12, 1e-6))
        # Exactly: padding, words not in the source, extended ids that the row does not use.
        np.testing.assert_array_equal(backend.to_numpy(actual)[expected == 0], 0)

    def test_a_source_of_unknown_words_alone_can_be_copied(self):
        logits, pointer_logits, attention, _ = pointer_inputs()
        ids = VOCABULARY + np.array([[0, 1, 2, 3, 4], [0, 1, 2, 0, 0]])
        actual = backend.to_numpy(copy_distribution(logits, pointer_logits, attention, ids, 5))
        expected = (1 - sigmoid(pointer_logits))[:, None] * attention
        np.testing.assert_allclose(actual[0, VOCABULARY:], expected[0], rtol=1e-5)
        np.testing.assert_allclose(actual[1, VOCABULARY:], [*expected[1, :3], 0, 0], rtol=1e-5)

    def test_a_row_alone_gives_the_same(self):
        inputs = pointer_inputs()
        together = backend.to_numpy(copy_distribution(*inputs, 3))
        alone = copy_distribution(*(value[1:] for value in inputs), 3)
        np.testing.assert_allclose(alone[0], together[1], rtol=1e-6)

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "TensorFlow's unknown dimensions")
    def test_the_number_of_extra_words_may_be_known_in_the_graph_only(self):
        import tensorflow as tf

        inputs = pointer_inputs()
        compiled = tf.function(copy_distribution)
        actual = compiled(*map(tf.constant, inputs), tf.constant(3))
        np.testing.assert_allclose(actual, copy_distribution(*inputs, 3), rtol=1e-6)


def step_inputs(seed=0):
    """Returns what `copy_log_probability` takes, with every word of the extended vocabulary."""
    rng = np.random.default_rng(seed)
    steps = VOCABULARY + 3
    attention = softmax(rng.normal(size=(BATCH, steps, SOURCE))) * MASK[:, None]
    return (
        rng.normal(size=(BATCH, steps, VOCABULARY)).astype(FLOAT),
        rng.normal(size=(BATCH, steps)).astype(FLOAT),
        (attention / attention.sum(-1, keepdims=True)).astype(FLOAT),
        rng.integers(0, steps, size=(BATCH, SOURCE)),
        np.stack([rng.permutation(steps) for _ in range(BATCH)]),
    )


class CopyLogProbabilityTest(parameterized.TestCase):
    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 999))
    def test_is_the_logarithm_of_the_distribution(self, seed):
        logits, pointer_logits, attention, ids, targets = step_inputs(seed)
        actual = np.exp(
            backend.to_numpy(copy_log_probability(logits, pointer_logits, attention, ids, targets))
        )
        for t in range(targets.shape[1]):
            full = copy_reference(logits[:, t], pointer_logits[:, t], attention[:, t], ids, 3)
            expected = full[np.arange(BATCH), targets[:, t]]
            np.testing.assert_allclose(actual[:, t], expected, rtol=tolerance(1e-9), atol=1e-15)

    @parameterized.product(pointer_logit=[-1e4, -60.0, 0.0, 60.0, 1e4], scale=[1.0, 1e4])
    def test_values_and_gradients_are_finite_for_every_p_gen_and_target(self, pointer_logit, scale):
        logits, pointer_logits, attention, ids, targets = step_inputs()
        attention[0, :, 0], attention[0, :, 1:] = 1, 0

        def loss(*arrays):
            return -ops.sum(copy_log_probability(*arrays, ids, targets))

        value, gradients = backend.value_and_gradients(
            loss, scale * logits, np.full_like(pointer_logits, pointer_logit), attention
        )
        self.assertTrue(np.isfinite(value))
        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients))

    def test_gradients_equal_those_of_the_distribution(self):
        logits, pointer_logits, attention, ids, targets = step_inputs()
        targets = np.clip(targets, 0, VOCABULARY - 1)  # Of positive probability.
        steps = targets.shape[1]

        def loss(logits, pointer_logits, attention):
            return ops.sum(copy_log_probability(logits, pointer_logits, attention, ids, targets))

        def from_distribution(logits, pointer_logits, attention):
            total = 0.0
            for t in range(steps):
                p = copy_distribution(logits[:, t], pointer_logits[:, t], attention[:, t], ids, 3)
                total += ops.sum(ops.log(ops.take_along_axis(p, targets[:, t, None], axis=1)))
            return total

        arrays = (logits, pointer_logits, attention)
        actual = backend.value_and_gradients(loss, *arrays)
        expected = backend.value_and_gradients(from_distribution, *arrays)
        for one, other in zip(actual[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-9, 1e-4))

    def test_half_precision_logits_are_computed_in_float32(self):
        logits, pointer_logits, attention, ids, targets = step_inputs()
        half = [value.astype("float16") for value in (logits, pointer_logits, attention)]
        precise = [value.astype("float32") for value in half]
        actual = copy_log_probability(*half, ids, targets)
        self.assertEqual(keras.backend.standardize_dtype(actual.dtype), "float32")
        np.testing.assert_array_equal(actual, copy_log_probability(*precise, ids, targets))


if __name__ == "__main__":
    absltest.main()
