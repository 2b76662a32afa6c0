"""Use cases with a door in the browser: what stands first on their forms, and which fields make no sense there.

A room names its own in a module of its own, `web/doors/hooks.py`, as the tuple `HOOKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from pollex.rooms import find_module, list_hooks
from pollex.text import JsonDict
from pollex.usecases.use_case import USE_CASES_BY_MODULE, UseCase
from pollex.web.faults import NotFound
from pollex.web.hooks import TemplateValues

if TYPE_CHECKING:
    from pollex.services.results import Result

DEFAULT_MAX_COST = 5.0
DEFAULT_MAX_CALLS = 20_000
"""Limits of a run that somebody begins in the browser and sets none for."""

REASONS_NOT_ON_FORMS: Mapping[str, str] = {
    "store": "it is the store that this server shows",
    "resume": "a run's page goes on with it",
    "verbose": "the page of the command shows all that it says",
    "langsmith": "the owner of the server says where traces go",
    "batch_files": "it is a folder of the server",
    "embedding_model": "it is a folder of the server, or is downloaded to it",
    "start": "the states on a run's page do this",
    "out": "the store keeps what comes of it, and its page gives it as a file",
    "page": "the store keeps what comes of it, and pages show it",
    "junit": "only a build reads it",
    "github": "only a build reads it",
    "engine": "it writes a folder of the server",
    "workers": "the owner of the server says how much of it is used",
    "address": "it is the address of a cluster of the server's owner",
    "events": "the owner of the server says where scores are sent",
    "form": "it writes a file for another tool",
    "assistant": "it would run code of the server",
    "questionnaire": "a queue of the Label page asks one",
    "calibrator": "the Calibration page has it",
}
"""Fields that no form has, with the reason."""


@dataclass(frozen=True)
class UseCaseDoor:
    """How a use case looks in the browser.

    Attributes:
        verb: Of the use case.
        title: What it does, as a heading.
        lead: One sentence on what one gets.
        button: Words of the button that begins it.
        first: Fields that stand in front; all others are folded under *More*.
        left_out: Fields that only this form lacks, with the reason.
        usual: What fields hold before anybody typed.
        needs_set: Whether it can't be begun before there is a rubric set.
        needs_model: Whether nothing can be done without a model.
        sends: What of the log goes to the model, as the beginning of a sentence.
        result: Name of the file that it writes beside the store, if it wants one.
        labels: Labels of fields that this form calls otherwise.
        helps: What fields are for, where the terminal's words say nothing here.
        two_logs: Two logs are chosen, before and after, or one.
        quick: It is done in seconds, and waits for no command before it.
        answers: Words of a choice's values, by the field's name.
    """

    verb: str
    title: str
    lead: str
    button: str
    first: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, object] = field(default_factory=dict)
    needs_set: bool = True
    needs_model: bool = False
    sends: str = "The words of the conversations, and what is asked about them,"
    result: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    helps: Mapping[str, str] = field(default_factory=dict)
    two_logs: bool = False
    quick: bool = False
    answers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Its name in addresses."""
        return self.verb.replace(" ", "-")

    @property
    def use_case(self) -> type[UseCase[Result]]:
        """The class whose fields the form has."""
        # the module of a use case is imported when its form is needed
        home = find_module("usecases", self.verb.partition(" ")[0])
        assert home is not None, "a door is of a verb"
        import_module(home)

        return next(kind for kind in USE_CASES_BY_MODULE[home] if kind.verb == self.verb)

    def reason_against(self, name: str) -> str | None:
        """Return why the form has no such field; None where it has."""
        return self.left_out.get(name) or REASONS_NOT_ON_FORMS.get(name)


@dataclass(frozen=True)
class ResultView:
    """How the result of a use case is shown once its command is done.

    Attributes:
        verb: Of the use case.
        template: What shows the result, which is there as `result`.
        figures: Makes of the result's JSON values what else fills the template.
    """

    verb: str
    template: str
    figures: Callable[[JsonDict], TemplateValues]


DEFAULT_LIMITS = {"max_cost": DEFAULT_MAX_COST, "max_calls": DEFAULT_MAX_CALLS}


def list_doors() -> tuple[UseCaseDoor, ...]:
    """Return the doors of all rooms, the core's first."""
    return list_hooks(UseCaseDoor)


def get_door(slug: str) -> UseCaseDoor:
    """Return a door. Raises NotFound where there is none."""
    for door in list_doors():
        if door.slug == slug:
            return door

    raise NotFound(
        f"nothing called {slug[:60]!r} can be begun here",
        hint=f"what can be: {', '.join(door.slug for door in list_doors())}",
    )
