"""A page as Chromium leaves it after its scripts ran."""

import shutil
import subprocess
import tempfile
import unittest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def page(url: str, milliseconds: int = 4000) -> str:
    """Returns the page's HTML when its scripts are done, or skips the test without Chromium.

    Args:
        url: Of the page, `file:` or `http:`.
        milliseconds: How long the page's own clock runs at most.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not program:
        raise unittest.SkipTest("needs Chromium: `apt-get install chromium`.")
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--disable-gpu", f"--user-data-dir={profile}"]
        # A container's root may not start Chromium's sandbox; the pages are our own.
        command += ["--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"]
        command += [f"--virtual-time-budget={milliseconds}", "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
