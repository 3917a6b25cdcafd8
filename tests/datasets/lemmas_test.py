"""Tests of lemmas and stop words."""

import os
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from datasets import lemmas

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data"))


class LemmatizerTest(parameterized.TestCase):
    @parameterized.parameters(
        ("storms", "storm"),
        ("cities", "city"),
        ("movies", "movie"),
        ("matches", "match"),
        ("horses", "horse"),
        ("stopped", "stop"),
        ("voted", "vote"),
        ("tried", "try"),
        ("walking", "walk"),
        ("making", "make"),
        ("running", "run"),
        ("calling", "call"),
    )
    def test_suffixes_are_taken_off_what_the_corpus_holds(self, form, lemma):
        lemmatizer = lemmas.Lemmatizer({form: 5, lemma: 3})
        self.assertEqual(lemmatizer.lemma(form), lemma)

    @parameterized.parameters(
        ("women", "woman"), ("children", "child"), ("was", "be"), ("won", "win"), ("fell", "fall")
    )
    def test_irregular_forms_are_known(self, form, lemma):
        self.assertEqual(lemmas.Lemmatizer({}).lemma(form), lemma)

    @parameterized.parameters("news", "crisis", "glass", "bus", "thing", "bring", "wales", "1990s")
    def test_words_that_look_inflected_stay(self, word):
        counts = {word: 5, word[:-1]: 9, word.removesuffix("ing"): 9}
        self.assertEqual(lemmas.Lemmatizer(counts).lemma(word), word)

    def test_a_form_stays_if_its_stem_is_unknown_or_much_rarer(self):
        self.assertEqual(lemmas.Lemmatizer({"storms": 5}).lemma("storms"), "storms")
        self.assertEqual(lemmas.Lemmatizer({"charing": 99, "char": 2}).lemma("charing"), "charing")

    def test_of_several_stems_the_most_frequent_is_taken(self):
        for hop, hope, lemma in ((1, 5, "hope"), (5, 1, "hop")):
            lemmatizer = lemmas.Lemmatizer({"hoped": 1, "hop": hop, "hope": hope})
            self.assertEqual(lemmatizer.lemma("hoped"), lemma)

    def test_wordnets_lists_add_forms(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "noun.exc").write_text("kine cow\nmen males\n")
            lemmatizer = lemmas.Lemmatizer({}, folder)
        self.assertEqual((lemmatizer.lemma("kine"), lemmatizer.lemma("men")), ("cow", "man"))

    def test_a_folder_without_the_lists_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "noun.exc and verb.exc, got"):
                lemmas.Lemmatizer({}, folder)

    def test_regular_and_listed_forms_agree_with_wordnet(self):
        if not (DATA / "wordnet_exceptions").is_dir():
            self.skipTest("WordNet's lists are not here: set RUM_KERAS_DATA to the data's folder.")
        pairs = {}
        for name in ("verb.exc", "noun.exc"):
            for line in (DATA / "wordnet_exceptions" / name).read_text().splitlines():
                form, *stems = line.split()
                pairs.setdefault(form, set()).update(stems)
        known = [e.split("=") for e in lemmas._IRREGULAR.split() if "=" in e]
        wrong = [f"{f}={s}" for f, s in known if f in pairs and s not in pairs[f]]
        # Which of two verbs or nouns is meant is a choice.
        self.assertLessEqual(len(wrong), 3, wrong)


class LemmaOfWordsTest(absltest.TestCase):
    def test_stop_words_go_by_form_and_by_lemma(self):
        lemmatizer = lemmas.Lemmatizer({"storm": 1, "says": 1})
        found = lemmas.lemma_of_words(
            ["says", "the", "storm", "are"], lemmatizer, {"the", "say", "be"}
        )
        self.assertEqual(found, {"storm": "storm"})

    def test_punctuation_goes_and_numbers_stay(self):
        found = lemmas.lemma_of_words(["--", "''", "£", "3.6", "é"], lemmas.Lemmatizer({}), set())
        self.assertEqual(list(found), ["3.6", "é"])

    def test_the_tokens_of_the_treebank_are_stop_words(self):
        self.assertContainsSubset(["the", "'s", "n't", "-lrb-", "``", "said"], lemmas.stop_words())


if __name__ == "__main__":
    absltest.main()
