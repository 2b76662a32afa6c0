"""What `pollex inspect` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pollex.conversations.conversation import Conversation, Label
from pollex.formats.labels import NEITHER
from pollex.services.inspect import SHOWN_CHARACTERS, SHOWN_TURNS, Inspection, Lengths
from pollex.text import count

if TYPE_CHECKING:
    from pollex.cli.session import Screen

MOST = 12
"""Names in a line."""


def show_inspection(screen: Screen, found: Inspection) -> None:
    """Print what files hold, a line for each question, and two conversations."""
    for title, text in lines(found):
        if text:
            screen.say(f"{title:<12} {text}")
    for one in found.examples:
        screen.say()
        for line in example(one):
            screen.say(line)


def lines(found: Inspection) -> Iterator[tuple[str, str]]:
    """Yield titles and texts; an empty text is left out."""
    account, logs = found.account, found.logs
    yield "Format", listed(account.formats + account.general)
    yield "Put together", listed(account.ways)
    yield "More fields", listed(found.fields)
    yield "Label field", logs.label_field
    for label, title in ((Label.POSITIVE, "Thumbs up"), (Label.NEGATIVE, "Thumbs down"), (Label.NONE, "No label")):
        written = listed(found.spellings(label))
        yield title, f"{logs.counts.get(label, 0)}{f': written as {written}' if written else ''}"
    yield "Not taken", listed(found.spellings(NEITHER))
    for kind in account.scores:
        name = repr(kind.name) if kind.name else "thumbs of the tool"
        source = f" from {kind.source}" if kind.source else ""
        yield "Score", f"{name}{source} ({kind.scores}){', read as the thumb' if kind.taken else ''}"
    yield "Roles", listed(found.roles)
    yield "Turns", spread(found.turns)
    yield "Words", spread(found.words)
    yield "Attached", listed(found.attached)
    yield "Languages", listed(found.languages)
    yield "Duplicates", duplicates(found) or "none"


def listed(named: Mapping[str, int]) -> str:
    """Return names with their numbers, the first of many."""
    rest = len(named) - MOST
    shown = ", ".join(f"{name} ({number})" for name, number in list(named.items())[:MOST])
    return f"{shown} and {rest} more" if rest > 0 else shown


def spread(found: Lengths) -> str:
    """Return lengths in a line."""
    return f"{found.shortest} to {found.longest} in a conversation, median {found.median}"


def duplicates(found: Inspection) -> str:
    """Return how much is there twice; empty where nothing is."""
    rows, texts = found.logs.duplicates, found.same_text
    same = f"{count(rows, 'identical row counts', 'identical rows count')} once" if rows else ""
    also = f"{count(texts, 'conversation has', 'conversations have')} the text of another one" if texts else ""
    return "; ".join(filter(None, [same, also]))


def example(one: Conversation) -> Iterator[str]:
    """Yield a conversation in lines, long ones cut."""
    yield f"{one.id} ({one.label.value if one.label is not Label.NONE else 'no label'})"
    for turn in one.turns[:SHOWN_TURNS]:
        words = " ".join(turn.content.split())
        yield f"  {turn.role}: {words[:SHOWN_CHARACTERS]}{'…' if len(words) > SHOWN_CHARACTERS else ''}"
    if (rest := len(one.turns) - SHOWN_TURNS) > 0:
        yield f"  … {count(rest, 'more turn')}"
