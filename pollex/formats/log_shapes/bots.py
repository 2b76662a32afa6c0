"""Builders of bots, and desks where people answer: each tool's functions have its name, and stand together."""

import html
import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.log_parts import (
    ConversationFacts,
    LeftOutRow,
    LogPart,
    Message,
    MessageAddition,
    ToolScore,
    parse_timestamp,
)
from pollex.formats.assembly.thumbs import THUMB_SCORE_NAMES, keep_lowercase_letters_of_name
from pollex.formats.labels import is_usual_thumb
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
    parse_role,
    read_tool_call,
    read_tool_result,
)
from pollex.text import JsonDict, JsonObject


def read_langflow_message(fields: Fields) -> Iterator[LogPart]:
    session = require_text(fields, "session_id")
    key = format_id(fields.get("id"))
    words = extract_text(str(fields.get("text") or ""))
    failed = fields.get("category") == "error" or parse_flag(fields.get("error"))
    # calls of tools stand in blocks, among contents of other kinds
    blocks = []
    for block in list_objects(fields.get("content_blocks")):
        blocks.extend(list_objects(block.get("contents")))

    tools = []
    for content in blocks:
        if content.get("type") == "tool_use":
            tools.append(content)

    calls = [turn for tool in tools for turn in _make_tool_turns(tool, tool.get("output"))]
    # the text of a failed answer is its error, and no words
    lines = [
        "[error]" if failed else words,
        *list_file_marks(parse_nested_json(fields.get("files"))),
    ]
    turn = Turn(role=parse_role(fields.get("sender")), content=join_filled_lines(lines))
    yield Message(
        session,
        key,
        (*calls, turn),
        parse_timestamp(fields.get("timestamp")),
        error=words if failed else "",
    )


def read_flowise_message(fields: Fields) -> Iterator[LogPart]:
    session = require_text(fields, "sessionId", "chatId")
    # a message without an id is told by its chat, time and role
    key = (
        format_id(fields.get("id")) or f"{session}/{fields.get('createdDate')}/{fields.get('role')}"
    )
    lines = [
        extract_text(str(fields.get("content") or "")),
        *list_file_marks(parse_nested_json(fields.get("fileUploads"))),
    ]
    turn = Turn(role=parse_role(fields.get("role")), content=join_filled_lines(lines))
    calls = [
        turn
        for tool in list_objects(fields.get("usedTools"))
        for turn in _make_tool_turns({"name": tool.get("tool"), **tool}, tool.get("toolOutput"))
    ]
    yield Message(session, key, (*calls, turn), parse_timestamp(fields.get("createdDate")))
    feedback = parse_nested_json(fields.get("feedback"))
    if isinstance(feedback, str) and is_usual_thumb(feedback):
        yield ToolScore("message", key, feedback)
    elif (
        isinstance(feedback, str) and feedback.strip()
    ):  # the page's file of messages has the comment alone
        yield ToolScore("message", key, None, comment=feedback)


BOTPRESS_TEXT_FIELDS = ("text", "markdown", "title", "subtitle", "body")
BOTPRESS_FILE_KINDS = ("image", "audio", "video", "file", "location")


def read_botpress_message(fields: Fields) -> Iterator[LogPart]:
    role = str(fields.get("direction")).strip().casefold()
    words = "\n".join(
        _iterate_botpress_lines(
            str(fields.get("type") or ""),
            unwrap_object(fields.get("payload")),
        )
    )
    if words and role not in ("incoming", "outgoing"):
        yield LeftOutRow(f"messages whose direction is {role!r:.40} were left out")
    elif words:
        turn = Turn(
            role="user" if role == "incoming" else "assistant",
            content=extract_text(words),
        )
        key = format_id(fields.get("id"))
        when = parse_timestamp(fields.get("createdAt"))
        if role == "incoming":
            message_facts = keep_filled_facts(user=format_id(fields.get("userId")))
        else:
            message_facts = {}

        yield Message(
            require_text(fields, "conversationId"),
            key,
            (turn,),
            when,
            facts=message_facts,
        )


def _iterate_botpress_lines(kind: str, payload: JsonObject) -> Iterator[str]:
    """Yield the lines of a message: its words, or else the labels of its choices, and the cards in it."""
    if kind in BOTPRESS_FILE_KINDS:
        yield f"[{kind}]"

    words = []
    for name in BOTPRESS_TEXT_FIELDS:
        if isinstance(payload.get(name), str):
            words.append(str(payload[name]).strip())

    labels = []
    for choice in list_objects(payload.get("options") or payload.get("actions")):
        if choice.get("label"):
            labels.append(str(choice["label"]))

    yield from [line for line in words if line] or labels
    for item in list_objects(payload.get("items")):
        yield from _iterate_botpress_lines(
            str(item.get("type") or ""), unwrap_object(item.get("payload")) or item
        )

    # a message with nothing to read leaves its kind
    readable = words or labels or payload.get("items") or kind in BOTPRESS_FILE_KINDS
    if kind and payload and not readable:
        yield f"[{kind}]"


ACTIVITY_USER_ROLES = ("user", "1")
ACTIVITY_AGENT_ROLES = ("bot", "skill", "assistant", "agent", "0")
"""Roles of the Bot Framework, and as Copilot Studio numbers them."""
ACTIVITY_FEEDBACK_ACTIONS = ("message/submitAction", "feedback")
THUMB_BY_ACTIVITY_REACTION = {
    "like": "up",
    "dislike": "down",
    "liked": "up",
    "disliked": "down",
}


def read_bot_activity(fields: Fields) -> Iterator[LogPart]:
    yield from _read_activity(fields, require_text(fields, "conversation.id"))


def _read_activity(fields: Fields, id_: str) -> Iterator[LogPart]:
    # Copilot Studio numbers roles from 0, which isn't a missing role
    role = str(
        get_at_path(fields, "from.role") if get_at_path(fields, "from.role") is not None else ""
    ).casefold()
    if fields.get("type") in ("message", None):
        words = join_filled_lines([*_list_activity_words(fields), *_list_activity_files(fields)])
        user = role in ACTIVITY_USER_ROLES
        agent = role in ACTIVITY_AGENT_ROLES
        if words and not user and not agent:
            yield LeftOutRow(f"messages whose from.role is {role or None!r:.40} were left out")
        elif words:
            turn = Turn(role="user" if user else "assistant", content=words)
            user_facts = keep_filled_facts(
                user=format_id(
                    get_at_path(fields, "from.aadObjectId") or get_at_path(fields, "from.id")
                )
                if user
                else None
            )
            yield Message(
                id_,
                format_id(fields.get("id")),
                (turn,),
                parse_timestamp(fields.get("timestamp")),
                facts=user_facts,
            )
    # thumbs: a card's answer, a reaction, a survey
    elif fields.get("type") == "invoke" and fields.get("name") in ACTIVITY_FEEDBACK_ACTIONS:
        yield from _read_activity_feedback(fields, id_, unwrap_object(fields.get("value")))
    elif fields.get("type") == "messageReaction":
        for reaction in list_objects(fields.get("reactionsAdded")):
            if value := THUMB_BY_ACTIVITY_REACTION.get(str(reaction.get("type"))):
                yield _make_activity_thumb(fields, id_, value, None)
    elif fields.get("valueType") == "CSATSurveyResponse":
        survey = unwrap_object(fields.get("value"))
        if survey.get("score") is not None:
            comment = survey.get("comment")
            yield ToolScore(
                "conversation",
                id_,
                survey["score"],
                name="csat",
                rating=True,
                comment=comment,
            )


def _list_activity_words(fields: Fields) -> list[str]:
    words = str(fields.get("text") or "").strip()
    labels = []
    for action in list_objects(get_at_path(fields, "suggestedActions.actions")):
        if action.get("title"):
            labels.append(str(action["title"]))

    return [words, *(labels if not words else [])]


def _list_activity_files(fields: Fields) -> list[str]:
    """Return what stands for the attachments: of a card its words, of others their kind."""
    marks = []
    for file in list_objects(fields.get("attachments")):
        if "card" in str(file.get("contentType")):
            marks += _list_card_words(unwrap_object(file.get("content"))) or ["[card]"]
        elif str(file.get("contentType")) != "text/html":  # the text once more
            marks += list_file_marks([file])

    return marks


def _list_card_words(card: JsonObject) -> list[str]:
    words = []
    for name in ("title", "subtitle", "text"):
        if isinstance(card.get(name), str):
            words.append(str(card[name]))

    for block in list_objects(card.get("body")):
        words += _list_card_words(block)

    return words


def _read_activity_feedback(
    fields: Fields,
    id_: str,
    value: JsonObject,
) -> Iterator[ToolScore]:
    action_value = unwrap_object(value.get("actionValue")) or value
    # the comment is text, or JSON text of an object with a field for it
    written = parse_nested_json(action_value.get("feedback"))
    if isinstance(written, Mapping):
        comment = written.get("feedbackText")
    else:
        comment = written

    reaction = THUMB_BY_ACTIVITY_REACTION.get(str(action_value.get("reaction")))
    if reaction or comment:
        yield _make_activity_thumb(fields, id_, reaction, comment)


def _make_activity_thumb(
    fields: Fields,
    id_: str,
    value: str | None,
    comment: object,
) -> ToolScore:
    message = format_id(fields.get("replyToId"))
    person = format_id(get_at_path(fields, "from.aadObjectId") or get_at_path(fields, "from.id"))
    when = parse_timestamp(fields.get("timestamp"))

    return ToolScore(
        "conversation",
        id_,
        value,
        comment=comment,
        person=person,
        at=when,
        message=message,
    )


def read_copilot_transcript(fields: Fields) -> Iterator[LogPart]:
    """Yield the activities of a transcript, which stand as JSON text in one of its columns."""
    # names of the columns come in upper and lower case
    row = {}
    for name, value in fields.items():
        row[name.casefold()] = value

    id_ = require_text(row, "conversationtranscriptid")
    yield ConversationFacts(
        id_,
        keep_filled_facts(
            title=row.get("name"), bot=format_id(row.get("bot_conversationtranscriptid"))
        ),
    )
    for activity in list_objects(get_at_path(row, "content.activities")):
        yield from _read_activity(activity, id_)


def _make_tool_turns(tool: JsonObject, output: object) -> Iterator[Turn]:
    call = read_tool_call(tool)
    yield Turn(role="assistant", content=call.mark, calls=(call,))
    if output is not None:
        yield Turn(
            role="tool",
            content=format_tool_result(output),
            result=read_tool_result(tool),
        )


DIFY_ANSWER_CUT_CHARS = 500
"""Characters after which the export of feedback cuts an answer, and writes three dots."""
_THINKING_PATTERN = re.compile(r"<think>.*?</think>\s*", re.DOTALL)


def read_dify_message(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "conversation_id")
    key = require_text(fields, "id")
    error = ""
    if fields.get("status") == "error" or fields.get("error"):
        error = str(fields.get("error") or "failed")

    message_facts = keep_filled_facts(
        user=format_id(fields.get("from_end_user_id")),
        model=fields.get("model_id"),
        retrieved_documents=list_objects(fields.get("retriever_resources")),
    )
    turns = _make_dify_turns(
        fields.get("query"),
        fields.get("answer"),
        error,
        _list_dify_file_marks(fields.get("message_files")),
    )
    parent = format_id(fields.get("parent_message_id"))
    # a parent of zeros alone is none, and makes no tree
    branched = parent is not None and parent.strip("0-") != ""
    when = parse_timestamp(fields.get("created_at"))
    yield Message(
        id_,
        key,
        turns,
        when,
        parent,
        tree=branched,
        error=error,
        facts=message_facts,
    )
    for step in list_objects(fields.get("agent_thoughts")):
        yield from read_dify_step({**step, "message_id": key})

    for feedback in [unwrap_object(fields.get("feedback")), *list_objects(fields.get("feedbacks"))]:
        if feedback.get("rating"):
            source = str(feedback.get("from_source") or "user")
            # a rater without a name is whoever asked
            person = format_id(feedback.get("from_end_user_id")) or message_facts.get("user")
            comment = feedback.get("content")
            yield ToolScore(
                "message",
                key,
                feedback["rating"],
                source=source,
                comment=comment,
                person=person,
            )


def read_dify_step(fields: Fields) -> Iterator[LogPart]:
    names = []
    for name in str(fields.get("tool") or "").split(";"):
        if name:
            names.append(name)

    if not names:
        return  # the last step is the answer

    # several tools in one step: their arguments and answers by their names
    tool_input = parse_nested_json(fields.get("tool_input"))
    if isinstance(tool_input, Mapping) and any(name in tool_input for name in names):
        inputs = tool_input
    else:
        inputs = dict.fromkeys(names, tool_input)

    calls = []
    for name in names:
        calls.append(read_tool_call({"name": name, "arguments": inputs.get(name)}))

    words = _THINKING_PATTERN.sub("", str(fields.get("thought") or "")).strip()
    # answers of several tools stand by name; they follow in the order of the calls
    observed = parse_nested_json(fields.get("observation"))
    if isinstance(observed, Mapping):
        named = []
        for n in dict.fromkeys(names):
            if n in observed:
                named.append(observed[n])
    else:
        named = []

    tools = []
    for observation in named or [observed]:
        if observation not in (None, ""):
            tools.append(Turn(role="tool", content=format_tool_result(observation)))

    content = join_filled_lines([words, *(call.mark for call in calls)])
    turn = Turn(role="assistant", content=content, calls=tuple(calls))
    # the place among the message's steps, else the time
    place = parse_timestamp(fields.get("position")) or parse_timestamp(fields.get("created_at"))
    yield MessageAddition(require_text(fields, "message_id"), place, (turn, *tools))


def read_dify_file(fields: Fields) -> Iterator[LogPart]:
    if marks := _list_dify_file_marks([fields]):
        yield MessageAddition(require_text(fields, "message_id"), mark=marks[0])


def _list_dify_file_marks(files: object) -> list[str]:
    attachments = list_objects(files)
    file_marks = []
    for file in attachments:
        if file.get("belongs_to") != "assistant":
            file_marks.append("[image]" if file.get("type") == "image" else "[file]")

    return file_marks


def _make_dify_turns(
    query: object,
    answer: object,
    error: str,
    files: list[str],
) -> tuple[Turn, ...]:
    words = extract_text(_THINKING_PATTERN.sub("", str(answer or "")))
    question = Turn(
        role="user",
        content=join_filled_lines([extract_text(str(query or "")), *files]),
    )
    if error and not words:
        return question, Turn(role="assistant", content="[error]")
    if words:
        return (question, Turn(role="assistant", content=words))
    return (question,)


def read_dify_feedback(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "conversation_id")
    key = require_text(fields, "message_id")
    answer = str(fields.get("ai_response") or "")
    cut = len(answer) >= DIFY_ANSWER_CUT_CHARS + 3 and answer.endswith("...")
    turns = _make_dify_turns(
        fields.get("user_query"),
        answer,
        "" if answer.strip() else "failed",
        [],
    )
    yield Message(
        id_,
        key,
        turns,
        parse_timestamp(fields.get("message_date")),
        facts=keep_filled_facts(
            user=format_id(fields.get("from_end_user_id")), answer_cut=cut or None
        ),
    )
    yield ConversationFacts(
        id_,
        keep_filled_facts(title=fields.get("conversation_name"), only_rated_turns=True),
    )


def read_rasa_tracker(fields: Fields) -> Iterator[LogPart]:
    sender = require_text(fields, "sender_id")
    slots = unwrap_object(fields.get("slots"))
    # slots as they are now count before the events that set them
    for event in list_objects(fields.get("events")):
        yield from read_rasa_event({**event, "sender_id": sender}, slots=not slots)

    for name, value in slots.items():
        yield from _read_rasa_slot(sender, str(name), value)


def read_rasa_stored_event(fields: Fields) -> Iterator[LogPart]:
    yield from read_rasa_event(
        {**unwrap_object(fields.get("data")), "sender_id": fields.get("sender_id")}
    )


def read_rasa_event(fields: Fields, *, slots: bool = True) -> Iterator[LogPart]:
    """Yield a message; a text that begins with a slash is a payload."""
    sender = require_text(fields, "sender_id")
    kind = fields.get("event")
    words = str(fields.get("text") or "")
    if kind == "bot":
        bot_data = unwrap_object(fields.get("data"))
    else:
        bot_data = {}

    marks = []
    for name, mark in (("image", "image"), ("attachment", "file")):
        if bot_data.get(name):
            marks.append(f"[{mark}]")

    if kind in ("user", "bot") and (words or marks) and not words.startswith("/"):
        turn = Turn(
            role="user" if kind == "user" else "assistant",
            content=join_filled_lines([words, *marks]),
        )
        yield Message(
            sender,
            format_id(fields.get("message_id")),
            (turn,),
            parse_timestamp(fields.get("timestamp")),
        )
    elif slots and kind == "slot":
        yield from _read_rasa_slot(sender, str(fields.get("name")), fields.get("value"))
    elif slots and words.startswith("/"):
        # a payload may set slots: /affirm{"name": value}
        payload = None
        if "{" in words:
            payload = parse_nested_json(words[words.find("{") :])
        for name, value in payload.items() if isinstance(payload, Mapping) else ():
            yield from _read_rasa_slot(sender, str(name), value)


def _read_rasa_slot(sender: str, name: str, value: object) -> Iterator[ToolScore]:
    thumb = keep_lowercase_letters_of_name(name.removesuffix("_value")) in THUMB_SCORE_NAMES
    if thumb and isinstance(value, str | int | float):
        yield ToolScore(
            "conversation",
            sender,
            value,
            name=name.removesuffix("_value"),
        )


def read_dialogflow_conversation(fields: Fields) -> Iterator[LogPart]:
    name = require_text(fields, "name")
    id_ = name.rpartition("/")[2]
    for number, interaction in enumerate(
        list_objects(_rename_keys_to_camel_case(fields.get("interactions")))
    ):
        # an interaction whose answer has no id is told by its number
        key = format_id(get_at_path(interaction, "response.responseId")) or f"{name}/{number}"
        yield Message(
            id_,
            key,
            _make_dialogflow_turns(interaction),
            parse_timestamp(interaction.get("createTime")),
        )
        yield from _read_dialogflow_feedback(interaction.get("answerFeedback"), key)


def read_dialogflow_logged_turn(fields: Fields) -> Iterator[LogPart]:
    name = require_text(fields, "conversation_name")
    number = require_text(fields, "turn_position")
    interaction = {}
    for side in ("request", "response"):
        interaction[side] = _rename_keys_to_camel_case(parse_nested_json(fields.get(side)))

    key = f"{name}/{number}"
    yield Message(
        name.rpartition("/")[2],
        key,
        _make_dialogflow_turns(interaction),
        parse_timestamp(number),
    )
    yield from _read_dialogflow_feedback(
        _rename_keys_to_camel_case(parse_nested_json(fields.get("bot_answer_feedback"))), key
    )


def _read_dialogflow_feedback(answer_feedback: object, key: str) -> Iterator[ToolScore]:
    feedback = unwrap_object(answer_feedback)
    if feedback.get("rating") not in (None, "", 0, "RATING_UNSPECIFIED"):
        comment = get_at_path(feedback, "ratingReason.feedback") or get_at_path(
            feedback, "customRating"
        )
        value = _DIALOGFLOW_RATING_NAMES.get(str(feedback["rating"]), feedback["rating"])
        yield ToolScore(
            "message",
            key,
            value,
            comment=comment,
            tags=get_at_path(feedback, "ratingReason.reasonLabels"),
        )


_DIALOGFLOW_RATING_NAMES = {"1": "THUMBS_UP", "2": "THUMBS_DOWN"}
"""Ratings as the Python client numbers them."""


def _rename_keys_to_camel_case(value: object) -> object:
    """Rename the keys of nested objects to the interface's spelling: the Python client writes them with underscores."""
    if isinstance(value, list):
        return [_rename_keys_to_camel_case(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value

    return {
        re.sub("_([a-z])", lambda match: match[1].upper(), str(key)): _rename_keys_to_camel_case(
            inner
        )
        for key, inner in value.items()
    }


def _make_dialogflow_turns(interaction: Mapping[str, object]) -> tuple[Turn, ...]:
    # what was written, else what was heard
    utterance = get_at_path(interaction, "request.queryInput.text.text") or get_at_path(
        interaction, "response.queryResult.transcript"
    )
    utterance = utterance or interaction.get("requestUtterances")
    question = (Turn(role="user", content=extract_text(str(utterance))),) if utterance else ()
    messages = list_objects(get_at_path(interaction, "response.queryResult.responseMessages"))
    # several messages of an answer are lines of one turn
    lines = []
    for message in messages:
        for line in get_at_path(message, "text.text") or []:
            if isinstance(line, str):
                lines.append(line)

    answer = "\n".join(lines) or str(interaction.get("responseUtterances") or "[error]")
    return (*question, Turn(role="assistant", content=answer))


_HTML_BREAK_PATTERN = re.compile(r"<br\s*/?>|</(p|div|li|tr|h\d)>", re.IGNORECASE)
_HTML_TAG_PATTERN = re.compile(r"<[^>]*>")
_HTML_IMAGE_PATTERN = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
CUSTOMER_ROLES = frozenset(("user", "lead", "contact", "end-user", "end_user"))


def strip_html(body: object) -> str:
    """Return the words of a body in HTML, a line for each of its blocks."""
    # characters are decoded last, so that a written < begins no tag
    marked = _HTML_TAG_PATTERN.sub(
        "", _HTML_BREAK_PATTERN.sub("\n", _HTML_IMAGE_PATTERN.sub("[image]", str(body or "")))
    )
    filled_lines = []
    for line in html.unescape(marked).splitlines():
        if line.strip():
            filled_lines.append(line.strip())

    return "\n".join(filled_lines)


def read_lex_exchange(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange of Amazon Lex: what was written or heard, and the bot's messages."""
    session = require_text(fields, "sessionId")
    request = format_id(fields.get("requestId"))
    question = str(fields.get("inputTranscript") or "").strip()
    answers = []
    for message in list_objects(fields.get("messages")):
        answers.append(str(message.get("content") or "").strip())

    answer = join_filled_lines(answers)
    exchange = (("user", extract_text(question)), ("assistant", extract_text(answer)))
    worded_turns = []
    for role, words in exchange:
        if words:
            worded_turns.append(Turn(role=role, content=words))

    turns = tuple(worded_turns)
    yield Message(session, request, turns, parse_timestamp(fields.get("timestamp")))


def read_livechat_chat(fields: Fields) -> Iterator[LogPart]:
    """Yield the messages of a chat of LiveChat's archive, whose list of users says who is a customer."""
    id_ = require_text(fields, "id")
    customers = set()
    for user in list_objects(fields.get("users")):
        if user.get("type") == "customer":
            customers.add(format_id(user.get("id")))

    for thread in [unwrap_object(fields.get("thread")), *list_objects(fields.get("threads"))]:
        for event in list_objects(thread.get("events")):
            # an event that only agents see is no turn
            shown = event.get("visibility", "all") == "all"
            if event.get("type") == "message" and shown and event.get("text"):
                role: Role
                if format_id(event.get("author_id")) in customers:
                    role = "user"
                else:
                    role = "assistant"

                turn = Turn(role=role, content=extract_text(str(event["text"])))
                yield Message(
                    id_,
                    format_id(event.get("id")),
                    (turn,),
                    parse_timestamp(event.get("created_at")),
                )

        rating = unwrap_object(get_at_path(thread, "properties.rating"))
        # a property may be wrapped in an object with its value
        rating = unwrap_object(rating.get("value")) or rating
        if "score" in rating:
            yield ToolScore(
                "conversation",
                id_,
                rating["score"],
                comment=rating.get("comment"),
            )


def read_help_scout_conversation(fields: Fields) -> Iterator[LogPart]:
    """Yield the threads of a conversation of Help Scout, whose bodies are HTML; notes and changes are no turns."""
    id_ = require_text(fields, "id")
    for thread in list_objects(get_at_path(fields, "_embedded.threads")):
        kind = str(thread.get("type") or "")
        words = strip_html(thread.get("body"))
        if words and kind in ("customer", "message", "chat", "reply", "beaconchat"):
            by_customer = get_at_path(thread, "createdBy.type") == "customer" or kind == "customer"
            turn = Turn(role="user" if by_customer else "assistant", content=words)
            yield Message(
                id_,
                f"{id_}/{thread.get('id')}",
                (turn,),
                parse_timestamp(thread.get("createdAt")),
            )

    rating = unwrap_object(fields.get("rating"))
    if rating.get("rating"):
        yield ToolScore(
            "conversation",
            id_,
            rating["rating"],
            comment=rating.get("comments"),
        )


def read_intercom_conversation(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "id")
    # the source is what the conversation began with; the parts follow it
    parts = [
        unwrap_object(fields.get("source")),
        *list_objects(get_at_path(fields, "conversation_parts.conversation_parts")),
    ]
    for number, part in enumerate(parts):
        author = unwrap_object(part.get("author"))
        words = join_filled_lines(
            [strip_html(part.get("body")), *list_file_marks(part.get("attachments"))]
        )
        # notes are read by agents alone
        if words and part.get("part_type", "comment") != "note":
            role: Role
            if str(author.get("type")) in CUSTOMER_ROLES:
                role = "user"
            else:
                role = "assistant"

            # the source has the conversation's time
            when = parse_timestamp(part.get("created_at")) or parse_timestamp(
                fields.get("created_at")
            )
            yield Message(
                id_,
                f"{id_}/{number}",
                (Turn(role=role, content=words),),
                when,
            )


def read_zendesk_ticket(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "id")
    requester = format_id(fields.get("requester_id") or get_at_path(fields, "requester.id"))
    yield ConversationFacts(id_, keep_filled_facts(title=fields.get("subject"), user=requester))
    # who speaks as a customer: the requester, and who was copied in, but no agent
    customers = _collect_zendesk_ids(
        fields, "collaborator_ids", "email_cc_ids"
    ) - _collect_zendesk_ids(fields, "follower_ids") | {requester}
    customers.discard(format_id(fields.get("assignee_id")))

    for number, comment in enumerate(list_objects(fields.get("comments"))):
        # a role tells who writes; without one, the author's id does
        author = format_id(comment.get("author_id"))
        role = format_id(get_at_path(comment, "author.role"))
        yield from _iterate_zendesk_messages(
            id_, f"{id_}/{number}", comment, role in CUSTOMER_ROLES if role else author in customers
        )

    yield from read_zendesk_rating(
        {**unwrap_object(fields.get("satisfaction_rating")), "ticket_id": id_}
    )


def _collect_zendesk_ids(fields: Fields, *names: str) -> set[str | None]:
    listed: set[str | None] = set()
    for name in names:
        ids = parse_nested_json(fields.get(name))
        if isinstance(ids, list):
            listed.update(map(format_id, ids))

    return listed


def read_zendesk_chat(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "id")
    yield ConversationFacts(
        id_, keep_filled_facts(user=format_id(get_at_path(fields, "visitor.id")))
    )
    messages = []
    for event in list_objects(fields.get("history")):
        if event.get("type") == "chat.msg":
            messages.append(event)

    for number, event in enumerate(messages):
        visitor = (
            str(event.get("sender_type") or event.get("nick"))
            .casefold()
            .startswith(("visitor", "enduser"))
        )
        turn = Turn(
            role="user" if visitor else "assistant",
            content=str(event.get("msg") or ""),
        )
        yield Message(
            id_,
            f"{id_}/{number}",
            (turn,),
            parse_timestamp(event.get("timestamp")),
        )

    yield from read_zendesk_rating(
        {"score": fields.get("rating"), "comment": fields.get("comment"), "ticket_id": id_}
    )


def read_zendesk_audit(fields: Fields) -> Iterator[LogPart]:
    """Yield the comments of an audit; the first author of a ticket is its requester, who speaks as the user."""
    id_ = require_text(fields, "ticket_id")
    when = fields.get("created_at")
    person = format_id(fields.get("author_id")) or format_id(fields.get("updater_id"))
    for event in list_objects(fields.get("events") or fields.get("child_events")):
        # a rating stands in fields that changed
        changed: JsonDict = dict(event)
        if event.get("field_name"):
            changed = {str(event["field_name"]): event.get("value")}
        if score := changed.get("satisfaction_score"):
            yield from read_zendesk_rating(
                {"score": score, "ticket_id": id_, "requester_id": person}
            )

        if comment := changed.get("satisfaction_comment"):
            yield ToolScore(
                "conversation",
                id_,
                None,
                comment=comment,
                person=person,
            )

        if "Comment" in (event.get("type"), event.get("event_type")):
            author = (
                format_id(event.get("author_id"))
                or format_id(fields.get("author_id"))
                or format_id(fields.get("updater_id"))
            )
            # who speaks as the user is decided later, by the order of the authors
            for message in _iterate_zendesk_messages(
                id_, format_id(event.get("id")), {"created_at": when, **event}, customer=False
            ):
                yield message._replace(author=author)


def read_zendesk_comment(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "ticket_id")
    role = str(fields.get("author_role") or "").casefold()
    key = format_id(fields.get("comment_id")) or format_id(fields.get("id"))
    yield from _iterate_zendesk_messages(id_, key, fields, role in CUSTOMER_ROLES)

    if fields.get("satisfaction_score"):
        rating = {
            "score": fields["satisfaction_score"],
            "comment": fields.get("satisfaction_comment"),
            "ticket_id": id_,
        }
        yield from read_zendesk_rating(rating)


def _iterate_zendesk_messages(
    id_: str,
    key: str | None,
    comment: Mapping[str, object],
    customer: bool,
) -> Iterator[Message]:
    plain = comment.get("plain_body") or comment.get("body")
    if plain:
        body = str(plain)
    else:
        body = strip_html(comment.get("html_body"))

    words = join_filled_lines([body.strip(), *list_file_marks(comment.get("attachments"))])
    # comments that aren't public are notes between agents
    if words and (comment.get("public") is None or parse_flag(comment["public"])):
        turn = Turn(role="user" if customer else "assistant", content=words)
        yield Message(id_, key, (turn,), parse_timestamp(comment.get("created_at")))


def read_zendesk_rating(fields: Fields) -> Iterator[ToolScore]:
    """Yield a rating of good or bad; offered ratings are none. Rows may repeat it."""
    score = str(fields.get("score") or "")
    id_ = require_text(fields, "ticket_id")
    if score and score not in ("offered", "unoffered"):
        comment = fields.get("comment")
        person = format_id(fields.get("requester_id"))
        value = score.removesuffix("_with_comment")
        reason = fields.get("reason")
        yield ToolScore(
            "conversation",
            id_,
            value,
            comment=comment,
            tags=reason,
            person=person,
        )
