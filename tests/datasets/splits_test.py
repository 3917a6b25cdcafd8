"""Tests of which split an article goes to."""

import gzip
import hashlib
import json
import pathlib
import tempfile
from collections import Counter

from absl.testing import absltest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import splits
from datasets.articles import Article


def named(ids, split=None):
    return [Article(split, i, f"file:{n}", lambda: ("", "")) for n, i in enumerate(ids, start=1)]


class SplitsTest(absltest.TestCase):
    def test_an_article_goes_where_its_source_says(self):
        found = named("ab", "train") + named("c", "test")
        self.assertEqual([p.split for p in splits.assign(found)], ["train", "train", "test"])

    def test_a_list_of_ids_decides_and_drops_what_it_lacks(self):
        places = splits.assign(named("abc", "train"), {"a": "test", "c": "validation"})
        self.assertEqual([place.split for place in places], ["test", None, "validation"])
        self.assertEqual(places[1].note, "id is not in the list of splits")
        self.assertEqual(places[1].where, "file:2")

    def test_an_id_that_came_before_is_dropped(self):
        places = splits.assign(named("aab", "train"))
        self.assertEqual([place.split for place in places], ["train", None, "train"])
        self.assertEqual(places[1].note, "an article with this id came before")

    def test_of_articles_without_ids_only_the_same_one_is_dropped(self):
        first = Article("train", "x/a.csv:1", "1/x/a.csv:1", lambda: ("", ""), has_id=False)
        places = splits.assign([first, first])
        self.assertEqual([place.split for place in places], ["train", None])
        message = "2/x/a.csv:1 and 1/x/a.csv:1: .* would be 'x/a.csv:1'. Rename one"
        with self.assertRaisesRegex(ValueError, message):
            splits.assign([first, first._replace(where="2/x/a.csv:1")])

    def test_an_article_of_no_split_is_refused_with_its_place(self):
        with self.assertRaisesRegex(ValueError, "file:1: nothing says which split"):
            splits.assign(named("a"))

    @settings(deadline=None, max_examples=20)
    @given(st.permutations(range(12)), st.integers(2, 11))
    def test_what_is_held_out_does_not_hang_on_the_order(self, order, held_out):
        ids = [f"id{i}" for i in order]
        found = dict(zip(ids, splits.assign(named(ids), held_out=held_out), strict=True))
        expected = splits.assign(named(sorted(ids)), held_out=held_out)
        self.assertEqual([found[i].split for i in sorted(ids)], [p.split for p in expected])
        counts = Counter(place.split for place in expected)
        self.assertEqual(counts["validation"] + counts["test"], held_out)
        self.assertEqual(counts["validation"], held_out // 2)

    def test_no_articles_are_refused(self):
        with self.assertRaisesRegex(ValueError, "found not one, of the 1 ids of --split_ids"):
            splits.assign([], {"a": "train"})

    def test_files_that_are_edited_have_another_hash(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.jsonl")
            path.write_text("one\n")
            places = [splits.Place("train", "a", f"{path}:{line}") for line in (1, 2)]
            before = splits.files_hash(places)
            self.assertEqual(splits.files_hash(places[1:]), before)
            path.write_text("two\nthree\n")
            self.assertNotEqual(splits.files_hash(places), before)

    def test_summaries_that_are_edited_have_another_hash(self):
        with tempfile.TemporaryDirectory() as folder:
            document, summary = (pathlib.Path(folder, name) for name in ("a.source", "a.target"))
            document.write_text("a\nb\n")
            summary.write_text("a\nb\n")
            (place,) = splits.assign(
                [Article("train", "a", f"{document}:1", None, summary_file=str(summary))]
            )
            before = splits.files_hash([place])
            summary.write_text("a\nbut\n")
            self.assertNotEqual(splits.files_hash([place]), before)

    def test_hashes_of_files_that_hold_both_texts_stay_what_they_were(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.jsonl")
            path.write_text("one\n")
            found = splits.files_hash([splits.Place("train", "a", f"{path}:1")])
        self.assertEqual(found, hashlib.sha256(b"[4]").hexdigest())

    def test_holding_out_too_many_or_one_is_refused(self):
        for held_out in (1, 3, 4):
            with self.assertRaisesRegex(ValueError, f"below the 3 articles, got {held_out}"):
                splits.assign(named("abc"), held_out=held_out)

    def test_sizes_that_are_not_the_published_ones_are_told(self):
        places = splits.assign(named("ab", "train"))
        self.assertEqual(
            splits.unexpected_sizes(places, {"train": 2, "validation": 1_000, "test": 0}),
            "The published splits have 2 train (here 2), 1,000 validation (here 0), 0 test (here "
            "0)",
        )
        expected = {"train": 2, "validation": 0, "test": 0}
        self.assertEqual(splits.unexpected_sizes(places, expected), "")

    def test_lists_of_ids_are_read_from_json(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "ids.json.gz")
            lists = {"train": [1], "validation": ["2"], "test": ["3"]}
            path.write_bytes(gzip.compress(json.dumps(lists).encode()))
            expected = {"1": "train", "2": "validation", "3": "test"}
            self.assertEqual(splits.read_ids(path), expected)
            path = pathlib.Path(folder, "ids.json")
            for text, message in (
                ('{"train": ["1"], "test": ["1"]}', "found the keys train, test and 1 ids again"),
                ('{"other": ["1"]}', "found the keys other and 0 ids"),
                ("[1]", "expected JSON with lists of ids"),
            ):
                path.write_text(text)
                with self.assertRaisesRegex(ValueError, f"ids.json: .*{message}"):
                    splits.read_ids(path)


if __name__ == "__main__":
    absltest.main()
