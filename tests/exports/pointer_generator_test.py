"""Tests of the export of pointer-generators, on a loaded export."""

import contextlib
import html
import io
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from hypothesis import strategies as st

from datasets import tokenization
from datasets.vocabulary import SEE, Vocabulary
from exports import check, client, export, pointer_generator, text
from tests import shared_data
from tests.exports import demo_page
from tests.exports.server import Server
from tests.zoo.pointer_generator import tiny_run
from zoo.pointer_generator import generate, kept

ARTICLES = [document for document, _ in tiny_run.ARTICLES]
# No word of these is in the vocabulary: what a summary has of it was copied.
UNKNOWN = ["qwx zzv pfft?", "plugh xyzzy?", "one two four five six seven?"]


class CopiedIdsTest(absltest.TestCase):
    @hypothesis.settings(max_examples=20, deadline=None)
    @hypothesis.given(rows=st.lists(st.lists(st.sampled_from("abuvwx"), max_size=6), min_size=1))
    def test_ids_and_words_are_those_of_training(self, rows):
        vocabulary = Vocabulary(["a", "b"], SEE)
        words = tf.ragged.constant(rows, tf.string, ragged_rank=1)
        flat = [vocabulary[word] for row in rows for word in row]
        ids = words.with_flat_values(tf.constant(flat, tf.int32))
        found, copied = pointer_generator.copied_ids(words, ids, SEE.unknown, len(vocabulary))
        expected = [vocabulary.encode_copied(row) for row in rows]
        self.assertEqual(found.to_list(), [row.tolist() for row, _ in expected])
        names = [[word.decode() for word in row] for row in copied.to_list()]
        self.assertEqual(names, [row for _, row in expected])


class PointerGeneratorTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder, decoder="rum", coverage=True)
        cls.text = kept.read(run)
        cls.model = kept.load_model(run)
        # Words are more often copied than not.
        cls.model.decoder.pointer_gate.bias.assign([-2.0])
        cls.directory = folder / "1"
        export.write(cls.model, pointer_generator, cls.directory, "pointer_generator", run)
        cls.servable = cls.enterClassContext(check.Servable(cls.directory))

    def ask(self, articles, signature="serving_default"):
        raw = [text.encode() if isinstance(text, str) else text for text in articles]
        return self.servable.predict({"article": np.array(raw, object)}, signature)

    def expected(self, articles):
        """Summaries as words, by the Python functions that prepare training data."""
        generator = generate.Generator(self.model, self.text, "ours", replace_unknown=True)
        rows = [
            {"id": "", "document": tokenization.sentences(article), "summary": []}
            for article in articles
        ]
        return [" ".join(row["summaries"]["ours"].split()) for row in generator.rows(rows)]

    def test_the_export_passes_all_checks(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertTrue(check.check(self.directory), output.getvalue())
        self.assertRegex(output.getvalue(), r"ops, all on the list")

    def test_summaries_are_those_of_prepared_documents(self):
        articles = [*ARTICLES, *UNKNOWN]
        expected = self.expected(articles)
        found = [summary.decode() for summary in self.ask(articles)["summary"]]
        self.assertEqual(found, [line.decode() for line in text.detokenize(expected).numpy()])
        self.assertGreater(len(set(found)), 4)

    def test_words_outside_the_vocabulary_survive_to_the_summary(self):
        words = set(self.text.vocabulary.words)
        for article, summary in zip(UNKNOWN, self.ask(UNKNOWN)["summary"], strict=True):
            copied = set(tokenization.tokens(summary.decode())) & set(tokenization.tokens(article))
            self.assertNotEmpty(copied - words, summary)
        outputs = self.ask(ARTICLES, "attention")
        for article, summary in zip(ARTICLES, outputs["summary_words"], strict=True):
            read = tokenization.tokens(article)[: tiny_run.DOCUMENT_LENGTH]
            written = {word.decode() for word in summary} - {"", "</s>"}
            self.assertLessEqual(written, words | set(read))
            self.assertNotIn("[UNK]", written)

    def test_the_score_is_the_mean_log_probability_of_the_words_and_the_end(self):
        outputs, vocabulary = self.ask(UNKNOWN, "attention"), self.text.vocabulary
        for article, score, words in zip(
            UNKNOWN, outputs["score"], outputs["summary_words"], strict=True
        ):
            extended, copied = vocabulary.encode_copied(tokenization.tokens(article))
            written = [word.decode() for word in words if word][:-1]
            ids = vocabulary.encode_target(written, copied)
            inputs = {
                "document": np.where(extended < len(vocabulary), extended, 0)[None],
                "document_extended": extended[None],
                "summary": np.insert(ids, 0, vocabulary.start)[None],
            }
            target = np.append(ids, vocabulary.end)[None]
            results = self.model(inputs)
            self.model.token_loss.reset_state()
            self.model.compute_loss(inputs, target, results)
            self.assertAlmostEqual(score, -float(self.model.token_loss.result()), delta=1e-4)

    def test_nbest_has_the_best_first(self):
        best, several = self.ask(ARTICLES), self.ask(ARTICLES, "nbest")
        self.assertEqual(several["summaries"].shape, (len(ARTICLES), pointer_generator.BEAM))
        self.assertEqual(several["summaries"][:, 0].tolist(), best["summary"].tolist())
        np.testing.assert_allclose(several["scores"][:, 0], best["score"], atol=1e-5)
        self.assertTrue(np.all(np.diff(several["scores"]) <= 0))

    def test_attention_and_p_gen_are_of_the_words_that_are_given(self):
        outputs = self.ask([ARTICLES[1], ""], "attention")
        read = tokenization.tokens(ARTICLES[1])[: tiny_run.DOCUMENT_LENGTH]
        (weights, nothing), (source, _) = outputs["attention"], outputs["source_words"]
        self.assertEqual([word.decode() for word in source if word], read)
        words = [word for word in outputs["summary_words"][0] if word]
        self.assertEqual(words[-1], b"</s>")
        np.testing.assert_allclose(weights[: len(words)].sum(axis=-1), 1, atol=1e-5)
        self.assertFalse(np.any(nothing))
        np.testing.assert_allclose(
            outputs["coverage"][0], np.cumsum(weights, axis=0) - weights, atol=1e-5
        )
        p_gen = outputs["p_gen"][0]
        self.assertTrue(np.all((p_gen[: len(words)] > 0) & (p_gen[: len(words)] < 1)))
        self.assertEqual(set(outputs["summary_words"][1]), {b""})

    @parameterized.parameters("", " \n\t", "\0", "\u200b\u3000")
    def test_an_article_without_words_has_no_summary(self, article):
        for signature in ("serving_default", "nbest", "attention"):
            for batch in ([article, ARTICLES[1]], [article]):
                outputs = self.ask(batch, signature)
                answers = outputs.get("summary", outputs.get("summaries"))
                scores = outputs.get("score", outputs.get("scores"))
                self.assertEqual(set(np.ravel(answers[0])), {b""})
                self.assertFalse(np.any(scores[0]))
                self.assertTrue(np.all(scores[1:]))

    @parameterized.named_parameters(
        ("no_utf8", b"\xff\xfe\x80"),
        ("a_megabyte_of_one_word", "a" * 1_000_000),
        ("a_megabyte_of_words", "the rain fell. " * 70_000),
        ("not_english", "Шторм обрушился на город. 嵐が来た。 عاصفة"),
        ("all_unknown", "qwx zzv pfft"),
        ("special_symbols", "[STOP] [PAD] [UNK] [START]"),
    )
    def test_any_article_is_answered_and_leaves_the_batch_alone(self, article):
        alone = self.ask([ARTICLES[0]])
        outputs = self.ask([article, ARTICLES[0], article])
        self.assertEqual(outputs["summary"][1], alone["summary"][0])
        self.assertAlmostEqual(outputs["score"][1], alone["score"][0], delta=1e-5)
        self.assertEqual(outputs["summary"][0], outputs["summary"][2])
        self.assertLess(outputs["score"][0], 0)
        outputs["summary"][0].decode()

    def test_a_batch_of_none_has_no_answers(self):
        self.assertEqual(self.ask([])["summary"].shape, (0,))
        self.assertEqual(self.ask([], "nbest")["scores"].shape, (0, pointer_generator.BEAM))
        self.assertEqual(self.ask([], "attention")["summary_words"].shape[0], 0)

    def test_real_articles_are_summarized_through_the_server(self):
        source = shared_data.folder("cnn_dailymail") / "see_format/test80.source"
        articles = source.read_text().splitlines()
        with Server({"decrum": self.directory}) as server:
            answers = [
                client.ask_grpc(
                    "decrum", {"article": articles[i : i + 20]}, server.grpc_address, timeout=60
                )
                for i in range(0, len(articles), 20)
            ]
        summaries = [summary for answer in answers for summary in answer["summary"]]
        self.assertLen(summaries, 80)
        self.assertTrue(all(summaries))
        # The whole batch is what the articles are one by one.
        self.assertEqual(summaries[:1], [self.ask(articles[:1])["summary"][0].decode()])

    def test_the_demo_page_shows_what_the_server_answers(self):
        with Server({"decrum": self.directory}) as server:
            page = demo_page.shown(f"http://{server.rest_address}", UNKNOWN[2], "decrum")
        self.assertEqual(page["error"], "")
        summary = self.ask(UNKNOWN[2:], "attention")["summary"][0].decode()
        self.assertEqual(html.unescape(page["summary"]), summary)
        self.assertRegex(page["facts"], r"^\d+ ms, score -\d")
        self.assertIn("generated with probability", page["words"])
        self.assertIn(">seven</span>", page["source"])


class SequenceToSequenceTest(absltest.TestCase):
    def test_half_a_vocabulary_is_refused(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder)
        model = kept.load_model(run)  # While it is whole: to load half of it is refused as well.
        words = (run / "vocabulary.txt").read_text().splitlines(keepends=True)
        (run / "vocabulary.txt").write_text("".join(words[:9]))
        with self.assertRaisesRegex(ValueError, f"has 9 words, but the model has {len(words)}"):
            pointer_generator.signatures(model, run)

    def test_a_model_that_cannot_copy_has_p_gen_1_and_writes_no_unknown_words(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        _, run = tiny_run.write(folder, pointer=False)
        model = kept.load_model(run)
        bias = np.zeros(len(kept.read(run).vocabulary), np.float32)
        bias[SEE.unknown] = 9
        model.readout.bias.assign(bias)
        signatures = pointer_generator.signatures(model, run)
        outputs = signatures["attention"].answer(tf.constant(UNKNOWN[:1]))
        self.assertEqual(set(outputs["p_gen"].numpy().ravel()), {1.0})
        self.assertContainsSubset(
            {word for word in outputs["summary_words"].numpy()[0] if word},
            {b"qwx", b"zzv", b"pfft", b"?", b"</s>"},
        )


if __name__ == "__main__":
    absltest.main()
