"""Chats of pages that people talk on: each tool's functions have its name, and stand together."""

import html
import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Role, ToolResult, Turn
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import (
    ConversationFacts,
    LogPart,
    Message,
    MessageAddition,
    ToolScore,
    WholeTalk,
    parse_timestamp,
)
from pollex.formats.labels import normalize_number
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
from pollex.formats.log_shapes.payloads import make_system_turns, parse_nested_json
from pollex.formats.log_shapes.turns import (
    extract_text,
    format_tool_result,
    join_filled_lines,
    list_file_marks,
    parse_role,
    read_message_turns,
    read_tool_call,
)
from pollex.text import JsonDict, JsonObject

_CHATGPT_TEXT_TYPES = ("text", "multimodal_text")


def read_chatgpt_conversation(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "conversation_id", "id")
    # the current node tells which path of the tree was shown
    yield ConversationFacts(
        id_,
        keep_filled_facts(title=fields.get("title"), model=fields.get("default_model_slug")),
        format_id(fields.get("current_node")),
    )
    for key, node in unwrap_object(fields.get("mapping")).items():
        if isinstance(node, Mapping):
            message = unwrap_object(node.get("message"))
            when = parse_timestamp(message.get("create_time"))
            yield Message(
                id_,
                str(key),
                _make_chatgpt_turns(message),
                when,
                format_id(node.get("parent")),
                tree=True,
            )


def _make_chatgpt_turns(message: Mapping[str, object]) -> tuple[Turn, ...]:
    """Return the turns with text, also what was spoken; a tool that was called by its name; no thoughts."""
    if not message or unwrap_object(message.get("metadata")).get(
        "is_visually_hidden_from_conversation"
    ):
        return ()

    role = parse_role(get_at_path(message, "author.role"))
    recipient = message.get("recipient") or "all"
    # what an assistant sends to a tool and not to all is a call
    if role == "assistant" and recipient != "all":
        arguments = get_at_path(message, "content.text") or get_at_path(message, "content.parts.0")
        call = read_tool_call({"name": recipient, "arguments": arguments})
        return (Turn(role=role, content=call.mark, calls=(call,)),)
    if get_at_path(message, "content.content_type") not in _CHATGPT_TEXT_TYPES:
        return ()

    parts = get_at_path(message, "content.parts")
    words = join_filled_lines(map(_get_chatgpt_words, parts if isinstance(parts, list) else ()))
    if words:
        return (Turn(role=role, content=words),)
    return ()


def _get_chatgpt_words(part: object) -> str:
    if isinstance(part, str):
        return part

    kind = str(unwrap_object(part).get("content_type"))
    if kind == "audio_transcription":
        return str(unwrap_object(part).get("text") or "")
    # a recording stands beside its transcript, and adds no words
    if "audio" in kind:
        return ""
    return "[image]" if "image" in kind else "[file]"


_OPEN_WEBUI_DETAILS_PATTERN = re.compile(r"<details\b([^>]*)>(.*?)</details>\n?", re.DOTALL)
_OPEN_WEBUI_ATTRIBUTE_PATTERN = re.compile(r'([\w-]+)="([^"]*)"')


def read_open_webui_feedback(fields: Fields) -> Iterator[LogPart]:
    chat = parse_nested_json(unwrap_object(fields.get("snapshot")).get("chat"))
    data = unwrap_object(fields.get("data"))
    meta = unwrap_object(fields.get("meta"))
    id_ = format_id(meta.get("chat_id")) or require_text(unwrap_object(chat), "id")
    person = format_id(fields.get("user_id"))
    when = parse_timestamp(fields.get("updated_at", fields.get("created_at")))
    compared = keep_filled_facts(
        arena=meta.get("arena"),
        sibling_model_ids=data.get("sibling_model_ids"),
    )
    # the chat as it was when it was rated; annotations in it are this rating once more
    if isinstance(chat, Mapping):
        yield from _read_open_webui_messages(
            id_, chat, person, parse_timestamp(chat.get("updated_at")) or when, annotated=False
        )

    yield ConversationFacts(id_, compared)
    if data.get("rating") is not None:
        yield ToolScore(
            "message",
            require_text(meta, "message_id"),
            data["rating"],
            comment=data.get("comment"),
            tags=[data.get("reason"), data.get("tags")],
            person=person,
            at=when,
        )


def read_open_webui_chat(fields: Fields) -> Iterator[LogPart]:
    when = parse_timestamp(fields.get("updated_at"))
    yield from _read_open_webui_messages(
        require_text(fields, "id"), fields, format_id(fields.get("user_id")), when, annotated=True
    )


def _read_open_webui_messages(
    id_: str,
    fields: JsonObject,
    person: str | None,
    when: float | None,
    *,
    annotated: bool,
) -> Iterator[LogPart]:
    inner = parse_nested_json(fields.get("chat", fields))
    if not isinstance(inner, Mapping):
        raise BadInput(
            "the chat has no messages",
            hint="export the feedback with its snapshots, or the chats",
        )

    # a tree of messages; older versions have a list
    messages = get_at_path(inner, "history.messages")
    if not isinstance(messages, Mapping) or not messages:
        messages = _build_open_webui_tree(inner.get("messages"))

    models = keep_filled_facts(
        title=fields.get("title"),
        model=inner.get("models"),
        user=person,
    )
    state = when or 0
    system = make_system_turns(
        {"system": get_at_path(inner, "params.system") or inner.get("system")}
    )
    yield ConversationFacts(id_, models, format_id(get_at_path(inner, "history.currentId")), state)

    for key, message in messages.items():
        if isinstance(message, Mapping) and message.get("role") is not None:
            chat_message = _make_open_webui_message(id_, str(key), message)
            # the system prompt stands before the first message
            before = () if chat_message.parent else system
            yield chat_message._replace(
                turns=before + chat_message.turns,
                state=state,
            )
            if annotated:
                yield from _read_open_webui_annotation(str(key), message, person)


def _build_open_webui_tree(messages: object) -> JsonDict:
    tree: JsonDict = {}
    before = None
    # a list is a tree with a single path
    for index, message in enumerate(list_objects(messages)):
        key = format_id(message.get("id")) or str(index)
        tree[key] = {**message, "parentId": before}
        before = key

    return tree


def _make_open_webui_message(
    id_: str,
    key: str,
    message: JsonObject,
) -> Message:
    turns, error = _make_open_webui_turns(message)
    parent = format_id(message.get("parentId"))
    return Message(
        id_,
        key,
        turns,
        parse_timestamp(message.get("timestamp")),
        parent,
        tree=True,
        error=error,
    )


def _make_open_webui_turns(message: JsonObject) -> tuple[tuple[Turn, ...], str]:
    role = parse_role(message["role"])
    content = message.get("content")
    if isinstance(content, str):
        words = content
    else:
        words = extract_text(content)

    if role == "assistant":
        turns = list(_iterate_open_webui_answer_turns(words))
    else:
        turns = [Turn(role=role, content=extract_text(words))]

    beside = list_file_marks(message.get("files"))
    if beside and turns:
        turns[-1] = turns[-1].model_copy(
            update={"content": join_filled_lines([turns[-1].content, *beside])}
        )

    error = message.get("error")
    failed = "failed" if error else ""
    if isinstance(error, Mapping):
        failed = str(error.get("content") or "failed")
    # an error stands for the answer only where nothing was said
    if failed and not any(turn.content.strip() for turn in turns):
        return (Turn(role="assistant", content="[error]"),), failed
    return tuple(turns), failed


def _iterate_open_webui_answer_turns(words: str) -> Iterator[Turn]:
    """Yield an answer's turns, with tool calls and results that its text contains."""
    answer = ""
    end = 0
    # words up to a block of details, then what the block stands for
    for details in _OPEN_WEBUI_DETAILS_PATTERN.finditer(words):
        answer += words[end : details.start()]
        end = details.end()
        attributes = {}
        for name, value in _OPEN_WEBUI_ATTRIBUTE_PATTERN.findall(details.group(1)):
            attributes[name] = html.unescape(value)
        # reasoning and code are hidden; details of other kinds are words
        if attributes.get("type") != "tool_calls":
            answer += (
                ""
                if attributes.get("type") in ("reasoning", "code_interpreter")
                else details.group(0)
            )
            continue

        call = read_tool_call(
            {**attributes, "arguments": parse_nested_json(attributes.get("arguments"))}
        )
        content = join_filled_lines([extract_text(answer.strip()), call.mark])
        yield Turn(role="assistant", content=content, calls=(call,))
        answer = ""
        if "result" in attributes:
            yield Turn(
                role="tool", content=format_tool_result(parse_nested_json(attributes["result"]))
            )

    rest = extract_text((answer + words[end:]).strip("\n"))
    if rest or not end:
        yield Turn(role="assistant", content=rest)


def _read_open_webui_annotation(
    key: str,
    message: JsonObject,
    person: str | None,
) -> Iterator[ToolScore]:
    annotation = message.get("annotation")
    if isinstance(annotation, Mapping) and annotation.get("rating") is not None:
        comment = annotation.get("comment")
        tags = [annotation.get("reason"), annotation.get("tags")]
        yield ToolScore(
            "message",
            key,
            annotation["rating"],
            comment=comment,
            tags=tags,
            person=person,
            summary=True,
        )


def read_librechat_conversation(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "conversationId")
    for message in _iterate_librechat_messages(
        fields.get("messagesTree") or fields.get("messages") or [], None
    ):
        yield from read_librechat_message({"conversationId": id_, **message})


def _iterate_librechat_messages(messages: object, parent: str | None) -> Iterator[JsonObject]:
    # messages are walked level by level; each gets the id of its parent
    waiting = [(message, parent) for message in list_objects(messages)]
    while waiting:
        message, above = waiting.pop(0)
        yield message if "parentMessageId" in message else {**message, "parentMessageId": above}
        for child in list_objects(message.get("children")):
            waiting.append((child, format_id(message.get("messageId"))))


def read_librechat_message(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "conversationId")
    key = require_text(fields, "messageId")
    message_facts = keep_filled_facts(user=format_id(fields.get("user")), model=fields.get("model"))
    parent = format_id(fields.get("parentMessageId"))
    when = parse_timestamp(fields.get("createdAt"))
    turns, error = _make_librechat_turns(fields)
    yield Message(
        id_,
        key,
        turns,
        when,
        parent,
        tree=True,
        error=error,
        facts=message_facts,
    )
    feedback = fields.get("feedback")
    if isinstance(feedback, Mapping) and feedback.get("rating") is not None:
        words = feedback.get("text")
        person = format_id(fields.get("user"))
        yield ToolScore(
            "message",
            key,
            feedback["rating"],
            comment=words,
            tags=feedback.get("tag"),
            person=person,
        )


def _make_librechat_turns(fields: Fields) -> tuple[tuple[Turn, ...], str]:
    """Return the turns of `format_id` or parts, and an error.

    `sender` is a model's name, so it does not give the role.
    """
    if parse_flag(fields.get("isCreatedByUser")):
        role = "user"
    else:
        role = "assistant"

    parts = list_objects(fields.get("content"))
    errors = []
    for part in parts:
        if part.get("type") == "error":
            errors.append(str(part.get("error")))

    failed = ""
    if parse_flag(fields.get("error")) or errors:
        failed = (errors or [str(fields.get("text") or "failed")])[0]
    # an error stands for the answer only where no part has words
    if failed and not any(part.get("type") == "text" for part in parts):
        return (Turn(role="assistant", content="[error]"),), failed

    marks = list_file_marks(fields.get("files"))
    return read_message_turns(
        {"role": role, "content": [*(parts or filter(None, [fields.get("text")])), *marks]}
    ), failed


CHAINLIT_ROLE_BY_TYPE: dict[str, Role] = {
    "user_message": "user",
    "assistant_message": "assistant",
    "system_message": "system",
    "tool": "tool",
}


def read_chainlit_step(fields: Fields) -> Iterator[LogPart]:
    thread = require_text(fields, "threadId")
    key = format_id(fields.get("id"))
    role = CHAINLIT_ROLE_BY_TYPE.get(str(fields.get("type")))
    words = extract_text(fields.get("output") or "")
    failed = parse_flag(fields.get("isError")) and role in ("assistant", "tool")
    turns: tuple[Turn, ...] = ()
    # a tool's step is its call, and what it answered
    if role == "tool":
        call = read_tool_call(
            {"name": fields.get("name"), "arguments": parse_nested_json(fields.get("input"))}
        )
        result = None
        if failed:
            result = ToolResult(error=words or "failed")
        answered = Turn(
            role="tool",
            content="[error]" if failed else words,
            result=result,
        )
        turns = (Turn(role="assistant", content=call.mark, calls=(call,)), answered)
    elif role and (words or failed):
        turns = (Turn(role=role, content="[error]" if failed else words),)

    user_facts = keep_filled_facts(user=format_id(fields.get("name")) if role == "user" else None)
    error = words if failed else ""
    yield Message(
        thread,
        key,
        turns,
        parse_timestamp(fields.get("createdAt")),
        error=error,
        facts=user_facts,
    )
    yield from _read_chainlit_step_feedback(fields, key)


def read_chainlit_element(fields: Fields) -> Iterator[LogPart]:
    if message := format_id(fields.get("forId", fields.get("stepId"))):
        yield MessageAddition(message, mark=list_file_marks([fields])[0])


def _read_chainlit_step_feedback(fields: Fields, key: str | None) -> Iterator[ToolScore]:
    feedback = unwrap_object(fields.get("feedback"))
    value = feedback.get("value", fields.get("feedback_value"))
    if value not in (None, "") and key and not _is_unset_chainlit_feedback(feedback, value):
        comment = feedback.get("comment") or fields.get("feedback_comment")
        yield ToolScore("message", key, value, comment=comment)


def _is_unset_chainlit_feedback(feedback: Fields, value: object) -> bool:
    """Tell a 0 that was no thumb: while feedback had a strategy, a thumb down was -1."""
    return "strategy" in feedback and normalize_number(value) == "0"


def read_chainlit_feedback(fields: Fields) -> Iterator[LogPart]:
    if fields.get("value") not in (None, "") and not _is_unset_chainlit_feedback(
        fields, fields["value"]
    ):
        target = require_text(fields, "forId", "stepId")
        yield ToolScore(
            "message",
            target,
            fields["value"],
            comment=fields.get("comment"),
        )


def _make_turns_with_files(role: object, content: object, files: object) -> tuple[Turn, ...]:
    parts = content if isinstance(content, list) else [content]
    return read_message_turns({"role": role, "content": [*parts, *list_file_marks(files)]})


def read_ai_studio_chat(fields: Fields) -> Iterator[LogPart]:
    chunks = []
    for chunk in list_objects(unwrap_object(fields.get("chunkedPrompt")).get("chunks")):
        if not chunk.get("isThought"):
            chunks.append(chunk)

    turns: list[Turn] = []
    for chunk in chunks:
        turns.extend(
            _make_turns_with_files(
                chunk.get("role"), chunk.get("text") or _get_ai_studio_mark(chunk), []
            )
        )
    yield WholeTalk(
        format_id(fields.get("id")),
        (*make_system_turns(fields), *turns),
        facts=keep_filled_facts(settings=fields.get("runSettings")),
    )


def _get_ai_studio_mark(chunk: JsonObject) -> str:
    name = next((name for name in chunk if name.startswith(("drive", "inline"))), "")
    # images are told by names such as driveImage and inlineImage
    if "mage" in name:
        return "[image]"
    return "[file]" if name else ""


def read_arena_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat as the server logged it, after each answer and with each vote."""
    state = unwrap_object(fields.get("state"))
    id_ = require_text(state, "conv_id")
    roles = state.get("roles")
    if isinstance(roles, list) and roles:
        user_name = roles[0]
    else:
        user_name = "USER"

    pairs = []
    for pair in state.get("messages") or []:
        # an answer that hadn't come yet has no words
        if isinstance(pair, list) and len(pair) == 2 and pair[1]:
            pairs.append(pair)

    turns: list[Turn] = []
    for who, words in pairs:
        turns.extend(_make_turns_with_files("user" if who == user_name else "assistant", words, []))
    system = make_system_turns({"system": state.get("system_message")})
    yield WholeTalk(
        id_,
        (*system, *turns),
        at=parse_timestamp(fields.get("tstamp")),
        facts=keep_filled_facts(model=fields.get("model")),
    )

    if fields.get("type") in ("upvote", "downvote"):
        yield ToolScore(
            "conversation",
            id_,
            fields["type"],
            at=parse_timestamp(fields.get("tstamp")),
        )
