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
from pollex.formats.file_kinds import is_query_source
from pollex.formats.files import find_files_of_sources, iterate_file_rows
from pollex.formats.inference import ReadingCandidate
from pollex.formats.labels import NEITHER_THUMB_VALUE, normalize_number
from pollex.formats.log_shapes.turns import UnknownRole, parse_role
from pollex.formats.mapping import (
    CONVERSATION_PART_NAMES,
    FIELD_NAME_BY_TURN_PART,
    NO_TURN_ROLE,
    OPTION_BY_PART,
    format_role_word,
    parse_name_pairs,
)
from pollex.formats.proposal import UnmappedLog, iterate_column_rows, read_first_rows
from pollex.formats.read_logs import read_logs
from pollex.graphs.context import NullProgress
from pollex.services.inspect import LABELS_IN_WORDS, Inspection, inspect_logs
from pollex.text import escape_controls

LARGE_LOG_BYTES = 64 << 20
"""Bytes of files from which on a look at their first rows is enough."""
MAX_ROWS_OF_LARGE_FILES = 5_000
"""Rows of each file that are looked at where they are large."""
MAX_COLUMNS_SHOWN = 60
MAX_VALUES_SHOWN = 40
MAX_SPEAKERS_SHOWN = 20
MAX_TURNS_SHOWN = 40
MAX_TURN_CHARACTERS = 3000
MAX_VALUE_CHARACTERS = 40
MAX_BAD_ROWS_SHOWN = 10
MAX_TRIED_BAD_ROWS = 10**9
"""Rows that may be bad while the words of the label are found out."""

LABEL_MEANINGS = {Label.POSITIVE.value: "up", Label.NEGATIVE.value: "down"}
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

    options: Mapping[str, object]
    proposed: bool = False
    error: Mapping[str, str] = field(default_factory=dict)
    offer: Mapping[str, object] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()
    columns: Sequence[Mapping[str, object]] = ()
    label: str = ""
    values: Sequence[Mapping[str, object]] = ()
    speakers: Sequence[Mapping[str, object]] = ()
    talks: Sequence[Mapping[str, object]] = ()
    conversations: int = 0
    rated: Mapping[str, int] = field(default_factory=dict)
    most_rows: int = 0


def view_log(
    sources: Sequence[str],
    *,
    reading: ReadOptions,
    options: Mapping[str, object],
) -> LogView:
    """Return what is read of a log; what can't be read is told in it.

    Args:
        options: What `reading` was made of, by the names of options.
    """
    # large files are looked at in part, so that the page comes soon
    reading = replace(reading, confirm=True)
    most_rows = MAX_ROWS_OF_LARGE_FILES if _count_file_bytes(sources) > LARGE_LOG_BYTES else None
    columns: list[Column] = []
    offered: Mapping[str, object] = {}
    proposed = False
    try:
        # columns are read first: they are shown even if the rows can't be read
        columns = list_columns(read_first_rows(_open_sources(sources, reading)))
        try:
            logs = read_logs(sources, options=reading, most_rows=most_rows)
        except UnmappedLog as unread:
            if unread.reading is None:
                raise
            # it was read whole before it was proposed
            candidate = unread.reading.candidate
            logs = unread.reading.logs
            reading = candidate.options(reading)
            offered = _convert_candidate_to_options(candidate)
            proposed = True
        except BadInput:
            # words of a label that nobody knows are for the person to say
            logs, words = _accept_unknown_words(sources, reading, most_rows)
            offered = {"unrated": words}

        inspection = inspect_logs(logs, reading=reading, progress=NullProgress())
    except PollexError as error:
        return _make_refused_view(error, columns, options)

    options = {**options, **offered}
    return LogView(
        options=options,
        proposed=proposed,
        facts=list(_describe_facts(inspection)),
        left_out=list(_describe_left_out(inspection)),
        notes=[escape_controls(note) for note in logs.notes],
        columns=list(_describe_columns(columns, options, logs)),
        label=logs.label_field,
        values=list(_describe_label_values(inspection, str(offered.get("unrated", "")))),
        speakers=list(_describe_speakers(columns, options)),
        talks=[_describe_conversation(conversation) for conversation in inspection.examples],
        conversations=len(logs),
        rated={word: logs.counts.get(label, 0) for label, word in LABELS_IN_WORDS[:3]},
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
        options=replace(reading, max_bad=MAX_TRIED_BAD_ROWS),
        most_rows=most_rows,
    )
    odd_labels = []
    for row in tried.bad_rows:
        if row.of_label and row.label:
            odd_labels.append(row.label)

    unknown = dict.fromkeys(odd_labels)
    # another fault, or too many words for a label: the error is raised as it was
    if not unknown or len(unknown) > MAX_VALUES_SHOWN:
        return read_logs(sources, options=reading, most_rows=most_rows), reading.unrated or ""

    words = ",".join(filter(None, [reading.unrated, *map(_quote_list_value, unknown)]))
    options = replace(reading, unrated=words)
    return read_logs(sources, options=options, most_rows=most_rows), words


def _make_refused_view(
    error: PollexError,
    columns: Sequence[Column],
    options: Mapping[str, object],
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
        columns=list(_describe_columns(columns, options, None)),
        speakers=list(_describe_speakers(columns, options)),
    )


def _count_file_bytes(sources: Sequence[str]) -> int:
    """Return the bytes of files; those of queries, whose rows are few, are not counted."""
    try:
        files = []
        for name in find_files_of_sources(sources):
            if not is_query_source(name):
                files.append(Path(name))

        return sum(path.stat().st_size for path in files)
    except (PollexError, OSError):
        # what can't be found is told when it is read
        return 0


def _open_sources(sources: Sequence[str], reading: ReadOptions) -> Iterator[Iterator[object]]:
    for name in find_files_of_sources(sources):
        yield iterate_file_rows(
            name,
            reading.encoding,
            reading.max_turn_chars,
            reading.query_seconds,
        )


def _convert_candidate_to_options(candidate: ReadingCandidate) -> dict[str, object]:
    """Return a candidate as options, which name no two columns in one text."""
    # a role may have several names
    roles: dict[str, list[str]] = {}
    for role, name in candidate.roles:
        roles.setdefault(role, []).append(name)

    options: dict[str, object] = dict(candidate.labels)
    if candidate.columns:
        options["columns"] = dict(candidate.columns)

    return options | ({"roles": roles} if roles else {})


def _describe_facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """Yield what was read, by what it is called on the page."""
    account = inspection.account
    logs = inspection.logs
    shape = _list_row_numbers(dict(account.formats + account.general))
    ways = ""
    if account.ways:
        ways = f", put together {_list_row_numbers(dict(account.ways))}"

    yield "Shape", f"{shape}{ways}"
    yield "Who speaks", _list_row_numbers(inspection.roles)
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

    yield "Languages of the users", _list_row_numbers(inspection.languages)
    yield "Comments", f"with {inspection.comments} conversations" if inspection.comments else "none"
    yield "Tools", _list_row_numbers(inspection.tools) if inspection.tools else "none was called"
    if inspection.attached:
        yield "Attached", _list_row_numbers(inspection.attached)

    yield "When", " to ".join(inspection.times) if inspection.times else "no times are known"
    if inspection.fields:
        yield "Other fields", _list_row_numbers(inspection.fields)

    for kind in account.scores:
        used = "read as the thumb" if kind.taken else "not used"
        yield f"Score {escape_controls(kind.name or 'of the tool', 60)}", f"{kind.scores}, {used}"

    if logs.account.tables:
        yield "Tables beside", _list_row_numbers(dict(account.tables))


def _describe_left_out(inspection: Inspection) -> Iterator[str]:
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

    for row in logs.bad_rows[:MAX_BAD_ROWS_SHOWN]:
        yield escape_controls(str(row), 300)


def _list_row_numbers(numbers: Mapping[str, int]) -> str:
    shown = []
    for name, number in islice(numbers.items(), 12):
        shown.append(f"{escape_controls(name, 60)} ({number:,})")

    rest = ""
    if len(numbers) > 12:
        rest = f" and {len(numbers) - 12} more"

    return ", ".join(shown) + rest or "none"


def _describe_columns(
    columns: Sequence[Column],
    options: Mapping[str, object],
    logs: Logs | None,
) -> Iterator[dict[str, object]]:
    """Yield each column that has values, with three of them and the part that it is."""
    # parts that were asked for, and then those that the reader found
    parts = map_columns_to_parts(options)
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


def map_columns_to_parts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the part that each column is in options of reading."""
    if options.get("columns"):
        named = dict(parse_name_pairs(options["columns"]))
    else:
        named = {}

    # parts of turns are columns inside the list that has the turns
    parts = {path: part for part, path in named.items()}
    for part in FIELD_NAME_BY_TURN_PART if "messages" in named else ():
        if part in named:
            parts[f"{named['messages']}[].{named[part]}"] = part
            parts.pop(named[part], None)

    for part, option in OPTION_BY_PART.items():
        if options.get(option):
            parts.setdefault(str(options[option]), part)

    return parts


def map_parts_to_columns(parts: Mapping[str, str]) -> dict[str, object]:
    """Return options of reading for the parts that a person chose for columns.

    Raises:
        WrongUse: Two columns are chosen for one part, or what says and who speaks are no pair.
    """
    by_part: dict[str, str] = {}
    # each part has one column only
    for path, part in parts.items():
        if part not in CONVERSATION_PART_NAMES:
            raise WrongUse(
                f"no part is called {part!r:.40}",
                hint=f"parts are {', '.join(CONVERSATION_PART_NAMES)}",
            )
        if part in by_part:
            what = f"two columns are chosen for one part: {by_part[part]!r:.60} and {path!r:.60}"
            raise WrongUse(what, hint="choose one of them")
        by_part[part] = path

    # words and roles inside a list of turns name the list, too
    inside = []
    for part in FIELD_NAME_BY_TURN_PART:
        if "[]." in by_part.get(part, ""):
            inside.append(by_part[part])

    if inside and "messages" not in by_part:
        by_part["messages"] = inside[0].partition("[].")[0]

    # inside the list, names are without its path
    if nested := by_part.get("messages"):
        for part in FIELD_NAME_BY_TURN_PART:
            if part in by_part:
                by_part[part] = by_part[part].removeprefix(f"{nested}[].")

    if by_part.keys() <= OPTION_BY_PART.keys() - {"messages"}:
        # what stands beside conversations of a known shape takes nothing from that shape
        return {OPTION_BY_PART[part]: path for part, path in by_part.items()}
    return {"columns": by_part}


def _describe_label_values(inspection: Inspection, unknown: str) -> Iterator[dict[str, object]]:
    """Yield each value of the label, what it counts as, and how many rows have it.

    Args:
        unknown: The words of which nobody said what they are.
    """
    spellings = inspection.account.spellings.most_common(MAX_VALUES_SHOWN)
    for (value, meaning), number in spellings:
        yield {
            "value": value,
            "rows": number,
            "counts": LABEL_MEANINGS.get(meaning, "none"),
            "is_neither": meaning == NEITHER_THUMB_VALUE,
            # such words were just found, and nobody has said yet what they are
            "is_unknown": bool(unknown) and _quote_list_value(value) in unknown.split(","),
            # what was cut can't be named, and what is empty is no word
            "fixed": value == "(empty)"
            or (len(value) >= MAX_VALUE_CHARACTERS and value.endswith("…")),
        }


def group_values_by_label(values: Mapping[str, str]) -> dict[str, str]:
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
            options[option] = ",".join(map(_quote_list_value, words))

    return options


def _quote_list_value(word: str) -> str:
    """Return a value as lists of values have it: in quotes where it has a comma or quotes."""
    if "," not in word and '"' not in word:
        return word

    doubled = word.replace('"', '""')
    return f'"{doubled}"'


def _describe_speakers(
    columns: Sequence[Column], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield each name of who speaks in the first rows, and whose turns those are; empty where nobody knows."""
    parts = map_columns_to_parts(options)
    # the column that was named as the role, else one that usually is
    named = []
    for column in columns:
        if parts.get(column.path) == "role":
            named.append(column)

    usual = []
    for column in columns:
        if column.path.rpartition(".")[2] in ROLE_FIELD_NAMES:
            usual.append(column)

    if not (chosen := (named or usual)[:1]):
        return

    # `*` stands for all names that have no role of their own
    role_of_name = {name: role for role, name in parse_name_pairs(options.get("roles") or {})}
    for word in list(dict.fromkeys(map(format_role_word, chosen[0].words)))[:MAX_SPEAKERS_SHOWN]:
        yield {
            "name": word,
            "role": role_of_name.get(word, role_of_name.get("*", _find_usual_role(word))),
        }


ROLE_FIELD_NAMES = ("role", "from", "sender", "speaker", "author")


def _find_usual_role(word: str) -> str:
    try:
        return str(parse_role(word))
    except (BadInput, UnknownRole):
        return ""


def group_speakers_by_role(speakers: Mapping[str, str]) -> dict[str, object]:
    """Return options for whose turns a person said that names are; those that are known anyway are left out."""
    roles: dict[str, list[str]] = {}
    for name, role in speakers.items():
        if role and role != _find_usual_role(name):
            roles.setdefault(role, []).append(name)
    return {"roles": roles} if roles else {}


SPEAKER_ROLES = ("user", "assistant", "system", "tool", NO_TURN_ROLE)
"""Whose turns a name may be; the last is nobody's."""


def _describe_conversation(conversation: Conversation) -> dict[str, object]:
    """Return a conversation as it will be judged, cut where it is long."""
    turns = []
    for message in format_openai_messages(conversation)[:MAX_TURNS_SHOWN]:
        calls = []
        for call in message.get("tool_calls", ()):
            calls.append(
                f"{call['function']['name']}({call['function']['arguments'][:MAX_TURN_CHARACTERS]})"
            )

        turns.append(
            {
                "role": message["role"],
                "content": message["content"][:MAX_TURN_CHARACTERS],
                "is_cut": len(message["content"]) > MAX_TURN_CHARACTERS,
                "calls": calls,
            }
        )

    return {
        "id": escape_controls(conversation.id, 80),
        "counts": LABEL_MEANINGS.get(conversation.label.value, "none"),
        "group": escape_controls(conversation.group or "", 60),
        "comments": [
            escape_controls(feedback.comment or "", 300) for feedback in conversation.feedback
        ],
        "turns": turns,
        "more": max(0, len(conversation.turns) - MAX_TURNS_SHOWN),
    }
