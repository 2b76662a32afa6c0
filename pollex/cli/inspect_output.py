"""What `pollex inspect` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pollex.conversations.conversation import Conversation, Label
from pollex.formats.labels import NEITHER
from pollex.services.inspect import SHOWN_CHARACTERS, SHOWN_TURNS, Inspection, Lengths
from pollex.text import count

if TYPE_CHECKING:
    from pollex.cli.session import Screen

MOST = 12
"""Names in a sentence."""
TAKEN = ((Label.POSITIVE, "up"), (Label.NEGATIVE, "down"), (Label.NONE, "not rated"), (NEITHER, "neither up nor down"))


def show_inspection(screen: Screen, found: Inspection, sources: Any, given_options: Mapping[str, object]) -> None:
    """Print what files hold, a sentence for each question, two conversations, and the command to learn from them.

    Args:
        given_options: The options that it was read with.
    """
    for text in sentences(found):
        screen.say(text)
    for one in found.examples:
        screen.say()
        for line in example(one):
            screen.say(line)
    screen.say()
    for text in ending(found, sources, given_options):
        screen.say(text)


def sentences(found: Inspection) -> Iterator[str]:
    """Yield a sentence for each thing that is there, and for the main ones that aren't."""
    account, logs = found.account, found.logs
    ways = f", put together {listed(account.ways)}" if account.ways else ""
    yield f"{count(len(logs), 'conversation')} in the shape of {listed(account.formats + account.general)}{ways}."
    yield f"Roles: {listed(found.roles)}; {spread(found.turns)} turns and {spread(found.words)} words a conversation."
    yield from thumbs(found)
    yield from left_out(found)
    wrote = (
        "Nobody wrote a comment with the thumb"
        if not found.comments
        else f"Comments or tags stand with {count(found.comments, 'conversation')}"
    )
    yield f"{wrote}."
    yield f"Tools were called: {listed(found.tools)}." if found.tools else "No tool was called."
    if found.attached:
        yield f"Attached are {listed(found.attached)}."
    yield f"Languages of the users' words: {listed(found.languages)}."
    yield f"Said between {found.times[0]} and {found.times[1]}." if found.times else "No time is known of any turn."
    if found.group:
        name, different = found.group
        yield f"Groups: {name!r} has {different} values; what shares one stays on one side of a split with it as group."
    if found.fields:
        yield f"Other fields, kept with the conversations: {listed(found.fields)}."


def thumbs(found: Inspection) -> Iterator[str]:
    """Yield which field is the thumb, its values and what each is taken for, and the scores that are none."""
    logs, kinds = found.logs, found.account.scores
    numbers = ", ".join(f"{logs.counts.get(label, 0)} {said}" for label, said in TAKEN[:3])
    taken = next((kind for kind in kinds if kind.taken), None)
    tool = "the tool's own thumbs" if taken and not taken.name else taken and repr(taken.name)
    name = repr(logs.label_field) if logs.label_field else tool
    yield f"The thumb is {name}: {numbers}." if name else "No field is taken for the thumb."
    for label, said in TAKEN:
        if values := found.spellings(label):
            yield f"  taken for {said}: {listed(values)}"
    for kind in kinds:
        source = f" from {kind.source}" if kind.source else ""
        used = "read as the thumb" if kind.taken else "not used"
        yield f"  score {kind.name or 'of the tool'!r}{source} ({kind.scores}): {used}"


def left_out(found: Inspection) -> Iterator[str]:
    """Yield what is not among the conversations, and why."""
    logs = found.logs
    said = [
        duplicates(found),
        f"{count(logs.skipped, 'row')} inside other steps" if logs.skipped else "",
        f"{count(logs.overruled, 'conversation')} of an id that another one has" if logs.overruled else "",
        f"{count(len(logs.bad_rows), 'bad row')}" if logs.bad_rows else "",
    ]
    yield f"Left out: {'; '.join(filter(None, said)) or 'nothing'}."


def ending(found: Inspection, sources: Any, given: Mapping[str, object]) -> Iterator[str]:
    """Yield the command that learns from these files; or why none does yet."""
    up, down = (found.logs.counts.get(label, 0) for label in (Label.POSITIVE, Label.NEGATIVE))
    if not (up and down):
        yield "Nothing can be learned yet: it takes thumbs up and down. Name their field, or give some in pollex serve."
        return
    if isinstance(sources, tuple):
        group = {"group_field": found.group[0]} if found.group else {}
        yield f"Learn from it: {command('learn', sources, {**group, **given})}"


def command(verb: str, sources: Sequence[str], given: Mapping[str, object]) -> str:
    """Return what to type for a verb with options of reading."""
    from pollex.cli.generator import command_in
    from pollex.cli.settings import spelled  # neither is needed for --help

    click = command_in(verb)
    each = ((name, one) for name, value in given.items() for one in (value if isinstance(value, tuple) else (value,)))
    return " ".join([shlex.join(["pollex", verb, *sources]), *(spelled(click, {name: value}) for name, value in each)])


def listed(named: Mapping[str, int]) -> str:
    """Return names with their numbers, the first of many."""
    rest = len(named) - MOST
    shown = ", ".join(f"{name} ({number})" for name, number in list(named.items())[:MOST])
    return f"{shown} and {rest} more" if rest > 0 else shown


def spread(found: Lengths) -> str:
    """Return lengths in a few words."""
    return f"{found.shortest} to {found.longest} (median {found.median})"


def duplicates(found: Inspection) -> str:
    """Return how much is there twice; empty where nothing is."""
    rows, texts = found.logs.duplicates, found.same_text
    same = f"{count(rows, 'identical row', 'identical rows')}, counted once" if rows else ""
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
