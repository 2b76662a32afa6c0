"""Changes of a system prompt: a diff, or the changed prompt, applied and checked."""

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path

from pollex.errors import UNREADABLE, BadInput
from pollex.rubrics.rubric import Rubric
from pollex.services.remedy.prompt_text import PromptText

HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
DIFFS = (".diff", ".patch")


@dataclass(frozen=True)
class PromptEdit:
    """A changed prompt.

    Attributes:
        name: As people call it.
        purpose: What it is for, in the proposer's words.
        refused: Why it isn't tried; empty if it is.
    """

    name: str
    old: PromptText
    new: PromptText
    purpose: str = ""
    refused: str = ""

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        lines = difflib.unified_diff(self.old.lines, self.new.lines, "old", "new", lineterm="")
        return "\n".join([*lines, ""])

    @property
    def kept(self) -> dict[str, str]:
        """Its fields and the diff, as JSON values."""
        return {
            "name": self.name,
            "purpose": self.purpose,
            "diff": self.diff,
            "text": self.new.text,
            "refused": self.refused,
        }

    @property
    def added(self) -> str:
        """The lines that it adds."""
        found = difflib.ndiff(self.old.lines, self.new.lines)
        return "\n".join(line[2:] for line in found if line.startswith("+ "))


def with_line(prompt: PromptText, line: str) -> PromptText:
    """Return a prompt with one more line at its end."""
    return replace(prompt, text=f"{prompt.text.rstrip()}\n{line}\n")


def naive_sentence(rubric: Rubric) -> str:
    """Write the rubric's opposite as one sentence of a prompt: the floor that every clever edit has to beat."""
    said = rubric.text.strip().rstrip(".")
    lead = "Wherever it fits, reply" if rubric.polarity == "sat" else "Never reply"
    return f"{lead} so that this is true: {said}."


def read_edit(path: Path, prompt: PromptText) -> PromptEdit:
    """Read a diff (`.diff`, `.patch`) or a changed prompt, and check it.

    Raises:
        BadInput: It can't be read, doesn't apply, changes nothing, or changes what is protected or a place for a value.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the edit can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    changed = applied(prompt, text, str(path)) if path.suffix in DIFFS else text
    edit = PromptEdit(path.stem, prompt, PromptText(changed, prompt.keep))
    if why := refusal_of(edit):
        raise BadInput(why, where=str(path), remedy="leave that part as it is in the prompt")
    return edit


def refusal_of(edit: PromptEdit) -> str:
    """Return why an edit is refused; empty if it isn't."""
    if edit.new.text.strip() == edit.old.text.strip():
        return "it changes nothing"
    if lost := [line for line in edit.old.protected if line not in edit.new.protected]:
        return f"{len(lost)} protected lines are changed, the first: {lost[0][:80]!r}"
    if edit.new.places != edit.old.places:
        return f"places for values are changed: {', '.join(edit.old.places)} became {', '.join(edit.new.places)}"
    return ""


def applied(prompt: PromptText, diff: str, where: str) -> str:
    """Apply a unified diff.

    Raises:
        BadInput: A hunk doesn't fit the prompt; its number and line are named.
    """
    lines, moved = list(prompt.lines), 0
    hunks = _hunks(diff)
    if not hunks:
        raise BadInput("no hunk (`@@ -1,3 +1,4 @@`) in it", where=where, remedy="write it with `diff -u OLD NEW`")
    for number, (start, body) in enumerate(hunks, 1):
        before = [line[1:] for line in body if line[:1] in " -"]
        after = [line[1:] for line in body if line[:1] in " +"]
        place = _place(lines, before, start - 1 + moved)
        if place is None:
            known = prompt.lines[start - 1] if 0 < start <= len(prompt.lines) else "(no such line)"
            what = f"hunk {number} doesn't apply at line {start}: the prompt has {known[:60]!r}, the diff "
            remedy = "make it anew against this prompt (`diff -u OLD NEW`)"
            raise BadInput(what + f"{(before or [''])[0][:60]!r}", where=where, remedy=remedy)
        lines[place : place + len(before)] = after
        moved += len(after) - len(before)
    return "\n".join([*lines, ""])


def _hunks(diff: str) -> list[tuple[int, list[str]]]:
    found: list[tuple[int, list[str]]] = []
    for line in diff.splitlines():
        if match := HUNK.match(line):
            found.append((int(match[1]), []))
        elif found and not line.startswith("\\"):
            found[-1][1].append(line or " ")
    return found


def _place(lines: list[str], before: list[str], wanted: int) -> int | None:
    """Return where lines stand: at the wanted place, else at the only other one."""
    if not before:
        return min(max(wanted + 1, 0), len(lines))
    places = [n for n in range(len(lines) - len(before) + 1) if lines[n : n + len(before)] == before]
    if wanted in places:
        return wanted
    return places[0] if len(places) == 1 else None
