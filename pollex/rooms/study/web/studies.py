"""Studies: which systems people talk to, in which order, on what, what they are asked then; and sessions of them."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pollex.agents.llm.asker import ModelClient, PromptAsker
from pollex.conversations.conversation import Source, Turn
from pollex.errors import UNREADABLE_FILE_HINT, BadInput, PollexError
from pollex.formats.questionnaires import (
    MAX_QUESTIONNAIRE_BYTES,
    SheetQuestion,
    find_bundled_questionnaire,
)
from pollex.gateway.budget import Budget
from pollex.prompts.domain import DomainProfile
from pollex.rooms.study.agents.llm.simulator import (
    DialogueScene,
    DialogueSimulator,
    SimulatedDialogue,
    SimulatedPersona,
    SimulatedTopic,
)
from pollex.rooms.study.store.tables import StudyRow, TalkTurnRow
from pollex.rooms.study.web.profiles import SpeakerOptions
from pollex.rubrics.answers import Unanswered
from pollex.runs.options import ModelOptions
from pollex.store.store import Store
from pollex.store.tables import format_current_time, load_json
from pollex.text import JsonDict, is_visible, parse_toml, read_file_text
from pollex.web.faults import NotFound, RequestError
from pollex.web.questions import parse_questionnaire
from pollex.web.site import Site

STUDY_HINT = (
    "it wants title, systems (names of profiles), and a [[question]] for each question, "
    "or questionnaire = FILE"
)
MAIN_QUESTION_NAME = "main"

StudyText = Annotated[str, Field(max_length=4000)]


@dataclass
class TalkMemory:
    """What a server remembers of talks while it runs.

    Attributes:
        parts: What systems have said so far, by session and position.
        budgets: What talking has cost, by profile.
    """

    parts: dict[str, dict[int, str]] = field(default_factory=dict)
    budgets: dict[str, Budget] = field(default_factory=dict)


class NamedTopic(BaseModel):
    """A topic with the documents that answer it, for DS2."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: StudyText
    documents: tuple[str, ...]


class Study(BaseModel):
    """A study as its file has it.

    Attributes:
        systems: Names of profiles; participants never see them.
        topics: One for each session; none lets people choose their own.
        design: One system a session, all beside each other, or one after another.
        turns: Fewest and most messages of the participant to a system.
        whole: Whether replies are shown when they are there, and not while they are written: speed
            is no clue then.
        seed: Of the order of systems and topics.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1, max_length=200)
    welcome: StudyText = ""
    instructions: StudyText = ""
    consent: StudyText = ""
    thanks: StudyText = "Thank you. Your answers are kept."
    systems: tuple[str, ...] = Field(min_length=1, max_length=9)
    topics: tuple[StudyText | NamedTopic, ...] = ()
    design: Literal["one", "side-by-side", "one-after-other"] = "one"
    turns: tuple[int, int] = (2, 12)
    whole: bool = False
    seed: int = Field(0, ge=0)
    questions: tuple[SheetQuestion, ...] = Field(min_length=1)

    @classmethod
    def find_in(cls, site: Site, id_: str) -> Study:
        """Return the study of a page."""
        return get_study(site.store, id_)

    @model_validator(mode="after")
    def _sound(self) -> Study:
        if not 1 <= self.turns[0] <= self.turns[1] <= 100:
            raise ValueError("turns: give the fewest and the most messages, from 1 to 100")
        if len(set(self.systems)) < len(self.systems):
            raise ValueError("systems: name each once")
        return self

    @property
    def id(self) -> str:
        """Begins the digest of its content: a study that is changed is another study."""
        # Without what is as it was before there was a choice: a study that is kept stays the same
        # one.
        payload = self.model_dump_json(exclude=None if self.whole else {"whole"})
        return hashlib.sha256(payload.encode()).hexdigest()[:12]

    def session(self, number: int) -> tuple[tuple[str, ...], str]:
        """Return the systems of a session in order, and its topic.

        Each block of as many sessions as there are systems has every system at every place once, in
        an order drawn from the seed; with a topic of its own, so that each system gets each topic
        equally often.
        """
        block, place = divmod(number, len(self.systems))
        drawn = np.random.default_rng([self.seed, 0, block]).permutation(len(self.systems)).tolist()
        order = tuple(self.systems[i] for i in (*drawn[place:], *drawn[:place]))
        return (order[:1] if self.design == "one" else order), self._topic(block)

    def _topic(self, block: int) -> str:
        if not self.topics:
            return ""

        cycle, place = divmod(block, len(self.topics))
        drawn = np.random.default_rng([self.seed, 1, cycle]).permutation(len(self.topics))
        topic = self.topics[int(drawn[place])]
        return topic if isinstance(topic, str) else topic.text

    def documents(self, topic: str) -> tuple[str, ...]:
        """Return the names of the documents that answer a topic."""
        named = [topic for topic in self.topics if isinstance(topic, NamedTopic)]
        return next(
            (topic_named.documents for topic_named in named if topic_named.text == topic),
            (),
        )


def read_study(path: Path) -> Study:
    """Read a study from its file.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    try:
        text = read_file_text(path)
        tables = parse_toml(text)
        # questions stand in the study itself, or in a questionnaire that it names
        named = tables.pop("questionnaire", None)
        if named is None:
            questions = path
        else:
            questions = find_bundled_questionnaire(named) or path.parent / named

        questions_read = parse_questionnaire(
            text if questions == path else read_file_text(questions)
        )
        # a study is stored whole, so it has to stay small
        if len(text.encode()) > MAX_QUESTIONNAIRE_BYTES:
            raise BadInput(
                "the study is over 64 kB",
                where=str(path),
                hint="shorten it",
            )

        # questions were read by themselves; the rest is the study's own
        rest = {}
        for name, value in tables.items():
            if name not in ("question", MAIN_QUESTION_NAME):
                rest[name] = value

        return Study.model_validate(rest | {"questions": questions_read})
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"it can't be read: {error}",
            where=str(path),
            hint=UNREADABLE_FILE_HINT,
        ) from error
    except ValidationError as error:
        # the first fault only, with where it stands
        first = error.errors(include_url=False, include_input=False)[0]
        what = ": ".join(
            filter(
                None,
                (".".join(map(str, first["loc"])), first["msg"]),
            )
        )
        raise BadInput(what, where=str(path), hint=STUDY_HINT) from error
    except RequestError as error:
        raise BadInput(error.what, where=str(path), hint=error.advice) from error
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"not valid TOML: {error}",
            where=str(path),
            hint=STUDY_HINT,
        ) from error


def read_studies(paths: Sequence[Path], profiles: Mapping[str, ModelOptions]) -> list[StudyRow]:
    """Read studies as rows of the store.

    Raises:
        BadInput: One can't be read, or names a system that no profile describes, or a document that
            isn't there.
    """
    problems = []
    for path in paths:
        study = read_study(path)
        # each system of a study is a profile of the server
        if strangers := [name for name in study.systems if name not in profiles]:
            hint = f"name them in the file of --profiles, which has {', '.join(profiles) or 'none'}"
            raise BadInput(
                f"no profile is called {', '.join(strangers)}",
                where=str(path),
                hint=hint,
            )

        # dialogue systems among them, whose documents the topics must have
        speakers = []
        for name in study.systems:
            if isinstance(speaker := profiles[name], SpeakerOptions):
                speakers.append(speaker)

        for speaker in speakers:
            _require_documents(study, speaker, path)
        if speakers:  # their replies can't be shown in parts: nobody is to know them by that
            study = study.model_copy(update={"whole": True})
        problems.append(StudyRow(study.id, format_current_time(), study.model_dump_json()))

    return problems


def _require_documents(study: Study, speaker: SpeakerOptions, path: Path) -> None:
    """Refuse topics without the documents that a system is given, or with others than there are."""
    # a study without topics is checked as one topic that names nothing
    document_names = {passage.document for passage in speaker.passages.all}
    for topic in study.topics or ("",):
        named = () if isinstance(topic, str) else topic.documents
        # such a system can't speak without documents
        if speaker.system.retrieval == "named" and not named:
            what = (
                f"{speaker.system.name} is given the documents that topics name, and one names none"
            )
            hint = 'write it as `{text = "…", documents = ["FILE"]}`'
            raise BadInput(what, where=str(path), hint=hint)

        # names of documents are paths within the profile's folder
        if document_names and (missing := sorted(set(named) - document_names)):
            what = f"a topic names {missing[0]}, which is not among the documents of {speaker.system.name}"
            raise BadInput(
                what,
                where=str(path),
                hint="give the path within the folder of its profile",
            )


def read_stored_studies(store: Store) -> list[Study]:
    """Return all studies of a store, the last one first."""
    rows = store.rows("SELECT payload FROM studies GROUP BY id ORDER BY min(rowid) DESC")
    studies: list[Study] = []
    for row in rows:
        studies.append(Study.model_validate_json(row["payload"]))

    return studies


def get_study(store: Store, study_id: str) -> Study:
    """Return a study. Raises NotFound where there is none."""
    payload = store.value("SELECT payload FROM studies WHERE id = ?", [study_id])
    if payload is None:
        raise NotFound(
            "there is no such study",
            hint="name its file at the start",
            option="study",
        )

    return Study.model_validate_json(payload)


MODEL_NAME_PATTERN = re.compile(
    r"\b(?:(?:chat)?gpt|openai|claude|anthropic|gemini|bard|llama|mistral|mixtral|qwen|deepseek|grok|cohere|copilot)\b",
    re.IGNORECASE,
)
"""A reply that names a model may tell participants which system it is; its session is marked."""

TalkPhase = Literal["talk", "wait", "failed", "sheet", "done", "left"]

LEFT_REASON = "left"
TALKED_REASON = "talked"
MAX_REPLY_TOKENS = 4096
MAX_SESSIONS_OF_STUDY = 1_000_000
"""More sessions than a study has."""


@dataclass
class TalkSide:
    """One system of a session: what was said, and what was answered about it.

    Attributes:
        position: Place in the session; the participant knows the system by it.
        system: Name of its profile.
        turns: Kept turns of both, in order.
        fault: Why the last message has no reply; empty while none failed.
        failed: How many times there was none.
        answers: Value and reason by question.
    """

    position: int
    system: str
    turns: list[JsonDict] = field(default_factory=list)
    fault: str = ""
    failed: int = 0
    talked: bool = False
    marked: bool = False
    answers: dict[str, tuple[float | None, str]] = field(default_factory=dict)

    @property
    def said(self) -> int:
        """How many messages the participant sent."""
        return sum(turn["role"] == "user" for turn in self.turns)

    @property
    def owed(self) -> bool:
        """Whether the last message has no reply yet."""
        return bool(self.turns) and self.turns[-1]["role"] == "user"

    @property
    def name(self) -> str:
        """What the participant knows it as."""
        return f"System {chr(ord('A') + self.position)}"

    @property
    def sources(self) -> list[JsonDict]:
        """The documents that it was shown, each once, in the order of their numbers."""
        return self._list_sources_with("text")

    @property
    def quotes(self) -> list[JsonDict]:
        """What its replies quote, with turn and document."""
        return self._list_sources_with("quote")

    def _list_sources_with(self, field: str) -> list[JsonDict]:
        """Return the sources of all turns that have a field."""
        sources: list[JsonDict] = []
        for turn in self.turns:
            for source in turn["sources"]:
                if field in source:
                    sources.append(source)

        return sources

    def asked(self, questions: Sequence[SheetQuestion]) -> list[SheetQuestion]:
        """Return the questions that apply: those about sources only where it was shown some."""
        return [question for question in questions if not question.needs or self.sources]

    @property
    def messages(self) -> list[dict[str, str]]:
        """What the system is sent."""
        messages: list[dict[str, str]] = []
        for turn in self.turns:
            messages.append({"role": turn["role"], "content": turn["text"]})
        return messages


@dataclass(frozen=True)
class TalkSession:
    """A session with everything that was said in it."""

    id: str
    study: str
    number: int
    annotator: str
    topic: str
    time: str
    sides: tuple[TalkSide, ...]
    left: bool = False

    def open(self, study: Study) -> list[TalkSide]:
        """Return the sides that are talked to now; none while a sheet is due, or at the end."""
        # who has left talks to nobody
        if self.left:
            return []

        # the first side without answers is the one whose turn it is
        due = next((side for side in self.sides if not side.answers), None)
        if study.design == "side-by-side":
            sides = [*self.sides]
        elif due:
            sides = [due]
        else:
            sides = []

        # After the last message its reply is still to come, and to be read: the participant ends
        # it.
        if any(side.talked for side in sides):
            return []
        return sides

    def sheet(self, study: Study) -> TalkSide | None:
        """Return the side that a sheet is due for."""
        if self.left or self.open(study):
            return None
        return next((side for side in self.sides if not side.answers), None)

    @property
    def done(self) -> bool:
        """Whether every sheet is answered."""
        return all(side.answers for side in self.sides)

    @property
    def marked(self) -> bool:
        """Whether a reply names a model."""
        return any(side.marked for side in self.sides)

    def phase(self, study: Study, *, at_work: bool) -> TalkPhase:
        """Return what the participant has before them."""
        if self.done or self.left:
            return "done" if self.done else "left"

        sides = self.open(study)
        if not sides:
            return "sheet"
        if any(side.owed for side in sides):
            return "wait" if at_work else "failed"
        return "talk"


SESSIONS_QUERY = (
    "SELECT * FROM talks WHERE study = ?1 AND (?2 = '' OR annotator = ?2) ORDER BY number"
)
ROWS_OF_SESSIONS_QUERY = (
    "SELECT t.* FROM talks AS s JOIN {table} AS t ON t.talk = s.id "
    "WHERE s.study = ?1 AND (?2 = '' OR s.annotator = ?2) ORDER BY t.rowid"
)


def list_talks(store: Store, study: str, annotator: str = "") -> list[TalkSession]:
    """Return the sessions of a study, or of one participant, in the order in which they began."""
    parameters = [study, annotator]
    rows = store.rows(SESSIONS_QUERY, parameters)
    # sides in the order in which this session has its systems
    sides = {}
    for row in rows:
        sides[row["id"]] = tuple(
            TalkSide(i, name) for i, name in enumerate(load_json(row["systems"]))
        )

    # turns in the order in which they were stored
    for row in store.rows(ROWS_OF_SESSIONS_QUERY.format(table="talk_turns"), parameters):
        side = sides[row["talk"]][row["position"]]
        # the last turn's outcome stands: a reply that was asked for again mends a fault
        side.fault, side.marked = row["outcome"], side.marked or bool(row["marked"])
        side.failed += bool(row["outcome"])

        # a failed reply has no turn
        if not row["outcome"]:
            turn_fields = {}
            for name in ("role", "text", "ms", "edits"):
                turn_fields[name] = row[name]

            side.turns.append(turn_fields | {"sources": load_json(row["sources"])})

    # an answer is a value, or why it was skipped
    for row in store.rows(ROWS_OF_SESSIONS_QUERY.format(table="talk_answers"), parameters):
        sides[row["talk"]][row["position"]].answers[row["question"]] = (
            load_json(row["value"]),
            row["skip"],
        )

    # an end belongs to one side; leaving ends the whole session
    left = set[str]()
    for row in store.rows(ROWS_OF_SESSIONS_QUERY.format(table="talk_ends"), parameters):
        sides[row["talk"]][row["position"]].talked = True
        left |= {row["talk"]} if row["why"] == LEFT_REASON else set()

    talk_fields = ("id", "study", "number", "annotator", "topic", "time")
    talks: list[TalkSession] = []
    for row in rows:
        talks.append(
            TalkSession(
                **{name: row[name] for name in talk_fields},
                sides=sides[row["id"]],
                left=row["id"] in left,
            )
        )

    return talks


async def ask_for_reply(
    store: Store,
    study: Study,
    talk: TalkSession,
    side: TalkSide,
    model: ModelOptions,
    budget: Budget | None,
    texts_so_far: dict[int, str] | None,
) -> TalkTurnRow:
    """Ask a system for its next turn; what goes wrong is the row's outcome."""
    # imported here: pages of a study are shown without them
    from pollex.gateway.calls import (
        Call,  # the client behind it takes a second to import
        CompletedReply,
    )
    from pollex.gateway.gateway import Gateway
    from pollex.store.ledger import StoreCallLedger

    began = time.perf_counter()
    text = ""
    outcome = ""
    sources = list[JsonDict]()
    # The session's number in the key: who types what somebody else typed talks to the system, not
    # to its old reply.
    # parts of the reply are told only where the study shows them
    tell = None
    if texts_so_far is not None:
        tell = partial(texts_so_far.__setitem__, side.position)

    call = Call(
        messages=side.messages,
        stage="talk",
        item=talk.id,
        replicate=talk.number,
        on_text=tell,
    )
    try:
        async with Gateway(
            model.endpoint(), StoreCallLedger(store), model.limits, budget=budget
        ) as gateway:
            # a dialogue system finds documents first, a model is asked as it is
            if isinstance(model, SpeakerOptions):
                text, outcome, sources = await _generate_reply(
                    gateway,
                    store.secret,
                    study,
                    talk,
                    side,
                    model,
                )
            else:
                came = await gateway.ask(call)
                text = ""
                if isinstance(came, CompletedReply):
                    text = came.text.strip() if is_visible(came.text) else ""
                # an empty reply is a fault, too
                outcome = "" if text else f"{came.kind}: {came.detail}"
    except PollexError as error:
        outcome = str(error)

    # how long the participant waited for the reply
    ms = (time.perf_counter() - began) * 1000
    # a reply that names its model is marked: the participant may know it by that
    named = bool(MODEL_NAME_PATTERN.search(text))
    if model.model:
        named |= model.model.lower() in text.lower()
    return TalkTurnRow(
        talk.id,
        side.position,
        "assistant",
        text,
        format_current_time(),
        ms,
        0,
        outcome,
        bool(text) and named,
        tuple(sources),
    )


async def _generate_reply(
    gateway: ModelClient,
    salt: bytes,
    study: Study,
    talk: TalkSession,
    side: TalkSide,
    model: SpeakerOptions,
) -> tuple[str, str, list[JsonDict]]:
    """Return what a dialogue system says, or why it says nothing; and the documents that it was shown and quotes."""
    from pollex.gateway.probe import probe_endpoint  # see `ask_for_reply`

    # the endpoint is probed once for all sessions
    if not model.found:
        model.found.append(
            await probe_endpoint(
                model.endpoint(), max_wait=model.limits.max_wait, deadline=model.limits.deadline
            )
        )

    settings = model.settings.but(max_tokens=MAX_REPLY_TOKENS)
    asker = PromptAsker(
        gateway,
        model.found[0],
        DomainProfile.neutral(),
        settings,
        salt,
    )
    # a session without a topic of its own searches by its first message
    topic = SimulatedTopic(
        talk.id,
        talk.topic or side.turns[0]["text"],
        study.documents(talk.topic),
    )
    # sources that were shown in earlier turns keep their numbers
    before = []
    for source in side.sources:
        before.append(Source.model_validate(source))

    dialogue = SimulatedDialogue(
        [Turn(role=turn["role"], content=turn["text"]) for turn in side.turns],
        sources=before,
    )
    count_before = len(before)
    # A reply that can't be read is asked for twice, and again when the participant wants: never the
    # kept one.
    replicate = 2 * (talk.number + MAX_SESSIONS_OF_STUDY * side.failed)
    scene = DialogueScene(model.system, topic, SimulatedPersona("participant", ""))
    ended = await DialogueSimulator(asker, model.passages, 0).answer(
        scene,
        dialogue,
        stage="talk",
        replicate=replicate,
    )
    # why there is no reply stands in the turn's outcome
    if isinstance(ended, Unanswered):
        return "", f"{ended.outcome}: {ended.detail}", []

    # only sources that this turn added
    content = dialogue.turns[-1].content
    text = content.strip() if is_visible(content) else ""
    fresh = enumerate(dialogue.sources[count_before:], count_before + 1)
    shown = [{"number": number, **source.model_dump()} for number, source in fresh]
    return text, "" if text else "unparsable: an empty turn", [*shown, *dialogue.quotes]


def ask_for_replies(
    store: Store,
    study: Study,
    talk: TalkSession,
    profiles: Mapping[str, ModelOptions],
    budgets: Mapping[str, Budget],
    texts_so_far: dict[int, str] | None = None,
) -> str:
    """Ask all systems that owe a reply, at the same time, and keep what came at once.

    Args:
        texts_so_far: Takes what each has said so far, by position; None keeps it back until all have
            answered, so that a quicker system stands out by nothing.
    """

    async def all_of_them() -> list[TalkTurnRow]:
        # sides that wait for a reply; systems without a profile never answer
        owed = []
        for side in talk.open(study):
            if side.owed and side.system in profiles:
                owed.append(side)

        models = []
        for side in owed:
            models.append((side, profiles[side.system], budgets.get(side.system)))

        return await asyncio.gather(
            *(ask_for_reply(store, study, talk, *model, texts_so_far) for model in models)
        )

    # stored together, so that no system's reply comes before another's
    store.keep(asyncio.run(all_of_them()))
    return ""
