"""Verdicts of a run of `judge`, its files, and how right its ratings are by the thumbs, on either side of τ.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
    using LLMs", AAAI Spring
Symposium, figures 1 and 2.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.votes import Rule, Task, Verdict, all_but_one, persons_question
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import BadRow
from pollex.conversations.splits import block_ids
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
from pollex.measures.correlations import alpha
from pollex.measures.intervals import Figure, exact_share
from pollex.rubrics.answers import RETRYABLE, Answer
from pollex.selection.consensus import (
    TauPoint,
    TauSplit,
    ends_of,
    first_runs,
    modes,
    points,
    sides,
    split_at,
)
from pollex.services.judge_runs import truth_of
from pollex.services.results import ModelUsage, Shown, line_of_outcomes, unread_told, usage_json
from pollex.store.folder import store_option
from pollex.store.labels import THUMB, Opinion, opinions
from pollex.store.resume import BATCH, unread
from pollex.store.store import Store
from pollex.store.votes import verdicts_of, votes_of
from pollex.text import Rows, Told, count, encode, some_told

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
        return [
            path
            for path in (self.verdicts, self.accepted, self.doubtful, self.votes)
            if path is not None
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeResult(Shown):
    """The result of a run of `judge` or `review`.

    Attributes:
        verdicts: In the conversations' order.
        precision: Ratings against thumbs on either side of τ; None where there are none.
        calls: Calls that a run takes of a conversation; None if no model was called.
        unused: People's answers that changed nothing, and why.
        usages: Calls, tokens and cost by model; empty if none was called.
        unread: Why one of the answers that could not be read was none; empty where all were read.
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
    unread: str = ""

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed; disagreement is a result."""
        return not self.bad_rows and not self.outcomes.keys() & {"not_scorable", "too_few_runs"}

    @property
    def outcomes(self) -> dict[str, int]:
        """Conversations by result: `rated`, `by a person`, and the reasons of NONE."""
        return dict(
            Counter(
                "by a person" if one.person else reason_of(one) or "rated" for one in self.verdicts
            )
        )

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
        return dict(
            sum((Counter(one.failures) for one in self.verdicts if one.scorable), Counter())
        )

    def told(self, store: Path) -> Told:
        """Yield the results of a run, the files written, and how to ask people."""
        judged = self.judged
        kept = store_option(store)
        yield line_of_outcomes(self.outcomes)
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
        judged = self.judged
        out = self.files.verdicts
        fitted = judged.fitted
        unseen = judged.unseen
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
            "runs": {
                "asked": self.asked,
                "planned": self.asked + self.spared,
                "failed": self.failures,
            },
            "calls_saved": None if self.calls is None else self.calls * self.spared,
            "fitted": fitted
            and _side_json(fitted.n, fitted.passed, fitted.right, fitted.precision)
            | {"best": fitted.best},
            "unseen": unseen
            and _side_json(
                unseen.passed.n + unseen.left.n,
                unseen.passed.n,
                unseen.passed.right,
                unseen.passed.precision,
            )
            | {"coverage": unseen.coverage.value, "coverage_interval": ends_of(unseen.coverage)},
            "precision": self.precision and self.precision.as_json,
            "bad_rows": encode(self.bad_rows),
            **usage_json(first[1]),
            **panel,
        }


def _side_json(n: int, passed: int, right: int, share: Figure) -> dict[str, Any]:
    return {
        "n": n,
        "passed": passed,
        "right": right,
        "precision": share.value,
        "interval": ends_of(share),
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
        unread=unread(store, judged.run)[1] if usages else "",
    )


def _summary(found: JudgeResult, kept: str) -> Told:
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
    for table in (found.by_runs, [point for point in found.by_tau if point.n == every][:MOST_ROWS]):
        rows = []
        for point in table:
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
    if "unparsable" in failures:
        yield from unread_told(failures["unparsable"], found.unread)
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
        best = (
            ""
            if reached is None
            else f" The highest precision that any τ reaches is {reached:.3f}."
        )
        yield f"No τ reaches a precision of {found.judged.task.precision} on {fitted.n} thumbs: nothing passes.{best}"
        return
    yield (
        f"τ was fitted to {fitted.n} thumbs: {fitted.right} of the {fitted.passed} that pass are right, "
        f"{_share(fitted.precision)}"
    )
    yield _unseen(found.judged.unseen)
    if fitted.n < ENOUGH_LABELS:
        yield f"Note: {ENOUGH_LABELS - fitted.n} more thumbs are needed before this τ is reliable."


def _unseen(unseen: TauSplit | None) -> str:
    if unseen is None:
        return "There are too few thumbs to measure it on others."
    side = unseen.passed
    n = unseen.passed.n + unseen.left.n
    if not side.n:
        return f"On thumbs that it is not fitted to none of {n} passes."
    return (
        f"On thumbs that it is not fitted to {side.right} of the {side.n} that pass are right, "
        f"{_share(side.precision)}; "
        f"{side.n} of {n} pass, {_share(unseen.coverage)}"
    )


def _share(of: Figure, digits: int = 3) -> str:
    return "undefined" if of.value is None else f"{of:.{digits}f}".replace("  ", " ")


FEWEST = 5
"""Texts that two people must share before anything is said of how they agree."""


@dataclass(frozen=True)
class People:
    """How far people agree where several labelled the same conversations.

    Attributes:
        texts: Texts with labels of two people or more.
        agreed: Those of them on which all say the same.
    """

    texts: int
    agreed: int
    alpha: Figure

    @classmethod
    def of(cls, said: Sequence[Opinion], texts: set[str]) -> People:
        """Sum up opinions of these texts."""
        mine = [one for one in said if one.text_hash in texts]
        values: dict[str, set[str]] = {text: set() for text in _shared(mine)}
        for one in mine:
            values.get(one.text_hash, set()).add(one.value)
        return cls(len(values), sum(len(each) == 1 for each in values.values()), agreement(mine))

    @property
    def share(self) -> Figure:
        """Share on which all say the same."""
        return exact_share(self.agreed, self.texts)

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        about = {
            "texts": self.texts,
            "agreed": self.agreed,
            "share": self.share.value,
            "interval": ends_of(self.share),
        }
        return about | {"alpha": asdict(self.alpha)}


@dataclass(frozen=True)
class Precision:
    """Ratings against thumbs on either side of τ.

    Attributes:
        chosen: At the rule's own τ.
        by_runs: At the rule's τ with the first n runs alone; where n − 1 of n runs must agree, so
            with each n.
        by_tau: Each n with every τ that its entropies have. Both are empty where runs were spared.
        people: On either side of the rule's τ.
    """

    chosen: TauSplit
    by_runs: tuple[TauPoint, ...]
    by_tau: tuple[TauPoint, ...]
    people: tuple[People, People]

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        passed, left = (each.as_json if each.texts else None for each in self.people)
        return self.chosen.as_json | {
            "people": {"passed": passed, "left": left},
            "by_runs": [point.as_json for point in self.by_runs],
            "by_tau": [point.as_json for point in self.by_tau],
        }


def precision_of(
    store: Store, run: str, task: Task, rule: Rule, conversations: Sequence[Conversation]
) -> Precision | None:
    """Hold a run's votes against thumbs; None if nothing is labeled, or if there are not two options.

    Conversations that can't be judged are left out.

    Args:
        rule: With the τ that was fitted, if one was.
    """
    truth = truth_of([one for one in conversations if not one.not_scorable])
    ids = [*truth] if len(task.question.options) == 2 else []
    batches = (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
    picks = {
        id_: [vote.chosen if isinstance(vote, Answer) else -1 for vote in votes]
        for batch in batches
        for id_, votes in votes_of(store, run, task, batch)
    }
    used = [one for one in conversations if one.id in picks]
    if not used:
        return None
    chosen = np.full((len(used), rule.runs), -1, dtype=np.int64)
    for row, one in enumerate(used):
        chosen[row, : len(picks[one.id])] = picks[one.id]
    right = np.array([truth[one.id] for one in used], dtype=np.int64)
    together = block_ids(used)
    votes = np.asarray((chosen[:, :, None] == [0, 1]).sum(axis=1), dtype=np.int64)
    spared = [rule.runs - len(picks[one.id]) for one in used]
    passes = np.array(
        [not rule.refusal(*each) for each in zip(votes.tolist(), spared, strict=True)], dtype=bool
    )
    numbers = () if any(spared) else range(1, rule.runs + 1)
    first = {n: first_runs(chosen, n, 2, ceil(rule.minimum * n / rule.runs)) for n in numbers}
    # where one run may, so with any number of them
    one_differs = rule.tau == all_but_one(rule.runs)
    taus = {
        n: tau for n in numbers if (tau := all_but_one(n) if one_differs else rule.tau) is not None
    }
    said = _said(store, task, conversations)
    passing = {used[row].text_hash for row in np.flatnonzero(passes)}
    failing = {one.text_hash for one in used} - passing
    return Precision(
        sides(passes, modes(votes), right, together),
        tuple(
            TauPoint(n, tau, split_at(*first[n], right, tau, together)) for n, tau in taus.items()
        ),
        tuple(point for n in numbers for point in points(*first[n], right, n, together)),
        (People.of(said, passing), People.of(said, failing)),
    )


def _said(store: Store, task: Task, conversations: Sequence[Conversation]) -> list[Opinion]:
    thumbs = {Label.POSITIVE: "up", Label.NEGATIVE: "down"}
    answers = dict(
        zip((option.text for option in task.question.options), thumbs.values(), strict=True)
    )
    log = [
        Opinion(one.judge, one.text_hash, one.id, "", thumbs[one.label], "log", "")
        for one in conversations
        if one.judge and one.label in thumbs
    ]
    asked = [(THUMB, {"up": "up", "down": "down"}), (persons_question(task.question).id, answers)]
    kept = [
        Opinion(
            one.annotator,
            one.text_hash,
            one.conversation,
            one.run,
            words[one.value],
            one.source,
            one.drawn,
        )
        for question, words in asked
        for one in opinions(store, question)
        if one.source == "person" and one.counts and one.value in words
    ]
    return log + kept


def agreement(of: Sequence[Opinion]) -> Figure:
    """Compute Krippendorff's alpha of annotators' answers, with its interval; numbers are options in an order."""
    if len(shared := _shared(of)) < FEWEST:
        return Figure(
            None,
            n=len(shared),
            undefined=f"too few: {len(shared)} texts have two answers, {FEWEST} are needed",
        )
    kept = [one for one in of if one.text_hash in shared]
    texts, people, values = (
        sorted({getattr(one, name) for one in kept}) for name in ("text_hash", "annotator", "value")
    )
    ordered = not any(isinstance(value, str) for value in values)
    return alpha(
        np.array([texts.index(one.text_hash) for one in kept]),
        np.array([people.index(one.annotator) for one in kept]),
        np.array([values.index(one.value) for one in kept]),
        tuple(map(float, values if ordered else range(len(values)))),
        "ordinal" if ordered else "nominal",
        np.random.default_rng(0),
    )


def _shared(of: Sequence[Opinion]) -> set[str]:
    people: dict[str, set[str]] = defaultdict(set)
    for one in of:
        people[one.text_hash].add(one.annotator)
    return {text for text, who in people.items() if len(who) > 1}
