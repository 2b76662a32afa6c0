"""Chat programs and builders of agents whose messages are told by a kind and not by a role."""

from collections.abc import Iterator

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.log_parts import (
    ConversationFacts,
    LeftOutRow,
    LogPart,
    Message,
    ToolScore,
    parse_timestamp,
)
from pollex.formats.log_shapes.bots import strip_html
from pollex.formats.log_shapes.exports import (
    Fields,
    format_id,
    get_at_path,
    keep_filled_facts,
    list_objects,
    parse_flag,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import parse_nested_json
from pollex.formats.log_shapes.turns import (
    extract_text,
    format_tool_result,
    join_filled_lines,
    list_file_marks,
    read_message_turns,
)
from pollex.text import JsonDict, JsonObject

COZE_NON_TURN_TYPES = ("verbose", "follow_up", "knowledge")


def read_coze_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Coze; a call of a tool and its answer are told by the type, as are hints and notices."""
    kind = str(fields.get("type"))
    if kind in COZE_NON_TURN_TYPES:
        yield LeftOutRow(f"messages of the type {kind!r}, which nobody said, were left out")
        return

    content = fields.get("content")
    message: JsonDict = {"role": fields.get("role"), "content": content}
    if kind == "function_call":
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [parse_nested_json(content)],
        }
    elif kind in ("tool_output", "tool_response"):
        message = {"role": "tool", "content": content}
    elif fields.get("content_type") == "object_string":
        message["content"] = parse_nested_json(content)

    session = require_text(fields, "conversation_id")
    when = parse_timestamp(fields.get("created_at"))
    yield Message(session, format_id(fields.get("id")), read_message_turns(message), when)


def read_letta_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of a Letta agent by its type; thoughts are no turns."""
    kind = str(fields.get("message_type"))
    call = fields.get("tool_call")
    message: JsonDict | None = {
        "user_message": {"role": "user", "content": fields.get("content")},
        "assistant_message": {"role": "assistant", "content": fields.get("content")},
        "system_message": {"role": "system", "content": fields.get("content")},
        "tool_call_message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "tool_return_message": {**fields, "role": "tool", "content": fields.get("tool_return")},
    }.get(kind)
    # without an id of a conversation, an agent has one conversation
    names = ("conversation_id", "thread_id", "agent_id")
    session = next(
        (session_id for name in names if (session_id := format_id(fields.get(name)))),
        "",
    )
    turns = read_message_turns(message) if message else ()
    yield Message(
        session,
        _make_letta_key(fields, kind),
        turns,
        parse_timestamp(fields.get("date")),
    )


def _make_letta_key(fields: Fields, kind: str) -> str | None:
    """Return a message's key: the parts of one step share an id."""
    id_ = format_id(fields.get("id"))
    return f"{id_}/{kind}" if id_ else None


DEEPSEEK_SPOKEN_KINDS = ("REQUEST", "RESPONSE")


def read_deepseek_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield the messages of a chat of DeepSeek's export, a tree whose messages have fragments by kind."""
    id_ = require_text(fields, "id")
    yield ConversationFacts(id_, keep_filled_facts(title=fields.get("title")))
    for key, node in unwrap_object(fields.get("mapping")).items():
        message = unwrap_object(unwrap_object(node).get("message"))
        parts = list_objects(message.get("fragments"))
        kinds = [str(part.get("type")).upper() for part in parts]
        spoken = []
        for part in parts:
            if str(part.get("type")).upper() in DEEPSEEK_SPOKEN_KINDS:
                spoken.append(part)

        texts = [str(part.get("content") or "") for part in spoken]
        words = texts or [str(message.get("content") or "")]
        # one fragment of a request makes the whole message the user's
        by_user = "REQUEST" in kinds or str(message.get("role")).casefold() == "user"
        content = [*filter(None, words), *list_file_marks(message.get("files"))]
        role: Role = "user" if by_user else "assistant"
        turns = (Turn(role=role, content=extract_text(content)),) if content else ()
        parent = format_id(unwrap_object(node).get("parent"))
        when = parse_timestamp(message.get("inserted_at"))
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
    session = format_id(fields.get("sessionId")) or ""
    user = format_id(fields.get("requesterUsername"))
    for number, request in enumerate(list_objects(fields.get("requests"))):
        question = get_at_path(request, "message.text") or ""
        answer = "".join(
            filter(
                None,
                map(_get_vscode_words, list_objects(request.get("response"))),
            )
        )
        failed = get_at_path(request, "result.errorDetails.message")
        # a failed request without an answer leaves a mark
        both = (("user", str(question)), ("assistant", answer or ("[error]" if failed else "")))
        worded_turns = []
        for role, words in both:
            if words:
                worded_turns.append(Turn(role=role, content=words))

        turns = tuple(worded_turns)
        key = format_id(request.get("requestId")) or str(number)
        when = parse_timestamp(request.get("timestamp"))
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


def _get_vscode_words(part: JsonObject) -> str:
    """Return the words of a part of an answer; progress, tools and references have a kind."""
    value = part.get("value")
    inner = None
    if part.get("kind") == "markdownContent":
        inner = part.get("content")

    if "kind" not in part:
        words = value
    else:
        words = unwrap_object(inner).get("value")

    return words if isinstance(words, str) else ""


def read_voiceflow_step(fields: Fields) -> Iterator[LogPart]:
    """Yield a step of a transcript of Voiceflow, whose file is one conversation: what was asked, or said."""
    payload = fields.get("payload")
    kind = str(fields.get("type"))
    inner = unwrap_object(payload).get("payload")
    inside = unwrap_object(inner)
    # what the user typed or chose comes as a request
    is_request = (
        kind in ("request", "text", "intent", "action") and fields.get("format") == "request"
    )
    if is_request:
        words = (
            inner if isinstance(inner, str) else get_at_path(inside, "query") or inside.get("label")
        )
    elif kind in ("text", "speak"):
        words = inside.get("message")
    elif kind in ("cardV2", "carousel", "choice", "visual"):
        words = inside.get("title") or ("[image]" if kind == "visual" else None)
    else:
        words = None

    role: Role = "user" if is_request else "assistant"
    turns = (Turn(role=role, content=str(words)),) if words else ()
    session = format_id(fields.get("sessionID")) or format_id(fields.get("transcriptID")) or ""
    yield Message(session, None, turns, parse_timestamp(fields.get("startTime")))


def read_q_business_exchange(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange of Amazon Q Business, or what a user said of one."""
    session = require_text(fields, "conversation_id")
    key = format_id(fields.get("system_message_id"))
    person = format_id(fields.get("user_id"))
    when = parse_timestamp(fields.get("event_timestamp"))
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


TEAMS_THUMB_BY_REACTION = {
    "like": "up",
    "👍": "up",
    "heart": "up",
    "❤️": "up",
    "dislike": "down",
    "👎": "down",
}


def read_teams_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Microsoft Teams as Graph gives it; an application is the assistant."""
    if fields.get("messageType") not in (None, "message") or fields.get("deletedDateTime"):
        return

    key = require_text(fields, "id")
    # a message outside of chats is in the thread that it replies to, or begins one
    session = format_id(fields.get("chatId")) or format_id(fields.get("replyToId")) or key
    body = unwrap_object(fields.get("body"))
    html = body.get("contentType") == "html"
    if html:
        words = strip_html(body.get("content"))
    else:
        words = str(body.get("content") or "")

    files = list_file_marks(fields.get("attachments"))
    by_application = bool(get_at_path(fields, "from.application"))
    user = format_id(get_at_path(fields, "from.user.id"))
    role: Role = "assistant" if by_application else "user"
    content = join_filled_lines([words.strip(), *files])
    turns = (Turn(role=role, content=content),) if content else ()
    sender = keep_filled_facts(user=user)
    yield Message(
        session,
        key,
        turns,
        parse_timestamp(fields.get("createdDateTime")),
        facts=sender,
    )
    # reactions on what people wrote are no thumbs
    for reaction in list_objects(fields.get("reactions")) if by_application else ():
        if value := TEAMS_THUMB_BY_REACTION.get(str(reaction.get("reactionType"))):
            person = format_id(get_at_path(reaction, "user.user.id"))
            yield ToolScore("message", key, value, person=person)


def read_sillytavern_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of SillyTavern, whose file is one chat; the chosen try is the one that stands there."""
    role: Role = "user" if parse_flag(fields.get("is_user")) else "assistant"
    words = format_tool_result(fields.get("mes")).strip()
    turns = (
        (Turn(role=role, content=words),)
        if words and not parse_flag(fields.get("is_system"))
        else ()
    )
    yield Message("", None, turns)


def read_kore_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Kore.ai, whose words stand in its components."""
    components = list_objects(fields.get("components"))
    texts = []
    for part in components:
        if get_at_path(part, "data.text"):
            texts.append(str(get_at_path(part, "data.text")))

    role: Role = "user" if fields.get("type") == "incoming" else "assistant"
    turns = (Turn(role=role, content="\n".join(texts)),) if texts else ()
    session = require_text(fields, "sessionId")
    yield Message(
        session,
        format_id(fields.get("_id")),
        turns,
        parse_timestamp(fields.get("createdOn")),
    )


def read_lm_studio_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat of LM Studio: of a message's versions the selected one, whose steps have the words."""
    yield ConversationFacts("", keep_filled_facts(title=fields.get("name")))
    for message in list_objects(fields.get("messages")):
        versions = list_objects(message.get("versions"))
        place = message.get("currentlySelected")
        if not isinstance(place, int) or not 0 <= place < len(versions):
            continue

        version = versions[place]
        parts = list_objects(version.get("content"))
        for step in list_objects(version.get("steps")):
            parts += list_objects(step.get("content"))
        yield Message(
            "", None, read_message_turns({"role": version.get("role"), "content": parts}), None
        )
