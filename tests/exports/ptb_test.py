"""Tests of the character language model as it is served, on a loaded export."""

import tempfile
from pathlib import Path

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from exports import check, export, ptb
from zoo.ptb.model import CharacterModel

SYMBOLS = " abcd\nN"
RNN = {"return_sequences": True, "return_state": True}


class PtbTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        keras.utils.set_random_seed(3)
        cls.model = CharacterModel(SYMBOLS, [keras.layers.SimpleRNN(6, **RNN)], 4)
        # As a trained model: one whose answers depend on what it reads.
        for weight in cls.model.trainable_variables:
            weight.assign(2 * weight)
        cls.directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "1"
        export.write(cls.model, ptb, cls.directory, "ptb")
        cls.servable = cls.enterClassContext(check.Servable(cls.directory))

    def ask(self, prompts, length, temperature, seed=None):
        inputs = {
            "prompt": np.array([_bytes(prompt) for prompt in prompts], object),
            "length": np.broadcast_to(np.int32(length), len(prompts)),
            "temperature": np.broadcast_to(np.float32(temperature), len(prompts)),
        }
        signature = "serving_default"
        if seed is not None:
            inputs["seed"], signature = np.broadcast_to(np.int32(seed), len(prompts)), "sample"
        answer = self.servable.predict(inputs, signature)["continuation"]
        return [text.decode() for text in answer]

    def score(self, texts):
        inputs = {"text": np.array([_bytes(text) for text in texts], object)}
        return self.servable.predict(inputs, "score")["bits_per_character"]

    def logits(self, text):
        """The model's logits of each character of a text and of the one that follows it."""
        ids = np.array([[SYMBOLS.index(symbol) for symbol in "\n" + text]])
        return keras.ops.convert_to_numpy(self.model(ids, training=False))[0]

    def test_passes_all_checks(self):
        self.assertTrue(check.check(self.directory))

    @parameterized.parameters("", "a", "ab\ncd N")
    def test_at_temperature_zero_each_character_is_the_likeliest(self, prompt):
        text = prompt
        for _ in range(5):
            text += SYMBOLS[self.logits(text)[-1].argmax()]
        self.assertEqual(self.ask([prompt], 5, 0), [text[len(prompt) :]])

    def test_the_score_is_the_mean_of_the_bits_of_every_character(self):
        texts = ["a", "abcd NN\n", "dcba" * 9]
        for text, bits in zip(texts, self.score(texts), strict=True):
            logits = self.logits(text)[:-1]
            logits = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            own = [logits[t, SYMBOLS.index(symbol)] for t, symbol in enumerate(text)]
            self.assertAlmostEqual(bits, -np.mean(own) / np.log(2), delta=1e-5)
        np.testing.assert_array_equal(self.score([""]), [0])

    def test_a_row_is_answered_alike_in_any_batch(self):
        prompts, lengths = ["a", "", "bcd" * 7], [4, 9, 2]
        for temperature in (0.0, 0.7):
            together = self.ask(prompts, lengths, temperature)
            for prompt, length, answer in zip(prompts, lengths, together, strict=True):
                self.assertEqual(self.ask([prompt], length, temperature), [answer])
        together = self.score(prompts)
        alone = [self.score([prompt])[0] for prompt in prompts]
        np.testing.assert_allclose(together, alone, rtol=1e-5)

    @parameterized.parameters(0.5, 1.0, 2.0)
    def test_characters_are_drawn_as_likely_as_the_model_says(self, temperature):
        draws, rows = 4000, 1000
        counts = np.zeros(len(SYMBOLS))
        for start in range(0, draws, rows):
            answers = self.ask(["ab"] * rows, 1, temperature, seed=np.arange(start, start + rows))
            counts += [answers.count(symbol) for symbol in SYMBOLS]
        logits = self.logits("ab")[-1] / temperature
        likely = np.exp(logits) / np.exp(logits).sum()
        deviation = np.sqrt(likely * (1 - likely) / draws)
        np.testing.assert_array_less(abs(counts / draws - likely), 4.5 * deviation + 1e-3)

    def test_a_seed_fixes_what_is_drawn_and_others_draw_otherwise(self):
        first, again, other = self.ask(["a"] * 3, 40, 1.5, seed=[7, 7, 8])
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(self.ask(["a"], 40, 1.5, seed=0), self.ask(["a"], 40, 1.5))
        self.assertGreater(len(set(first)), 3)

    def test_lengths_and_temperatures_of_any_value_are_answered(self):
        answers = self.ask(["a"] * 4, [-1, 0, 3, 2**31 - 1], 0)
        self.assertEqual([len(answer) for answer in answers], [0, 0, 3, 1000])
        cold, *answers = self.ask(["a"] * 6, 9, [0, -1, np.nan, -np.inf, 1e-30, np.inf])
        self.assertEqual(answers[:-1], [cold] * 4)
        self.assertLen(answers[-1], 9)

    def test_only_the_end_of_a_long_prompt_and_the_start_of_a_long_text_are_read(self):
        end = "ab" * 500
        self.assertEqual(self.ask(["d" * 9 + end], 9, 0), self.ask([end], 9, 0))
        start = "abcd" * 1000
        np.testing.assert_array_equal(self.score([start + "dd"]), self.score([start]))

    def test_other_characters_are_read_as_small_letters_or_spaces(self):
        for other, known in (("A", "a"), ("n", " "), ("\t", " "), ("é", "  "), ("\0", " ")):
            text = f"ab{other}cd"
            np.testing.assert_array_equal(self.score([text]), self.score([f"ab{known}cd"]))

    @settings(deadline=None, max_examples=20)
    @given(st.lists(st.text() | st.text("ab \nN"), max_size=4), st.integers(-2, 9))
    def test_any_strings_are_continued_by_as_many_known_characters(self, prompts, length):
        for answer in self.ask(prompts, length, 1.0):
            self.assertLen(answer, max(length, 0))
            self.assertContainsSubset(answer, SYMBOLS)
        scores = self.score(prompts)
        self.assertEqual(scores.shape, (len(prompts),))
        self.assertTrue(np.isfinite(scores).all())

    def test_a_model_without_lines_is_refused(self):
        model = CharacterModel("ab", [keras.layers.SimpleRNN(3, **RNN)], 4)
        with self.assertRaisesRegex(ValueError, "no symbol for the end of a line, only 'ab'"):
            ptb.signatures(model)


def _bytes(text):
    return text.encode("utf-8", "surrogatepass")


if __name__ == "__main__":
    absltest.main()
