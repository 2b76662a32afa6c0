"""Scores after every turn of the user: what a conversation's beginning tells of its thumb.

Satisfaction shows in how a conversation ends; a probability is given only where its log-loss is under that of the share
of thumbs up alone, on conversations that it was not fitted to.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs, positives
from pollex.conversations.splits import block_ids, folds
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_format, write_rows
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import log_losses
from pollex.measures.intervals import Measure, mean_of, measured
from pollex.rubrics.records import TurnRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.selection.platt import fit_calibration
from pollex.services.evaluate import SEEN, labelled_in, seen_before
from pollex.services.logs import Sources, files_of, logs_from
from pollex.services.results import Shown
from pollex.services.score import unedited
from pollex.services.scorer import BatchScorer
from pollex.text import Line, Rows, Told, count

TURNS = (1, 2, 3, 5, 8)
"""Numbers of the user's turns after which a probability is fitted."""
FOLDS, FEWEST = 10, 40
MOST_BEGINNINGS = 50
"""Turns of the user after which one conversation is scored: each beginning is read anew, which takes its square."""
COLUMNS = {"id": "VARCHAR", "turns": "INTEGER", "netsat": "DOUBLE", "probability": "DOUBLE", "outcome": "VARCHAR"}


@dataclass(frozen=True, kw_only=True, repr=False)
class TurnsResult(Shown):
    """What beginnings of conversations tell, by the number of the user's turns.

    Attributes:
        seen: Number of conversations that the set was made from, by use.
        rows: A row a beginning; empty unless asked for.
    """

    rubrics: RubricSet
    out: Path | None
    scores: Path | None
    n: int
    seen: dict[str, int]

    @property
    def complete(self) -> bool:
        """Whether anything could be measured."""
        return bool(self.rubrics.turns)

    @property
    def headline(self) -> str:
        helpful = [str(one.turns) for one in self.rubrics.turns if one.helps]
        told = f"after {', '.join(helpful)}" if helpful else "after none"
        return f"a probability is better than the share of thumbs up {told} of the user's turns (n = {self.n})"

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "turns": one.turns,
                "n": one.n,
                "log_loss": one.log_loss.value,
                "share_log_loss": one.share_log_loss.value,
                "gain": one.gain.value,
                "low": one.gain.low,
                "high": one.gain.high,
                "shown": one.helps,
            }
            for one in self.rubrics.turns
        ]

    def told(self) -> Told:
        """Yield the log-loss after each number of turns, beside that of the share of thumbs up."""
        rows = [
            (one.turns, one.n, one.log_loss, one.share_log_loss, one.gain, "yes" if one.helps else "no")
            for one in self.rubrics.turns
        ]
        yield Rows(("turns of the user", "n", "log-loss", "of the share alone", "gain", "given"), rows)
        yield f"{self.headline[:1].upper()}{self.headline[1:]}"
        for how, number in self.seen.items():
            if number:
                note = f"{SEEN[how]} {number} of these conversations: figures are too good."
                yield Line(f"Note: {note}", "yellow")
        for path in filter(None, (self.out, self.scores)):
            yield f"Wrote {path}"

    def as_json(self) -> dict[str, Any]:
        return self.of("out", "scores", "n") | {"turns": self.records()} | self.seen


def fit_turns(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    out: Path | None = None,
    scores: Path | None = None,
    turns: Sequence[int] = TURNS,
    reading: ReadOptions,
    progress: Progress,
) -> TurnsResult:
    """Fit a probability after each number of turns, cross-fitted by blocks of conversations, and measure it.

    Args:
        logs: Labeled conversations, best those that the set was not learned from.
        out: Where the set with these probabilities is written.
        scores: Where a row a beginning is written: .jsonl, .csv or .parquet.

    Raises:
        BadLabels: There are fewer than forty labeled conversations, or ten of a class.
        WrongUse: The set's judge is a model: each beginning would be paid for.
    """
    rubric_set = unedited(rubrics)
    if not rubric_set.judge.built_in:
        raise WrongUse(
            f"the set's judge is a model, {rubric_set.judge.name}: each beginning would be paid for",
            remedy="distill the set first (`pollex distill`)",
        )
    if scores is not None:
        require_format(scores, *files_of(rubrics, logs))
    read = logs_from(logs, reading, progress)
    labeled = [one for one in labelled_in(read, logs) if not one.not_scorable]
    if len(labeled) < FEWEST:
        raise BadLabels(f"{count(len(labeled), 'labeled conversation')}", remedy=f"give at least {FEWEST}")
    scorer, records = BatchScorer(rubric_set), []
    progress.start("turns", len(turns))
    for number in turns:
        begun = [one for one in labeled if user_turns(one) >= number]
        if (found := measured_after(number, begun, scorer)) is not None:
            records.append(found)
        progress.advance("turns")
    fitted = rubric_set.model_copy(update={"turns": tuple(records)})
    if out is not None:
        fitted.save(out)
    if scores is not None:
        after = BatchScorer(fitted)
        rows = (row for one in read.conversations for row in after_turns(one, after.scores, fitted.turns))
        write_rows(scores, rows, COLUMNS)
    return TurnsResult(rubrics=fitted, out=out, scores=scores, n=len(labeled), seen=seen_before(rubric_set, labeled))


def measured_after(number: int, begun: Sequence[Conversation], scorer: BatchScorer) -> TurnRecord | None:
    """Fit and measure a probability after some turns; None where too few conversations have so many."""
    scored = scorer.scores([beginning(one, number) for one in begun])
    kept = [(one, score.netsat) for one, score in zip(begun, scored, strict=True) if score.netsat is not None]
    known = [one for one, _ in kept]
    positive, netsat = positives(known), np.array([value for _, value in kept], float)
    if len(known) < FEWEST or min(positive.sum(), (~positive).sum()) < FOLDS:
        return None
    probability, share = cross_fitted(netsat, positive, known)
    losses, constant = loss_of(probability, positive), loss_of(share, positive)
    wanted = {
        "log_loss": Measure(mean_of(losses)),
        "share_log_loss": Measure(mean_of(constant)),
        "gain": Measure(mean_of(constant - losses)),
    }
    found = measured(wanted, block_ids(known), np.random.default_rng(0))
    return TurnRecord(turns=number, n=len(known), calibration=fit_calibration(netsat, positive), **found)


def cross_fitted(netsat: Floats, positive: Bools, known: Sequence[Conversation]) -> tuple[Floats, Floats]:
    """Compute P(positive) and the share of thumbs up `[conversation]`, each fitted without the conversation's fold."""
    fold = folds(known, FOLDS, 0)
    probability, share = np.zeros(len(known)), np.zeros(len(known))
    for one in range(FOLDS):
        mine = fold == one
        probability[mine] = fit_calibration(netsat[~mine], positive[~mine]).probability(netsat[mine])
        share[mine] = positive[~mine].mean()
    return probability, share


def loss_of(probability: Floats, positive: Bools) -> Floats:
    """Compute −log P of each label `[conversation]`, in nats."""
    return log_losses(np.stack([1 - probability, probability], axis=1), positive.astype(np.int64))


def user_turns(conversation: Conversation) -> int:
    """Return how many turns the user has."""
    return sum(turn.role == "user" for turn in conversation.turns)


def beginning(conversation: Conversation, number: int) -> Conversation:
    """Return a conversation until the user's next turn after so many of theirs."""
    users = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
    end = users[number] if len(users) > number else len(conversation.turns)
    return conversation.model_copy(update={"turns": conversation.turns[:end]})


def after_turns(
    conversation: Conversation, scored: Callable[[list[Conversation]], Iterable[Score]], records: Iterable[TurnRecord]
) -> list[dict[str, Any]]:
    """Score a conversation after each of the user's first `MOST_BEGINNINGS` turns.

    Args:
        scored: Scores beginnings.
        records: Those of the set; see `RubricSet.turns`.

    Returns:
        For each: `turns`, `netsat`, `outcome`, and `probability` of a thumb up in the end, None where it is not better
        than the share of thumbs up, or where nobody measured that.
    """
    numbers = range(1, min(user_turns(conversation), MOST_BEGINNINGS) + 1)
    parts = [beginning(conversation, n).model_copy(update={"id": f"{n}"}) for n in numbers]
    curves = {one.turns: one.calibration if one.helps else None for one in records}
    found = []
    for n, score in zip(numbers, scored(parts), strict=True):
        curve = curves.get(max((turns for turns in curves if turns <= n), default=0))
        probability = None
        if curve is not None and score.netsat is not None:
            probability = float(curve.probability(np.array([score.netsat]))[0])
        row = {"id": conversation.id, "turns": n, "netsat": score.netsat, "probability": probability}
        found.append(row | {"outcome": score.outcome})
    return found
