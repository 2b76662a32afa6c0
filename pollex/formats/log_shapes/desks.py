"""Desks and call centres whose rows hold who speaks elsewhere than beside the words."""

import re
from collections.abc import Iterator

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.log_parts import (
    ConversationFacts,
    LeftOutRow,
    LogPart,
    Message,
    ToolScore,
    WholeTalk,
    parse_timestamp,
)
from pollex.formats.log_shapes.exports import (
    Fields,
    format_id,
    get_at_path,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.transcripts import parse_transcript
from pollex.formats.log_shapes.turns import (
    extract_text,
    join_filled_lines,
    list_file_marks,
    read_turns,
)
from pollex.text import JsonObject

CUSTOMER_ROLES = frozenset(("customer", "consumer", "end_user", "enduser", "user", "visitor"))


def read_liveperson_conversation(fields: Fields) -> Iterator[LogPart]:
    """Yield a conversation of LivePerson's history: messages by `sentBy`, and the survey's answers."""
    info = unwrap_object(fields.get("info"))
    id_ = require_text(info, "conversationId", "engagementId")
    people = list_objects(fields.get("consumerParticipants")) or [{}]
    name = " ".join(
        filter(
            None,
            (format_id(people[0].get(part)) for part in ("firstName", "lastName")),
        )
    )
    person = format_id(people[0].get("participantId"))
    yield ConversationFacts(id_, keep_filled_facts(user=person, user_name=name))
    controlled = 0
    for record in list_objects(fields.get("messageRecords")):
        words = get_at_path(record, "messageData.msg.text") or get_at_path(
            record, "messageData.quickReplies.text"
        )
        file = unwrap_object(get_at_path(record, "messageData.file"))
        content = [
            *filter(None, [words]),
            *list_file_marks([file] if file else []),
        ]
        sender = str(record.get("sentBy")).casefold()
        # messages of the system itself are no turns
        controlled += sender == "controller"

        if content and sender != "controller":
            role: Role = "user" if sender in CUSTOMER_ROLES else "assistant"
            turn = Turn(role=role, content=extract_text(content))
            when = parse_timestamp(record.get("timeL")) or parse_timestamp(record.get("time"))
            yield Message(id_, format_id(record.get("messageId")), (turn,), when)

    if controlled:
        yield LeftOutRow("what the system itself tells (Controller) was left out")

    yield from _read_liveperson_survey(fields, id_, person)


def _read_liveperson_survey(fields: Fields, id_: str, person: str | None) -> Iterator[ToolScore]:
    answers = []
    for survey in list_objects(fields.get("conversationSurveys")):
        answers.extend(list_objects(survey.get("surveyData")))

    by_kind = {}
    for answer in answers:
        by_kind[str(answer.get("questionType")).upper()] = answer.get("answer")

    stars = get_at_path(fields, "info.csat")
    if stars in (None, ""):
        stars = by_kind.get("CSAT")

    written = []
    for kind in ("CUSTOM", "FREE_TEXT", "VERBATIM"):
        if by_kind.get(kind):
            written.append(str(by_kind[kind]))

    # a comment has letters; answers in numbers are to other questions
    comment = next(
        (words for words in written if re.search(r"[^\W\d_]", words)),
        None,
    )
    if stars not in (None, "") or comment:
        yield ToolScore(
            "conversation",
            id_,
            stars or None,
            comment=comment,
            person=person,
            rating=True,
        )


def read_watson_log(fields: Fields) -> Iterator[LogPart]:
    """Yield an exchange of watsonx Assistant's log; the welcome has no question."""
    places = ("session_id", "request.session_id", "response.context.conversation_id")
    id_ = require_text(fields, *places, "request.context.conversation_id")
    question = extract_text(str(get_at_path(fields, "request.input.text") or "").strip())
    answer = join_filled_lines(
        map(
            _get_watson_words,
            list_objects(get_at_path(fields, "response.output.generic")),
        )
    )
    # some answers are a list of texts, and have no items
    answer = answer or "\n".join(map(str, get_at_path(fields, "response.output.text") or ()))
    both: tuple[tuple[Role, str], ...] = (("user", question), ("assistant", extract_text(answer)))
    users = (
        "customer_id",
        "request.user_id",
        "response.user_id",
        "request.context.metadata.user_id",
    )
    user = next(
        (user_id for name in users if (user_id := format_id(get_at_path(fields, name)))),
        None,
    )
    worded_turns = []
    for role, words in both:
        if words:
            worded_turns.append(Turn(role=role, content=words))
    yield Message(
        id_,
        format_id(fields.get("log_id")),
        turns=tuple(worded_turns),
        at=parse_timestamp(fields.get("request_timestamp")),
        facts=keep_filled_facts(user=user, language=fields.get("language")),
    )


def _get_watson_words(item: JsonObject) -> str:
    """Return the words of an item of an answer: its text, or its title and the labels of its options."""
    kind = str(item.get("response_type"))
    if kind in ("image", "audio", "video", "iframe"):
        return f"[{'file' if kind == 'iframe' else kind}]"

    labels = []
    for option in list_objects(item.get("options")):
        if option.get("label"):
            labels.append(str(option["label"]))

    titled = []
    for name in ("text", "title", "description", "message_to_human_agent"):
        titled.append(item.get(name))

    titles = []
    for title in titled:
        if title:
            titles.append(str(title))
    return "\n".join([*titles, *labels])


def read_contact_lens_contact(fields: Fields) -> Iterator[LogPart]:
    """Yield a contact that Amazon Connect analysed; the list of participants says who is the customer."""
    id_ = require_text(
        fields,
        "CustomerMetadata.ContactId",
        "ContactId",
        "InitialContactId",
    )
    roles = {}
    for participant in list_objects(fields.get("Participants")):
        roles[format_id(participant.get("ParticipantId"))] = str(
            participant.get("ParticipantRole")
        ).casefold()

    for number, item in enumerate(list_objects(fields.get("Transcript"))):
        speaker = format_id(item.get("ParticipantId"))
        role = str(item.get("ParticipantRole") or roles.get(speaker) or speaker).casefold()
        words = str(item.get("Content") or "").strip()
        if item.get("Type") not in (None, "MESSAGE") or not words or role == "system":
            continue
        turn = Turn(
            role="user" if role == "customer" else "assistant",
            content=extract_text(words),
        )
        # without a time of day, the seconds since the contact began
        offset = item.get("BeginOffsetMillis")
        when = parse_timestamp(item.get("AbsoluteTime")) or (
            offset / 1000 if offset is not None else None
        )
        yield Message(
            id_,
            format_id(item.get("Id")) or f"{id_}/{number}",
            (turn,),
            when,
        )


def read_freshdesk_rating(fields: Fields) -> Iterator[ToolScore]:
    """Yield a rating of Freshdesk: from 101 happy, from -101 down unhappy, 100 is neither."""
    id_ = require_text(fields, "ticket_id")
    number = get_at_path(fields, "ratings.default_question")
    number = number if isinstance(number, int | float) else 0
    value = "up" if number > 100 else None
    if number < 0:
        value = "down"

    comment = fields.get("feedback")
    if value or comment:
        person = format_id(fields.get("user_id"))
        when = parse_timestamp(fields.get("created_at"))
        yield ToolScore(
            "conversation",
            id_,
            value,
            comment=comment,
            person=person,
            at=when,
        )


def read_copilot_session(fields: Fields) -> Iterator[LogPart]:
    """Yield a session of Copilot Studio's table, whose talk stands in one cell."""
    # names of the columns come in upper and lower case
    row = {}
    for name, value in fields.items():
        row[name.casefold()] = value

    talk = parse_transcript(str(row.get("chattranscript") or ""))
    start = parse_timestamp(row.get("startdatetime"))
    session_facts = keep_filled_facts(
        topic=row.get("topicname"),
        outcome=row.get("sessionoutcome"),
    )
    yield WholeTalk(
        require_text(row, "sessionid"),
        read_turns(talk),
        at=start,
        facts=session_facts,
    )
