"""Verdicts of a run of `judge`, its files, and how right its ratings are by the thumbs, on either side of τ.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
    using LLMs", AAAI Spring
Symposium, figures 1 and 2.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import BadRow
from pollex.conversations.splits import number_dependent_blocks
from pollex.formats.write import write_json_lines, write_rows
from pollex.measures.intervals import Figure, make_share_with_exact_interval
from pollex.rooms.judge.agents.votes import (
    RatingRule,
    RatingTask,
    Verdict,
    compute_tau_of_all_but_one,
    make_person_question,
)
from pollex.rooms.judge.formats.verdicts import (
    VERDICT_COLUMNS,
    VOTE_COLUMNS,
    AnswersFile,
    explain_missing_rating,
    iterate_accepted_rows,
    iterate_vote_rows,
    list_rows_for_people,
    make_verdict_row,
)
from pollex.rooms.judge.graphs.state import RunTally
from pollex.rooms.judge.selection.consensus import (
    TauPoint,
    TauSplit,
    compute_tau_points,
    count_first_runs,
    find_modes,
    get_interval_ends,
    split_at,
    split_by_mask,
)
from pollex.rooms.judge.services.judge_runs import get_thumb_options
from pollex.rooms.judge.store.votes import iterate_verdicts, iterate_votes
from pollex.rubrics.answers import RETRYABLE_OUTCOMES, Answer
from pollex.runs.usage import ModelUsage, make_usage_json
from pollex.services.agreement import find_texts_of_several, measure_agreement
from pollex.services.results import TabularResult, describe_unread, format_outcomes
from pollex.store.folder import format_store_option
from pollex.store.labels import THUMB_QUESTION, Opinion, read_opinions
from pollex.store.resume import CONVERSATIONS_PER_QUERY, count_unreadable_answers
from pollex.store.store import Store
from pollex.text import (
    JsonDict,
    TerminalLines,
    TerminalTable,
    format_count,
    make_json_values,
    render_first_lines,
)

ENOUGH_LABELS_FOR_PRECISION = 50
MAX_TABLE_ROWS = 12


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
        paths: list[Path] = []
        for path in (self.verdicts, self.accepted, self.doubtful, self.votes):
            if path is not None:
                paths.append(path)
        return paths


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeResult(TabularResult):
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

    judged: RunTally
    verdicts: tuple[Verdict, ...]
    files: VerdictFiles
    precision: RatingPrecision | None = None
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
                "by a person" if verdict.person else explain_missing_rating(verdict) or "rated"
                for verdict in self.verdicts
            )
        )

    def records(self) -> Iterator[dict[str, object]]:
        return (make_verdict_row(verdict, self.judged.task) for verdict in self.verdicts)

    @property
    def asked(self) -> int:
        """Runs that were asked about conversations that can be judged."""
        return sum(verdict.runs for verdict in self.verdicts if verdict.scorable)

    @property
    def spared(self) -> int:
        """Runs that could not have changed a verdict."""
        return sum(verdict.saved for verdict in self.verdicts if verdict.scorable)

    @property
    def failures(self) -> dict[str, int]:
        """Runs without an answer, by outcome, of conversations that can be judged."""
        return dict(
            sum(
                (Counter(verdict.failures) for verdict in self.verdicts if verdict.scorable),
                Counter(),
            )
        )

    def told(self, store: Path) -> TerminalLines:
        """Yield the results of a run, the files written, and how to ask people."""
        judged = self.judged
        store_words = format_store_option(store)
        yield format_outcomes(self.outcomes)
        yield from _describe_summary(self, store_words)
        if self.precision:
            yield from describe_precision(self.precision)

        # answers that can't be used, with why
        yield from render_first_lines("answer was not used", "answers were not used", self.unused)
        for name, usage in self.usages:
            if len(self.usages) > 1:
                yield f"{name}:"
            yield from usage.told()

        if self.files.written:
            names = ", ".join(map(str, self.files.written))
            yield f"Wrote {names} ({judged.task.by}; run {judged.run})"

        # the next command: hand in the file that was written, or write one
        if judged.waiting:
            file = shlex.quote(str(self.files.doubtful or "people.jsonl"))
            option = "--answers" if self.files.doubtful else "--out"
            waits = format_count(len(judged.waiting), "waits", "wait")
            yield f"{waits} for people: pollex review {judged.run} {option} {file}{store_words}"

    def as_json(self) -> JsonDict:
        judged = self.judged
        out = self.files.verdicts
        fitted = judged.fitted
        unseen = judged.unseen
        # the first usage is that of the command's model; a panel has more
        first, *others = self.usages or (("", None),)
        if others:
            panel = {"panel": {name: make_usage_json(usage) for name, usage in others}}
        else:
            panel = {}

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
            # figures of τ on the thumbs that it was fitted to, then on those of other folds
            "fitted": fitted
            and _make_side_json(fitted.n, fitted.passed, fitted.right, fitted.precision)
            | {"best": fitted.best},
            "unseen": unseen
            and _make_side_json(
                unseen.passed.n + unseen.left.n,
                unseen.passed.n,
                unseen.passed.right,
                unseen.passed.precision,
            )
            | {
                "coverage": unseen.coverage.value,
                "coverage_interval": get_interval_ends(unseen.coverage),
            },
            "precision": self.precision and self.precision.as_json,
            "bad_rows": make_json_values(self.bad_rows),
            **make_usage_json(first[1]),
            **panel,
        }


def _make_side_json(
    n: int,
    passed: int,
    right: int,
    share: Figure,
) -> dict[str, object]:
    return {
        "n": n,
        "passed": passed,
        "right": right,
        "precision": share.value,
        "interval": get_interval_ends(share),
    }


def write_verdicts(
    store: Store,
    judged: RunTally,
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
    decided = tuple(
        iterate_verdicts(
            store,
            judged.run,
            judged.task,
            judged.rule,
            conversations,
        )
    )
    # verdicts are in the order of the conversations
    pairs = list(zip(conversations, decided, strict=True))
    if files.verdicts:
        write_rows(
            files.verdicts,
            (make_verdict_row(verdict, judged.task) for verdict in decided),
            VERDICT_COLUMNS,
        )

    if files.accepted:
        write_json_lines(files.accepted, iterate_accepted_rows(pairs, judged))
    if files.doubtful:
        write_json_lines(files.doubtful, list_rows_for_people(pairs, judged))

    if files.votes:
        write_rows(
            files.votes,
            iterate_vote_rows(store, judged, conversations, variant),
            VOTE_COLUMNS,
        )

    return JudgeResult(
        judged=judged,
        verdicts=decided,
        files=files,
        precision=measure_precision(store, judged.run, judged.task, judged.rule, conversations),
        calls=calls,
        unused=tuple(people.unused(decided)) if people else (),
        bad_rows=bad_rows,
        usages=usages,
        unread=count_unreadable_answers(store, judged.run)[1] if usages else "",
    )


def _describe_summary(result: JudgeResult, store_words: str) -> TerminalLines:
    rule = result.judged.rule
    yield f"Rule: {rule.in_words()}; at least {rule.minimum} runs must have answered"
    # a rule that nothing fails is legal, and no filter
    if rule.passes_all(len(result.judged.task.question.options)):
        yield (
            f"Note: with two options any {rule.runs} answers pass this rule, so that it filters nothing. "
            "With --ensemble 5 or more and no --tau, answers of 3:2 don't pass"
        )

    yield from _describe_failures(result, store_words)
    yield from _describe_fitted_tau(result)
    # early stopping leaves out runs that could not have changed a verdict
    if spared := result.spared:
        if result.calls is None:
            calls = ""
        else:
            calls = f", {result.calls * spared} calls,"

        yield f"Asked {result.asked} of {result.asked + spared} runs: {spared}{calls} could not have changed a verdict"


def describe_precision(precision: RatingPrecision) -> TerminalLines:
    """Yield how right ratings are on either side of τ, and tables of the paper's figures 1 and 2."""
    # the sides of τ in words, as the sentences below need them
    sides = (precision.chosen.passed, precision.chosen.left)
    for words, side, people in zip(("pass", "don't"), sides, precision.people, strict=True):
        share = _format_share(side.precision)
        yield f"Of {side.n} conversations with a thumb that {words}, {side.right} are rated right: {share}"
        if people.texts:
            share = _format_share(people.share)
            yield f"  People agree on {people.agreed} of {format_count(people.texts, 'text')} among them: {share}"

    # a table of figure 1 by number of runs, and of figure 2 by τ for all runs
    yield f"Coverage: {_format_share(precision.chosen.coverage)}"
    every = max((point.n for point in precision.by_tau), default=0)
    for table in (
        precision.by_runs,
        [point for point in precision.by_tau if point.n == every][:MAX_TABLE_ROWS],
    ):
        rows = []
        for point in table:
            sides = (point.sides.passed, point.sides.left)
            shares = [_format_share(side.precision, 2) for side in sides]
            coverage = _format_share(point.sides.coverage, 2)
            rows.append((point.n, f"{point.tau:.4f}", coverage, *shares))

        if rows:
            yield TerminalTable(("runs", "τ", "coverage", "right, DE ≤ τ", "right, DE > τ"), rows)


def _describe_failures(result: JudgeResult, store_words: str) -> TerminalLines:
    failures = result.failures
    if not failures:
        return

    # not scorable ones were never asked, so they don't count as unanswered
    answered = []
    for verdict in result.verdicts:
        if verdict.scorable:
            answered.append(verdict.answered)

    kinds = ", ".join(f"{n} {kind}" for kind, n in failures.items())
    yield (
        f"Note: {sum(failures.values())} of {result.asked} runs without an answer, so without a vote ({kinds}): "
        f"verdicts rest on {min(answered)} to {max(answered)} answers; "
        f"why: pollex trace {result.judged.run}{store_words}"
    )
    if "unparsable" in failures:
        yield from describe_unread(failures["unparsable"], result.unread)
    # An answer that came and can't be read is paid for, and would only be read again.
    if again := sorted(failures.keys() & RETRYABLE_OUTCOMES - {"unparsable"}):
        yield f"Note: the same command with LOGS and --resume repeats the runs that ended as {', '.join(again)}"
    if "refused" in failures:
        yield "Note: calls that the model refused are repeated with --resume and --set retry_refused=true"


def _describe_fitted_tau(result: JudgeResult) -> TerminalLines:
    fitted = result.judged.fitted
    if fitted is None:
        return
    if fitted.tau is None:
        # rounded down: a precision must not look reached when it isn't
        reached = None
        if fitted.best is not None:
            reached = floor(1000 * fitted.best) / 1000
        if reached is None:
            best = ""
        else:
            best = f" The highest precision that any τ reaches is {reached:.3f}."

        yield f"No τ reaches a precision of {result.judged.task.precision} on {fitted.n} thumbs: nothing passes.{best}"
        return

    yield (
        f"τ was fitted to {fitted.n} thumbs: {fitted.right} of the {fitted.passed} that pass are right, "
        f"{_format_share(fitted.precision)}"
    )
    # on the fitted thumbs precision is too high, so the honest figure follows
    yield _describe_unseen(result.judged.unseen)
    if fitted.n < ENOUGH_LABELS_FOR_PRECISION:
        yield f"Note: {ENOUGH_LABELS_FOR_PRECISION - fitted.n} more thumbs are needed before this τ is reliable."


def _describe_unseen(unseen: TauSplit | None) -> str:
    if unseen is None:
        return "There are too few thumbs to measure it on others."

    side = unseen.passed
    n = unseen.passed.n + unseen.left.n
    if not side.n:
        return f"On thumbs that it is not fitted to none of {n} passes."

    return (
        f"On thumbs that it is not fitted to {side.right} of the {side.n} that pass are right, "
        f"{_format_share(side.precision)}; "
        f"{side.n} of {n} pass, {_format_share(unseen.coverage)}"
    )


def _format_share(of: Figure, digits: int = 3) -> str:
    if of.value is None:
        return "undefined"
    return f"{of:.{digits}f}".replace("  ", " ")


@dataclass(frozen=True)
class AgreementOfPeople:
    """How far people agree where several labelled the same conversations.

    Attributes:
        texts: Texts with labels of two people or more.
        agreed: Those of them on which all say the same.
    """

    texts: int
    agreed: int
    alpha: Figure

    @classmethod
    def of(cls, opinions: Sequence[Opinion], texts: set[str]) -> AgreementOfPeople:
        """Sum up opinions of these texts."""
        of_texts = []
        for opinion in opinions:
            if opinion.text_hash in texts:
                of_texts.append(opinion)

        values: dict[str, set[str]] = {text: set() for text in find_texts_of_several(of_texts)}
        for opinion in of_texts:
            values.get(opinion.text_hash, set()).add(opinion.value)

        return cls(
            len(values),
            sum(len(values_of_text) == 1 for values_of_text in values.values()),
            measure_agreement(of_texts),
        )

    @property
    def share(self) -> Figure:
        """Share on which all say the same."""
        return make_share_with_exact_interval(self.agreed, self.texts)

    @property
    def as_json(self) -> JsonDict:
        """All of it as JSON values."""
        about = {
            "texts": self.texts,
            "agreed": self.agreed,
            "share": self.share.value,
            "interval": get_interval_ends(self.share),
        }
        return about | {"alpha": asdict(self.alpha)}


@dataclass(frozen=True)
class RatingPrecision:
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
    people: tuple[AgreementOfPeople, AgreementOfPeople]

    @property
    def as_json(self) -> JsonDict:
        """All of it as JSON values."""
        passed, left = (person.as_json if person.texts else None for person in self.people)
        return self.chosen.as_json | {
            "people": {"passed": passed, "left": left},
            "by_runs": [point.as_json for point in self.by_runs],
            "by_tau": [point.as_json for point in self.by_tau],
        }


def measure_precision(
    store: Store,
    run: str,
    task: RatingTask,
    rule: RatingRule,
    conversations: Sequence[Conversation],
) -> RatingPrecision | None:
    """Hold a run's votes against thumbs; None if nothing is labeled, or if there are not two options.

    Conversations that can't be judged are left out.

    Args:
        rule: With the τ that was fitted, if one was.
    """
    # conversations with a thumb, when there are two options to compare it with
    truth = get_thumb_options(
        [conversation for conversation in conversations if not conversation.not_scorable]
    )
    ids = [*truth] if len(task.question.options) == 2 else []
    batches = (
        ids[start : start + CONVERSATIONS_PER_QUERY]
        for start in range(0, len(ids), CONVERSATIONS_PER_QUERY)
    )
    # −1 stands for a run that failed
    picks = {
        id_: [vote.chosen if isinstance(vote, Answer) else -1 for vote in votes]
        for batch in batches
        for id_, votes in iterate_votes(store, run, task, batch)
    }
    used = []
    for conversation in conversations:
        if conversation.id in picks:
            used.append(conversation)

    if not used:
        return None

    # [conversation, run]; runs that were spared stay −1
    chosen = np.full((len(used), rule.runs), -1, dtype=np.int64)
    for row, conversation in enumerate(used):
        chosen[row, : len(picks[conversation.id])] = picks[conversation.id]

    right = np.array(
        [truth[conversation.id] for conversation in used],
        dtype=np.int64,
    )
    together = number_dependent_blocks(used)
    # [conversation, option]
    votes = np.asarray((chosen[:, :, None] == [0, 1]).sum(axis=1), dtype=np.int64)
    spared = []
    for conversation in used:
        spared.append(rule.runs - len(picks[conversation.id]))

    # by the rule as in the verdicts, spared runs included
    passes = np.array(
        [not rule.refusal(*vote_row) for vote_row in zip(votes.tolist(), spared, strict=True)],
        dtype=bool,
    )
    # with spared runs the first n aren't those that would have been asked
    numbers = () if any(spared) else range(1, rule.runs + 1)
    # the minimum shrinks with the number of runs, rounded up
    first = {n: count_first_runs(chosen, n, 2, ceil(rule.minimum * n / rule.runs)) for n in numbers}
    # where one run may, so with any number of them
    one_differs = rule.tau == compute_tau_of_all_but_one(rule.runs)
    taus = {}
    for n in numbers:
        if (tau := compute_tau_of_all_but_one(n) if one_differs else rule.tau) is not None:
            taus[n] = tau

    # how far people agree, separately for texts that pass and texts that don't
    opinions = _collect_opinions(store, task, conversations)
    passing = {used[row].text_hash for row in np.flatnonzero(passes)}
    failing = {conversation.text_hash for conversation in used} - passing

    return RatingPrecision(
        split_by_mask(passes, find_modes(votes), right, together),
        tuple(
            TauPoint(n, tau, split_at(*first[n], right, tau, together)) for n, tau in taus.items()
        ),
        tuple(
            point for n in numbers for point in compute_tau_points(*first[n], right, n, together)
        ),
        (AgreementOfPeople.of(opinions, passing), AgreementOfPeople.of(opinions, failing)),
    )


def _collect_opinions(
    store: Store,
    task: RatingTask,
    conversations: Sequence[Conversation],
) -> list[Opinion]:
    # a thumb up goes with the first option, a thumb down with the second
    thumbs = {Label.POSITIVE: "up", Label.NEGATIVE: "down"}
    answers = dict(
        zip(
            (option.text for option in task.question.options),
            thumbs.values(),
            strict=True,
        )
    )
    # thumbs of the log count as opinions of whoever gave them
    log = []
    for conversation in conversations:
        if conversation.judge and conversation.label in thumbs:
            log.append(
                Opinion(
                    conversation.judge,
                    conversation.text_hash,
                    conversation.id,
                    "",
                    thumbs[conversation.label],
                    "log",
                    "",
                )
            )

    # people's labels under both questions, in the words of a thumb
    questions_asked = [
        (THUMB_QUESTION, {"up": "up", "down": "down"}),
        (make_person_question(task.question).id, answers),
    ]
    opinions_kept = []
    for question, words in questions_asked:
        for opinion in read_opinions(store, question):
            if opinion.source == "person" and opinion.counts and opinion.value in words:
                opinions_kept.append(
                    Opinion(
                        opinion.annotator,
                        opinion.text_hash,
                        opinion.conversation,
                        opinion.run,
                        words[opinion.value],
                        opinion.source,
                        opinion.drawn,
                    )
                )

    return log + opinions_kept
