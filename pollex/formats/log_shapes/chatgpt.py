"""ChatGPT's export of one's data: conversations, which are trees, and the feedback beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, moment
from pollex.formats.log_shapes.exports import Fields, at, facts, inside, required, text
from pollex.formats.log_shapes.parts import call_of
from pollex.formats.log_shapes.turns import role_of

_WORDS = ("text", "multimodal_text")


def read_conversation(fields: Fields) -> Iterator[Piece]:
    id_ = required(fields, "conversation_id", "id")
    yield Facts(
        id_, facts(title=fields.get("title"), model=fields.get("default_model_slug")), text(fields.get("current_node"))
    )
    for key, node in inside(fields.get("mapping")).items():
        if isinstance(node, Mapping):
            message = inside(node.get("message"))
            when = moment(message.get("create_time"))
            yield Message(id_, str(key), _turns(message), when, text(node.get("parent")), tree=True)


def _turns(message: Mapping[str, object]) -> tuple[Turn, ...]:
    """Return the turns with text, also what was spoken; a tool that was called by its name; no thoughts."""
    if not message or inside(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return ()
    role, recipient = role_of(at(message, "author.role")), message.get("recipient") or "all"
    if role == "assistant" and recipient != "all":
        given = at(message, "content.text") or at(message, "content.parts.0")
        call = call_of({"name": recipient, "arguments": given})
        return (Turn(role=role, content=call.mark, calls=(call,)),)
    if at(message, "content.content_type") not in _WORDS:
        return ()
    parts = at(message, "content.parts")
    said = "\n".join(filter(None, map(_words, parts if isinstance(parts, list) else ())))
    return (Turn(role=role, content=said),) if said else ()


def _words(part: object) -> str:
    """Return a part's words; a recording has its words in a part beside it."""
    if isinstance(part, str):
        return part
    kind = str(inside(part).get("content_type"))
    if kind == "audio_transcription":
        return str(inside(part).get("text") or "")
    return "" if "audio" in kind else "[image]" if "image" in kind else "[file]"
