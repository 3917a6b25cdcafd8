"""Tests of See et al.'s chunks of tf.Examples."""

import pathlib
import struct
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import see_chunks


def official(features):
    """What TensorFlow writes, whose map has its keys in alphabetical order."""
    example = tf.train.Example()
    for name, text in features.items():
        example.features.feature[name].bytes_list.value.append(text)
    return example.SerializeToString(deterministic=True)


class SeeChunksTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "train_000.bin")

    @settings(deadline=None, max_examples=20)
    @given(st.binary(max_size=300), st.binary(min_size=1, max_size=20_000))
    def test_examples_are_those_of_tensorflow(self, abstract, article):
        features = {"abstract": abstract, "article": article}
        self.assertEqual(see_chunks.encode(features), official(features))
        self.assertEqual(see_chunks.decode(official(features)), features)

    def test_a_file_is_lengths_and_examples(self):
        records = [{"article": b"it rains", "abstract": b"<s> rain </s>"}, {"article": b"x"}]
        self.assertEqual(see_chunks.write(self.path, records), 2)
        expected = b"".join(struct.pack("<q", len(e)) + e for e in map(see_chunks.encode, records))
        self.assertEqual(self.path.read_bytes(), expected)
        self.assertEqual([record.offset for record in see_chunks.read(self.path)], [0, 66])

    @parameterized.parameters(("article", "abstract"), ("abstract", "article"))
    def test_what_was_read_is_written_byte_for_byte(self, *names):
        see_chunks.write(self.path, [dict.fromkeys(names, b"a b" * 99), {"article": b""}])
        before = self.path.read_bytes()
        records = [record.features for record in see_chunks.read(self.path)]
        self.assertEqual(list(records[0]), list(names))
        see_chunks.write(self.path, records)
        self.assertEqual(self.path.read_bytes(), before)

    @parameterized.parameters(1, 30, 33, 34, 40)
    def test_a_record_that_is_cut_short_is_told_with_its_offset(self, cut):
        see_chunks.write(self.path, [{"article": b"it rains"}, {"article": b"it snows again"}])
        content = self.path.read_bytes()
        self.assertLen(content, 35 + 41)
        self.path.write_bytes(content[:-cut])
        good, bad = see_chunks.read(self.path)
        self.assertEqual(good.features, {"article": b"it rains"})
        self.assertEqual((bad.offset, bad.features), (35, {}))
        left = max(41 - cut - 8, 0)
        self.assertRegex(bad.error, f"at byte 35 is cut short: expected .* found {left};")

    def test_a_length_that_is_absurd_does_not_end_the_program(self):
        self.path.write_bytes(struct.pack("<q", -5) + b"abc")
        (bad,) = see_chunks.read(self.path)
        self.assertIn("cut short", bad.error)

    def test_a_damaged_record_is_told_and_the_next_is_read(self):
        good = see_chunks.encode({"article": b"x"})
        self.path.write_bytes(
            struct.pack("<q", 3) + b"\x0a\x7fx" + struct.pack("<q", len(good)) + good
        )
        bad, fine = see_chunks.read(self.path)
        self.assertRegex(bad.error, "at byte 0 is damaged: a text of 127 bytes")
        self.assertEqual(fine.features, {"article": b"x"})

    @settings(deadline=None, max_examples=20)
    @given(st.binary(max_size=40))
    def test_any_bytes_are_read_or_refused(self, content):
        try:
            see_chunks.decode(content)
        except ValueError:
            pass


if __name__ == "__main__":
    absltest.main()
