"""OpenAI: stored completions, Responses, threads, items of evals; and batches, also of Anthropic and Gemini."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Facts, Link, Message, Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.langgraph import scores_in
from pollex.formats.log_shapes.payloads import Side, answered, asked, system_of
from pollex.formats.log_shapes.turns import turns_in, turns_of

UNASKED = "give the file with what was asked, too: of stored completions their messages, of a batch its input"
NO_INPUT = "put into each row's field input what client.responses.input_items.list(ID) has"
ANSWERED = float(10**12)
"""The place of an answer after all messages that led to it, which are numbered from 0."""
_NUMBERED = re.compile(r"(.+)-(\d+)")


def read_completion(fields: Fields) -> Iterator[Piece]:
    """Yield a completion's answer with what led to it, or without: its messages may be in a file of their own."""
    id_, metadata = required(fields, "id"), inside(fields.get("metadata"))
    before, after = asked(fields.get("input", fields.get("messages"))), answered({"choices": fields.get("choices")})
    turns = (before.turns if before else ()) + (after.turns if after else ())
    said = facts(metadata=metadata, user=text(metadata.get("user")), model=fields.get("model"))
    yield Message(id_, id_, turns, ANSWERED, facts=said, lacks=UNASKED)
    yield from scores_in(metadata, id_)


def read_messages(fields: Fields) -> Iterator[Piece]:
    """Yield the messages of a stored completion, whose ids are the completion's and a number."""
    for message in objects(fields.get("messages")):
        found = _NUMBERED.fullmatch(required(message, "id"))
        if found:
            words = message.get("content_parts") or message.get("content")
            turns = turns_in({**message, "content": words})
            yield Message(found.group(1), found.group(), turns, float(found.group(2)))


def are_numbered(fields: Fields) -> bool:
    found = [_NUMBERED.fullmatch(str(message.get("id"))) for message in objects(fields.get("messages"))]
    return len({one.group(1) if one else None for one in found} - {None}) == 1 and None not in found


def read_thread_message(fields: Fields) -> Iterator[Piece]:
    thread, key = required(fields, "thread_id"), required(fields, "id")
    yield Message(
        thread, key, turns_in({"role": fields.get("role"), "content": fields.get("content")}), _created(fields)
    )
    yield from (score._replace(target="message", id=key) for score in scores_in(fields.get("metadata"), thread))


def read_thread(fields: Fields) -> Iterator[Piece]:
    id_, metadata = required(fields, "id"), inside(fields.get("metadata"))
    yield Facts(id_, facts(metadata=metadata, user=text(metadata.get("user"))))
    yield from scores_in(metadata, id_)


def _created(fields: Fields) -> float | None:
    return moment(fields.get("created_at"))


def read_batch_request(fields: Fields) -> Iterator[Piece]:
    """Yield what was asked of a row of a batch; the results are in another file, under the same id."""
    id_, nothing = required(fields, "custom_id", "key"), dict[str, object]()
    body: Mapping[str, object] = next((one for name in _ASKED_IN if (one := inside(fields.get(name)))), nothing)
    metadata = inside(body.get("metadata"))
    turns = (asked(body) or Side((), True)).turns
    if not any(turn.role == "system" for turn in turns):
        turns = system_of(body) + turns
    yield Message(id_, f"{id_}/asked", turns, 0, facts=facts(metadata=metadata, model=body.get("model")))
    yield from scores_in(metadata, id_)


_ASKED_IN = ("body", "params", "request")


def read_batch_result(fields: Fields) -> Iterator[Piece]:
    """Yield an answer of a batch."""
    id_ = required(fields, "custom_id", "key")
    found = inside(fields.get("response")) or inside(fields.get("result"))
    body = inside(found.get("body")) or inside(found.get("message")) or found
    side = (
        answered(body.get("output") or body) if body.keys() & {"output", "content", "choices", "candidates"} else None
    )
    turns = side.turns if side else (Turn(role="assistant", content="[error]"),)
    yield Message(id_, f"{id_}/answered", turns, 1, error="" if side else "failed", lacks=UNASKED)


def read_response(fields: Fields) -> Iterator[Piece]:
    """Yield a response, which names its conversation or the previous response."""
    id_, metadata = required(fields, "id"), inside(fields.get("metadata"))
    before = asked(fields.get("input")) or Side((), True)
    turns = before.turns + turns_of(fields.get("output") or [])
    error: Mapping[str, object] = inside(fields.get("error"))
    failed = str(error.get("message") or "failed") if error else ""
    if failed and (not turns or turns[-1].role == "user"):
        turns += turns_of([{"role": "assistant", "content": "[error]"}])
    conversation = text(inside(fields.get("conversation")).get("id")) or text(fields.get("conversation"))
    before_it = text(fields.get("previous_response_id"))
    if conversation is None and before_it is None:
        turns = system_of(fields) + turns
    said = facts(user=text(metadata.get("user")), model=fields.get("model"), metadata=metadata)
    if conversation is None:
        conversation = id_
        if before_it is not None:
            yield Link(id_, before_it)
    yield Message(conversation, id_, turns, _created(fields), error=failed, facts=said, lacks=NO_INPUT)
    yield from (score._replace(target="message", id=id_) for score in scores_in(metadata, id_))


def read_output_item(fields: Fields) -> Iterator[Piece]:
    """Yield an item of an eval: the sample, and its graders' scores."""
    id_, sample = required(fields, "id"), inside(fields.get("sample"))
    turns = turns_of(objects(sample.get("input"))) + turns_of(objects(sample.get("output")))
    yield Talk(id_, turns, facts=facts(model=sample.get("model"), item=fields.get("datasource_item")))
    for result in objects(fields.get("results")):
        value = result.get("passed", result.get("score"))
        if value is not None:
            yield Score("conversation", id_, value, str(result.get("name") or ""), "grader")
