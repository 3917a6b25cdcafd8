"""The `.bin` files of See, Liu and Manning (2017): `finished_files/chunked/train_000.bin`.

A file is a row of records: the length as a little-endian signed integer of 8 bytes, then a
`tf.Example` of so many bytes with the features `article` and `abstract`, whose sentences stand
between <s> and </s>. It is no TFRecord file: there are no checksums.

The few bytes of protocol buffers that this takes are read and written here, so that what is
written is the same byte for byte as what was read, the order of the features included.
"""

import os
import pathlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_LENGTH = struct.Struct("<q")


class Record(NamedTuple):
    """A record of a chunk.

    Args:
        offset: where in the file it begins.
        features: the texts, by name, in the order of the file.
        error: what is wrong with it, else "".
    """

    offset: int
    features: dict[str, bytes]
    error: str = ""


def read(path: str | os.PathLike) -> Iterator[Record]:
    """Yields the records of a file; one that is cut short or damaged has its error said."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        offset = 0
        while offset < size:
            head = file.read(_LENGTH.size)
            length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
            left = size - offset - _LENGTH.size
            if len(head) < _LENGTH.size or not 0 < length <= left:
                yield Record(
                    offset,
                    {},
                    f"the record at byte {offset} is cut short: expected {length:,} bytes, found "
                    f"{max(left, 0):,}; what follows is not read",
                )
                return
            try:
                yield Record(offset, decode(file.read(length)))
            except ValueError as error:
                yield Record(offset, {}, f"the record at byte {offset} is damaged: {error}")
            offset += _LENGTH.size + length


def write(path: str | os.PathLike, records: Iterable[Mapping[str, bytes]]) -> int:
    """Writes a file under a temporary name, renames it, and returns how many records it has.

    Args:
        path: the file.
        records: features by name, in the order in which they are to stand.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}")
    count = 0
    with open(temporary, "wb") as file:
        for features in records:
            example = encode(features)
            file.write(_LENGTH.pack(len(example)) + example)
            count += 1
    os.replace(temporary, path)
    return count


def encode(features: Mapping[str, bytes]) -> bytes:
    r"""Serializes a `tf.Example` of one text a feature.

    Example:

    >>> encode({"article": b"it rains"})
    b'\n\x19\n\x17\n\x07article\x12\x0c\n\n\n\x08it rains'
    """
    entries = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _field(1, _field(1, text))))
        for name, text in features.items()
    )
    return _field(1, entries)


def decode(example: bytes) -> dict[str, bytes]:
    """Reads the texts of a serialized `tf.Example`, in their order.

    Raises:
        ValueError: if the bytes are no such example.
    """
    features = {}
    for number, entries in _fields(example):
        if number != 1:
            raise ValueError(f"expected the features of a tf.Example, found field {number}")
        for _, entry in _fields(entries):
            parts = dict(_fields(entry))
            values = [text for _, kind in _fields(parts.get(2, b"")) for _, text in _fields(kind)]
            features[parts.get(1, b"").decode()] = values[0] if values else b""
    return features


def _field(number: int, content: bytes) -> bytes:
    """A field of length-delimited bytes."""
    length, size = bytearray(), len(content)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | 2,)) + bytes(length) + content


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        if key & 7 != 2:
            raise ValueError(f"expected a text, found wire type {key & 7}")
        length, place = _varint(content, place)
        if place + length > len(content):
            raise ValueError(f"a text of {length} bytes does not fit in {len(content) - place}")
        yield key >> 3, content[place : place + length]
        place += length


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(content) or shift > 63:
            raise ValueError("a number does not end")
        byte = content[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
