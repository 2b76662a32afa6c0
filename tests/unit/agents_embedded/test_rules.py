"""Tables of detectors: what a row may say, and that one more row is one more detector."""

from pathlib import Path

import pytest

from pollex.agents.embedded.events.language import TABLE, acts_in
from pollex.agents.embedded.events.sentences import moves_of, rows
from pollex.conversations.conversation import Conversation, Turn

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
        list(rows(tmp_path / "t.toml"))


def test_a_line_break_stands_for_nothing_unless_the_next_line_is_indented(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[a.act]\npattern = """\none\n|two"""\ncues = """\n    one\n    two\n"""\n')
    ((group, name, row),) = rows(tmp_path / "t.toml")
    assert (group, name, row["pattern"], row["cues"].split()) == ("a", "act", "one|two", ["one", "two"])


def test_an_act_is_one_more_row(tmp_path: Path) -> None:
    table = tmp_path / "acts.toml"
    table.write_text(TABLE.read_text() + ROW)
    acts = acts_in(table)
    for said, seen in (("Expect hail at noon.", True), ("There will be no hail.", False), ("Do you like hail?", False)):
        turns = (Turn(role="user", content="How is the weather?"), Turn(role="assistant", content=said))
        moves = moves_of(Conversation(id="1", turns=turns))
        acts.mark(moves)
        assert ("forecasts" in moves[1].acts) == seen
        assert "asks" in moves[0].acts
