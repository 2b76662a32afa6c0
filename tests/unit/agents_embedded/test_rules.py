"""Tables of detectors: one more row is one more detector, and the bundled logs show what a change moves."""

import os
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import ACTS_TABLE_PATH, read_acts
from pollex.agents.embedded.events.reading import find_sure_firings, read_moves_with_acts
from pollex.agents.embedded.events.sentences import read_table_rows, split_moves
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.agents.embedded.view import ConversationView
from pollex.conversations.conversation import Conversation, Turn
from pollex.formats.read_logs import read_logs

ROW = """
[weather]
KINDS = '''
rain|snow
|hail'''
[weather.forecasts]
party = "assistant"
[[weather.forecasts.rules]]
cues = "rain snow hail"
pattern = '\\b(?:{KINDS})\\b'
unless = '\\bno (?:{KINDS})\\b'
mood = "statement"
"""


def test_a_fragment_of_another_group_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[a]\nONE = 'x'\n[b.act]\npattern = '{ONE}'\n")
    with pytest.raises(KeyError, match="ONE"):
        list(read_table_rows(tmp_path / "t.toml"))


def test_a_line_break_stands_for_nothing_unless_the_next_line_is_indented(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        '[a.act]\npattern = """\none\n|two"""\ncues = """\n    one\n    two\n"""\n'
    )
    ((group, name, row),) = read_table_rows(tmp_path / "t.toml")
    assert (group, name, row["pattern"], row["cues"].split()) == (
        "a",
        "act",
        "one|two",
        ["one", "two"],
    )


def test_an_act_is_one_more_row(tmp_path: Path) -> None:
    table = tmp_path / "acts.toml"
    table.write_text(ACTS_TABLE_PATH.read_text() + ROW)
    acts = read_acts(table)
    for said, seen in (
        ("Expect hail at noon.", True),
        ("There will be no hail.", False),
        ("Do you like hail?", False),
    ):
        turns = (
            Turn(role="user", content="How is the weather?"),
            Turn(role="assistant", content=said),
        )
        moves = split_moves(Conversation(id="1", turns=turns))
        acts.mark(moves)
        assert ("forecasts" in moves[1].acts) == seen
        assert "asks" in moves[0].acts


EXAMPLES = Path(__file__).parents[3] / "examples"
FILE = Path(__file__).with_name("hits_on_examples.toml")


def test_signals_acts_and_patterns_are_seen_in_the_bundled_logs_as_before() -> None:
    logs = [
        list(read_logs(str(EXAMPLES / f"{name}.jsonl")).conversations)[:60]
        for name in ("debugging", "bikes")
    ]
    signals = Counter[str]()
    acts = Counter[str]()
    patterns = Counter[str]()
    for conversation in (one for log in logs for one in log):
        view = ConversationView(conversation, Embedder())
        moves = read_moves_with_acts(conversation)
        signals.update(
            {name: int((signal.marks(view) != 0).sum()) for name, signal in SIGNALS_BY_NAME.items()}
        )
        acts.update(act for move in moves for sentence in move.sentences for act in sentence.hits)
        patterns.update(firing.pattern for firing in find_sure_firings(moves))
    found = {"signals": signals, "acts": acts, "patterns": patterns}
    if os.environ.get("WRITE_SNAPSHOTS"):
        FILE.write_text(
            "\n".join(
                f"[{kind}]\n"
                + "".join(f"{name} = {count}\n" for name, count in sorted(counts.items()))
                for kind, counts in found.items()
            )
        )
    assert tomllib.loads(FILE.read_text()) == found, (
        "WRITE_SNAPSHOTS=1 writes the file; the diff is for you to read"
    )
