"""ConvS2S' encoder and decoder against values of the released code."""

import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras.beam_search import beam_search
from tests import backend
from tests.rum_keras.released_conv_s2s import END, PADDING, load, topics_of

FILES = (
    "convs2s",
    "convs2s_options",
    "tconvs2s_release_f8",
    "tconvs2s_f5_enc_tw",
    "tconvs2s_f5_enc_tw_td",
    "tconvs2s_f5_enc_tw_td_dec_td",
)
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


class ReleasedValuesTest(parameterized.TestCase):
    def assert_close(self, actual, expected):
        np.testing.assert_allclose(backend.to_numpy(actual), expected, **TOLERANCE)

    def run_case(self, name, case, zeros=False, **more):
        """Runs the model on a batch of the file and returns it, its arrays and its outputs."""
        arrays, options, encoder, decoder = load(name, **more)
        words, document = topics_of(arrays, options, case)
        if zeros:
            document = np.zeros_like(document)
        keys, values, mask = encoder(arrays[f"{case}/src_tokens"], words)
        tokens = arrays[f"{case}/prev_output_tokens"]
        logits, attention = decoder(tokens, keys, values, mask, document)
        average = ops.sum(attention, axis=1) / len(options["dec"])
        return arrays, (keys, values, attention, average, logits)

    @parameterized.parameters(
        *((name, case, False) for name in FILES for case in ("nopad", "pad")),
        ("tconvs2s_f5_enc_tw", "nopad", True),
        ("tconvs2s_f5_enc_tw_td", "nopad", True),
    )
    def test_outputs_are_those_of_the_released_code(self, name, case, zeros):
        arrays, outputs = self.run_case(name, case, zeros, mask_padding=False)
        keys, values, attention, average, logits = outputs
        case = f"dec0_{case}" if zeros else case
        self.assert_close(keys, arrays[f"{case}/enc/z"])
        self.assert_close(values, arrays[f"{case}/enc/zplus"])
        hops = [arrays[f"{case}/dec/attn{i}"] for i in range(3) if f"{case}/dec/attn{i}" in arrays]
        self.assert_close(attention, np.stack(hops, axis=1))
        self.assert_close(average, arrays[f"{case}/dec/attn_avg"])
        self.assert_close(logits, arrays[f"{case}/dec/logits"])

    def test_fast_convolutions_give_the_same(self):
        arrays, outputs = self.run_case("convs2s", "nopad", winograd=True)
        self.assert_close(outputs[-1], arrays["nopad/dec/logits"])

    @parameterized.parameters(*FILES)
    def test_a_padded_batch_gives_what_the_released_code_gives_each_row_alone(self, name):
        arrays, (keys, values, _, average, logits) = self.run_case(name, "pad")
        real = arrays["pad/src_tokens"] != PADDING
        for row in range(3):
            count = arrays[f"single{row}/dec/logits"].shape[1]
            place = f"single{row}"
            self.assert_close(keys[row][real[row]], arrays[f"{place}/enc/z"][0])
            self.assert_close(values[row][real[row]], arrays[f"{place}/enc/zplus"][0])
            given = backend.to_numpy(average)[row, :count]
            self.assert_close(given[:, real[row]], arrays[f"{place}/dec/attn_avg"][0])
            np.testing.assert_array_equal(given[:, ~real[row]], 0)
            self.assert_close(logits[row][:count], arrays[f"{place}/dec/logits"][0])

    @parameterized.parameters(
        ("convs2s", "beam5"), ("convs2s", "beam10"), ("tconvs2s_f5_enc_tw_td_dec_td", "beam5")
    )
    def test_beam_search_finds_what_the_released_code_finds(self, name, beam):
        arrays, options, encoder, decoder = load(name)
        words, document = topics_of(arrays, options, "nopad")
        memory, state = decoder.start(*encoder(arrays["nopad/src_tokens"], words), document)

        def step(tokens, state):
            logits, attention, state = decoder.step(tokens, state, memory)
            return ops.log_softmax(logits), state, attention

        found = beam_search(
            step,
            state,
            np.full(3, END),
            end_id=END,
            pad_id=PADDING,
            beam=arrays[f"{beam}/tokens"].shape[1],
            max_length=12,
            min_length=1,
        )
        np.testing.assert_array_equal(found.tokens, arrays[f"{beam}/tokens"])
        np.testing.assert_array_equal(found.lengths, arrays[f"{beam}/lengths"])
        self.assert_close(found.scores, arrays[f"{beam}/score"])
        ended = np.arange(13) >= arrays[f"{beam}/lengths"][:, :, None]
        np.testing.assert_array_equal(
            found.alignments, np.where(ended, -1, arrays[f"{beam}/alignment"])
        )


if __name__ == "__main__":
    absltest.main()
