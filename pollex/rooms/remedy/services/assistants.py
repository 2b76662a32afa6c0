"""Who is asked, as a user names it: tables of a file, a function of theirs, or a folder of files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from pollex.errors import WrongUse
from pollex.rooms.remedy.agents.assistant import Assistant, build_assistant
from pollex.rooms.remedy.agents.assistant_process import DEFAULT_REPLY_SECONDS, ProcessAssistant
from pollex.runs.options import ModelOptions, ModelTable, read_model_tables

ROLE_TABLE_NAMES = ("assistant", "proposer", "second")
OPTIONS_OF_COMMAND = ("retry_refused", "no_prompts", "by_batch", "batch_files", "batch_api")
ASSISTANT_TABLE_HINT = (
    "give [assistant] with model, and base_url, key_env, temperature, price_in, price_out, "
    "max_cost where wanted"
)


class RoleTable(ModelTable):
    """A table of a role."""

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    max_calls: int | None = Field(None, ge=0)
    concurrency: int | None = Field(None, ge=1)

    def asked_by(self, command: ModelOptions) -> ModelOptions:
        """Return the role's model, asked as the command says where the table doesn't."""
        # what the table says stands, the rest is the command's
        limits_given = self.model_dump(
            include={"max_calls", "max_cost", "concurrency"},
            exclude_none=True,
        )
        limits = replace(
            command.limits,
            price=self.price or command.limits.price,
            **limits_given,
        )
        return replace(
            self.within(),
            limits=limits,
            **{name: getattr(command, name) for name in OPTIONS_OF_COMMAND},
        )


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
    tools: Mapping[str, Callable[..., object]] = field(default_factory=dict)


def parse_assistant(
    assistant: object,
    profiles: str | Path | None,
    command: ModelOptions,
    seconds: float = DEFAULT_REPLY_SECONDS,
    *,
    live_tools: bool = False,
) -> AssistantOptions:
    """Return who is asked: `module:name`, a folder of files, an object of Python, or a table of a file of profiles.

    Args:
        command: Its limits and batches hold for all roles.
        seconds: That a reply of a function or graph may take.
        live_tools: Whether tools in the code of a module may be carried out.

    Raises:
        BadInput: See `read_model_tables`.
        WrongUse: It is none of them, or named twice.
    """
    # without profiles the assistant alone answers
    if profiles:
        tables = read_model_tables(
            Path(profiles), RoleTable, ASSISTANT_TABLE_HINT, ROLE_TABLE_NAMES
        )
    else:
        tables = {}

    # exactly once: in the profiles or by what answers
    if (assistant is None) == ("assistant" not in tables):
        hint = "by [assistant] in a file of profiles, or by what answers"
        raise WrongUse(
            "name the assistant once",
            hint=hint,
            option="assistant",
        )

    models = {}
    for role, table in tables.items():
        models[role] = table.asked_by(command)

    # by profiles, at the temperature that the table has
    if assistant is None:
        return AssistantOptions(
            models=models,
            temperature=tables["assistant"].temperature,
        )
    # a folder of files, an object of Python, or a module by name
    if isinstance(assistant, Path) or (isinstance(assistant, str) and ":" not in assistant):
        return AssistantOptions(files=require_files_folder(Path(assistant)), models=models)
    if not isinstance(assistant, str):
        return AssistantOptions(given=build_assistant(assistant), models=models)

    # what follows is imported, so only names are let through
    module, _, name = assistant.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        what = f"{assistant!r:.60} is no MODULE:FUNCTION"
        raise WrongUse(
            what,
            hint="give shop:answer for the function answer of shop.py here",
            option="assistant",
        )

    return AssistantOptions(
        given=ProcessAssistant(module, name, Path.cwd(), seconds, live_tools=live_tools),
        models=models,
    )


def require_files_folder(path: Path) -> Path:
    """Return the folder of `todo.jsonl` and `replies.jsonl`.

    Raises:
        WrongUse: There is a file of that name, or it is where Python's code stands.
    """
    if path.suffix == ".py" or (path.exists() and not path.is_dir()):
        what = f"{str(path)!r:.60} is a file"
        hint = f"give {path.stem}:FUNCTION for a function of it, or a folder for todo.jsonl and replies.jsonl"
        raise WrongUse(what, hint=hint, option="assistant")
    return path.absolute()
