"""The language of a log: which acts are looked for in it, and what needs English.

English has rules (`acts.toml`); other languages have tables (`languages/*.toml`): common words, by
which a text is known, stop words, negations, and phrases of acts, in which `*` stands for up to
five words.

Acts, what one sentence of one party does, and the reader that finds all of them in one pass.

A rule is tried only on sentences that hold one of its cues: most sentences hold few, so one pass
costs little. The acts of English are the rows of `acts.toml`.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from pollex.agents.embedded.events.sentences import (
    WORD_LISTS,
    ActHit,
    ConversationMove,
    Sentence,
    read_table_rows,
    split_word_set,
)
from pollex.conversations.conversation import Conversation
from pollex.prompts.domain import STOPWORDS

SpeakingParty = Literal["user", "assistant"]
SentenceMood = Literal["any", "question", "statement"]


@dataclass(frozen=True, slots=True)
class WordRule:
    """Words that show an act; `acts.toml` says what its fields are."""

    cues: frozenset[str]
    pattern: re.Pattern[str]
    sure: float
    unless: re.Pattern[str] | None = None
    mood: SentenceMood = "any"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that one sentence of one party does; `acts.toml` says what its fields are."""

    name: str
    party: SpeakingParty
    rules: tuple[WordRule, ...]
    after: frozenset[str] = frozenset()
    longest: int = 0


class Acts:
    """The acts of both parties, indexed by cue."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self.by_name = {act.name: act for act in acts}
        rules = []
        for act in self.by_name.values():
            for rule in act.rules:
                rules.append((act, rule))
        self._rules = rules
        indices = {}
        for party in ("user", "assistant"):
            for asking in (True, False):
                indices[party, asking] = CueIndex(self._rules, party, asking=asking)
        self._indices = indices

    def mark(self, moves: list[ConversationMove]) -> None:
        """Fill in what all sentences and moves do, move by move."""
        # what the other party did in the move before, which some acts need
        before: Collection[str] = ()
        for move in moves:
            for sentence in move.sentences:
                self._mark(sentence, before, move.role)
            move.acts = choose_surest_sentences(move.sentences)
            # a block of code is an act to what comes after it
            before = {*move.acts, "gives_code"} if move.code else move.acts

    def _mark(
        self,
        sentence: Sentence,
        before: Collection[str],
        party: str,
    ) -> None:
        hits = sentence.hits
        low = sentence.low
        for act, rule in self._indices[party, sentence.asking].rules_of(sentence.bag):
            if act.after and act.after.isdisjoint(before):
                continue
            # a rule that is as sure has matched, or the sentence is too long for the act
            earlier_hit = hits.get(act.name)
            if (earlier_hit and earlier_hit.sure >= rule.sure) or (
                act.longest and len(sentence.words) > act.longest
            ):
                continue

            match = rule.pattern.search(low)
            if match is not None and (rule.unless is None or rule.unless.search(low) is None):
                detail = ""
                if "detail" in rule.pattern.groupindex:
                    detail = match["detail"] or ""
                start = sentence.start
                hits[act.name] = ActHit(
                    act.name,
                    rule.sure,
                    start + match.start(),
                    start + match.end(),
                    detail,
                )


def choose_surest_sentences(sentences: Iterable[Sentence]) -> dict[str, Sentence]:
    """Return the surest sentence of each act; the first of equals."""
    surest: dict[str, Sentence] = {}
    for sentence in sentences:
        for act, hit in sentence.hits.items():
            if act not in surest or hit.sure > surest[act].hits[act].sure:
                surest[act] = sentence

    return surest


class CueIndex:
    """The rules for sentences of one party that ask or state, by their cues."""

    def __init__(
        self,
        rules: Sequence[tuple[Act, WordRule]],
        party: str,
        *,
        asking: bool,
    ) -> None:
        mood = "question" if asking else "statement"
        matching_rules = []
        for act, rule in rules:
            if act.party == party and rule.mood in ("any", mood):
                matching_rules.append((act, rule))
        self._rules = matching_rules
        self._by_cue: defaultdict[str, list[int]] = defaultdict(list)
        for number, (_, rule) in enumerate(self._rules):
            for cue in rule.cues:
                self._by_cue[cue].append(number)

        self._cues = frozenset(self._by_cue)
        # the same few cues come again and again
        self._known = lru_cache(maxsize=4096)(self._rules_by)

    def rules_of(self, words: frozenset[str]) -> Sequence[tuple[Act, WordRule]]:
        """Return the rules that have one of these words as a cue, in their order."""
        return self._known(words & self._cues)

    def _rules_by(self, cues: frozenset[str]) -> Sequence[tuple[Act, WordRule]]:
        numbers = set().union(*map(self._by_cue.__getitem__, cues))
        return [self._rules[number] for number in sorted(numbers)]


def _make_word_rule(
    cues: str,
    pattern: str,
    sure: float = 0.9,
    unless: str = "",
    mood: SentenceMood = "any",
) -> WordRule:
    return WordRule(
        split_word_set(cues),
        re.compile(pattern),
        sure,
        re.compile(unless) if unless else None,
        mood,
    )


def read_acts(path: Path) -> Acts:
    """Read the acts of a table."""
    acts = []
    for _, name, row in read_table_rows(path):
        acts.append(
            Act(
                name,
                row["party"],
                tuple(_make_word_rule(**rule) for rule in row["rules"]),
                split_word_set(row.get("after", "")),
                row.get("longest", 0),
            )
        )
    return Acts(acts)


ACTS_TABLE_PATH = Path(__file__).with_name("acts.toml")
ENGLISH_ACTS = read_acts(ACTS_TABLE_PATH)


ENGLISH_LANGUAGE_NAME = "English"
MIN_ENGLISH_SHARE, CLEARLY_ENGLISH_SHARE, MIN_OTHER_LANGUAGE_SHARE = 0.12, 0.2, 0.15
"""Share of words that are a language's commonest: .25 to .4 in prose of it, .01 to .12 in other languages."""
MAX_CONVERSATIONS_READ = 200
MIN_WORDS_OF_LOG, MIN_WORDS_OF_CONVERSATION = 50, 8
"""Words of a log, and of one conversation, that its language is told by."""
MAX_MOVES_READ_PER_CONVERSATION, MAX_SENTENCES_READ_PER_MOVE = 4, 3
"""Moves of a conversation that are looked at for that, and sentences of each."""
MIN_LANGUAGE_SURENESS = 0.85

_COMMON_ENGLISH_WORDS = WORD_LISTS["commonest"]
_WORD_REGEX = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE_REGEX = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True)
class OtherLanguage:
    """A language that isn't English.

    Attributes:
        common: The words by which it is known.
        stop: Words that say nothing alone.
        negated: Its negations, and its words for failures.
    """

    name: str
    common: frozenset[str]
    stop: frozenset[str]
    acts: Acts
    negated: re.Pattern[str]


@cache
def load_other_languages() -> tuple[OtherLanguage, ...]:
    """Load the tables."""
    return tuple(
        map(
            _load_language,
            sorted((Path(__file__).parent / "languages").glob("*.toml")),
        )
    )


def _load_language(path: Path) -> OtherLanguage:
    table = tomllib.loads(path.read_text("utf-8"))
    # negations and failures in one pattern, negations alone to rule phrases out
    negations = "|".join(map(re.escape, table["negations"].split()))
    phrases = {}
    for party in table["acts"].values():
        for name, phrase in party.items():
            phrases[name] = phrase

    # a phrase shows an act that English has, by the same party
    acts = (ENGLISH_ACTS.by_name[name] for name in phrases)
    translated_acts = []
    for act in acts:
        translated_acts.append(
            Act(
                act.name,
                act.party,
                tuple(_make_phrase_rule(phrase, negations) for phrase in phrases[act.name]),
            )
        )
    return OtherLanguage(
        name=table["name"],
        common=split_word_set(table["common"]),
        stop=split_word_set(table["stop"]) | split_word_set(table["common"]),
        negated=re.compile(
            rf"(?<!\w)(?:{negations}|{'|'.join(map(re.escape, table['failures']))})(?!\w)"
        ),
        acts=Acts(translated_acts),
    )


def _make_phrase_rule(phrase: str, negations: str) -> WordRule:
    """Make the rule of a phrase; one without a negation is ruled out by one before it or within it."""
    words = []
    for part in phrase.split():
        words.extend(_WORD_REGEX.findall(part) or [part])

    has_negation = re.search(rf"\b(?:{negations})\b", phrase)
    # `*` stands for up to five words; "can offer you nothing" is no offer
    any_word = r"\w+" if has_negation else rf"(?!(?:{negations})\b)\w+"
    pattern = r"\W+".join(map(re.escape, words)).replace(
        r"\W+\*\W+", rf"\W+(?:{any_word}\W+){{0,5}}?"
    )
    denied = None
    if not has_negation:
        denied = rf"(?<!\w)(?:{negations})\W+(?:\w+\W+)?{pattern}"

    return WordRule(
        # only sentences with the phrase's longest word are searched
        frozenset({max(words, key=len)}),
        re.compile(rf"(?<!\w){pattern}(?!\w)"),
        MIN_LANGUAGE_SURENESS,
        re.compile(denied) if denied else None,
    )


def choose_acts_by_language(moves: Sequence[ConversationMove]) -> Acts:
    """Return the acts of the language that a conversation is in; those of English where that isn't clear."""
    # the first sentences are enough
    bags = []
    for move in moves[:MAX_MOVES_READ_PER_CONVERSATION]:
        for sentence in move.sentences[:MAX_SENTENCES_READ_PER_MOVE]:
            bags.append(sentence.bag)

    count = sum(map(len, bags))
    english = sum(len(bag & _COMMON_ENGLISH_WORDS) for bag in bags) / max(1, count)
    if (
        count < MIN_WORDS_OF_CONVERSATION or english >= CLEARLY_ENGLISH_SHARE
    ):  # nearly always, after some microseconds
        return ENGLISH_ACTS

    language = _find_nearest_language(list(chain.from_iterable(bags)), english)
    return language.acts if language else ENGLISH_ACTS


def is_negated_in_other_language(low: str) -> bool:
    """Return whether a text in one of the other languages denies something, or tells of a failure."""
    words = _WORD_REGEX.findall(low)
    english = measure_common_word_share(words, _COMMON_ENGLISH_WORDS)
    if not words or english >= CLEARLY_ENGLISH_SHARE:
        return False

    language = _find_nearest_language(words, english)
    return bool(language and language.negated.search(low))


def detect_log_language(conversations: Sequence[Conversation]) -> str:
    """Return the name of the language of a log's users; empty where it is none with a table. Short logs are English."""
    words = _collect_user_words(conversations)
    # English is tried first, as it settles most logs
    english = measure_common_word_share(words, _COMMON_ENGLISH_WORDS)
    if len(words) < MIN_WORDS_OF_LOG or english >= CLEARLY_ENGLISH_SHARE:
        return ENGLISH_LANGUAGE_NAME

    language = _find_nearest_language(words, english)
    if language:
        return language.name
    # some English, and no other language near enough
    if english >= MIN_ENGLISH_SHARE:
        return ENGLISH_LANGUAGE_NAME
    return ""


def list_stopwords(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing alone, beside those of English."""
    stop_sets = []
    for table in load_other_languages():
        if table.name == language:
            stop_sets.append(table.stop)
    return STOPWORDS.union(*stop_sets)


def measure_common_word_share(words: Sequence[str], common: frozenset[str]) -> float:
    """Return the share of words that are common ones of a language."""
    return sum(word in common for word in words) / max(1, len(words))


def _find_nearest_language(words: Sequence[str], english: float) -> OtherLanguage | None:
    """Return the language that most words are common ones of; None where that is English, or none."""
    # names come before the tables, which can't be compared where shares are equal
    shares = []
    for language in load_other_languages():
        shares.append((measure_common_word_share(words, language.common), language.name, language))
    share, _, nearest = max(shares)
    return nearest if share >= max(MIN_OTHER_LANGUAGE_SHARE, english) else None


def _collect_user_words(conversations: Iterable[Conversation]) -> list[str]:
    words: list[str] = []
    for conversation in islice(conversations, MAX_CONVERSATIONS_READ):
        for turn in conversation.turns:
            if turn.role == "user":
                # code is in no language, and the first 1,000 characters of a turn are enough
                for word in _WORD_REGEX.findall(
                    _CODE_REGEX.sub(" ", turn.content[:1000]).replace("’", "'")
                ):
                    words.append(word.lower())

    return words


def explain_rubrics_lacking_by_language(conversations: Sequence[Conversation]) -> str:
    """Return which rubrics a log lacks because of its language; empty where it lacks none."""
    language = detect_log_language(conversations)
    if language == ENGLISH_LANGUAGE_NAME:
        return ""
    if language:
        return (
            f"The log is in {language}: events are found by a table of its words; topics, and signals of wording such "
            "as thanks and apologies, need English"
        )

    names = ", ".join(language.name for language in load_other_languages())
    return (
        f"the log is in none of English, {names}: rubrics of events, of topics and of wording (thanks, apologies, "
        "complaints) need one of them, and bare words are left out; what stands here rests on lengths and on form"
    )
