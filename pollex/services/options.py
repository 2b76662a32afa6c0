"""Options that use cases share: models, runs, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin, get_type_hints

from pollex.agents.embedded import DEFAULT_MODEL
from pollex.errors import WrongUse
from pollex.gateway.budget import Limits
from pollex.gateway.endpoint import OPENAI, Endpoint
from pollex.prompts.messages import Closing
from pollex.rubrics.answers import ScaleName
from pollex.store.folder import STORE

if TYPE_CHECKING:
    from pollex.gateway.langchain import ChatModel


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model, its limits, and its settings.

    Attributes:
        model: None for the built-in roles.
        chat: A LangChain chat model in place of an endpoint.
        key_env: Name of the environment variable that holds the endpoint's key.
        scale: How rubrics are asked; `likert` and `numeric` leave the domain out of the judging.
        elicitation: `batched` or `independent`; see `agents.llm.options.LlmOptions`, also for what follows.
        value: What NetSAT adds up; see `graphs.rubric_records.JudgeRecord`.
    """

    model: str | None = None
    base_url: str | None = None
    limits: Limits = field(default_factory=Limits)
    scale: ScaleName = "occasion"
    elicitation: Literal["batched", "independent"] = "batched"
    samples: int = 1
    require: Literal["logprobs"] | None = None
    without: frozenset[str] = frozenset()
    canary: bool = True
    straight_lining: bool = True
    closing: Closing = "system"
    retry_refused: bool = False
    no_prompts: bool = False
    value: Literal["auto", "expected", "mode"] = "auto"
    embedding_model: str = DEFAULT_MODEL
    chat: ChatModel | None = None
    key_env: str = "OPENAI_API_KEY"

    @property
    def name(self) -> str | None:
        """The model's name; None for the built-in roles."""
        return self.chat.model if self.chat else self.model

    def __post_init__(self) -> None:
        """Refuse unknown values of settings.

        Raises:
            WrongUse: Says which, and those that are known.
        """
        for name, hint in get_type_hints(ModelOptions, {**globals(), "ChatModel": object}).items():
            words = [word for part in (hint, *get_args(hint)) if get_origin(part) is Literal for word in get_args(part)]
            if words and (given := getattr(self, name)) is not None and given not in words:
                raise WrongUse(f"{name} is {given!r}", remedy=f"use one of {', '.join(words)}")

    def endpoint(self) -> Endpoint:
        """Return the endpoint, with the key from the environment alone.

        A key as an option would be kept in the shell's history. White space around it, from the file that it was read
        from, is removed.
        """
        assert self.model is not None, "the built-in roles need no endpoint"
        return Endpoint(self.model, self.base_url or OPENAI, os.environ.get(self.key_env, "").strip() or None)


@dataclass(frozen=True)
class RunOptions:
    """Place and end of a run.

    Attributes:
        on_interrupt: Called when a signal asks the run to end; None leaves signals to the caller, as users of Python
            expect.
    """

    store: Path = Path(STORE)
    as_json: bool = False
    resume: bool = False
    dry_run: bool = False
    on_interrupt: Callable[[], None] | None = None
