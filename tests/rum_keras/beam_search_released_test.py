"""Beam search against what the released code found with the released ConvS2S."""

import math
import pathlib

import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras.beam_search import beam_search
from tests import backend

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/convs2s_beam.npz"


def released_decoder(w, history, position):
    """Returns log-probabilities and attention of the released ConvS2S decoder after `position`."""

    def linear(name, x):
        return x @ ops.transpose(w[f"{name}_weight"]) + w[f"{name}_bias"]

    time = history.shape[1]
    half = math.sqrt(0.5)
    beam = ops.shape(history)[0] // len(w["z"])
    z, zplus = (ops.repeat(w[name], beam, axis=0) for name in ("z", "zplus"))
    g = ops.take(w["decoder_embed_tokens_weight"], history, axis=0)
    g = g + w["decoder_embed_positions_weight"][2 : 2 + time]
    h, attention = linear("decoder_fc1", g), 0.0
    for i in range(2):
        residual = h
        kernel, bias = (w[f"decoder_convolutions_{i}_{name}"] for name in ("weight", "bias"))
        h = ops.pad(h, ((0, 0), (len(kernel) - 1, 0), (0, 0)))
        h = sum(h[:, j : j + time] @ kernel[j] for j in range(len(kernel))) + bias
        a, b = ops.split(h, 2, axis=-1)
        h = a * ops.sigmoid(b)
        q = (linear(f"decoder_attention_{i}_in_projection", h) + g) * half
        weights = ops.softmax(q @ ops.transpose(z, (0, 2, 1)))
        context = (weights @ zplus) * math.sqrt(z.shape[1])
        h = (linear(f"decoder_attention_{i}_out_projection", context) + h) * half
        h = (h + residual) * half
        attention = attention + weights / 2
    logits = linear("decoder_fc3", linear("decoder_fc2", h))
    here = ops.cast(ops.arange(time) == position, "float32")[:, None]
    return ops.sum(ops.log_softmax(logits) * here, 1), ops.sum(attention * here, 1)


class GoldenTest(parameterized.TestCase):
    def golden(self):
        with np.load(GOLDEN) as arrays:
            return {key: arrays[key] for key in arrays.files}

    def search(self, **options):
        arrays = self.golden()

        def step(tokens, state):
            history, position = state
            history = ops.where(ops.arange(13) == position, tokens[:, None], history)
            log_probabilities, attention = released_decoder(arrays, history, position)
            return log_probabilities, (history, position + 1), attention

        state, start = (np.zeros((3, 13), "int32"), np.int32(0)), np.full(3, 2)
        options = {"end_id": 2, "pad_id": 1, "min_length": 1, "max_length": 12, **options}
        return backend.to_numpy(beam_search(step, state, start, **options))

    @parameterized.parameters(5, 10)
    def test_equals_the_released_search_with_the_released_convs2s(self, beam):
        actual, arrays = self.search(beam=beam), self.golden()
        for ours, theirs in (("tokens",) * 2, ("lengths",) * 2, ("alignments", "alignment")):
            np.testing.assert_array_equal(getattr(actual, ours), arrays[f"beam{beam}_{theirs}"])
        for ours, theirs in (("scores", "score"), ("log_probabilities", "pos_scores")):
            np.testing.assert_allclose(
                getattr(actual, ours), arrays[f"beam{beam}_{theirs}"], rtol=1e-5, atol=1e-5
            )

    def test_without_stopping_early_only_hypotheses_that_the_released_search_drops_are_new(self):
        actual = self.search(beam=5, length_penalty=0.5, stop_early=False)
        scores = self.golden()["beam5_lenpen05_full_score"]
        np.testing.assert_allclose(actual.scores[1:], scores[1:], rtol=1e-5)
        np.testing.assert_allclose(actual.scores[0, :4], scores[0, :4], rtol=1e-5)
        self.assertGreater(actual.scores[0, 4], scores[0, 4])


if __name__ == "__main__":
    absltest.main()
