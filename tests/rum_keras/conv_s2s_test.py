"""Laws of ConvS2S' encoder and decoder."""

import warnings

import keras
import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras.conv_s2s_decoder import ConvS2SDecoder
from rum_keras.conv_s2s_encoder import ConvS2SEncoder
from rum_keras.gated_conv1d import GatedConv1D
from rum_keras.multi_hop_attention import MultiHopAttention
from rum_keras.positioned_embedding import PositionedEmbedding
from tests import backend
from tests.rum_keras.released_conv_s2s import END, PADDING


def small(dtype="float32", **options):
    """Returns an encoder and a decoder with sizes that are all different."""
    keras.utils.set_random_seed(3)
    shared = {"vocabulary": 20, "units": 6, "topics": 5, "max_positions": 14, "dtype": dtype}
    encoder = ConvS2SEncoder(layers=[(4, 3), (7, 2)], hops=1, **shared, **options)
    decoder = ConvS2SDecoder(
        layers=[(4, 3), (8, 2), (8, 1)],
        attention=[True, False, True],
        output_units=9,
        **shared,
    )
    encoder.build()
    decoder.build()
    return encoder, decoder


def batch(rows=2, source=7, target=5, seed=0):
    """Returns ids of sources and targets, topics of words and of documents."""
    random = np.random.default_rng(seed)
    sources = random.integers(4, 20, (rows, source))
    targets = random.integers(4, 20, (rows, target))
    sources[:, -1] = targets[:, 0] = END
    words, documents = random.random((rows, source, 5)), random.random((rows, 5))
    return sources, targets, words.astype("float32"), documents.astype("float32")


def logits_of(encoder, decoder, sources, targets, words, documents, **options):
    keys, values, mask = encoder(sources, words, **options)
    return decoder(targets, keys, values, mask, documents, **options)[0]


def pad(array, left, right, value):
    widths = ((0, 0), (left, right)) + ((0, 0),) * (array.ndim - 2)
    return np.pad(array, widths, constant_values=value)


class ConvS2STest(parameterized.TestCase):
    def test_steps_give_what_a_whole_target_gives(self):
        encoder, decoder = small()
        sources, targets, words, documents = batch(target=6)
        keys, values, mask = encoder(sources, words)
        logits, attention = decoder(targets, keys, values, mask, documents)
        memory, state = decoder.start(keys, values, mask, documents)
        for t in range(6):
            step_logits, step_attention, state = decoder.step(targets[:, t], state, memory)
            np.testing.assert_allclose(step_logits, logits[:, t], atol=1e-5)
            average = ops.sum(attention[:, :, t], axis=1) / 3  # Layers, not hops: as released.
            np.testing.assert_allclose(step_attention, average, atol=1e-5)

    def test_rows_of_a_source_take_steps_of_their_own(self):
        encoder, decoder = small()
        sources, _, words, documents = batch()
        encoded = encoder(sources, words)
        memory, state = decoder.start(*encoded, documents)
        state = keras.tree.map_structure(lambda value: ops.repeat(value, 3, axis=0), state)
        targets = batch(rows=6, target=4, seed=1)[1]
        for t in range(4):
            logits, _, state = decoder.step(targets[:, t], state, memory)
        repeated = [ops.repeat(value, 3, axis=0) for value in (*encoded, documents)]
        expected, _ = decoder(targets, *repeated)
        np.testing.assert_allclose(logits, expected[:, -1], atol=1e-5)

    @parameterized.parameters((3, 0), (0, 3), (2, 1))
    def test_padding_of_a_source_changes_nothing(self, left, right):
        layers = small()
        sources, targets, words, documents = batch()
        expected = logits_of(*layers, sources, targets, words, documents)
        padded = pad(sources, left, right, PADDING), targets, pad(words, left, right, 9.0)
        actual = logits_of(*layers, *padded, documents)
        np.testing.assert_allclose(actual, expected, atol=1e-5)

    def test_padding_of_a_target_changes_nothing_before_it(self):
        layers = small()
        sources, targets, words, documents = batch()
        expected = logits_of(*layers, sources, targets, words, documents)
        padded = pad(targets, 0, 3, PADDING)
        actual = logits_of(*layers, sources, padded, words, documents)
        np.testing.assert_allclose(actual[:, :5], expected, atol=1e-5)

    def test_no_logits_depend_on_later_ids(self):
        layers = small()
        sources, targets, words, documents = batch()
        expected = logits_of(*layers, sources, targets, words, documents)
        changed = targets.copy()
        changed[:, 3:] = 4 + (changed[:, 3:] + 1) % 16
        actual = logits_of(*layers, sources, changed, words, documents)
        np.testing.assert_allclose(actual[:, :3], expected[:, :3], atol=1e-6)
        difference = backend.to_numpy(actual[:, 3:] - expected[:, 3:])
        self.assertGreater(abs(difference).min(axis=-1).max(), 1e-4)

    @parameterized.parameters(11, 12, 13)
    def test_sources_beyond_the_table_are_cut_with_a_warning(self, length):
        layers = small()  # With 14 positions, of which 12 have use.
        sources, targets, words, documents = batch(source=length)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            actual = logits_of(*layers, sources, targets, words, documents)
        cut = logits_of(*layers, sources[:, :12], targets, words[:, :12], documents)
        np.testing.assert_allclose(actual, cut, atol=1e-5)
        told = [str(warning.message) for warning in caught]
        if length <= 12:
            self.assertEmpty(told)
        else:
            self.assertLen(told, 1)
            self.assertRegex(told[0], "13 columns of ids, of which the first 12")

    @parameterized.parameters(12, 13, 20)
    def test_targets_beyond_the_table_stay_finite_and_causal(self, length):
        layers = small()
        sources, targets, words, documents = batch(target=length)
        actual = logits_of(*layers, sources, targets, words, documents)
        short = logits_of(*layers, sources, targets[:, :12], words, documents)
        np.testing.assert_allclose(actual[:, :12], short, atol=1e-5)
        self.assertTrue(np.isfinite(actual).all())

    @parameterized.parameters(0, 1)
    def test_documents_of_no_or_one_id_have_finite_values_and_gradients(self, count):
        layers = small()
        sources, targets, words, documents = batch()
        sources[0, : 7 - count] = PADDING
        value, gradients = backend.value_and_gradients(
            lambda words: ops.sum(
                ops.square(logits_of(*layers, sources, targets, words, documents, training=True))
            ),
            words,
        )
        self.assertTrue(np.isfinite(value) and np.isfinite(gradients[0]).all())
        np.testing.assert_array_equal(gradients[0][0][: 7 - count], 0)

    def test_the_gradient_of_keys_is_divided_by_the_attentions_that_read_them(self):
        sources, _, words, _ = batch()

        def gradient(hops):
            encoder, _ = small()
            encoder.hops = hops

            def loss():
                keys, values, _ = encoder(sources, words)
                return ops.sum(keys * keys) + ops.sum(values)

            gradients = backend.weight_gradients(encoder, loss)[1]
            return next(g for name, g in gradients.items() if name.endswith("output/bias"))

        np.testing.assert_allclose(gradient(5), gradient(0) / 10, rtol=1e-5)

    @parameterized.parameters("mixed_float16", "mixed_bfloat16")
    def test_half_precision_is_close_to_float32(self, dtype):
        inputs = batch()
        expected = logits_of(*small(), *inputs)
        actual = logits_of(*small(dtype), *inputs)
        self.assertEqual(keras.backend.standardize_dtype(actual.dtype), "float32")
        np.testing.assert_allclose(actual, expected, atol=0.05)

    @parameterized.parameters("float32", "mixed_bfloat16")
    def test_fast_convolutions_give_the_same(self, dtype):
        sources, _, words, _ = batch()
        expected, actual = (small(dtype, winograd=fast)[0](sources, words) for fast in (0, 1))
        for one, other in zip(actual[:2], expected[:2], strict=True):
            np.testing.assert_allclose(
                ops.cast(one, "float32"), ops.cast(other, "float32"), atol=1e-6
            )

    def test_dropout_is_of_training_alone(self):
        layers = small()
        inputs = batch()
        first, second = (logits_of(*layers, *inputs, training=False) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        first, second = (logits_of(*layers, *inputs, training=True) for _ in range(2))
        self.assertGreater(abs(backend.to_numpy(first - second)).max(), 1e-3)

    def test_dropout_keeps_its_part_and_the_mean_and_never_what_is_masked(self):
        layer = GatedConv1D(5, 1, dropout=0.25)
        layer.build((None, None, 4))
        seen = []
        layer.convolution.call = lambda inputs, kernel: seen.append(inputs) or inputs
        mask = np.ones((2, 4000), bool)
        mask[1, 1:] = False
        layer(np.ones((2, 4000, 4), "float32"), mask=mask, training=True)
        values = backend.to_numpy(seen[0])
        np.testing.assert_array_equal(np.unique(values), np.array([0, 4 / 3], "float32"))
        self.assertAlmostEqual(values[0].mean(), 1, delta=0.02)
        np.testing.assert_array_equal(values[1, 1:], 0)

    def test_the_papers_attention_has_no_factors(self):
        random = np.random.default_rng(0)
        hidden, target = random.normal(size=(2, 3, 4)), random.normal(size=(2, 3, 6))
        keys, values = random.normal(size=(2, 6, 5)), random.normal(size=(2, 5, 6))
        mask = np.arange(5) < [[5], [3]]
        layer = MultiHopAttention(6, scaled=False)
        arguments = [x.astype("float32") for x in (hidden, target, keys, values)]
        actual, attention = layer(*arguments, mask)
        query, output = map(backend.to_numpy, layer.effective_kernels())
        exponentials = np.exp((hidden @ query + target) @ keys) * mask[:, None]
        expected = exponentials / exponentials.sum(-1, keepdims=True)
        np.testing.assert_allclose(attention, expected, atol=1e-5)
        expected = ((expected @ values) @ output + hidden) * 0.5**0.5
        np.testing.assert_allclose(actual, expected, atol=1e-5)

    def test_weights_start_as_in_the_released_code(self):
        encoder = ConvS2SEncoder(300, units=200, layers=[(150, 3), (100, 3)], dropout=0.2)
        encoder.build()
        deviations = {weight.path: float(ops.std(weight)) for weight in encoder.weights}
        expected = {
            "embedding/tokens/embeddings": 0.1,
            "embedding/positions/embeddings": 0.1,
            "input/v": (0.8 / 200) ** 0.5,
            "block_0/convolution/v": (4 * 0.8 / (3 * 150)) ** 0.5,
            "shortcut_1/v": (1 / 150) ** 0.5,
            "output/v": (1 / 100) ** 0.5,
        }
        for name, deviation in expected.items():
            (found,) = (d for path, d in deviations.items() if path.endswith(name))
            self.assertAlmostEqual(found / deviation, 1, delta=0.03, msg=name)
        self.assertTrue(all(d == 0 for path, d in deviations.items() if path.endswith("bias")))

    @parameterized.parameters(
        ({"layers": [], "attention": True}, "at least one layer"),
        ({"attention": [True]}, "each of the 2 layers, received 1"),
        ({"attention": False}, "at least one"),
        ({"share_embedding": True}, "must be `units` = 6 .* received 9"),
    )
    def test_arguments_that_do_not_go_together_are_named(self, arguments, message):
        defaults = {"layers": [(4, 3), (4, 3)], "output_units": 9}
        with self.assertRaisesRegex(ValueError, message):
            ConvS2SDecoder(20, units=6, **{**defaults, **arguments})

    def test_a_table_without_positions_is_refused(self):
        with self.assertRaisesRegex(ValueError, "at least `padding` . 2 = 3, received 2"):
            PositionedEmbedding(20, 6, max_positions=2)


if __name__ == "__main__":
    absltest.main()
