"""How an unknown log can be read: a proposal that was tried, for a person to confirm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pollex.conversations.conversation import Conversation, messages_of
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.proposal import Unmapped, table_rows, typed_options
from pollex.formats.read_logs import read_logs
from pollex.formats.structure import Structure
from pollex.services.logs import Sources


@dataclass(frozen=True, kw_only=True)
class MappingProposal:
    """How a log can be read.

    Attributes:
        known: Whether it is read as it is, without a mapping.
        options: What to read it with, by the names of options; empty where it is known or nothing
            holds.
        columns: Each column with some values, and the part that it is taken for.
        conversations: How many come out.
        structure: What is out of the ordinary in them, in words.
        talks: The first of them, for "Is this what was said?".
        lacking: Why nothing holds; empty where something does.
    """

    known: bool
    options: dict[str, object]
    columns: tuple[dict[str, Any], ...]
    conversations: int
    structure: tuple[str, ...]
    talks: tuple[Conversation, ...]
    lacking: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it for a form."""
        return {
            "known": self.known,
            "options": self.options,
            "columns": list(self.columns),
            "conversations": self.conversations,
            "structure": list(self.structure),
            "talks": [
                {"id": talk.id, "label": talk.label.value, "messages": messages_of(talk)}
                for talk in self.talks
            ],
            "lacking": self.lacking,
        }


SHOWN = 3
"""Conversations that a proposal shows."""


def propose_mapping(sources: Sources, *, reading: ReadOptions) -> MappingProposal:
    """Return how a log can be read: what is proposed was read and looks like conversations.

    Raises:
        BadInput: A file can't be read at all, or rows of a known shape are damaged.
        WrongUse: The options contradict each other or the log.
    """
    try:
        logs = read_logs(sources, options=reading)
    except Unmapped as error:
        columns = tuple(table_rows(error.columns, error.reading))
        if error.reading is None:
            nothing: dict[str, Any] = {
                "options": {},
                "conversations": 0,
                "structure": (),
                "talks": (),
            }
            return MappingProposal(known=False, columns=columns, lacking=error.what, **nothing)
        options = typed_options(error.reading.candidate)
        return MappingProposal(
            known=False, options=options, columns=columns, **_of(error.reading.logs)
        )
    return MappingProposal(known=True, options={}, columns=(), **_of(logs))


def _of(logs: Logs) -> dict[str, Any]:
    structure = Structure()
    for conversation in logs:
        structure.look_at(conversation)
    talks: Iterable[Conversation] = logs.conversations[:SHOWN]
    return {"conversations": len(logs), "structure": tuple(structure.faults), "talks": tuple(talks)}
