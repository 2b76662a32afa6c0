"""What the nodes of `simulate` work with, and how a dialogue is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pollex.agents.llm.simulator import Dialogue, Scene, Simulator
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import BatchContext
from pollex.rubrics.answers import Unanswered

SIMULATED = "simulated"
"""Where the conversations, and so any labels of theirs, come from."""


@dataclass(frozen=True, kw_only=True)
class SimulateContext(BatchContext):
    """The runtime context of the nodes of `simulate`.

    Attributes:
        scenes: By id.
        held: Dialogues of the batch whose quality wasn't asked about yet, by id.
    """

    scenes: Mapping[str, Scene]
    simulator: Simulator
    held: dict[str, Dialogue] = field(default_factory=dict)


def failed(scene: Scene, why: Unanswered) -> Conversation:
    """Return a dialogue that could not be simulated, as stored: no turns, and the reason."""
    return Conversation(id=scene.id, turns=(), metadata={"outcome": why.outcome, "detail": why.detail})


def simulated(scene: Scene, dialogue: Dialogue, quality: dict[str, str] | Unanswered) -> Conversation:
    """Return a dialogue as stored."""
    about: dict[str, Any] = {
        "system": scene.system.name,
        "topic": scene.topic.id,
        "persona": scene.persona.id,
        "sources": dialogue.sources,
        "unproven_quotes": dialogue.unproven,
        "ended": dialogue.ended,
        "label_source": SIMULATED,
    }
    if isinstance(quality, Unanswered):
        about |= {"quality": None, "outcome": quality.outcome, "detail": quality.detail}
    else:
        about |= {"quality": quality, "outcome": SIMULATED, "detail": ""}
    return Conversation(id=scene.id, turns=tuple(dialogue.turns), metadata=about)
