"""Topics of articles: latent Dirichlet allocation over the lemmas of the training documents.

    python -m datasets.topics train --data=data/xsum             512 topics, as in the paper
    python -m datasets.topics infer --data=data/xsum             p(topic | document) of all splits
    python -m datasets.topics show --data=data/xsum              top words, as the paper's Table 3

`--data` is a folder that a corpus was prepared in. Its folder `topics` then holds

    topics.npz, words.json        see `topic_model`
    topics.json                   settings, sizes, documents a second, hashes
    documents-SPLIT.npy           p(topic | document), float32 (examples, topics)

and its records get the feature "topics_document". Documents are taken whole, not cut to the
model's 400 tokens. Nothing is pickled; the authors' released model, which is, becomes these files
by `python -m datasets.released_topics`.

Training has the settings of the released code; a small corpus needs more passes and smaller
chunks: see `topic_training`.
"""

import pathlib
import sys
from collections.abc import Sequence

import numpy as np
from absl import app, flags

from datasets import (
    articles,
    parallel,
    summarization,
    text_shards,
    tokenization,
    topic_inference,
    topic_model,
    topic_training,
    vocabulary,
)
from datasets.articles import SPLITS
from datasets.text_shards import write_json

load = topic_model.load
load_word_topics = topic_model.load_word_topics


def save(topics: topic_model.Topics, data: pathlib.Path, described: dict) -> None:
    """Writes the folder `topics` of a corpus, with what `described` says of the training."""
    directory = data / "topics"
    topics.save(directory, vocabulary.read(data / "vocabulary.txt"))
    files = {name: summarization.sha256(directory / name) for name in ("topics.npz", "words.json")}
    write_json(directory / "topics.json", described | {"files": files})


_topics = None


def _infer_shard(task) -> tuple[np.ndarray, bool]:
    """Infers the topics of a text file; every process loads the topics once."""
    global _topics
    data, path, target = task
    if target.exists():
        return np.load(target), False
    if _topics is None or _topics[0] != data:
        _topics = data, topic_model.load(data)
    rows = [_topics[1].infer(text_shards.words(r["document"])) for r in text_shards.read(path)]
    vectors = np.array(rows, np.float32).reshape(len(rows), len(_topics[1].alpha))
    temporary = target.with_name(f".{target.name}")
    np.save(temporary, vectors)
    temporary.replace(target)
    return vectors, True


def infer(data: pathlib.Path, processes: int = 2) -> float:
    """Infers the topics of all documents of a prepared corpus, and puts them into its records.

    Args:
        data: folder of the corpus, with trained topics.
        processes: how many processes to work with.

    Returns:
        Documents a second of the inference.

    Raises:
        FileNotFoundError: if there are no topics.
    """
    described = text_shards.read_json(
        data / "topics" / "topics.json", f"python -m datasets.topics train --data={data}"
    )
    manifest = text_shards.read_json(
        data / "manifest.json", f"python -m datasets.xsum prepare --output={data}"
    )
    # What was inferred with other topics does not count.
    parts = data / "topics" / f".{described['files']['topics.npz'][:16]}-{topic_inference.STEPS}"
    parts.mkdir(exist_ok=True)
    total = sum(split["kept"] for split in manifest["splits"].values())
    progress = parallel.Progress("inference", total, "documents")
    tasks = [
        (data, path, parts / path.name.replace(".jsonl.gz", ".npy"))
        for split in SPLITS
        for path in text_shards.files(data, split)
    ]
    found: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for task, (vectors, fresh) in zip(
        tasks, parallel.ordered(_infer_shard, tasks, processes), strict=True
    ):
        found[task[1].name.split("-")[0]].append(vectors)
        progress.add(len(vectors), skipped=not fresh)
    rate = progress.close()
    for split, vectors in found.items():
        if vectors:
            temporary = data / "topics" / f".documents-{split}.npy"
            np.save(temporary, np.concatenate(vectors))
            temporary.replace(data / "topics" / f"documents-{split}.npy")
    summarization.add_topics(data, found, processes)
    write_json(data / "topics" / "topics.json", described | {"inferred_a_second": round(rate, 1)})
    return rate


def _given_text(flag: str) -> str | None:
    """The contents of the file that a flag names."""
    path = flags.FLAGS[flag].value
    try:
        return path and articles.read_text(pathlib.Path(path))
    except ValueError as error:
        raise ValueError(f"--{flag}: {error}.") from error


def show(topics: topic_model.Topics, count: int, words: int, text: str | None = None) -> str:
    """Returns the top words of topics, one topic a line.

    Args:
        topics: the topics.
        count: how many topics: the likeliest, of `text` or of the training documents.
        words: how many words of each.
        text: raw text of an article, or None.
    """
    if text is None:
        share = topics.topic_words.sum(axis=1) / topics.topic_words.sum()
    else:
        share = topics.infer(tokenization.tokens(text))
    top = topics.top_words(words)
    chosen = np.argsort(-share, kind="stable")[:count]
    return "\n".join(f"T{topic:<4}{share[topic]:6.1%}  {', '.join(top[topic])}" for topic in chosen)


def main(argv: Sequence[str]) -> None:
    """Runs one of the commands train, infer and show."""
    FLAGS = flags.FLAGS
    data = pathlib.Path(FLAGS.data or "")
    if len(argv) != 2 or argv[1] not in ("train", "infer", "show") or not FLAGS.data:
        sys.exit("Usage: python -m datasets.topics train|infer|show --data=FOLDER")
    try:
        if argv[1] == "train":
            _train_command(data)
        elif argv[1] == "infer":
            rate = infer(data, FLAGS.processes)
            print(f"{rate:,.0f} documents a second; records now hold topics_document.")
        else:
            text = _given_text("article")
            print(show(load(data), FLAGS.count, FLAGS.words, text))
    except ModuleNotFoundError as error:
        sys.exit(f"datasets.topics: {error}; pip install -e '.[topics]' brings it.")
    except (OSError, ValueError) as error:
        sys.exit(f"datasets.topics: {error}")


def _train_command(data: pathlib.Path) -> None:
    FLAGS = flags.FLAGS
    if (data / "topics" / "topics.json").exists() and not FLAGS.overwrite:
        sys.exit(f"{data / 'topics'} holds topics already: --overwrite replaces them.")
    extra = _given_text("stop_words")
    if text_shards.files(data, "train") and not (data / "vocabulary.txt").is_file():
        raise FileNotFoundError(  # Now, and not after hours of training.
            f"There is no {data / 'vocabulary.txt'}: give the command again that prepared the "
            "corpus, which writes what is missing."
        )
    topics, described = topic_training.train(
        data,
        FLAGS.topics,
        FLAGS.passes,
        FLAGS.chunk,
        FLAGS.iterations,
        (extra or "").split(),
        FLAGS.exceptions,
        FLAGS.seed,
        FLAGS.processes,
    )
    save(topics, data, described)
    print(show(topics, 7, 10))
    print(f"Left in {data / 'topics'}: topics.npz, words.json, topics.json")


if __name__ == "__main__":
    flags.DEFINE_string("data", None, "Folder of a prepared corpus. Required.")
    flags.DEFINE_integer("topics", 512, "Number of topics.", lower_bound=2)
    flags.DEFINE_integer("passes", 1, "How often to go through the documents.", lower_bound=1)
    flags.DEFINE_integer("chunk", 2000, "Documents of a process between two exchanges.", 1)
    flags.DEFINE_integer("iterations", 1000, "Largest number of steps of a document.", 1)
    flags.DEFINE_string("stop_words", None, "File of more words to leave out, one a line.")
    flags.DEFINE_string("exceptions", None, "Folder of WordNet's noun.exc and verb.exc.")
    flags.DEFINE_integer("seed", 0, "Seed of the first topics.", lower_bound=0)
    flags.DEFINE_integer("processes", 2, "Processes to work with.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Train again where there are topics.")
    flags.DEFINE_integer("count", 7, "Topics to show.", lower_bound=1)
    flags.DEFINE_integer("words", 10, "Words to show of each.", lower_bound=1)
    flags.DEFINE_string("article", None, "Text file: show the topics of this article.")
    app.run(main)
