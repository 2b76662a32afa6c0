"""Verdicts of a run of `judge`, and its files."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Any

from pollex.agents.votes import Verdict
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow
from pollex.formats.verdicts import (
    COLUMNS,
    VOTE_COLUMNS,
    AnswersFile,
    accepted_rows,
    human_rows,
    reason_of,
    verdict_row,
    vote_rows,
)
from pollex.formats.write import write_lines, write_rows
from pollex.graphs.judge.state import Tallied
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import RETRYABLE
from pollex.selection.consensus import Filtered, ends_of
from pollex.services.precision import Precision, precision_of
from pollex.services.results import ModelUsage, Shown, counted, usage_json
from pollex.store.folder import store_option
from pollex.store.store import Store
from pollex.store.votes import verdicts_of
from pollex.text import Rows, Told, count, encoded, some_told

ENOUGH_LABELS = 50
MOST_ROWS = 12


@dataclass(frozen=True)
class VerdictFiles:
    """Output files of verdicts; None for those that are not written.

    Attributes:
        verdicts: A row for each conversation.
        accepted: Conversations with a rating, ready for fine-tuning.
        doubtful: Conversations without a rating, for people to answer.
        votes: A row for each run of each conversation.
    """

    verdicts: Path | None = None
    accepted: Path | None = None
    doubtful: Path | None = None
    votes: Path | None = None

    @property
    def written(self) -> list[Path]:
        """Those that are written."""
        return [path for path in (self.verdicts, self.accepted, self.doubtful, self.votes) if path is not None]


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeResult(Shown):
    """The result of a run of `judge` or `review`.

    Attributes:
        verdicts: In the conversations' order.
        precision: Ratings against thumbs on either side of τ; None where there are none.
        calls: Calls that a run takes of a conversation; None if no model was called.
        unused: People's answers that changed nothing, and why.
        usages: Calls, tokens and cost by model; empty if none was called.
    """

    columns = ("id", "rating", "decided_by", "reason", "agreement", "answered", "runs")

    judged: Tallied
    verdicts: tuple[Verdict, ...]
    files: VerdictFiles
    precision: Precision | None = None
    calls: int | None = None
    unused: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    usages: tuple[tuple[str, ModelUsage], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed; disagreement is a result."""
        return not self.bad_rows and not self.outcomes.keys() & {"not_scorable", "too_few_runs"}

    @property
    def outcomes(self) -> dict[str, int]:
        """Conversations by result: `rated`, `by a person`, and the reasons of NONE."""
        return dict(Counter("by a person" if one.person else reason_of(one) or "rated" for one in self.verdicts))

    def records(self) -> Iterator[dict[str, Any]]:
        return (verdict_row(one, self.judged.task) for one in self.verdicts)

    @property
    def asked(self) -> int:
        """Runs that were asked about conversations that can be judged."""
        return sum(one.runs for one in self.verdicts if one.scorable)

    @property
    def spared(self) -> int:
        """Runs that could not have changed a verdict."""
        return sum(one.saved for one in self.verdicts if one.scorable)

    @property
    def failures(self) -> dict[str, int]:
        """Runs without an answer, by outcome, of conversations that can be judged."""
        return dict(sum((Counter(one.failures) for one in self.verdicts if one.scorable), Counter()))

    def told(self, store: Path) -> Told:
        """Yield the results of a run, the files written, and how to ask people."""
        judged, kept = self.judged, store_option(store)
        yield counted(self.outcomes)
        yield from _summary(self, kept)
        if self.precision:
            yield from precision_told(self.precision)
        yield from some_told("answer was not used", "answers were not used", self.unused)
        for name, usage in self.usages:
            if len(self.usages) > 1:
                yield f"{name}:"
            yield from usage.told()
        if self.files.written:
            names = ", ".join(map(str, self.files.written))
            yield f"Wrote {names} ({judged.task.by}; run {judged.run})"
        if judged.waiting:
            file = shlex.quote(str(self.files.doubtful or "people.jsonl"))
            option = "--answers" if self.files.doubtful else "--out"
            waits = count(len(judged.waiting), "waits", "wait")
            yield f"{waits} for people: pollex review {judged.run} {option} {file}{kept}"

    def as_json(self) -> dict[str, Any]:
        judged, out = self.judged, self.files.verdicts
        fitted, unseen = judged.fitted, judged.unseen
        first, *others = self.usages or (("", None),)
        panel = {"panel": {name: usage_json(usage) for name, usage in others}} if others else {}
        return {
            "run": judged.run,
            "out": out and str(out),
            "judge": judged.task.by,
            "n": len(self.verdicts),
            "outcomes": self.outcomes,
            "waiting": len(judged.waiting),
            "rule": judged.rule.in_words(),
            "tau": judged.rule.tau,
            "runs": {"asked": self.asked, "planned": self.asked + self.spared, "failed": self.failures},
            "calls_saved": None if self.calls is None else self.calls * self.spared,
            "fitted": fitted
            and {
                "n": fitted.n,
                "passed": fitted.passed,
                "right": fitted.right,
                "precision": fitted.precision.value,
                "interval": ends_of(fitted.precision),
                "best": fitted.best,
            },
            "unseen": unseen
            and {
                "n": unseen.passed.n + unseen.left.n,
                "passed": unseen.passed.n,
                "right": unseen.passed.right,
                "precision": unseen.passed.precision.value,
                "interval": ends_of(unseen.passed.precision),
                "coverage": unseen.coverage.value,
                "coverage_interval": ends_of(unseen.coverage),
            },
            "precision": self.precision and self.precision.as_json,
            "bad_rows": encoded(self.bad_rows),
            **usage_json(first[1]),
            **panel,
        }


def write_verdicts(
    store: Store,
    judged: Tallied,
    conversations: Sequence[Conversation],
    files: VerdictFiles,
    *,
    people: AnswersFile | None = None,
    calls: int | None = None,
    variant: str | None = None,
    bad_rows: tuple[BadRow, ...] = (),
    usages: tuple[tuple[str, ModelUsage], ...] = (),
) -> JudgeResult:
    """Read the verdicts of a run from the store, and write its files.

    Args:
        people: What people answered, to tell what of it was not used.
        calls: Calls that a run takes of a conversation; None where no model is called.
        variant: Prompt variant of the runs.
    """
    decided = tuple(verdicts_of(store, judged.run, judged.task, judged.rule, conversations))
    pairs = list(zip(conversations, decided, strict=True))
    if files.verdicts:
        write_rows(files.verdicts, (verdict_row(one, judged.task) for one in decided), COLUMNS)
    if files.accepted:
        write_lines(files.accepted, accepted_rows(pairs, judged))
    if files.doubtful:
        write_lines(files.doubtful, human_rows(pairs, judged))
    if files.votes:
        write_rows(files.votes, vote_rows(store, judged, conversations, variant), VOTE_COLUMNS)
    return JudgeResult(
        judged=judged,
        verdicts=decided,
        files=files,
        precision=precision_of(store, judged.run, judged.task, judged.rule, conversations),
        calls=calls,
        unused=tuple(people.unused(decided)) if people else (),
        bad_rows=bad_rows,
        usages=usages,
    )


def _summary(found: JudgeResult, kept: str) -> Told:
    """Yield the rule, and what a reader of the verdicts has to know.

    Args:
        kept: What a command needs behind it to find the store.
    """
    rule = found.judged.rule
    yield f"Rule: {rule.in_words()}; at least {rule.minimum} runs must have answered"
    if rule.passes_all(len(found.judged.task.question.options)):
        yield (
            f"Note: with two options any {rule.runs} answers pass this rule, so that it filters nothing. "
            "With --ensemble 5 or more and no --tau, answers of 3:2 don't pass"
        )
    yield from _failures(found, kept)
    yield from _fitted(found)
    if spared := found.spared:
        calls = "" if found.calls is None else f", {found.calls * spared} calls,"
        yield f"Asked {found.asked} of {found.asked + spared} runs: {spared}{calls} could not have changed a verdict"


def precision_told(found: Precision) -> Told:
    """Yield how right ratings are on either side of τ, and tables of the paper's figures 1 and 2."""
    sides = (found.chosen.passed, found.chosen.left)
    for words, side, people in zip(("pass", "don't"), sides, found.people, strict=True):
        share = _share(side.precision)
        yield f"Of {side.n} conversations with a thumb that {words}, {side.right} are rated right: {share}"
        if people.texts:
            share = _share(people.share)
            yield f"  People agree on {people.agreed} of {count(people.texts, 'text')} among them: {share}"
    yield f"Coverage: {_share(found.chosen.coverage)}"
    every = max((point.n for point in found.by_tau), default=0)
    for points in (found.by_runs, [point for point in found.by_tau if point.n == every][:MOST_ROWS]):
        rows = []
        for point in points:
            sides = (point.sides.passed, point.sides.left)
            shares = [_share(side.precision, 2) for side in sides]
            coverage = _share(point.sides.coverage, 2)
            rows.append((point.n, f"{point.tau:.4f}", coverage, *shares))
        if rows:
            yield Rows(("runs", "τ", "coverage", "right, DE ≤ τ", "right, DE > τ"), rows)


def _failures(found: JudgeResult, kept: str) -> Told:
    failures = found.failures
    if not failures:
        return
    answered = [one.answered for one in found.verdicts if one.scorable]
    kinds = ", ".join(f"{n} {kind}" for kind, n in failures.items())
    yield (
        f"Note: {sum(failures.values())} of {found.asked} runs without an answer, so without a vote ({kinds}): "
        f"verdicts rest on {min(answered)} to {max(answered)} answers; why: pollex trace {found.judged.run}{kept}"
    )
    # An answer that came and can't be read is paid for, and would only be read again.
    if again := sorted(failures.keys() & RETRYABLE - {"unparsable"}):
        yield f"Note: the same command with LOGS and --resume repeats the runs that ended as {', '.join(again)}"
    if "refused" in failures:
        yield "Note: calls that the model refused are repeated with --resume and --set retry_refused=true"


def _fitted(found: JudgeResult) -> Told:
    fitted = found.judged.fitted
    if fitted is None:
        return
    if fitted.tau is None:
        reached = None if fitted.best is None else floor(1000 * fitted.best) / 1000
        best = "" if reached is None else f" The highest precision that any τ reaches is {reached:.3f}."
        yield f"No τ reaches a precision of {found.judged.task.precision} on {fitted.n} thumbs: nothing passes.{best}"
        return
    yield (
        f"τ was fitted to {fitted.n} thumbs: {fitted.right} of the {fitted.passed} that pass are right, "
        f"{_share(fitted.precision)}"
    )
    yield _unseen(found.judged.unseen)
    if fitted.n < ENOUGH_LABELS:
        yield f"Note: {ENOUGH_LABELS - fitted.n} more thumbs are needed before this τ is reliable."


def _unseen(unseen: Filtered | None) -> str:
    """Describe how a fitted τ does on thumbs that it was not fitted to."""
    if unseen is None:
        return "There are too few thumbs to measure it on others."
    side, n = unseen.passed, unseen.passed.n + unseen.left.n
    if not side.n:
        return f"On thumbs that it is not fitted to none of {n} passes."
    return (
        f"On thumbs that it is not fitted to {side.right} of the {side.n} that pass are right, "
        f"{_share(side.precision)}; "
        f"{side.n} of {n} pass, {_share(unseen.coverage)}"
    )


def _share(of: Figure, digits: int = 3) -> str:
    return "undefined" if of.value is None else f"{of:.{digits}f}".replace("  ", " ")
