"""Sessions of a study: who said what to which system, what is next, and how a system is asked."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pollex.errors import PollexError
from pollex.gateway.budget import Budget
from pollex.services.options import ModelOptions
from pollex.store.desk import TalkEndRow, TalkRow, TalkTurnRow
from pollex.store.store import Store
from pollex.store.tables import now, unpacked
from pollex.web.studies import Study

NAMES_A_MODEL = re.compile(
    r"\b(?:(?:chat)?gpt|openai|claude|anthropic|gemini|bard|llama|mistral|mixtral|qwen|deepseek|grok|cohere|copilot)\b",
    re.IGNORECASE,
)
"""A reply that names a model may tell participants which system it is; its session is marked."""

Phase = Literal["talk", "wait", "failed", "sheet", "done", "left"]

LEFT, TALKED = "left", "talked"


@dataclass
class Side:
    """One system of a session: what was said, and what was answered about it.

    Attributes:
        position: Place in the session; the participant knows the system by it.
        system: Name of its profile.
        turns: Kept turns of both, in order.
        fault: Why the last message has no reply; empty while none failed.
        answers: Value and reason by question.
    """

    position: int
    system: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""
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
    def messages(self) -> list[dict[str, str]]:
        """What the system is sent."""
        return [{"role": turn["role"], "content": turn["text"]} for turn in self.turns]


@dataclass(frozen=True)
class Talk:
    """A session with everything that was said in it."""

    id: str
    study: str
    number: int
    annotator: str
    topic: str
    time: str
    sides: tuple[Side, ...]
    left: bool = False

    def open(self, study: Study) -> list[Side]:
        """Return the sides that are talked to now; none while a sheet is due, or at the end."""
        if self.left:
            return []
        due = next((side for side in self.sides if not side.answers), None)
        sides = [*self.sides] if study.design == "side-by-side" else [due] if due else []
        # After the last message its reply is still to come, and to be read: the participant ends it.
        return [] if any(side.talked for side in sides) else sides

    def sheet(self, study: Study) -> Side | None:
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

    def phase(self, study: Study, *, at_work: bool) -> Phase:
        """Return what the participant has before them."""
        if self.done or self.left:
            return "done" if self.done else "left"
        sides = self.open(study)
        if not sides:
            return "sheet"
        if any(side.owed for side in sides):
            return "wait" if at_work else "failed"
        return "talk"


SESSIONS = "SELECT * FROM talks WHERE study = ?1 AND (?2 = '' OR annotator = ?2) ORDER BY number"
TURNS = (
    "SELECT t.* FROM talks AS s JOIN talk_turns AS t ON t.talk = s.id "
    "WHERE s.study = ?1 AND (?2 = '' OR s.annotator = ?2) ORDER BY t.rowid"
)
ANSWERS = (
    "SELECT t.* FROM talks AS s JOIN talk_answers AS t ON t.talk = s.id "
    "WHERE s.study = ?1 AND (?2 = '' OR s.annotator = ?2) ORDER BY t.rowid"
)
ENDS = (
    "SELECT t.* FROM talks AS s JOIN talk_ends AS t ON t.talk = s.id "
    "WHERE s.study = ?1 AND (?2 = '' OR s.annotator = ?2) ORDER BY t.rowid"
)


def talks_of(store: Store, study: str, annotator: str = "") -> list[Talk]:
    """Return the sessions of a study, or of one participant, in the order in which they began."""
    given = [study, annotator]
    rows = store.rows(SESSIONS, given)
    sides = {row["id"]: tuple(Side(i, name) for i, name in enumerate(unpacked(row["systems"]))) for row in rows}
    for row in store.rows(TURNS, given):
        _take_turn(sides[row["talk"]][row["position"]], row)
    for row in store.rows(ANSWERS, given):
        sides[row["talk"]][row["position"]].answers[row["question"]] = (unpacked(row["value"]), row["skip"])
    left = set[str]()
    for row in store.rows(ENDS, given):
        sides[row["talk"]][row["position"]].talked = True
        left |= {row["talk"]} if row["why"] == LEFT else set()
    kept = ("id", "study", "number", "annotator", "topic", "time")
    return [Talk(**{name: row[name] for name in kept}, sides=sides[row["id"]], left=row["id"] in left) for row in rows]


def _take_turn(side: Side, row: Mapping[str, Any]) -> None:
    side.fault = row["outcome"]
    if not row["outcome"]:
        side.turns.append({"role": row["role"], "text": row["text"], "ms": row["ms"], "edits": row["edits"]})
    side.marked = side.marked or bool(row["marked"])


async def begin(store: Store, study: Study, annotator: str) -> Talk:
    """Begin a participant's session, or return the one that they have."""
    if not (found := talks_of(store, study.id, annotator)):
        number = store.value("SELECT count(*) FROM talks WHERE study = ?", [study.id])
        systems, topic = study.session(number)
        await store.write([TalkRow(secrets.token_hex(6), study.id, number, annotator, systems, topic, now())])
        found = talks_of(store, study.id, annotator)
    return found[0]


def message(talk: Talk, sides: Sequence[Side], text: str, ms: float, edits: int) -> list[TalkTurnRow]:
    """Return a participant's message to each side, as rows."""
    moment = now()
    return [TalkTurnRow(talk.id, side.position, "user", text, moment, ms, edits) for side in sides]


def ended(talk: Talk, sides: Sequence[Side], why: str) -> list[TalkEndRow]:
    """Return the end of talking to sides, as rows."""
    moment = now()
    return [TalkEndRow(talk.id, side.position, why, moment) for side in sides]


async def reply(
    store: Store, talk: Talk, side: Side, model: ModelOptions, budget: Budget | None, said: dict[int, str] | None
) -> TalkTurnRow:
    """Ask a system for its next turn; what goes wrong is the row's outcome."""
    from pollex.gateway.calls import Call  # the client behind it takes a second to import
    from pollex.gateway.gateway import Gateway
    from pollex.gateway.outcomes import Completed
    from pollex.store.ledger import StoreLedger

    began, text, outcome = time.perf_counter(), "", ""
    # The session's number in the key: who types what somebody else typed talks to the system, not to its old reply.
    tell = None if said is None else partial(said.__setitem__, side.position)
    call = Call(messages=side.messages, stage="talk", item=talk.id, replicate=talk.number, on_text=tell)
    try:
        async with Gateway(model.endpoint(), StoreLedger(store), model.limits, budget=budget) as gateway:
            came = await gateway.ask(call)
        text = came.text.strip() if isinstance(came, Completed) else ""
        outcome = "" if text else f"{came.kind}: {came.detail}"
    except PollexError as error:
        outcome = str(error)
    ms = (time.perf_counter() - began) * 1000
    named = bool(NAMES_A_MODEL.search(text)) or (model.model or "").lower() in text.lower()
    return TalkTurnRow(talk.id, side.position, "assistant", text, now(), ms, 0, outcome, bool(text) and named)


async def replies(
    store: Store,
    talk: Talk,
    sides: Sequence[Side],
    profiles: Mapping[str, ModelOptions],
    budgets: Mapping[str, Budget],
    said: dict[int, str] | None = None,
) -> str:
    """Ask all systems that owe a reply, at the same time, and keep what came at once.

    Args:
        said: Takes what each has said so far, by position; None keeps it back until all have answered, so that a
            quicker system stands out by nothing.
    """

    async def all_of_them() -> list[TalkTurnRow]:
        owed = [side for side in sides if side.owed and side.system in profiles]
        asked = [reply(store, talk, side, profiles[side.system], budgets.get(side.system), said) for side in owed]
        return await asyncio.gather(*asked)

    # In a thread: the client takes a second to import, and its connections belong to one event loop.
    await store.write(await asyncio.to_thread(asyncio.run, all_of_them()))
    return ""
