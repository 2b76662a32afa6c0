"""The assistant's system prompt, a text with protected parts or a template of it; and changes of it, as diffs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from pollex.conversations.conversation import Conversation
from pollex.errors import UNREADABLE_FILE_HINT, BadInput, WrongUse
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rubrics.rubric import Rubric
from pollex.text import read_file_text

KEEP_MARK_PATTERN = re.compile(r"<!--\s*keep\s*-->")
PLACEHOLDER_PATTERN = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}|\{([^\W\d]\w*)\}")
"""A value of a conversation: `{name}` or `{{name}}`."""
HUNK_HEADER_PATTERN = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
HUNK_START_PATTERN = re.compile(r"^@@ ")
MAIL_SIGNATURE_PATTERN = re.compile(r"^-- ?$")
DIFF_HEADER_PREFIXES = ("diff ", "index ", "--- ", "+++ ", "old mode", "new mode", "\\")
"""What stands before the first hunk of a file, or after its last one."""
DIFF_FILE_ENDINGS = (".diff", ".patch")


@dataclass(frozen=True)
class PromptText:
    """A system prompt.

    Attributes:
        keep: Patterns of lines that nobody may change.
        name: As a user calls it who has several.
    """

    text: str
    keep: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        for pattern in self.keep:
            try:
                re.compile(pattern)
            except re.error as error:
                raise WrongUse(
                    f"{pattern!r:.60} is no pattern: {error}",
                    option="keep",
                ) from None

    @classmethod
    def load(cls, path: Path, keep: Sequence[str] = (), name: str = "") -> PromptText:
        """Read a prompt from its file.

        Raises:
            BadInput: It can't be read, has no words, or a `<!-- keep -->` has no partner.
        """
        # what can't be a prompt is refused with the file's name
        text = read_prompt_file(path, "prompt")
        if not text.strip():
            raise BadInput(
                "the prompt has no words",
                where=str(path),
                hint="give the assistant's system prompt",
            )

        # marks come in pairs
        if len(KEEP_MARK_PATTERN.findall(text)) % 2:
            what = "a `<!-- keep -->` has no second one: what it protects has no end"
            raise BadInput(
                what,
                where=str(path),
                hint="put one before and one after the protected part",
            )

        return cls(text, tuple(keep), name)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        return split_diff_lines(self.text)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The places for values, as they are written, sorted."""
        return tuple(sorted(match.group() for match in PLACEHOLDER_PATTERN.finditer(self.text)))

    @cached_property
    def protected(self) -> tuple[str, ...]:
        """The lines that nobody may change, in order."""
        inside = False
        protected = []
        for line in self.lines:
            marks = len(KEEP_MARK_PATTERN.findall(line))
            if inside or marks or any(re.search(pattern, line) for pattern in self.keep):
                protected.append(line)
            inside ^= bool(marks % 2)

        return tuple(protected)

    def values_in(self, logged: str) -> dict[str, str] | None:
        """Return the values with which the logged system turn was made from this template; None if it wasn't.

        Each value ends where the text after its place stands first, so that a long turn is read
        once. Where a place comes again, the text between is looked for with the value that it had.
        """
        # blanks around either text don't count
        logged_text = logged.strip()
        text = self.text.strip()
        places = list(PLACEHOLDER_PATTERN.finditer(text))
        # a prompt without places is the turn itself, or another's
        if not places:
            return {} if logged_text == text else None

        # the text after each place, up to the next one
        starts = [*(place.start() for place in places), len(text)]
        after = []
        for place, start in zip(places, starts[1:], strict=True):
            after.append(text[place.end() : start])

        before = text[: starts[0]]
        if not logged_text.startswith(before):
            return None

        # values in the order of the places; a name that comes again has the value it had
        values: dict[str, str] = {}
        at = len(before)
        for number, (place, then) in enumerate(zip(places, after, strict=True)):
            name = place[1] or place[2]
            last = number == len(places) - 1
            if name in values:
                end = at + len(values[name])
                if logged_text[at:end] != values[name] or not logged_text.startswith(then, end):
                    return None
            else:
                end = _find_end_of_value(logged_text, at, then, last=last)
                if end < 0:
                    return None
                values[name] = logged_text[at:end]

            at = end + len(then)

        # nothing may be left over
        return values if at == len(logged_text) else None

    def rendered(self, values: dict[str, str]) -> str | None:
        """Fill the places; None where a value is missing: nothing is ever filled with emptiness."""
        names = set()
        for match in PLACEHOLDER_PATTERN.finditer(self.text):
            names.add(match[1] or match[2])

        if names - values.keys():
            return None
        return PLACEHOLDER_PATTERN.sub(lambda match: values[match[1] or match[2]], self.text)


def _find_end_of_value(
    text: str,
    at: int,
    then: str,
    *,
    last: bool,
) -> int:
    """Return where a value ends, before the text that follows it; -1 if that isn't there."""
    # the last value ends where the text's end begins
    if last:
        end = len(text) - len(then)
        if end >= at and text.endswith(then):
            return end
        return -1

    return text.find(then, at)


def read_prompt_file(path: Path, what: str) -> str:
    """Read a prompt or a change of it.

    Raises:
        BadInput: It can't be read.
    """
    try:
        return read_file_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the {what} can't be read: {error}",
            where=str(path),
            hint=UNREADABLE_FILE_HINT,
        ) from error


def parse_named_file(source: str | Path) -> tuple[str, Path]:
    """Return the name and the path of `NAME=FILE`; a file has no name."""
    name, _, path = str(source).partition("=")
    if path and not Path(source).exists():
        return (name, Path(path))
    return ("", Path(source))


def render_prompt_for(
    context: ReplyContext,
    prompt: PromptText,
    *,
    any_prompt: bool = False,
    made_from: PromptText | None = None,
    render: Callable[[str, Conversation], str | None] | None = None,
) -> str | None:
    """Return the prompt with a conversation's values, from its system turn or its metadata; None where they miss.

    Args:
        any_prompt: Whether a system turn that another prompt made is passed over: values are the
            metadata's then.
        made_from: The prompt that made the logged system turn; None: this one.
        render: A function of the user's that does it.
    """
    # a function of the user's replaces all that follows
    if render is not None:
        return render(prompt.text, context.conversation)

    # values of the metadata that can stand in a text
    metadata = context.conversation.metadata
    metadata_values = {}
    for name, value in metadata.items():
        if isinstance(value, str | int | float):
            metadata_values[name] = str(value)

    system = next(
        (turn.content for turn in context.conversation.turns if turn.role == "system"),
        None,
    )
    # without a system turn a prompt that has a name must be named in the metadata
    if system is None and prompt.name not in {"", *metadata_values.values()}:
        return None

    # values of the logged system turn, else of the metadata
    values = metadata_values if system is None else (made_from or prompt).values_in(system)
    if values is None:
        if any_prompt:
            return prompt.rendered(metadata_values)
        return None
    return prompt.rendered(values)


def append_line(prompt: PromptText, line: str) -> PromptText:
    """Return a prompt with one more line at its end."""
    return replace(prompt, text=f"{prompt.text.rstrip()}\n{line}\n")


def write_naive_sentence(rubric: Rubric) -> str:
    """Write the rubric's opposite as one sentence of a prompt: the floor that every clever edit has to beat."""
    statement = rubric.text.strip().rstrip(".")
    if rubric.polarity == "sat":
        lead = "Wherever it fits, reply"
    else:
        lead = "Never reply"

    return f"{lead} so that this is true: {statement}."


def append_hint(
    prompt: PromptText,
    rubric: Rubric,
    context: ReplyContext,
) -> PromptText:
    """Return a prompt with the remedy of one conversation: the most that any prompt could do there."""
    # no place for a value
    failed_reply = " ".join(context.reply.content.split())[:600].replace("{", "(").replace("}", ")")
    return append_line(
        prompt,
        f"{write_naive_sentence(rubric)} Here above all. This reply failed: {failed_reply}",
    )


def write_flattering_prompt(prompt: PromptText, rubric: Rubric) -> PromptText:
    """Return a prompt that changes no deed, and only has replies claim to do well."""
    claimed = "true" if rubric.polarity == "sat" else "not true"
    statement = rubric.text.strip().rstrip(".")
    return append_line(
        prompt,
        f"Change nothing in what you do, but end each reply by stating that this is {claimed}: {statement}.",
    )


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
        lines = difflib.unified_diff(
            self.old.lines,
            self.new.lines,
            "old",
            "new",
            lineterm="",
        )
        return "\n".join([*lines, ""])

    @property
    def kept(self) -> dict[str, str]:
        """Its fields and the diff, as JSON values."""
        about = {
            "name": self.name,
            "purpose": self.purpose,
            "diff": self.diff,
        }
        return about | {"text": self.new.text, "refused": self.refused}

    @property
    def added(self) -> str:
        """The lines that it adds."""
        diff = difflib.ndiff(self.old.lines, self.new.lines)
        return "\n".join(line[2:] for line in diff if line.startswith("+ "))

    @property
    def fault(self) -> str:
        """Why nobody may make it; empty if it is fine."""
        if self.new.text.strip() == self.old.text.strip():
            return "it changes nothing"

        for old, new in zip_longest(self.old.protected, self.new.protected):
            if old != new:
                return f"protected lines are changed, the first: {(new if old is None else old)[:80]!r}"

        if self.new.places != self.old.places:
            return f"places for values are changed: {', '.join(self.old.places)} became {', '.join(self.new.places)}"
        return ""


def read_prompt_edit(path: Path, prompt: PromptText) -> PromptEdit:
    """Read a diff (`.diff`, `.patch`) or a changed prompt, and check it.

    Raises:
        BadInput: It can't be read, doesn't apply, changes nothing, or changes what is protected or
            a place for a value.
    """
    text = read_prompt_file(path, "edit")
    # a diff is applied, any other file is the whole changed prompt
    if path.suffix in DIFF_FILE_ENDINGS:
        changed = apply_diff(prompt, text, str(path))
    else:
        changed = text

    edit = PromptEdit(path.stem, prompt, PromptText(changed, prompt.keep))
    if edit.fault:
        raise BadInput(
            edit.fault,
            where=str(path),
            hint="leave that part as it is in the prompt",
        )

    return edit


def split_diff_lines(text: str) -> list[str]:
    """Return the lines of a text as diffs have them: only a line feed, perhaps after a carriage return, ends one."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def parse_hunks(diff: str, where: str) -> list[tuple[int, list[str]]]:
    """Return the first line and the body of each hunk; mails of `git format-patch` have more around them.

    Raises:
        BadInput: There is none, it is of several files, or has a line that is none of a diff.
    """
    mend = "write it with `diff -u OLD NEW`"
    # lines of the hunk still to come, old and new: one that looks like a head may be text
    hunks: list[tuple[int, list[str]]] = []
    left = [0, 0]
    files = 0
    for number, line in enumerate(split_diff_lines(diff.rstrip("\r\n")), 1):
        place = f"{where}:{number}"
        # without a number a hunk has one line
        if match := HUNK_HEADER_PATTERN.match(line):
            hunks.append((int(match[1]), []))
            left = [int(count or 1) for count in match.groups()[1:]]
        elif HUNK_START_PATTERN.match(line):
            raise BadInput(
                f"no hunk begins like this: {line[:60]!r}",
                where=place,
                hint=mend,
            )
        # a mail's signature ends the diff
        elif hunks and max(left) <= 0 and MAIL_SIGNATURE_PATTERN.match(line):
            break
        # heads of files and what stands around them
        elif not hunks or (max(left) <= 0 and line.startswith(DIFF_HEADER_PREFIXES)):
            files += line.startswith("+++ ")
        # some programs strip the blank of an empty line
        elif line[:1] in ("", " ", "+", "-"):
            hunks[-1][1].append(line or " ")
            left = [left[0] - (line[:1] != "+"), left[1] - (line[:1] != "-")]
        elif not line.startswith("\\"):
            raise BadInput(
                f"a line of a diff begins with a blank, + or -: {line[:60]!r}",
                where=place,
                hint=mend,
            )

    if not hunks:
        raise BadInput(
            "no hunk (`@@ -1,3 +1,4 @@`) in it",
            where=where,
            hint=mend,
        )

    if files > 1:
        raise BadInput(
            f"it changes {files} files",
            where=where,
            hint="give a diff of the prompt alone",
        )

    return hunks


def apply_diff(prompt: PromptText, diff: str, where: str) -> str:
    """Apply a unified diff.

    Raises:
        BadInput: A hunk doesn't fit the prompt; its number and line are named.
    """
    hunks = parse_hunks(diff, where)
    lines = list(prompt.lines)
    moved = 0
    # lines before and after, and how far earlier hunks moved the rest
    for number, (start, body) in enumerate(hunks, 1):
        before = []
        for line in body:
            if line[:1] in " -":
                before.append(line[1:])
        after = []
        for line in body:
            if line[:1] in " +":
                after.append(line[1:])
        place = _find_place_of_lines(lines, before, start - 1 + moved)
        if place is None:
            if 0 < start <= len(prompt.lines):
                prompt_line = prompt.lines[start - 1]
            else:
                prompt_line = "(no such line)"

            what = f"hunk {number} doesn't apply at line {start}: the prompt has {prompt_line[:60]!r}, the diff "
            hint = "make it anew against this prompt (`diff -u OLD NEW`)"
            raise BadInput(
                what + f"{(before or [''])[0][:60]!r}",
                where=where,
                hint=hint,
            )

        # the hunk's own lines are replaced
        lines[place : place + len(before)] = after
        moved += len(after) - len(before)

    return "\n".join([*lines, ""])


def _find_place_of_lines(lines: list[str], before: list[str], expected: int) -> int | None:
    """Return where lines stand: at the wanted place, else at the only other one."""
    # a hunk without old lines inserts after its line
    if not before:
        return min(max(expected + 1, 0), len(lines))

    # other places only if there is exactly one: a guess could change the wrong part
    places = []
    for n in range(len(lines) - len(before) + 1):
        if lines[n : n + len(before)] == before:
            places.append(n)

    if expected in places:
        return expected
    return places[0] if len(places) == 1 else None
