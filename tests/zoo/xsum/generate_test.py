"""Tests of the summaries of a split: the file that all evaluation reads."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized

from datasets import text_shards
from tests.zoo.xsum import tiny_run
from zoo import summaries
from zoo.xsum import generate, kept
from zoo.xsum.model import TopicConvS2S

ROOT = pathlib.Path(generate.__file__).parents[2]
NAME = "t-convs2s-enc_t_td-dec_td"
SEARCH = {"beam": 3, "max_length": 7}


class GenerateTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data, cls.run_folder = tiny_run.write(cls.folder)
        cls.model, cls.text = kept.load_model(cls.run_folder), kept.read(cls.run_folder)
        cls.generator = generate.Generator(cls.model, cls.text, topics=2, **SEARCH)
        cls.examples = list(text_shards.load(cls.data, "train"))

    def test_the_command_writes_what_evaluation_reads(self):
        output = self.folder / "made" / "train.jsonl"
        flags = {"workdir": self.run_folder, "data": self.data, "split": "train", "topics": 2}
        flags |= {"output": output, "documents": 3, "attention": 1, "batch_size": 2, **SEARCH}
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        result = subprocess.run(
            [sys.executable, "-m", "zoo.xsum.generate", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=200,
        )
        self.assertIn(f"{output}: 3 documents in", result.stdout, result.stderr)
        self.assertIn("summaries: 3 of 3 documents", result.stderr)
        self.assertEqual([path.name for path in output.parent.iterdir()], [output.name])
        found = summaries.read([output])
        expected = self.generator.rows(self.examples[:3])
        self.assertEqual(
            [example.summaries for example in found], [r["summaries"] for r in expected]
        )
        self.assertEqual([len(example.attention) for example in found], [1, 0, 0])

    def test_a_row_has_the_document_its_reference_and_its_topics(self):
        row, *_ = self.generator.rows(self.examples)
        example = self.examples[0]
        self.assertEqual((row["id"], row["document"]), (example["id"], example["document"]))
        self.assertEqual(row["reference"], "\n".join(example["summary"]))
        weights = self.text.topics.infer(text_shards.words(row["document"]))
        (first, words), (second, _) = row["topics"]
        self.assertAlmostEqual(first, weights.max(), delta=1e-4)
        self.assertEqual(words, self.text.topics.top_words(10)[weights.argmax()])
        self.assertGreater(first, second)
        self.assertNotIn("attention", row)

    def test_attention_is_that_of_the_decoder_while_it_writes(self):
        longest = max(self.examples, key=lambda row: len(text_shards.words(row["document"])))
        batch = [min(self.examples, key=lambda row: len(row["document"][0])), longest]
        rows = self.generator.rows(batch, with_attention=2)
        for row in rows:
            weights = np.array(row["attention"])
            self.assertEqual(weights.shape, (2, len(row["target"]), len(row["source"])))
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=0.01)
            self.assertEqual(" ".join(row["target"]), f"{row['summaries'][NAME]} </s>")
            read = text_shards.words(row["document"])[: tiny_run.DOCUMENT_LENGTH]
            self.assertEqual(row["source"], [*read, "</s>"])
        # Step by step, as the search does it.
        row, vocabulary = rows[1], self.text.vocabulary
        ids = np.append(vocabulary.encode(row["source"][:-1]), vocabulary.end)[None]
        topics = self.text.topics.infer(text_shards.words(row["document"]))[None]
        memory, state = self.model.start(ids, topics)
        token = vocabulary.start
        for step, word in enumerate(row["target"]):
            _, attention, state = self.model.decoder.step(np.array([token]), state, memory)
            mean = np.mean(row["attention"], axis=0)[step]
            np.testing.assert_allclose(attention[0], mean, atol=1e-3)
            token = vocabulary[word]

    def test_a_document_alone_has_the_summary_it_has_in_a_batch(self):
        together = [row["summaries"] for row in self.generator.rows(self.examples)]
        alone = [self.generator.rows([example])[0]["summaries"] for example in self.examples]
        self.assertEqual(alone, together)
        self.assertGreater(len({summary[NAME] for summary in alone}), 1)

    @parameterized.parameters(
        ({}, "convs2s"),
        ({"topics": 3}, NAME),
        ({"topics": 3, "decoder_topics": False}, "t-convs2s-enc_t_td"),
        ({"topics": 3, "encoder_topics": "word"}, "t-convs2s-enc_t-dec_td"),
        ({"topics": 3, "encoder_topics": "word", "decoder_topics": False}, "t-convs2s-enc_t"),
    )
    def test_systems_have_the_names_of_the_report(self, options, name):
        layers = {"encoder_layers": [(4, 3)], "decoder_layers": [(4, 3)]}
        self.assertEqual(generate.name_of(TopicConvS2S(9, units=4, **layers, **options)), name)


if __name__ == "__main__":
    absltest.main()
