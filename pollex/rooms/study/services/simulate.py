"""Simulate dialogues on topics, with systems that find documents or have none."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import Conversation, format_openai_messages, format_sources
from pollex.errors import WrongUse
from pollex.formats.write import require_writable_output_path, write_json_lines
from pollex.gateway.calls import Call, CompletedReply, Outcome
from pollex.graphs.context import Progress
from pollex.graphs.run import carry_out_run
from pollex.rooms.study.agents.llm.simulator import (
    QUALITY_QUESTION_NAMES,
    DialogueScene,
    DialogueSimulator,
    PassageIndex,
    split_into_passages,
)
from pollex.rooms.study.formats.topics import read_documents, read_topics
from pollex.rooms.study.graphs import SIMULATED_RECORD_NAME
from pollex.rooms.study.prompts.simulate.systems import find_systems
from pollex.rubrics.answers import Unanswered
from pollex.runs.by_model import require_model_name, run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.plan import PlannedRun, PlanningGateway
from pollex.runs.run import RunSettings, compute_json_digest
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.results import TabularResult, format_outcomes
from pollex.store.resume import iterate_conversations
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLines, render_first_lines

MODEL_NEEDED_REASON = "simulating dialogues needs an LLM"
QUALITY_QUESTIONS_IN_WORDS = {
    "conversation": "is a conversation of a user and an assistant",
    "pursues": "the user pursues the topic's need",
    "human": "the user's turns are like a human's",
}
ENDINGS_IN_WORDS = {
    "whole": "written in one call",
    "user": "ended by the user",
    "assistant": "ended by the assistant",
    "turns": "ended by the limit of turns",
    "repeat": "ended since the user said the same again",
}


def list_scenes(
    topics_in: Path,
    named: Sequence[str],
    documents: Path | None,
) -> list[DialogueScene]:
    """Return the dialogues to simulate.

    Raises:
        WrongUse: A system is unknown, or has no documents to find.
    """
    # systems that find documents need some, before any topic is read
    systems = find_systems(named)
    searching = []
    for system in systems:
        if system.retrieval != "none":
            searching.append(system)

    if searching and documents is None:
        what = f"{searching[0].name} finds documents, and there are none"
        raise WrongUse(
            what,
            hint="name their folder",
            option={"documents": "FOLDER"},
        )

    # systems that are given documents need topics that name them
    topics, personas = read_topics(topics_in)
    without = []
    for topic in topics:
        if not topic.documents:
            without.append(topic.id)

    if without and (
        named_systems := [system for system in searching if system.retrieval == "named"]
    ):
        what = f"{named_systems[0].name} is given the documents that topics name, and {without[0]} names none"
        raise WrongUse(
            what,
            where=str(topics_in),
            hint='add `documents = ["FILE"]` to it',
        )

    # every system with every topic and every persona
    scenes: list[DialogueScene] = []
    for system in systems:
        for topic in topics:
            for persona in personas:
                scenes.append(DialogueScene(system, topic, persona))

    return scenes


@dataclass(frozen=True, kw_only=True, repr=False)
class SimulateResult(TabularResult):
    """Simulated dialogues, with their endings and quality.

    Attributes:
        out: File of a dialogue a row; None where none was written.
    """

    fine = (SIMULATED_RECORD_NAME,)
    columns = ("id", "system", "topic", "persona", "ended")

    run: str
    model: str
    out: Path | None
    dialogues: tuple[Conversation, ...]
    outcomes: dict[str, int]
    usage: ModelUsage | None = None

    @property
    def failed(self) -> list[str]:
        """Return the dialogues that failed, each with the reason."""
        about = []
        for dialogue in self.dialogues:
            about.append((dialogue.id, dialogue.metadata))

        dialogues: list[str] = []
        for id_, m in about:
            if m["outcome"] != SIMULATED_RECORD_NAME:
                dialogues.append(f"{id_}: {m['outcome']}: {m['detail']}")

        return dialogues

    @property
    def quality(self) -> dict[str, int]:
        """Return how many dialogues have the answer yes, by question."""
        checked = []
        for dialogue in self.dialogues:
            if dialogue.metadata.get("quality"):
                checked.append(dialogue.metadata["quality"])

        return {
            name: sum(answers[name] == "yes" for answers in checked)
            for name in QUALITY_QUESTION_NAMES
        }

    @property
    def endings(self) -> dict[str, int]:
        """Return how many dialogues ended in which way."""
        return dict(
            Counter(dialogue.metadata["ended"] for dialogue in self.dialogues if dialogue.turns)
        )

    def records(self) -> Iterator[dict[str, object]]:
        for dialogue in self.dialogues:
            if dialogue.turns:
                yield {
                    "id": dialogue.id,
                    "messages": format_openai_messages(dialogue),
                    "sources": format_sources(dialogue),
                    **dialogue.metadata,
                }

    def told(self) -> TerminalLines:
        """Yield how dialogues ended, their quality, and which failed."""
        yield format_outcomes(self.outcomes)
        for ending, n in self.endings.items():
            yield f"{ENDINGS_IN_WORDS[ending]}: {n}"

        for name, yes in self.quality.items():
            yield f"{QUALITY_QUESTIONS_IN_WORDS[name]}: yes for {yes} of {self.outcomes.get(SIMULATED_RECORD_NAME, 0)}"

        yield from render_first_lines("dialogue failed", "dialogues failed", self.failed)
        yield from render_usage_by_stage(self.usage)
        yield f"Wrote {self.out} ({self.model}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of("run", "out", "model", "outcomes")
            | {"n": len(self.dialogues)}
            | self.of("endings", "quality", "failed", "usage")
        )


def simulate_dialogues(
    topics: Path,
    systems: Sequence[str],
    *,
    documents: Path | None = None,
    turns: int = 8,
    max_tokens: int = 4096,
    seed: int = 0,
    out: Path | None = None,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> SimulateResult:
    """Simulate a dialogue for each system, topic and persona.

    Args:
        topics: File of topics and personas.
        systems: Names of dialogue systems.
        documents: Folder that systems with retrieval search.
        turns: Most turns of the user, where turns are taken.
        max_tokens: Maximum tokens of an answer; twice as many if it was truncated.
        seed: Sent with every call.
        out: Where a row a dialogue is written.

    Raises:
        BadInput: Topics or documents can't be read.
        WrongUse: No model is named, or what is asked for can't be carried out.
    """
    # what can be refused is refused before a model is called
    name = require_model_name(model, MODEL_NEEDED_REASON)
    scenes = list_scenes(topics, systems, documents)
    if out is not None:
        require_writable_output_path(out, topics)

    # documents are read once a model is known, and checked against the topics
    def simulator(asker: PromptAsker) -> DialogueSimulator:
        retrieved = read_documents(documents)
        for topic in (scene.topic for scene in scenes):
            if retrieved and (missing := set(topic.documents) - retrieved.keys()):
                what = f"{topic.id} names {sorted(missing)[0]}, which is not in {documents}"
                raise WrongUse(
                    what,
                    where=str(topics),
                    hint="give the path within the folder",
                )

        # a whole dialogue is longer than an answer
        settings = asker.settings.but(max_tokens=max_tokens)
        return DialogueSimulator(
            replace(asker, settings=settings),
            PassageIndex(split_into_passages(retrieved)),
            turns,
        )

    if run.dry_run:
        raise plan_dry_run(
            model,
            run,
            seed,
            lambda plan: _rehearse_dialogues(scenes, simulator, plan),
        )

    # what the run was called with, for a later look at it
    with open_workspace(run, progress) as opened:
        arguments = {
            "topics": str(topics),
            "systems": list(systems),
            "out": out and str(out),
        }
        hold_all = lambda asker, setting: hold_dialogues(scenes, simulator(asker), setting)  # noqa: E731
        # read from the store: a resumed run has dialogues of earlier ones
        (held, outcomes), usage = run_work_by_model(opened, model, seed, arguments, hold_all)
        dialogues = tuple(read_dialogues(opened.store, held, scenes))

    result = SimulateResult(
        run=held,
        model=name,
        out=out,
        dialogues=dialogues,
        outcomes=outcomes,
        usage=usage,
    )
    if out is not None:
        write_json_lines(out, result.records())

    return result


async def _rehearse_dialogues(
    scenes: Sequence[DialogueScene],
    make: Callable[[PromptAsker], DialogueSimulator],
    plan: PlannedRun,
) -> None:
    """Hold each dialogue, as long as it may be, with a model that only counts."""
    simulator = make(replace(plan.asker, door=DialogueRehearsal(plan.planner)))
    for scene in scenes:
        held = await simulator.dialogue(scene)
        assert not isinstance(held, Unanswered), "the rehearsal answers everything"
        await simulator.quality(scene, held)


async def hold_dialogues(
    scenes: Sequence[DialogueScene],
    simulator: DialogueSimulator,
    setting: RunSettings,
) -> tuple[str, dict[str, int]]:
    """Hold the dialogues of all scenes; return the run, and how many came to what. `read_dialogues` reads them.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    # LangGraph takes a while
    from pollex.rooms.study.graphs.graph import SimulateContext, SimulateWork, build

    # topics and personas by their content: another text is another run
    digest_of_scenes = compute_json_digest(
        [[scene.id, asdict(scene.topic), asdict(scene.persona)] for scene in scenes]
    )
    fingerprint = {"scenes": digest_of_scenes, "simulator": simulator.fingerprint}
    async with setting.begin_or_resume("simulate", fingerprint, [simulator.name]) as run:
        # dialogues that are there, but for those that are to be asked for again
        dialogues = read_dialogues(setting.store, run.id, scenes)
        done = {}
        for dialogue in dialogues:
            done[dialogue.id] = dialogue.metadata["outcome"]

        done = {
            id_: outcome for id_, outcome in done.items() if outcome not in setting.retry_outcomes
        }
        # only scenes without a dialogue are pending
        live = SimulateWork(
            **setting.of_run(run.id),
            stage="simulate",
            total=len(scenes),
            pending={scene.id: None for scene in scenes if scene.id not in done},
            outcomes=Counter(done.values()),
            fine=frozenset({SIMULATED_RECORD_NAME}),
            workers=[simulator.name],
            scenes={scene.id: scene for scene in scenes},
            simulator=simulator,
        )
        state = await carry_out_run(
            build(),
            live,
            SimulateContext.of(setting.arguments),
        )

    return run.id, state["outcomes"]


def read_dialogues(store: Store, run: str, scenes: Sequence[DialogueScene]) -> list[Conversation]:
    """Return the stored dialogues of a run, in the order of the scenes."""
    by_id = {conversation.id: conversation for conversation in iterate_conversations(store, run)}
    dialogues: list[Conversation] = []
    for scene in scenes:
        if scene.id in by_id:
            dialogues.append(by_id[scene.id])

    return dialogues


@dataclass
class DialogueRehearsal:
    """A model client that counts calls, with turns of the usual length that never end a dialogue.

    Attributes:
        asked: Calls so far; each turn differs, for a user who repeats a turn ends the dialogue.
    """

    planner: PlanningGateway
    asked: int = 0

    async def ask(self, call: Call) -> Outcome:
        """See `agents.llm.asker.ModelClient`."""
        self.asked += 1
        # one call for the whole dialogue can be counted exactly
        if call.stage == "simulate_whole":
            await self.planner.ask(call)
        else:  # what is asked depends on what was said before
            with self.planner.estimating():
                await self.planner.ask(call)

        # an answer with all fields that any prompt asks for, never the end of the dialogue
        text = f"turn {self.asked} " + "a word " * 20
        turns: list[JsonDict] = []
        for role in ("user", "assistant") * 4:
            turns.append({"role": role, "text": text, "sources": []})

        answer = {
            "text": text,
            "query": text,
            "ends": False,
            "sources": [],
            "turns": turns,
        }
        return CompletedReply(
            text=json.dumps(answer | dict.fromkeys(QUALITY_QUESTION_NAMES, "yes"))
        )
