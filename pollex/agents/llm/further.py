"""Roles of `learn` beside extractor, summarizer, deduplicator and judge: each works in a step of its own.

A module of this folder that names its class as `FURTHER_ROLE` adds one: it is hired with the others,
stands in the record of a run, and its calls are planned. The node that asks it finds it by its name
in `Roles.further`.
"""

import pkgutil
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import ClassVar

from pollex.agents import llm
from pollex.agents.llm.asker import ModelRole, PromptAsker
from pollex.gateway.calls import Call
from pollex.prompts.prompt import Prompt
from pollex.rubrics.rubric import Rubric


class FurtherRole(ModelRole):
    """A role beside the four that every run has, asked about rubrics of the pool.

    Attributes:
        role: Its name in a run.
        rubrics_a_call: How many one call is about at most.
        in_paper: Whether RUBICON's paper has it.
    """

    role: ClassVar[str]
    rubrics_a_call: ClassVar[int]
    in_paper: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def list_prompts(cls) -> Sequence[Prompt]:
        """Return all prompts that the role asks with."""

    @classmethod
    @abstractmethod
    def make_usual_call(cls, asker: PromptAsker, rubrics: Sequence[Rubric]) -> Call:
        """Return a call of usual size about so many rubrics, for a plan."""

    def __init__(self, asker: PromptAsker) -> None:
        super().__init__(asker, self.list_prompts())


@cache
def _import_further_roles() -> tuple[type[FurtherRole], ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(llm.__path__))
    modules = [import_module(f"{llm.__name__}.{name}") for name in names]
    return tuple(module.FURTHER_ROLE for module in modules if getattr(module, "FURTHER_ROLE", None))


def list_further_roles(prompts: str) -> list[type[FurtherRole]]:
    """Return the classes of further roles, for prompts of a kind: `paper` for those of RUBICON's paper alone."""
    return [kind for kind in _import_further_roles() if kind.in_paper or prompts != "paper"]
