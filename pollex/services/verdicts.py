"""Verdicts of a run of `judge`, and its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.agents.task import Decided
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow
from pollex.formats.verdicts import (
    COLUMNS,
    VOTE_COLUMNS,
    AnswersFile,
    accepted_rows,
    human_rows,
    verdict_row,
    vote_rows,
)
from pollex.formats.write import write_lines, write_rows
from pollex.graphs.judge.state import Judged
from pollex.services.precision import Precision, precision_of
from pollex.services.results import Shown, Usage, bad_rows_json, counted, usage_json
from pollex.store.store import Store
from pollex.store.votes import verdicts_of


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
        calls_saved: Calls that stopping early saved; None if no model was called.
        unused: People's answers that changed nothing, and why.
        usages: Calls, tokens and cost by model; empty if none was called.
    """

    columns = ("id", "rating", "decided_by", "reason", "agreement", "answered", "runs")

    judged: Judged
    verdicts: tuple[Decided, ...]
    files: VerdictFiles
    precision: Precision | None = None
    calls_saved: int | None = None
    unused: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    usages: tuple[tuple[str, Usage], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed; disagreement is a result."""
        return not self.bad_rows and not self.judged.counts.keys() & {"not_scorable", "too_few_runs"}

    @property
    def headline(self) -> str:
        """Return the outcomes in a line."""
        return counted(self.judged.counts)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a row a conversation."""
        return (verdict_row(one, self.judged.task) for one in self.verdicts)

    @property
    def failures(self) -> dict[str, int]:
        """Runs without an answer, by outcome, of conversations that can be judged."""
        return dict(sum((Counter(one.verdict.failures) for one in self.verdicts if one.scorable), Counter()))

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        judged, out = self.judged, self.files.verdicts
        first, *others = self.usages or (("", None),)
        panel = {"panel": {name: usage_json(usage) for name, usage in others}} if others else {}
        return {
            "run": judged.run,
            "out": out and str(out),
            "judge": judged.task.by,
            "n": sum(judged.counts.values()),
            "outcomes": judged.counts,
            "waiting": judged.waiting,
            "rule": judged.rule.in_words(),
            "tau": judged.rule.tau,
            "runs": {"asked": judged.asked, "planned": judged.planned, "failed": self.failures},
            "calls_saved": self.calls_saved,
            "fitted": self._fitted_json(),
            "unseen": self._unseen_json(),
            "precision": self.precision and self.precision.as_json,
            "bad_rows": bad_rows_json(self.bad_rows),
            **usage_json(first[1]),
            **panel,
        }

    def _fitted_json(self) -> dict[str, Any] | None:
        """Return the performance of τ on the thumbs that it was fitted to."""
        fitted = self.judged.fitted
        if fitted is None:
            return None
        return {name: getattr(fitted, name) for name in ("n", "passed", "right", "precision", "interval", "best")}

    def _unseen_json(self) -> dict[str, Any] | None:
        """Return the performance of a fitted τ on thumbs that it was not fitted to."""
        unseen = self.judged.unseen
        if unseen is None:
            return None
        return {
            "n": unseen.passed.n + unseen.left.n,
            "passed": unseen.passed.n,
            "right": unseen.passed.right,
            "precision": unseen.passed.precision,
            "interval": unseen.passed.precision_interval,
            "coverage": unseen.coverage,
            "coverage_interval": unseen.coverage_interval,
        }


def write_verdicts(
    store: Store,
    judged: Judged,
    conversations: Sequence[Conversation],
    files: VerdictFiles,
    *,
    people: AnswersFile | None = None,
    calls: int | None = None,
    variant: str | None = None,
    bad_rows: tuple[BadRow, ...] = (),
    usages: tuple[tuple[str, Usage], ...] = (),
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
        calls_saved=None if calls is None else calls * (judged.planned - judged.asked),
        unused=tuple(people.unused(decided)) if people else (),
        bad_rows=bad_rows,
        usages=usages,
    )
