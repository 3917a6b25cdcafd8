"""Tests of reading bAbI."""

import gzip
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import numpy as np
from absl.testing import absltest, parameterized

from datasets import babi
from datasets.babi_files import find, parse, read, tokenize

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("RUM_KERAS_DATA", ROOT.parent / "shared" / "data")) / "babi"
GOLDEN = ROOT / "tests" / "golden"
ANSWERS = [6, 6, 6, 6, 7, 2, 4, 13, 2, 3, 6, 6, 6, 6, 4, 4, 2, 2, 12, 7]

STORY = """1 Ann went to the hall.
2 Bo took the lamp.
3 Where is Ann? \thall\t1
4 Bo went to the shed.
5 Where is the lamp?\tshed\t2 4
1 Bo is hungry.
2 What does Bo carry?\tcup,lamp\t1
"""
TEST = "1 Cy went to the hall.\n2 Where is Cy?\thall\t1\n"


def many(number):
    """Returns a file of `number` stories of one question."""
    return "".join(f"1 Ann went to room {i}.\n2 Where is Ann?\troom{i}\t1\n" for i in range(number))


class ParseTest(parameterized.TestCase):
    def test_a_question_has_what_was_told_before_it_in_its_own_story(self):
        first, second, third = parse(STORY, "file")
        self.assertEqual([len(question.story) for question in (first, second, third)], [2, 3, 1])
        self.assertEqual(second.story[2], ("bo", "went", "to", "the", "shed", "."))
        self.assertEqual(second.question, ("where", "is", "the", "lamp", "?"))
        self.assertEqual(third.story, (("bo", "is", "hungry", "."),))

    def test_facts_are_places_in_the_story_however_many_questions_stand_between(self):
        first, second, _ = parse(STORY, "file")
        self.assertEqual(first.facts, (0,))
        self.assertEqual(second.facts, (1, 2))

    def test_an_answer_with_commas_is_one_answer(self):
        self.assertEqual(parse(STORY, "file")[2].answer, "cup,lamp")

    def test_punctuation_is_a_word_and_case_does_not_matter(self):
        self.assertEqual(
            tokenize(" Is Bo's cup\there? No, "), tuple("is bo's cup here ? no ,".split())
        )

    def test_blank_lines_and_carriage_returns_are_passed_over(self):
        text = STORY.replace("\n", "\r\n\r\n")
        self.assertEqual(parse(text, "file"), parse(STORY, "file"))

    @parameterized.parameters(
        ("Ann went.\n", "f:1: expected a line number, a space and text, found 'Ann went.'"),
        ("1\n", "f:1: expected a line number"),
        ("2 Ann went.\n", "f:1: expected line 1 of its story.* found 2: are lines missing"),
        ("1 Ann went.\n3 Bo went.\n", "f:2: expected line 2 of its story, or 1"),
        ("1 A.\n2 Where?\t \t1\n", r"f:2: expected question<TAB>answer<TAB>line numbers, found 3"),
        ("1 A.\n2 Where?\thall\t1\t1\n", "f:2: .*found 4 fields"),
        ("1 A.\n2 Where?\thall\t2\n", "f:2: expected numbers of earlier sentences.*found '2'"),
        ("1 A.\n2 Where?\thall\tx\n", "f:2: expected numbers of earlier sentences.*found 'x'"),
        ("1 Ann went.\n", "f: expected questions with an answer after a tab, found none"),
        ("", "f: expected questions"),
    )  # fmt: skip
    def test_a_malformed_line_is_named_with_what_is_wrong(self, text, message):
        with self.assertRaisesRegex(ValueError, message):
            parse(text, "f")


class FilesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, **files):
        """Writes files of the language `en`, named by task and split: qa1_train="..."."""
        for name, text in files.items():
            task, split = name.split("_")
            path = self.folder / "tasks_1-20_v1-2" / "en" / f"{task}_some-name_{split}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return path.parent

    def archive(self, kind, names):
        """Packs files of these names, each with the text STORY."""
        path = self.folder / f"babi{kind}"
        if kind == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                for name in names:
                    archive.writestr(name, STORY)
        else:
            with tarfile.open(path, "w:gz" if kind.endswith("gz") else "w") as archive:
                for name in names:
                    member = tarfile.TarInfo(name)
                    member.size = len(STORY)
                    archive.addfile(member, io.BytesIO(STORY.encode()))
        return path

    @parameterized.parameters("", "tasks_1-20_v1-2", "tasks_1-20_v1-2/en")
    def test_the_folder_is_found_from_above_and_from_within(self, where):
        self.write(qa1_train=many(20), qa1_test=TEST, qa10_train=STORY, qa10_test=STORY)
        train, validation, test = babi.load(self.folder / where, 1, "en")
        self.assertEqual((len(train), len(validation), len(test)), (18, 2, 1))
        self.assertEqual(len(babi.load(self.folder / where, 10, "en").test), 3)

    def test_a_single_file_is_read_with_the_test_file_beside_it(self):
        folder = self.write(qa1_train=many(20), qa1_test=TEST, qa10_train=STORY)
        (folder / "qa1_some-name_train.txt").rename(folder / "mine_qa1_train.txt")
        with self.assertRaisesRegex(FileNotFoundError, "en/qa10_.*_test.txt"):
            babi.load(folder / "qa10_some-name_train.txt", 10, "en")
        self.assertLen(read(folder / "mine_qa1_train.txt"), 20)
        (folder / "mine_qa1_train.txt").rename(folder / "qa1_some-name_train.txt")
        self.assertLen(babi.load(folder / "qa1_some-name_train.txt", 1, "any").test, 1)

    @parameterized.parameters(".tar", ".tar.gz", ".tgz", ".zip")
    def test_an_archive_is_read_as_it_is(self, kind):
        names = [f"tasks_1-20_v1-2/en/qa1_x_{split}.txt" for split in ("train", "test")]
        path = self.archive(
            kind, [*names, "tasks_1-20_v1-2/README", "__MACOSX/en/._qa1_x_test.txt"]
        )
        self.assertEqual(babi.load(path, 1, "en").test, parse(STORY, "f"))
        self.assertIsNone(find(path, 1, "hn", "train"))

    @parameterized.product(
        kind=(".tar.gz", ".zip"),
        name=("../en/qa1_x_train.txt", "/en/qa1_x_train.txt", "a/../../b", "..\\b"),
    )
    def test_an_archive_that_leaves_its_folder_is_refused(self, kind, name):
        path = self.archive(kind, ["en/qa1_x_train.txt", name])
        with self.assertRaisesRegex(ValueError, "babi.*: the member .* leaves the folder"):
            babi.load(path, 1, "en")

    @parameterized.parameters(".tar", ".tar.gz", ".zip")
    def test_a_damaged_archive_is_told_wherever_it_is_damaged(self, kind):
        whole = self.archive(kind, ["en/qa1_x_train.txt"]).read_bytes()
        cuts = [whole[:place] for place in range(0, len(whole), len(whole) // 40)]
        flips = [whole[: len(cut)] + b"\x99" + whole[len(cut) + 1 :] for cut in cuts]
        # A .tar has no checksums of its files, a .zip none of their names.
        for number, damaged in enumerate(cuts + flips if kind == ".tar.gz" else cuts):
            path = self.folder / f"{number}{kind}"  # Archives are read once.
            path.write_bytes(damaged)
            try:
                self.assertEqual(find(path, 1, "en", "train"), parse(STORY, "f"))
            except ValueError as error:
                self.assertRegex(str(error), f"{path}: not a whole archive .*or fetch it again.")

    def test_an_encrypted_archive_is_told(self):
        path = self.archive(".zip", ["en/qa1_x_train.txt"])
        content = bytearray(path.read_bytes())
        content[6] |= 1  # Of the flags of the file, and of the same in the list of files.
        content[content.index(b"PK\1\2") + 8] |= 1
        path.write_bytes(content)
        with self.assertRaisesRegex(ValueError, "babi.zip: not a whole archive .*encrypted"):
            babi.load(path, 1, "en")

    @parameterized.parameters(".tar", ".tar.gz", ".zip")
    def test_a_file_that_is_no_archive_is_told(self, kind):
        path = self.folder / f"babi{kind}"
        path.write_text(STORY)
        with self.assertRaisesRegex(ValueError, f"babi{kind}: not a whole archive .*: name the"):
            babi.load(path, 1, "en")

    def test_the_command_ends_with_a_sentence_where_it_cannot_read(self):
        path = self.folder / "babi.zip"
        path.write_text(STORY)
        command = [sys.executable, "-m", "datasets.babi", f"--data={path}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, f"^datasets.babi: {path}: not a whole[^\n]*\n$")

    def test_compressed_files_are_read(self):
        path = self.folder / "qa1_x_train.txt.gz"
        path.write_bytes(gzip.compress(STORY.encode()))
        self.assertEqual(read(path), parse(STORY, "f"))
        path.write_bytes(path.read_bytes()[:-9])
        with self.assertRaisesRegex(ValueError, "txt.gz: not a whole gzip file"):
            read(path)

    def test_bytes_that_are_no_text_are_named_with_their_line(self):
        path = self.folder / "qa1_x_train.txt"
        path.write_bytes(STORY.encode() + b"1 Ann \xff\n")
        with self.assertRaisesRegex(
            ValueError, "qa1_x_train.txt:8: expected UTF-8, found byte 0xff"
        ):
            read(path)

    def test_a_validation_file_is_the_validation_split(self):
        folder = self.write(qa1_train=many(20), qa1_valid=STORY, qa1_test=TEST)
        train, validation, _ = babi.load(folder, 1, "en")
        self.assertEqual((len(train), validation), (20, parse(STORY, "f")))

    def test_joined_languages_have_each_question_once_and_the_first_ones_test(self):
        self.write(qa1_train=many(20), qa1_test=TEST)
        other = self.folder / "tasks_1-20_v1-2" / "en-valid-10k"
        other.mkdir()
        (other / "qa1_valid.txt").write_text(many(30))
        train, validation, test = babi.load(self.folder, 1, "en+en-valid-10k")
        self.assertEqual((len(train), len(validation), len(test)), (27, 3, 1))
        self.assertLen(set(train + validation), 30)

    def test_a_missing_file_is_named(self):
        self.write(qa1_train=STORY)
        with self.assertRaisesRegex(FileNotFoundError, r"no en/qa1_\*_test.txt"):
            babi.load(self.folder, 1, "en")
        for name in ("nowhere", "nowhere.zip"):
            message = f"There is no .*{name}: name the folder"
            with self.assertRaisesRegex(FileNotFoundError, message):
                babi.load(self.folder / name, 1)

    def test_the_summary_has_a_line_a_task(self):
        self.write(qa1_train=many(20), qa1_test=TEST)
        first, second = babi.rows(self.folder, "en", (1, 2))[2:]
        self.assertEqual(first, "| 1 | 18 | 2 | 1 | 1 | 28 | 20 | 100.0 |")
        self.assertIn("There is no en/qa2", second)


class ArraysTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.questions = parse(STORY, "f")
        self.known = babi.vocabulary(self.questions)

    def words(self, ids):
        """Writes ids as words, "" for padding."""
        return [("", *self.known.words)[i] for i in np.ravel(ids)]

    @parameterized.parameters("word", "sentence")
    def test_they_hold_what_the_released_code_makes_of_the_same_text(self, level):
        golden = np.load(GOLDEN / f"data_babi_{level}.npz")
        self.assertEqual(str(golden["text"]), STORY.replace("? \t", "?\t"))
        vocabulary = ["", *(word.lower() for word in golden["vocab"])]
        story, question, answer = babi.arrays(self.questions, self.known, level)
        self.assertEqual(
            [self.known.answers[i] for i in answer], [vocabulary[i] for i in golden["y"]]
        )
        if level == "word":
            self.assertEqual(self.words(story), [vocabulary[i] for i in golden["x"].ravel()])
            self.assertEqual(self.words(question), [vocabulary[i] for i in golden["q"].ravel()])
            return
        for ours, theirs in ((story, golden["x"]), (question[:, None], golden["q"])):
            # The released code counts the words of a sentence; an empty one counts padding.
            rows = ours.reshape(-1, ours.shape[-1])
            for row, counts in zip(rows, theirs.reshape(-1, 19), strict=True):
                expected = sum(([vocabulary[i]] * int(n) for i, n in enumerate(counts) if i), [])
                self.assertCountEqual([word for word in self.words(row) if word], expected)

    def test_the_newest_sentences_are_kept_and_stand_last(self):
        known = babi.vocabulary(self.questions, sentences=2)
        story, _, _ = babi.arrays(self.questions, known)
        self.assertEqual(story.shape, (3, 2, 6))
        whole, _, _ = babi.arrays(self.questions, self.known)
        np.testing.assert_array_equal(story[1], whole[1, 1:])
        np.testing.assert_array_equal(story[2, 0], 0)

    def test_words_and_answers_that_training_did_not_have_are_told_apart(self):
        (new,) = parse("1 Cy went to the hall.\n2 Where is the moon?\tsky\t1\n", "f")
        story, question, answer = babi.arrays([new], self.known)
        self.assertEqual(self.words(story[0, -1]), ["", "went", "to", "the", "hall", "."])
        self.assertEqual(self.words(question[0]), ["where", "is", "the", "", "?"])
        self.assertEqual(answer.tolist(), [-1])

    @parameterized.parameters("word", "sentence")
    def test_what_is_longer_than_in_training_is_cut(self, level):
        long = "".join(f"{i} Ann went to the very long dark hall.\n" for i in range(1, 9))
        (question,) = parse(long + "9 Where is the lamp of Ann now?\thall\t1\n", "f")
        story, asked, _ = babi.arrays([question], self.known, level)
        self.assertEqual(story.shape[1:], (17,) if level == "word" else (3, 6))
        self.assertEqual(asked.shape, (1, 5))
        self.assertTrue(np.any(story))

    def test_a_question_without_a_story_is_all_padding(self):
        questions = parse("1 Where is Ann?\thall\n", "f")
        self.assertEqual(babi.arrays(questions, babi.vocabulary(questions))[0].shape, (1, 1, 1))


class RealDataTest(parameterized.TestCase):
    @unittest.skipUnless(DATA.is_dir(), "The bAbI files are not there (RUM_KERAS_DATA).")
    def test_every_task_splits_as_in_the_paper_and_tests_hold_no_new_word(self):
        for task in (1, 4, 15, 19):
            with self.subTest(task):
                train, validation, test = babi.load(DATA, task)
                self.assertEqual((len(train), len(validation), len(test)), (9000, 1000, 1000))
                known = babi.vocabulary(train + validation)
                story, question, answer = babi.arrays(test, known)
                self.assertTrue(np.all(answer >= 0))
                self.assertEqual(
                    np.count_nonzero(story) + np.count_nonzero(question),
                    sum(len(word) for q in test for word in (*q.story, q.question)),
                )

    @unittest.skipUnless(DATA.is_dir(), "The bAbI files are not there (RUM_KERAS_DATA).")
    def test_all_tasks_of_a_thousand_questions_are_well_formed(self):
        # The number of answers of each task, which a model's width depends on.
        answers = [len(babi.vocabulary(babi.load(DATA, t, "en").train).answers) for t in babi.TASKS]
        self.assertEqual(answers, ANSWERS)


if __name__ == "__main__":
    absltest.main()
