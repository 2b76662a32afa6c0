"""Logs that nobody knows: what is proposed was read, and nothing is proposed that does not hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs, read_logs_from_rows
from pollex.services.log_view import view_log

SAID = [
    (
        ("Where is my tent? Order 7.", "It is late."),
        ("That is no help to me.", "Please write to the office."),
    ),
    (
        ("Where is my lamp, please?", "It comes on Friday."),
        ("Thanks, that is all!", "You are welcome."),
    ),
    (
        ("Can I return the boots?", "Within two weeks, yes."),
        ("Good to know that.", "With pleasure."),
    ),
    (
        ("Do you open on Sunday?", "No, we are closed."),
        ("What a pity that is.", "I am sorry for it."),
    ),
]
THUMBS = ("down", "up", "up", "down")


def turns_of(number: int) -> list[tuple[str, str]]:
    return [
        turn
        for question, answer in SAID[number]
        for turn in (("user", question), ("assistant", answer))
    ]


def wanted(labels: bool = True) -> list[tuple[str, list[tuple[str, str]]]]:
    signs = {"up": "positive", "down": "negative"}
    return [(signs[THUMBS[n]] if labels else "none", turns_of(n)) for n in range(4)]


def told(logs: Logs) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(one.label.value, [(turn.role, turn.content) for turn in one.turns]) for one in logs]


def proposed(rows: Any) -> dict[str, Any]:
    with pytest.raises(UnmappedLog, match="begins so") as error:
        read_logs_from_rows(rows, options=ReadOptions(confirm=True))
    options: dict[str, Any] = dict(error.value.options)
    return options | {
        name: parse_name_pairs(options[name]) for name in ("columns", "roles") if name in options
    }


def of_turns(names: dict[str, str], speakers: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [
        {
            names["c"]: f"k-{n}",
            names["r"]: speakers[role],
            names["t"]: words,
            names["l"]: THUMBS[n],
            **more,
        }
        for n in range(4)
        for role, words in turns_of(n)
    ]


NAMES = {"c": "vorgang", "r": "wer", "t": "was", "l": "urteil"}
BOTH = of_turns(NAMES, {"user": "a", "assistant": "b"})
ODD: list[tuple[str, Any, bool]] = [
    ("names of roles", of_turns(NAMES, {"user": "Hana", "assistant": "Merkur"}), True),
    ("true and false", of_turns(NAMES, {"user": False, "assistant": True}), True),
    (
        "pairs of texts",
        [
            {"id": f"k-{n}", "history": list(map(list, SAID[n])), "thumb": THUMBS[n]}
            for n in range(4)
        ],
        True,
    ),
    (
        "pairs of role and text",
        [
            {"id": f"k-{n}", "hist": list(map(list, turns_of(n))), "thumb": THUMBS[n]}
            for n in range(4)
        ],
        True,
    ),
    (
        "a list of exchanges",
        [
            {"conv": f"k-{n}", "log": [{"q": q, "a": a} for q, a in SAID[n]], "thumb": THUMBS[n]}
            for n in range(4)
        ],
        True,
    ),
    (
        "names of no language",
        of_turns(
            {"c": "mn", "r": "op", "t": "zu", "l": "qq"}, {"user": "Kunde", "assistant": "Bot"}
        ),
        True,
    ),
    (
        "many users",
        [row | {"wer": "Zeta" if row["wer"] == "b" else row["vorgang"] + "!"} for row in BOTH],
        True,
    ),
    (
        "a constant beside",
        of_turns(NAMES, {"user": "Kunde", "assistant": "Bot"}, status="closed", site="de"),
        True,
    ),
    (
        "objects",
        [
            {"head": {"thread": f"k-{n}", "mood": THUMBS[n]}, "body": {"by": role, "words": words}}
            for n in range(4)
            for role, words in turns_of(n)
        ],
        True,
    ),
    (
        "a list in JSON text",
        [
            {
                "key": f"k-{n}",
                "thumb": THUMBS[n],
                "log": json.dumps([{"wer": r, "was": w} for r, w in turns_of(n)]),
            }
            for n in range(4)
        ],
        True,
    ),
    (
        "thumbs in messages",
        [
            {
                "uid": f"k-{n}",
                "verlauf": [
                    {
                        "von": role,
                        "inhalt": words,
                        "extra": {"vote": THUMBS[n] if place == 3 else None},
                    }
                    for place, (role, words) in enumerate(turns_of(n))
                ],
            }
            for n in range(4)
        ],
        True,
    ),
    (
        "exchanges",
        [
            {"sitzung": f"k-{n}", "frage": q, "antwort": a, "thumb": THUMBS[n]}
            for n in range(4)
            for q, a in SAID[n]
        ],
        True,
    ),
    (
        "a bot's id on one side",
        [
            {
                "thread": f"k-{n}",
                "body": words,
                "thumb": THUMBS[n],
                **({"bot_id": "B7"} if role == "assistant" else {}),
            }
            for n in range(4)
            for role, words in turns_of(n)
        ],
        True,
    ),
]


@pytest.mark.parametrize(("kind", "rows", "labels"), ODD, ids=[kind for kind, _, _ in ODD])
def test_what_is_proposed_reads_what_was_said(kind: str, rows: Any, labels: bool) -> None:
    options = proposed(rows)
    logs = read_logs_from_rows(rows, options=ReadOptions(**options))
    assert told(logs) == wanted(labels), options
    assert sum(logs.account.rows["row"].values()) == len(rows)


NOTHING: list[tuple[str, Any]] = [
    ("figures", [{"day": f"2026-01-{n + 1:02}", "visits": n, "cost": n / 7} for n in range(20)]),
    (
        "one side",
        [{"nr": n // 2, "wer": "Kunde", "was": f"I ask for number {n} please"} for n in range(20)],
    ),
    (
        "nobody speaks",
        [
            {"title": f"A text of some words {n}", "url": f"https://example.org/{n}"}
            for n in range(9)
        ],
    ),
    ("ids", [{"a": f"0dw{n}", "b": f"1xy{n % 3}", "c": "x"} for n in range(12)]),
]


@pytest.mark.parametrize(("kind", "rows"), NOTHING, ids=[kind for kind, _ in NOTHING])
def test_nothing_is_proposed_where_no_reading_holds_and_what_is_missing_is_said(
    kind: str, rows: Any
) -> None:
    with pytest.raises(BadInput, match="no way to read it was found; its columns are") as error:
        read_logs_from_rows(rows, options=ReadOptions(confirm=True))
    assert error.value.options == {"columns": None}


def test_an_envelope_of_talks_under_any_name_is_opened(tmp_path: Path) -> None:
    talks = [
        {
            "uid": f"k-{n}",
            "posts": [{"role": r, "content": w} for r, w in turns_of(n)],
            "label": THUMBS[n],
        }
        for n in range(4)
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"export": {"made": "2026"}, "entries": talks}), "utf-8")
    view = view_log([str(path)], reading=ReadOptions(), options={})
    assert (view.conversations, view.error) == (4, {})


def test_a_pair_of_answers_is_told_as_a_preference() -> None:
    rows = [
        {"q": q, "response1": a, "response2": "I can't say that.", "better": 1}
        for talk in SAID
        for q, a in talk
    ]
    with pytest.raises(
        BadInput, match="'response1' and 'response2' are two answers to one question"
    ):
        read_logs_from_rows(rows)


def test_rows_and_items_that_are_no_turns_are_left_out_as_said() -> None:
    rows = of_turns(NAMES, {"user": "Kunde", "assistant": "Bot"})
    status = {"vorgang": "k-0", "wer": "Status", "was": "assigned to queue 7", "urteil": ""}
    columns = parse_name_pairs("conversation=vorgang,role=wer,text=was,label=urteil")
    for roles in ("user=Kunde,none=Status", "user=Kunde,assistant=Bot,none=*"):
        logs = read_logs_from_rows(
            [*rows, status], options=ReadOptions(columns=columns, roles=parse_name_pairs(roles))
        )
        assert told(logs) == wanted()
        assert logs.account.rows["row"] == {"turns": 16, "left out": 1}
        assert "no turns, as you said: by 'Status' (1)" in logs.notes


def test_a_label_in_a_second_file_is_joined_under_any_name(tmp_path: Path) -> None:
    talks = [
        {"session_id": f"k-{n}", "messages": [{"role": r, "content": w} for r, w in turns_of(n)]}
        for n in range(4)
    ]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)), "utf-8")
    values = {"up": "fine", "down": "spoilt"}
    lines = [f"k-{n},{values[THUMBS[n]]}" for n in range(4)]
    (tmp_path / "marks.csv").write_text("\n".join(["session_id,quality", *lines]), "utf-8")
    files = [tmp_path / "talks.jsonl", tmp_path / "marks.csv"]
    logs = read_logs(
        files, options=ReadOptions(label_field="quality", positive="fine", negative="spoilt")
    )
    assert told(logs) == wanted()
    with pytest.raises(BadInput, match=r"may be the label.*say so: label_field='quality'"):
        read_logs(files)


def test_a_kept_mapping_holds_for_a_log_of_the_same_fields_alone() -> None:
    columns = parse_name_pairs("conversation=vorgang,role=wer,text=was")
    roles = parse_name_pairs("user=Kunde,assistant=Bot")
    kept = ReadOptions(columns=columns, roles=roles, kept_mapping=True, labels_needed=False)
    assert told(
        read_logs_from_rows(of_turns(NAMES, {"user": "Kunde", "assistant": "Bot"}), options=kept)
    ) == wanted(False)
    usual = [
        {"id": f"k-{n}", "messages": [{"role": r, "content": w} for r, w in turns_of(n)]}
        for n in range(4)
    ]
    assert told(read_logs_from_rows(usual, options=kept)) == wanted(False)


def test_a_proposal_is_offered_for_a_form(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        "\n".join(map(json.dumps, of_turns(NAMES, {"user": "Hana", "assistant": "Merkur"}))),
        "utf-8",
    )
    view = view_log([str(path)], reading=ReadOptions(), options={})
    assert view.proposed
    assert view.options["columns"] == {
        "conversation": "vorgang",
        "role": "wer",
        "text": "was",
        "label": "urteil",
    }
    assert SAID[0][0][0] in [talk["turns"][0]["content"] for talk in view.talks]
    assert {column["path"]: column["part"] for column in view.columns}["was"] == "text"
    assert view.conversations == 4
    path.write_text('{"a": 1}\n{"a": 2}\n', "utf-8")
    refused = view_log([str(path)], reading=ReadOptions(), options={})
    assert refused.error["what"].startswith("no known shape")
    assert [column["path"] for column in refused.columns] == ["a"]
