"""Studies: which systems people talk to, in which order, on what, and what they are asked then."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pollex.errors import UNREADABLE, BadInput
from pollex.formats.questionnaires import LARGEST, SheetQuestion, bundled
from pollex.services.options import ModelOptions
from pollex.store.desk import StudyRow
from pollex.store.store import Store
from pollex.store.tables import now
from pollex.text import parse_toml
from pollex.web.faults import Fault, NotThere
from pollex.web.profiles import Speaker
from pollex.web.questions import of_toml

MEND = "it wants title, systems (names of profiles), and a [[question]] for each question, or questionnaire = FILE"
MAIN = "main"

Words = Annotated[str, Field(max_length=4000)]


class NamedTopic(BaseModel):
    """A topic with the documents that answer it, for DS2."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Words
    documents: tuple[str, ...]


class Study(BaseModel):
    """A study as its file has it.

    Attributes:
        systems: Names of profiles; participants never see them.
        topics: One for each session; none lets people choose their own.
        design: One system a session, all beside each other, or one after another.
        turns: Fewest and most messages of the participant to a system.
        whole: Whether replies are shown when they are there, and not while they are written: speed is no clue then.
        seed: Of the order of systems and topics.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1, max_length=200)
    welcome: Words = ""
    instructions: Words = ""
    consent: Words = ""
    thanks: Words = "Thank you. Your answers are kept."
    systems: tuple[str, ...] = Field(min_length=1, max_length=9)
    topics: tuple[Words | NamedTopic, ...] = ()
    design: Literal["one", "side-by-side", "one-after-other"] = "one"
    turns: tuple[int, int] = (2, 12)
    whole: bool = False
    seed: int = Field(0, ge=0)
    questions: tuple[SheetQuestion, ...] = Field(min_length=1)

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
        # Without what is as it was before there was a choice: a study that is kept stays the same one.
        told = self.model_dump_json(exclude=None if self.whole else {"whole"})
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def session(self, number: int) -> tuple[tuple[str, ...], str]:
        """Return the systems of a session in order, and its topic.

        Each block of as many sessions as there are systems has every system at every place once, in an order drawn
        from the seed; with a topic of its own, so that each system gets each topic equally often.
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
        named = [one for one in self.topics if isinstance(one, NamedTopic)]
        return next((one.documents for one in named if one.text == topic), ())


@dataclass(frozen=True)
class NamedStudy:
    """A study of the store."""

    id: str
    time: str
    study: Study


def read_study(path: Path) -> Study:
    """Read a study from its file.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        tables = parse_toml(text)
        named = tables.pop("questionnaire", None)
        questions = path if named is None else bundled(named) or path.parent / named
        asked = of_toml(text if questions == path else questions.read_text(encoding="utf-8-sig"))
        if len(text.encode()) > LARGEST:
            raise BadInput("the study is over 64 kB", where=str(path), remedy="shorten it")
        rest = {name: value for name, value in tables.items() if name not in ("question", MAIN)}
        return Study.model_validate(rest | {"questions": asked})
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it can't be read: {error}", where=str(path), remedy=UNREADABLE) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise BadInput(what, where=str(path), remedy=MEND) from error
    except Fault as error:
        raise BadInput(error.what, where=str(path), remedy=error.advice) from error
    except (ValueError, TypeError) as error:
        raise BadInput(f"not valid TOML: {error}", where=str(path), remedy=MEND) from error


def read_studies(paths: Sequence[Path], profiles: Mapping[str, ModelOptions]) -> list[StudyRow]:
    """Read studies as rows of the store.

    Raises:
        BadInput: One can't be read, or names a system that no profile describes, or a document that isn't there.
    """
    found = []
    for path in paths:
        study = read_study(path)
        if strangers := [name for name in study.systems if name not in profiles]:
            remedy = f"name them in the file of --profiles, which has {', '.join(profiles) or 'none'}"
            raise BadInput(f"no profile is called {', '.join(strangers)}", where=str(path), remedy=remedy)
        speakers = [one for name in study.systems if isinstance(one := profiles[name], Speaker)]
        for speaker in speakers:
            _require_documents(study, speaker, path)
        if speakers:  # their replies can't be shown in pieces: nobody is to know them by that
            study = study.model_copy(update={"whole": True})
        found.append(StudyRow(study.id, now(), study.model_dump_json()))
    return found


def _require_documents(study: Study, speaker: Speaker, path: Path) -> None:
    """Refuse topics without the documents that a system is given, or with others than there are."""
    known = {passage.document for passage in speaker.passages.all}
    for topic in study.topics or ("",):
        named = () if isinstance(topic, str) else topic.documents
        if speaker.system.retrieval == "named" and not named:
            what = f"{speaker.system.name} is given the documents that topics name, and one names none"
            remedy = 'write it as `{text = "…", documents = ["FILE"]}`'
            raise BadInput(what, where=str(path), remedy=remedy)
        if known and (missing := sorted(set(named) - known)):
            what = f"a topic names {missing[0]}, which is not among the documents of {speaker.system.name}"
            raise BadInput(what, where=str(path), remedy="give the path within the folder of its profile")


def studies_of(store: Store) -> list[NamedStudy]:
    """Return all studies of a store, the last one first."""
    rows = store.rows("SELECT id, min(time) AS time, payload FROM studies GROUP BY id ORDER BY min(rowid) DESC")
    return [NamedStudy(row["id"], row["time"], Study.model_validate_json(row["payload"])) for row in rows]


def study_of(store: Store, study_id: str) -> Study:
    """Return a study. Raises NotThere where there is none."""
    found = store.value("SELECT payload FROM studies WHERE id = ?", [study_id])
    if found is None:
        raise NotThere("there is no such study", remedy="name its file at the start", option="study")
    return Study.model_validate_json(found)
