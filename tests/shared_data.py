"""Where tests find real corpora, which the repository does not hold."""

import os
import pathlib
import unittest


def folder(name: str) -> pathlib.Path:
    """Returns a folder of real data, or skips the test that asks.

    Args:
        name: Such as `xsum`, in the folder that RUM_KERAS_DATA names, by default `shared/data`
            beside the checkout.
    """
    beside = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    path = pathlib.Path(os.environ.get("RUM_KERAS_DATA", beside)) / name
    if not path.is_dir():
        raise unittest.SkipTest(f"needs real data: {path} is missing; set RUM_KERAS_DATA.")
    return path
