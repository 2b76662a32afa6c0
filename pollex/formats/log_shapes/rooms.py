"""Rooms in which people and bots talk, and the sessions of agents: each tool's functions stand together."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.log_parts import (
    ConversationFacts,
    LeftOutRow,
    LogPart,
    Message,
    ModelCall,
    ToolScore,
    WholeTalk,
    parse_timestamp,
)
from pollex.formats.encodings import repair_meta_encoding
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
from pollex.formats.log_shapes.payloads import parse_nested_json, read_call_sides
from pollex.formats.log_shapes.turns import (
    join_filled_lines,
    list_file_marks,
    read_message_turns,
    read_turns,
)
from pollex.text import JsonObject

_SKIN_TONE_PATTERN = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|::skin-tone-\\d")
THUMB_BY_REACTION = {
    **dict.fromkeys(("+1", "thumbsup", "thumbs_up", "thumbup", "\U0001f44d", "like", "up"), "up"),
    **dict.fromkeys(
        ("-1", "thumbsdown", "thumbs_down", "thumbdown", "\U0001f44e", "dislike", "down"), "down"
    ),
}
"""Reactions that are thumbs, without their skin tone."""


def _fold_reaction(name: object) -> str:
    """Return the name of a reaction without its skin tone and colons."""
    return _SKIN_TONE_PATTERN.sub("", str(name).casefold()).strip(": ")


def _iterate_thumb_reactions(
    named: Iterable[tuple[object, object]],
    conversation: str,
    message: str | None,
) -> Iterator[ToolScore]:
    """Yield the reactions on a message that are thumbs, one for each person who is named."""
    for name, people in named:
        value = THUMB_BY_REACTION.get(_fold_reaction(name))
        # a reaction without names is one by somebody unknown
        if isinstance(people, list) and people:
            listed = [format_id(person) for person in people]
        else:
            listed = [None]

        for person in listed if value else ():
            yield ToolScore(
                "conversation",
                conversation,
                value,
                person=person,
                message=message,
            )


_SLACK_LINK_PATTERN = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]+))?>")
_SLACK_EVENT_PREFIXES = (
    "channel_",
    "group_",
    "pinned_",
    "unpinned_",
    "bot_add",
    "bot_remove",
    "reminder_",
    "message_deleted",
)


def read_slack_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message: of the thread that it is in, or begins; what a bot says is the assistant's."""
    if str(fields.get("subtype") or "").startswith(_SLACK_EVENT_PREFIXES):
        return

    ts = require_text(fields, "ts")
    thread = format_id(fields.get("thread_ts")) or ts
    channel = format_id(fields.get("channel"))
    # threads of two channels may begin at the same time
    id_ = f"{channel}/{thread}" if channel else thread
    bot = bool(fields.get("bot_id")) or fields.get("subtype") == "bot_message"
    # a link is written <address|words>
    message_text = _SLACK_LINK_PATTERN.sub(
        lambda link: link[2] or link[1],
        str(fields.get("text") or ""),
    )
    words = join_filled_lines(
        [html.unescape(message_text).strip(), *list_file_marks(fields.get("files"))]
    )
    if words:
        turn = Turn(role="assistant" if bot else "user", content=words)
        user_facts = keep_filled_facts(user=None if bot else format_id(fields.get("user")))
        yield Message(
            id_,
            f"{id_}/{ts}",
            (turn,),
            parse_timestamp(ts),
            facts=user_facts,
        )
        named = (
            (reaction.get("name"), reaction.get("users"))
            for reaction in list_objects(fields.get("reactions"))
        )
        yield from _iterate_thumb_reactions(named, id_, f"{id_}/{ts}")


def read_discord_channel(fields: Fields) -> Iterator[LogPart]:
    """Yield the messages of a channel or thread; what bots say is the assistant's."""
    id_ = require_text(fields, "channel.id")
    yield ConversationFacts(
        id_,
        keep_filled_facts(
            title=get_at_path(fields, "channel.name"), server=get_at_path(fields, "guild.name")
        ),
    )
    for message in list_objects(fields.get("messages")):
        # others say who joined, what was pinned and so on
        if message.get("type") not in (
            None,
            "Default",
            "Reply",
            "ChatInputCommand",
            "ContextMenuCommand",
            0,
            19,
            20,
        ):
            continue

        # the words, with what is shown of links and files
        bot = parse_flag(get_at_path(message, "author.isBot") or get_at_path(message, "author.bot"))
        shown = []
        for embed in list_objects(message.get("embeds")):
            shown.append(str(embed.get("description") or embed.get("title") or ""))

        lines = [
            str(message.get("content") or ""),
            *shown,
            *list_file_marks(message.get("attachments")),
        ]
        words = join_filled_lines(lines)
        key = f"{id_}/{message.get('id')}"
        if words:
            turn = Turn(role="assistant" if bot else "user", content=words)
            user_facts = keep_filled_facts(
                user=None if bot else format_id(get_at_path(message, "author.id"))
            )
            yield Message(
                id_,
                key,
                (turn,),
                parse_timestamp(message.get("timestamp")),
                facts=user_facts,
            )

        # reactions that are thumbs
        listed = list_objects(message.get("reactions"))
        named = []
        for reaction in listed:
            named.append(
                (
                    get_at_path(reaction, "emoji.code") or get_at_path(reaction, "emoji.name"),
                    [user.get("id") for user in list_objects(reaction.get("users"))],
                )
            )

        yield from _iterate_thumb_reactions(named, id_, key)


def is_telegram_chat(fields: Fields) -> bool:
    """Return whether a chat's messages say by id who sent them."""
    return any(
        "from_id" in message or "actor_id" in message
        for message in list_objects(fields.get("messages"))
    )


def read_telegram_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat of Telegram's export: who has the chat's name is the bot, or of a person's chat the user."""
    id_ = require_text(fields, "id")
    name = fields.get("name")
    with_bot = str(fields.get("type")).startswith("bot")
    yield ConversationFacts(id_, keep_filled_facts(title=name))

    for message in list_objects(fields.get("messages")):
        if message.get("type") != "message":
            continue
        named = message.get("from") == name
        role: Role = "assistant" if named == with_bot else "user"
        # a text with links or marks is a list of parts
        written = message.get("text")
        listed = written if isinstance(written, list) else [written]
        part_texts = []
        for part in listed:
            part_texts.append(
                str(part.get("text") or "") if isinstance(part, Mapping) else str(part or "")
            )

        message_text = "".join(part_texts)
        mark = "[file]" if message.get("file") else ""
        if message.get("photo"):
            mark = "[image]"
        words = join_filled_lines([message_text.strip(), mark])
        key = f"{id_}/{message.get('id')}"
        if words:
            when = parse_timestamp(message.get("date_unixtime") or message.get("date"))
            yield Message(id_, key, (Turn(role=role, content=words),), when)
        reactions = list_objects(message.get("reactions"))
        by = []
        for reaction in reactions:
            by.append(
                (
                    reaction.get("emoji"),
                    [who.get("from_id") for who in list_objects(reaction.get("recent"))],
                )
            )

        yield from _iterate_thumb_reactions(by, id_, key)


def read_telegram_update(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of a bot's chat, as its program receives or sends it, and thumbs by button or reaction."""
    message = next(
        (
            unwrap_object(fields[name])
            for name in ("message", "edited_message", "result")
            if isinstance(fields.get(name), Mapping)
        ),
        fields if "message_id" in fields else {},
    )
    if message:
        id_ = require_text(message, "chat.id")
        words = join_filled_lines(
            [str(message.get("text") or message.get("caption") or "").strip()]
        )
        role: Role = "assistant" if parse_flag(get_at_path(message, "from.is_bot")) else "user"
        user = format_id(get_at_path(message, "from.id")) if role == "user" else None
        if words:
            turn = Turn(role=role, content=words)
            key = f"{id_}/{message.get('message_id')}"
            when = parse_timestamp(message.get("date"))
            yield Message(id_, key, (turn,), when, facts=keep_filled_facts(user=user))

    # whoever presses a button says what is written on it, or what it sends
    pressed = unwrap_object(fields.get("callback_query"))
    if chat := format_id(get_at_path(pressed, "message.chat.id")):
        sent = str(pressed.get("data") or "")
        names = [sent, re.split(r"[:|/=]", sent)[-1]]
        for row in get_at_path(pressed, "message.reply_markup.inline_keyboard") or ():
            for button in list_objects(row):
                if button.get("callback_data") == pressed.get("data"):
                    names.append(str(button.get("text") or ""))

        value = next(
            (
                THUMB_BY_REACTION[name]
                for name in map(_fold_reaction, names)
                if name in THUMB_BY_REACTION
            ),
            None,
        )
        key = f"{chat}/{get_at_path(pressed, 'message.message_id')}"
        if value:
            person = format_id(get_at_path(pressed, "from.id"))
            yield ToolScore("conversation", chat, value, person=person, message=key)

    reaction = unwrap_object(fields.get("message_reaction"))
    if chat := format_id(get_at_path(reaction, "chat.id")):
        person = format_id(get_at_path(reaction, "user.id"))
        named = []
        for new in list_objects(reaction.get("new_reaction")):
            named.append((new.get("emoji"), [person]))

        yield from _iterate_thumb_reactions(named, chat, f"{chat}/{reaction.get('message_id')}")


def read_mattermost(fields: Fields) -> Iterator[LogPart]:
    """Yield a post with its replies; a bot is told by its posts, else whoever asked first is the user."""
    post = unwrap_object(fields.get("post"))
    root = f"{post.get('channel')}/{post.get('create_at')}"
    messages = [post, *list_objects(post.get("replies"))]
    with_bots = any(map(_is_by_bot, messages))
    for number, message in enumerate(messages):
        # joins and leaves are posts of a type of their own
        words = str(message.get("message") or "").strip()
        if not words or str(message.get("type") or "").startswith("system_"):
            continue
        key = f"{root}/{number}"
        role: Role = "user" if with_bots and not _is_by_bot(message) else "assistant"
        yield Message(
            root,
            key,
            (Turn(role=role, content=words),),
            parse_timestamp(message.get("create_at")),
            author=None if with_bots else format_id(message.get("user")),
        )
        named = []
        for reaction in list_objects(message.get("reactions")):
            named.append((reaction.get("emoji_name"), [reaction.get("user")]))

        yield from _iterate_thumb_reactions(named, root, key)


def _is_by_bot(post: JsonObject) -> bool:
    props = unwrap_object(post.get("props"))
    return parse_flag(props.get("from_bot")) or parse_flag(props.get("from_webhook"))


def read_meta_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat of Messenger or Instagram, as an account downloads it: who has the chat's title is the user."""
    id_ = str(fields.get("thread_path") or require_text(fields, "title"))
    title = repair_meta_encoding(fields.get("title"))
    yield ConversationFacts(id_, keep_filled_facts(title=title, user=title))
    messages = list_objects(fields.get("messages"))
    # where somebody said whose turns the names are, they stand in the names' place
    senders = [repair_meta_encoding(message.get("sender_name")) for message in messages]
    said_by_user = {*senders} <= {"user", "assistant"}
    if not said_by_user:
        yield LeftOutRow(
            "in chats of Messenger and Instagram, whoever has the chat's name is the user"
        )

    for number, message in enumerate(messages):
        marks = []
        for name, mark in _META_FILE_KINDS.items():
            marks += [f"[{mark}]"] * len(list_objects(message.get(name)))

        words = join_filled_lines([repair_meta_encoding(message.get("content")), *marks])
        asks = "user" if said_by_user else title
        role: Role = "user" if senders[number] == asks else "assistant"
        key = f"{id_}/{number}"
        if words and not parse_flag(message.get("is_unsent")):
            turn = Turn(role=role, content=words)
            yield Message(id_, key, (turn,), parse_timestamp(message.get("timestamp_ms")))

        by = (
            (
                repair_meta_encoding(reaction.get("reaction")),
                [repair_meta_encoding(reaction.get("actor"))],
            )
            for reaction in list_objects(message.get("reactions"))
        )
        yield from _iterate_thumb_reactions(by, id_, key)


_META_FILE_KINDS = {
    "photos": "image",
    "gifs": "image",
    "videos": "video",
    "audio_files": "audio",
    "files": "file",
}


def read_claude_code_line(fields: Fields) -> Iterator[LogPart]:
    """Yield a line of a session's file; what sub-agents did, and what the program itself wrote, is left out."""
    session = require_text(fields, "sessionId")
    key = require_text(fields, "uuid")
    message = unwrap_object(fields.get("message"))
    # after a summary of its history, a session goes on under a logical parent
    parent = format_id(fields.get("parentUuid")) or format_id(fields.get("logicalParentUuid"))
    if parse_flag(fields.get("isSidechain")):
        return

    shown = fields.get("type") in ("user", "assistant") and not parse_flag(fields.get("isMeta"))
    if shown and message:
        turns = read_message_turns(message)
    else:
        turns = ()

    filled_turns = []
    for turn in turns:
        if turn.content or turn.calls:
            filled_turns.append(turn)

    turns = tuple(filled_turns)
    yield Message(
        session,
        key,
        turns,
        parse_timestamp(fields.get("timestamp")),
        parent,
        tree=True,
    )


_CODEX_CONTEXT_PREFIXES = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "# AGENTS.md",
)


def read_codex_item(fields: Fields) -> Iterator[LogPart]:
    """Yield an item of a session's file, which is one conversation."""
    item = unwrap_object(fields.get("payload"))
    kind = fields.get("type")
    if kind == "session_meta":
        yield ConversationFacts(
            "",
            keep_filled_facts(
                session=format_id(item.get("id")), version=format_id(item.get("cli_version"))
            ),
        )
    elif kind == "response_item":
        # calls and their outputs have no role
        if item.get("role") or item.get("type") != "message":
            turns = read_message_turns(item)
        else:
            turns = ()

        # what the program itself says in the user's name
        context = (
            item.get("role") == "user"
            and turns
            and turns[0].content.lstrip().startswith(_CODEX_CONTEXT_PREFIXES)
        )
        if context:
            turns = tuple(Turn(role="system", content=turn.content) for turn in turns)
        filled_turns = []
        for turn in turns:
            if turn.content:
                filled_turns.append(turn)

        turns = tuple(filled_turns)
        yield Message("", None, turns, parse_timestamp(fields.get("timestamp")))


def read_session_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a row of a table with a message in JSON beside its session."""
    message = parse_nested_json(fields.get("message_data") or fields.get("message"))
    session = require_text(fields, "session_id", "thread_id", "conversation_id")
    if isinstance(message, Mapping):
        turns = read_message_turns(message)
    else:
        turns = ()

    when = parse_timestamp(fields.get("created_at") or fields.get("timestamp"))
    key = format_id(fields.get("id"))
    yield Message(session, f"{session}/{key}" if key else None, turns, when)


def is_message_in_cell(fields: Fields) -> bool:
    """Return whether a row's message is an object in JSON, with a role or as LangChain writes it."""
    message = parse_nested_json(fields.get("message_data") or fields.get("message"))
    return isinstance(message, Mapping) and bool(message.keys() & {"role", "type", "kwargs"})


def read_agents_span(fields: Fields) -> Iterator[LogPart]:
    """Yield a span of OpenAI's Agents SDK; the session is the group of its trace."""
    data = unwrap_object(fields.get("span_data"))
    kind = str(data.get("type"))
    model = kind in ("generation", "response")
    sent = data.get("input")
    received = data.get("output")
    yield ModelCall(
        require_text(fields, "trace_id"),
        require_text(fields, "id"),
        parent=format_id(fields.get("parent_id")),
        at=parse_timestamp(fields.get("started_at")),
        **read_call_sides(sent, received, silent=not model, written="words"),
        model=model,
        error=str(unwrap_object(fields.get("error")).get("message") or ""),
    )


def read_agents_trace(fields: Fields) -> Iterator[LogPart]:
    trace = require_text(fields, "id")
    metadata = unwrap_object(fields.get("metadata"))
    trace_facts = keep_filled_facts(
        user=format_id(metadata.get("user") or metadata.get("user_id")),
        metadata=metadata,
    )
    yield ModelCall(
        trace,
        trace,
        None,
        format_id(fields.get("group_id")),
        facts=trace_facts,
    )


def read_adk_session(fields: Fields) -> Iterator[LogPart]:
    """Yield a session of Google's Agent Development Kit."""
    id_ = require_text(fields, "id")
    yield ConversationFacts(
        id_, keep_filled_facts(user=format_id(fields.get("userId") or fields.get("user_id")))
    )
    for event in list_objects(fields.get("events")):
        yield from read_adk_event({"session_id": id_, **event})


def read_adk_event(fields: Fields) -> Iterator[LogPart]:
    content = unwrap_object(fields.get("content"))
    if parse_flag(fields.get("partial")) or not content.get("parts"):
        return

    role = "user" if fields.get("author") == "user" else "assistant"
    turns = read_message_turns({"role": role, "parts": content["parts"]})
    session = require_text(fields, "session_id")
    yield Message(
        session,
        format_id(fields.get("id")),
        turns,
        parse_timestamp(fields.get("timestamp")),
    )


def read_chat_store(fields: Fields) -> Iterator[LogPart]:
    """Yield the chats of LlamaIndex's store, by their keys."""
    for key, messages in unwrap_object(fields.get("store")).items():
        if isinstance(messages, list):
            yield WholeTalk(str(key), read_turns(messages))


def read_autogen_state(fields: Fields) -> Iterator[LogPart]:
    """Yield the thread of the state that an AutoGen team saved."""
    states = unwrap_object(fields.get("agent_states"))
    threads = []
    for state in map(unwrap_object, states.values()):
        if state.get("message_thread"):
            threads.append(state["message_thread"])

    # the longest thread has what all agents said
    if threads:
        yield WholeTalk(format_id(fields.get("id")), read_turns(max(threads, key=len)))


def is_posthog_event(fields: Fields) -> bool:
    """Return whether an event is about a trace of a model's calls."""
    return "properties.$ai_trace_id" in fields or "$ai_trace_id" in unwrap_object(
        fields.get("properties")
    )


def is_non_model_event(fields: Fields) -> bool:
    """Return whether an event is PostHog's and about no model, as are views of pages and clicks."""
    if is_posthog_event(fields):
        return False

    property_names = []
    for n in fields:
        if n.startswith("properties."):
            property_names.append(n)

    names = [*unwrap_object(fields.get("properties")), *property_names]
    return any("$" in name for name in (str(fields.get("event")), *names))


def read_non_model_event(fields: Fields) -> Iterator[LogPart]:
    """Yield why an event is left out."""
    yield LeftOutRow(f"events {fields.get('event')!r:.40} are about no model, and were left out")


def read_posthog_event(fields: Fields) -> Iterator[LogPart]:
    """Yield an event of PostHog's LLM analytics: a span, a generation, or what a user said of one."""
    # properties are columns of a table, or nested
    properties: JsonObject = {
        k.removeprefix("properties."): v for k, v in fields.items() if k.startswith("properties.")
    }
    properties = {**unwrap_object(fields.get("properties")), **properties}
    kind = str(fields.get("event"))
    trace = require_text(properties, "$ai_trace_id")
    person = format_id(fields.get("distinct_id"))
    # what a user said of a trace
    if kind in ("$ai_feedback", "$ai_metric", "survey sent"):
        value = properties.get("$ai_metric_value")
        comment = properties.get("$ai_feedback_text")
        name = str(properties.get("$ai_metric_name") or "feedback")
        when = parse_timestamp(fields.get("timestamp"))
        yield ToolScore(
            "trace",
            trace,
            value,
            name,
            comment=comment,
            person=person,
            at=when,
        )
        return

    # a span, or a model's call
    span = (
        format_id(
            properties.get("$ai_span_id")
            or properties.get("$ai_generation_id")
            or fields.get("uuid")
        )
        or trace
    )
    sent = properties.get("$ai_input", properties.get("$ai_input_state"))
    received = properties.get(
        "$ai_output_choices",
        properties.get("$ai_output", properties.get("$ai_output_state")),
    )
    model = kind == "$ai_generation"
    yield ModelCall(
        trace,
        trace if kind == "$ai_trace" else span,
        parent=None if kind == "$ai_trace" else format_id(properties.get("$ai_parent_id")),
        session=format_id(properties.get("$ai_session_id")),
        at=parse_timestamp(fields.get("timestamp")),
        **read_call_sides(
            sent, received, silent=kind not in ("$ai_generation", "$ai_trace", "$ai_span")
        ),
        model=model,
        error=str(properties.get("$ai_error") or "failed")
        if parse_flag(properties.get("$ai_is_error"))
        else "",
        facts=keep_filled_facts(user=person, model=format_id(properties.get("$ai_model"))),
    )


def read_anything_llm_exchange(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange; an answer in the tables is an object with its sources."""
    # a conversation without an id is told by its workspace and its user
    names = ("workspace", "workspaceId", "username", "user_id")
    owners = [format_id(fields.get(name)) for name in names]
    session = format_id(fields.get("api_session_id")) or format_id(fields.get("thread_id"))
    session = session or "/".join(filter(None, owners))
    answer = parse_nested_json(fields.get("response"))
    if isinstance(answer, Mapping):
        answer = answer.get("text")
    else:
        answer = fields.get("response")

    files = list_file_marks(parse_nested_json(fields.get("attachments")))
    question = join_filled_lines([str(fields.get("prompt") or ""), *files])
    both = (Turn(role="user", content=question), Turn(role="assistant", content=str(answer or "")))
    filled_turns = []
    for turn in both:
        if turn.content:
            filled_turns.append(turn)

    turns = tuple(filled_turns)
    key = f"{session}/{fields.get('id')}"
    when = parse_timestamp(fields.get("sent_at") or fields.get("createdAt"))
    yield Message(
        session,
        key,
        turns,
        when,
        facts=keep_filled_facts(user=fields.get("username")),
    )
    rating = fields.get("rating", fields.get("feedbackScore"))
    if rating not in (None, "", "--"):
        yield ToolScore("conversation", session, rating, message=key)


def read_onyx_exchange(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange of Onyx's query history."""
    session = require_text(fields, "chat_session_id")
    key = f"{session}/{fields.get('message_id') or fields.get('time_created')}"
    person = format_id(fields.get("user_email"))
    exchange = (
        (role, str(fields.get(name) or ""))
        for role, name in (("user", "user_message"), ("assistant", "ai_response"))
    )
    worded_turns = []
    for role, words in exchange:
        if words:
            worded_turns.append(Turn(role=role, content=words))

    turns = tuple(worded_turns)
    yield Message(
        session,
        key,
        turns,
        parse_timestamp(fields.get("time_created")),
        facts=keep_filled_facts(user=person),
    )
    value = fields.get("feedback") or fields.get("feedback_type")
    comment = fields.get("feedback_text")
    if value or comment:
        score = ToolScore(
            "conversation",
            session,
            value or None,
            comment=comment,
            person=person,
            message=key,
        )
        yield score


def read_onyx_session(fields: Fields) -> Iterator[LogPart]:
    """Yield a session of Onyx's interface."""
    id_ = require_text(fields, "id", "chat_session_id")
    person = format_id(fields.get("user_email"))
    yield ConversationFacts(
        id_,
        keep_filled_facts(user=person, title=fields.get("name") or fields.get("description")),
    )

    for number, message in enumerate(list_objects(fields.get("messages"))):
        key = f"{id_}/{number}"
        turns = read_message_turns(
            {"role": message.get("message_type"), "content": message.get("message")}
        )
        yield Message(id_, key, turns, parse_timestamp(message.get("time_created")))
        value = message.get("feedback_type") or message.get("feedback")
        comment = message.get("feedback_text")
        if value or comment:
            yield ToolScore(
                "conversation",
                id_,
                value or None,
                comment=comment,
                person=person,
                message=key,
            )


def read_fastgpt_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield a chat of FastGPT's log as a table: the whole talk stands in its last column."""
    for value in fields.values():
        items = list_objects(value)
        if items and all(item.keys() >= {"obj", "value"} for item in items):
            id_ = require_text(items[0], "dataId", "id", "_id")
            for number, item in enumerate(items):
                yield from read_fastgpt_item({"chatId": id_, "time": number, **item})


def has_fastgpt_items(fields: Fields) -> bool:
    """Return whether a column of a row holds the items of a chat."""
    texts = (
        value
        for value in fields.values()
        if isinstance(value, str) and '"obj"' in value and value[:1] == "["
    )
    return any(
        item.keys() >= {"obj", "value"} for value in texts for item in list_objects(value)[:1]
    )


def read_fastgpt_item(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "chatId")
    value = parse_nested_json(fields.get("value"))
    key = f"{id_}/{fields.get('dataId') or fields.get('id') or fields.get('_id')}"
    turns = read_message_turns({"role": fields.get("obj"), "content": _list_fastgpt_parts(value)})
    yield Message(id_, key, turns, parse_timestamp(fields.get("time")))

    for name, thumb in (("userGoodFeedback", "up"), ("userBadFeedback", "down")):
        if fields.get(name):
            # the value is a yes, or what the user wrote
            comment = None
            if str(fields[name]).casefold() not in ("yes", "true", "1"):
                comment = fields[name]
            yield ToolScore(
                "conversation",
                id_,
                thumb,
                comment=comment,
                message=key,
            )


def _list_fastgpt_parts(value: object) -> object:
    """Return the parts of an item; its calls of tools are a list in one part, with the results beside them."""
    if not isinstance(value, list):
        return value

    parts: list[object] = []
    for part in value:
        if isinstance(part, Mapping) and part.get("tools"):
            for tool in list_objects(part["tools"]):
                call = {
                    "name": tool.get("functionName") or tool.get("toolName"),
                    "arguments": tool.get("params"),
                }
                parts.append(
                    {
                        "type": "tool_call",
                        "tool_call": {**call, "id": tool.get("id"), "output": tool.get("response")},
                    }
                )
        else:
            parts.append(part)

    return parts


def read_argilla_record(fields: Fields) -> Iterator[LogPart]:
    """Yield an annotated record: a chat or an exchange among its fields, and each person's answers."""
    id_ = require_text(fields, "id")
    record_fields = unwrap_object(fields.get("fields"))
    # a field with a chat; else the first two texts are the question and the answer
    chats = [
        chat
        for value in record_fields.values()
        if isinstance(chat := parse_nested_json(value), list) and list_objects(chat)
    ]
    if chats:
        turns = read_turns(chats[0])
    else:
        words = [str(value) for value in record_fields.values() if isinstance(value, str)]
        roles: tuple[Role, ...] = ("user", "assistant")
        worded_turns = []
        for role, content in zip(roles, words, strict=False):
            worded_turns.append(Turn(role=role, content=content))

        turns = tuple(worded_turns)

    yield WholeTalk(
        id_,
        turns,
        facts=keep_filled_facts(metadata=unwrap_object(fields.get("metadata"))),
    )
    for question, answers in unwrap_object(fields.get("responses")).items():
        for answer in list_objects(answers):
            # drafts and discarded answers don't count
            if answer.get("status", "submitted") == "submitted" and answer.get("value") is not None:
                value = answer["value"]
                person = format_id(answer.get("user_id"))
                yield ToolScore(
                    "conversation",
                    id_,
                    value,
                    str(question),
                    person=person,
                )


def read_label_studio_task(fields: Fields) -> Iterator[LogPart]:
    """Yield an annotated task: the dialogue among its data, and what people chose, rated and wrote."""
    id_ = require_text(fields, "id")
    data = unwrap_object(fields.get("data"))
    talks = [value for value in data.values() if list_objects(value)]
    if talks:
        turns = read_turns(parse_nested_json(talks[0]))
    else:
        turns = ()

    yield WholeTalk(
        id_,
        turns,
        facts={name: value for name, value in data.items() if not isinstance(value, list)},
    )
    for annotation in list_objects(fields.get("annotations") or fields.get("completions")):
        if parse_flag(annotation.get("was_cancelled")):
            continue
        who = annotation.get("completed_by")
        if isinstance(who, Mapping):
            person = format_id(who.get("email") or who.get("id"))
        else:
            person = format_id(who)

        for result in list_objects(annotation.get("result")):
            value = unwrap_object(result.get("value"))
            name = str(result.get("from_name") or "")
            # a choice, stars or a number is the score, and a text the comment
            chosen = value.get("choices") or value.get("rating") or value.get("number")
            written = None
            if result.get("type") == "textarea":
                written = value.get("text")
            if isinstance(chosen, list) and len(chosen) == 1:
                answer = chosen[0]
            else:
                answer = chosen

            if answer is not None or written:
                when = parse_timestamp(annotation.get("updated_at") or annotation.get("created_at"))
                yield ToolScore(
                    "conversation",
                    id_,
                    answer,
                    name,
                    comment=written,
                    person=person,
                    at=when,
                )


def read_azure_message(fields: Fields) -> Iterator[LogPart]:
    """Yield a message of Microsoft's sample of a chat; its feedback is a thumb up, or the reasons of one down."""
    id_ = require_text(fields, "conversationId")
    key = require_text(fields, "id")
    turns = read_message_turns({"role": fields.get("role"), "content": fields.get("content")})
    person = format_id(fields.get("userId"))
    yield Message(
        id_,
        key,
        turns,
        parse_timestamp(fields.get("createdAt")),
        facts=keep_filled_facts(user=person),
    )
    feedback = []
    for word in str(fields.get("feedback") or "").split(","):
        if word.strip():
            feedback.append(word.strip())

    if feedback and feedback != ["neutral"]:
        good = feedback == ["positive"]
        reasons = []
        for reason in feedback:
            if reason not in ("positive", "negative"):
                reasons.append(reason)

        yield ToolScore(
            "message",
            key,
            "up" if good else "down",
            tags=reasons,
            person=person,
        )
