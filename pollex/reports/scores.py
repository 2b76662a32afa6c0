"""The page of scored conversations: how many are good, what lowers scores, the worst ones, and a list that filters."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.conversations.conversation import Conversation
from pollex.measures.intervals import Figure
from pollex.measures.share import estimate_share_from_probability_sums
from pollex.reports.numbers import (
    NO_BREAK_SPACE,
    format_grouped_count,
    format_percent,
    format_percent_interval,
)
from pollex.reports.page import render_template
from pollex.reports.transcript import MarkedTurn, mark_turns, shorten_turns
from pollex.rubrics.answers import Answer
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import (
    MIN_TOLD_MOVE,
    ScoreColumns,
    compute_answer_value,
    describe_verdict,
)
from pollex.rubrics.worth import compute_share_with_interval
from pollex.selection.losses import MAX_EVAL_DIFFERENCE

MAX_LISTED_CONVERSATIONS = 1000
"""Conversations in the list, the worst first: more would make the page heavy."""

MAX_WORST_CONVERSATIONS_SHOWN = 10
MAX_SCORE_LOWERING_RUBRICS_SHOWN = 5
MIN_PROBABILITY_OF_SURE_SCORE = 0.7
"""Less sure ones are a list of their own."""

MIDDLE_ANSWER_VALUE = MAX_EVAL_DIFFERENCE / 2
NEGATIVE_POLARITY: Polarity = "dsat"


@dataclass(frozen=True, order=True)
class WorstRow:
    """A scored conversation in the list.

    Attributes:
        goodness: Its probability, negated for a heap that drops the best.
        lowered_by: Id of the rubric that lowered it most; empty where none did.
        why: Id of the rubric that spoke most for what was decided; empty where none did.
        so: Whether that rubric holds; one that doesn't may speak, too.
        turns: What the answer that lowered it most rests on.
        place: Of the conversation, among those that were scored.
        calibrated: Whether probabilities say how sure verdicts are.
    """

    goodness: float
    id: str
    decision: str
    lowered_by: str
    why: str
    so: bool
    turns: tuple[int, ...]
    place: int = 0
    calibrated: bool = False

    @property
    def verdict(self) -> str:
        """Good or bad, and how sure."""
        verdict = describe_verdict(self.decision, -self.goodness, calibrated=self.calibrated)
        return f"{verdict[0].upper()}{verdict[1:]}".replace(" %", f"{NO_BREAK_SPACE}%")

    @property
    def unsure(self) -> bool:
        """Whether it may as well be the other way."""
        # goodness is a negated probability: that of what was decided
        return (
            -self.goodness if self.decision == "positive" else 1 + self.goodness
        ) < MIN_PROBABILITY_OF_SURE_SCORE


class ScoreTally:
    """Counts scores on their way to a file, and keeps the worst ones; memory doesn't grow with the log."""

    def __init__(self, rubrics: RubricSet) -> None:
        self.rubrics = {rubric.id: rubric for rubric in rubrics.rubrics}
        self.value = rubrics.judge.options.value
        # what an answer does to the score, the model of the probability says
        self.scorer = rubrics.explainer
        self.scored: Counter[str] = Counter()
        self.error = rubrics.calibration_error
        self.doubt = rubrics.at_chance
        self.calibrated = rubrics.support.enough
        # sums, from which the share of good conversations and its interval follow
        self.probabilities = 0
        self.total = 0.0
        self.squares = 0.0
        self.moves: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.held: Counter[tuple[str, str]] = Counter()
        self.unscored = 0
        self._worst: list[WorstRow] = []

    def count(self, scores: ScoreColumns) -> None:
        """Count scores, and keep the worst."""
        index = scores.answers.index
        ids = scores.answers.rubrics
        # each different answer is read once; `index` says where it stands [conversation, rubric]
        value = []
        for answer in scores.answers.different:
            value.append(
                compute_answer_value(answer, self.value)
                if isinstance(answer, Answer)
                else MIDDLE_ANSWER_VALUE
            )

        # behind them stands what nobody answered: it holds nowhere
        held = np.array([*value, MIDDLE_ANSWER_VALUE])[index] > MIDDLE_ANSWER_VALUE
        # over 0 it speaks for a good conversation [conversation, rubric]
        answered = scores.answers
        if scores.tone is not None:
            answered = answered.beside(scores.tone)
        moves = self.scorer.compute_probability_moves(answered)[:, : len(ids)]
        probabilities_defined = []
        for probability in scores.column("probability"):
            if probability is not None:
                probabilities_defined.append(probability)
        probabilities = np.array(probabilities_defined, dtype=np.float64)
        self.probabilities += len(probabilities)
        self.total += float(probabilities.sum())
        self.squares += float(probabilities @ probabilities)
        decisions = scores.column("decision")
        for decision in ("positive", "negative"):
            rows = np.array([scored_as == decision for scored_as in decisions], bool)
            self.scored[decision] += int(rows.sum())
            for place, id_ in enumerate(ids):
                self.moves[decision, id_] += float(moves[rows, place].sum())
                self.held[decision, id_] += int(held[rows, place].sum())

        self._keep_worst(scores, moves, held)
        self.unscored += decisions.count(None)

    def _keep_worst(
        self,
        scores: ScoreColumns,
        moves: npt.NDArray[np.float64],
        held: npt.NDArray[np.bool_],
    ) -> None:
        """Keep the worst conversations of a batch beside those of before.

        Args:
            moves: What each answer did to the score `[conversation, rubric]`.
            held: Whether the rubric holds `[conversation, rubric]`.
        """
        # conversations before this batch, which `scored` has already and `unscored` hasn't
        before = (
            self.scored.total()
            - len(scores)
            + self.unscored
            + scores.column("decision").count(None)
        )
        # what lowered each conversation most, and what raised it most; without rubrics, nothing did
        lowest = highest = [0] * len(scores)
        if moves.size:
            lowest = moves.argmin(axis=1).tolist()
            highest = moves.argmax(axis=1).tolist()

        figures = zip(
            scores.column("probability"),
            scores.column("decision"),
            strict=True,
        )
        for place, (probability, decision) in enumerate(figures):
            # the list is full, and its best conversation is worse than this one
            if probability is None or (
                len(self._worst) == MAX_LISTED_CONVERSATIONS
                and -probability < self._worst[0].goodness
            ):
                continue

            lowered_by = ""
            turns: tuple[int, ...] = ()
            if moves.size and moves[place, lowest[place]] <= -MIN_TOLD_MOVE:
                lowered_by = scores.answers.rubrics[lowest[place]]
                answer = scores.answers.different[scores.answers.index[place, lowest[place]]]
                if isinstance(answer, Answer):
                    turns = tuple(answer.turns)

            # what was decided good is explained by what raised it, anything else by what lowered it
            why = lowered_by
            column = lowest[place]
            if decision == "positive":
                column = highest[place]
                raised = moves.size and moves[place, column] >= MIN_TOLD_MOVE
                why = scores.answers.rubrics[column] if raised else ""

            row = WorstRow(
                -probability,
                scores.ids[place],
                decision,
                lowered_by,
                why,
                bool(why and held[place, column]),
                turns,
                before + place,
                self.calibrated,
            )
            # the first of the heap is the best one, and makes room
            (heapq.heappush if len(self._worst) < MAX_LISTED_CONVERSATIONS else heapq.heappushpop)(
                self._worst, row
            )

    @property
    def worst(self) -> list[WorstRow]:
        """The conversations of the list, the worst first."""
        return sorted(self._worst, key=lambda row: (-row.goodness, row.id))

    @property
    def good(self) -> Figure:
        """Share of good conversations: the mean of their probabilities."""
        return estimate_share_from_probability_sums(
            self.total,
            self.squares,
            self.probabilities,
            self.error,
        )

    @property
    def decided(self) -> float | None:
        """Share that is decided to be good: more than are good, where most are more likely good than not."""
        if self.scored.total():
            return self.scored["positive"] / self.scored.total()
        return None

    @property
    def told(self) -> str:
        """The share of good conversations in one sentence."""
        good = self.good
        if good.value is None:
            return "No conversation could be scored."

        return (
            f"About {format_percent(good.value)} of {format_grouped_count(good.n, 'conversation')} are good "
            f"({format_percent_interval(good)}): the mean of their probabilities."
        )

    def lowering(self) -> list[dict[str, Any]]:
        """Rank the rubrics that set bad conversations apart most.

        Returns:
            Each `rubric` with its `gap`, how much more it raised the probability of good conversations than bad ones in
            the mean, and the share of `bad` and of `good` conversations in which it holds.
        """
        n_good = self.scored["positive"]
        n_bad = self.scored["negative"]
        gaps: list[dict[str, Any]] = []
        # without both classes there is no gap
        for id_, rubric in self.rubrics.items() if n_good and n_bad else ():
            gap = self.moves["positive", id_] / n_good - self.moves["negative", id_] / n_bad
            bad = compute_share_with_interval(self.held["negative", id_], n_bad)
            good = compute_share_with_interval(self.held["positive", id_], n_good)
            gaps.append(
                {
                    "rubric": rubric,
                    "gap": gap,
                    "bad": bad,
                    "good": good,
                }
            )

        # only rubrics on which bad conversations do worse, headline ones first
        gaps = [row for row in gaps if row["gap"] > 0]
        return sorted(gaps, key=lambda row: (not row["rubric"].headlined, -row["gap"]))[
            :MAX_SCORE_LOWERING_RUBRICS_SHOWN
        ]


def render_scores_page(
    tally: ScoreTally,
    conversations: Sequence[Conversation],
    file: str,
    rubrics_file: str,
) -> str:
    """Render the page.

    Args:
        conversations: Those that were scored, in the order of their scores.
        file: Name of the file with all rows.
        rubrics_file: Name of the rubric set's.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    rows = tally.worst
    # conversations whose text isn't at hand are listed without it
    texts = {}
    for row in rows:
        if row.place < len(conversations):
            texts[row.id] = conversations[row.place]

    lowering = tally.lowering()
    titles = {
        "lowering": "What lowers scores",
        "worst": "The worst ten",
        "list": "All conversations",
    }
    return render_template(
        "scores.html",
        file=file,
        titles=titles,
        verdict=tally.told,
        calibrated=tally.calibrated,
        decided=tally.decided,
        doubt=tally.doubt,
        sure=MIN_PROBABILITY_OF_SURE_SCORE,
        unscored=tally.unscored,
        lowering=lowering,
        numbers={row["rubric"].id: number for number, row in enumerate(lowering, 1)},
        rubrics=tally.rubrics,
        worst=[
            (row, mark_turns_of_row(row, texts.get(row.id)))
            for row in rows[:MAX_WORST_CONVERSATIONS_SHOWN]
        ],
        rows=rows,
        openings={id_: c.opening for id_, c in texts.items()},
        total=tally.scored.total(),
        facts={"rubric set": rubrics_file, "all rows": file},
    )


def mark_turns_of_row(row: WorstRow, conversation: Conversation | None) -> list[MarkedTurn]:
    """Return a conversation's turns with what its lowest answer rests on marked; none where its text isn't at hand."""
    if conversation:
        turns = shorten_turns(conversation.turns)
    else:
        turns = []

    # an answer names turns, so all of a turn is marked
    quotes = {}
    for place in row.turns:
        if place < len(turns):
            quotes[place] = [(turns[place].shown, NEGATIVE_POLARITY)]

    return mark_turns(turns, quotes)
