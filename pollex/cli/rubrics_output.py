"""Output of `pollex rubrics`."""

from __future__ import annotations

from rich.text import Text

from pollex.cli.output import figure_text
from pollex.cli.rubric_lines import SCORES, SIDES, TURNED, figures_of, show_lines
from pollex.cli.session import Screen
from pollex.rubrics.headlines import went_the_other_way
from pollex.rubrics.records import ChosenRubric
from pollex.services.edit import EditedSet, is_edited
from pollex.services.lint import LintResult
from pollex.services.set_differences import Change, SetDifference
from pollex.text import count, printable

STYLES = {"del": "red strike", "ins": "green", "": ""}
BRACKETS = {"del": ("[-", "-]"), "ins": ("{+", "+}"), "": ("", "")}


def show_set(screen: Screen, found: EditedSet) -> None:
    """Show the rubrics, and whether changes wait for a refit."""
    groups: dict[str, list[tuple[ChosenRubric, bool]]] = {heading: [] for heading in (*SIDES.values(), TURNED)}
    for rubric, on in found.rows:
        groups[TURNED if went_the_other_way(rubric) else SIDES[rubric.polarity]].append((rubric, on))
    for heading, own in groups.items():
        if own:
            screen.say(f"{heading}:", "bold")
        for rubric, on in own:
            side = SCORES[rubric.polarity] if heading == TURNED else ""
            by = f"judge {rubric.answered_by}" if rubric.answered_by else ""
            state = (side, by, "edited" * is_edited(rubric), "" if on else "off", rubric.note, f"id {rubric.id}")
            show_lines(screen, rubric.text, [*figures_of(rubric), *filter(None, state)])
    screen.say(f"Judge: {found.rubrics.judge.name}")
    if found.rubrics.edited:
        screen.say(f"Edited since θ was fitted; fit it again: pollex refit LOGS --rubrics {found.path}", "yellow")


def show_edit(screen: Screen, found: EditedSet) -> None:
    """Show where a change was written; without a change the set."""
    if not found.changed:
        show_set(screen, found)
        return
    screen.say(f"{found.changed}: wrote {found.edits}")
    if found.judged:
        screen.say(found.judged)


def show_marks(screen: Screen, found: LintResult) -> None:
    """Show each mark under its rubric."""
    marked = dict.fromkeys(mark.id for mark in found.marks)
    by = f"; better words by {found.worded_by}" if found.worded_by and not found.unanswered else ""
    screen.say(f"{len(marked)} of {count(found.n, 'rubric')} marked{by}")
    if found.unanswered:
        screen.say(f"{found.worded_by} gave no better words ({found.unanswered}); those below are by rule", "yellow")
    for id_ in marked:
        screen.say(f"{id_}  {found.texts[id_]}")
        for mark in found.marks:
            if mark.id == id_:
                screen.say(f"  {mark.why}", "yellow")
                for better in mark.better:
                    screen.say(f"  better: {better}", "green")


def show_difference(screen: Screen, found: SetDifference) -> None:
    """Show figures, then the rubrics that differ."""
    for name, one in (("before", found.before), ("after", found.after)):
        auc = figure_text(one.held_out.auc) if one.held_out else "nothing held out"
        screen.say(f"{name}: {count(len(one.rubrics), 'rubric')}, θ {one.theta:.2f}, held-out AUC {auc}")
    screen.say(", ".join(f"{number} {kind}" for kind, number in found.counts.items()))
    for change in found.changes:
        known = change.after or change.before
        assert known is not None, "one of the two sets has it"
        if change.kind != "same":
            show_lines(screen, marked(change), [change.kind, SIDES[known.polarity].lower(), f"id {known.id}"])


def marked(change: Change) -> Text:
    """Return the words of both, those that differ in brackets and in color."""
    line, both = Text(), change.before is not None and change.after is not None
    for part in change.words:
        kind = part.kind if both else ""
        begin, end = BRACKETS[kind]
        line.append(f"{begin}{printable(part.text, 400)}{end} ", style=STYLES[kind])
    return line
