"""Print runs, traces, and where rubrics came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.tree import Tree

from pollex.cli.output import cell, table
from pollex.cli.session import Screen, say
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric import Reason
from pollex.services.history import ConversationHistory, NodeState, Origin, RunList, RunTree
from pollex.store.traces import Branch, ConversationTrace
from pollex.text import count, printable

LONGEST = 400
"""Characters shown of a line."""
RUBRIC = 4000
"""Characters shown of a rubric that somebody asks about."""
line = partial(say, limit=LONGEST)


def show_runs(screen: Screen, found: RunList) -> None:
    """Print a row for each run."""
    made = table("run", "started (UTC)", "took", "status", "roles", "log", "rubrics", "AUC")
    widest = max((len(row.run.id) for row in found.runs), default=3)
    for number, width in {0: widest, 1: 13, 2: 7, 3: 6, 4: 8, 7: 5}.items():  # on narrow terminals file names give way
        made.columns[number].no_wrap, made.columns[number].min_width = True, width
    for row in found.runs:
        run = row.run
        more = f" and {len(row.logs) - 1} more" if len(row.logs) > 1 else ""
        made.add_row(
            run.id,
            run.started[5:16].replace("T", " "),
            "" if row.seconds is None else duration(1000 * row.seconds),
            run.status,
            cell(", ".join(role.removesuffix(" (no LLM)") for role in run.roles)),
            cell(Path(row.logs[0]).name + more if row.logs else "", 60),
            cell(Path(row.rubrics).name if row.rubrics else "", 60),
            "" if row.auc is None else f"{row.auc:.3f}",
        )
    screen.console.print(made)


def show_state(screen: Screen, found: NodeState) -> None:
    """Print the state after a node, as JSON."""
    screen.console.out(json.dumps(found.state, indent=1), highlight=False)  # of ASCII: nothing in it forges a line


def show_run(screen: Screen, found: RunTree) -> None:
    """Print the tree of a run."""
    run = found.run
    roles = ", ".join(run.roles) or "unknown"
    line(screen.console, f"{run.id}: {run.status}, roles: {roles}, started {run.started[:19]}")
    top = Tree("", hide_root=True)
    for branch in found.branches:
        add_branch(top, branch)
    screen.console.print(top)


def add_branch(tree: Tree, branch: Branch) -> None:
    """Add a branch with count, duration and errors; concurrent durations are summed."""
    many = branch.count > 1
    times = f" × {branch.count}" if many else ""
    took = f"{duration(branch.ms)} summed, longest {duration(branch.longest)}" if many else duration(branch.ms)
    added = tree.add(cell(f"{branch.name}{times}  {took}  ({branch.kind})"))
    if branch.told:
        added.add(cell(branch.told, LONGEST))
    for error, number in branch.errors.items():
        added.add(cell(f"{number} × {error}", LONGEST), style="red")
    for inner in branch.branches:
        add_branch(added, inner)


def duration(ms: float) -> str:
    """Format a duration."""
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.1f} ms"


def show_conversation(screen: Screen, found: ConversationHistory) -> None:
    """Print everything that happened to one conversation."""
    console, trace = screen.console, found.trace
    about = f"{found.run} · {trace.conversation.id} · label {trace.conversation.label}{side_of(trace)}"
    line(console, about, "bold")
    show_turns(console, trace.conversation)
    for step in trace.steps:
        line(console, f"{step.started[11:23]}  {step.name}  {duration(step.ms)}  {step.error or 'ok'}")
    show_findings(console, trace, found.questions)
    for name, original in found.originals.items():
        line(console, f"{name} stands for {original}")


def side_of(trace: ConversationTrace) -> str:
    """Describe the side of the split that a conversation was on."""
    return {"train": ", learnt from", "test": ", held out"}.get(trace.side, "")


def show_turns(console: Console, conversation: Conversation) -> None:
    """Show the turns of a conversation with their numbers."""
    for number, turn in enumerate(conversation.turns):
        line(console, f"  [{number}] {turn.role}: {turn.shown}", "dim")


def show_findings(console: Console, trace: ConversationTrace, questions: Mapping[str, Question]) -> None:
    """Show reasons, answers and score."""
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
            never = answer.never_came_up
            option = answer.word if never else options[answer.chosen].text if known else str(answer.chosen)
            by = answer.judge if answer.judge.startswith(answer.source) else f"{answer.source}, {answer.judge}"
            line(console, f"  {id_}  {text}  {option} ({by}); {answer.justification}")
    if (score := trace.score) and score.netsat is not None:
        sure = "confident" if score.confident else "in the uncertainty window"
        line(
            console, f"NetSAT {score.netsat:.2f}: {score.label}, {sure}, P(positive) = {score.probability:.2f}", "bold"
        )


def show_reason(console: Console, reason: Reason) -> None:
    """Show a reason with its quotes."""
    line(console, f"  {reason.polarity.upper()} {reason.text}")
    for quote in reason.quotes:
        line(console, f"      {quote.place}: “{quote.text}”", "dim")


def show_why(screen: Screen, found: Origin) -> None:
    """Print a rubric's reasons, quotes and conversations."""
    console, rubric = screen.console, found.rubric
    line(console, f"{rubric.polarity.upper()} {rubric.text}", "bold", limit=RUBRIC)
    line(console, f"({rubric.id}, {', '.join(found.roles)})")
    if isinstance(rubric, DroppedRubric):
        line(console, f"not in the set: {rubric.reason}")
    elif rubric.choice:
        line(console, told_choice(rubric))
    for reason in found.reasons:
        line(console)
        line(console, reason.conversation_id + beginning(found.conversations.get(reason.conversation_id)))
        show_reason(console, reason)
    if not found.reasons:
        elsewhere = isinstance(rubric, DroppedRubric) and rubric.support
        gone = f"its reasons are in the store of run {found.learned_in}: name it with --store"
        line(console, gone if elsewhere else "no reasons: a person wrote it")


def told_choice(rubric: ChosenRubric) -> str:
    """Describe why a rubric was kept."""
    assert rubric.choice is not None, "asked only of chosen rubrics"
    choice = rubric.choice
    stability = "" if choice.stability is None else f"; chosen in {100 * choice.stability:.0f} % of bootstrap resamples"
    return f"chosen in step {choice.step}, when the loss of the set with it was {choice.loss:.4f}{stability}"


def beginning(conversation: Conversation | None) -> str:
    """Describe the beginning of a conversation."""
    if conversation is None:
        return ""
    opening = printable(conversation.opening, 100)
    return f" ({count(len(conversation.turns), 'turn')}, label {conversation.label}): {opening}"
