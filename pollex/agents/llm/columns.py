"""The reader of columns: says which column of an unknown log holds what."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ValidationError

from pollex.agents.llm.asker import PromptAsker
from pollex.prompts.data_boundary import DataItem
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Unanswered


class NamedColumn(BaseModel):
    """A column, and the part of conversations that it holds."""

    part: str
    column: str


class NamedSpeaker(BaseModel):
    """A value of the column of roles, and whose turns it means."""

    name: str
    role: Literal["user", "assistant", "system", "tool", "none"]


class IdentifiedColumns(BaseModel):
    """What a model says of the columns of a log.

    Attributes:
        up: Values of the label, or a rule, that mean a good conversation.
        down: Those that mean a bad one.
    """

    columns: list[NamedColumn]
    speakers: list[NamedSpeaker] = []
    up: list[str] = []
    down: list[str] = []


async def identify_columns(
    asker: PromptAsker, columns: Sequence[DataItem]
) -> IdentifiedColumns | str:
    """Return what a model says of some columns, or why it says nothing."""
    value = await asker.value(
        load_prompt("map_columns"),
        columns,
        {},
        {"columns": list},
        item="",
    )
    if isinstance(value, Unanswered):
        return f"{value.outcome}: {value.detail}"

    try:
        return IdentifiedColumns.model_validate(value)
    except ValidationError:
        return "it isn't in the form that was asked for"
