"""Chat programs and builders of agents whose messages are told by a kind and not by a role."""

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.log_parts import (
    Facts,
    LeftOut,
    LogPart,
    Message,
    ToolScore,
    parse_moment,
)
from pollex.formats.log_shapes.bots import without_html
from pollex.formats.log_shapes.exports import (
    Fields,
    get,
    id_as_text,
    is_true,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap,
)
from pollex.formats.log_shapes.payloads import parse
from pollex.formats.log_shapes.turns import as_text, join_lines, marks_of_files, text_of, turns_in

NO_TURNS_OF_COZE = ("verbose", "follow_up", "knowledge")


def read_coze(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Coze; a call of a tool and its answer are told by the type, as are hints and notices."""
    kind = str(fields.get("type"))
    if kind in NO_TURNS_OF_COZE:
        yield LeftOut(f"messages of the type {kind!r}, which nobody said, were left out")
        return

    content = fields.get("content")
    message: dict[str, Any] = {"role": fields.get("role"), "content": content}
    if kind == "function_call":
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [parse(content)],
        }
    elif kind in ("tool_output", "tool_response"):
        message = {"role": "tool", "content": content}
    elif fields.get("content_type") == "object_string":
        message["content"] = parse(content)

    session = require_text(fields, "conversation_id")
    when = parse_moment(fields.get("created_at"))
    yield Message(session, id_as_text(fields.get("id")), turns_in(message), when)


def read_letta(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of a Letta agent by its type; thoughts are no turns."""
    kind = str(fields.get("message_type"))
    call = fields.get("tool_call")
    message: dict[str, Any] | None = {
        "user_message": {"role": "user", "content": fields.get("content")},
        "assistant_message": {"role": "assistant", "content": fields.get("content")},
        "system_message": {"role": "system", "content": fields.get("content")},
        "tool_call_message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "tool_return_message": {**fields, "role": "tool", "content": fields.get("tool_return")},
    }.get(kind)
    # without an id of a conversation, an agent has one conversation
    names = ("conversation_id", "thread_id", "agent_id")
    session = next(
        (session_id for name in names if (session_id := id_as_text(fields.get(name)))),
        "",
    )
    turns = turns_in(message) if message else ()
    yield Message(
        session,
        _key(fields, kind),
        turns,
        parse_moment(fields.get("date")),
    )


def _key(fields: Fields, kind: str) -> str | None:
    """Return a message's key: the parts of one step share an id."""
    id_ = id_as_text(fields.get("id"))
    return f"{id_}/{kind}" if id_ else None


SAID_TO_DEEPSEEK = ("REQUEST", "RESPONSE")


def read_deepseek(fields: Fields) -> Iterator[LogPart]:
    """Yield the messages of a chat of DeepSeek's export, a tree whose messages have fragments by kind."""
    id_ = require_text(fields, "id")
    yield Facts(id_, keep_filled_facts(title=fields.get("title")))
    for key, node in unwrap(fields.get("mapping")).items():
        message = unwrap(unwrap(node).get("message"))
        parts = list_objects(message.get("fragments"))
        kinds = [str(part.get("type")).upper() for part in parts]
        spoken = []
        for part in parts:
            if str(part.get("type")).upper() in SAID_TO_DEEPSEEK:
                spoken.append(part)

        texts = [str(part.get("content") or "") for part in spoken]
        words = texts or [str(message.get("content") or "")]
        # one fragment of a request makes the whole message the user's
        by_user = "REQUEST" in kinds or str(message.get("role")).casefold() == "user"
        content = [*filter(None, words), *marks_of_files(message.get("files"))]
        role: Role = "user" if by_user else "assistant"
        turns = (Turn(role=role, content=text_of(content)),) if content else ()
        parent = id_as_text(unwrap(node).get("parent"))
        when = parse_moment(message.get("inserted_at"))
        yield Message(
            id_,
            f"{id_}/{key}",
            turns,
            when,
            parent and f"{id_}/{parent}",
            tree=True,
        )


def read_vscode_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield the requests of a chat that VS Code exported: 1 is a vote up, 0 one down."""
    session = id_as_text(fields.get("sessionId")) or ""
    user = id_as_text(fields.get("requesterUsername"))
    for number, request in enumerate(list_objects(fields.get("requests"))):
        question = get(request, "message.text") or ""
        answer = "".join(
            filter(
                None,
                map(_vscode_words, list_objects(request.get("response"))),
            )
        )
        failed = get(request, "result.errorDetails.message")
        # a failed request without an answer leaves a mark
        both = (("user", str(question)), ("assistant", answer or ("[error]" if failed else "")))
        worded_turns = []
        for role, words in both:
            if words:
                worded_turns.append(Turn(role=role, content=words))

        turns = tuple(worded_turns)
        key = id_as_text(request.get("requestId")) or str(number)
        when = parse_moment(request.get("timestamp"))
        yield Message(
            session,
            key,
            turns,
            when,
            error=str(failed or ""),
            facts=keep_filled_facts(user=user),
        )
        vote = request.get("vote")
        if vote in (0, 1):
            reason = request.get("voteDownReason")
            yield ToolScore(
                "message",
                key,
                "up" if vote else "down",
                tags=reason,
                person=user,
            )


def _vscode_words(part: Mapping[str, Any]) -> str:
    """Return the words of a part of an answer; progress, tools and references have a kind."""
    value = part.get("value")
    inner = None
    if part.get("kind") == "markdownContent":
        inner = part.get("content")

    if "kind" not in part:
        words = value
    else:
        words = unwrap(inner).get("value")

    return words if isinstance(words, str) else ""


def read_voiceflow(fields: Fields) -> Iterator[LogPart]:
    """Yield a step of a transcript of Voiceflow, whose file is one conversation: what was asked, or said."""
    payload = fields.get("payload")
    kind = str(fields.get("type"))
    inner = unwrap(payload).get("payload")
    inside = unwrap(inner)
    # what the user typed or chose comes as a request
    is_request = (
        kind in ("request", "text", "intent", "action") and fields.get("format") == "request"
    )
    if is_request:
        words = inner if isinstance(inner, str) else get(inside, "query") or inside.get("label")
    elif kind in ("text", "speak"):
        words = inside.get("message")
    elif kind in ("cardV2", "carousel", "choice", "visual"):
        words = inside.get("title") or ("[image]" if kind == "visual" else None)
    else:
        words = None

    role: Role = "user" if is_request else "assistant"
    turns = (Turn(role=role, content=str(words)),) if words else ()
    session = id_as_text(fields.get("sessionID")) or id_as_text(fields.get("transcriptID")) or ""
    yield Message(session, None, turns, parse_moment(fields.get("startTime")))


def read_q_business(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange of Amazon Q Business, or what a user said of one."""
    session = require_text(fields, "conversation_id")
    key = id_as_text(fields.get("system_message_id"))
    person = id_as_text(fields.get("user_id"))
    when = parse_moment(fields.get("event_timestamp"))
    exchange = (("user", fields.get("user_message")), ("assistant", fields.get("system_message")))
    worded_turns = []
    for role, words in exchange:
        if words:
            worded_turns.append(Turn(role=role, content=str(words)))

    turns = tuple(worded_turns)
    if turns:
        yield Message(session, key, turns, when, facts=keep_filled_facts(user=person))

    useful = {"USEFUL": "up", "NOT_USEFUL": "down"}.get(str(fields.get("usefulness")))
    comment = fields.get("comment")
    if useful or comment:
        yield ToolScore(
            "conversation",
            session,
            useful,
            comment=comment,
            tags=fields.get("usefulness_reason"),
            person=person,
            at=when,
            message=key,
        )


TEAMS_REACTIONS = {
    "like": "up",
    "👍": "up",
    "heart": "up",
    "❤️": "up",
    "dislike": "down",
    "👎": "down",
}


def read_teams(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Microsoft Teams as Graph gives it; an application is the assistant."""
    if fields.get("messageType") not in (None, "message") or fields.get("deletedDateTime"):
        return

    key = require_text(fields, "id")
    # a message outside of chats is in the thread that it replies to, or begins one
    session = id_as_text(fields.get("chatId")) or id_as_text(fields.get("replyToId")) or key
    body = unwrap(fields.get("body"))
    html = body.get("contentType") == "html"
    if html:
        words = without_html(body.get("content"))
    else:
        words = str(body.get("content") or "")

    files = marks_of_files(fields.get("attachments"))
    by_application = bool(get(fields, "from.application"))
    user = id_as_text(get(fields, "from.user.id"))
    role: Role = "assistant" if by_application else "user"
    content = join_lines([words.strip(), *files])
    turns = (Turn(role=role, content=content),) if content else ()
    sender = keep_filled_facts(user=user)
    yield Message(
        session,
        key,
        turns,
        parse_moment(fields.get("createdDateTime")),
        facts=sender,
    )
    # reactions on what people wrote are no thumbs
    for reaction in list_objects(fields.get("reactions")) if by_application else ():
        if value := TEAMS_REACTIONS.get(str(reaction.get("reactionType"))):
            person = id_as_text(get(reaction, "user.user.id"))
            yield ToolScore("message", key, value, person=person)


def read_silly(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of SillyTavern, whose file is one chat; the chosen try is the one that stands there."""
    role: Role = "user" if is_true(fields.get("is_user")) else "assistant"
    words = as_text(fields.get("mes")).strip()
    turns = (
        (Turn(role=role, content=words),) if words and not is_true(fields.get("is_system")) else ()
    )
    yield Message("", None, turns)


def read_kore(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Kore.ai, whose words stand in its components."""
    components = list_objects(fields.get("components"))
    texts = []
    for part in components:
        if get(part, "data.text"):
            texts.append(str(get(part, "data.text")))

    role: Role = "user" if fields.get("type") == "incoming" else "assistant"
    turns = (Turn(role=role, content="\n".join(texts)),) if texts else ()
    session = require_text(fields, "sessionId")
    yield Message(
        session,
        id_as_text(fields.get("_id")),
        turns,
        parse_moment(fields.get("createdOn")),
    )


def read_lm_studio(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat of LM Studio: of a message's versions the selected one, whose steps have the words."""
    yield Facts("", keep_filled_facts(title=fields.get("name")))
    for message in list_objects(fields.get("messages")):
        versions = list_objects(message.get("versions"))
        place = message.get("currentlySelected")
        if not isinstance(place, int) or not 0 <= place < len(versions):
            continue

        version = versions[place]
        parts = list_objects(version.get("content"))
        for step in list_objects(version.get("steps")):
            parts += list_objects(step.get("content"))
        yield Message("", None, turns_in({"role": version.get("role"), "content": parts}), None)
