"""Key nouns of a log: what its requests, offers and actions are about.

Key nouns are more frequent here than in English in general. There is no part-of-speech tagger: a
noun is the last word of a run of words after a determiner.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log10

from pollex.agents.embedded.events.sentences import FUNCTION_WORDS, WORDS, Move, Sentence, stem

# share and number of conversations, and powers of ten more than in English
LEAST_SHARE = 0.03
LEAST_COUNT = 3
LEAST_KEYNESS = 0.7
MOST_KEY_NOUNS = 60
# shares of mentions: as a noun at least, with a capital at most, behind an article at least
NOUN_SHARE = 0.5
PROPER_SHARE = 0.4
SHOWN_SHARE = 0.1
ARTICLES = frozenset({"a", "an", "the", "your", "my", "our"})
"""Only a noun stands at the end of a phrase that one of these opens; after `that` or `no` many a word does."""

ABOUT = frozenset(
    {"requests", "asks", "offers", "asks_back", "changes", "asks_other", "proposes", "none_found"}
)
ACTING = frozenset({"fails", "done", "proposes", "confirms", "unavailable"})
"""Acts whose sentences name what is done rather than what it is done to."""

GENERAL = WORDS["general_nouns"]
DETERMINERS = WORDS["determiners"]
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?(?:-[a-z]+)*|\d+|[^\sa-z\d]")


@dataclass
class Nouns:
    """Key nouns with what is counted of them.

    Attributes:
        key: By stem, how many powers of ten it is more frequent than in English at large.
        share: By stem, the share of conversations with a request, an offer or a question about it.
        acted: By stem, the share of its mentions in sentences of the assistant that act.
        forms: By stem, how often each written form comes.
    """

    key: dict[str, float]
    share: dict[str, float]
    acted: dict[str, float]
    forms: dict[str, Counter[str]] = field(default_factory=dict)


def find_noun_heads(sentence: Sentence) -> Iterator[tuple[int, str, str]]:
    """Yield heads of noun phrases: place in the sentence, stem, written form."""
    for _, run in _find_noun_phrases(sentence):
        yield run[-1][0], stem(run[-1][1]), run[-1][1]


def _find_noun_phrases(sentence: Sentence) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield noun phrases: the word that opens each, and its words with their places."""
    run: list[tuple[int, str]] = []
    opened = ""
    for match in _TOKEN.finditer(sentence.low):
        token = match.group()
        plain = token[0].isalpha() and token not in FUNCTION_WORDS and token not in DETERMINERS
        # up to four plain words go on with a phrase, anything else ends it
        if opened and plain and len(run) < 4:
            run.append((match.start(), token))
            continue
        if run:
            yield opened, run
        run = []
        opened = ""
        if token in DETERMINERS or token.isdigit():
            opened = token

    if run:
        yield opened, run


def learn_key_nouns(log: Sequence[Sequence[Move]]) -> Nouns:
    """Learn the key nouns of a log from its moves."""
    from wordfreq import zipf_frequency  # half a second; only learning needs it

    count = _count_log_words(log)
    least = max(LEAST_COUNT, LEAST_SHARE * len(log))
    key = {}
    for noun, mentions in count.about.items():
        if mentions < least or noun in GENERAL or len(noun) < 3 or not count.words[noun]:
            continue
        # mostly a noun, now and then behind an article, and not mostly a name
        if (
            count.heads[noun] < NOUN_SHARE * count.inside[noun]
            or count.shown[noun] < SHOWN_SHARE * count.heads[noun]
            or count.proper[noun] > PROPER_SHARE * count.middle[noun]
        ):
            continue

        form = count.forms[noun].most_common(1)[0][0]
        # English frequency of the stem or of its commonest form, whichever is higher
        general = max(
            zipf_frequency(form, "en"),
            zipf_frequency(noun, "en"),
            1.0,
        )
        # both on the Zipf scale: the logarithm of mentions in a billion words
        key[noun] = log10(count.words[noun] / count.total * 1e9) - general

    key = {noun: value for noun, value in key.items() if value >= LEAST_KEYNESS}
    # the commonest and most telling first
    best = sorted(key, key=lambda noun: (-count.about[noun] * key[noun], noun))[:MOST_KEY_NOUNS]
    return Nouns(
        {noun: key[noun] for noun in best},
        {noun: count.about[noun] / len(log) for noun in best},
        {noun: count.acted[noun] / max(1, count.words[noun]) for noun in best},
        {noun: count.forms[noun] for noun in best},
    )


@dataclass
class _Count:
    # by stem: conversations about it, and mentions of each kind
    about: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    acted: Counter[str] = field(default_factory=Counter)
    heads: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    proper: Counter[str] = field(default_factory=Counter)
    middle: Counter[str] = field(default_factory=Counter)
    forms: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    total: int = 0


def _count_log_words(log: Sequence[Sequence[Move]]) -> _Count:
    count = _Count()
    for moves in log:
        about: set[str] = set()
        for place, move in enumerate(moves):
            for sentence in move.sentences:
                heads = {(head, form) for _, head, form in find_noun_heads(sentence)}
                _count_words(count, move, sentence, heads)
                # a first message is about something, whatever its acts are
                opening = place == 0 and move.role == "user"
                if (
                    opening
                    or (ABOUT if move.role == "user" else ABOUT | ACTING) & sentence.hits.keys()
                ):
                    about.update(head for head, _ in heads)

        count.about.update(about)

    return count


def _count_words(
    count: _Count,
    move: Move,
    sentence: Sentence,
    heads: set[tuple[str, str]],
) -> None:
    count.total += len(sentence.words)
    stems = [stem(word) for word in sentence.words]
    count.words.update(stems)
    count.inside.update(set(stems))
    count.heads.update(head for head, _ in heads)
    shown_stems = set()
    for opened, run in _find_noun_phrases(sentence):
        if opened in ARTICLES or opened.isdigit():
            shown_stems.add(stem(run[-1][1]))
    count.shown.update(shown_stems)
    for head, form in heads:
        count.forms[head][form] += 1

    if move.role == "assistant" and ACTING & sentence.hits.keys():
        count.acted.update(set(stems))

    # a capital within a sentence marks a name
    for match in re.finditer(r"(?<=[a-z,] )[A-Za-z]+", sentence.text):
        word = stem(match.group().lower())
        count.middle[word] += 1
        count.proper[word] += match.group()[0].isupper()
