"""Penn Treebank tokens and sentences from raw English text, in Python or inside a graph.

The authors' data went through Stanford CoreNLP, a Java program. This does what matters of it by a
list of substitutions that Python's `re` and TensorFlow's RE2 understand alike, so that a served
model reads text exactly as its training data was read: "can't" is "ca n't", quotes are `` and
'', brackets -lrb- and -rrb-, a pound sign is #, dashes are --, and a sentence without an end gets
" ." (the released preprocessing). Case: only A-Z are lowered, as by the released Python 2 code.

Try it with `python -m datasets.tokenization < article.txt`.
"""

import functools
import re
import sys

# A character of the private use area that stands for a full stop that ends no sentence, a comma
# in a number, and so on, between the rules that protect it and the one that restores it.
_STOP, _COMMA, _COLON, _QUOTE, _AND, _DOTS = map(chr, range(0xE000, 0xE006))

# Titles and other words that a name or a number follows. No sentence ends after them.
_TITLES = (
    "Mr|Mrs|Ms|Dr|Prof|Sir|St|Sgt|Lt|Col|Gen|Maj|Capt|Cmdr|Cpl|Rev|Hon|Gov|Sen|Rep|Pres|Messrs|Mt|"
    "Fr|Det|Insp|Supt|Adm|Brig|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|No|vs|v|etc|approx|e\\.g|i\\.e"
)
# Abbreviations that may end a sentence, and do not lose their full stop.
_ABBREVIATIONS = "Jr|Sr|Co|Corp|Inc|Ltd|Bros|Ave|Rd|a\\.m|p\\.m"

_BLANKS = (
    "[\x00-\x09\x0b-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064"
    "\u3000\ufeff]+"
)

# (pattern, replacement) in order, in the common part of Python's and RE2's syntax: no look-around,
# no \s or \w of one meaning here and another there (patterns are compiled with re.ASCII).
RULES = (
    ("[\ue000-\ue005]", " "),
    ("[\u2028\u2029\x85\r]", "\n"),
    (_BLANKS, " "),
    # Unicode's quotes, dashes and currencies, as CoreNLP's PTB escapes write them.
    ("[\u2018\u2019\u201b\u02bc\u2032`\u00b4]", "'"),
    ("''|[\u201c\u201d\u201e\u2033\u00ab\u00bb]", '"'),
    ("[\u2012-\u2015]", " -- "),
    ("--+", " -- "),
    ("\u2026|\\.\\.\\.+", f" {_DOTS} "),
    ("\u00a3", " # "),
    ("[\u20ac\u00a4\u00a5]", " $ "),
    ("\u00a2", " cents "),
    # Full stops, commas and colons that belong to a word are put out of the way.
    (f"\\b({_TITLES})\\. ", f"\\1{_STOP} "),
    (f"\\b({_ABBREVIATIONS})\\.( ?[a-z,;:)])", f"\\1{_STOP} \\2"),
    ("\\b([A-Za-z])\\.([A-Za-z])\\.", f"\\1{_STOP}\\2{_STOP}"),
    (f"{_STOP}([A-Za-z])\\.", f"{_STOP}\\1{_STOP}"),
    (f"{_STOP}([A-Za-z])\\.", f"{_STOP}\\1{_STOP}"),
    ("(^|[ \n(\"'])([A-Z])\\. ", f"\\1\\2{_STOP} "),
    ("([0-9]),([0-9])", f"\\1{_COMMA}\\2"),
    ("([0-9]),([0-9])", f"\\1{_COMMA}\\2"),
    ("([0-9]):([0-9])", f"\\1{_COLON}\\2"),
    ("([0-9]):([0-9])", f"\\1{_COLON}\\2"),
    ("(https?):/", f"\\1{_COLON}/"),
    ("\\b([A-Z])&([A-Z])\\b", f"\\1{_AND}\\2"),
    ("\\b([0-9]+\\.[0-9]+)([A-Za-z]+)", "\\1 \\2"),
    # A sentence ends at . ? ! with closing quotes or brackets, if what follows looks like a start.
    (f"({_DOTS}) +([\"'(]?[A-Z])", "\\1\n\\2"),
    ("([?!][\"')]*) +", "\\1\n"),
    ("(\\.[\"')]*) +([\"'(#$]? ?[A-Z0-9])", "\\1\n\\2"),
    # An opening quote stands at a start or after a blank, a bracket or a dash.
    ('(^|[\n ([{<-])"', "\\1 `` "),
    ('"', " '' "),
    ("(^|[\n ([{<]|``)'(tis|twas|n|em|[0-9][0-9]s?)\\b", f"\\1 {_QUOTE}\\2"),
    ("(^|[\n ([{<])'([^ '\n])", "\\1 ` \\2"),
    ("\\(", " -lrb- "),
    ("\\)", " -rrb- "),
    ("\\[", " -lsb- "),
    ("\\]", " -rsb- "),
    ("\\{", " -lcb- "),
    ("\\}", " -rcb- "),
    ("([,;:?!%&<>\u00a9\u00ae\u00b0\u2022\u20ac\u2122])", " \\1 "),
    ("([$#@*=+]+)", " \\1 "),
    # A full stop at the end of a sentence; all others stay with their word.
    ("\\.((?: *(?:''|'|-r[rsc]b-))*) *(\n|$)", " .\\1\\2"),
    # Clitics.
    ("(?i)n't\\b", " n't"),
    ("(?i)([^ \n'])'(s|m|d|ll|re|ve)\\b", "\\1 '\\2"),
    ("([^ \n'])'( |\n|$)", "\\1 ' \\2"),
    ("(?i)\\b(can)(not)\\b", "\\1 \\2"),
    ("(?i)\\b(gon|wan)(na)\\b", "\\1 \\2"),
    ("(?i)\\b(got)(ta)\\b", "\\1 \\2"),
    (_STOP, "."),
    (_COMMA, ","),
    (_COLON, ":"),
    (_QUOTE, "'"),
    (_AND, "&"),
    (_DOTS, "..."),
    (" +", " "),
    (" ?\n[ \n]*", "\n"),
)

# The released code adds " ." to a line whose last character is none of these.
_ENDS = ".!?'`\")\u2019\u201d;"

# Marks of tokenized sentences: <s> </s> of See et al., <t> </t> of later releases.
MARK = re.compile("</?[st]>")
_MARKED = re.compile(r"\s*<([st])>.*</\1>\s*", re.DOTALL)


@functools.cache
def _compiled() -> list[tuple[re.Pattern, str]]:
    return [(re.compile(pattern, re.ASCII), replacement) for pattern, replacement in RULES]


def lower(text: str) -> str:
    """Lowers A-Z alone, as Python 2 and `tf.strings.lower` do."""
    return text.encode("utf-8", "replace").lower().decode("utf-8")


def end_sentence(line: str) -> str:
    """Adds " ." to a line of tokens that has no end (the released XSum preprocessing).

    Example:

    >>> end_sentence("rain is expected"), end_sentence("is it ?")
    ('rain is expected .', 'is it ?')
    """
    line = line.strip(" ")
    if not line or line[-1] in _ENDS:
        return line
    return f"{line} ."


def is_marked(text: str) -> bool:
    """Whether a text is sentences between <s> and </s> or <t> and </t> from start to end.

    One that has such a tag only somewhere, as struck out words of a web page, is not.

    Example:

    >>> is_marked("<t> it rains . </t> <t> wet . </t>"), is_marked("It <s>rains</s> snows.")
    (True, False)
    """
    return _MARKED.fullmatch(text) is not None


def split_tokenized(text: str) -> list[str]:
    """Splits a text that is tokenized already into sentences.

    They stand between <s> and </s> or <t> and </t>, or else end with a line or with a full stop,
    question mark or exclamation mark. Marks are no words, wherever they stand.

    Example:

    >>> split_tokenized("she said : `` no . '' he left .")
    ["she said : `` no . ''", 'he left .']
    >>> split_tokenized("<s> it rains . </s> <s> a . b . </s>")
    ['it rains .', 'a . b .']
    """
    if is_marked(text):
        found = MARK.split(text)
    else:
        text = MARK.sub("\n", text)
        ended = re.sub(r"((?: |^)[.?!](?: ''| '|(?i: -rrb-| -rsb-))*) +", r"\1\n", text)
        found = ended.split("\n")
    return [line.strip() for line in found if line.strip()]


def sentences(text: str) -> list[str]:
    r"""Splits a text into sentences of lowercase tokens.

    Args:
        text: raw text. A line break always ends a sentence.

    Returns:
        The sentences that are not empty, tokens with one blank between them.

    Example:

    >>> sentences('Mr. Ray said: "It can\'t rain (now)." He left')
    ["mr. ray said : `` it ca n't rain -lrb- now -rrb- . ''", 'he left .']
    """
    for pattern, replacement in _compiled():
        text = pattern.sub(replacement, text)
    return [end_sentence(line.strip(" ")) for line in lower(text).split("\n") if line.strip(" ")]


def tokens(text: str) -> list[str]:
    """Returns the lowercase tokens of a text, one sentence after the other.

    Example:

    >>> tokens("It's £1,000.")
    ['it', "'s", '#', '1,000', '.']
    """
    return [token for sentence in sentences(text) for token in sentence.split(" ")]


def tokens_in_graph(text, limit: int = 10_000, byte_limit: int = 1_000_000):
    """Does what `tokens` does with core TensorFlow operations, for exports.

    Args:
        text: string tensor (batch,). Bytes that are no UTF-8 become U+FFFD.
        limit: tokens kept of a text.
        byte_limit: bytes read of a text.

    Returns:
        `tf.RaggedTensor` of strings (batch, tokens), the same tokens as `tokens` gives.
    """
    import tensorflow as tf

    text = tf.strings.substr(text, 0, byte_limit)
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    for pattern, replacement in RULES:
        text = tf.strings.regex_replace(text, pattern, replacement)
    text = tf.strings.lower(text)
    text = tf.strings.regex_replace(text, "^[ \n]+|[ \n]+$", "")
    # A line that has no end gets one: mark all ends, then take the mark off where one was.
    text = tf.strings.regex_replace(text, "\n", " .\n")
    text = tf.strings.regex_replace(text, "([^ \n])$", "\\1 .")
    text = tf.strings.regex_replace(text, f"([{_ENDS}]) \\.(\n|$)", "\\1\\2")
    words = tf.strings.split(tf.strings.regex_replace(text, "[ \n]+", " "), " ")
    words = tf.ragged.boolean_mask(words, words != "")
    return words[:, :limit]


if __name__ == "__main__":
    for sentence in sentences(sys.stdin.read()):
        print(sentence)
