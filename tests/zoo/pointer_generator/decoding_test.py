"""Decoding by the pointer-generator: step by step, by each pair of cells, and beam search."""

import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from tests.backend import to_numpy
from tests.zoo.pointer_generator.small_model import (
    DOCUMENT,
    EXTENDED,
    INPUTS,
    VOCABULARY,
    distributions,
    model,
    set_gate,
    sigmoid,
    softmax,
)
from zoo.pointer_generator.model import PointerGenerator

PAIRS = [(encoder, decoder) for encoder in ("lstm", "rum") for decoder in ("lstm", "rum")]
if keras.backend.backend() == "jax":  # It compiles the loops of every model anew.
    PAIRS = [("rum", "lstm"), ("lstm", "rum")]


class PairTest(parameterized.TestCase):
    @parameterized.parameters(*PAIRS)
    def test_steps_one_by_one_are_those_of_all_at_once(self, encoder, decoder):
        built = model(encoder, decoder, coverage=True)
        results = built(INPUTS)
        gate = sigmoid(to_numpy(results["pointer_logits"]))[..., None]
        words = gate * softmax(to_numpy(results["logits"]))
        found = distributions(built)
        for row in range(2):
            for step in range(4):
                copied = np.zeros(VOCABULARY + 2)
                attention = to_numpy(results["attention"])[row, step]
                np.add.at(copied, EXTENDED[row], (1 - gate[row, step]) * attention)
                copied[:VOCABULARY] += words[row, step]
                np.testing.assert_allclose(found[row, step], copied, atol=1e-6)

    @parameterized.parameters(*PAIRS)
    def test_padding_and_other_documents_change_nothing(self, encoder, decoder):
        built = model(encoder, decoder, coverage=True)
        together = distributions(built)
        alone = {name: value[1:, : 5 if "doc" in name else 4] for name, value in INPUTS.items()}
        np.testing.assert_allclose(distributions(built, alone)[0], together[1], atol=1e-6)

    @parameterized.parameters(*PAIRS)
    def test_the_first_states_are_reduced_from_the_last_of_both_directions(self, encoder, decoder):
        built = model(encoder, decoder)
        embedded = built.embed(DOCUMENT[:1])
        _, states = built.encoder(embedded, mask=ops.ones((1, 7), "bool"))
        last = [to_numpy(layer(embedded)) for layer in built.encoder.directions]
        relu = {
            name: lambda value, layer=layer: np.maximum(
                value @ to_numpy(layer.kernel) + to_numpy(layer.bias), 0
            )
            for name, layer in built.encoder.reductions.items()
        }
        h = np.concatenate([last[0][1], last[1][1]], axis=-1)
        c = np.concatenate([last[0][2], last[1][2]], axis=-1) if encoder == "lstm" else h
        expected = [relu["h"](h)]
        if decoder == "lstm":
            expected.append(relu["c"](c))
        elif encoder == "lstm":
            expected = [relu["both"](np.concatenate([relu["c"](c), relu["h"](h)], axis=-1))]
        self.assertLen(states, len(expected))
        for found, value in zip(to_numpy(states), expected, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-6)

    @parameterized.parameters(*PAIRS)
    def test_a_saved_model_is_the_same(self, encoder, decoder):
        options = {} if decoder == encoder == "lstm" else {"rum_options": {"eta": 1.0}}
        built = model(encoder, decoder, coverage=True, **options)
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "model.keras")
        built.save(path)
        loaded = keras.saving.load_model(path)
        np.testing.assert_array_equal(distributions(loaded), distributions(built))

    def test_a_rum_with_an_associative_memory_decodes(self):
        built = model("rum", "rum", rum_options={"lambda_": 1, "eta": 1.0})
        hidden = to_numpy(built(INPUTS)["hidden"])
        np.testing.assert_allclose(np.linalg.norm(hidden, axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(distributions(built).sum(axis=-1), 1, atol=1e-5)

    def test_other_cells_are_refused(self):
        with self.assertRaisesRegex(ValueError, "`decoder_cell` must be one of .*'gru'"):
            PointerGenerator(9, decoder="gru")


class SummarizeTest(parameterized.TestCase):
    def greedy(self, built, row, length):
        memory, state = built.start(DOCUMENT[row : row + 1])
        token, found = 2, []
        while token != 3 and len(found) < length:
            word = np.array([token if token < VOCABULARY else 0])
            result, state = built.decoder.step(built.embed(word), state, memory)
            log_probabilities = to_numpy(
                built.log_probabilities(result, EXTENDED[row : row + 1], 2)
            )[0].copy()
            log_probabilities[[1, 2]] = -np.inf  # Padding and the start are no words.
            token = int(log_probabilities.argmax())
            found.append(token)
        return found

    @parameterized.parameters(*PAIRS)
    def test_a_beam_of_one_is_greedy(self, encoder, decoder):
        built = model(encoder, decoder, scale=1.0, coverage=True)
        hypotheses = built.summarize(DOCUMENT, EXTENDED, beam=1, max_length=6, min_length=0)
        for row in range(2):
            expected = self.greedy(built, row, 6)
            found = to_numpy(hypotheses.tokens)[row, 0]
            np.testing.assert_array_equal(found[: len(expected)], expected)

    def test_words_that_no_vocabulary_holds_are_copied_out(self):
        built = model()
        set_gate(built, -200.0)
        document, extended = np.zeros((1, 3), int), np.array([[12, 11, 12]])
        options = dict(beam=2, max_length=4, min_length=4)
        tokens = to_numpy(built.summarize(document, extended, **options).tokens)[0, 0]
        self.assertContainsSubset(set(tokens[:4].tolist()), {11, 12})
        self.assertEqual(tokens[4], 3)

    def test_padding_and_the_start_are_never_written(self):
        built = model()
        built.readout.bias.assign(np.eye(VOCABULARY)[1:3].sum(axis=0) * 50)
        tokens = to_numpy(
            built.summarize(DOCUMENT, EXTENDED, beam=1, max_length=3, min_length=3).tokens
        )
        self.assertNoCommonElements(tokens[:, 0, :3].ravel().tolist(), [1, 2])

    def test_documents_in_a_batch_are_summarized_as_alone(self):
        built = model(scale=1.0, coverage=True)
        options = dict(beam=3, max_length=5, min_length=2, extra=2)
        together = built.summarize(DOCUMENT, EXTENDED, **options)
        alone = built.summarize(DOCUMENT[1:, :5], EXTENDED[1:, :5], **options)
        np.testing.assert_array_equal(to_numpy(alone.tokens)[0], to_numpy(together.tokens)[1])
        np.testing.assert_allclose(
            to_numpy(alone.scores)[0], to_numpy(together.scores)[1], atol=1e-5
        )

    def test_the_first_context_is_zero_unless_asked_as_the_released_code_decodes(self):
        built = model(coverage=True)
        memory, state = built.start(DOCUMENT)
        np.testing.assert_array_equal(to_numpy(state["context"]), 0)
        np.testing.assert_array_equal(to_numpy(state["coverage"]), 0)
        _, released = built.start(DOCUMENT, initial_attention=True)
        context, weights = built.decoder._attend(state["cell"], state["coverage"], memory)
        np.testing.assert_allclose(to_numpy(released["context"]), to_numpy(context), atol=1e-6)
        np.testing.assert_allclose(to_numpy(released["coverage"]).sum(axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(to_numpy(released["coverage"]), to_numpy(weights), atol=1e-6)

    def test_a_document_without_words_is_refused(self):
        with self.assertRaisesRegex(ValueError, r"must have words, received shape \(2, 0\)"):
            model().summarize(DOCUMENT[:, :0], EXTENDED[:, :0])

    def test_copied_ids_are_asked_for(self):
        with self.assertRaisesRegex(ValueError, "needs `document_extended`"):
            model().summarize(DOCUMENT)


if __name__ == "__main__":
    absltest.main()
