"""Tests of work by several processes."""

import contextlib
import io
import itertools
import os
import time
from unittest import mock

from absl.testing import absltest, parameterized

from datasets import parallel


def slow_square(number):
    time.sleep(0.02 * (number % 3))
    return number**2, os.getpid()


def divide(number):
    return 1 / number


class ParallelTest(parameterized.TestCase):
    def test_answers_come_in_the_order_of_the_tasks(self):
        answers = list(parallel.ordered(slow_square, range(12), processes=2))
        self.assertEqual([square for square, _ in answers], [i**2 for i in range(12)])
        self.assertLen({process for _, process in answers} - {os.getpid()}, 2)

    def test_one_process_is_this_one(self):
        answers = list(parallel.ordered(slow_square, range(3), processes=1))
        self.assertEqual(answers, [(i**2, os.getpid()) for i in range(3)])

    @parameterized.parameters(1, 2)
    def test_an_error_of_a_task_ends_the_work(self, processes):
        with self.assertRaises(ZeroDivisionError):
            list(parallel.ordered(divide, [1, 0, 1], processes))

    def test_tasks_are_drawn_no_faster_than_needed(self):
        drawn = itertools.count()
        answers = parallel.ordered(divide, (1 + next(drawn) for _ in range(100)), processes=2)
        next(answers)
        self.assertLess(next(drawn), 10)
        answers.close()


class ProgressTest(absltest.TestCase):
    def _text(self, steps):
        now = iter(range(0, 1000, 5))
        with contextlib.redirect_stderr(io.StringIO()) as text:
            with mock.patch.object(time, "monotonic", side_effect=lambda: next(now)):
                progress = parallel.Progress("text", 1000)
                for step in steps:
                    progress.add(*step)
                progress.close()
        return text.getvalue().splitlines()

    def test_a_log_says_rate_and_time_left_now_and_then(self):
        lines = self._text([(50,), (50,), (50,)])
        # A call of the clock is 5 seconds: the third `add` is the first after ten of them.
        self.assertRegex(lines[0], r"^text: 150 of 1,000 articles, [\d.]+ a second, \d+:\d\d left$")
        self.assertRegex(lines[-1], r"^text: 150 of 1,000 articles, [\d.]+ a second, took .* s$")

    def test_what_an_earlier_run_has_done_is_no_speed(self):
        lines = self._text([(600, True)])
        self.assertRegex(lines[-1], r"^text: 600 of 1,000 articles, 0\.0 a second")


if __name__ == "__main__":
    absltest.main()
