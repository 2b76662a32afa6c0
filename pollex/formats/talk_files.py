"""Files of talks as text: parts between lines of dashes, with what is said of a talk above or below its turns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from pollex.conversations.logs import BadRow
from pollex.formats.assembly.log_parts import is_time_value
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import is_usual_thumb
from pollex.formats.log_shapes.readers import find_time_field
from pollex.formats.log_shapes.transcripts import (
    DATE_REGEX,
    begins_known_turn,
    begins_turn,
    has_turn_times,
    is_role_name,
    is_transcript,
    parse_transcript,
)
from pollex.formats.log_shapes.turns import ROLE_BY_SPELLING
from pollex.formats.names import is_named_as_part
from pollex.text import JsonDict, JsonObject

MAX_LINES_EXAMINED = 200
"""Lines by which a file is told to hold talks."""
MAX_LINES_ABOVE_TALK = 8
"""Lines above a talk that say something of it, or of the file."""
_DIVIDER_PATTERN = re.compile(r"\s*([-=*_#~─━═—])\1{2,}(?P<inside>.*)")
"""A line between two talks, perhaps with the name of the next one."""
_HEADING_PATTERN = re.compile(r"\s*#{1,6}\s+(?P<inside>.*)")
"""A heading of Markdown, which begins a talk where a turn begins below it."""
_NUMBERED_TITLE_PATTERN = re.compile(
    r"\s*(?P<inside>(?P<kind>[^\W\d_]+)\s*(?:#|n[°ºro]?\.?)?\s*\d+)\s*:?\s*"
)
"""The name of a talk on a line of its own: `Conversation 12`, `Chat #3`."""
_DECORATION_SIGNS = " \t-=*_#~─━═—"
_FIELD_SEPARATOR_PATTERN = re.compile(r"\s*[|·;\t]\s*|\s{2,}")
_FIELD_PATTERN = re.compile(
    r"[>*_\s]*(?P<name>[^\W\d_][^:=\n]{0,39}?)[*_]*\s*[:=][*_]*\s*(?P<value>.*?)\s*"
)
_REACTIONS_LINE_PATTERN = re.compile(
    r"\s*(?:[\U0001f44d\U0001f44e][\U0001f3fb-\U0001f3ff\ufe0f]?\s*\d+\s*)+"
)
"""A line of reactions with their numbers, as channels show them below a message."""
_HEADING_THUMB_PATTERN = re.compile(
    r"\s*(?:(?P<sign>[\U0001f44d\U0001f44e])[\U0001f3fb-\U0001f3ff\ufe0f]?|[(\[](?P<word>[^\W\d][^()\[\]]*)[)\]])\s*"
)
"""A thumb in a heading: a sign, or a word in brackets that is a usual label."""
_HEADING_DATE_PATTERN = re.compile(rf"(?P<open>[(\[]\s*)?(?P<date>{DATE_REGEX})(?(open)\s*[)\]])")
"""When a talk began, in a heading."""
_REACTION_PATTERN = re.compile("([\U0001f44d\U0001f44e])[\U0001f3fb-\U0001f3ff\ufe0f]?\\s*(\\d+)")


@dataclass
class TalkPart:
    """What stands between two lines of dashes.

    Attributes:
        fields: What is said of the talk: in the line above, or in lines of their own.
    """

    lines: list[str] = field(default_factory=list)
    fields: JsonDict = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")

    @property
    def is_talk(self) -> bool:
        return is_transcript(self.text)


def are_lines_transcripts(lines: Sequence[str]) -> bool:
    """Return whether a text's first lines are talks whose turns begin with who speaks."""
    talks = []
    for part in _split_talk_parts(lines):
        if part.text:
            talks.append(part)

    if len(talks) > 1 and not talks[0].is_talk and len(talks[0].lines) <= MAX_LINES_ABOVE_TALK:
        talks = talks[1:]  # the title of the file

    told = [part.is_talk for part in talks]
    return any(told) and sum(told) >= 0.5 * len(told)


def iterate_talk_rows(source: str, text: str) -> Iterator[LogRow | BadRow]:
    """Yield the talks of a file of text, one row each."""
    parts = []
    for part in _split_talk_parts(text.splitlines()):
        if part.text:
            parts.append(part)

    if len(parts) > 1 and not parts[0].is_talk and len(parts[0].lines) <= MAX_LINES_ABOVE_TALK:
        parts = parts[1:]

    name = Path(source).stem
    ids = set[str]()
    for number, part in enumerate(parts, start=1):
        # a single talk has the name of the file, several have numbers behind it
        id_ = str(_find_talk_id(part.fields) or (name if len(parts) == 1 else f"{name}#{number}"))
        id_ = f"{id_}#{number}" if id_ in ids else id_
        ids.add(id_)
        yield LogRow(
            source,
            number,
            {
                **part.fields,
                **_find_talk_time(part),
                "id": id_,
                "transcript": part.text,
            },
        )


def _find_talk_time(part: TalkPart) -> JsonDict:
    """Return when a talk began, by a field above it in any language, else by its first turn; empty where none says."""
    if find_time_field(part.fields):
        return {}

    for name, value in part.fields.items():
        if is_named_as_part(name, "time") and is_time_value(value):
            return {"timestamp": value}

    # a clock without a day is no time
    for message in parse_transcript(part.text)[:1]:
        if is_time_value(message.get("timestamp")):
            return {"timestamp": message["timestamp"]}
    return {}


def _split_talk_parts(lines: Sequence[str]) -> list[TalkPart]:
    """Return the parts of a text; what is said of a talk between two lines of dashes is the next one's."""
    parts = [TalkPart()]
    for number, line in enumerate(lines):
        between = _DIVIDER_PATTERN.fullmatch(line)
        if between is None and _is_talk_heading(lines, number):
            between = _HEADING_PATTERN.fullmatch(line)
        if between is None and _is_numbered_title(lines, number):
            between = _NUMBERED_TITLE_PATTERN.fullmatch(line)
        if between is None or _is_speaker_heading(between["inside"]):
            parts[-1].lines.append(line)
        else:
            parts.append(TalkPart(fields=_parse_divider_fields(between["inside"])))

    for part in parts:
        _move_edge_lines_to_fields(part)

    # a heading with nothing below it speaks of the talk after the next line
    for above, part in pairwise(parts):
        if not above.text:
            part.fields = {**above.fields, **part.fields}

    return parts


def _is_talk_heading(lines: Sequence[str], number: int) -> bool:
    """Return whether a line is a heading below which a turn begins, and no heading of an answer."""
    if not _HEADING_PATTERN.fullmatch(lines[number]):
        return False

    below = (line for line in lines[number + 1 : number + 1 + MAX_LINES_ABOVE_TALK] if line.strip())
    return begins_known_turn(next(below, ""))


def _is_numbered_title(lines: Sequence[str], number: int) -> bool:
    """Return whether a line names a talk by its number, with nothing above it, and a turn or a field below."""
    title = _NUMBERED_TITLE_PATTERN.fullmatch(lines[number])
    if title is None or not is_named_as_part(title["kind"], "conversation"):
        return False
    above = "".join(lines[number - 1 : number])
    begins = not above.strip() or _DIVIDER_PATTERN.fullmatch(above) is not None
    return begins and begins_turn(next(iter(lines[number + 1 : number + 2]), ""))


def _is_speaker_heading(inside: str) -> bool:
    """Return whether a heading, as `### User`, begins a turn."""
    return _keep_letters(inside) in ROLE_BY_SPELLING


def _keep_letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def _parse_divider_fields(inside: str) -> JsonDict:
    """Return what a line of dashes says of the next talk: `=== Case 12 | rating: up ===`."""
    pieces = []
    for piece in _FIELD_SEPARATOR_PATTERN.split(inside.strip(_DECORATION_SIGNS)):
        if piece:
            pieces.append(piece)

    fields: JsonDict = {}
    dates: list[str] = []
    for piece in pieces:
        # a date that is no field's value says when the talk began
        date = _HEADING_DATE_PATTERN.search(piece)
        if date is not None and not piece[: date.start()].rstrip().endswith((":", "=")):
            fields.setdefault("timestamp", date["date"].strip())
            if date[0].strip() == piece:
                dates.append(piece)
                continue
            if date["open"] is None:
                fields.setdefault("id", piece)
                continue
            piece = f"{piece[: date.start()].rstrip()} {piece[date.end() :].lstrip()}".strip()
        if (pair := _FIELD_PATTERN.fullmatch(piece)) is not None:
            fields[_normalize_speaker(pair["name"])] = pair["value"]
            continue
        # a thumb beside the name of the talk is no part of it
        thumbs = [
            thumb for thumb in _HEADING_THUMB_PATTERN.finditer(piece) if _is_thumb_match(thumb)
        ]
        if len(thumbs) == 1:
            fields.setdefault("thumb", thumbs[0]["sign"] or thumbs[0]["word"].strip())
            piece = f"{piece[: thumbs[0].start()]} {piece[thumbs[0].end() :]}".strip()
        if piece:
            fields.setdefault("id", piece)

    # the date names the talk where nothing else does
    if dates:
        fields.setdefault("id", dates[0])
    return fields


def _is_thumb_match(thumb: re.Match[str]) -> bool:
    return bool(thumb["sign"]) or is_usual_thumb(thumb["word"])


def _move_edge_lines_to_fields(part: TalkPart) -> None:
    """Move lines that say something of a talk, and no turn, from a part's edges to its fields."""
    _move_title_to_fields(part)
    _move_lines_above_talk_to_fields(part)
    lines = part.lines
    pairs = []
    for line in lines:
        if line.strip():
            pairs.append(_FIELD_PATTERN.fullmatch(line))

    speaks = part.is_talk or any(
        pair is not None and _keep_letters(pair["name"]) in ("q", "a") for pair in pairs
    )
    # a part of fields alone, in which nobody speaks
    if pairs and len(pairs) <= MAX_LINES_ABOVE_TALK and all(pairs) and not speaks:
        part.fields |= {
            _normalize_speaker(pair["name"]): pair["value"] for pair in pairs if pair is not None
        }
        part.lines = []
        return

    # reactions below a message are thumbs
    reactions = []
    for line in lines:
        if _REACTIONS_LINE_PATTERN.fullmatch(line):
            reactions.append(line)

    if reactions:
        part.lines = [line for line in lines if not _REACTIONS_LINE_PATTERN.fullmatch(line)]
        thumbs = []
        for line in reactions:
            for sign, _ in _REACTION_PATTERN.findall(line):
                thumbs.append(sign)

        part.fields.setdefault("thumb", thumbs if len({*thumbs}) > 1 else thumbs[0])

    # a label or a comment below the last turn
    speakers = set()
    for message in parse_transcript(part.text):
        speakers.add(str(message["role"]).casefold())

    while part.lines:
        pair = _FIELD_PATTERN.fullmatch(part.lines[-1])
        if not part.lines[-1].strip():
            part.lines.pop()
        elif pair is not None and _is_talk_field(pair["name"], speakers):
            part.fields.setdefault(_normalize_speaker(pair["name"]), pair["value"].strip(" *_"))
            part.lines.pop()
        else:
            break

    # and above the first
    for number, line in enumerate(part.lines[:MAX_LINES_ABOVE_TALK]):
        pair = _FIELD_PATTERN.fullmatch(line)
        if line.strip() and (pair is None or not _is_talk_field(pair["name"], speakers)):
            part.lines = part.lines[number:]
            break
        if pair is not None:
            part.fields.setdefault(_normalize_speaker(pair["name"]), pair["value"])


def _move_title_to_fields(part: TalkPart) -> None:
    """Move a first line with a date, right above a talk, to the part's fields: `Chat 7 started 2026-05-04 08:00`."""
    title, *lines = part.text.splitlines() or [""]
    if part.is_talk or not _HEADING_DATE_PATTERN.search(title) or begins_known_turn(title):
        return

    talk = "\n".join(lines)
    if is_transcript(talk):
        part.fields = {**_parse_divider_fields(title), **part.fields}
        part.lines = lines


def _move_lines_above_talk_to_fields(part: TalkPart) -> None:
    """Move the fields in some lines above a talk, which an empty line parts from it, to the part's fields."""
    lines = part.text.splitlines()
    end = next((number for number, line in enumerate(lines) if not line.strip()), 0)
    # lines with several fields, as `Chat #3   Rating: good`, are no turns
    if (
        1 <= end <= MAX_LINES_ABOVE_TALK
        and not part.is_talk
        and any(map(_has_several_pieces, lines[:end]))
    ):
        talk = "\n".join(lines[end:]).strip("\n")
        if is_transcript(talk):
            for line in lines[:end]:
                for name, value in _parse_divider_fields(line).items():
                    part.fields.setdefault(name, value)
            part.lines = talk.splitlines()
            return
    if not 2 <= end <= MAX_LINES_ABOVE_TALK:
        return

    pairs = [_FIELD_PATTERN.fullmatch(line) for line in lines[:end]]
    names = []
    for pair in pairs:
        if pair is not None:
            names.append(_normalize_speaker(pair["name"]))

    talk = "\n".join(lines[end:]).strip("\n")
    # each line says something else, and who speaks below is none of the names
    if len({*names}) < end or not is_transcript(talk):
        return
    if any(map(is_role_name, names)) and (
        has_turn_times("\n".join(lines[:end])) or not has_turn_times(talk)
    ):
        return

    part.fields |= {
        _normalize_speaker(pair["name"]): pair["value"] for pair in pairs if pair is not None
    }
    part.lines = talk.splitlines()


def _has_several_pieces(line: str) -> bool:
    """Return whether a line has several pieces, of which one is a field."""
    pieces = _FIELD_SEPARATOR_PATTERN.split(line.strip(_DECORATION_SIGNS))
    return len(pieces) > 1 and any(map(_FIELD_PATTERN.fullmatch, pieces))


def _find_talk_id(fields: JsonObject) -> object:
    """Return what names a talk among the fields above it."""
    if fields.get("id"):
        return fields["id"]

    return next(
        (value for name, value in fields.items() if is_named_as_part(name, "conversation")), None
    )


def _is_talk_field(name: str, speakers: set[str]) -> bool:
    if name.strip(" *_").casefold() in speakers:
        return False
    return is_named_as_part(name, "label") or is_named_as_part(name, "comment")


def _normalize_speaker(name: str) -> str:
    return name.strip(" *_").casefold()
