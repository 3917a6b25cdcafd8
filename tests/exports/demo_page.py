"""The demo page, opened in Chromium."""

import pathlib
import re
import urllib.parse

from tests import browser

PAGE = pathlib.Path(__file__).parents[2] / "exports/demo/index.html"
TEXT = 'It <b>rained</b> & "poured"; été.'


def shown(url, text=TEXT, model="my model"):
    """Opens the page as a file, asks, and returns what it shows by id; "" where hidden."""
    query = urllib.parse.urlencode({"url": url, "model": model, "text": text, "run": "1"})
    dom = browser.page(f"file://{PAGE}?{query}")
    found = {}
    for name in ("summary", "facts", "error", "words", "source"):
        _, attributes, content = re.search(
            rf'<(p|span)( id="{name}"[^>]*)>(.*?)</\1>', dom, re.DOTALL
        ).groups()
        found[name] = "" if "hidden" in attributes else content
    found["result hidden"] = bool(re.search(r'id="result" hidden', dom))
    found["heat hidden"] = bool(re.search(r'id="heat" hidden', dom))
    return found
