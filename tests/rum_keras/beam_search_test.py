"""Beam search against all sequences, a search by lists, and greedy search."""

import itertools
import math

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from keras import ops

from rum_keras.beam_search import beam_search
from tests import backend
from tests.backend import FLOAT
from tests.rum_keras.beam_search_tables import FIRST, next_code, search, table


def found(hypotheses, row=0):
    """Returns [(tokens with the end token, score)] of the hypotheses that exist, best first."""
    rows = zip(hypotheses.tokens[row], hypotheses.lengths[row], hypotheses.scores[row], strict=True)
    return [(tuple(tokens[:length].tolist()), score) for tokens, length, score in rows if length]


def all_sequences(log_probabilities, max_length, length_penalty, code=FIRST):
    """Returns [(tokens, score)] of all sequences that end, best first."""
    results = []
    words = range(1, log_probabilities.shape[-1])
    for length in range(max_length + 1):
        for sequence in itertools.product(words, repeat=length):
            state, total = next_code(code, 0), 0.0
            for token in (*sequence, 0):
                total += float(log_probabilities[state, token])
                state = next_code(state, token)
            results.append(((*sequence, 0), total / (length + 1) ** length_penalty))
    return sorted(results, key=lambda result: -result[1])


def repeats(tokens, n):
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return n > 0 and len(set(grams)) < len(grams)


def assume_no_tie(best):
    """Rejects the example where rounding decides the order: the same steps in another order."""
    totals = [one[1] for one in best]
    assume(all(a - b > 1e-5 for a, b in zip(totals, totals[1:], strict=False)))


def search_by_lists(
    log_probabilities,
    code,
    beam,
    max_length,
    min_length,
    length_penalty,
    blocked_ngram,
    stop_early,
):
    """Returns [(tokens, score)] by the rules in the docstring, one hypothesis after the other."""
    live, finished = [((), 0.0, next_code(code, 0))], []
    for length in range(max_length + 1):
        candidates = [
            ((*tokens, token), total + float(log_probabilities[state, token]), state)
            for tokens, total, state in live
            for token in range(log_probabilities.shape[-1])
            if (token == 0 and length >= min_length) or (token > 0 and length < max_length)
        ]
        candidates = [one for one in candidates if not repeats(one[0], blocked_ngram)]
        candidates = sorted(candidates, key=lambda candidate: -candidate[1])
        assume_no_tie(candidates[: 2 * beam + 1])
        candidates = candidates[: 2 * beam]
        for tokens, total, _ in candidates[:beam]:
            if tokens[-1] == 0:
                finished.append((tokens, total / (length + 1) ** length_penalty))
        if stop_early:
            finished = finished[:beam]
        finished = sorted(finished, key=lambda one: -one[1])
        assume_no_tie(finished[: beam + 1])
        finished = finished[:beam]
        if stop_early and len(finished) == beam:
            break
        live = [
            (tokens, total, next_code(state, tokens[-1]))
            for tokens, total, state in candidates
            if tokens[-1] > 0
        ][:beam]
    return finished


def assert_same(actual, expected):
    assert [one[0] for one in actual] == [one[0] for one in expected], (actual, expected)
    np.testing.assert_allclose(
        [one[1] for one in actual], [one[1] for one in expected], rtol=0, atol=1e-5
    )


class RulesTest(parameterized.TestCase):
    @parameterized.product(length_penalty=[0.0, 0.5, 1.0], stop_early=[False, True])
    def test_a_beam_that_holds_everything_finds_all_sequences_in_order(
        self, length_penalty, stop_early
    ):
        expected = all_sequences(table(4), 3, length_penalty)
        actual = search(
            table(4),
            beam=len(expected),
            max_length=3,
            length_penalty=length_penalty,
            stop_early=stop_early,
        )
        assert_same(found(actual), expected)

    # JAX compiles every example.
    @settings(max_examples=20 if FLOAT == "float64" else 5, deadline=None)
    @given(
        seed=st.integers(0, 999),
        beam=st.integers(1, 5),
        max_length=st.sampled_from([1, 6]),
        min_length=st.integers(0, 3),
        length_penalty=st.sampled_from([0.0, 0.7, 1.0, 2.0]),
        blocked_ngram=st.integers(0, 3),
        stop_early=st.booleans(),
    )
    def test_equals_a_search_by_lists(self, seed, min_length, max_length, **options):
        options.update(max_length=max_length, min_length=min(min_length, max_length))
        hypotheses = search(table(5, seed), codes=(0, 3), **options)
        for row, code in enumerate((0, 3)):
            expected = search_by_lists(table(5, seed), code, **options)
            assert_same(found(hypotheses, row), expected)

    def test_beam_1_is_greedy(self):
        code, expected = next_code(FIRST, 0), []
        for _ in range(5):
            expected.append(int(table(6)[code].argmax()))
            code = next_code(code, expected[-1])
        self.assertEqual(expected, [2, 5, 2, 5, 0])
        ((tokens, _),) = found(search(table(6), beam=1, max_length=20))
        self.assertEqual(list(tokens), expected)

    def test_a_row_alone_gives_the_same_as_in_a_batch(self):
        together = search(table(6), codes=(4, 0, 9), beam=3)
        for row, code in enumerate((4, 0, 9)):
            for one, other in zip(search(table(6), codes=(code,), beam=3), together, strict=True):
                np.testing.assert_array_equal(one[0], other[row])

    def test_scores_are_those_of_the_tokens(self):
        hypotheses = search(table(6), beam=3, length_penalty=0.5)
        sums = hypotheses.log_probabilities.sum(-1) / hypotheses.lengths**0.5
        np.testing.assert_allclose(hypotheses.scores, sums, rtol=1e-6)
        for tokens, one in zip(hypotheses.tokens[0], hypotheses.log_probabilities[0], strict=True):
            code = next_code(FIRST, 0)
            for token, log_probability in zip(tokens, one, strict=True):
                self.assertIn(log_probability, (0, table(6)[code, token]))
                code = next_code(code, token)

    def test_alignments_are_the_positions_attended_to_when_a_token_was_chosen(self):
        hypotheses = search(table(6), beam=3, attend=True)
        for i in range(3):
            length = hypotheses.lengths[0, i]
            tokens, alignments = hypotheses.tokens[0, i], hypotheses.alignments[0, i]
            # The step attends to the number of the token before.
            self.assertEqual(alignments[:length].tolist(), [0, *tokens[: length - 1]])
            self.assertEqual(set(alignments[length:]) - {-1}, set())
        self.assertEqual(np.unique(search(table(6)).alignments), [-1])

    def test_the_pad_token_is_never_chosen_and_fills_the_rest(self):
        likely = table(6) + 50.0 * np.eye(6, dtype="float32")[5]
        hypotheses = search(likely, pad_id=5, beam=3)
        for i in range(3):
            length = hypotheses.lengths[0, i]
            self.assertNotIn(5, hypotheses.tokens[0, i, :length])
            self.assertEqual(set(hypotheses.tokens[0, i, length:]) - {5}, set())

    def test_without_pad_token_the_end_token_fills_the_rest(self):
        hypotheses = search(table(6), codes=(3,), beam=1)
        rest = np.arange(5) >= hypotheses.lengths[..., None]
        self.assertTrue(rest.any())
        self.assertEqual(set(hypotheses.tokens[rest]), {0})

    def test_hypotheses_that_do_not_exist_have_no_length_and_the_score_of_impossible_ones(self):
        hypotheses = search(table(3), beam=8, max_length=1)  # 0, 1 0 and 2 0.
        self.assertLen(found(hypotheses), 3)
        np.testing.assert_array_equal(hypotheses.scores[0, 3:], [-math.inf] * 5)
        np.testing.assert_array_equal(hypotheses.tokens[0, 3:], np.zeros((5, 2)))

    def test_a_blocked_row_with_nothing_to_say_stops(self):
        # Every unigram once: at most 1, 2 and the end; shorter ones are forbidden.
        hypotheses = search(table(3), beam=2, max_length=9, min_length=5, blocked_ngram=1)
        self.assertEmpty(found(hypotheses))

    def test_a_step_may_return_more_tokens_than_it_can_embed(self):
        def step(tokens, state):  # A pointer network: tokens from 3 on are copied words.
            embedded = ops.where(tokens < 3, tokens, 1)
            return ops.take(wide, embedded, axis=0), state

        wide = np.log([[0.1, 0.1, 0.1, 0.1, 0.6], [0.9, 0.04, 0.02, 0.02, 0.02], [0.2] * 5])
        result = beam_search(step, (), [0], end_id=0, beam=2, max_length=3)
        self.assertEqual(backend.to_numpy(result.tokens)[0, 0].tolist(), [4, 0, 0, 0])

    def test_states_of_any_structure_follow_their_hypotheses_and_scalars_pass(self):
        log_probabilities = table(6)

        def step(tokens, state):
            position, nested = state["position"], state["nested"]
            # The history as a row of tokens, and its code, must be the same history.
            history = ops.where(ops.arange(6) == position, tokens[:, None], nested[0])
            code = ops.zeros_like(tokens)
            for i in range(6):
                code = ops.where(i <= position, next_code(code, history[:, i]), code)
            new = {"position": position + 1, "nested": (history, nested[1])}
            return ops.take(log_probabilities, code, axis=0), new

        state = {
            "position": np.int32(0),
            "nested": (np.zeros((2, 6), "int32"), np.ones((2, 3, 1), "float32")),
        }
        start = np.zeros(2, "int32")
        actual = beam_search(step, state, start, end_id=0, beam=3, max_length=4)
        expected = search(log_probabilities, codes=(0, 0), beam=3)
        np.testing.assert_array_equal(actual.tokens, expected.tokens)
        np.testing.assert_allclose(actual.scores, expected.scores, rtol=1e-5)

    @parameterized.parameters(
        (dict(beam=0), "`beam` must be positive, received 0"),
        (dict(max_length=0), "`max_length` must be positive"),
        (dict(min_length=5), "`min_length` must be between 0 and `max_length`, 4, received 5"),
        (dict(length_penalty=-1.0), "`length_penalty` must not be negative"),
        (dict(blocked_ngram=-1), "`blocked_ngram` must not be negative"),
    )
    def test_arguments_out_of_range_are_named(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            search(table(6), **options)

    def test_a_step_that_changes_the_dtype_of_its_state_is_refused(self):
        def step(tokens, state):
            return ops.take(table(6), tokens, axis=0), ops.cast(state, "float32")

        with self.assertRaisesRegex(ValueError, "received int32, returned float32"):
            beam_search(step, np.array([3], "int32"), [0], end_id=0, beam=2, max_length=4)


if __name__ == "__main__":
    absltest.main()
