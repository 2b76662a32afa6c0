"""What the options of `pollex judge` ask for: a question, its answers, and the rule by which a rating stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin, get_type_hints

from pollex.agents.embedded import DEFAULT_MODEL
from pollex.agents.llm.parsing import as_read
from pollex.agents.votes import Rule
from pollex.errors import UNREADABLE, BadInput, WrongUse
from pollex.gateway.budget import Limits
from pollex.gateway.endpoint import OPENAI, Endpoint
from pollex.prompts.grading.profile import DEFAULT
from pollex.prompts.messages import Closing
from pollex.rubrics.answers import ScaleName
from pollex.store.place import STORE

if TYPE_CHECKING:
    from pollex.graphs.judge.run import Task


PROFILE = "chinese"


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """What a user may choose beside questions and model.

    Attributes:
        profile: A bundled profile's name or a file; its temperatures count.
        system: What the model is told before each question.
    """

    profile: str = DEFAULT
    system: str = ""
    max_tokens: int = 4096
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What the command line's options of the same names say.

    Attributes:
        runs: n of the ensemble.
        named: The run to go on with; `last` for the last one, None for a new one.
    """

    question: str | None
    options: str
    runs: int
    minimum: int | None
    panel: tuple[str, ...]
    variant: Literal["v0", "v1", "v2", "v3", "v4"]
    domain: Path | None
    instructions: Path | None
    tau: float | None
    tau_agree: bool
    tau_precision: float | None
    stop_early: bool
    seed: int
    out: Path
    accepted: Path | None
    for_humans: Path | None
    answers: Path | None
    ask: bool
    named: str | None = None

    @property
    def texts(self) -> list[str]:
        """The answers that may be given."""
        found = [option.strip() for option in self.options.split(",") if option.strip()]
        # As answers are read: two options that are alike there would be one, and the second's votes the first's.
        read = {as_read(option).casefold() for option in found}
        if len(found) < 2 or len(read) < len(found):
            remedy = "give at least two different ones: --options yes,no"
            raise WrongUse(f"{self.options!r} are no answers to choose from", remedy=remedy)
        return found

    def task(self, model: str | None) -> Task:
        """The question and the rule."""
        from pollex.graphs.judge.run import Task, asked  # the store behind it takes half a second to import

        if self.question is None or not self.question.strip():
            raise WrongUse("no question", remedy='give one: --question "Was the task completed?"')
        if (self.tau is not None) + self.tau_agree + (self.tau_precision is not None) > 1:
            raise WrongUse("several rules for τ", remedy="give one of --tau, --tau-agree and --tau-precision")
        if self.tau_precision is not None and self.stop_early:
            raise WrongUse("τ can't be fitted to runs that were never asked", remedy="leave out --stop-early")
        rule = Rule.of(self.runs, minimum=self.minimum, tau=self.tau)
        if self.tau_precision is not None:
            rule = replace(rule, tau=None)
        by = "embedded" if model is None else f"{', '.join([model, *self.panel])}, prompt {self.variant}"
        return Task(asked(self.question, self.texts), rule, self.tau_precision, by)

    def told(self) -> str:
        """What human raters are told; empty where no file says it."""
        if self.instructions is None:
            return ""
        try:
            return self.instructions.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            what = f"the instructions can't be read: {error}"
            raise BadInput(what, where=str(self.instructions), remedy=UNREADABLE) from error


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, how hard it may be worked, and what it is asked for.

    Attributes:
        model: None for the embedded roles.
        scale: How rubrics are asked; all but `likert-domain` leave the domain out of the judging.
        elicitation: `batched` or `independent`; see `agents.llm.options.LlmOptions`, also for what follows.
        value: What NetSAT adds up; see `graphs.rubric_records.JudgeRecord`.
    """

    model: str | None = None
    base_url: str | None = None
    limits: Limits = field(default_factory=Limits)
    scale: ScaleName = "likert-domain"
    elicitation: Literal["batched", "independent"] = "batched"
    samples: int = 1
    require: Literal["logprobs"] | None = None
    without: frozenset[str] = frozenset()
    canary: bool = True
    straight_lining: bool = True
    closing: Closing = "system"
    retry_refused: bool = False
    value: Literal["auto", "expected", "mode"] = "auto"
    embedding_model: str = DEFAULT_MODEL

    def __post_init__(self) -> None:
        """Refuses words that nobody would heed.

        Raises:
            WrongUse: Says which, and those that are known.
        """
        for name, hint in get_type_hints(ModelOptions).items():
            words = [word for part in (hint, *get_args(hint)) if get_origin(part) is Literal for word in get_args(part)]
            if words and (given := getattr(self, name)) is not None and given not in words:
                raise WrongUse(f"{name} is {given!r}", remedy=f"use one of {', '.join(words)}")

    def endpoint(self) -> Endpoint:
        """Where to ask. The key comes from the environment alone, so that it stands in no shell history.

        White space around it is what a file that it was read from ended with.
        """
        assert self.model is not None, "the embedded roles need no endpoint"
        return Endpoint(self.model, self.base_url or OPENAI, os.environ.get("OPENAI_API_KEY", "").strip() or None)


@dataclass(frozen=True)
class RunOptions:
    """Where a run is kept, and how it ends.

    Attributes:
        on_interrupt: Told that a signal asks the run to end; None leaves signals to the caller, as Python's users want.
    """

    store: Path = Path(STORE)
    as_json: bool = False
    resume: bool = False
    dry_run: bool = False
    on_interrupt: Callable[[], None] | None = None


@dataclass(frozen=True)
class ReferenceOptions:
    """What a user may choose beside questions, answers and model.

    Attributes:
        profile: A bundled profile's name or a file.
        plain: Whether a judge without references grades, too.
        human: Files of people's grades.
        human_field: Their field's name, in those files, or else in the questions' or answers'.
        category_field: The field of the task's category, or type.
        page: Where the page goes; beside the grades when left out.
    """

    profile: str = PROFILE
    plain: bool = False
    human: tuple[str, ...] = ()
    human_field: str | None = None
    category_field: str | None = None
    page: Path | None = None
