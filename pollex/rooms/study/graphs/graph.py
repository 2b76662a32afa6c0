"""`simulate`: holds dialogues of a simulated user with each system, then asks about their quality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from langgraph.graph import StateGraph

from pollex.conversations.conversation import Conversation, Turn
from pollex.graphs.batches import (
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import Context
from pollex.graphs.findings import (
    MAX_ANSWERS_SHOWN,
    MAX_REASON_CHARACTERS,
    shorten_text_to_state_line,
)
from pollex.rooms.study.agents.llm.simulator import (
    DialogueScene,
    DialogueSimulator,
    SimulatedDialogue,
)
from pollex.rooms.study.graphs import SIMULATED_RECORD_NAME
from pollex.rubrics.answers import Unanswered
from pollex.store.rows import make_conversation_rows


@dataclass(frozen=True, kw_only=True)
class SimulateContext(Context):
    """What the user chose for `simulate`.

    Attributes:
        topics: A file of topics and personas.
        systems: By name, DS1 to DS5; all but the first need `documents`, a folder.
        turns: Turns of the user at most; 0 for the usual number.
    """

    topics: str = ""
    systems: list[str] = field(default_factory=list)
    documents: str = ""
    turns: int = 0
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SimulateWork(BatchWork):
    """The resources of `simulate`.

    Attributes:
        scenes: By id.
        held: Dialogues of the batch whose quality wasn't asked about yet, by id.
    """

    scenes: Mapping[str, DialogueScene]
    simulator: DialogueSimulator
    held: dict[str, SimulatedDialogue] = field(default_factory=dict)

    def tell(self, dialogue: Conversation) -> None:
        """Tell of a dialogue in the state; those without one, or with unproven quotes, are the worst."""
        about = dialogue.metadata
        quality = dialogue.metadata.get("quality") or {}
        unproven = int(about.get("unproven_quotes") or 0)
        row = {
            "why": shorten_text_to_state_line(
                about.get("detail") or describe_quality(quality), MAX_REASON_CHARACTERS
            ),
            "quality": dict(list(quality.items())[:MAX_ANSWERS_SHOWN]),
            **self.words_of(dialogue.turns),
            "turns": len(dialogue.turns),
            "unproven_quotes": unproven,
        }
        # what the dialogue was about, as far as it is known: a failed one has less
        names = ("system", "topic", "persona", "ended", "outcome")
        row |= {name: about[name] for name in names if name in about}
        figures = {"turns": float(len(dialogue.turns)), "unproven quotes": float(unproven)}
        # failed dialogues rank below all others, then those with most unproven quotes
        if about["outcome"] != SIMULATED_RECORD_NAME:
            rank = -100.0
        else:
            rank = float(-unproven)

        self.findings.take(
            dialogue.id,
            lambda: row,
            rank=rank,
            figures=figures if dialogue.turns else {},
        )

    def held_in_short(self, scene: DialogueScene, dialogue: SimulatedDialogue) -> dict[str, object]:
        """Return what the state tells of a dialogue whose quality wasn't asked about yet."""
        about = {
            "system": scene.system.name,
            "topic": scene.topic.id,
            "ended": dialogue.ended,
        }
        return {
            **self.words_of(dialogue.turns),
            "turns": len(dialogue.turns),
            **about,
        }

    def words_of(self, turns: Sequence[Turn]) -> dict[str, str]:
        """Return how a dialogue begins and ends, where texts are kept."""
        if not turns or not self.store.texts:
            return {}

        first = f"{turns[0].role}: {turns[0].content}"
        last = f"{turns[-1].role}: {turns[-1].content}"
        return {
            "begins": shorten_text_to_state_line(first),
            "ends": shorten_text_to_state_line(last),
        }

    def keep(self, dialogue: Conversation) -> None:
        """Store a dialogue, or why there is none, and settle its scene."""
        self.store.put(make_conversation_rows(self.run, [dialogue]))
        self.tell(dialogue)
        self.end(dialogue.id, dialogue.metadata["outcome"])


QUALITY_IN_WORDS = {
    "conversation": ("a conversation", "no conversation"),
    "pursues": ("the user pursues the topic", "the user doesn't pursue the topic"),
    "human": ("the user's turns are like a human's", "the user's turns aren't like a human's"),
}
"""What an answer to each question of quality says, if it is yes and if it is no."""


def describe_quality(quality: Mapping[str, str]) -> str:
    """Say what a reader found of a dialogue's quality; what is wrong comes first."""
    answers = []
    for name, (yes, no) in QUALITY_IN_WORDS.items():
        if name in quality:
            answers.append((quality[name] == "yes", yes if quality[name] == "yes" else no))
    return "; ".join(words for _, words in sorted(answers, key=lambda answer: answer[0]))


@make_graph_node_of_item_function(SimulateWork)
async def converse(live: SimulateWork, id_: str) -> None:
    """Hold each dialogue of the batch, or store why there is none."""
    # a dialogue that fails is stored here; others wait for the questions of quality
    scene = live.scenes[id_]
    async with live.semaphore, live.tracer.span("converse", kind="role", item=scene.id) as span:
        dialogue = await live.simulator.dialogue(scene)
        if isinstance(dialogue, Unanswered):
            span.failed(f"{dialogue.outcome}: {dialogue.detail}")
            about = {"outcome": dialogue.outcome, "detail": dialogue.detail}
            live.keep(Conversation(id=scene.id, turns=(), metadata=about))
        else:
            span.outputs([f"{len(dialogue.turns)} turns, ended: {dialogue.ended}"])
            live.held[scene.id] = dialogue
            live.findings.note(
                "converse",
                scene.id,
                partial(live.held_in_short, scene, dialogue),
            )


@make_graph_node_of_item_function(SimulateWork)
async def check_quality(live: SimulateWork, id_: str) -> None:
    """Ask the questions of quality about each dialogue that was held, and store it with the answers."""
    scene = live.scenes[id_]
    # taken out: the dialogue is stored at the end of this node
    dialogue = live.held.pop(id_)
    async with (
        live.semaphore,
        live.tracer.span("check_quality", kind="role", item=scene.id) as span,
    ):
        quality = await live.simulator.quality(scene, dialogue)
        if isinstance(quality, Unanswered):
            span.failed(f"{quality.outcome}: {quality.detail}")
        # Inside the span, which is written after it: whoever finds the span of a killed run finds
        # the dialogue, too.
        live.keep(make_stored_dialogue(scene, dialogue, quality))


def make_stored_dialogue(
    scene: DialogueScene,
    dialogue: SimulatedDialogue,
    quality: dict[str, str] | Unanswered,
) -> Conversation:
    """Return a dialogue as stored."""
    # what was held stays, also where the questions of quality failed
    about: dict[str, object] = {
        "system": scene.system.name,
        "topic": scene.topic.id,
        "persona": scene.persona.id,
        "quotes": dialogue.quotes,
        "unproven_quotes": dialogue.unproven,
        "ended": dialogue.ended,
        "label_source": SIMULATED_RECORD_NAME,
    }
    if isinstance(quality, Unanswered):
        about |= {
            "quality": None,
            "outcome": quality.outcome,
            "detail": quality.detail,
        }
    else:
        about |= {
            "quality": quality,
            "outcome": SIMULATED_RECORD_NAME,
            "detail": "",
        }

    # sources with their turns, as other logs have them
    return Conversation(
        id=scene.id,
        turns=tuple(dialogue.turns),
        sources=tuple(dialogue.sources),
        metadata=about,
    )


def build() -> StateGraph[BatchState, SimulateContext, BatchState, BatchState]:
    """Build the graph, uncompiled."""
    return add_batch_nodes_to_graph(
        StateGraph(BatchState, context_schema=SimulateContext),
        [converse],
        [check_quality],
    )
