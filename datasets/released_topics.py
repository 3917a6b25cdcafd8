"""Turns a topic model that gensim saved, such as the authors' released one, into plain arrays.

    python -m datasets.released_topics --model=lda.model --data=data/xsum --i_trust_this_file

gensim saves models as pickles. Whoever made a pickle can run any code on the machine that loads
it, so this command does nothing without --i_trust_this_file; run it in a container if you can.
What it writes into data/xsum/topics is data alone (see `topic_model`).

The released model knows lemmas. The words of the corpus's training documents are given those
lemmas by `lemmas.Lemmatizer`; words whose lemma the model lacks have no topics.
"""

import json
import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

from datasets import lemmas, summarization, topic_model, topic_training, topics


def convert(
    model: pathlib.Path, data: pathlib.Path, i_trust_this_file: bool = False, processes: int = 2
) -> topic_model.Topics:
    """Loads a gensim model and saves its topics for a prepared corpus.

    Args:
        model: file that `gensim.models.LdaModel.save` wrote, beside its `.state` and `.npy` files.
        data: folder of the prepared corpus.
        i_trust_this_file: must be True, because loading runs the file's code.
        processes: how many processes count words.

    Raises:
        ValueError: if `i_trust_this_file` is not True.
        FileNotFoundError: if the model or the corpus is not there.
    """
    if not i_trust_this_file:
        raise ValueError(
            f"{model} is a pickle: loading it runs whatever code is in it. If you trust whoever "
            "made it, add --i_trust_this_file."
        )
    if not model.is_file():
        raise FileNotFoundError(f"{model}: there is no such file.")
    counts = topic_training.count_words(data, processes)
    from gensim.models import LdaModel

    lda = LdaModel.load(str(model))
    names = [lda.id2word[i] for i in range(lda.num_terms)]
    place = {name: i for i, name in enumerate(names)}
    # Words that topics leave out are not in the model; the lemmas stand for themselves, too.
    of_words = lemmas.lemma_of_words(counts, lemmas.Lemmatizer(counts), lemmas.stop_words())
    word_ids = {word: place[lemma] for word, lemma in of_words.items() if lemma in place}
    word_ids |= {name: i for name, i in place.items() if name not in word_ids}
    converted = topic_model.Topics.of(names, word_ids, lda.state.get_lambda(), lda.alpha)
    described = {"topics": lda.num_topics, "lemmas": len(names), "converted_from": model.name}
    described["sha256"] = summarization.sha256(model)
    topics.save(converted, data, described)
    return converted


def main(argv: Sequence[str]) -> None:
    """Runs the command."""
    FLAGS = flags.FLAGS
    if len(argv) != 1 or not FLAGS.model or not FLAGS.data:
        sys.exit(
            "Usage: python -m datasets.released_topics --model=FILE --data=FOLDER "
            "--i_trust_this_file"
        )
    data = pathlib.Path(FLAGS.data)
    try:
        converted = convert(pathlib.Path(FLAGS.model), data, FLAGS.i_trust_this_file)
    except (OSError, ValueError) as error:
        sys.exit(f"datasets.released_topics: {error}")
    print(topics.show(converted, 7, 10))
    print(f"Left in {data / 'topics'}: {json.dumps(sorted(p.name for p in data.glob('topics/*')))}")


if __name__ == "__main__":
    flags.DEFINE_string("model", None, "File that gensim saved. Required.")
    flags.DEFINE_string("data", None, "Folder of a prepared corpus. Required.")
    flags.DEFINE_bool("i_trust_this_file", False, "Load the pickle, which may run any code.")
    app.run(main)
