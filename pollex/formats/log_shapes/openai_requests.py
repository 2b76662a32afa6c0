"""OpenAI: stored completions, Responses, and the items of its evals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.formats.assembly.pieces import Link, Message, Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import Export, Fields, WrongFile, facts, inside, objects, required, text
from pollex.formats.log_shapes.langgraph import scores_in
from pollex.formats.log_shapes.payloads import Side, answered, asked, system_of
from pollex.formats.log_shapes.turns import turns_of


def _completion(fields: Fields) -> Iterator[Piece]:
    """Yield a completion with the messages that led to it."""
    id_, metadata = required(fields, "id"), inside(fields.get("metadata"))
    before, after = asked(fields.get("input", fields.get("messages"))), answered({"choices": fields.get("choices")})
    if before is None:
        what = "stored completions come without what was asked"
        raise WrongFile(what, remedy="get each one's messages, too: client.chat.completions.messages.list(ID)")
    turns = before.turns + (after.turns if after else ())
    yield Talk(id_, turns, facts=facts(metadata=metadata, user=text(metadata.get("user")), model=fields.get("model")))
    yield from scores_in(metadata, id_)


def _response(fields: Fields) -> Iterator[Piece]:
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
    when = moment(fields.get("created_at"))
    if conversation is None:
        conversation = id_
        if before_it is not None:
            yield Link(id_, before_it)
    yield Message(conversation, id_, turns, when, error=failed, facts=said)
    yield from (score._replace(target="message", id=id_) for score in scores_in(metadata, id_))


def _output_item(fields: Fields) -> Iterator[Piece]:
    """Yield an item of an eval: the sample, and its graders' scores."""
    id_, sample = required(fields, "id"), inside(fields.get("sample"))
    turns = turns_of(objects(sample.get("input"))) + turns_of(objects(sample.get("output")))
    yield Talk(id_, turns, facts=facts(model=sample.get("model"), item=fields.get("datasource_item")))
    for result in objects(fields.get("results")):
        value = result.get("passed", result.get("score"))
        if value is not None:
            yield Score("conversation", id_, value, str(result.get("name") or ""), "grader")


_ASKED, _ANSWERED = {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}
EXPORTS = (
    Export(
        name="OpenAI stored completions",
        signs=(("object", "id", "choices", "model"),),
        read=_completion,
        example=(
            {
                "object": "chat.completion",
                "id": "a",
                "model": "m",
                "input": [_ASKED],
                "choices": [{"index": 0, "message": _ANSWERED}],
                "metadata": {"thumb": "up"},
            },
        ),
    ),
    Export(
        name="OpenAI Responses",
        signs=(("object", "id", "input", "output", "previous_response_id"), ("object", "id", "output", "instructions")),
        read=_response,
        example=(
            {
                "object": "response",
                "id": "r",
                "conversation": {"id": "a"},
                "previous_response_id": None,
                "input": [{"type": "message", **_ASKED}],
                "output": [{"type": "message", **_ANSWERED}],
                "metadata": {"thumb": "up"},
            },
        ),
    ),
    Export(name="OpenAI eval items", signs=(("datasource_item", "results", "sample"),), read=_output_item),
)
