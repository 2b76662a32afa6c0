"""Redaction: what says who somebody is gives way to placeholders that stay the same in a conversation."""

import json
from pathlib import Path

from small_log import write_log

from pollex.conversations.conversation import Conversation, Feedback, ToolCall, ToolResult, Turn
from pollex.conversations.redaction import (
    Placeholders,
    classify_number,
    find_identifiers,
    make_pseudonym,
    mask_conversation,
)
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.store.resume import read_originals_of_placeholders, store_originals_of_placeholders
from pollex.store.store import Store

MAIL = "anna.b@example.com"
PHONE = "(415) 555-2671"
CARD = "4111 1111 1111 1111"


def kinds(text: str) -> list[str]:
    return [one.kind for one in find_identifiers(text)]


def test_what_only_looks_alike_stays() -> None:
    for text in (
        "It costs $1,234.56 on 2024-03-14 at 7:30 pm.",
        "Order number 20240117345, ticket #8842019, version 1.2.3.4.",
        "Call user.getName() in main.py, e.g. with node.js.",
        "I forgot my password, and my card was declined twice.",
        "4111 1111 1111 1112 has a wrong check digit",
    ):
        assert Placeholders().redacted(text) == text


def test_a_thing_has_one_placeholder_in_all_turns_however_it_is_written() -> None:
    turns = tuple(
        Turn(role="user", content=text)
        for text in (
            f"I am {MAIL}, call {PHONE}.",
            f"{MAIL.upper()}? No: b@example.com",
            "Phone 415-555-2671!",
        )
    )
    one, originals = mask_conversation(
        Conversation(id="c", turns=turns, metadata={"mail": [MAIL], "n": 3})
    )
    assert [turn.content for turn in one.turns] == [
        "I am <MAIL_1>, call <PHONE_1>.",
        "<MAIL_1>? No: <MAIL_2>",
        "Phone <PHONE_1>!",
    ]
    assert one.metadata == {"mail": ["<MAIL_1>"], "n": 3}
    assert originals == {"<MAIL_1>": MAIL, "<PHONE_1>": PHONE, "<MAIL_2>": "b@example.com"}


def test_check_digits_and_words_before_a_number_say_what_it_is() -> None:
    assert kinds(f"My card is {CARD}.") == ["CARD"]
    assert kinds("Pay DE89 3704 0044 0532 0130 00 today, I say") == ["ACCOUNT"]
    assert classify_number("12345678", "the customer number is ") == "ACCOUNT"
    assert classify_number("12345678", "the order number is ") == ""
    assert kinds(f"my password is hunter22, sk-{'x' * 20} the key") == ["KEY", "KEY"]


def test_arguments_and_errors_of_tools_are_redacted_and_stay_json() -> None:
    call = ToolCall(name="mail", arguments=json.dumps({"to": MAIL, "copies": 2, "card": CARD}))
    failed = ToolResult(error=f"no such address: {MAIL}")
    turns = (
        Turn(role="assistant", content=call.mark, calls=(call,)),
        Turn(role="tool", content="failed", result=failed),
    )
    one, originals = mask_conversation(Conversation(id="c", turns=turns))
    assert json.loads(one.turns[0].calls[0].arguments) == {
        "to": "<MAIL_1>",
        "copies": 2,
        "card": "<CARD_1>",
    }
    assert one.turns[1].result == ToolResult(error="no such address: <MAIL_1>")
    assert originals == {"<MAIL_1>": MAIL, "<CARD_1>": CARD}


def test_what_people_wrote_is_redacted_and_who_wrote_it_has_another_name() -> None:
    said = Feedback(comment=f"It never wrote to {MAIL}.", tags=(PHONE,), author=MAIL)
    one, _ = mask_conversation(Conversation(id="c", turns=(), feedback=(said,), group=MAIL))
    assert (one.id, one.group) == ("c", make_pseudonym(MAIL))
    assert one.feedback == (
        Feedback(
            comment="It never wrote to <MAIL_1>.", tags=("<PHONE_1>",), author=make_pseudonym(MAIL)
        ),
    )


def test_a_log_is_redacted_as_it_is_read_and_the_store_alone_knows_what_was_there(
    tmp_path: Path,
) -> None:
    turns = [
        {"role": "user", "content": f"Write to {MAIL}"},
        {"role": "assistant", "content": "Done."},
    ]
    log = write_log(tmp_path / "log.jsonl", [{"id": "c", "messages": turns}])
    logs = read_logs(log, options=ReadOptions(redact="yes"))
    assert next(iter(logs)).turns[0].content == "Write to <MAIL_1>"
    with Store.open(tmp_path / "store") as store:
        for _ in range(2):
            store_originals_of_placeholders(store, logs.originals)
            store.flush()
        assert read_originals_of_placeholders(store, "c") == {"<MAIL_1>": MAIL}
        assert store.value("SELECT count(*) FROM originals") == 1
    assert all(
        MAIL.encode() not in file.read_bytes()
        for file in (tmp_path / "store").rglob("*")
        if file.is_file()
    )
