"""What `runs`, `trace` and `why` show of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.tree import Tree

from pollex.cli.output import cell, table
from pollex.cli.session import print_json
from pollex.conversations.conversation import Conversation
from pollex.errors import BadRubrics, PollexError
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric import Reason
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.options import RunOptions
from pollex.store.resume import conversations_of, find_run, runs
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.traces import Branch, ConversationTrace, conversation_trace, provenance, run_tree
from pollex.text import count, printable, writable

LONGEST = 400
"""Characters shown of a line."""

RUBRIC = 4000
"""Of a rubric that somebody asks about."""


@contextmanager
def looking(options: RunOptions) -> Iterator[tuple[Store, Console]]:
    """The store, opened for reading, and where to print for people."""
    with Store.open(options.store, read_only=True) as store:
        for notice in store.notices:
            line(Console(stderr=True), f"Note: {notice}")
        yield store, Console(stderr=options.as_json)


def line(console: Console, text: str, style: str | None = None, limit: int = LONGEST) -> None:
    """A line of foreign text, made harmless."""
    console.print(printable(text, limit, keep_lines=True), style=style, markup=False, highlight=False, soft_wrap=True)


def show_runs(options: RunOptions) -> None:
    """A row a run."""
    with looking(options) as (store, console):
        found = runs(store)
        made = table("run", "command", "started (UTC)", "status", "roles")
        for run in found:
            made.add_row(
                run.id, run.command, run.started[:19].replace("T", " "), run.status, cell(", ".join(run.roles))
            )
        console.print(made)
        if options.as_json:
            print_json({"runs": [run.model_dump(mode="json") for run in found]})


def show_run(options: RunOptions, name: str) -> None:
    """The tree of a run."""
    with looking(options) as (store, console):
        run = find_run(store, name)
        branches = run_tree(store, run.id)
        line(console, f"{run.id}: {run.status}, roles: {', '.join(run.roles) or 'unknown'}, started {run.started[:19]}")
        top = Tree("", hide_root=True)
        for branch in branches:
            grow(top, branch)
        console.print(top)
        if options.as_json:
            print_json({"run": run.model_dump(mode="json"), "tree": [branch_json(branch) for branch in branches]})


def grow(tree: Tree, branch: Branch) -> None:
    """Adds a branch with its count, duration and errors."""
    count = f" × {branch.count}" if branch.count > 1 else ""
    longest = f", longest {spoken(branch.longest)}" if branch.count > 1 else ""
    added = tree.add(cell(f"{branch.name}{count}  {spoken(branch.ms)}{longest}  ({branch.kind})"))
    for error, times in branch.errors.items():
        added.add(cell(f"{times} × {error}", LONGEST), style="red")
    for inner in branch.branches:
        grow(added, inner)


def spoken(ms: float) -> str:
    """A duration for people."""
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.1f} ms"


def branch_json(branch: Branch) -> dict[str, Any]:
    """A branch for scripts."""
    return {
        "name": branch.name,
        "kind": branch.kind,
        "count": branch.count,
        "ms": branch.ms,
        "longest_ms": branch.longest,
        "errors": branch.errors,
        "branches": [branch_json(inner) for inner in branch.branches],
    }


def show_conversation(options: RunOptions, name: str, conversation_id: str) -> None:
    """Everything that happened to one conversation."""
    with looking(options) as (store, console):
        run = find_run(store, name)
        trace = conversation_trace(store, run.id, writable(conversation_id))
        line(console, f"{run.id} · {conversation_id} · label {trace.conversation.label}{side_of(trace)}", "bold")
        show_turns(console, trace.conversation)
        for step in trace.steps:
            line(console, f"{step.started[11:23]}  {step.name}  {spoken(step.ms)}  {step.error or 'ok'}")
        show_findings(console, trace, questions_of(store, run))
        if options.as_json:
            print_json(trace_json(run.id, trace))


def side_of(trace: ConversationTrace) -> str:
    """On which side of the split it was."""
    return {"train": ", learnt from", "test": ", held out"}.get(trace.side, "")


def show_turns(console: Console, conversation: Conversation) -> None:
    """The conversation itself, turn numbers before the turns."""
    for number, turn in enumerate(conversation.turns):
        line(console, f"  [{number}] {turn.role}: {printable(turn.content, LONGEST)}", "dim")


def questions_of(store: Store, run: Run) -> dict[str, Question]:
    """What was asked in a run, by id, where it was not about rubrics: answers tell only which option they chose."""
    if run.command not in ("judge", "grade"):
        return {}
    from pollex.graphs.grade import run as grading
    from pollex.graphs.judge import run as judging  # a tenth of a second, for these runs alone

    return judging.asked_in(store, run.id) if run.command == "judge" else grading.asked_in(store, run.id)


def show_findings(console: Console, trace: ConversationTrace, questions: Mapping[str, Question]) -> None:
    """Reasons, answers and score."""
    found = trace.extraction
    if isinstance(found, Unanswered):
        line(console, f"no reasons: {found.outcome}: {found.detail}")
    elif found is not None:
        line(console, found.summary)
        for reason in found.reasons:
            show_reason(console, reason)
    for id_, answer in trace.answers.items():
        question = questions.get(id_)
        text = question.text if question else trace.asked.get(id_, id_)
        if isinstance(answer, Unanswered):
            line(console, f"  {id_}  {text}  unanswered: {answer.outcome}: {answer.detail}", "red")
        else:
            options = question.options if question else answer.scale
            known = len(answer.probabilities) == len(options)
            option = options[answer.chosen].text if known else str(answer.chosen)
            by = ", ".join(dict.fromkeys((answer.source, answer.judge)))
            line(console, f"  {id_}  {text}  {option} ({by}); {answer.justification}")
    if (score := trace.score) and score.netsat is not None:
        sure = "confident" if score.confident else "in the uncertainty window"
        line(
            console, f"NetSAT {score.netsat:.2f}: {score.label}, {sure}, P(positive) = {score.probability:.2f}", "bold"
        )


def show_reason(console: Console, reason: Reason) -> None:
    """A reason with its quotes."""
    line(console, f"  {reason.polarity.upper()} {reason.text}")
    for quote in reason.quotes:
        line(console, f"      turn {quote.turn}: “{printable(quote.text, LONGEST)}”", "dim")


def trace_json(run: str, trace: ConversationTrace) -> dict[str, Any]:
    """A conversation's trace for scripts."""
    return {
        "run": run,
        "conversation": trace.conversation.model_dump(mode="json"),
        "side": trace.side,
        "steps": [vars(step) for step in trace.steps],
        "extraction": None if trace.extraction is None else trace.extraction.model_dump(mode="json"),
        "answers": {id_: answer.model_dump(mode="json") for id_, answer in trace.answers.items()},
        "score": None if trace.score is None else vars(trace.score),
    }


def show_why(options: RunOptions, path: Path, name: str) -> None:
    """A rubric's reasons, quotes and conversations; the conversations' turns where the store still has the run."""
    rubrics = RubricSet.load(path, arrays=False)
    rubric = rubric_named(rubrics, name, path)
    console = Console(stderr=options.as_json)
    who = ", ".join(dict.fromkeys(rubrics.roles.values()))
    line(console, f"{rubric.polarity.upper()} {rubric.text}", "bold", RUBRIC)
    line(console, f"({rubric.id}, {who})")
    if isinstance(rubric, DroppedRubric):
        line(console, f"not in the set: {rubric.reason}")
    elif rubric.choice:
        line(console, told_choice(rubric))
    reasons, kept = origin(options, rubrics, rubric)
    for reason in reasons:
        line(console, f"\n{reason.conversation_id}" + beginning(kept.get(reason.conversation_id)))
        show_reason(console, reason)
    if not reasons:
        elsewhere = isinstance(rubric, DroppedRubric) and rubric.support
        gone = f"its reasons are in the store of run {rubrics.run}: name it with --store"
        line(console, gone if elsewhere else "no reasons: a person wrote it")
    if options.as_json:
        print_json(
            {
                "rubric": rubric.model_dump(mode="json"),
                "reasons": [reason.model_dump(mode="json") for reason in reasons],
                "conversations": {id_: c.model_dump(mode="json") for id_, c in kept.items()},
            }
        )


def rubric_named(rubrics: RubricSet, name: str, path: Path) -> ChosenRubric | DroppedRubric:
    """The rubric whose id begins so, in the set or among those dropped."""
    every: list[ChosenRubric | DroppedRubric] = [*rubrics.rubrics, *rubrics.dropped]
    found = [rubric for rubric in every if rubric.id.startswith(name)]
    if len(found) != 1:
        raise BadRubrics(
            f"{len(found) or 'no'} rubrics have an id that begins with {name!r}",
            where=str(path),
            remedy=f"the set has {', '.join(rubric.id for rubric in rubrics.rubrics)}",
        )
    return found[0]


def told_choice(rubric: ChosenRubric) -> str:
    """Why it was kept."""
    assert rubric.choice is not None, "asked only of chosen rubrics"
    choice = rubric.choice
    stability = "" if choice.stability is None else f"; chosen in {100 * choice.stability:.0f} % of bootstrap resamples"
    return f"chosen in step {choice.step}, when the loss of the set with it was {choice.loss:.4f}{stability}"


def origin(
    options: RunOptions, rubrics: RubricSet, rubric: ChosenRubric | DroppedRubric
) -> tuple[Sequence[Reason], Mapping[str, Conversation]]:
    """A rubric's reasons, and as many of their conversations as the store still has.

    Of a rubric that was dropped the set has no reasons: they, too, are the store's, or gone with it.
    """
    own = [] if isinstance(rubric, DroppedRubric) else [r for r in rubrics.reasons if r.id in rubric.reason_ids]
    try:
        with Store.open(options.store, read_only=True) as store:
            if isinstance(rubric, DroppedRubric):
                found = provenance(store, rubrics.run, rubric.id)
                return found.reasons, found.conversations
            ids = sorted({reason.conversation_id for reason in own})
            return own, {c.id: c for c in conversations_of(store, rubrics.run, ids=ids)}
    except PollexError:
        return own, {}


def beginning(conversation: Conversation | None) -> str:
    """How a conversation begins."""
    if conversation is None:
        return ""
    opening = printable(conversation.opening, 100)
    return f" ({count(len(conversation.turns), 'turn')}, label {conversation.label}): {opening}"
