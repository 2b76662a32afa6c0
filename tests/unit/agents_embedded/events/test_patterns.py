"""Exchanges of invented domains, labelled by what happens in them, half of them look-alikes in which it doesn't."""

import re
import tomllib
from pathlib import Path

from pollex.agents.embedded.events import finders, tools
from pollex.agents.embedded.events.language import ENGLISH_ACTS
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.events.reading import read_events_of_conversation, read_moves_with_acts
from pollex.agents.embedded.events.topics import LogTopics
from pollex.conversations.conversation import Conversation, ToolCall, Turn

HAPPENINGS: dict[str, dict[str, list[str]]] = {
    name: exchanges
    for path in sorted((Path(__file__).parent / "happenings").glob("*.toml"))
    for name, exchanges in tomllib.loads(path.read_text("utf-8")).items()
}
LEAST_PRECISION = 0.9
LEAST_RECALL = 0.8
FEWEST = 10


def happens(pattern: str, exchange: str) -> bool:
    """Whether a pattern is seen in "user / assistant / user …"; `tool> ` and `a> ` begin what else there is."""
    turns: list[Turn] = []
    for said in exchange.split(" / "):
        if said.startswith("tool> "):
            turns.append(Turn(role="tool", content=said.removeprefix("tool> ")))
        else:
            spoken = [turn.role for turn in turns if turn.role != "tool"]
            replies = said.startswith("a> ") or spoken[-1:] == ["user"]
            words, _, arguments = said.removeprefix("a> ").partition("] {")
            name = words.removeprefix("[tool call: ")
            calls = (ToolCall(name=name, arguments="{" + arguments),) if arguments else ()
            content = calls[0].mark if calls else words
            turns.append(
                Turn(role="assistant" if replies else "user", content=content, calls=calls)
            )
    seen = read_events_of_conversation(
        Conversation(id="1", turns=tuple(turns)), LogTopics(())
    ).firings
    return any(event.pattern == pattern for event in seen)


def test_a_pattern_is_seen_where_it_happens_and_not_in_look_alikes() -> None:
    for pattern in HAPPENINGS:
        seen = [exchange for exchange in HAPPENINGS[pattern]["yes"] if happens(pattern, exchange)]
        wrong = [exchange for exchange in HAPPENINGS[pattern]["no"] if happens(pattern, exchange)]
        assert len(seen) / (len(seen) + len(wrong)) >= LEAST_PRECISION, wrong
        missed = [exchange for exchange in HAPPENINGS[pattern]["yes"] if exchange not in seen]
        assert len(seen) / len(HAPPENINGS[pattern]["yes"]) >= LEAST_RECALL, missed


def test_ten_exchanges_are_labelled_for_each_pattern_that_leads() -> None:
    assert min(len(one["yes"]) + len(one["no"]) for one in HAPPENINGS.values()) >= FEWEST
    assert (
        {name for name, one in PATTERNS_BY_NAME.items() if one.proven and not one.rate}
        <= HAPPENINGS.keys()
        <= PATTERNS_BY_NAME.keys()
    )


FOLDER = Path(__file__).parent / "exchanges"
EXCHANGES: dict[str, dict[str, list[str]]] = {
    path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))
}
PRECISION = 0.9
RECALL = 0.7
EACH = 60


def shows(act: str, exchange: str) -> bool:
    """Whether the last sentence of "before | said" does the act."""
    before, _, said = exchange.partition(" | ")
    party = ENGLISH_ACTS.by_name[act].party
    other = "user" if party == "assistant" else "assistant"
    turns = [Turn(role=other, content=before)] if before.strip() else []
    moves = read_moves_with_acts(
        Conversation(id="1", turns=(*turns, Turn(role=party, content=said)))
    )
    return act in moves[-1].acts


def test_an_act_is_seen_where_it_is_done_and_not_in_look_alikes() -> None:
    for act in EXCHANGES:
        seen = [exchange for exchange in EXCHANGES[act]["yes"] if shows(act, exchange)]
        wrong = [exchange for exchange in EXCHANGES[act]["no"] if shows(act, exchange)]
        assert len(seen) / (len(seen) + len(wrong)) >= PRECISION, wrong
        missed = [exchange for exchange in EXCHANGES[act]["yes"] if exchange not in seen]
        assert len(seen) / len(EXCHANGES[act]["yes"]) >= RECALL, missed


def test_sixty_exchanges_are_labelled_for_each_act_half_of_them_look_alikes() -> None:
    assert EXCHANGES.keys() == ENGLISH_ACTS.by_name.keys()
    for act in EXCHANGES:
        yes = EXCHANGES[act]["yes"]
        no = EXCHANGES[act]["no"]
        assert len(set(yes + no)) == len(yes + no) >= EACH
        assert min(len(yes), len(no)) >= EACH // 2 - 1


def test_finders_of_patterns_ask_for_acts_that_exist() -> None:
    code = "".join(Path(module.__file__).read_text() for module in (finders, tools))
    asked = {
        act
        for call in re.findall(r"\.has\(([^()]*)\)", code)
        for act in re.findall(r'"(\w+)"', call)
    }
    assert "offers" in asked
    assert asked <= ENGLISH_ACTS.by_name.keys()
