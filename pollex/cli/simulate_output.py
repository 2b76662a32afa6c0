"""Lines of `pollex simulate`."""

from __future__ import annotations

from pollex.cli.output import list_some, show_outcomes, show_used
from pollex.cli.session import Screen
from pollex.services.simulate import SimulateResult

ASKED = {
    "conversation": "is a conversation of a user and an assistant",
    "pursues": "the user pursues the topic's need",
    "human": "the user's turns are like a human's",
}
ENDED = {
    "whole": "written in one call",
    "user": "ended by the user",
    "assistant": "ended by the assistant",
    "turns": "ended by the limit of turns",
    "repeat": "ended since the user said the same again",
}


def show_dialogues(screen: Screen, result: SimulateResult) -> None:
    """Show how dialogues ended, their quality, and which failed."""
    show_outcomes(screen, result.outcomes)
    for ending, n in result.endings.items():
        screen.say(f"{ENDED[ending]}: {n}")
    for name, yes in result.quality.items():
        screen.say(f"{ASKED[name]}: yes for {yes} of {result.outcomes.get('simulated', 0)}")
    list_some(screen, "dialogue failed", "dialogues failed", result.failed)
    show_used(screen, result.usage)
    screen.say(f"Wrote {result.out} ({result.model}; run {result.run})")
