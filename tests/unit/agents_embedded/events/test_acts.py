"""What single sentences do, on exchanges of invented domains written for it; half of them are look-alikes."""

import re
import tomllib
from pathlib import Path

from pollex.agents.embedded.events import finders, tools
from pollex.agents.embedded.events.language import ACTS
from pollex.agents.embedded.events.reading import marked
from pollex.conversations.conversation import Conversation, Turn

FOLDER = Path(__file__).parent / "exchanges"
EXCHANGES: dict[str, dict[str, list[str]]] = {
    path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))
}
LEAST_PRECISION, LEAST_RECALL, FEWEST = 0.9, 0.7, 60


def shows(act: str, exchange: str) -> bool:
    """Whether the last sentence of "before | said" does the act."""
    before, _, said = exchange.partition(" | ")
    party = ACTS.by_name[act].party
    other = "user" if party == "assistant" else "assistant"
    turns = [Turn(role=other, content=before)] if before.strip() else []
    moves = marked(Conversation(id="1", turns=(*turns, Turn(role=party, content=said))))
    return act in moves[-1].acts


def test_an_act_is_seen_where_it_is_done_and_not_in_look_alikes() -> None:
    for act in EXCHANGES:
        seen = [exchange for exchange in EXCHANGES[act]["yes"] if shows(act, exchange)]
        wrong = [exchange for exchange in EXCHANGES[act]["no"] if shows(act, exchange)]
        assert len(seen) / (len(seen) + len(wrong)) >= LEAST_PRECISION, wrong
        missed = [exchange for exchange in EXCHANGES[act]["yes"] if exchange not in seen]
        assert len(seen) / len(EXCHANGES[act]["yes"]) >= LEAST_RECALL, missed


def test_sixty_exchanges_are_labelled_for_each_act_half_of_them_look_alikes() -> None:
    assert EXCHANGES.keys() == ACTS.by_name.keys()
    for act in EXCHANGES:
        yes, no = EXCHANGES[act]["yes"], EXCHANGES[act]["no"]
        assert len(set(yes + no)) == len(yes + no) >= FEWEST
        assert min(len(yes), len(no)) >= FEWEST // 2 - 1


def test_finders_of_patterns_ask_for_acts_that_exist() -> None:
    code = "".join(Path(module.__file__).read_text() for module in (finders, tools))
    asked = {act for call in re.findall(r"\.has\(([^()]*)\)", code) for act in re.findall(r'"(\w+)"', call)}
    assert "offers" in asked
    assert asked <= ACTS.by_name.keys()
