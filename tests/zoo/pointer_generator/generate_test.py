"""Summaries of a split by a run."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from datasets import text_shards
from tests.zoo.pointer_generator import tiny_run
from zoo import summaries
from zoo.pointer_generator import generate, kept
from zoo.pointer_generator.model import PointerGenerator

ROOT = pathlib.Path(generate.__file__).parents[2]
NAME = "decrum-3-covg"


class GenerateTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        options = {"decoder": "rum", "coverage": True}
        cls.data, cls.run_folder = tiny_run.write(cls.folder, **options)
        cls.model, cls.text = kept.load_model(cls.run_folder), kept.read(cls.run_folder)
        cls.generator = generate.Generator(cls.model, cls.text)
        cls.examples = list(text_shards.load(cls.data, "train"))
        cls.rows = cls.generator.rows(cls.examples, with_attention=2)

    def test_the_command_writes_what_evaluation_reads(self):
        output = self.folder / "made" / "train.jsonl"
        flags = {"workdir": self.run_folder, "data": self.data, "split": "train"}
        flags |= {"output": output, "documents": 3, "attention": 1, "batch_size": 2}
        result = subprocess.run(
            [sys.executable, "-m", "zoo.pointer_generator.generate"]
            + [f"--{name}={value}" for name, value in flags.items()],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertIn(f"{output}: 3 documents in", result.stdout, result.stderr)
        found = summaries.read([output])
        expected = [row["summaries"] for row in self.rows[:3]]
        self.assertEqual([example.summaries for example in found], expected)
        self.assertEqual([len(example.attention) for example in found], [1, 0, 0])
        self.assertLen(found[0].attention[NAME].p_gen, len(found[0].attention[NAME].target))

    def test_words_are_of_the_vocabulary_or_of_the_part_that_is_read(self):
        copied = 0
        for row in self.rows:
            written = row["summaries"][NAME].split()
            read = text_shards.words(row["document"], tiny_run.DOCUMENT_LENGTH)
            self.assertLessEqual(set(written), {*self.text.vocabulary.words, *read})
            copied += len(set(written) - set(self.text.vocabulary.words))
            self.assertBetween(len(written), tiny_run.MIN_LENGTH, tiny_run.MAX_LENGTH)
        self.assertGreater(copied, 0)

    @parameterized.parameters(False, True)
    def test_attention_and_p_gen_are_those_of_the_steps_that_wrote(self, initial):
        generator = generate.Generator(self.model, self.text, initial_attention=initial)
        row, vocabulary = generator.rows(self.examples, with_attention=2)[1], self.text.vocabulary
        extended, _ = vocabulary.encode_copied(row["source"])
        ids = np.where(extended < len(vocabulary), extended, vocabulary.unknown)
        memory, state = self.model.start(ids[None], initial_attention=initial)
        token = vocabulary.start
        for step, word in enumerate(row["target"]):
            embedded = self.model.embed(np.array([token]))
            result, state = self.model.decoder.step(embedded, state, memory)
            np.testing.assert_allclose(result["attention"][0], row["attention"][step], atol=1e-3)
            p_gen = float(ops.sigmoid(result["pointer_logits"])[0])
            self.assertAlmostEqual(p_gen, row["p_gen"][step], places=3)
            token = vocabulary[word]
        self.assertEqual(row["target"][-1], "</s>")
        self.assertNotIn("attention", self.rows[2])

    def test_a_document_alone_has_the_summary_it_has_in_a_batch(self):
        alone = [self.generator.rows([example])[0]["summaries"] for example in self.examples]
        self.assertEqual(alone, [row["summaries"] for row in self.rows])
        self.assertGreater(len({summary[NAME] for summary in alone}), 1)

    def test_an_unknown_word_can_be_the_word_most_attended_to(self):
        generator = generate.Generator(self.model, self.text, replace_unknown=True)
        tokens, places = [0, 5, 0], [2, 0, 1]
        words = generator._words(["a", "b", "c"], [], tokens, places)
        self.assertEqual(words, ["c", self.text.vocabulary.words[5], "b"])
        words = self.generator._words(["a", "b", "c"], [], tokens, places)
        self.assertEqual(words[::2], ["[UNK]"] * 2)

    @parameterized.parameters(
        ({}, "ptgen"),
        ({"coverage": True}, "ptgen-covg"),
        ({"pointer": False}, "seq2seq"),
        ({"decoder": "rum"}, "decrum-4"),
        ({"encoder": "rum", "coverage": True}, "encrum-4-covg"),
        ({"encoder": "rum", "decoder": "rum", "pointer": False}, "allrum-4-seq2seq"),
    )
    def test_systems_have_names_of_their_own(self, options, name):
        self.assertEqual(generate.name_of(PointerGenerator(9, 3, 4, **options)), name)


if __name__ == "__main__":
    absltest.main()
