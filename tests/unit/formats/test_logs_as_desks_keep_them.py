"""Logs of help desks, clinics and test labs: headings with thumbs, talks in HTML, raters of one talk."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.read_logs import read_logs, read_logs_from_rows

ASKED = ("Where is parcel {}?", "Can I return order {}?", "Why was I charged twice for {}?")
TOLD = ("Parcel {} is at the depot.", "You have 30 days for order {}.", "I see one charge for {}.")
TALKS = [
    [
        ("user", ASKED[number % 3].format(number)),
        ("assistant", TOLD[number % 3].format(number)),
        ("user", f"And what about number {number + 50}?"),
        ("assistant", f"Number {number + 50} is the same: please wait."),
    ][: 2 if number == 2 else 4]
    for number in range(6)
]
LABELS = ("positive", "negative", "none", "negative", "positive", "none")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def as_proposed(source: Path | Sequence[Path] | list[dict[str, Any]], **options: Any) -> Logs:
    """Read a log; where a way to read it is proposed, read it so."""

    def read(reading: ReadOptions) -> Logs:
        if isinstance(source, list) and isinstance(source[0], dict):
            return read_logs_from_rows(source, options=reading)
        return read_logs(source, options=reading)

    try:
        return read(ReadOptions(**options))
    except BadInput as error:
        proposed: dict[str, Any] = {name: str(value) for name, value in error.options.items()}
        proposed |= {
            n: parse_name_pairs(proposed[n]) for n in ("columns", "roles") if n in proposed
        }
        return read(ReadOptions(**{**options, **proposed}))


def words_in(logs: Logs) -> list[list[tuple[str, str]]]:
    return [[(turn.role, turn.content) for turn in talk.turns] for talk in logs]


def labels_in(logs: Logs) -> tuple[str, ...]:
    return tuple(talk.label.value for talk in logs)


NAMES = {"user": "Patient", "assistant": "Assistant"}


def lines_of(talk: Sequence[tuple[str, str]], head: str = "{}: ") -> str:
    return "".join(f"{head.format(NAMES[role])}{words}\n" for role, words in talk)


WORDS = {"positive": "thumbs up", "negative": "thumbs down", "none": "none"}
SIGNS = {"positive": " 👍🏽", "negative": " 👎", "none": ""}


def test_a_line_above_a_talk_says_several_things_of_it(tmp_path: Path) -> None:
    parts = ["Chats of March\n\n"]
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        parts.append(f"{'-' * 40}\nChat #{number}   2026-03-02 10:14   Rating: {WORDS[label]}\n")
        parts.append(f"Comment: word {number}\n\n" if number == 1 else "\n")
        parts.append(lines_of(talk, "[10:15:00] {}: "))
    logs = as_proposed(write(tmp_path / "chats.txt", "".join(parts)))
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    assert [talk.id for talk in logs] == [f"Chat #{number}" for number in range(6)]
    assert [said.comment for talk in logs for said in talk.feedback] == ["word 1"]


@pytest.mark.parametrize("brackets", [False, True])
def test_a_heading_may_hold_the_thumb(brackets: bool, tmp_path: Path) -> None:
    parts = ["# Talks with the bot\n\nCollected in spring.\n\n"]
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        said = f" ({WORDS[label]})" if brackets else SIGNS[label]
        parts.append(f"## Conversation {number}{said}\n\n{lines_of(talk, '**{}:** ')}\n")
    logs = as_proposed(write(tmp_path / "notes.md", "".join(parts)))
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    assert {talk.id for talk in logs} >= {"Conversation 0", "Conversation 3"}


def test_a_file_may_be_one_question_and_its_answer(tmp_path: Path) -> None:
    for number, talk in enumerate(TALKS):
        write(tmp_path / "calls" / f"call_{number}.txt", lines_of(talk))
    assert words_in(as_proposed(tmp_path / "calls")) == TALKS


def test_a_talk_in_html_has_the_time_since_it_began(tmp_path: Path) -> None:
    rows = []
    for number, talk in enumerate(TALKS):
        body = '<p align="center">Chat Started: Monday, 09:00</p><p>Agent Nora V</p>'
        for place, (role, words) in enumerate(talk):
            name = "Visitor" if role == "user" else "Nora V"
            body += f"( {place}m {number + 4}s ) {name}: {words} &amp; so on<br>"
        rows.append({"ID": f"57{number}", "STATUS": "Completed", "BODY": body})
    expected = [[(role, f"{words} & so on") for role, words in talk] for talk in TALKS]
    assert words_in(as_proposed(rows)) == expected


def test_of_several_workers_who_rated_a_talk_the_majority_counts() -> None:
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        for worker in range(3):
            up = (label == "positive") is (worker != 1)
            rows.append(
                {
                    "HITId": f"3H{number}X",
                    "AssignmentId": f"A{number}{worker}",
                    "WorkerId": f"W{worker}",
                    "Input.dialog": lines_of(talk),
                    "Answer.satisfaction": "satisfied" if up else "not satisfied",
                }
            )
    logs = as_proposed(rows)
    assert words_in(logs) == TALKS
    assert labels_in(logs) == tuple(
        "positive" if label == "positive" else "negative" for label in LABELS
    )


def test_numbers_of_the_ids_of_ratings_stand_between_talks_and_labels(tmp_path: Path) -> None:
    chats = []
    ratings = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        threads = []
        for place, (role, words) in enumerate(talk):
            kind = {"user": "customer", "assistant": "message"}[role]
            by = {"type": {"user": "customer", "assistant": "user"}[role]}
            at = f"2026-03-02T08:0{place}:00Z"
            thread = {"id": number * 9 + place, "type": kind, "body": words}
            threads.append({**thread, "createdBy": by, "createdAt": at})
        chats.append({"id": 219 + number, "_embedded": {"threads": threads[::-1]}})
        word = {"positive": "great", "negative": "not good", "none": "okay"}[label]
        ratings.append({"id": 219 + number, "ratingId": 1 + number % 3, "rating": word})
    write(tmp_path / "chats.json", json.dumps({"_embedded": {"conversations": chats}}))
    write(tmp_path / "ratings.json", json.dumps({"results": ratings}))
    logs = as_proposed([tmp_path / "chats.json", tmp_path / "ratings.json"])
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


@pytest.mark.parametrize("name", ["calificación", "is_positive", "kto_tag", "pontuação"])
def test_further_names_say_that_a_column_is_the_label(name: str) -> None:
    sides = {"positive": True, "negative": False, "none": None}
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        said = [{"autor": NAMES[role], "texto": words} for role, words in talk]
        rows.append({"folio": f"F{number}", "mensajes": said, name: sides[label]})
    logs = as_proposed(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    assert [talk.id for talk in logs] == [f"F{number}" for number in range(6)]


def test_single_letters_name_visitors_agents_and_the_system() -> None:
    rows = []
    for number, talk in enumerate(TALKS):
        said = [{"sender": {"t": "s"}, "msg": "A visitor has joined the conversation"}]
        for role, words in talk:
            said.append({"sender": {"t": "v" if role == "user" else "a"}, "msg": words})
        rows.append({"id": f"c{number}", "messages": said})
    spoken = [
        [turn for turn in talk if turn[0] != "system"] for talk in words_in(as_proposed(rows))
    ]
    assert spoken == TALKS


def test_the_answer_to_a_question_of_a_survey_is_a_comment() -> None:
    asked = "What could be better?"
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        for role, words in talk:
            row = {"Chat No": number, "Who": NAMES[role], "Message": words}
            said = f"Answer {number}" if label == "negative" else None
            rows.append({**row, "Was this helpful?": WORDS[label], asked: said})
    logs = as_proposed(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    assert {said.comment for talk in logs for said in talk.feedback} == {"Answer 1", "Answer 3"}


def test_updates_of_a_telegram_bot_are_messages_and_its_buttons_thumbs() -> None:
    sides = {"positive": "👍", "negative": "👎"}
    rows: list[dict[str, Any]] = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        chat = {"id": 900 + number, "type": "private"}
        person = {"id": 900 + number, "is_bot": False}
        keyboard = [[{"text": sign, "callback_data": f"rate {sign}"} for sign in sides.values()]]
        for place, (role, words) in enumerate(talk):
            by = person if role == "user" else {"id": 7, "is_bot": True}
            message = {"message_id": 10 * number + place, "from": by, "chat": chat}
            message |= {"date": 1772438400 + place, "text": words}
            if role == "user":
                rows.append({"update_id": len(rows), "message": message})
            else:
                message["reply_markup"] = {"inline_keyboard": keyboard}
                rows.append({"ok": True, "result": message})
        if label == "positive":
            pressed = {"from": person, "message": message, "data": "rate 👍"}
            rows.append({"update_id": len(rows), "callback_query": pressed})
        elif label == "negative":
            reaction = {"chat": chat, "message_id": message["message_id"], "user": person}
            reaction["new_reaction"] = [{"type": "emoji", "emoji": "👎"}]
            rows.append({"update_id": len(rows), "message_reaction": reaction})
    logs = read_logs_from_rows(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


@pytest.mark.parametrize("told", [True, False])
def test_a_thread_of_mattermost_is_a_talk_with_its_bot(told: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "version", "version": 1, "info": {"generator": "mattermost-server"}},
        {"type": "bot", "bot": {"username": "askbot", "owner": "ann"}},
    ]
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        posts = []
        for place, (role, words) in enumerate(talk):
            at = 1772438400000 + 60000 * number + 1000 * place
            user = "ann" if role == "user" else "askbot"
            post: dict[str, Any] = {"user": user, "message": words, "create_at": at}
            if told and role == "assistant":
                post["props"] = {"from_bot": "true"}
            posts.append(post)
        if label != "none":
            name = {"positive": "+1", "negative": "-1"}[label]
            posts[-1]["reactions"] = [{"user": "ann", "emoji_name": name}]
        root = {**posts[0], "team": "t", "channel": "ask", "replies": posts[1:]}
        rows.append({"type": "post", "post": root})
    logs = read_logs_from_rows(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


def test_messages_without_words_are_events_though_their_talk_has_a_label(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = []
    talks: list[dict[str, Any]] = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        id_ = f"{number}c4f{number}"
        stars = {"positive": 5, "negative": 1, "none": None}[label]
        rated = {"score": stars, "comment": f"word {number}"} if stars else None
        talks.append({"_id": id_, "platform": "web", "csat": rated})
        joined = {"type": "presence", "event": "joined"}
        said = [("system", joined)]
        said += [(role, {"type": "text", "body": words}) for role, words in talk]
        for place, (role, content) in enumerate(said):
            side = {"user": "end_user", "assistant": "ai_agent"}.get(role, role)
            row = {"_id": f"m{number}{place}", "conversation_id": id_, "author": {"role": side}}
            messages.append({**row, "content": content})
    write(tmp_path / "conversations.json", json.dumps({"data": talks}))
    write(tmp_path / "messages.json", json.dumps({"data": messages}))
    paths = [tmp_path / "conversations.json", tmp_path / "messages.json"]
    logs = as_proposed(paths, positive=">=4", negative="<=2")
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    written = [[said.comment for said in talk.feedback] for talk in logs]
    assert written == [["word 0"], ["word 1"], [], ["word 3"], ["word 4"], []]


def test_a_ticket_of_gorgias_has_its_survey() -> None:
    rows = []
    for n, stars in enumerate((5, 1, 3, None)):
        messages = []
        for key, from_agent in enumerate((False, True)):
            words = (f"Where is order {n}?", f"Order {n} comes on Monday.")[key]
            message = {"id": n * 10 + key, "public": True, "from_agent": from_agent}
            messages.append({**message, "body_text": words, "sent_datetime": "2026-05-04T08:00:00"})
        survey = None if stars is None else {"score": stars, "body_text": "as I said"}
        ticket = {"id": n, "customer": {"id": 7}, "messages": messages}
        rows.append({**ticket, "satisfaction_survey": survey})
    logs = read_logs_from_rows(rows)
    assert [one.label.value for one in logs] == ["positive", "negative", "none", "none"]
    assert logs.conversations[0].feedback[0].comment == "as I said"


@pytest.mark.parametrize(
    ("asks", "answers"),
    [
        ("Customer wrote", "Agent replied"),
        ("Cliente disse", "Atendente respondeu"),
        ("Kunde schrieb", "Berater schrieb"),
    ],
)
def test_columns_named_by_who_speaks_are_questions_and_answers(asks: str, answers: str) -> None:
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        for place in range(0, len(talk), 2):
            row = {"Ticket": f"T{number}", asks: talk[place][1], answers: talk[place + 1][1]}
            last = place + 2 == len(talk) and label != "none"
            row["Was this helpful?"] = {"positive": "Yes", "negative": "No"}[label] if last else ""
            # a name of two people alternates as roles do
            rows.append({**row, "Reviewed by": ("Tom", "Aisha")[len(rows) % 2]})
    logs = as_proposed(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


def test_a_row_may_have_two_columns_for_each_turn() -> None:
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        row: dict[str, Any] = {"Case ID": f"C{number}", "Case Owner": ("Dana", "Luis")[number % 2]}
        for place in range(4):
            role, words = talk[place] if place < len(talk) else (None, None)
            row[f"Message {place + 1} From"] = {"user": "Customer", "assistant": "Bot"}.get(role)
            row[f"Message {place + 1} Text"] = words
        row["Lead Score"] = 90 - 7 * number
        rows.append({**row, "CSAT (1-5)": {"positive": 5, "negative": 1}.get(label)})
    logs = as_proposed(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)
    assert [talk.id for talk in logs] == [f"C{number}" for number in range(6)]


def test_turns_beside_each_other_that_nothing_can_read_are_never_proposed_as_turns() -> None:
    rows = []
    for number, talk in enumerate(TALKS):
        row = {"Owner": ("Dana", "Luis")[number % 2], "Kind": ("Customer", "Bot")[number % 3 // 2]}
        rows.append({**row, **{f"Text {place}": words for place, (_, words) in enumerate(talk)}})
    with pytest.raises(BadInput) as refused:
        read_logs_from_rows(rows)
    assert "role" not in str(refused.value.options.get("columns", ""))


@pytest.mark.parametrize("bar", [" | ", " || ", " // "])
def test_turns_may_stand_on_one_line_with_bars_between(bar: str) -> None:
    rows = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        turns = [f"{NAMES[role]}: {words}" for role, words in talk]
        thumb = {"positive": "arriba", "negative": "abajo"}.get(label)
        rows.append({"id": number, "transcripcion": bar.join(turns), "pulgar": thumb})
    logs = as_proposed(rows)
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


def test_a_copied_page_says_above_the_words_who_said_them(tmp_path: Path) -> None:
    names = {"user": "You said:", "assistant": "ChatGPT said:"}
    paths = []
    for number, talk in enumerate(TALKS):
        text = "".join(f"{names[role]}\n{words}\nOne more line.\n" for role, words in talk)
        paths.append(write(tmp_path / f"paste {number}.txt", text))
    expected = [[(role, f"{words}\nOne more line.") for role, words in talk] for talk in TALKS]
    assert words_in(as_proposed(paths)) == expected


def test_a_mailed_talk_has_fields_below_a_line_of_dashes_and_events_between_turns(
    tmp_path: Path,
) -> None:
    parts = []
    for number, (talk, label) in enumerate(zip(TALKS, LABELS, strict=True)):
        parts.append(f"Conversation #88{number}\nStarted: 2026-05-04 08:0{number} UTC\n")
        visitor = f"visitor-40{number}"
        parts.append(f"Visitor: {visitor} (London, UK)\nRating: {WORDS[label]}\n\n")
        for place, (role, words) in enumerate(talk):
            name = visitor if role == "user" else "Maya"
            parts.append(f"(08:03:0{place}) {name}: {words}\n")
            parts.append("(08:03:00) *** Maya joined the chat ***\n" if not place else "")
        parts.append(f"\n{'=' * 60}\n")
    logs = as_proposed(write(tmp_path / "transcripts.txt", "".join(parts)))
    assert (words_in(logs), labels_in(logs)) == (TALKS, LABELS)


def test_people_and_channels_of_slack_stand_beside_its_messages(tmp_path: Path) -> None:
    messages = []
    for number, talk in enumerate(TALKS):
        first = f"17778817{number}0.000100"
        for place, (role, words) in enumerate(talk):
            message = {"type": "message", "text": words, "user": "U1", "thread_ts": first}
            ts = f"17778817{number}{place}.000{100 if not place else 200}"
            who = {"bot_id": "B1"} if role == "assistant" else {}
            messages.append({**message, **who, "ts": ts})
    people = [{"id": "U1", "team_id": "T1", "name": "a", "profile": {}, "is_bot": False}]
    about = {"created": 1, "creator": "U1", "is_archived": False, "members": ["U1"]}
    files = {
        "2026-05-04": messages,
        "users": people,
        "channels": [{"id": "C1", "name": "it", **about}],
    }
    paths = [write(tmp_path / f"{name}.json", json.dumps(rows)) for name, rows in files.items()]
    assert words_in(as_proposed(paths)) == TALKS
