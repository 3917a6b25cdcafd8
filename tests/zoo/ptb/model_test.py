"""The language model: its formula, the states it carries, and the sizes of Table 3."""

import doctest
import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from tests import backend
from tests.zoo.ptb.small_model import EMBEDDING, RNN, SYMBOLS, TIME, UNITS, lstm_model
from zoo.ptb import model as ptb_model
from zoo.ptb.model import BitsPerCharacter, CharacterModel, SummedCrossentropy


def ids(batch: int, time: int = TIME, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(len(SYMBOLS), size=(batch, time)).astype("int32")


def window(values: np.ndarray, fresh: bool = False) -> dict[str, np.ndarray]:
    rows = len(values)
    return {
        "ids": values,
        "row": np.arange(rows, dtype="int32"),
        "fresh": np.full(rows, int(fresh)),
    }


def fast_slow_model(**options) -> CharacterModel:
    fast = [rum_keras.Zoneout(rum_keras.LayerNormLSTMCell(5), 0.2) for _ in range(2)]
    slow = rum_keras.RUMCell(7, eta=1.0, layer_norm=True, zoneout=0.1)
    cell = rum_keras.FastSlowCell(fast, slow, dropout=0.1)
    layers = [keras.layers.RNN(cell, **RNN)]
    return CharacterModel(SYMBOLS, layers, EMBEDDING, dropout=[0, 0.1], **options)


def numpy(values):
    return backend.to_numpy(values)


class CharacterModelTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        keras.utils.set_random_seed(2)

    @parameterized.parameters(False, True)
    def test_logits_are_those_of_the_formula(self, one_hot):
        layer = keras.layers.SimpleRNN(UNITS, **RNN)
        model = CharacterModel(SYMBOLS, [layer], None if one_hot else EMBEDDING)
        embedding = np.eye(5) if one_hot else numpy(model.embedding.embeddings)
        kernel, recurrent, bias = layer.get_weights()
        readout, offset = model.readout.get_weights()
        state, expected = np.zeros((2, UNITS)), []
        for step in ids(2).T:
            state = np.tanh(embedding[step] @ kernel + state @ recurrent + bias)
            expected.append(state @ readout + offset)
        np.testing.assert_allclose(model(ids(2)), np.stack(expected, 1), atol=1e-5)

    def test_a_tied_readout_is_the_embedding(self):
        layer = keras.layers.SimpleRNN(EMBEDDING, **RNN)
        model = CharacterModel(SYMBOLS, [layer], EMBEDDING, tie_embedding=True)
        model.readout_bias.assign(np.arange(5.0))
        (outputs, *_) = layer(model.embedding(ids(2)))
        expected = numpy(outputs) @ numpy(model.embedding.embeddings).T + np.arange(5)
        np.testing.assert_allclose(model(ids(2)), expected, atol=1e-5)
        self.assertLen(model.trainable_variables, 5)
        with self.assertRaisesRegex(ValueError, "`embedding_units`, 4, but it returns 6"):
            CharacterModel(SYMBOLS, [keras.layers.GRU(6, **RNN)], 4, tie_embedding=True)

    def test_weights_start_as_in_the_released_code(self):
        model = CharacterModel(SYMBOLS, [keras.layers.GRU(UNITS, **RNN)], EMBEDDING)
        embedding = numpy(model.embedding.embeddings)
        np.testing.assert_allclose(embedding.T @ embedding, np.eye(EMBEDDING), atol=1e-5)
        kernel, bias = model.readout.get_weights()
        np.testing.assert_allclose(kernel.T @ kernel, np.eye(5), atol=1e-5)
        self.assertBetween(abs(bias).max(), 1e-4, 0.01)

    @parameterized.parameters(lstm_model, fast_slow_model)
    def test_reading_in_windows_is_reading_at_once(self, make):
        model = make(evaluation_rows=2)
        text = ids(2, 3 * TIME)
        whole = numpy(model(text))
        for number in range(3):
            part = text[:, number * TIME : (number + 1) * TIME]
            logits = model(window(part, fresh=number == 0))
            np.testing.assert_allclose(
                logits, whole[:, number * TIME : (number + 1) * TIME], atol=1e-5
            )
        states = model.initial_states(2)
        first, states = model.advance(text[:, :4], states)
        second, _ = model.advance(text[:, 4:], states)
        np.testing.assert_allclose(
            np.concatenate([numpy(first), numpy(second)], 1), whole, atol=1e-5
        )

    def test_rows_continue_in_any_order_and_start_anew_where_fresh(self):
        model = lstm_model(evaluation_rows=3)
        text = ids(3, 2 * TIME)
        model(window(text[:, :TIME], fresh=True))
        order = np.array([2, 0, 1], "int32")
        rest = text[order, TIME:]
        logits = model({"ids": rest, "row": order, "fresh": np.array([0, 1, 0])})
        whole, alone = numpy(model(text))[order, TIME:], numpy(model(rest))
        np.testing.assert_allclose(logits, np.stack([whole[0], alone[1], whole[2]]), atol=1e-5)

    def test_training_and_evaluation_have_states_of_their_own(self):
        model = lstm_model(training_rows=2, evaluation_rows=2)
        model(window(ids(2)), training=True)
        training = [numpy(state) for state in model.carried[True]]
        self.assertGreater(abs(training[0]).max(), 0)
        for state in model.carried[False]:
            np.testing.assert_array_equal(state, 0 * training[0])
        model(window(ids(2, seed=1)), training=False)
        for now, then in zip(model.carried[True], training, strict=True):
            np.testing.assert_array_equal(now, then)
        with self.assertRaisesRegex(ValueError, "make the model with training_rows"):
            lstm_model()(window(ids(2)), training=True)

    def test_states_are_variables_for_checkpoints_but_not_trained(self):
        model = lstm_model(training_rows=2, evaluation_rows=4)
        states = [state.path for rows in model.carried.values() for state in rows]
        self.assertLen(states, 2 * 4)
        self.assertContainsSubset(states, [variable.path for variable in model.variables])
        self.assertEqual(set(states) & {weight.path for weight in model.trainable_variables}, set())

    def test_fit_carries_states_and_validates_amid_training(self):
        model = lstm_model(training_rows=2, evaluation_rows=1)
        model.compile("sgd", SummedCrossentropy(), metrics=[BitsPerCharacter()])
        text, valid = ids(2, TIME + 1), ids(1, TIME + 1, seed=3)
        logs = model.fit(
            window(text[:, :-1]), text[:, 1:], batch_size=2, epochs=2, verbose=0,
            validation_data=(window(valid[:, :-1], fresh=True), valid[:, 1:]),
        ).history  # fmt: skip
        self.assertGreater(abs(numpy(model.carried[True][0])).max(), 0)
        self.assertEqual(
            set(logs), {"loss", "bits_per_character", "val_loss", "val_bits_per_character"}
        )
        bits = np.array(logs["val_bits_per_character"])
        np.testing.assert_allclose(np.array(logs["val_loss"]), bits * TIME * np.log(2), rtol=1e-5)

    @parameterized.parameters(lstm_model, fast_slow_model)
    def test_a_saved_model_is_the_same_without_rows(self, make):
        model = make(training_rows=2, evaluation_rows=4)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "model.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
        self.assertEqual(loaded.symbols, SYMBOLS)
        self.assertIsNone(loaded.carried[True])
        np.testing.assert_array_equal(loaded(ids(2)), model(ids(2)))
        again = loaded.continuing(evaluation_rows=2)
        np.testing.assert_array_equal(again(window(ids(2), fresh=True)), model(ids(2)))
        self.assertEqual(loaded.count_params(), again.count_params() - again_states(again))

    def test_a_tied_model_is_saved_with_its_bias(self):
        layer = keras.layers.SimpleRNN(EMBEDDING, **RNN)
        model = CharacterModel(SYMBOLS, [layer], EMBEDDING, tie_embedding=True)
        model.readout_bias.assign(np.arange(5.0))
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "model.keras")
        model.save(path)
        np.testing.assert_array_equal(keras.saving.load_model(path)(ids(2)), model(ids(2)))
        np.testing.assert_array_equal(model.continuing()(ids(2)), model(ids(2)))

    @parameterized.parameters(False, True)
    def test_dropout_is_of_what_each_layer_and_the_readout_read(self, variational):
        model = CharacterModel(
            SYMBOLS, [_Ones(4), _Ones(5)], 4, [0.2, 0.5, 0.4], variational_dropout=variational
        )
        model(ids(40), training=True)
        kept = [np.array(layer.seen) for layer in model.recurrent_layers]
        self.assertAlmostEqual((kept[1] > 0).mean(), 0.5, delta=0.08)
        np.testing.assert_allclose(np.unique(kept[1]), [0, 2], rtol=1e-6)
        self.assertAlmostEqual((kept[0] != 0).mean(), 0.8, delta=0.08)
        self.assertEqual((kept[1] == kept[1][:, :1]).all(), variational)
        with self.assertRaisesRegex(ValueError, "3, one for each layer and one for the readout"):
            CharacterModel(SYMBOLS, [_Ones(4), _Ones(5)], 4, [0.2, 0.5])

    def test_half_precision_is_close_and_states_stay_whole(self):
        model = fast_slow_model(training_rows=2, dtype="mixed_bfloat16")
        self.assertEqual(keras.backend.standardize_dtype(model(ids(2)).dtype), "bfloat16")
        model(window(ids(2)), training=True)
        self.assertEqual(model.carried[True][0].dtype, "float32")

    def test_the_examples_run(self):
        names = {"np": np}
        results = doctest.testmod(ptb_model, extraglobs=names)
        self.assertGreater(results.attempted, 5)
        self.assertEqual(results.failed, 0)

    def test_layers_without_states_are_refused(self):
        with self.assertRaisesRegex(ValueError, "return_sequences=True and return_state=True"):
            CharacterModel(SYMBOLS, [keras.layers.GRU(6, return_sequences=True)])


class _Ones(keras.layers.Layer):
    """A recurrent layer without memory whose outputs are ones; it keeps what it has read."""

    return_sequences = return_state = True

    def __init__(self, units):
        super().__init__()
        self.state_size = units

    def call(self, inputs, initial_state=None):
        self.seen = backend.to_numpy(inputs)
        return keras.ops.ones((*inputs.shape[:2], self.state_size)), *initial_state

    def compute_output_shape(self, shape):
        return [(*shape[:2], self.state_size), (shape[0], self.state_size)]


def again_states(model):
    return sum(int(np.prod(state.shape)) for state in model.carried[False])


class LossTest(parameterized.TestCase):
    def test_loss_is_the_sum_over_time_and_the_metric_the_mean_in_bits(self):
        rng = np.random.default_rng(1)
        logits = rng.normal(size=(2, 3, 5)).astype("float32")
        targets = np.array([[0, 4, -1], [2, 1, 3]])
        log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        nats = np.array(
            [[-log_probabilities[b, t, targets[b, t]] for t in range(3)] for b in range(2)]
        )
        nats[0, 2] = 0
        loss = SummedCrossentropy()(targets, logits)
        np.testing.assert_allclose(loss, nats.sum() / 2, rtol=1e-5)
        metric = BitsPerCharacter()
        metric.update_state(targets[:1], logits[:1])
        metric.update_state(targets[1:], logits[1:])
        np.testing.assert_allclose(metric.result(), nats.sum() / np.log(2) / 5, rtol=1e-5)

    def test_half_precision_logits_are_summed_in_float32(self):
        logits = keras.ops.zeros((1, 300, 5), "float16")
        loss = SummedCrossentropy(dtype="float32")(np.zeros((1, 300), "int32"), logits)
        np.testing.assert_allclose(loss, 300 * np.log(5), rtol=1e-5)


if __name__ == "__main__":
    absltest.main()
