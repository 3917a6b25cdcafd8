"""Topic-ConvS2S: variants, loss, and training steps of the released code."""

import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests.rum_keras import released_conv_s2s as released
from zoo.xsum.model import TopicConvS2S
from zoo.xsum.nesterov import Nesterov

TOPICS, VOCABULARY = 5, 20


def small(**options):
    keras.utils.set_random_seed(2)
    model = TopicConvS2S(
        VOCABULARY,
        **{
            "topics": TOPICS,
            "units": 6,
            "encoder_layers": [(4, 3), (7, 2)],
            "decoder_layers": [(4, 3), (4, 2)],
            "output_units": 9,
            "dropout": 0.0,
            "max_positions": 30,
            **options,
        },
    )
    model.build()
    if model.encoder.topics:
        table = np.random.default_rng(1).random((VOCABULARY, TOPICS))
        model.set_word_topics(table.astype("float32"))
    return model


def inputs(rows=2, source=7, target=5, topics=True):
    random = np.random.default_rng(0)
    batch = {
        "document": random.integers(4, VOCABULARY, (rows, source)),
        "summary": random.integers(4, VOCABULARY, (rows, target)),
    }
    if topics:
        batch["topics"] = random.dirichlet(np.ones(TOPICS), rows).astype("float32")
    return batch


class TopicConvS2STest(parameterized.TestCase):
    @parameterized.parameters((0, 139_597_992, 58_150_912), (512, 150_891_688, 58_676_224))
    def test_the_published_sizes_have_the_parameters_of_the_published_checkpoints(
        self, topics, parameters, of_the_encoder
    ):
        with keras.StatelessScope(initialize_variables=False):  # Shapes alone: no memory.
            model = TopicConvS2S(50_004, topics)
            model.build()
            counts = [
                sum(int(np.prod(weight.shape)) for weight in weights)
                for weights in (model.trainable_weights, model.encoder.weights)
            ]
        self.assertEqual(counts, [parameters, of_the_encoder])

    def test_words_have_the_topics_of_the_table_times_those_of_the_document(self):
        model, batch = small(), inputs()
        table = np.asarray(model.word_topics)[batch["document"]]
        words = table * batch["topics"][:, None]
        encoded = model.encoder(batch["document"], words)
        expected, _ = model.decoder(batch["summary"], *encoded, batch["topics"])
        np.testing.assert_allclose(model(batch), expected, atol=1e-6)

    def test_words_alone_have_the_topics_of_the_table(self):
        model, batch = small(encoder_topics="word"), inputs()
        words = np.asarray(model.word_topics)[batch["document"]]
        for ours, theirs in zip(
            model.encode(batch["document"], batch["topics"]),
            model.encoder(batch["document"], words),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)

    @parameterized.parameters(("ones", 1.0), ("zeros", 0.0))
    def test_a_decoder_without_topics_reads_constants(self, absent, value):
        model, batch = small(decoder_topics=False, absent_topics=absent), inputs()
        constants = np.full_like(batch["topics"], value)
        encoded = model.encode(batch["document"], batch["topics"])
        expected, _ = model.decoder(batch["summary"], *encoded, constants)
        np.testing.assert_allclose(model(batch), expected, atol=1e-6)

    def test_normalized_topics_of_words_have_norm_one(self):
        model, batch = small(normalize_topics=True), inputs()
        words = np.asarray(model.word_topics)[batch["document"]] * batch["topics"][:, None]
        words = words / np.linalg.norm(words, axis=-1, keepdims=True)
        expected = model.encoder(batch["document"], words)[1]
        np.testing.assert_allclose(
            model.encode(batch["document"], batch["topics"])[1], expected, atol=1e-6
        )

    @parameterized.parameters("word_document", "word")
    def test_the_model_survives_a_keras_file_with_its_topics(self, encoder_topics):
        model, batch = small(encoder_topics=encoder_topics), inputs()
        expected = model(batch)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "model.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
        np.testing.assert_array_equal(loaded(batch), expected)
        self.assertEqual(loaded.get_config(), model.get_config())

    def test_loss_is_the_mean_over_real_tokens_whatever_the_weights_of_the_batch(self):
        model, batch = small(), inputs()
        target = np.array([[4, 5, 2, 1, 1], [6, 7, 8, 9, 2]])
        logits = np.asarray(model(batch), "float64")
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        taken = -np.take_along_axis(logs, target[..., None], -1)[..., 0][target != 1]
        self.assertAlmostEqual(
            float(model.compute_loss(y=target, y_pred=logits)), taken.mean(), delta=1e-5
        )
        halves = (target != 1) / 16  # A replica's half of a batch of 16 tokens.
        loss = model.compute_loss(y=target, y_pred=logits, sample_weight=halves)
        self.assertAlmostEqual(float(loss), taken.sum() / 16, delta=1e-5)
        found = model.get_metrics_result()
        self.assertAlmostEqual(float(found["loss"]), taken.mean(), delta=1e-5)
        self.assertAlmostEqual(float(found["perplexity"]), np.exp(taken.mean()), delta=1e-3)

    def test_the_best_summary_is_the_most_probable_of_those_found(self):
        model, batch = small(), inputs()
        found = model.summarize(batch["document"], batch["topics"], beam=3, max_length=4)
        for row in range(2):
            for hypothesis in range(3):
                length = int(found.lengths[row, hypothesis])
                words = np.asarray(found.tokens)[row, hypothesis, :length]
                self.assertNotIn(1, words)
                self.assertEqual(words[-1], 2)
                one = {
                    "document": batch["document"][row : row + 1],
                    "topics": batch["topics"][row : row + 1],
                    "summary": np.concatenate([[2], words[:-1]])[None],
                }
                mean = -float(model.compute_loss(y=words[None], y_pred=model(one)))
                self.assertAlmostEqual(mean, float(found.scores[row, hypothesis]), delta=1e-5)

    @parameterized.parameters("mixed_float16", "mixed_bfloat16")
    def test_a_step_in_half_precision_keeps_weights_finite_and_lowers_the_loss(self, dtype):
        model, batch = small(dtype=dtype), inputs()
        model.compile(Nesterov(0.1), run_eagerly=True)
        target = np.array([[4, 5, 2, 1, 1], [6, 7, 8, 9, 2]])
        losses = []
        for _ in range(4):
            losses.append(model.train_on_batch(batch, target, return_dict=True)["loss"])
            model.reset_metrics()
        self.assertLess(losses[-1], losses[0])
        for weight in model.trainable_variables:
            self.assertTrue(np.isfinite(weight).all(), weight.path)

    def test_wrong_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "`encoder_topics` must be one of .*'none'"):
            small(encoder_topics="none")
        with self.assertRaisesRegex(ValueError, r"shape \(20, 5\).*same corpus"):
            small().set_word_topics(np.ones((19, 5)))
        with self.assertRaisesRegex(ValueError, 'must have "topics"'):
            small()(inputs(topics=False))

    def test_a_model_without_topics_needs_none(self):
        model = small(topics=0)
        self.assertEqual(tuple(model(inputs(topics=False)).shape), (2, 5, VOCABULARY))
        names = [weight.path for weight in model.weights]
        self.assertFalse([name for name in names if "topics" in name])


class ReleasedTrainingTest(parameterized.TestCase):
    @parameterized.parameters("train_convs2s", "train_tconvs2s_f8")
    def test_three_steps_are_those_of_the_released_code(self, name):
        arrays, options, *_ = released.load(name)
        model = TopicConvS2S(
            options["vocab"],
            options["n_topics"],
            units=options["embed"],
            encoder_layers=options["enc"],
            decoder_layers=options["dec"],
            output_units=options["out_embed"],
            dropout=0.0,
            max_positions=options["maxpos"],
            mask_padding=False,
        )
        model.build()
        encoder, decoder = model.encoder, model.decoder
        released.assign(encoder, decoder, arrays)
        words = {}
        if options["n_topics"]:  # Words of the file have topics of their own in each place.
            words = {"topics": arrays["nopad/doc_topics"]}
            topics = arrays["nopad/word_topics"] * words["topics"][:, None]
            model.encode = lambda document, _, training: encoder(document, topics)
        batch = {
            "document": arrays["nopad/src_tokens"],
            "summary": arrays["nopad/prev_output_tokens"],
            **words,
        }
        model.compile(Nesterov(0.1, 0.99, clip_norm=0.1), run_eagerly=True)
        target = arrays["nopad/target"]
        for step in range(3):
            if step == 2:
                model.optimizer.learning_rate = 0.01
            loss = model.train_on_batch(batch, target, return_dict=True)["loss"]
            model.reset_metrics()
            tokens = (target != 1).sum()
            expected = arrays[f"smooth0/step{step}/loss_sum"] / tokens
            np.testing.assert_allclose(loss, expected, rtol=1e-5)
            if f"smooth0/step{step}/after/encoder.fc1.bias" in arrays:
                self.assert_weights(encoder, decoder, arrays, step)

    def assert_weights(self, encoder, decoder, arrays, step):
        for layer, side in ((encoder, "encoder"), (decoder, "decoder")):
            names = released.released_names(layer, side)
            for weight, name in zip(layer.weights, names, strict=True):
                expected = released.ours(name, arrays[f"smooth0/step{step}/after/{name}"])
                np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-5, err_msg=name)


if __name__ == "__main__":
    absltest.main()
