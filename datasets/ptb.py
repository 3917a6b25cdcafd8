"""Characters of the Penn Treebank in Mikolov's split (RUM, section 4.4, and FS-RNN).

Two readings of it are both called character-level Penn Treebank, and their figures differ in the
last digits. `form` says which:

    bytes        `ptb.train.txt`, the file of words, byte by byte, with the space at either end of
                 each line and `<unk>` as five characters. That of RUM, FS-RNN and HyperLSTM:
                 5,101,618 / 399,782 / 449,945 characters of 50 kinds.
    characters   `ptb.char.train.txt`, characters between spaces, `_` for a space, without the
                 spaces at the ends of lines: 5,017,482 / 393,042 / 442,423.

The data is not ours to hand out. `--data` names a folder with `ptb.train.txt`, `ptb.valid.txt`
and `ptb.test.txt` (or `ptb.char.*`), as in `simple-examples.tgz` of Mikolov's RNNLM toolkit, or
`train.txt` or `train` and so on, each perhaps gzipped; or that archive itself. Look at it with

    python -m datasets.ptb --data=simple-examples.tgz
"""

import gzip
import os
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import app, flags

SPLITS = {"train": ("train",), "validation": ("valid", "validation", "val"), "test": ("test",)}

# Characters of each split; a file of another length is read, but said to be other data.
SIZES = {
    "bytes": {"train": 5_101_618, "validation": 399_782, "test": 449_945},
    "characters": {"train": 5_017_482, "validation": 393_042, "test": 442_423},
}


def load(
    directory: str | os.PathLike, split: str, symbols: str | None = None, form: str = "bytes"
) -> tuple[np.ndarray, str]:
    r"""Returns a split as one long sequence of ids.

    Args:
        directory: The folder, or the `.tgz` or `.tar.gz`, that holds the files.
        split: "train", "validation" or "test".
        symbols: The characters that ids 0, 1, ... stand for. By default those of the training
            split, the most frequent first, as in the released code.
        form: "bytes" or "characters".

    Returns:
        The ids, int32 (characters,), and `symbols`.

    Raises:
        FileNotFoundError: If there is no file of the split.
        ValueError: If there is no such split or form, or a file has a character that is not in
            `symbols`, is not of the form, or is a damaged `.gz` or no archive.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("train", "valid"):
    ...     _ = (directory / f"ptb.{name}.txt").write_text(" no it was n't \n")
    >>> ids, symbols = load(directory, "validation")
    >>> "".join(symbols[i] for i in ids)
    " no it was n't \n"
    """
    if symbols is None:
        symbols = symbols_of(read(directory, "train", form))
    text = read(directory, split, form)
    lookup = np.full(256, -1, np.int32)
    lookup[np.frombuffer(symbols.encode("latin-1"), np.uint8)] = np.arange(len(symbols))
    ids = lookup[np.frombuffer(text.encode("latin-1"), np.uint8)]
    if (ids < 0).any():
        place = int(np.argmax(ids < 0))
        line = text.count("\n", 0, place) + 1
        raise ValueError(
            f"Line {line} of the {split} split in {directory} has the character {text[place]!r}, "
            f"which is not one of the {len(symbols)} of the training split: take all splits from "
            "one source."
        )
    return ids, symbols


def symbols_of(text: str) -> str:
    """Returns the different characters of a text, the most frequent first, ties in order.

    Example:

    >>> symbols_of("banana")
    'anb'
    """
    return "".join(sorted((counts := Counter(text)), key=lambda c: (-counts[c], c)))


def read(directory: str | os.PathLike, split: str, form: str = "bytes") -> str:
    """Returns the text of a split, a character for each byte or entry; arguments as `load`."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    if form not in SIZES:
        raise ValueError(f"form must be one of {', '.join(SIZES)}, got {form!r}.")
    name, raw = _find(Path(directory), split, form)
    if name.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{name}: not a whole gzip file ({error}): fetch it again.") from error
    # Bytes beyond ASCII, which the treebank does not have, stay a character each.
    text = raw.decode("latin-1")
    if form == "characters":
        text = _join(text, name)
    if not text:
        raise ValueError(f"{name} is empty.")
    if len(text) != SIZES[form][split]:
        print(
            f"{name} has {len(text):,} characters; the {split} split of the Penn Treebank read as "
            f"{form} has {SIZES[form][split]:,}. Figures will not compare with the papers'.",
            file=sys.stderr,
        )
    return text


def _find(directory: Path, split: str, form: str) -> tuple[str, bytes]:
    """Returns the name of the file of a split and its bytes."""
    stems = SPLITS[split]
    prefix = "ptb.char." if form == "characters" else "ptb."
    names = [f"{prefix}{stem}.txt" for stem in stems]
    if form == "bytes":
        names += [f"{stem}{ending}" for stem in stems for ending in (".txt", "")]
    names = [name + ending for name in names for ending in ("", ".gz")]
    if directory.is_file() and (found := _find_in_archive(directory, names)):
        return found
    for folder in (directory, directory / "data", directory / "simple-examples" / "data"):
        for name in names:
            if (folder / name).is_file():
                return str(folder / name), (folder / name).read_bytes()
    raise FileNotFoundError(
        f"{directory} has no {split} split of the form {form!r}: none of {', '.join(names)}. "
        "Give the folder `simple-examples/data` of Mikolov's RNNLM toolkit, or simple-examples.tgz."
    )


def _find_in_archive(path: Path, names: list[str]) -> tuple[str, bytes] | None:
    try:
        with tarfile.open(path) as archive:
            members = {Path(m.name).name: m for m in archive if m.isfile()}
            found = next((name for name in names if name in members), None)
            # Read here; nothing is written to a path of the archive's.
            raw = found and archive.extractfile(members[found]).read()
            while archive.fileobj.read(1 << 20):  # The checksum of a .gz is at its end.
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        # What each packer says is left out.
        reason = str(error).partition("\n")[0].rstrip(":") or "it is cut short"
        raise ValueError(
            f"{path}: not a whole archive ({reason}): name the folder of the three files or "
            "simple-examples.tgz; if this is it, fetch it again."
        ) from error
    return found and (f"{path}:{found}", raw)


def _join(text: str, name: str) -> str:
    """Joins characters that stand between spaces, and lines by their ends."""
    lines = []
    # What follows the last end of line, in the published files a space, is no line.
    for number, line in enumerate(text.rstrip().split("\n"), 1):
        entries = line.split()
        wrong = [entry for entry in entries if len(entry) != 1]
        if wrong:
            raise ValueError(
                f"{name}:{number}: {wrong[0]!r} is not one character between spaces: this is not a "
                "ptb.char file; read files of words with form='bytes'."
            )
        lines.append("".join(entries).replace("_", " ") + "\n")
    return "".join(lines)


def main(argv: Sequence[str]) -> None:
    """Prints what the splits hold."""
    del argv
    options = flags.FLAGS
    symbols = None
    for split in SPLITS:
        try:
            ids, symbols = load(options.data, split, symbols, options.form)
        except (OSError, ValueError) as error:
            sys.exit(f"datasets.ptb: {error}")
        start = "".join(symbols[i] for i in ids[:40])
        kinds = len(np.unique(ids))
        print(f"{split:10}  {len(ids):>9,} characters of {kinds} kinds  {start!r}")
    print(f"symbols, the most frequent first: {symbols!r}")


if __name__ == "__main__":
    flags.DEFINE_string("data", None, "Folder or archive of the files.", required=True)
    flags.DEFINE_enum("form", "bytes", list(SIZES), "Which reading; see above.")
    app.run(main)
