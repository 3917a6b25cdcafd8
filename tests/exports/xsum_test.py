"""Tests of the export of XSum's summarizer, on a loaded export."""

import contextlib
import functools
import io
import tempfile
import types
from pathlib import Path

import numpy as np
from absl.testing import absltest, parameterized

from datasets import tokenization
from exports import check, export, text, xsum
from tests.zoo.xsum import tiny_run
from zoo.xsum import generate, kept

BEAM, LONGEST = 3, 7
TASK = types.SimpleNamespace(
    signatures=functools.partial(xsum.signatures, beam=BEAM, longest=LONGEST)
)
DOCUMENTS = [document for document, _ in tiny_run.ARTICLES]
# No word of these, ? included, is in the vocabulary: what a summary has of it was not copied.
UNKNOWN = ["qwx zzv pfft?", "plugh xyzzy?", "one two four five six seven?"]


class XSumTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder)
        cls.text = kept.read(run)
        cls.model = kept.load_model(run)
        # Unknown words and the end are likely, so that both occur.
        bias = np.zeros(len(cls.text.vocabulary), np.float32)
        bias[[cls.text.vocabulary.unknown, cls.text.vocabulary.end]] = 3
        cls.model.decoder.logits_projection.bias.assign(bias)
        cls.directory = folder / "1"
        export.write(cls.model, TASK, cls.directory, "xsum", run)
        cls.servable = cls.enterClassContext(check.Servable(cls.directory))

    def ask(self, documents, signature="serving_default"):
        raw = [text.encode() if isinstance(text, str) else text for text in documents]
        return self.servable.predict({"document": np.array(raw, object)}, signature)

    def expected(self, documents):
        """Summaries as words, by the Python functions that prepare training data."""
        generator = generate.Generator(self.model, self.text, "ours", beam=BEAM, max_length=LONGEST)
        rows = [
            {"id": "", "document": tokenization.sentences(document), "summary": []}
            for document in documents
        ]
        return [row["summaries"]["ours"] for row in generator.rows(rows)]

    def test_the_export_passes_all_checks(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertTrue(check.check(self.directory), output.getvalue())
        self.assertRegex(output.getvalue(), r"takes serving_default \d+ ms, nbest \d+ ms")

    def test_summaries_are_those_of_prepared_documents(self):
        expected = self.expected(DOCUMENTS)
        found = [summary.decode() for summary in self.ask(DOCUMENTS)["summary"]]
        self.assertEqual(found, [line.decode() for line in text.detokenize(expected).numpy()])
        self.assertGreater(len(set(found)), 3)

    def test_unknown_words_are_words_of_the_part_that_is_read(self):
        words = set(self.text.vocabulary.words)
        copied = 0
        documents = [*DOCUMENTS, *UNKNOWN, "oak elm ash fir yew bay " * 3]
        for document, summary in zip(
            documents, self.ask(documents, "attention")["summary_words"], strict=True
        ):
            read = tokenization.tokens(document)[: tiny_run.DOCUMENT_LENGTH]
            for word in (word.decode() for word in summary if word):
                self.assertIn(word, words | set(read))
                self.assertNotEqual(word, "<unk>")
                copied += word not in words
        self.assertGreater(copied, 1)

    def test_words_beyond_the_limit_are_not_read_but_say_what_the_topics_are(self):
        start = "rain fell on the town " * 3
        plain, more, topical = self.ask([start, start + "xyzzy", start + "march " * 50])["score"]
        self.assertAlmostEqual(plain, more, delta=1e-5)
        self.assertGreater(abs(plain - topical), 1e-3)

    def test_the_score_is_the_mean_log_probability_of_the_words_and_the_end(self):
        outputs = self.ask(UNKNOWN, "attention")
        vocabulary = self.text.vocabulary
        for document, score, words in zip(
            UNKNOWN, outputs["score"], outputs["summary_words"], strict=True
        ):
            read = tokenization.tokens(document)
            ids = vocabulary.encode([word.decode() for word in words if word][:-1])
            inputs = {
                "document": np.append(vocabulary.encode(read), vocabulary.end)[None],
                "topics": self.text.topics.infer(read)[None],
                "summary": np.insert(ids, 0, vocabulary.start)[None],
            }
            target = np.append(ids, vocabulary.end)[None]
            loss = self.model.compute_loss(y=target, y_pred=self.model(inputs))
            self.assertAlmostEqual(score, -float(loss), delta=1e-4)

    def test_nbest_has_the_best_first(self):
        best, several = self.ask(DOCUMENTS), self.ask(DOCUMENTS, "nbest")
        self.assertEqual(several["summaries"].shape, (len(DOCUMENTS), BEAM))
        self.assertEqual(several["summaries"][:, 0].tolist(), best["summary"].tolist())
        np.testing.assert_allclose(several["scores"][:, 0], best["score"], atol=1e-5)
        self.assertTrue(np.all(np.diff(several["scores"]) <= 0))

    def test_attention_is_over_the_words_that_are_given(self):
        outputs = self.ask([DOCUMENTS[1], ""], "attention")
        (weights, nothing), (source, _) = outputs["attention"], outputs["source_words"]
        read = tokenization.tokens(DOCUMENTS[1])[: tiny_run.DOCUMENT_LENGTH]
        self.assertEqual([word.decode() for word in source], [*read, "</s>"])
        self.assertEqual(weights.shape, (2, len(outputs["summary_words"][0]), len(source)))
        self.assertEqual(outputs["summary_words"][0][-1], b"</s>")
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        self.assertEqual(set(outputs["summary_words"][1]), {b""})
        self.assertTrue(np.all(np.isfinite(nothing)))

    @parameterized.parameters("", " \n\t", "\0", "\u200b\u3000")
    def test_a_document_without_words_has_no_summary(self, document):
        for signature in ("serving_default", "nbest", "attention"):
            outputs = self.ask([document, DOCUMENTS[1]], signature)
            summaries = outputs.get("summary", outputs.get("summaries"))
            scores = outputs.get("score", outputs.get("scores"))
            self.assertEqual(set(np.ravel(summaries[0])), {b""})
            self.assertFalse(np.any(scores[0]))
            self.assertTrue(np.all(scores[1]))

    @parameterized.named_parameters(
        ("no_utf8", b"\xff\xfe\x80"),
        ("a_megabyte_of_one_word", "a" * 1_000_000),
        ("a_megabyte_of_words", "the rain fell. " * 70_000),
        ("not_english", "Шторм обрушился на город. 嵐が来た。 عاصفة"),
        ("all_unknown", "qwx zzv pfft"),
        ("special_symbols", "</s> <pad> <unk> <Lua heritage>"),
    )
    def test_any_document_is_answered_and_leaves_the_batch_alone(self, document):
        alone = self.ask([DOCUMENTS[0]])
        outputs = self.ask([document, DOCUMENTS[0], document])
        self.assertEqual(outputs["summary"][1], alone["summary"][0])
        self.assertAlmostEqual(outputs["score"][1], alone["score"][0], delta=1e-5)
        self.assertEqual(outputs["summary"][0], outputs["summary"][2])
        self.assertLess(outputs["score"][0], 0)
        outputs["summary"][0].decode()

    def test_a_batch_of_none_has_no_answers(self):
        self.assertEqual(self.ask([])["summary"].shape, (0,))
        self.assertEqual(self.ask([], "nbest")["scores"].shape, (0, BEAM))
        self.assertEqual(self.ask([], "attention")["summary_words"].shape[0], 0)


class XSumRunTest(absltest.TestCase):
    def test_a_model_without_topics_needs_none(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder, with_topics=False)
        signature = TASK.signatures(kept.load_model(run), run)["serving_default"]
        outputs = signature.answer(signature.tensor("document", DOCUMENTS[:2]))
        self.assertTrue(all(outputs["summary"].numpy()))
        self.assertFalse((run / "topics").exists())

    def test_half_a_vocabulary_is_refused(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder)
        model = kept.load_model(run)  # While it is whole: to load half of it is refused as well.
        words = (run / "vocabulary.txt").read_text().splitlines(keepends=True)
        (run / "vocabulary.txt").write_text("".join(words[:9]))
        with self.assertRaisesRegex(ValueError, f"has 9 words, but the model has {len(words)}"):
            xsum.signatures(model, run)

    def test_a_run_that_has_kept_no_vocabulary_is_refused(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        with self.assertRaisesRegex(FileNotFoundError, "no .*corpus.json.*zoo.xsum.train"):
            xsum.signatures(None, folder)


if __name__ == "__main__":
    absltest.main()
