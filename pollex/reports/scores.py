"""The page of scored conversations: how many are good, what lowers scores, the worst ones, and a list that filters."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pollex.conversations.conversation import Conversation
from pollex.measures.intervals import Figure
from pollex.reports.findings import cut
from pollex.reports.numbers import count, percent, percent_interval
from pollex.reports.page import render
from pollex.reports.transcript import MarkedTurn, marked_turns
from pollex.rubrics.answers import Answer
from pollex.rubrics.netsat import Score, value_of
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import share_of
from pollex.selection.losses import EVAL_RANGE

LISTED = 1000
"""Conversations in the list, the worst first: more would make the page heavy."""

WORST = 10
LOWERING = 5
MIDDLE = EVAL_RANGE / 2


@dataclass(frozen=True, order=True)
class Row:
    """A scored conversation in the list.

    Attributes:
        goodness: Its probability, negated for a heap that drops the best.
        lowered_by: Id of the rubric that lowered it most; empty where none did.
        turns: What that answer rests on.
        place: Of the conversation, among those that were scored.
    """

    goodness: float
    id: str
    decision: str
    confident: bool
    lowered_by: str
    turns: tuple[int, ...]
    place: int = 0


@dataclass(frozen=True)
class Lowering:
    """A rubric that lowers scores.

    Attributes:
        gap: Mean points of good conversations less those of bad ones.
        bad: Share of bad conversations in which it holds.
        good: Likewise of good ones.
    """

    rubric: ChosenRubric
    gap: float
    bad: Figure
    good: Figure


class Tally:
    """Counts scores on their way to a file, and keeps the worst ones; memory doesn't grow with the log."""

    def __init__(self, rubrics: RubricSet) -> None:
        self.rubrics = {rubric.id: rubric for rubric in rubrics.rubrics}
        self.value = rubrics.judge.options.value
        self.scored: Counter[str] = Counter()
        self.points: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.held: Counter[tuple[str, str]] = Counter()
        self.unscored = 0
        self._worst: list[Row] = []

    def watch(self, scores: Iterable[Score]) -> Iterator[Score]:
        """Pass scores on, counting them."""
        for score in scores:
            if score.probability is None or score.decision is None:
                self.unscored += 1
            else:
                self._take(score, score.probability, score.decision)
            yield score

    def _take(self, score: Score, probability: float, decision: str) -> None:
        place = self.scored.total() + self.unscored
        self.scored[decision] += 1
        lowest, by = 0.0, ""
        turns: tuple[int, ...] = ()
        for answer in score.answers:
            if not isinstance(answer, Answer) or answer.question_id not in self.rubrics:
                continue  # unanswered, or of the set that a cascade asks
            rubric, value = self.rubrics[answer.question_id], value_of(answer, self.value)
            points = (value - MIDDLE) * (1 if rubric.polarity == "sat" else -1)
            self.points[decision, rubric.id] += points
            self.held[decision, rubric.id] += value > MIDDLE
            if points < lowest:
                lowest, by, turns = points, rubric.id, tuple(answer.turns)
        row = Row(-probability, score.conversation_id, decision, bool(score.confident), by, turns, place)
        (heapq.heappush if len(self._worst) < LISTED else heapq.heappushpop)(self._worst, row)

    @property
    def worst(self) -> list[Row]:
        """The conversations of the list, the worst first."""
        return sorted(self._worst, key=lambda row: (-row.goodness, row.id))

    @property
    def good(self) -> Figure:
        """Share of scored conversations that are decided to be good."""
        return share_of(self.scored["positive"], self.scored.total())

    def lowering(self) -> list[Lowering]:
        """Rank the rubrics that set bad conversations apart most, in points."""
        n_good, n_bad = self.scored["positive"], self.scored["negative"]
        if not n_good or not n_bad:
            return []
        found = [
            Lowering(
                rubric,
                self.points["positive", id_] / n_good - self.points["negative", id_] / n_bad,
                share_of(self.held["negative", id_], n_bad),
                share_of(self.held["positive", id_], n_good),
            )
            for id_, rubric in self.rubrics.items()
        ]
        found = [one for one in found if one.gap > 0]
        return sorted(found, key=lambda one: (not one.rubric.headlined, -one.gap))[:LOWERING]


@dataclass(frozen=True)
class Worst:
    """One of the worst conversations, with its turns; what its lowest answer rests on is marked."""

    row: Row
    turns: tuple[MarkedTurn, ...]


def scores_page(tally: Tally, conversations: Sequence[Conversation], file: str, rubrics_file: str) -> str:
    """Render the page.

    Args:
        conversations: Those that were scored, in the order of their scores.
        file: Name of the file with all rows.
        rubrics_file: Name of the rubric set's.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    rows = tally.worst
    texts = {row.id: conversations[row.place] for row in rows if row.place < len(conversations)}
    lowering = tally.lowering()
    return render(
        "scores.html",
        file=file,
        titles={"lowering": "What lowers scores", "worst": "The worst ten", "list": "All conversations"},
        verdict=verdict(tally),
        unscored=tally.unscored,
        lowering=lowering,
        numbers={one.rubric.id: number for number, one in enumerate(lowering, 1)},
        rubrics=tally.rubrics,
        worst=[worst_of(row, texts) for row in rows[:WORST]],
        rows=rows,
        openings={id_: c.opening for id_, c in texts.items()},
        total=tally.scored.total(),
        facts={"rubric set": rubrics_file, "all rows": file},
    )


def verdict(tally: Tally) -> str:
    """Say in one sentence how many conversations are good."""
    good = tally.good
    if good.value is None:
        return "No conversation could be scored."
    return (
        f"The rubrics hold {percent(good.value)} of {count(good.n, 'conversation')} to be good "
        f"({percent_interval(good)}, if these are a sample)."
    )


def worst_of(row: Row, texts: Mapping[str, Conversation]) -> Worst:
    """Prepare one of the worst conversations."""
    if row.id not in texts:
        return Worst(row, ())
    turns = cut(texts[row.id].turns)
    side: Polarity = "dsat"
    quotes = {place: [(turns[place].shown, side)] for place in row.turns if place < len(turns)}
    return Worst(row, tuple(marked_turns(turns, quotes)))
