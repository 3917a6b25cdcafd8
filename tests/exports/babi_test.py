"""Tests of the text form of bAbI, on loaded exports."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import babi as data
from datasets.babi_files import parse
from exports import babi, check, export
from tests import shared_data
from zoo.babi import evaluate
from zoo.babi.model import babi_model

TEXT = """1 Ann went to the hall.
2 Bo took the lamp.
3 Where is Ann?\thall\t1
4 Bo went to the shed.
5 Where is the lamp?\tshed\t2 4
"""
STORY = "Ann went to the hall. Bo took the lamp. Bo went to the shed."
QUESTION = "Where is the lamp?"
LONGER_TEXT = """1 Bo took the lamp.
2 Bo is to the hall.
3 Ann went to the shed.
4 Bo went to the shed.
5 Where is the lamp?\tshed\t1 4
"""
LONGER_STORY = "Bo took the lamp. Bo is to the hall. Ann went to the shed. Bo went to the shed."


def trained(level: str, attention: bool, known: data.Vocabulary) -> keras.Model:
    """A model whose answers depend on what it reads."""
    keras.utils.set_random_seed(2)
    layer = keras.layers.GRU(5, return_sequences=attention)
    model = babi_model(layer, len(known.words), len(known.answers), level, attention)
    for weight in model.weights:
        weight.assign(3 * weight)
    return model


def write_run(folder: Path, level: str, known: data.Vocabulary) -> Path:
    """Writes what the export reads of a run."""
    folder.mkdir()
    text = json.dumps({"level": level, **known._asdict()})
    (folder / "vocabulary.json").write_text(text)
    return folder


class BabiTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.questions = parse(TEXT, "text")
        cls.known = data.vocabulary(cls.questions)
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.models, cls.directories, cls.servables = {}, {}, {}
        for level, attention in (("sentence", True), ("sentence", False), ("word", True)):
            key = (level, attention)
            run = write_run(folder / f"run-{level}-{attention}", level, cls.known)
            cls.models[key] = trained(level, attention, cls.known)
            cls.directories[key] = folder / f"{level}-{attention}" / "1"
            export.write(cls.models[key], babi, cls.directories[key], "babi", run)
            cls.servables[key] = cls.enterClassContext(check.Servable(cls.directories[key]))

    def ask(self, stories, questions, key=("sentence", True)):
        inputs = {"story": stories, "question": questions}
        inputs = {
            name: np.array([t.encode("utf-8", "surrogatepass") for t in texts], object)
            for name, texts in inputs.items()
        }
        outputs = self.servables[key].predict(inputs)
        return {
            name: value.tolist() if name == "probability" else [text.decode() for text in value]
            for name, value in outputs.items()
        }

    @parameterized.parameters(("sentence", True), ("sentence", False), ("word", True))
    def test_served_answers_are_those_of_the_model(self, level, attention):
        story, question, _ = data.arrays(self.questions, self.known, level)
        logits = self.models[level, attention]([story, question])
        expected = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
        stories = [" ".join(STORY.split(". ")[:2]).replace("hall ", "hall. ") + ".", STORY]
        found = self.ask(stories, ["Where is Ann?", QUESTION], (level, attention))
        best = [self.known.answers[i] for i in expected.argmax(1)]
        self.assertEqual(found["answer"], best)
        np.testing.assert_allclose(found["probability"], expected.max(1), atol=1e-5)
        self.assertEqual("sentence" in found, attention)

    @parameterized.parameters("sentence", "word")
    def test_longer_stories_are_read_as_in_training(self, level):
        # It has a sentence more than the longest story of training, and then a word more.
        *_, question = parse(LONGER_TEXT, "text")
        story, asked, _ = data.arrays([question], self.known, level)
        expected = keras.ops.softmax(self.models[level, True]([story, asked]))
        found = self.ask([LONGER_STORY], [QUESTION], (level, True))
        self.assertEqual((story != 0).sum(), 17 if level == "word" else 18)
        np.testing.assert_allclose(found["probability"], [np.max(expected)], atol=1e-5)
        self.assertEqual(found["answer"], [self.known.answers[np.argmax(expected)]])

    @parameterized.parameters("small_rum_lambda1_sentence", "small_gru_word")
    def test_kept_weights_answer_the_test_stories_as_measured(self, row):
        folder = shared_data.folder("babi")
        run = Path(babi.__file__).parents[1] / "zoo" / "babi" / "weights" / row / "qa02"
        known, level = evaluate.read_vocabulary(run)
        questions = data.find(folder, 2, "en-10k", "test")[:40]
        self.assertGreater(max(len(question.story) for question in questions), known.sentences)
        model, _ = export.load_run(run)
        story, asked, _ = data.arrays(questions, known, level)
        expected = evaluate.predict(model, story, asked).argmax(-1)
        (signature,) = babi.signatures(model, run).values()
        found = signature.answer(
            [" ".join(sum(question.story, ())) for question in questions],
            [" ".join(question.question) for question in questions],
        )
        answers = [text.decode() for text in found["answer"].numpy()]
        self.assertEqual(answers, [known.answers[number] for number in expected])

    @parameterized.product(
        level=("sentence", "word"),
        # In the last, what is read begins amid a sentence.
        older=(
            "Ann went to the shed.",
            "Cy baked.\n",
            "Bo. " * 100_000,
            "Bo took the lamp " * 9999,
        ),
    )
    def test_what_is_older_than_the_longest_story_of_training_does_not_matter(self, level, older):
        alone = self.ask([STORY], [QUESTION], (level, True))
        found = self.ask([older + ". " + STORY, STORY], [QUESTION] * 2, (level, True))
        for name in ("answer", "sentence"):
            self.assertEqual(found[name], alone[name] * 2)
        np.testing.assert_allclose(found["probability"], alone["probability"] * 2, atol=1e-6)

    @parameterized.parameters("sentence", "word")
    def test_the_sentence_is_the_one_with_the_most_attention(self, level):
        story, question, _ = data.arrays(self.questions[1:], self.known, level)
        model = self.models[level, True]
        attending = keras.Model(model.inputs, model.get_layer("attention").output[1])
        weight = keras.ops.convert_to_numpy(attending([story, question]))[0, 0]
        sizes = [6, 5, 6] if level == "word" else [1, 1, 1]
        sums = [part.sum() for part in np.split(weight, np.cumsum(sizes))[:3]]
        told = ["Ann went to the hall.", "Bo took the lamp.", "Bo went to the shed."]
        found = self.ask([STORY], [QUESTION], (level, True))
        self.assertEqual(found["sentence"], [told[int(np.argmax(sums))]])

    @parameterized.parameters(
        (STORY.upper(), QUESTION.lower()),
        (STORY.replace(". ", ".\n"), QUESTION),
        (STORY.replace(". ", "\n")[:-1], QUESTION),
        (STORY.replace(". ", "  .\r\n\n \t") + "\n", "  Where is the lamp ?\n"),
    )
    def test_case_blanks_and_new_lines_do_not_matter(self, story, question):
        (expected,) = self.ask([STORY], [QUESTION])["probability"]
        found = self.ask([story, STORY], [question, QUESTION])
        np.testing.assert_allclose(found["probability"], [expected, expected], atol=1e-6)
        self.assertEqual(found["sentence"][0].lower(), found["sentence"][1].lower())

    @parameterized.parameters(
        ("", QUESTION), (STORY, ""), (" \n. ", QUESTION), (STORY, " \n"),
        (STORY + " Bo took the cake.", QUESTION), (STORY, "Where is Cy?"),
        (STORY + " " * 100_000, QUESTION), (STORY, "Where is the the lamp?"),
        ("Ann went to the hall Bo took the lamp.", QUESTION), ("Bo " * 100_000, QUESTION),
        ("Bo took" + " " * 100_000 + "the lamp." + 2 * " Bo went to the shed.", QUESTION),
        (STORY, "is " * 100_000), ("\udcff", "\udcff"), ("Ann\0 went to the hall.", QUESTION),
    )  # fmt: skip
    def test_what_training_did_not_have_gets_no_answer_and_leaves_the_batch_alone(
        self, story, question
    ):
        alone = self.ask([STORY], [QUESTION])
        found = self.ask([story, STORY], [question, QUESTION])
        for name in ("answer", "sentence"):
            self.assertEqual(found[name], ["", alone[name][0]])
        np.testing.assert_allclose(found["probability"], [0, alone["probability"][0]], atol=1e-6)
        self.assertGreater(alone["probability"][0], 0)

    @settings(deadline=None, max_examples=20)
    @given(st.lists(st.text() | st.text("Bo. an\n?", min_size=5), max_size=3), st.text("Bo? ann"))
    def test_any_strings_are_answered_with_an_answer_or_not_at_all(self, stories, question):
        found = self.ask(stories, [question] * len(stories))
        for answer, probability in zip(found["answer"], found["probability"], strict=True):
            self.assertIn(answer, ("", *self.known.answers))
            self.assertEqual(probability > 0, answer != "")

    def test_a_batch_of_none_has_no_answers(self):
        self.assertEqual(self.ask([], []), {"answer": [], "probability": [], "sentence": []})

    @parameterized.parameters(("sentence", True), ("word", True))
    def test_every_check_passes(self, *key):
        self.assertTrue(check.check(self.directories[key]))

    def test_a_run_without_a_vocabulary_is_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "no vocabulary.json in .*one task"):
            babi.signatures(self.models["sentence", True], Path("nowhere"))


if __name__ == "__main__":
    absltest.main()
