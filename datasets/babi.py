"""bAbI: short stories, a question about each, an answer of one word or of a list.

    python -m datasets.babi --data=tasks_1-20_v1-2 --language=en-10k

`data` is the official folder `tasks_1-20_v1-2`, one that holds it or a language of it, the
archive it comes in (.tar, .tar.gz, .zip: read, never unpacked), or a single `qa*_train.txt` with
its test file beside it. Files may be .gz. A file's line is `ID text`, or
`ID question<TAB>answer<TAB>IDs of the sentences that decide`; an ID of 1 begins a new story.

Text is lower-cased, and `. , ; : ? !` are words of their own. Id 0 is padding; a word that
training did not have is 0 too. An answer that is a list, such as `football,milk`, is one class.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import app, flags

from datasets.babi_files import Question, find

TASKS = range(1, 21)


class Task(NamedTuple):
    """The questions of a task: lists of `Question`."""

    train: list[Question]
    validation: list[Question]
    test: list[Question]


class Vocabulary(NamedTuple):
    """What turns questions into arrays. Made by `vocabulary`.

    Args:
        words: the words in alphabetical order; the first has id 1.
        answers: the classes in alphabetical order.
        sentences: sentences of the longest story.
        sentence_words: words of the longest sentence.
        story_words: words of the longest story.
        question_words: words of the longest question.
    """

    words: tuple[str, ...]
    answers: tuple[str, ...]
    sentences: int
    sentence_words: int
    story_words: int
    question_words: int


def load(data: str | Path, task: int, language: str = "en-10k") -> Task:
    """Loads a task, with the last tenth of the training questions for validation.

    Args:
        data: the folder, archive or file.
        task: 1 to 20.
        language: the folder's name. `a+b`: the distinct training questions of both; the test
            questions are those of `a`. A validation file (en-valid, en-valid-10k) is used as such,
            but in `a+b` belongs to the training questions.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a line is malformed.

    Example:

    >>> train, validation, test = load("tasks_1-20_v1-2", 1, "en-10k")  # doctest: +SKIP
    """
    languages = language.split("+")
    found = {
        (name, split): find(data, task, name, split)
        for name in languages
        for split in ("train", "valid", "test")
    }
    train, test = found[languages[0], "train"], found[languages[0], "test"]
    for split, questions in (("train", train), ("test", test)):
        if questions is None:
            raise FileNotFoundError(
                f"There is no {languages[0]}/qa{task}_*_{split}.txt (or .txt.gz) in {data}."
            )
    validation = found[languages[0], "valid"]
    if len(languages) > 1:
        every = [found[name, split] or [] for name in languages for split in ("train", "valid")]
        train, validation = list(dict.fromkeys(sum(every, []))), None
    if validation is None:
        tenth = max(1, len(train) // 10)
        train, validation = train[:-tenth], train[-tenth:]
    return Task(train, validation, test)


def vocabulary(questions: Sequence[Question], sentences: int | None = None) -> Vocabulary:
    """Returns the words, answers and sizes of `questions`, those of training and validation.

    Args:
        questions: the questions.
        sentences: the most sentences to keep of a story, the newest ones. None: all.
    """
    stories = [
        question.story[-sentences:] if sentences else question.story for question in questions
    ]
    words = {word for story in stories for sentence in story for word in sentence}
    words.update(word for question in questions for word in question.question)
    return Vocabulary(
        tuple(sorted(words)),
        tuple(sorted({question.answer for question in questions})),
        max([1, *map(len, stories)]),
        max([1, *(len(sentence) for story in stories for sentence in story)]),
        max([1, *(sum(map(len, story)) for story in stories)]),
        max(len(question.question) for question in questions),
    )


def arrays(
    questions: Sequence[Question], vocabulary: Vocabulary, level: str = "sentence"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the arrays of `questions`.

    Args:
        questions: the questions.
        vocabulary: of `vocabulary`.
        level: "sentence" or "word".

    Returns:
        story: int32 ids, (questions, sentences, sentence_words), or (questions, story_words) at
            word level; the newest sentence is last, padding is before the story and after the
            words of a sentence. What does not fit is left out: the oldest of a story.
        question: int32 ids, (questions, question_words), padding last.
        answer: int32 classes, (questions,); -1 if training did not have the answer.
    """
    ids = {word: number for number, word in enumerate(vocabulary.words, 1)}
    classes = {answer: number for number, answer in enumerate(vocabulary.answers)}
    sentences, width = vocabulary.sentences, vocabulary.sentence_words
    if level == "word":
        story = np.zeros((len(questions), vocabulary.story_words), np.int32)
    else:
        story = np.zeros((len(questions), sentences, width), np.int32)
    asked = np.zeros((len(questions), vocabulary.question_words), np.int32)
    for row, question in enumerate(questions):
        kept = [[ids.get(word, 0) for word in sentence] for sentence in question.story[-sentences:]]
        if level == "word":
            flat = sum(kept, [])[-vocabulary.story_words :]
            story[row, len(story[row]) - len(flat) :] = flat
        else:
            for place, sentence in enumerate(kept, sentences - len(kept)):
                story[row, place, : len(sentence)] = sentence[:width]
        words = [ids.get(word, 0) for word in question.question][: vocabulary.question_words]
        asked[row, : len(words)] = words
    answers = [classes.get(question.answer, -1) for question in questions]
    return story, asked, np.array(answers, np.int32)


def rows(data: str | Path, language: str, tasks: Iterable[int] = TASKS) -> list[str]:
    """Returns a line of Markdown a task: counts of questions, sentences, words and answers."""
    lines = [
        "| task | train | validation | test | sentences | words | answers | most frequent, % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task in tasks:
        try:
            train, validation, test = load(data, task, language)
        except FileNotFoundError as error:
            lines.append(f"| {task} | {error} |")
            continue
        known = vocabulary(train + validation)
        (_, most), *_ = Counter(question.answer for question in test).most_common(1)
        figures = (len(train), len(validation), len(test), known.sentences, len(known.words))
        figures += (len(known.answers), round(100 * most / len(test), 1))
        lines.append(f"| {task} | {' | '.join(map(str, figures))} |")
    return lines


def main(argv: list[str]) -> None:
    """Prints what there is of every task."""
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    try:
        print(*rows(flags.FLAGS.data, flags.FLAGS.language), sep="\n")
    except (OSError, ValueError) as error:
        sys.exit(f"datasets.babi: {error}")


if __name__ == "__main__":
    flags.DEFINE_string("data", None, "The folder tasks_1-20_v1-2, its archive, or a file of it.")
    flags.DEFINE_string("language", "en-10k", "The folder in it: en, en-10k, hn, ...")
    flags.mark_flag_as_required("data")
    app.run(main)
