"""Dify: messages as its interface gives them, and the export of feedback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Addition, Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.parts import call_of, text_of, written
from pollex.formats.log_shapes.payloads import opened

CUT = 500
"""Characters after which the export of feedback cuts an answer, and writes three dots."""
_THINKING = re.compile(r"<think>.*?</think>\s*", re.DOTALL)


def read_message(fields: Fields) -> Iterator[Piece]:
    """Yield one exchange with its thumbs; those of the console name their author."""
    id_, key = required(fields, "conversation_id"), required(fields, "id")
    error = str(fields.get("error") or "failed") if fields.get("status") == "error" or fields.get("error") else ""
    said = facts(user=text(fields.get("from_end_user_id")), model=fields.get("model_id"))
    turns = _exchange(fields.get("query"), fields.get("answer"), error, _files(fields.get("message_files")))
    parent = text(fields.get("parent_message_id"))
    branched = parent is not None and parent.strip("0-") != ""
    when = moment(fields.get("created_at"))
    yield Message(id_, key, turns, when, parent, tree=branched, error=error, facts=said)
    for step in objects(fields.get("agent_thoughts")):
        yield from read_step({**step, "message_id": key})
    for one in [inside(fields.get("feedback")), *objects(fields.get("feedbacks"))]:
        if one.get("rating"):
            source = str(one.get("from_source") or "user")
            person = text(one.get("from_end_user_id")) or said.get("user")
            comment = one.get("content")
            yield Score("message", key, one["rating"], source=source, comment=comment, person=person)


def read_step(fields: Fields) -> Iterator[Piece]:
    """Yield an agent's step: its words, its calls, which may be parallel, and what the tools answered."""
    names = [name for name in str(fields.get("tool") or "").split(";") if name]
    if not names:
        return  # the last step is the answer
    given = opened(fields.get("tool_input"))
    inputs = (
        given if isinstance(given, Mapping) and any(name in given for name in names) else dict.fromkeys(names, given)
    )
    calls = [call_of({"name": name, "arguments": inputs.get(name)}) for name in names]
    words = _THINKING.sub("", str(fields.get("thought") or "")).strip()
    observed = opened(fields.get("observation"))
    named = [observed[n] for n in dict.fromkeys(names) if n in observed] if isinstance(observed, Mapping) else []
    tools = [Turn(role="tool", content=written(one)) for one in named or [observed] if one not in (None, "")]
    said = "\n".join(filter(None, [words, *(call.mark for call in calls)]))
    turn = Turn(role="assistant", content=said, calls=tuple(calls))
    place = moment(fields.get("position")) or moment(fields.get("created_at"))
    yield Addition(required(fields, "message_id"), place, (turn, *tools))


def read_file(fields: Fields) -> Iterator[Piece]:
    """Yield the mark of a file in the table of files."""
    if marks := _files([fields]):
        yield Addition(required(fields, "message_id"), mark=marks[0])


def _files(files: object) -> list[str]:
    found = objects(files)
    return [
        "[image]" if file.get("type") == "image" else "[file]"
        for file in found
        if file.get("belongs_to") != "assistant"
    ]


def _exchange(query: object, answer: object, error: str, files: list[str]) -> tuple[Turn, ...]:
    words = text_of(_THINKING.sub("", str(answer or "")))
    asked = Turn(role="user", content="\n".join(filter(None, [text_of(str(query or "")), *files])))
    if error and not words:
        return asked, Turn(role="assistant", content="[error]")
    return (asked, Turn(role="assistant", content=words)) if words else (asked,)


def read_feedback(fields: Fields) -> Iterator[Piece]:
    """Yield one exchange with its thumb; the answer may be truncated."""
    id_, key = required(fields, "conversation_id"), required(fields, "message_id")
    answer = str(fields.get("ai_response") or "")
    cut = len(answer) >= CUT + 3 and answer.endswith("...")
    person = text(fields.get("from_end_user_id")) or text(fields.get("from_account_name"))
    turns = _exchange(fields.get("user_query"), answer, "" if answer.strip() else "failed", [])
    yield Message(
        id_,
        key,
        turns,
        moment(fields.get("message_date")),
        facts=facts(user=text(fields.get("from_end_user_id")), answer_cut=cut or None),
    )
    yield Facts(id_, facts(title=fields.get("conversation_name"), only_rated_turns=True))
    source = str(fields.get("feedback_source") or "user")
    value = fields.get("feedback_rating_raw") or fields.get("feedback_rating")
    comment, when = fields.get("feedback_comment"), moment(fields.get("feedback_date"))
    yield Score("message", key, value, source=source, comment=comment, person=person, at=when)
