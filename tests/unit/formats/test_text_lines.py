"""Lines of a program's log are rows; a text that is no log is refused in words, and never taken for a table."""

from pathlib import Path
from typing import Any

import pytest

from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs

TALKS = [
    ("s1", [("user", 'It says "late" | why?'), ("bot", "It comes\\non Friday, sorry.")], "up"),
    ("s2", [("user", "Can I return the boots?"), ("bot", "Yes: within two weeks.")], "down"),
    ("s3", [("user", "Do you open on Sunday?"), ("bot", "No, we are closed then.")], None),
]


def read_as_proposed(path: Path) -> list[tuple[str, list[str], str]]:
    with pytest.raises(UnmappedLog, match="begins so") as error:
        read_logs(path)
    options: dict[str, Any] = dict(error.value.options)
    options |= {
        name: parse_name_pairs(options[name]) for name in ("columns", "roles") if name in options
    }
    logs = read_logs(path, options=ReadOptions(**options))
    return [(one.id, [turn.content for turn in one.turns], one.label.value) for one in logs]


def wanted(labels: bool) -> list[tuple[str, list[str], str]]:
    signs = {"up": "positive", "down": "negative", None: "none"}
    return [
        (id_, [words.replace("\\n", "\n") for _, words in turns], signs[label if labels else None])
        for id_, turns, label in TALKS
    ]


def test_pairs_of_names_and_values_are_a_row_a_line_and_votes_are_events(tmp_path: Path) -> None:
    lines = ['ts=2026-10-01T00:00:00Z level=info msg="GET /healthz" status=200']
    for id_, turns, label in TALKS:
        for speaker, words in turns:
            text = words.replace('"', '\\"')
            lines.append(
                f'ts=2026-10-01T00:00:00Z level=info msg="turn" sid={id_} role={speaker} text="{text}"'
            )
        if label:
            lines.append(
                f'ts=2026-10-01T00:01:00Z level=info msg="feedback" sid={id_} vote={label}'
            )
    (tmp_path / "app.log").write_text("\n".join(lines))
    assert read_as_proposed(tmp_path / "app.log") == wanted(labels=True)


def test_fields_between_bars_are_a_row_a_line_and_words_keep_their_bars(tmp_path: Path) -> None:
    lines = [
        f"2026-10-03 09:00:00 INFO chat | sess={id_} | {speaker.upper()} | {words}"
        for id_, turns, _ in TALKS
        for speaker, words in turns
    ]
    (tmp_path / "app.log").write_text("\n".join(lines))
    read = read_as_proposed(tmp_path / "app.log")
    assert read == [(id_, [words for _, words in turns], "none") for id_, turns, _ in TALKS]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "-- PostgreSQL database dump\n\nCREATE TABLE t (a int);\nCOPY t (a) FROM stdin;\n1\n\\.\n",
            "a dump of a database.*as CSV",
        ),
        (
            "I asked why it is late\n\nsomebody answered that it isn't\n\n" * 3,
            "no line says in a known way who speaks.*NAME: words",
        ),
    ],
)
def test_a_text_that_is_no_log_is_refused_with_what_to_write(
    text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "talk.txt").write_text(text)
    with pytest.raises(BadInput, match=f"(?s){says}"):
        read_logs(tmp_path / "talk.txt")
