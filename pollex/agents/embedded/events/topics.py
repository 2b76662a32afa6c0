"""Topics of a log in its own words: objects, their parts, and actions on them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pollex.agents.embedded.events.nouns import (
    ACTS_ON_OBJECTS,
    GENERAL_NOUNS,
    KeyNouns,
    iterate_noun_heads,
    learn_key_nouns,
)
from pollex.agents.embedded.events.sentences import (
    WORD_LISTS,
    ConversationMove,
    Sentence,
    stem_word,
)

MAX_TOPICS = 16
NEIGHBOR_MOVES = 3
"""Moves before and after within which two nouns stand near each other."""
# share of mentions near its whole that makes a noun a part, and its lead over the next whole
MIN_SHARE_NEAR_WHOLE = 0.45
MIN_LEAD_OVER_NEXT_WHOLE = 0.12
MIN_ACTED_SHARE_OF_DEED_NOUN = 0.3
MIN_SHARE_BESIDE_OBJECTS = 0.3
"""A noun with such a share of mentions in acting sentences, and this share near other objects, names a deed."""
MIN_MENTIONS_OF_DEED = 4
WEIGHT_OF_PART = 0.5

ACTION_VERB_REGEX = re.compile(
    r"\b(?:unable to|able to|(?:could|can|did)(?:n't|not| not)|would you like(?: me)? to|do you "
    r"want(?: me)? to|should i|shall i|can i|(?:can|could|would) you(?: please| help me)?"
    r"|(?:like|want|need|wish) to|go ahead and|please|help you|help me|to) (?P<verb>[a-z]+)\b"
)
WEAK_VERBS = WORD_LISTS["weak_verbs"]
VERBS_WITHOUT_CONTENT = frozenset({"make", "get", "find", "change", "check", "complete", "process"})
"""Verbs that say something with an object alone: kept where no stronger one comes as often."""


@dataclass(frozen=True)
class LogTopic:
    """One object of the log.

    Attributes:
        name: The noun that stands for it, singular.
        form: As it is mostly written.
        nouns: Its own noun and those of its parts, by weight.
        deed: What is mostly done with it ("book a hotel room"); empty where nothing is.
        share: Of conversations.
    """

    name: str
    form: str
    nouns: dict[str, float]
    deed: str
    share: float


class LogTopics:
    """The topics of a log, and which of them a move is about."""

    def __init__(self, topics: Sequence[LogTopic]) -> None:
        self.topics = tuple(topics)
        deed_nouns = []
        for topic in self.topics:
            deed_nouns.append(
                frozenset(map(stem_word, topic.deed.split()[1:])) - {"a", "an", topic.name}
            )

        self.deed_nouns = deed_nouns
        of_noun = {}
        for i, topic in enumerate(self.topics):
            for noun, weight in topic.nouns.items():
                of_noun[noun] = (i, weight)

        self.of_noun = of_noun
        # written forms of all nouns: a sentence without any is passed over at once
        forms: list[str] = []
        for noun in self.of_noun:
            forms.extend((noun, make_noun_plural(noun), f"{noun}s", f"{noun}'s"))
        self._forms = frozenset(forms)

    def mentioned(self, move: ConversationMove) -> dict[int, float]:
        """Return the weight of each topic that a move names."""
        weights: dict[int, float] = {}
        for sentence in move.sentences:
            if not self._forms.isdisjoint(sentence.bag):
                for word in sentence.words:
                    topic, weight = self.of_noun.get(stem_word(word), (-1, 0.0))
                    if topic >= 0:
                        weights[topic] = weights.get(topic, 0.0) + weight

        return weights

    def words_of(self, topics: Iterable[int]) -> frozenset[str]:
        """Return the stems that name any of the topics, or the object of its action."""
        return frozenset().union(*({*self.topics[i].nouns, *self.deed_nouns[i]} for i in topics))

    def named(self, moves: Iterable[ConversationMove], topics: Iterable[int]) -> bool:
        """Return whether moves name any of the topics, or the object of its action."""
        topic_words = self.words_of(topics)
        for move in moves:
            for sentence in move.sentences:
                if not topic_words.isdisjoint(map(stem_word, sentence.words)):
                    return True
        return False

    def track(self, moves: Sequence[ConversationMove]) -> list[int]:
        """Return the topic of each move, carried over if it names none; −1 without any."""
        if not self.topics:
            return [-1] * len(moves)

        out: list[int] = []
        now = -1
        for move in moves:
            named = self.mentioned(move)
            if named:
                best = max(named, key=lambda topic: (named[topic], -topic))
                # the current topic stays while it is named nearly as much as the heaviest
                now = now if named.get(now, 0.0) >= 0.6 * named[best] else best
            out.append(now)

        # moves before the first topic are about that one
        first = next((topic for topic in out if topic >= 0), -1)
        return [first if topic < 0 else topic for topic in out]

    def to_json(self) -> list[dict[str, object]]:
        return [vars(topic) for topic in self.topics]

    @classmethod
    def from_json(cls, stored: Iterable[dict[str, Any]]) -> LogTopics:
        return cls([LogTopic(**topic) for topic in stored])


def learn_topics_of_log(log: Sequence[Sequence[ConversationMove]]) -> LogTopics:
    """Find the topics of a log from its moves."""
    if not log:
        return LogTopics(())

    # which nouns stand near each other, which are deeds, and which are parts of another
    nouns = learn_key_nouns(log)
    near, count = count_neighboring_nouns(log, frozenset(nouns.key))
    deeds = find_deed_nouns(nouns, near, count)
    parent = assign_parts_to_wholes(nouns, near, count, deeds)
    # a part is an object, even where much is done with it
    deeds -= parent.keys()
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for noun in nouns.key:
        if noun not in deeds:
            groups[find_whole_of_part(noun, parent)].append(noun)

    tops = sorted(groups, key=lambda top: (-nouns.share[top], top))[:MAX_TOPICS]
    topics = []
    for top in tops:
        weights = {}
        for noun in groups[top]:
            weights[noun] = nouns.key[noun] * (1.0 if noun == top else WEIGHT_OF_PART)

        topics.append(
            LogTopic(
                top,
                find_most_frequent_form(top, nouns),
                # parts count less than the topic's own noun
                weights,
                "",
                nouns.share[top],
            )
        )

    # deeds need the topics first, by which each move is known to be about one
    return add_deeds_to_topics(LogTopics(topics), log, nouns, deeds)


def count_neighboring_nouns(
    log: Sequence[Sequence[ConversationMove]], nouns: frozenset[str]
) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Count how often each noun occurs, and how often two occur within a few moves."""
    near: Counter[tuple[str, str]] = Counter()
    count: Counter[str] = Counter()
    for moves in log:
        here = []
        for move in moves:
            heads = set()
            for sentence in move.sentences:
                for _, head, _ in iterate_noun_heads(sentence):
                    heads.add(head)

            here.append(heads & nouns)

        # a noun counts once a move, and so does each noun around it
        for i, nouns_here in enumerate(here):
            around = set().union(*here[max(0, i - NEIGHBOR_MOVES) : i + NEIGHBOR_MOVES + 1])
            count.update(nouns_here)
            near.update((a, b) for a in nouns_here for b in around - {a})

    return near, count


def find_deed_nouns(
    nouns: KeyNouns,
    near: Counter[tuple[str, str]],
    count: Counter[str],
) -> set[str]:
    """Return nouns of actions that combine with many objects."""
    plain = []
    for noun in nouns.key:
        if nouns.acted[noun] < MIN_ACTED_SHARE_OF_DEED_NOUN:
            plain.append(noun)

    deed_nouns = set()
    for noun in nouns.key:
        if (
            nouns.acted[noun] >= MIN_ACTED_SHARE_OF_DEED_NOUN
            and sum(near[noun, other] for other in plain) >= MIN_SHARE_BESIDE_OBJECTS * count[noun]
        ):
            deed_nouns.add(noun)

    return deed_nouns


def assign_parts_to_wholes(
    nouns: KeyNouns,
    near: Counter[tuple[str, str]],
    count: Counter[str],
    deeds: set[str],
) -> dict[str, str]:
    """Assign nouns to the more frequent noun that they mostly occur near: its parts."""
    wholes = []
    for noun in nouns.key:
        if noun not in deeds:
            wholes.append(noun)

    parents = {}
    for noun in nouns.key:
        # wholes by the share of the noun's mentions that are near them
        candidates = []
        for whole in wholes:
            if can_be_whole_of_noun(whole, noun, nouns, count):
                candidates.append((near[noun, whole] / count[noun], whole))

        ranked = sorted(candidates, reverse=True)
        # a whole that is mostly near the best one is no rival to it
        rivals = []
        for share, whole in ranked[1:]:
            if near[whole, ranked[0][1]] < MIN_SHARE_NEAR_WHOLE * count[whole]:
                rivals.append(share)

        # mostly near its whole, and clearly nearer to it than to any rival
        if (
            ranked
            and ranked[0][0] >= MIN_SHARE_NEAR_WHOLE
            and ranked[0][0] - max(rivals, default=0.0) >= MIN_LEAD_OVER_NEXT_WHOLE
        ):
            parents[noun] = ranked[0][1]

    return parents


def can_be_whole_of_noun(
    whole: str,
    noun: str,
    nouns: KeyNouns,
    count: Counter[str],
) -> bool:
    """Return whether a noun can be the whole of another: more frequent, less acted on."""
    return count[whole] * (1 - nouns.acted[whole]) ** 3 > count[noun] * (1 - nouns.acted[noun]) ** 3


def find_whole_of_part(noun: str, parent: dict[str, str]) -> str:
    """Return the whole that a part belongs to, over several steps too."""
    # a circle of parts ends where it would begin again
    visited = {noun}
    while noun in parent and parent[noun] not in visited:
        noun = parent[noun]
        visited.add(noun)
    return noun


def find_most_frequent_form(noun: str, nouns: KeyNouns) -> str:
    """Return the most frequent form of a noun."""
    return nouns.forms[noun].most_common(1)[0][0]


def add_deeds_to_topics(
    topics: LogTopics,
    log: Sequence[Sequence[ConversationMove]],
    nouns: KeyNouns,
    deeds: set[str],
) -> LogTopics:
    """Add to each topic what is mostly done with it."""
    # verbs with their nouns, by topic; an act counts twice as much as a request
    pairs: defaultdict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for moves in log:
        for move, topic in zip(moves, topics.track(moves), strict=True):
            for sentence in move.sentences:
                if ACTS_ON_OBJECTS & sentence.hits.keys():
                    weight = 2
                elif "requests" in sentence.hits:
                    weight = 1
                else:
                    weight = 0

                if weight:
                    for verb, noun in pair_verbs_with_nouns(sentence, topics, deeds):
                        # an object has its own topic, a deed's noun that of the move
                        where = topics.of_noun[noun][0] if noun in topics.of_noun else topic
                        pairs[where][verb, noun] += weight

    named = []
    for i, log_topic in enumerate(topics.topics):
        # often enough; of these, strong verbs that come nearly as often as the first
        ranked = []
        for pair, n in pairs[i].most_common():
            if n >= MIN_MENTIONS_OF_DEED:
                ranked.append((pair, n))

        strong = []
        for pair, n in ranked:
            if pair[0] not in VERBS_WITHOUT_CONTENT and n >= 0.4 * ranked[0][1]:
                strong.append(pair)

        if strong:
            best = strong[0]
        elif ranked:
            best = ranked[0][0]
        else:
            best = None

        # a part of the topic that the log never names in one breath with it
        alone = (
            best is not None
            and best[1] in log_topic.nouns
            and not form_one_noun_phrase(log, log_topic.name, best[1])
        )
        what = best and prefix_object_with_topic(log_topic, best[1], nouns, alone=alone)
        deed = f"{best[0]} {what}" if best else ""
        named.append(
            LogTopic(
                log_topic.name,
                log_topic.form,
                log_topic.nouns,
                deed,
                log_topic.share,
            )
        )

    return LogTopics(named)


def form_one_noun_phrase(
    log: Sequence[Sequence[ConversationMove]],
    first: str,
    second: str,
) -> bool:
    """Return whether the log has two nouns as one: "hotel room", but hardly "deposit tandem"."""
    stems = (
        [stem_word(word) for word in sentence.words]
        for moves in log
        for move in moves
        for sentence in move.sentences
    )
    return any(pair == (first, second) for words in stems for pair in pairwise(words))


def pair_verbs_with_nouns(
    sentence: Sentence, topics: LogTopics, deeds: set[str]
) -> list[tuple[str, str]]:
    """Pair verbs with the noun that follows them directly."""
    heads = []
    for at, head, _ in iterate_noun_heads(sentence):
        if head in topics.of_noun or head in deeds:
            heads.append((at, head))

    deeds_with_objects = []
    for match in ACTION_VERB_REGEX.finditer(sentence.low):
        verb = match.group("verb")
        if verb in WEAK_VERBS and verb not in VERBS_WITHOUT_CONTENT:
            continue
        # objects right behind the verb, of which the nearest counts
        after = []
        for at, head in heads:
            if 0 < at - match.end() <= 24:
                after.append((at, head))

        if after and verb not in GENERAL_NOUNS:
            deeds_with_objects.append((verb, min(after)[1]))

    return deeds_with_objects


def prefix_object_with_topic(
    topic: LogTopic,
    noun: str,
    nouns: KeyNouns,
    *,
    alone: bool,
) -> str:
    """Put the topic before an object that could belong to several, "a restaurant reservation", unless it is alone."""
    form = find_most_frequent_form(noun, nouns)
    # a form other than the stem is a plural, and takes no article
    many = form != noun
    if alone or topic.name in noun:
        return form if many else add_indefinite_article(form)

    whole = f"{topic.name} {form}"
    return whole if many else add_indefinite_article(whole)


MASS_NOUNS = WORD_LISTS["mass_nouns"]


def add_indefinite_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    if noun.rsplit(maxsplit=1)[-1] in MASS_NOUNS:
        return noun

    # “a unit”, “a one”: vowels in writing, but not in speech
    vowel = noun[0] in "aeiou" and not re.match(r"(?:uni|use|usu|eu|one)", noun)
    return f"{'an' if vowel else 'a'} {noun}"


def make_noun_plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun in MASS_NOUNS or (noun.endswith("s") and not noun.endswith(("ss", "us", "bus"))):
        return noun
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:s|x|ch|sh)$", noun) else "s")


def name_topics_for_readers(
    topics: LogTopics, log: Sequence[Sequence[ConversationMove]]
) -> list[str]:
    """Name topics as people read them: by a plural that the log has, else as they are mostly written."""
    written: set[str] = set()
    for moves in log:
        for move in moves:
            for sentence in move.sentences:
                written.update(sentence.words)
    names: list[str] = []
    for topic in topics.topics:
        names.append(
            make_noun_plural(topic.name) if make_noun_plural(topic.name) in written else topic.form
        )

    return names


def join_with_or(names: Sequence[str]) -> str:
    """Join names into one phrase: "a, b or c"."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
