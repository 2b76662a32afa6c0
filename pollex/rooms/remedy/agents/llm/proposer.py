"""The proposer: reads a prompt, what it doesn't do, and exchanges, and proposes small changes."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ValidationError

from pollex.agents.llm.asker import PromptAsker
from pollex.prompts.data_boundary import DataItem
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Unanswered

MAX_HUNKS_PER_PROPOSAL = 3


class PromptHunk(BaseModel):
    """One change of a prompt.

    Attributes:
        line: The line after which text is inserted, or that is replaced; from 1, 0 for the
            beginning.
        examples: Numbers of the exchanges that motivate it.
    """

    kind: Literal["insert", "replace"]
    line: int
    text: str
    purpose: str
    examples: list[int]


async def propose_hunks(
    asker: PromptAsker, items: Sequence[DataItem], number: int
) -> list[PromptHunk] | str:
    """Return the hunks of one proposal, at the model's own temperature, or why there are none."""
    # no temperature is sent, so the model's own applies
    call_settings = {
        "stage": "propose",
        "item": "",
        "temperature": None,
        "replicate": 10 * number,
    }
    value = await asker.value(
        load_prompt("propose_edit"),
        items,
        {},
        {"hunks": list},
        **call_settings,
    )
    # a failed call is told in place of a proposal
    if isinstance(value, Unanswered):
        return f"{value.outcome}: {value.detail}"

    try:
        hunks = []
        for raw_hunk in value["hunks"]:
            hunks.append(PromptHunk.model_validate(raw_hunk))
    except ValidationError:
        return "it isn't in the form that was asked for"

    # few hunks: a small change can be told from another
    if 0 < len(hunks) <= MAX_HUNKS_PER_PROPOSAL:
        return hunks
    return f"{len(hunks)} hunks, 1 to {MAX_HUNKS_PER_PROPOSAL} are asked for"
