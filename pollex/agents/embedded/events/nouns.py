"""Key nouns of a log: what its requests, offers and actions are about.

Key nouns are more frequent here than in English in general. There is no part-of-speech tagger: a
noun is the last word of a run of words after a determiner.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log10

from pollex.agents.embedded.events.sentences import (
    FUNCTION_WORDS,
    WORD_LISTS,
    ConversationMove,
    Sentence,
    stem_word,
)

# share and number of conversations, and powers of ten more than in English
MIN_NOUN_CONVERSATION_SHARE = 0.03
MIN_NOUN_CONVERSATIONS = 3
MIN_KEYNESS = 0.7
MAX_KEY_NOUNS = 60
# shares of mentions: as a noun at least, with a capital at most, behind an article at least
MIN_NOUN_PHRASE_HEAD_SHARE = 0.5
MAX_CAPITALIZED_SHARE = 0.4
MIN_SHARE_BEHIND_ARTICLE = 0.1
ARTICLES = frozenset({"a", "an", "the", "your", "my", "our"})
"""Only a noun stands at the end of a phrase that one of these opens; after `that` or `no` many a word does."""

ACTS_ABOUT_OBJECTS = frozenset(
    {"requests", "asks", "offers", "asks_back", "changes", "asks_other", "proposes", "none_found"}
)
ACTS_ON_OBJECTS = frozenset({"fails", "done", "proposes", "confirms", "unavailable"})
"""Acts whose sentences name what is done rather than what it is done to."""

GENERAL_NOUNS = WORD_LISTS["general_nouns"]
DETERMINERS = WORD_LISTS["determiners"]
_TOKEN_REGEX = re.compile(r"[a-z]+(?:'[a-z]+)?(?:-[a-z]+)*|\d+|[^\sa-z\d]")


@dataclass
class KeyNouns:
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


def iterate_noun_heads(sentence: Sentence) -> Iterator[tuple[int, str, str]]:
    """Yield heads of noun phrases: place in the sentence, stem, written form."""
    for _, run in _iterate_noun_phrases(sentence):
        yield run[-1][0], stem_word(run[-1][1]), run[-1][1]


def _iterate_noun_phrases(sentence: Sentence) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield noun phrases: the word that opens each, and its words with their places."""
    run: list[tuple[int, str]] = []
    opened = ""
    for match in _TOKEN_REGEX.finditer(sentence.low):
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


def learn_key_nouns(log: Sequence[Sequence[ConversationMove]]) -> KeyNouns:
    """Learn the key nouns of a log from its moves."""
    from wordfreq import zipf_frequency  # half a second; only learning needs it

    count = _count_nouns_of_log(log)
    least = max(MIN_NOUN_CONVERSATIONS, MIN_NOUN_CONVERSATION_SHARE * len(log))
    key = {}
    for noun, mentions in count.about.items():
        if mentions < least or noun in GENERAL_NOUNS or len(noun) < 3 or not count.words[noun]:
            continue
        # mostly a noun, now and then behind an article, and not mostly a name
        if (
            count.heads[noun] < MIN_NOUN_PHRASE_HEAD_SHARE * count.inside[noun]
            or count.shown[noun] < MIN_SHARE_BEHIND_ARTICLE * count.heads[noun]
            or count.proper[noun] > MAX_CAPITALIZED_SHARE * count.middle[noun]
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

    key = {noun: value for noun, value in key.items() if value >= MIN_KEYNESS}
    # the commonest and most telling first
    best = sorted(key, key=lambda noun: (-count.about[noun] * key[noun], noun))[:MAX_KEY_NOUNS]
    return KeyNouns(
        {noun: key[noun] for noun in best},
        {noun: count.about[noun] / len(log) for noun in best},
        {noun: count.acted[noun] / max(1, count.words[noun]) for noun in best},
        {noun: count.forms[noun] for noun in best},
    )


@dataclass
class _NounCounts:
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


def _count_nouns_of_log(log: Sequence[Sequence[ConversationMove]]) -> _NounCounts:
    count = _NounCounts()
    for moves in log:
        about: set[str] = set()
        for place, move in enumerate(moves):
            for sentence in move.sentences:
                heads = {(head, form) for _, head, form in iterate_noun_heads(sentence)}
                _count_nouns_of_sentence(count, move, sentence, heads)
                # a first message is about something, whatever its acts are
                opening = place == 0 and move.role == "user"
                if (
                    opening
                    or (
                        ACTS_ABOUT_OBJECTS
                        if move.role == "user"
                        else ACTS_ABOUT_OBJECTS | ACTS_ON_OBJECTS
                    )
                    & sentence.hits.keys()
                ):
                    about.update(head for head, _ in heads)

        count.about.update(about)

    return count


def _count_nouns_of_sentence(
    count: _NounCounts,
    move: ConversationMove,
    sentence: Sentence,
    heads: set[tuple[str, str]],
) -> None:
    count.total += len(sentence.words)
    stems = [stem_word(word) for word in sentence.words]
    count.words.update(stems)
    count.inside.update(set(stems))
    count.heads.update(head for head, _ in heads)
    shown_stems = set()
    for opened, run in _iterate_noun_phrases(sentence):
        if opened in ARTICLES or opened.isdigit():
            shown_stems.add(stem_word(run[-1][1]))
    count.shown.update(shown_stems)
    for head, form in heads:
        count.forms[head][form] += 1

    if move.role == "assistant" and ACTS_ON_OBJECTS & sentence.hits.keys():
        count.acted.update(set(stems))

    # a capital within a sentence marks a name
    for match in re.finditer(r"(?<=[a-z,] )[A-Za-z]+", sentence.text):
        word = stem_word(match.group().lower())
        count.middle[word] += 1
        count.proper[word] += match.group()[0].isupper()
