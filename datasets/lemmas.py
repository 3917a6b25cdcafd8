"""Words to lemmas, and the words that say nothing of a topic, without a download.

Stanford CoreNLP, which lemmatized the authors' data, looks inflected forms up in a large table.
Here suffixes are taken off where a corpus says so: "storms" is "storm" because the training
articles hold "storm", "news" stays. What has no rule is in a short list, to which WordNet's
exception lists (`noun.exc`, `verb.exc`; Debian's package wordnet-base) can be added.
"""

import functools
import os
import pathlib
import re
from collections.abc import Iterable, Mapping

# form=lemma, or a word that only looks inflected.
_IRREGULAR = """
am=be are=be is=be was=be were=be been=be being=be has=have had=have having=have does=do did=do
done=do doing=do goes=go went=go gone=go says=say said=say made=make took=take taken=take came=come
saw=see seen=see knew=know known=know got=get gotten=get gave=give given=give found=find
thought=think told=tell became=become left=leave felt=feel put=put brought=bring began=begin
begun=begin kept=keep held=hold wrote=write written=write stood=stand heard=hear let=let
meant=mean set=set met=meet ran=run paid=pay sat=sit spoke=speak spoken=speak lay=lie lain=lie
laid=lay led=lead read=read grew=grow grown=grow lost=lose fell=fall fallen=fall sent=send
built=build understood=understand drew=draw drawn=draw broke=break broken=break spent=spend
cut=cut rose=rise risen=rise drove=drive driven=drive bought=buy wore=wear worn=wear chose=choose
chosen=choose shot=shoot hit=hit won=win beat=beat beaten=beat fought=fight caught=catch
taught=teach sold=sell slept=sleep shook=shake shaken=shake flew=fly flown=fly threw=throw
thrown=throw hid=hide hidden=hide hung=hang stuck=stick stole=steal stolen=steal struck=strike
swam=swim swum=swim sang=sing sung=sing sank=sink sunk=sink swore=swear sworn=swear tore=tear
torn=tear woke=wake woken=wake bit=bite bitten=bite blew=blow blown=blow froze=freeze
frozen=freeze ate=eat eaten=eat forgot=forget forgotten=forget forgave=forgive
forgiven=forgive rode=ride ridden=ride shone=shine shown=show shrank=shrink sought=seek
spun=spin split=split spread=spread sprang=spring stung=sting swept=sweep dealt=deal dug=dig
fed=feed fled=flee bled=bleed bred=breed crept=creep leapt=leap lent=lend bent=bend bound=bind
wept=weep wound=wound overtook=overtake undertook=undertake withdrew=withdraw withdrawn=withdraw
men=man women=woman children=child people=people feet=foot teeth=tooth geese=goose mice=mouse
lice=louse oxen=ox wives=wife lives=life knives=knife leaves=leave wolves=wolf halves=half
thieves=thief shelves=shelf selves=self loaves=loaf calves=calf scarves=scarf crises=crisis
analyses=analysis bases=base theses=thesis oases=oasis diagnoses=diagnosis hypotheses=hypothesis
criteria=criterion phenomena=phenomenon bacteria=bacterium media=media data=data
fungi=fungus cacti=cactus alumni=alumnus sportsmen=sportsman policemen=policeman
firemen=fireman fishermen=fisherman gunmen=gunman businessmen=businessman chairmen=chairman
news series species means politics economics mathematics physics athletics gymnastics statistics
diabetes headquarters olympics paralympics games wales athens brussels texas paris los angeles
james charles thomas williams jones davies evans hughes adams roberts harris lewis phillips
reuters works sports goods arms clothes odds spurs rangers wolves=wolf always perhaps during
evening morning wedding ceiling something anything nothing everything thing king ring wing spring
string being housing pricing meeting building hundred indeed speed need seed feed breed united
christmas gas bus virus campus census bonus status focus minus plus canvas atlas lens chaos
hearing red bed shed wed led sled
"""

# Beside gensim's stop words: the Penn Treebank's clitics, and words of every news story.
_STOP_WORDS = """
's n't 're 've 'll 'd 'm ca wo sha ai -lrb- -rrb- -lsb- -rsb- -lcb- -rcb- `` '' -- ... ` '
say says said saying tell tells told telling add adds added adding ask asked asks like just also
able according actually allow allows ahead appear appears appreciate appropriate aside ask away
best better came causing certain certainly changes clearly come comes concerning consequently
consider considering contain containing corresponding course currently definitely described
despite did different does doing done else entirely especially et exactly example far few fifth
followed following follows furthermore gave gets getting given gives goes going gone got gotten
greetings happens hardly help hello hence hi hopefully ignored immediate inasmuch indeed indicate
indicated indicates instead inward keep keeps kept know known knows lately later least less lest
let likely little look looking looks mainly maybe mean means merely moreover nearly necessary need
needs new nevertheless non normally novel obviously oh ok okay old ones onto ought particular
particularly placed please plus possible presumably probably provides quite rd really reasonably
regarding regardless regards relatively respectively right saw second secondly see seeing seem
seemed seeming seems seen sensible sent serious seriously shall sorry specified specify specifying
sub sup sure take taken tends th thank thanks theirs things think thorough thoroughly thoughtful
today tomorrow tried tries truly try trying twice un unfortunately unless unlikely use used useful
uses using usually value various viz want wants way welcome went wish wonder yes yet zero
mr mrs ms dr sir ago year years day days time times week weeks month months make makes made making
monday tuesday wednesday thursday friday saturday sunday
""".split()


class Lemmatizer:
    """Finds the lemma of a word by its suffix and the words of a corpus.

    Args:
        counts: how often each lowercase word occurs in the training articles.
        exceptions: folder of WordNet's `noun.exc` and `verb.exc`, or None.

    Raises:
        ValueError: if `exceptions` holds neither file.

    Example:

    >>> lemmatizer = Lemmatizer({"storm": 3, "storms": 2, "stop": 5, "stopped": 4, "moving": 1})
    >>> [lemmatizer.lemma(word) for word in ("storms", "stopped", "moving", "women", "news")]
    ['storm', 'stop', 'moving', 'woman', 'news']
    """

    def __init__(self, counts: Mapping[str, int], exceptions: str | os.PathLike | None = None):
        self._counts = counts
        pairs = (entry.partition("=") for entry in _IRREGULAR.split())
        self._irregular = {form: lemma or form for form, _, lemma in pairs}
        if exceptions is not None:
            self._irregular = _read_exceptions(pathlib.Path(exceptions)) | self._irregular

    def lemma(self, word: str) -> str:
        """Returns the lemma of a lowercase word; the word itself where no rule is sure."""
        if word in self._irregular:
            return self._irregular[word]
        # Where the candidate is much rarer than the form, the form is a word of its own.
        enough = self._counts.get(word, 0) / 10
        found = [(self._counts.get(stem, 0), stem) for stem in _stems(word)]
        found = [(count, stem) for count, stem in found if count > 0 and count >= enough]
        return max(found, key=lambda pair: pair[0])[1] if found else word


def _stems(word: str) -> list[str]:
    """What a word may be an inflected form of, the likeliest first."""
    if not re.fullmatch("[a-z]{4,}", word):
        return []
    if word.endswith(("ies", "ied")):
        return [word[:-3] + "y", word[:-1]]
    if word.endswith(("ss", "us", "is")):
        return []
    if word.endswith("es"):
        return [word[:-1], word[:-2]]
    if word.endswith("s"):
        return [word[:-1]]
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem == word or len(stem) < 2 or not re.search("[aeiouy]", stem):
            continue
        stems = [stem, stem + "e"]
        if len(stem) > 2 and stem[-1] == stem[-2]:
            stems.append(stem[:-1])
        return stems
    return []


def _read_exceptions(folder: pathlib.Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (folder / "noun.exc", folder / "verb.exc"):
        if path.is_file():
            lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
            found |= {fields[0]: fields[1] for fields in lines if len(fields) > 1}
    if not found:
        raise ValueError(
            f"exceptions must be a folder with WordNet's noun.exc and verb.exc, got {folder}."
        )
    return found


@functools.cache
def stop_words() -> frozenset[str]:
    """The words that topics leave out: gensim's list and words of every news story.

    The released code takes NLTK's list and the SMART list (719 words), neither of which is part
    of an installed package; `datasets.topics --stop_words=FILE` adds one.
    """
    from gensim.parsing.preprocessing import STOPWORDS

    return STOPWORDS | frozenset(_STOP_WORDS)


def lemma_of_words(
    words: Iterable[str], lemmatizer: Lemmatizer, stop: frozenset[str]
) -> dict[str, str]:
    """Returns the lemma of each word that can say something of a topic.

    Stop words go, be it the word or its lemma that is one, and so do tokens without any letter or
    digit (the released code drops pieces of `string.punctuation`). Numbers stay, as there.

    Example:

    >>> lemma_of_words(["the", "storms", "--", "1,000"], Lemmatizer({"storm": 2}), {"the"})
    {'storms': 'storm', '1,000': '1,000'}
    """
    found = {}
    for word in words:
        if word in stop or not re.search("[^\\W_]", word):
            continue
        lemma = lemmatizer.lemma(word)
        if lemma not in stop:
            found[word] = lemma
    return found
