"""Tests of the recurrent models of bAbI."""

import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

import rum_keras
from zoo.babi.model import babi_model

VOCABULARY, ANSWERS = 9, 5
STORY = np.array([[[3, 1, 0], [2, 9, 4]], [[0, 0, 0], [5, 0, 0]]])
QUESTION = np.array([[7, 8, 1, 2], [6, 0, 0, 0]])
KINDS = tuple((level, attention) for level in ("sentence", "word") for attention in (False, True))


def make(level="sentence", attention=False, layer=keras.layers.SimpleRNN, **options):
    """A small model with random weights throughout."""
    keras.utils.set_random_seed(1)
    layer = layer(6, return_sequences=attention)
    model = babi_model(layer, VOCABULARY, ANSWERS, level, attention, embedding=4, **options)
    generator = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(generator.normal(size=weight.shape))
    return model


def logits(model, story, question):
    return keras.ops.convert_to_numpy(model([story, question]))


def softmax(scores):
    return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


class BabiModelTest(parameterized.TestCase):
    @parameterized.product(
        level=("sentence", "word"), attention=(False, True), pooling=("mean", "sum")
    )
    def test_logits_are_those_of_the_formula(self, level, attention, pooling):
        model = make(level, attention, pooling=pooling)
        embedding, kernel, recurrent, bias, readout, offset = map(np.array, model.get_weights())
        story = STORY if level == "sentence" else STORY.reshape(2, -1)
        found = logits(model, story, QUESTION)
        for row in range(2):
            if level == "word":
                steps = embedding[[i for i in (*story[row], *QUESTION[row]) if i]]
                told = np.count_nonzero(story[row])
            else:
                sentences = [[i for i in words if i] for words in (*STORY[row], QUESTION[row])]
                sentences = [embedding[words] for words in sentences if words]
                steps = [getattr(np, pooling)(words, axis=0) for words in sentences]
                told = len(steps) - 1
            state, states = np.zeros(6), []
            for step in steps:
                state = np.tanh(step @ kernel + state @ recurrent + bias)
                states.append(state)
            if attention:
                memories = np.array(states[:told])
                state = np.concatenate([softmax(memories @ state) @ memories, state])
            np.testing.assert_allclose(found[row], state @ readout + offset, atol=2e-5)

    @parameterized.parameters(*KINDS)
    @settings(deadline=None, max_examples=10)
    @given(st.data())
    def test_padding_never_changes_an_answer(self, level, attention, data):
        if (level, attention) not in self.models:
            self.models[level, attention] = make(level, attention)
        model = self.models[level, attention]
        few = st.integers(0, 3)
        before, after, words, asked, first = (data.draw(few) for _ in range(5))
        if level == "word":
            story = STORY.reshape(2, -1)
            padded = np.pad(story, ((0, 0), (before, after)))
        else:
            story = STORY
            padded = np.pad(story, ((0, 0), (before, after), (first, words)))
        question = np.pad(QUESTION, ((0, 0), (first, asked)))
        np.testing.assert_allclose(
            logits(model, padded, question), logits(model, story, QUESTION), atol=1e-5
        )

    models = {}

    @parameterized.parameters(*KINDS)
    def test_each_example_is_answered_for_itself(self, level, attention):
        model = make(level, attention)
        story = STORY if level == "sentence" else STORY.reshape(2, -1)
        together = logits(model, story, QUESTION)
        for row in range(2):
            alone = logits(model, story[row : row + 1], QUESTION[row : row + 1])
            np.testing.assert_allclose(alone[0], together[row], atol=1e-5)

    def test_attention_is_on_sentences_of_the_story_alone(self):
        model = make(attention=True)
        scores = model.get_layer("attention").output[1]
        weights = keras.ops.convert_to_numpy(keras.Model(model.inputs, scores)([STORY, QUESTION]))
        self.assertEqual(weights.shape, (2, 1, 3))
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
        np.testing.assert_array_equal(weights[1, 0], [0, 1, 0])
        self.assertEqual(weights[0, 0, 2], 0)

    @parameterized.parameters(*KINDS)
    def test_nothing_told_and_nothing_asked_gives_finite_logits(self, level, attention):
        model = make(level, attention)
        story = np.zeros((2, 3, 2) if level == "sentence" else (2, 3), int)
        for question in (QUESTION, np.zeros((2, 2), int)):
            self.assertTrue(np.all(np.isfinite(logits(model, story, question))))

    @parameterized.parameters(*KINDS)
    def test_a_saved_model_gives_the_same_logits(self, level, attention):
        model = make(level, attention, lambda *a, **k: rum_keras.RUM(*a, lambda_=1, **k))
        story = STORY if level == "sentence" else STORY.reshape(2, -1)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "babi.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
        np.testing.assert_array_equal(
            logits(loaded, story, QUESTION), logits(model, story, QUESTION)
        )

    def test_half_precision_gives_nearly_the_same_logits(self):
        expected = logits(make(attention=True), STORY, QUESTION)
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_float16")
        try:
            found = logits(make(attention=True), STORY, QUESTION)
        finally:
            keras.config.set_dtype_policy(before)
        self.assertEqual(found.dtype, "float16")
        np.testing.assert_allclose(found, expected, atol=0.1)

    @parameterized.parameters(
        ({"level": "letter"}, "level must be one of sentence, word, got 'letter'"),
        ({"pooling": "max"}, "pooling must be one of mean, sum, got 'max'"),
        ({"attention": True}, "return_sequences=True"),
    )
    def test_what_it_cannot_be_is_refused(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            babi_model(keras.layers.GRU(6), VOCABULARY, ANSWERS, **options)

    def test_a_layer_that_returns_sequences_needs_attention(self):
        with self.assertRaisesRegex(ValueError, "return_sequences=False"):
            babi_model(keras.layers.GRU(6, return_sequences=True), VOCABULARY, ANSWERS)


if __name__ == "__main__":
    absltest.main()
