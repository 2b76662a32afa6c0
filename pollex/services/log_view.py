"""What was read of a log, for a page on which a person corrects it: as it is read now, and what each column may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation, Label, format_openai_messages
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, PollexError, WrongUse
from pollex.formats.columns import Column, list_columns
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files, iterate_file_rows
from pollex.formats.inference import Candidate
from pollex.formats.labels import NEITHER_SIDE, normalize_number
from pollex.formats.log_shapes.turns import UnknownRole, parse_role
from pollex.formats.mapping import (
    CONVERSATION_PARTS,
    NO_TURN_ROLE,
    OPTION_BY_PART,
    TURN_PART_FIELDS,
    format_role_word,
    parse_name_pairs,
)
from pollex.formats.proposal import UnmappedLog, iterate_column_rows, read_first_rows
from pollex.formats.queries import is_query_source
from pollex.formats.read_logs import read_logs
from pollex.graphs.context import NullProgress
from pollex.services.inspect import TAKEN, Inspection, inspect_logs
from pollex.text import escape_controls

LARGE_LOG_BYTES = 64 << 20
"""Bytes of files from which on a look at their first rows is enough."""
MOST_ROWS = 5_000
"""Rows of each file that are looked at where they are large."""
MOST_COLUMNS = 60
MOST_VALUES = 40
MOST_SPEAKERS = 20
MOST_TURNS = 40
LONGEST_TURN = 3000
LONGEST_VALUE = 40
MOST_BAD_ROWS = 10
MOST_TRIED_ROWS = 10**9
"""Rows that may be bad while the words of the label are found out."""

MEANINGS = {Label.POSITIVE.value: "up", Label.NEGATIVE.value: "down"}
"""What a label's value is taken for, in the words of the page; all others are not rated."""


@dataclass(frozen=True, kw_only=True)
class LogView:
    """What was read of a log.

    Attributes:
        options: How it was read, by the names of options: what was asked for, and what was proposed.
        proposed: Whether nobody knows its shape, and a way to read it was tried and is proposed.
        error: What went wrong, where and what to do; empty where it was read.
        offer: Options that mend what went wrong, where the error has them.
        facts: What stands beside each other: its name, and what was found.
        left_out: What was left out and why, in sentences.
        notes: What the reader noticed.
        columns: Each column with three values, and the part that it is in a mapping.
        label: The column of the label, empty where there is none or a tool has it.
        values: Each value of the label with its number, and what it counts as.
        speakers: Each name of who speaks, and whose turns they are.
        talks: The first conversations as they will be judged.
        conversations: How many there are.
        rated: How many have a thumb up, a thumb down, and none.
        most_rows: How many rows of each file were looked at; 0 for all.
    """

    options: Mapping[str, Any]
    proposed: bool = False
    error: Mapping[str, str] = field(default_factory=dict)
    offer: Mapping[str, Any] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()
    columns: Sequence[Mapping[str, Any]] = ()
    label: str = ""
    values: Sequence[Mapping[str, Any]] = ()
    speakers: Sequence[Mapping[str, Any]] = ()
    talks: Sequence[Mapping[str, Any]] = ()
    conversations: int = 0
    rated: Mapping[str, int] = field(default_factory=dict)
    most_rows: int = 0


def view_log(
    sources: Sequence[str],
    *,
    reading: ReadOptions,
    options: Mapping[str, Any],
) -> LogView:
    """Return what is read of a log; what can't be read is told in it.

    Args:
        options: What `reading` was made of, by the names of options.
    """
    # large files are looked at in part, so that the page comes soon
    most_rows = MOST_ROWS if _bytes_of(sources) > LARGE_LOG_BYTES else None
    columns: list[Column] = []
    offered: Mapping[str, Any] = {}
    proposed = False
    try:
        # columns are read first: they are shown even if the rows can't be read
        columns = list_columns(read_first_rows(_opened(sources, reading)))
        try:
            logs = read_logs(sources, options=reading, most_rows=most_rows)
        except UnmappedLog as unread:
            if unread.reading is None:
                raise
            # it was read whole before it was proposed
            candidate = unread.reading.candidate
            logs = unread.reading.logs
            reading = candidate.options(reading)
            offered = _options_of(candidate)
            proposed = True
        except BadInput:
            # words of a label that nobody knows are for the person to say
            logs, words = _accept_unknown_words(sources, reading, most_rows)
            offered = {"unrated": words}

        inspection = inspect_logs(logs, reading=reading, progress=NullProgress())
    except PollexError as error:
        return _refused_view(error, columns, options)

    options = {**options, **offered}
    return LogView(
        options=options,
        proposed=proposed,
        facts=list(_facts(inspection)),
        left_out=list(_left_out(inspection)),
        notes=[escape_controls(note) for note in logs.notes],
        columns=list(_columns(columns, options, logs)),
        label=logs.label_field,
        values=list(_values(inspection, str(offered.get("unrated", "")))),
        speakers=list(_speakers(columns, options)),
        talks=[_talk(conversation) for conversation in inspection.examples],
        conversations=len(logs),
        rated={word: logs.counts.get(label, 0) for label, word in TAKEN[:3]},
        most_rows=most_rows or 0,
    )


def _accept_unknown_words(
    sources: Sequence[str],
    reading: ReadOptions,
    most_rows: int | None,
) -> tuple[Logs, str]:
    """Return a log with the label's unknown words taken as not rated, and these words.

    Raises:
        BadInput: Something else is wrong; or so many words are no label.
    """
    # whatever is bad is passed over here, to collect the words that stand as labels
    tried = read_logs(
        sources,
        options=replace(reading, max_bad=MOST_TRIED_ROWS),
        most_rows=most_rows,
    )
    odd_labels = []
    for row in tried.bad_rows:
        if row.of_label and row.label:
            odd_labels.append(row.label)

    unknown = dict.fromkeys(odd_labels)
    # another fault, or too many words for a label: the error is raised as it was
    if not unknown or len(unknown) > MOST_VALUES:
        return read_logs(sources, options=reading, most_rows=most_rows), reading.unrated or ""

    words = ",".join(filter(None, [reading.unrated, *map(_quoted, unknown)]))
    options = replace(reading, unrated=words)
    return read_logs(sources, options=options, most_rows=most_rows), words


def _refused_view(
    error: PollexError,
    columns: Sequence[Column],
    options: Mapping[str, Any],
) -> LogView:
    """Return the view of a log that can't be read as it was asked for."""
    # the table of columns stands on the page itself
    what = error.what.partition("; its columns are\n")[0]
    lacking = error.what.rpartition("\n  ")[2].partition("\n")[2].strip()
    fault = {"what": "; ".join(filter(None, (what, lacking))), "where": error.where}
    # only an option with a sure value can be offered
    if error.options and all(error.options.values()):
        sure = error.options
    else:
        sure = {}

    offer = {}
    for name, value in sure.items():
        if hasattr(ReadOptions, name):
            offer[name] = str(value)

    return LogView(
        options=options,
        error={
            **fault,
            "remedy": error.hint,
            "advice": error.advice,
        },
        offer={} if isinstance(error, UnmappedLog) else offer,
        columns=list(_columns(columns, options, None)),
        speakers=list(_speakers(columns, options)),
    )


def _bytes_of(sources: Sequence[str]) -> int:
    """Return the bytes of files; those of queries, whose rows are few, are not counted."""
    try:
        files = []
        for name in find_files(sources):
            if not is_query_source(name):
                files.append(Path(name))

        return sum(path.stat().st_size for path in files)
    except (PollexError, OSError):
        # what can't be found is told when it is read
        return 0


def _opened(sources: Sequence[str], reading: ReadOptions) -> Iterator[Iterator[Any]]:
    for name in find_files(sources):
        yield iterate_file_rows(
            name,
            reading.encoding,
            reading.max_turn_chars,
            reading.query_seconds,
        )


def _options_of(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as options, which name no two columns in one text."""
    # a role may have several names
    roles: dict[str, list[str]] = {}
    for role, name in candidate.roles:
        roles.setdefault(role, []).append(name)

    options: dict[str, Any] = dict(candidate.labels)
    if candidate.columns:
        options["columns"] = dict(candidate.columns)

    return options | ({"roles": roles} if roles else {})


def _facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """Yield what was read, by what it is called on the page."""
    account = inspection.account
    logs = inspection.logs
    shape = _listed(dict(account.formats + account.general))
    ways = ""
    if account.ways:
        ways = f", put together {_listed(dict(account.ways))}"

    yield "Shape", f"{shape}{ways}"
    yield "Who speaks", _listed(inspection.roles)
    yield "Turns", f"{inspection.turns} a conversation"
    yield "Words", f"{inspection.words} a conversation"

    if inspection.group:
        name, number = inspection.group
        yield (
            "Users or groups",
            f"{number} in {escape_controls(name, 60)}; what shares one counts together",
        )
    else:
        yield "Users or groups", "none is known: each conversation counts alone"

    yield "Languages of the users", _listed(inspection.languages)
    yield "Comments", f"with {inspection.comments} conversations" if inspection.comments else "none"
    yield "Tools", _listed(inspection.tools) if inspection.tools else "none was called"
    if inspection.attached:
        yield "Attached", _listed(inspection.attached)

    yield "Said", " to ".join(inspection.times) if inspection.times else "at no time that is known"
    if inspection.fields:
        yield "Other fields", _listed(inspection.fields)

    for kind in account.scores:
        used = "read as the thumb" if kind.taken else "not used"
        yield f"Score {escape_controls(kind.name or 'of the tool', 60)}", f"{kind.scores}, {used}"

    if logs.account.tables:
        yield "Tables beside", _listed(dict(account.tables))


def _left_out(inspection: Inspection) -> Iterator[str]:
    """Yield what was left out and why."""
    logs = inspection.logs
    numbers = (
        (logs.duplicates, "identical rows, counted once"),
        (inspection.same_text, "conversations with the text of another one"),
        (logs.skipped, "rows inside other steps"),
        (logs.overruled, "conversations of an id that another one has"),
        (len(logs.bad_rows), "rows that can't be read"),
    )
    for number, words in numbers:
        if number:
            yield f"{number} {words}"

    for row in logs.bad_rows[:MOST_BAD_ROWS]:
        yield escape_controls(str(row), 300)


def _listed(numbers: Mapping[str, int]) -> str:
    shown = []
    for name, number in islice(numbers.items(), 12):
        shown.append(f"{escape_controls(name, 60)} ({number:,})")

    rest = ""
    if len(numbers) > 12:
        rest = f" and {len(numbers) - 12} more"

    return ", ".join(shown) + rest or "none"


def _columns(
    columns: Sequence[Column],
    options: Mapping[str, Any],
    logs: Logs | None,
) -> Iterator[dict[str, Any]]:
    """Yield each column that has values, with three of them and the part that it is."""
    # parts that were asked for, and then those that the reader found
    parts = parts_of(options)
    if logs is not None and logs.label_field:
        parts.setdefault(logs.label_field, "label")
    if logs is not None and logs.group_field:
        parts.setdefault(logs.group_field, "group")

    shown = iterate_column_rows(columns)
    for column, row in zip([column for column in columns if column.filled], shown, strict=False):
        yield {
            "path": column.path,
            "values": row["values"],
            "part": parts.get(column.path, ""),
        }


def parts_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the part that each column is in options of reading."""
    if options.get("columns"):
        named = dict(parse_name_pairs(options["columns"]))
    else:
        named = {}

    # parts of turns are columns inside the list that has the turns
    parts = {path: part for part, path in named.items()}
    for part in TURN_PART_FIELDS if "messages" in named else ():
        if part in named:
            parts[f"{named['messages']}[].{named[part]}"] = part
            parts.pop(named[part], None)

    for part, option in OPTION_BY_PART.items():
        if options.get(option):
            parts.setdefault(str(options[option]), part)

    return parts


def columns_of(parts: Mapping[str, str]) -> dict[str, Any]:
    """Return options of reading for the parts that a person chose for columns.

    Raises:
        WrongUse: Two columns are chosen for one part, or what says and who speaks are no pair.
    """
    by_part: dict[str, str] = {}
    # each part has one column only
    for path, part in parts.items():
        if part not in CONVERSATION_PARTS:
            raise WrongUse(
                f"no part is called {part!r:.40}",
                hint=f"parts are {', '.join(CONVERSATION_PARTS)}",
            )
        if part in by_part:
            what = f"two columns are chosen for one part: {by_part[part]!r:.60} and {path!r:.60}"
            raise WrongUse(what, hint="choose one of them")
        by_part[part] = path

    # words and roles inside a list of turns name the list, too
    inside = []
    for part in TURN_PART_FIELDS:
        if "[]." in by_part.get(part, ""):
            inside.append(by_part[part])

    if inside and "messages" not in by_part:
        by_part["messages"] = inside[0].partition("[].")[0]

    # inside the list, names are without its path
    if nested := by_part.get("messages"):
        for part in TURN_PART_FIELDS:
            if part in by_part:
                by_part[part] = by_part[part].removeprefix(f"{nested}[].")

    if by_part.keys() <= OPTION_BY_PART.keys() - {"messages"}:
        # what stands beside conversations of a known shape takes nothing from that shape
        return {OPTION_BY_PART[part]: path for part, path in by_part.items()}
    return {"columns": by_part}


def _values(inspection: Inspection, unknown: str) -> Iterator[dict[str, Any]]:
    """Yield each value of the label, what it counts as, and how many rows have it.

    Args:
        unknown: The words of which nobody said what they are.
    """
    spellings = inspection.account.spellings.most_common(MOST_VALUES)
    for (value, meaning), number in spellings:
        yield {
            "value": value,
            "rows": number,
            "counts": MEANINGS.get(meaning, "none"),
            "is_neither": meaning == NEITHER_SIDE,
            # such words were just found, and nobody has said yet what they are
            "is_unknown": bool(unknown) and _quoted(value) in unknown.split(","),
            # what was cut can't be named, and what is empty is no word
            "fixed": value == "(empty)" or (len(value) >= LONGEST_VALUE and value.endswith("…")),
        }


def labels_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return options for what a person said that each value counts as: up, down or not rated."""
    sides = {
        "positive": "up",
        "negative": "down",
        "unrated": "none",
    }
    options: dict[str, str] = {}
    # each side with the words that count for it, in quotes where that is needed
    for option, meaning in sides.items():
        words = []
        for value, counts in values.items():
            if counts == meaning:
                words.append(value)

        if option == "unrated":
            # numbers on neither side are left as they are
            words = [word for word in words if not normalize_number(word)]
        if words:
            options[option] = ",".join(map(_quoted, words))

    return options


def _quoted(word: str) -> str:
    """Return a value as lists of values have it: in quotes where it has a comma or quotes."""
    if "," not in word and '"' not in word:
        return word

    doubled = word.replace('"', '""')
    return f'"{doubled}"'


def _speakers(columns: Sequence[Column], options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each name of who speaks in the first rows, and whose turns those are; empty where nobody knows."""
    parts = parts_of(options)
    # the column that was named as the role, else one that usually is
    named = []
    for column in columns:
        if parts.get(column.path) == "role":
            named.append(column)

    usual = []
    for column in columns:
        if column.path.rpartition(".")[2] in USUAL_ROLES:
            usual.append(column)

    if not (chosen := (named or usual)[:1]):
        return

    # `*` stands for all names that have no role of their own
    role_of_name = {name: role for role, name in parse_name_pairs(options.get("roles") or {})}
    for word in list(dict.fromkeys(map(format_role_word, chosen[0].words)))[:MOST_SPEAKERS]:
        yield {
            "name": word,
            "role": role_of_name.get(word, role_of_name.get("*", _usual_role(word))),
        }


USUAL_ROLES = ("role", "from", "sender", "speaker", "author")


def _usual_role(word: str) -> str:
    try:
        return str(parse_role(word))
    except (BadInput, UnknownRole):
        return ""


def roles_of(speakers: Mapping[str, str]) -> dict[str, Any]:
    """Return options for whose turns a person said that names are; those that are known anyway are left out."""
    roles: dict[str, list[str]] = {}
    for name, role in speakers.items():
        if role and role != _usual_role(name):
            roles.setdefault(role, []).append(name)
    return {"roles": roles} if roles else {}


ROLES = ("user", "assistant", "system", "tool", NO_TURN_ROLE)
"""Whose turns a name may be; the last is nobody's."""


def _talk(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as it will be judged, cut where it is long."""
    turns = []
    for message in format_openai_messages(conversation)[:MOST_TURNS]:
        calls = []
        for call in message.get("tool_calls", ()):
            calls.append(
                f"{call['function']['name']}({call['function']['arguments'][:LONGEST_TURN]})"
            )

        turns.append(
            {
                "role": message["role"],
                "content": message["content"][:LONGEST_TURN],
                "is_cut": len(message["content"]) > LONGEST_TURN,
                "calls": calls,
            }
        )

    return {
        "id": escape_controls(conversation.id, 80),
        "counts": MEANINGS.get(conversation.label.value, "none"),
        "group": escape_controls(conversation.group or "", 60),
        "comments": [
            escape_controls(feedback.comment or "", 300) for feedback in conversation.feedback
        ],
        "turns": turns,
        "more": max(0, len(conversation.turns) - MOST_TURNS),
    }
