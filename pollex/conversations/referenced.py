"""Questions with reference answers, as AlignBench has them, and the answers of a system under test to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from pollex.conversations.languages import foreign, speaks_of_languages
from pollex.conversations.model import Conversation, Turn
from pollex.conversations.rows import BadRow

NO_REFERENCE = "no reference"
REFERENCE_LANGUAGE = "reference in another language than the question"
ANSWER_LANGUAGE = "answer in another language than the question"


class Evidence(BaseModel):
    """What a reference rests on: a passage, and where it stands."""

    model_config = ConfigDict(frozen=True)

    url: str = ""
    quote: str


class Case(BaseModel):
    """A question, what is known of its answer, and the answer that is to be graded.

    Attributes:
        reference: A curated answer; empty where there is none.
        answer: Of the system under test; None where there is none.
        answered_by: The system under test, where its name is known.
        human: A person's grade of that answer.
        unanswered: Why there is no answer, where a system was asked.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    reference: str = ""
    evidences: tuple[Evidence, ...] = ()
    category: str = ""
    subcategory: str = ""
    answer: str | None = None
    answered_by: str = ""
    human: float | None = None
    unanswered: str = ""

    @property  # not cached: `model_copy` would take what was cached along
    def conversation(self) -> Conversation:
        """The question and the answer as a conversation; all else is metadata."""
        turns = [Turn(role="user", content=self.question)]
        turns += [] if self.answer is None else [Turn(role="assistant", content=self.answer)]
        about = self.model_dump(exclude={"id", "question", "answer"})
        return Conversation(id=self.id, turns=tuple(turns), metadata=about)

    @classmethod
    def of(cls, conversation: Conversation) -> Case:
        """The case that a conversation was made of."""
        said = {turn.role: turn.content for turn in conversation.turns}
        known = {name: value for name, value in conversation.metadata.items() if name in cls.model_fields}
        return cls(**known | {"id": conversation.id, "question": said.get("user", ""), "answer": said.get("assistant")})

    @property
    def flags(self) -> tuple[str, ...]:
        """What is odd about it. Of languages only what script and small words show; see `languages`."""
        found = [] if self.reference else [NO_REFERENCE]
        if not speaks_of_languages(self.question):
            found += [REFERENCE_LANGUAGE] if foreign(self.reference, self.question) else []
            found += [ANSWER_LANGUAGE] if foreign(self.answer or "", self.question) else []
        elif foreign(self.answer or "", self.reference):
            found += [ANSWER_LANGUAGE]  # a question that asks for a language: the reference is in it
        return tuple(found)


@dataclass(frozen=True)
class Cases:
    """What was read.

    Attributes:
        bad_rows: Rows that were left out, and why.
        notes: What a reader of results should know.
    """

    cases: tuple[Case, ...]
    bad_rows: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    @cached_property
    def fingerprint(self) -> str:
        """Of all that was read, in its order."""
        digest = hashlib.sha256()
        for case in self.cases:
            digest.update(case.model_dump_json().encode("utf-8", "replace") + b"\n")
        return digest.hexdigest()
