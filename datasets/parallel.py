"""Work on many shards in several processes, in order, with the time that is left."""

import collections
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def ordered(function: Callable, tasks: Iterable, processes: int) -> Iterator[Any]:
    """Yields `function(task)` for each task, in the order of the tasks.

    Args:
        function: a function of a module, so that another process can find it.
        tasks: what to give it, drawn no faster than it is worked on.
        processes: how many to start; 1 works in this one.
    """
    if processes == 1:
        yield from map(function, tasks)
        return
    # Processes are spawned: a forked copy of TensorFlow's threads may hang.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        waiting: collections.deque = collections.deque()
        for task in tasks:
            waiting.append(pool.apply_async(function, (task,)))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().get()
        while waiting:
            yield waiting.popleft().get()


class Progress:
    """A line on the standard error stream: how much is done, how fast, how long it still takes.

    Args:
        label: what is being done.
        total: how many units there are.
        unit: what they are, in the plural.
    """

    def __init__(self, label: str, total: int, unit: str = "articles"):
        self._label, self._total, self._unit = label, total, unit
        self._start = self._shown = time.monotonic()
        self._done = self._skipped = 0

    def add(self, count: int, skipped: bool = False) -> None:
        """Counts units; those `skipped`, done by an earlier run, say nothing about the rate."""
        self._done += count
        self._skipped += count if skipped else 0
        now = time.monotonic()
        # A terminal's line is written over; a log gets a line every ten seconds.
        if now - self._shown > (0.5 if sys.stderr.isatty() else 10):
            self._shown = now
            left = (self._total - self._done) / self.rate if self.rate else 0
            self._show(f"{int(left) // 60}:{int(left) % 60:02d} left")

    @property
    def rate(self) -> float:
        """Units a second so far."""
        return (self._done - self._skipped) / max(time.monotonic() - self._start, 1e-9)

    def close(self) -> float:
        """Writes the last line and returns the rate."""
        seconds = time.monotonic() - self._start
        self._show(f"took {seconds:.1f} s", end="\n")
        return self.rate

    def _show(self, time_text: str, end: str | None = None) -> None:
        terminal = sys.stderr.isatty()
        text = f"{self._label}: {self._done:,} of {self._total:,} {self._unit}"
        rate = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.1f}"
        print(
            f"{text}, {rate} a second, {time_text}",
            end=end or ("\r" if terminal else "\n"),
            file=sys.stderr,
            flush=True,
        )
