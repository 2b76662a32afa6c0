"""Files that hold the same talks in other ways: YAML, lines behind a prefix, DuckDB, text with marks, objects by id."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.labels import Label, infer_thumb_side
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs, read_logs_from_rows
from pollex.formats.sheets import iterate_sheet_rows

TALKS = [
    [
        ("user", f"Where is parcel {n} of my order?"),
        ("assistant", f"Parcel {n} comes on Friday."),
        ("user", f"Thanks a lot for looking up {n}!"),
        ("assistant", f"You are welcome, and {n} is safe."),
    ]
    for n in range(6)
]
THUMBS = ["up", "down", "", "up", "down", ""]
SPOKEN_BY_ID = {
    f"k{n}": ({"up": "positive", "down": "negative"}.get(THUMBS[n], "none"), talk)
    for n, talk in enumerate(TALKS)
}


def read_as_proposed(source: Any) -> Logs:
    """Read a log; where a way is proposed, so."""
    read = read_logs_from_rows if isinstance(source, list) else read_logs
    try:
        return read(source)
    except UnmappedLog as error:
        options: dict[str, Any] = dict(error.options)
        mapped = {
            name: parse_name_pairs(options[name])
            for name in ("columns", "roles")
            if name in options
        }
        return read(source, options=ReadOptions(**options | mapped))


def talks_in(logs: Logs) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    return {
        conversation.id: (
            conversation.label.value,
            [(turn.role, turn.content) for turn in conversation.turns],
        )
        for conversation in logs
    }


def test_yaml_whose_keys_say_who_speaks(tmp_path: Path) -> None:
    names = {"user": "customer", "assistant": "bot"}
    lines = [
        line
        for n, talk in enumerate(TALKS)
        for line in (
            f"- id: k{n}",
            f"  thumb: {THUMBS[n] or 'null'}",
            "  dialog:",
            *(f"  - {names[role]}: {json.dumps(text)}" for role, text in talk),
        )
    ]
    (tmp_path / "log.yaml").write_text("\n".join(lines), "utf-8")
    assert talks_in(read_as_proposed(tmp_path / "log.yaml")) == SPOKEN_BY_ID


def test_yaml_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "log.yaml").write_text("- id: 1\n  thumb: [up\n", "utf-8")
    with pytest.raises(BadInput, match=r"not YAML: .*line"):
        read_logs(tmp_path / "log.yaml")


def test_objects_behind_a_prefix_among_other_lines(tmp_path: Path) -> None:
    lines = []
    for n, talk in enumerate(TALKS):
        for role, text in talk:
            row = {"evt": "turn", "cid": f"k{n}", "who": role[:3], "txt": text}
            lines += [
                f"2026-10-02T10:00:0{n} app[web]: {json.dumps(row)}",
                "GET /healthz 200 in 3ms",
            ]
        if THUMBS[n]:
            lines.append(
                f"app[web]: {json.dumps({'evt': 'vote', 'cid': f'k{n}', 'vote': THUMBS[n]})}"
            )
    (tmp_path / "app.log").write_text("\n".join(lines), "utf-8")
    assert talks_in(read_as_proposed(tmp_path / "app.log")) == SPOKEN_BY_ID


def test_tables_of_duckdb_of_which_one_has_nothing_to_do_with_the_log(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "chat.duckdb")) as database:
        database.execute(
            "CREATE TABLE turns (chat VARCHAR, n INTEGER, speaker VARCHAR, words VARCHAR)"
        )
        for n, talk in enumerate(TALKS):
            for place, (role, text) in enumerate(talk):
                database.execute(
                    "INSERT INTO turns VALUES (?, ?, ?, ?)", [f"k{n}", place, role, text]
                )
        database.execute("CREATE TABLE chats (id VARCHAR, thumb VARCHAR)")
        database.executemany(
            "INSERT INTO chats VALUES (?, ?)", [[f"k{n}", t] for n, t in enumerate(THUMBS)]
        )
        database.execute("CREATE TABLE settings (k VARCHAR, v VARCHAR)")
        database.execute("INSERT INTO settings VALUES ('lang', 'en')")
    logs = read_as_proposed(tmp_path / "chat.duckdb")
    assert talks_in(logs) == SPOKEN_BY_ID
    assert any("settings has no words" in note for note in logs.notes)


HEADS = {
    "angle": "[10:0{place}] {name}> {text}",
    "irc": "10:0{place} <{name}> {text}",
    "above": "{name}  10:0{place} AM\n{text}\n",
    "bold": "**{name}:** {text}\n",
    "heading": "## {name}\n\n{text}\n",
}
EDGES = {
    "line": ("=== Case k{n} | rating: {thumb} ===\n", ""),
    "front": ("---\nid: k{n}\nrating: {thumb}\n---\n", ""),
    "foot": ("-----\n", "Rating: {thumb}\n"),
    "reaction": ("──── k{n} · #help ────\n", "{sign}"),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("head", HEADS)
def test_what_stands_above_or_below_a_talk_is_no_turn(head: str, edge: str, tmp_path: Path) -> None:
    names = {"user": "User", "assistant": "Assistant"}
    text = "Talks of the week\nwritten on Monday\n\n"
    for n, talk in enumerate(TALKS):
        above, below = EDGES[edge]
        sign = {"up": "👍 1\n", "down": "👎 1\n", "": ""}[THUMBS[n]]
        text += above.format(n=n, thumb=THUMBS[n] or "n/a")
        text += "".join(
            HEADS[head].format(place=place, name=names[role], text=words) + "\n"
            for place, (role, words) in enumerate(talk)
        )
        text += below.format(thumb=THUMBS[n] or "n/a", sign=sign)
    (tmp_path / "talks.txt").write_text(text, "utf-8")
    talks = talks_in(read_as_proposed(tmp_path / "talks.txt"))
    assert list(talks.values()) == list(SPOKEN_BY_ID.values())


def test_what_stands_above_the_header_of_a_sheet_holds_for_its_rows() -> None:
    header = ["Time", "Speaker", "Message"]
    turn = ["10:01", "Customer", "Where is my tent?"]
    sheet = [["Talk of Monday", "", ""], ["Rating:", "Good", ""], ["", "", ""], header, turn]
    [row] = iterate_sheet_rows("log.xlsx!1", sheet)
    assert row.fields == {
        "title": "Talk of Monday",
        "Rating": "Good",
        **dict(zip(header, turn, strict=True)),
    }
    assert (row.line, [plain.fields for plain in iterate_sheet_rows("log.xlsx", sheet[3:])]) == (
        5,
        [dict(zip(header, turn, strict=True))],
    )


def test_talks_by_their_ids_and_ratings_in_an_object_beside(tmp_path: Path) -> None:
    by_id = {
        f"k{n}": [{"u": talk[0][1], "b": talk[1][1]}, {"u": talk[2][1], "b": talk[3][1]}]
        for n, talk in enumerate(TALKS)
    }
    (tmp_path / "by_id.json").write_text(json.dumps(by_id))
    unrated = {id_: ("none", talk) for id_, (_, talk) in SPOKEN_BY_ID.items()}
    assert talks_in(read_as_proposed(tmp_path / "by_id.json")) == unrated
    threads = [
        {"id": f"k{n}", "entries": [{"who": role, "body": text} for role, text in talk]}
        for n, talk in enumerate(TALKS)
    ]
    ratings = {f"k{n}": thumb for n, thumb in enumerate(THUMBS) if thumb}
    (tmp_path / "beside.json").write_text(json.dumps({"threads": threads, "ratings": ratings}))
    assert talks_in(read_as_proposed(tmp_path / "beside.json")) == SPOKEN_BY_ID


@pytest.mark.parametrize("thumbs", [(None, None), (True, False)])
def test_exchanges_of_which_a_column_names_the_session_are_no_talks_of_one_exchange(
    thumbs: tuple[bool | None, ...],
) -> None:
    rows = [
        {
            "session": f"k{n}",
            "prompt": talk[place][1],
            "response": talk[place + 1][1],
            "trace": "t1",
            "helpful": thumbs[n % 2] if place else None,
        }
        for n, talk in enumerate(TALKS)
        for place in (0, 2)
    ]
    assert [talk for _, talk in talks_in(read_as_proposed(rows)).values()] == TALKS


def test_a_rating_in_an_object_is_read_with_its_comment() -> None:
    rows = [
        {
            "session_id": f"k{n}",
            "messages": [{"from": role, "content": text} for role, text in talk],
            "rating": {"stars": 5 - 4 * (n % 2), "comment": f"remark {n}"},
        }
        for n, talk in enumerate(TALKS)
    ]
    assert any("to take them" in note for note in read_logs_from_rows(rows).notes)
    logs = read_logs_from_rows(rows, options=ReadOptions(positive=">=4", negative="<=2"))
    assert [conversation.label.value for conversation in logs] == ["positive", "negative"] * 3
    assert [conversation.feedback[0].comment for conversation in logs] == [
        f"remark {n}" for n in range(6)
    ]


@pytest.mark.parametrize(
    "word",
    ["no rating", "keine Bewertung", "sans avis", "brak oceny", "미응답", "未评价", "評価なし"],
)
def test_values_that_say_that_there_is_no_rating(word: str) -> None:
    assert infer_thumb_side(word) is Label.NONE


def test_a_word_that_says_that_nothing_was_solved_is_a_thumb_down() -> None:
    assert infer_thumb_side("not resolved") is Label.NEGATIVE


def test_an_answer_may_stand_in_several_texts_of_a_list() -> None:
    rows = []
    expected = {}
    for n in range(12):
        asked, told = f"Where is parcel {n}, please?", f"Parcel {n} is at the depot."
        texts = [told, "Is there anything else?"][: 1 + n % 2]
        messages = [{"text": {"text": [text]}, "source": "AGENT"} for text in texts]
        result = {"text": asked, "responseMessages": [*messages, {"endInteraction": {}}]}
        rows.append({"session_id": f"s{n // 2}", "queryResult": result})
        talk = [("user", asked), ("assistant", "\n".join(texts))]
        expected[f"s{n // 2}"] = expected.get(f"s{n // 2}", []) + talk

    with pytest.raises(BadInput) as raised:
        read_logs_from_rows(rows)
    columns = parse_name_pairs(str(raised.value.options["columns"]))
    assert ("assistant", "queryResult.responseMessages[].text.text") in columns
    logs = read_logs_from_rows(rows, options=ReadOptions(columns=columns))
    words = {}
    for conversation in logs:
        words[conversation.id] = [(turn.role, turn.content) for turn in conversation.turns]
    assert words == expected


def test_calls_beside_the_words_of_a_mapped_turn_are_kept() -> None:
    rows = []
    for n in range(6):
        call = {"name": "find", "args": {"order": n}, "id": f"c{n}", "type": "tool_call"}
        history = [
            {"type": "human", "data": {"content": f"Where is order {n}?"}},
            {"type": "ai", "data": {"content": "", "tool_calls": [call]}},
            {"type": "tool", "data": {"content": "at the depot", "tool_call_id": f"c{n}"}},
            {"type": "ai", "data": {"content": f"Order {n} is at the depot."}},
        ]
        rows.append({"thread_id": f"t{n}", "history": history})
    columns = parse_name_pairs("conversation=thread_id,messages=history,role=type,text=data")
    logs = read_logs_from_rows(rows, options=ReadOptions(columns=columns))
    for n, conversation in enumerate(logs):
        calls = [(call.name, call.arguments) for call in conversation.turns[1].calls]
        assert calls == [("find", json.dumps({"order": n}))]
        assert conversation.turns[2].result is not None


@pytest.mark.parametrize(
    ("begin", "turn"),
    [
        ("", "<|im_start|>{role}\n{words}<|im_end|>\n"),
        (
            "<|begin_of_text|>",
            "<|start_header_id|>{role}<|end_header_id|>\n\n{words}<|eot_id|>",
        ),
        ("<bos>", "<start_of_turn>{role}\n{words}<end_of_turn>\n"),
        ("", "<|{role}|>\n{words}</s>\n"),
    ],
)
def test_talks_in_a_models_template_are_read(begin: str, turn: str) -> None:
    rows = []
    expected = []
    for n in range(12):
        talk = [("user", f"Where is parcel {n}?"), ("assistant", f"Parcel {n} < {n + 1} days.")]
        text = begin + "".join(turn.format(role=role, words=words) for role, words in talk)
        rows.append({"id": f"r{n}", "text": text, "thumb": ("up", "down", None)[n % 3]})
        expected.append(talk)
    logs = read_logs_from_rows(rows)
    words = []
    for conversation in logs:
        words.append([(turn.role, turn.content) for turn in conversation.turns])
    assert words == expected
    assert {*logs.counts.values()} == {4}


def test_lists_of_questions_and_of_answers_are_turns_in_turn() -> None:
    rows = []
    expected = []
    for n in range(12):
        asked = [f"Where is parcel {n}?", f"Can I return order {n}?"]
        told = [f"Parcel {n} is at the depot.", f"You have 30 days for order {n}."]
        rating = ("up", "down", None)[n % 3]
        rows.append({"id": f"r{n}", "questions": asked, "answers": told, "rating": rating})
        sides = [("user", asked[0]), ("assistant", told[0])]
        expected.append([*sides, ("user", asked[1]), ("assistant", told[1])])

    with pytest.raises(BadInput) as raised:
        read_logs_from_rows(rows, options=ReadOptions(confirm=True))
    columns = parse_name_pairs(str(raised.value.options["columns"]))
    logs = read_logs_from_rows(rows, options=ReadOptions(columns=columns))
    words = []
    for conversation in logs:
        words.append([(turn.role, turn.content) for turn in conversation.turns])
    assert words == expected
    assert {*logs.counts.values()} == {4}
