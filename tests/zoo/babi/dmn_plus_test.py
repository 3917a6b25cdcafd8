"""Tests of DMN+."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests.zoo.babi.network_checks import (
    ANSWERS,
    SENTENCES,
    VOCABULARY,
    WORDS,
    NetworkChecks,
    examples,
)
from tests.zoo.babi.position_encoding import formula
from zoo.babi.dmn_plus import AttentionGRUCell, dmn_plus


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    model = dmn_plus(VOCABULARY, ANSWERS, sentences, words, **{"units": 6, **options})
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if "bias" in variable.name:  # At 0 a GRU that reads padding would stay at 0.
            variable.assign(rng.normal(size=variable.shape))
    return model


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def weights(layer):
    return [array.astype("float64") for array in layer.get_weights()]


def read(reader, sequence):
    """The states of a GRU after each step, with Keras's order of gates: z, r, h."""
    kernel, recurrent, (bias, recurrent_bias) = weights(reader)
    h, states = np.zeros(6), []
    for x in sequence:
        from_input, from_state = x @ kernel + bias, h @ recurrent + recurrent_bias
        z, r = sigmoid(from_input[:12] + from_state[:12]).reshape(2, 6)
        h = z * h + (1 - z) * np.tanh(from_input[12:] + r * from_state[12:])
        states.append(h)
    return np.stack(states)


def read_episode(reader, facts, attention, h=0):
    """The last state of the attention GRU."""
    kernel, recurrent, bias = weights(reader)
    h = np.zeros(6) + h
    for f, g in zip(facts, attention, strict=True):
        from_input, from_state = f @ kernel + bias, h @ recurrent
        r = sigmoid(from_input[:6] + from_state[:6])
        h = g * np.tanh(from_input[6:] + r * from_state[6:]) + (1 - g) * h
    return h


def dense(layer, values):
    kernel, bias = weights(layer)
    return values @ kernel + bias


def expected(network, story, question):
    """The logits and attentions of one example, by the paper's equations."""
    (embedding,) = weights(network.embedding)
    x = [formula(embedding[ids[ids > 0]]) for ids in story[story.any(-1)]]
    q = read(network.question_reader, embedding[question[question > 0]])[-1]
    f = read(network.forward_reader, x) + read(network.backward_reader, x[::-1])[::-1]
    m, attentions = q, []
    for hop in range(network.hops):
        z = [np.concatenate([v * q, v * m, abs(v - q), abs(v - m)]) for v in f]
        scores = dense(network.second_score, np.tanh(dense(network.first_score, np.stack(z))))
        g = np.exp(scores[:, 0]) / np.exp(scores).sum()
        c = read_episode(network.episode_reader, f, g) if network.episode == "gru" else g @ f
        update = network.updates[0 if network.tied_updates else hop]
        m = np.maximum(dense(update, np.concatenate([m, c, q])), 0)
        attentions.append(g)
    return dense(network.readout, np.concatenate([m, q])), attentions


class DMNPlusTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    @parameterized.parameters(("gru", False), ("gru", True), ("soft", False))
    def test_answers_and_attentions_are_those_of_the_equations(self, episode, tied_updates):
        model = make(episode=episode, tied_updates=tied_updates, hops=2)
        network = model.layers[-1]
        story, question = examples()
        logits, attentions = network.read(story, question)
        for row in range(len(story)):
            answer, found = expected(network, story[row], question[row])
            np.testing.assert_allclose(logits[row], answer, rtol=1e-4, atol=1e-5)
            attention = keras.ops.convert_to_numpy(attentions[row])
            real = story[row].any(-1)
            np.testing.assert_allclose(attention[:, real], found, rtol=1e-4, atol=1e-6)
            np.testing.assert_array_equal(attention[:, ~real], 0)

    def test_each_episode_has_its_own_update(self):
        self.assertLen(make(hops=4).layers[-1].updates, 4)
        self.assertLen(make(hops=4, tied_updates=True).layers[-1].updates, 1)

    def test_training_leaves_out_parts_of_sentences_and_of_the_memory(self):
        network = make(dropout=0.5).layers[-1]
        story, question = examples()
        real = story.any(-1)
        once, again = (network._facts(story, real, training=True) for _ in range(2))
        self.assertNotAllClose(once, again)
        network.sentence_dropout.rate = 0.0
        once, again = (network([story, question], training=True) for _ in range(2))
        self.assertNotAllClose(once, again)

    def assertNotAllClose(self, one, other):
        self.assertGreater(abs(keras.ops.convert_to_numpy(one - other)).max(), 1e-3)

    def test_the_weight_decay_is_half_the_square_of_each_matrix(self):
        model = make(weight_decay=0.1)
        # The biases of a GRU are two rows, those of input and of state.
        squares = sum((w**2).sum() for w in weights(model) if w.ndim == 2 and len(w) != 2)
        np.testing.assert_allclose(float(sum(model.losses)), 0.05 * squares, rtol=1e-5)

    @parameterized.parameters(
        ({"hops": 0}, "`hops` must be positive, received 0"),
        ({"episode": "hard"}, '"gru" or "soft", received \'hard\''),
        ({"weight_decay": -1.0}, "`weight_decay` must not be negative, received -1.0"),
    )
    def test_a_wrong_argument_is_named(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            make(**options)


class AttentionGRUCellTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 1.0)
    def test_attention_is_the_update_gate(self, attention):
        layer = keras.layers.RNN(AttentionGRUCell(6))
        f = np.random.default_rng(0).normal(size=(1, 3, 4))
        sequence = np.concatenate([f, np.full((1, 3, 1), attention)], axis=-1).astype("float32")
        state = np.full((1, 6), 0.5, "float32")
        h = layer(sequence, initial_state=[state])[0]
        expected = read_episode(layer, f[0], [attention] * 3, state[0])
        np.testing.assert_allclose(h, expected, atol=1e-6)
        self.assertEqual((keras.ops.convert_to_numpy(h) == 0.5).all(), attention == 0)

    def test_it_survives_its_configuration(self):
        cell = AttentionGRUCell(6, kernel_regularizer=keras.regularizers.L2(0.1))
        again = AttentionGRUCell.from_config(cell.get_config())
        self.assertEqual(again.units, 6)
        np.testing.assert_allclose(float(again.kernel_regularizer(np.ones((1, 2)))), 0.2)


if __name__ == "__main__":
    absltest.main()
