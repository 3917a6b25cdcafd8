"""Tests of ROUGE: its stems, its measures, and the published scores of five systems."""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from rouge_score import rouge_scorer

from tests import shared_data
from zoo import rouge

ROOT = pathlib.Path(__file__).parents[2]
LISTS = {
    "noun.exc": "mice mouse\nbetter better\n",
    "adv.exc": "better well\n",
    "verb.exc": "were be\nwas be\nran run\n",
    "adj.exc": "better good well\n",
}
SYSTEMS = ("lead", "ext-oracle", "ptgen", "convs2s", "topic-convs2s")


class RougeTestCase(parameterized.TestCase):
    def exceptions(self, **changes):
        """Writes exception lists and returns their folder."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in {**LISTS, **changes}.items():
            if text is not None:
                (folder / name).write_text(text)
        return folder


class TokenizerTest(RougeTestCase):
    def stems(self, text):
        return rouge.tokenizer("rouge155", self.exceptions()).tokenize(text)

    def test_irregular_forms_become_their_lemmas(self):
        self.assertEqual(self.stems("Mice were"), ["mouse", "be"])

    def test_words_of_three_letters_stay_as_they_are(self):
        self.assertEqual(self.stems("was ran its"), ["was", "ran", "its"])

    def test_a_lemma_of_adjectives_overrides_one_of_adverbs(self):
        self.assertEqual(self.stems("better"), ["good"])

    @parameterized.parameters(
        ("incredibly", "incred"),  # Porter's later rule: bli to ble.
        ("environmental", "environ"),  # Step 4 twice.
        ("commissioner", "commiss"),
        ("happily", "happili"),
        ("died", "di"),  # NLTK's own variant makes it "die".
    )
    def test_regular_forms_are_stemmed_as_by_rouge155(self, word, stem):
        self.assertEqual(self.stems(word), [stem])

    def test_all_but_letters_and_digits_separates_words(self):
        self.assertEqual(self.stems("Re-run: 10,000 (é) x_y"), ["re", "run", "10", "000", "x", "y"])

    @parameterized.parameters(False, True)
    def test_the_other_modes_are_those_of_the_package(self, use_stemmer):
        reference = "Two skies were flying , dying and generously lying -- 12,000 flies' relations"
        candidate = "the sky's generations fly , die and lie ; re-lations of 12 flies were"
        measures = ("rouge1", "rouge2", "rougeL")
        package = rouge_scorer.RougeScorer(measures, use_stemmer=use_stemmer)
        expected = [package.score(reference, candidate)[name] for name in measures]
        mode = "porter" if use_stemmer else "plain"
        scored = rouge.scores([reference], [candidate], mode, measures=measures)
        np.testing.assert_array_equal(scored[0], expected)

    def test_a_missing_list_is_named_with_what_installs_it(self):
        folder = self.exceptions(**{"verb.exc": None})
        with self.assertRaisesRegex(FileNotFoundError, r"verb\.exc is missing.*wordnet-base"):
            rouge.tokenizer("rouge155", folder)

    def test_a_line_without_a_lemma_is_named(self):
        folder = self.exceptions(**{"verb.exc": "were be\nran\n"})
        with self.assertRaisesRegex(ValueError, r"verb\.exc:2: expected `form lemma`.*'ran'"):
            rouge.tokenizer("rouge155", folder)

    def test_an_unknown_mode_is_refused(self):
        with self.assertRaisesRegex(ValueError, "plain, porter, rouge155, but is 'perl'"):
            rouge.tokenizer("perl")

    def test_mode_rouge155_does_not_run_without_lists(self):
        with self.assertRaisesRegex(ValueError, "needs exceptions"):
            rouge.scores(["a"], ["a"], "rouge155")


class ScoresTest(RougeTestCase):
    def test_n_grams_are_counted_by_hand(self):
        # 4 of 5 words, 2 of 4 pairs, 1 of 3 triples; the candidate's second "cat" does not count.
        reference, candidate = "the cat sat here today", "the cat sat there today cat"
        scored = rouge.scores([reference], [candidate], "plain")
        recalls = dict(zip(rouge.MEASURES, scored[0, :, 1], strict=True))
        np.testing.assert_allclose(
            [recalls[f"rouge{n}"] for n in (1, 2, 3)], [4 / 5, 2 / 4, 1 / 3], rtol=1e-12
        )
        np.testing.assert_allclose(scored[0, 0, 0], 4 / 6, rtol=1e-12)

    def test_sentence_split_l_takes_the_union_over_sentences(self):
        # Lin's example: the two subsequences "w1 w2" and "w1 w3 w5" cover 4 of the 5 words.
        reference, candidate = "w1 w2 w3 w4 w5", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"
        scored = rouge.scores([reference], [candidate], "plain", measures=("rougeL", "rougeLsum"))
        np.testing.assert_allclose(scored[0, :, 1], [4 / 5, 4 / 5], rtol=1e-12)
        swapped = "\n".join(candidate.split("\n")[::-1])
        scored = rouge.scores([reference], [swapped], "plain", measures=("rougeL", "rougeLsum"))
        np.testing.assert_allclose(scored[0, :, 1], [3 / 5, 4 / 5], rtol=1e-12)

    @parameterized.parameters(("", "a b"), ("a b", ""), ("", ""), ("кот", "кот"))
    def test_texts_without_words_score_zero(self, reference, candidate):
        scored = rouge.scores([reference], [candidate], "plain")
        np.testing.assert_array_equal(scored, np.zeros((1, 5, 3)))

    def test_two_processes_score_as_one(self):
        generator = np.random.default_rng(1)
        words = [" ".join(generator.choice(list("abcd"), 4)) for _ in range(4002)]
        references, candidates = words[:2001], words[2001:]
        one = rouge.scores(references, candidates, "plain", measures=["rouge1"], processes=1)
        two = rouge.scores(references, candidates, "plain", measures=["rouge1"], processes=2)
        np.testing.assert_array_equal(one, two)
        self.assertGreater(one.std(), 0)

    def test_as_many_references_as_candidates_are_asked_for(self):
        with self.assertRaisesRegex(ValueError, "1 candidates and 2 references"):
            rouge.scores(["a", "b"], ["a"], "plain")


class MeansTest(parameterized.TestCase):
    def test_figures_are_means_of_the_pairs_in_per_cent(self):
        scored = np.array([[[0.2, 0.4, 0.3]], [[0.4, 0.8, 0.5]]])
        row = rouge.means(scored, ["rouge1"])["rouge1"]
        self.assertAlmostEqual(row["precision"], 30)
        self.assertAlmostEqual(row["recall"], 60)
        self.assertAlmostEqual(row["f"], 40)

    def test_the_interval_is_the_normal_one_of_many_pairs(self):
        values = np.random.default_rng(3).random(4000)
        scored = np.repeat(values[:, None, None], 3, axis=2)
        row = rouge.means(scored, ["rouge1"])["rouge1"]
        half = 1.96 * 100 * values.std() / np.sqrt(4000)
        self.assertAlmostEqual(row["low"], row["f"] - half, delta=0.1 * half)
        self.assertAlmostEqual(row["high"], row["f"] + half, delta=0.1 * half)

    def test_the_same_seed_draws_the_same_interval(self):
        scored = np.random.default_rng(3).random((50, 1, 3))
        first, again, other = (rouge.means(scored, ["a"], seed=seed)["a"] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first["low"], other["low"])

    def test_no_pairs_have_no_mean(self):
        with self.assertRaisesRegex(ValueError, "no pairs"):
            rouge.means(np.zeros((0, 5, 3)))


class PublishedTest(parameterized.TestCase):
    """Scores that ROUGE-1.5.5 itself gave to real summaries."""

    def exceptions(self):
        return shared_data.folder("wordnet_exceptions")

    def lines(self, name):
        path = shared_data.folder("xsum") / f"model_predictions/{name}.txt.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [line.rstrip("\n") for line in lines]

    @parameterized.parameters(*SYSTEMS)
    def test_each_summary_of_500_has_the_score_of_rouge155(self, system):
        golden = shared_data.folder("xsum") / "rouge155_golden.jsonl.gz"
        with gzip.open(golden, "rt") as lines:
            records = [json.loads(line) for line in lines]
        places = [record["test_line"] for record in records]
        references, candidates = (
            self.lines("gold-test-sentences"),
            self.lines(f"{system}-test-output"),
        )
        scored = rouge.scores(
            [references[place] for place in places],
            [candidates[place] for place in places],
            "rouge155",
            self.exceptions(),
            ("rouge1", "rouge2", "rougeL"),
        )
        published = [
            [
                [record["systems"][system]["stem"][f"ROUGE-{n}"][field] for field in "prf"]
                for n in "12L"
            ]
            for record in records
        ]
        np.testing.assert_allclose(scored, published, atol=2e-5)

    @parameterized.parameters("stem", "nostem")
    def test_the_means_of_all_test_lines_are_the_published_ones(self, stemming):
        # One system here, since it takes ten seconds; zoo/xsum/EVALUATION.md has all five.
        means = json.loads((shared_data.folder("xsum") / "rouge155_means.json").read_text())
        published = means["topic-convs2s"][stemming]
        measures = [name.replace("ROUGE-", "rouge") for name in published]
        scored = rouge.scores(
            self.lines("gold-test-sentences"),
            self.lines("topic-convs2s-test-output"),
            "rouge155" if stemming == "stem" else "plain",
            self.exceptions(),
            measures,
        )
        self.assertLen(scored, 11_334)
        expected = [[row[field] for field in "prf"] for row in published.values()]
        np.testing.assert_allclose(100 * scored.mean(axis=0), expected, atol=0.002)

    @parameterized.parameters(("1", 1767), ("2", 1771), ("L", 1462))
    def test_summaries_of_several_sentences_have_the_scores_of_realsumm(self, measure, count):
        references, candidates, published = [], [], []
        path = shared_data.folder("cnn_dailymail") / "realsumm.jsonl.gz"
        with gzip.open(path, "rt") as lines:
            for line in lines:
                record = json.loads(line)
                for system in [*record["abstractive"].values(), *record["extractive"].values()]:
                    if system["rouge155_exact"][measure]:
                        # Two summaries end in a sentence that was cut off, which did not count.
                        texts = (record["reference_tagged"], system["summary"])
                        reference, candidate = (
                            "\n".join(re.findall("<t>(.*?)</t>", text)) for text in texts
                        )
                        references.append(reference)
                        candidates.append(candidate)
                        published.append(system["scores"][f"rouge_{measure.lower()}_f_score"])
        self.assertLen(published, count)
        name = "rougeLsum" if measure == "L" else f"rouge{measure}"
        scored = rouge.scores(references, candidates, "rouge155", self.exceptions(), [name])
        np.testing.assert_allclose(scored[:, 0, 2], published, atol=2e-5)


class CommandTest(RougeTestCase):
    def run_command(self, candidates, references, *flags):
        folder = self.exceptions()
        (folder / "candidates").write_text(candidates)
        with gzip.open(folder / "references.gz", "wt") as file:
            file.write(references)
        command = [sys.executable, "-m", "zoo.rouge", f"--candidates={folder}/candidates"]
        command += [f"--references={folder}/references.gz", f"--exceptions={folder}", *flags]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    def test_prints_the_figures_as_json(self):
        done = self.run_command("<t> we were </t>\nx\n", "we be\nx\n", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["rouge1"]["f"], 100)

    def test_what_cannot_be_scored_is_one_sentence(self):
        done = self.run_command("a\n", "a\nb\n")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "^zoo.rouge: Each candidate needs its reference.*\n$")
        done = self.run_command("a\n", "a\n", "--references=nowhere.txt")
        self.assertEqual(done.stderr, "zoo.rouge: nowhere.txt: No such file or directory\n")

    def test_says_that_other_scripts_have_no_words(self):
        done = self.run_command("кот\nb\n", "кот\nb\n", "--mode=plain")
        self.assertRegex(done.stdout, r"rouge1 +50\.000")
        self.assertIn("2 of the 4 texts have no letter a-z", done.stdout)


if __name__ == "__main__":
    absltest.main()
