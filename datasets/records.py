"""Prepared articles as TFRecords, and back in memory.

An example holds, without start or end symbols and cut to the lengths of the corpus,

    document, summary                     int64 lists: ids of the vocabulary
    document_words, summary_words         bytes lists: the same as lowercase words
    document_extended, summary_extended   int64 lists: ids where a word that the vocabulary lacks
                                          but the document holds is len(vocabulary) or more
    copied_words                          bytes list: those words, in the order of their ids
    id                                    bytes
    topics_document                       float list: p(topic | document), after `datasets.topics`
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Iterator

import numpy as np

from datasets.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Ragged:
    """Rows of different lengths.

    Args:
        values: int32 (total of the lengths,): all rows, one after the other.
        offsets: int64 (rows + 1,): where each row begins; the last is the length of `values`.

    Example:

    >>> rows = Ragged(np.array([7, 8, 9]), np.array([0, 1, 3]))
    >>> rows[1].tolist(), rows.padded([0, 1], value=-1).tolist()
    ([8, 9], [[7, -1], [8, 9]])
    """

    values: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row must be below {len(self)}, got {row}.")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Length of each row, int64 (rows,)."""
        return np.diff(self.offsets)

    def padded(
        self, rows: Iterable[int], value: int, length: int | None = None, left: bool = False
    ) -> np.ndarray:
        """Returns some rows as a matrix.

        Args:
            rows: which rows, in which order.
            value: what fills the rest.
            length: columns; rows that are longer are cut. None: the longest row's length.
            left: fill on the left, not on the right.

        Returns:
            Array (rows, length) of the type of `values`.
        """
        picked = [self[row] for row in rows]
        if length is None:
            length = max(map(len, picked), default=0)
        matrix = np.full((len(picked), length), value, self.values.dtype)
        for line, row in zip(matrix, picked, strict=True):
            row = row[:length]
            line[length - len(row) if left else 0 : length if left else len(row)] = row
        return matrix


@dataclasses.dataclass(frozen=True)
class Split:
    """All examples of a split.

    Args:
        document: ids of the documents, int32 rows.
        summary: ids of the summaries, int32 rows.
        ids: names of the articles.
        topics_document: p(topic | document), float32 (examples, topics), or None.
    """

    document: Ragged
    summary: Ragged
    ids: list[str]
    topics_document: np.ndarray | None

    def __len__(self) -> int:
        return len(self.ids)


def encode(
    name: str,
    document: list[str],
    summary: list[str],
    vocabulary: Vocabulary,
    topics: np.ndarray | None = None,
) -> bytes:
    """Returns a serialized `tf.train.Example` of words that are cut to their lengths already."""
    import tensorflow as tf

    extended, copied = vocabulary.encode_copied(document)
    lists = {
        "document": vocabulary.encode(document),
        "summary": vocabulary.encode(summary),
        "document_extended": extended,
        "summary_extended": vocabulary.encode_target(summary, copied),
    }
    words = {"document_words": document, "summary_words": summary, "copied_words": copied}
    example = tf.train.Example()
    feature = example.features.feature
    for key, ids in lists.items():
        feature[key].int64_list.value.extend(ids.tolist())
    for key, values in (*words.items(), ("id", [name])):
        feature[key].bytes_list.value.extend(value.encode() for value in values)
    if topics is not None:
        feature["topics_document"].float_list.value.extend(topics.tolist())
    return example.SerializeToString(deterministic=True)


def write(path: pathlib.Path, examples: Iterable[bytes]) -> int:
    """Writes a TFRecord file under a temporary name, renames it, and returns how many records."""
    import tensorflow as tf

    temporary = path.with_name(f".{path.name}")
    count = 0
    with tf.io.TFRecordWriter(str(temporary)) as writer:
        for example in examples:
            writer.write(example)
            count += 1
    os.replace(temporary, path)
    return count


def files(directory: str | os.PathLike, split: str) -> list[str]:
    """The record files of a split, in order.

    Raises:
        FileNotFoundError: if there is none.
    """
    found = sorted(pathlib.Path(directory, "records").glob(f"{split}-*.tfrecord"))
    if not found:
        raise FileNotFoundError(
            f"{directory} has no records of the split {split!r}: prepare a corpus there first, "
            "for example with python -m datasets.xsum prepare."
        )
    return [str(path) for path in found]


def parse(serialized, features: Iterable[str], topics: int = 0) -> dict:
    """Reads features of a batch of serialized examples, in a graph or eagerly.

    Args:
        serialized: string tensor (batch,).
        features: names of lists of ids or words, as this module's head gives them.
        topics: number of topics; above 0, "topics_document" is read as well.

    Returns:
        `tf.RaggedTensor`s (batch, length), int64 or strings; "id" is a tensor (batch,) and
        "topics_document" float32 (batch, topics).
    """
    import tensorflow as tf

    specification = {}
    for name in features:
        if name == "id":
            specification[name] = tf.io.FixedLenFeature([], tf.string)
        else:
            kind = tf.string if name.endswith("words") else tf.int64
            specification[name] = tf.io.RaggedFeature(kind, row_splits_dtype=tf.int64)
    if topics:
        specification["topics_document"] = tf.io.FixedLenFeature([topics], tf.float32)
    return tf.io.parse_example(serialized, specification)


def serialized_batches(directory: str | os.PathLike, split: str, size: int = 1024) -> Iterator:
    """Yields serialized examples of a split in order, string tensors (`size` or fewer,).

    Raises:
        FileNotFoundError: if the split is not there.
        ValueError: naming the file, if a part of it is gone.
    """
    import tensorflow as tf

    for path in files(directory, split):
        try:
            yield from tf.data.TFRecordDataset(path).batch(size)
        except tf.errors.DataLossError as error:
            raise ValueError(
                f"{path} is damaged or cut short. Remove it, give the command again that prepared "
                "the corpus, and, if it has topics, python -m datasets.topics infer."
            ) from error


def load(directory: str | os.PathLike, split: str) -> Split:
    """Reads the ids of all examples of a split into memory.

    Args:
        directory: folder that a corpus was prepared in.
        split: "train", "validation" or "test".

    Raises:
        FileNotFoundError: if the split is not there.
        ValueError: if a file of it is damaged.
    """
    import tensorflow as tf

    names = ["document", "summary", "id"]
    parts: dict[str, list] = {name: [] for name in (*names, "topics_document")}
    lengths: dict[str, list] = {"document": [], "summary": []}
    topics = None
    for serialized in serialized_batches(directory, split):
        if topics is None:
            first = tf.train.Example.FromString(serialized[0].numpy())
            topics = len(first.features.feature["topics_document"].float_list.value)
        try:
            batch = parse(serialized, names, topics)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(
                f"{directory}: not all records of the split {split!r} have {topics} topics of the "
                f"document. Give python -m datasets.topics infer --data={directory} once more."
            ) from error
        parts["id"].extend(name.decode() for name in batch["id"].numpy())
        for name, rows in lengths.items():
            parts[name].append(batch[name].values.numpy().astype(np.int32))
            rows.append(batch[name].row_lengths().numpy())
        if topics:
            parts["topics_document"].append(batch["topics_document"].numpy())
    ragged = [_ragged(parts[name], lengths[name]) for name in lengths]
    vectors = np.concatenate(parts["topics_document"]) if topics else None
    return Split(*ragged, ids=parts["id"], topics_document=vectors)


def _ragged(values: list[np.ndarray], lengths: list[np.ndarray]) -> Ragged:
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
    return Ragged(np.concatenate([np.zeros(0, np.int32), *values]), offsets)


def examples(directory: str | os.PathLike, split: str) -> Iterator[bytes]:
    """Yields the serialized examples of a split, in order."""
    import tensorflow as tf

    for record in tf.data.TFRecordDataset(files(directory, split)):
        yield record.numpy()
