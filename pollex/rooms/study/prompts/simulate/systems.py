"""The dialogue systems that can be simulated, and their prompts."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pollex.errors import WrongUse
from pollex.prompts.prompt import Prompt, parse_prompt

SYSTEMS_FOLDER = Path(__file__).parent


class DialogueSystem(BaseModel):
    """A dialogue system.

    Attributes:
        whole: Whether one call writes the whole dialogue.
        retrieval: How documents are found: those that the topic names, or by BM25.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    purpose: str
    whole: bool
    retrieval: Literal["none", "named", "topic", "dialogue", "query"]


def load_systems() -> dict[str, DialogueSystem]:
    """Return all systems by name."""
    tables = tomllib.loads((SYSTEMS_FOLDER / "systems.toml").read_text("utf-8"))
    return {name: DialogueSystem(name=name, **fields) for name, fields in tables.items()}


def find_systems(names: Sequence[str]) -> list[DialogueSystem]:
    """Return the systems with these names, each once.

    Raises:
        WrongUse: There is no such system, or none is named.
    """
    # in whatever case they were typed, each once
    by_name = load_systems()
    chosen_names = list(dict.fromkeys(name.strip().upper() for name in names if name.strip()))
    unknown = []
    for name in chosen_names:
        if name not in by_name:
            unknown.append(name)

    # all unknown names at once
    if unknown or not chosen_names:
        if unknown:
            what = f"no such dialogue system: {', '.join(unknown)}"
        else:
            what = "no dialogue system"

        raise WrongUse(
            what,
            hint=f"choose from {', '.join(by_name)}",
            option="systems",
        )

    return [by_name[name] for name in chosen_names]


def load_prompt(name: str) -> Prompt:
    """Return one of the prompts beside this module."""
    return parse_prompt(name, (SYSTEMS_FOLDER / f"{name}.md").read_text("utf-8"))


def list_prompts() -> list[Prompt]:
    """Return all of them."""
    return [load_prompt(file.stem) for file in sorted(SYSTEMS_FOLDER.glob("*.md"))]
