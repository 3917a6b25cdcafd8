"""What every memory network must do with padded stories: a mixin for their tests."""

import os
import tempfile

import keras
import numpy as np

from tests import backend

VOCABULARY, ANSWERS, SENTENCES, WORDS, EXAMPLES = 8, 5, 4, 3, 3


def examples(seed=0):
    """Stories of 4, 2 and 1 sentences of 1 to 3 words, and their questions."""
    rng = np.random.default_rng(seed)
    story = rng.integers(1, VOCABULARY + 1, (EXAMPLES, SENTENCES, WORDS))
    question = rng.integers(1, VOCABULARY + 1, (EXAMPLES, WORDS))
    story[1, 2:] = story[2, 1:] = 0
    story[0, 1, 2:] = story[1, 0, 1:] = question[2, 2:] = 0
    return story.astype("int32"), question.astype("int32")


def padded(array, *shape):
    """The array with zeros at the end of each axis but the first, up to the shape."""
    result = np.zeros((len(array), *shape), array.dtype)
    result[tuple(slice(size) for size in array.shape)] = array
    return result


def strengthened(model, factor=1):
    """Multiplies all trainable weights and returns them by name, in float64.

    Weights of a new network are so small that its attention is uniform and its gates are open by
    half, which would hide what they do.
    """
    for variable in model.trainable_variables:
        variable.assign(variable * factor)
    return {
        variable.name: keras.ops.convert_to_numpy(variable).astype("float64")
        for variable in model.trainable_variables
    }


class NetworkChecks:
    """Mix into a `parameterized.TestCase` that defines `make(sentences, words)`.

    `make` returns a new model of the same configuration each time, for `VOCABULARY` and `ANSWERS`.
    """

    def logits(self, model, story, question):
        return keras.ops.convert_to_numpy(model([story, question], training=False))

    def enlarged(self, weights, model):
        """The weights as the same model for more words and sentences has them."""
        del model
        return weights

    def test_logits_and_inputs_have_the_declared_shapes(self):
        model = self.make(SENTENCES, WORDS)
        self.assertEqual(model.output_shape, (None, ANSWERS))
        self.assertEqual([x.name for x in model.inputs], ["story", "question"])
        self.assertEqual([x.dtype for x in model.inputs], ["int32", "int32"])

    def test_an_answer_does_not_depend_on_the_other_examples(self):
        model = self.make(SENTENCES, WORDS)
        story, question = examples()
        together = self.logits(model, story, question)
        self.assertGreater(np.ptp(together, axis=0).min(), 0)
        for row in range(EXAMPLES):
            alone = self.logits(model, story[row : row + 1], question[row : row + 1])
            np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-6)

    def test_more_padding_does_not_change_an_answer(self):
        small, large = self.make(SENTENCES, WORDS), self.make(SENTENCES + 3, WORDS + 2)
        large.set_weights(self.enlarged(small.get_weights(), large))
        story, question = examples()
        expected = self.logits(small, story, question)
        story = padded(story, SENTENCES + 3, WORDS + 2)
        question = padded(question, WORDS + 2)
        np.testing.assert_allclose(self.logits(large, story, question), expected, rtol=0, atol=1e-6)

    def test_padding_may_stand_before_the_sentences(self):
        model = self.make(SENTENCES, WORDS)
        story, question = examples()
        moved = np.roll(story[1:2], 2, axis=1)  # Its two sentences are the last now.
        np.testing.assert_allclose(
            self.logits(model, moved, question[1:2]),
            self.logits(model, story[1:2], question[1:2]),
            rtol=0,
            atol=1e-6,
        )

    def test_gradients_are_finite_where_the_story_is_all_padding(self):
        model = self.make(SENTENCES, WORDS)
        story, question = examples()
        story[0] = 0
        question[1] = 0

        def loss():
            logits = model([story, question], training=True)
            return keras.ops.sum(keras.ops.logsumexp(logits, axis=-1) - logits[:, 0])

        value, gradients = backend.weight_gradients(model, loss)
        self.assertTrue(np.isfinite(value))
        for name, gradient in gradients.items():
            if gradient.dtype == object:  # TensorFlow has rows of embeddings alone.
                gradient = gradient.item().values.numpy()
            self.assertTrue(np.isfinite(gradient).all(), name)

    def test_a_saved_model_gives_the_same_logits(self):
        model = self.make(SENTENCES, WORDS)
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
        np.testing.assert_array_equal(
            self.logits(loaded, *examples()), self.logits(model, *examples())
        )

    def test_half_precision_is_near(self):
        model = self.make(SENTENCES, WORDS)
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_bfloat16")
        try:
            half = self.make(SENTENCES, WORDS)
        finally:
            keras.config.set_dtype_policy(before)
        half.set_weights(model.get_weights())
        expected = self.logits(model, *examples())
        actual = self.logits(half, *examples()).astype("float32")
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0.1 * abs(expected).max())

    def test_training_lowers_the_loss(self):
        model = self.make(SENTENCES, WORDS)
        model.compile(
            keras.optimizers.Adam(0.01),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        losses = [model.train_on_batch(list(examples()), np.array([1, 2, 0])) for _ in range(15)]
        self.assertLess(losses[-1], losses[0])
