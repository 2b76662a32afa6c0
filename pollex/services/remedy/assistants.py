"""Who is asked, as a user names it: tables of a file, a function of theirs, or a folder of files."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pollex.agents.assistant import Assistant, assistant_of
from pollex.errors import WrongUse
from pollex.services.options import ModelOptions, ModelTable, tables_in

ROLES = ("assistant", "proposer", "second")
AS_THE_COMMAND = ("retry_refused", "no_prompts", "by_batch", "batch_files", "batch_api")
MEND = "give [assistant] with model, and base_url, key_env, temperature, price_in, price_out, max_cost where wanted"


class RoleTable(ModelTable):
    """A table of a role."""

    temperature: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None

    def asked_by(self, command: ModelOptions) -> ModelOptions:
        """Return the role's model, asked as the command says where the table doesn't."""
        given = self.model_dump(include={"max_calls", "max_cost", "concurrency"}, exclude_none=True)
        limits = replace(command.limits, price=self.price or command.limits.price, **given)
        return replace(self.within(), limits=limits, **{name: getattr(command, name) for name in AS_THE_COMMAND})


@dataclass(frozen=True, kw_only=True)
class AssistantOptions:
    """How the assistant is asked, an object of Python, a folder of files, or a model; and who else is.

    Attributes:
        tools: Functions of the user's in place of tools, for calls that the log doesn't have.
        models: By role: the assistant, where it is a model, the proposer, and the second judge.
        temperature: Of the assistant; None: the model's own.
    """

    given: Assistant | None = None
    files: Path | None = None
    models: Mapping[str, ModelOptions] = field(default_factory=dict)
    temperature: float | None = None
    tools: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def named_assistant(given: Any, profiles: str | Path | None, command: ModelOptions) -> AssistantOptions:
    """Return who is asked: `module:name`, a folder of files, an object of Python, or a table of a file of profiles.

    Args:
        command: Its limits and batches hold for all roles.

    Raises:
        BadInput: See `tables_in`.
        WrongUse: It is none of them, or named twice.
    """
    tables = tables_in(Path(profiles), RoleTable, MEND, ROLES) if profiles else {}
    if (given is None) == ("assistant" not in tables):
        remedy = "by [assistant] in a file of profiles, or by what answers"
        raise WrongUse("name the assistant once", remedy=remedy, option="assistant")
    models = {role: one.asked_by(command) for role, one in tables.items()}
    if given is None:
        return AssistantOptions(models=models, temperature=tables["assistant"].temperature)
    if isinstance(given, Path) or (isinstance(given, str) and ":" not in given):
        return AssistantOptions(files=Path(given), models=models)
    if not isinstance(given, str):
        return AssistantOptions(given=assistant_of(given), models=models)
    module, _, name = given.partition(":")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)  # as `python -m` has it: the function stands in a file of the user's
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        remedy = "give MODULE:FUNCTION of a module in this folder, or a folder for todo.jsonl and replies.jsonl"
        raise WrongUse(f"{given!r:.60} can't be imported: {error}", remedy=remedy, option="assistant") from error
    finally:
        sys.path.remove(folder)
    return AssistantOptions(given=assistant_of(found), models=models)
