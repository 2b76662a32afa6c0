"""Acts, what one sentence of one party does, and the reader that finds all of them in one pass.

A rule is tried only on sentences that hold one of its cues: most sentences hold few, so one pass costs little. The acts
of English are the rows of `acts.toml`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pollex.agents.embedded.events.sentences import Hit, Move, Sentence, word_set
from pollex.agents.embedded.rules import rows

Party = Literal["user", "assistant"]
Mood = Literal["any", "question", "statement"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Words that show an act; `acts.toml` says what its fields are."""

    cues: frozenset[str]
    pattern: re.Pattern[str]
    sure: float
    unless: re.Pattern[str] | None = None
    mood: Mood = "any"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that one sentence of one party does; `acts.toml` says what its fields are."""

    name: str
    party: Party
    rules: tuple[Rule, ...]
    after: frozenset[str] = frozenset()
    longest: int = 0


class Acts:
    """The acts of both parties, indexed by cue."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self.by_name = {act.name: act for act in acts}
        self._rules = [(act, one) for act in self.by_name.values() for one in act.rules]
        self._indices = {
            (party, asking): Cues(self._rules, party, asking=asking)
            for party in ("user", "assistant")
            for asking in (True, False)
        }

    def mark(self, moves: list[Move]) -> None:
        """Fill in what all sentences and moves do, move by move."""
        before: Collection[str] = ()
        for move in moves:
            for sentence in move.sentences:
                self._mark(sentence, before, move.role)
            move.acts = surest(move.sentences)
            before = {*move.acts, "gives_code"} if move.code else move.acts

    def _mark(self, sentence: Sentence, before: Collection[str], party: str) -> None:
        hits, low = sentence.hits, sentence.low
        for act, one in self._indices[party, sentence.asking].rules_of(sentence.bag):
            if act.after and act.after.isdisjoint(before):
                continue
            known = hits.get(act.name)
            if (known and known.sure >= one.sure) or (act.longest and len(sentence.words) > act.longest):
                continue
            found = one.pattern.search(low)
            if found is not None and (one.unless is None or one.unless.search(low) is None):
                hits[act.name] = hit_of(act, one, found, sentence)


def surest(sentences: Iterable[Sentence]) -> dict[str, Sentence]:
    """Return the surest sentence of each act; the first of equals."""
    found: dict[str, Sentence] = {}
    for sentence in sentences:
        for act, hit in sentence.hits.items():
            if act not in found or hit.sure > found[act].hits[act].sure:
                found[act] = sentence
    return found


class Cues:
    """The rules for sentences of one party that ask or state, by their cues."""

    def __init__(self, rules: Sequence[tuple[Act, Rule]], party: str, *, asking: bool) -> None:
        mood = "question" if asking else "statement"
        self._rules = [(act, one) for act, one in rules if act.party == party and one.mood in ("any", mood)]
        self._by_cue: defaultdict[str, list[int]] = defaultdict(list)
        for number, (_, one) in enumerate(self._rules):
            for cue in one.cues:
                self._by_cue[cue].append(number)
        self._cues = frozenset(self._by_cue)
        self._known = lru_cache(maxsize=4096)(self._rules_by)

    def rules_of(self, words: frozenset[str]) -> Sequence[tuple[Act, Rule]]:
        """Return the rules that have one of these words as a cue, in their order."""
        return self._known(words & self._cues)

    def _rules_by(self, cues: frozenset[str]) -> Sequence[tuple[Act, Rule]]:
        numbers = set().union(*map(self._by_cue.__getitem__, cues))
        return [self._rules[number] for number in sorted(numbers)]


def hit_of(act: Act, one: Rule, found: re.Match[str], sentence: Sentence) -> Hit:
    """Make a hit from a match."""
    detail = (found["detail"] or "") if "detail" in one.pattern.groupindex else ""
    start = sentence.start + found.start()
    return Hit(act.name, one.sure, start, sentence.start + found.end(), detail)


def _act(name: str, row: dict[str, Any]) -> Act:
    rules = tuple(_rule(**one) for one in row["rules"])
    return Act(name, row["party"], rules, word_set(row.get("after", "")), row.get("longest", 0))


def _rule(cues: str, pattern: str, sure: float = 0.9, unless: str = "", mood: Mood = "any") -> Rule:
    return Rule(word_set(cues), re.compile(pattern), sure, re.compile(unless) if unless else None, mood)


def acts_in(path: Path) -> Acts:
    """Read the acts of a table."""
    return Acts(_act(name, row) for _, name, row in rows(path))


TABLE = Path(__file__).with_name("acts.toml")
ACTS = acts_in(TABLE)
