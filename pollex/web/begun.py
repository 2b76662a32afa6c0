"""What somebody asks for on a form: read, checked by the use case itself, and started as a command."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.errors import PollexError
from pollex.prompts.domain import write_toml_value
from pollex.runs.options import ModelOptions
from pollex.store.folder import make_private_folder
from pollex.store.runs import Run
from pollex.usecases.families import parse_two_numbers
from pollex.web import links
from pollex.web.children import Child
from pollex.web.controls import (
    ASSISTANT_PREFIX,
    MODEL_OPTIONS,
    Control,
    asks_a_model,
    get_label,
    make_controls,
    make_option_words,
    names_a_model,
    read_profile,
    replace_options_by_labels,
    write_command,
)
from pollex.web.doors.hooks import DEFAULT_MAX_COST, UseCaseDoor
from pollex.web.faults import RequestError
from pollex.web.kept_commands import (
    ASKED_FOLDER,
    ASSISTANT_KEY_VARIABLE,
    KEY_VARIABLE,
    TEXTS_FOLDER,
    list_named_addresses,
)
from pollex.web.logs_at_hand import BUNDLED_GROUP_FIELD, BUNDLED_LOG_ID, list_available_logs
from pollex.web.output_names import OUT_OPTION, find_free_path, rename_output
from pollex.web.site import NamedSet, Site
from pollex.web.typed_endpoints import require_endpoint

MAX_FORMS_REMEMBERED = 200

OptionValues = dict[str, Any]
"""Values of a use case's options by name, each of the type that its option says."""

BY_FILES_FIELD = f"{ASSISTANT_PREFIX}as"
"""Field of the form: how the assistant is asked, by its model or by files."""
PROFILE_FIELD = "profile"
"""Field of the form: the name of a model of the server's owner."""


@dataclass(frozen=True)
class AskedModel:
    """The model that a command asks.

    Attributes:
        base_url: Empty where the server's settings say.
        key_env: Variable of the server with the owner's key, for a model that the owner named.
        is_named: Whether the owner of the server named the address, so that the server's key may go there.
        secret_address: Whether the address holds a key, so that no command line shows it.
    """

    model: str
    base_url: str = ""
    key_env: str = KEY_VARIABLE
    is_named: bool = True
    secret_address: bool = False

    def environment(self, keys: Mapping[str, str]) -> dict[str, str]:
        """Return what the command finds in its environment: a key that was typed comes before the owner's."""
        # the form names the model, and a variable of the server must not
        variables = {"POLLEX_MODEL": ""}
        if self.secret_address:
            variables["POLLEX_BASE_URL"] = self.base_url

        # the owner's key goes only to addresses that the owner named
        owners = ""
        if self.is_named:
            owners = os.environ.get(self.key_env, "")

        return variables | {KEY_VARIABLE: keys.get(self.base_url) or owners}


@dataclass(frozen=True)
class CommandForm:
    """A use case as it was asked for on a form.

    Attributes:
        typed: What the form held, without the key.
        logs: Values of the logs that were chosen.
        words: The command behind `pollex`.
        asking: None where no model judges.
        assistant: The model that answers as the assistant; None where none is asked.
    """

    id: str
    door: UseCaseDoor
    typed: Mapping[str, str]
    logs: tuple[str, ...]
    words: tuple[str, ...]
    asking: AskedModel | None
    assistant: AskedModel | None = None

    @property
    def command(self) -> str:
        """The same in a terminal."""
        return write_command(self.words)

    @property
    def title(self) -> str:
        """What is at work, for lists."""
        return self.door.title


def read_form(
    site: Site,
    door: UseCaseDoor,
    typed: Mapping[str, str],
    logs: Sequence[str],
    key: str = "",
    assistant_key: str = "",
) -> CommandForm:
    """Read a form, and have the use case check what it says.

    Raises:
        PollexError: Something is missing or wrong.
    """
    # what the form says of each field, as the use case takes it
    values: OptionValues = {}
    controls = list(make_controls(door.use_case, door))
    for control in controls:
        values[control.option.name] = _read_value(site, control, typed, logs)

    # the models that are asked; limits are left out where none is
    asking = _read_asked_model(site, door, values, typed)
    assistant = _read_assistant(site, values, typed)
    limited = _drop_idle_limits(values, is_asked=asking is not None or assistant is not None)
    named = {}
    for name, value in limited.items():
        if value is not None:
            named[name] = value

    # groups of the bundled log are known, unless the form names other ones
    if BUNDLED_LOG_ID in logs and "group_field" in {control.option.name for control in controls}:
        named.setdefault("group_field", BUNDLED_GROUP_FIELD)

    # the use case checks its own values; people read labels of the form, not names of options
    try:
        door.use_case(**named)
    except PollexError as error:
        fields = ", ".join(map(get_label, error.options))
        what = f"{fields}: {error.what}" if fields else error.what
        raise RequestError(what, hint=error.hint) from error

    # keys stay in memory, by the address that they belong to; the command line has none
    if key.strip():
        site.keys[(asking or AskedModel("")).base_url] = key.strip()
    if assistant is not None and assistant_key.strip():
        site.keys[assistant.base_url] = assistant_key.strip()

    # the command: what the form says, then where its result and the store lie
    words = _make_command(controls, named)
    if folder := _make_exchange_folder(site, door, values, typed):
        words.append(f"--assistant={folder}")
    if door.result:
        words.append(f"{OUT_OPTION}={find_free_path(site, door.result)}")

    words.append(f"--store={site.store.folder}")
    return CommandForm(
        secrets.token_hex(6),
        door,
        dict(typed),
        tuple(logs),
        (*door.verb.split(), *words),
        asking,
        assistant,
    )


def _make_command(controls: Sequence[Control], values: Mapping[str, object]) -> list[str]:
    """Return the words of a command: its sources first, and nothing that is as usual anyway."""
    options = []
    for control in controls:
        if control.option.name in values:
            options.append(control.option)

    options.sort(key=lambda option: option.place != "argument")
    options_set = []
    for option in options:
        if values[option.name] != option.usual:
            options_set.append(option)

    words: list[str] = []
    for option in options_set:
        words.extend(make_option_words(option, values[option.name]))

    return words


def _read_value(
    site: Site,
    control: Control,
    typed: Mapping[str, str],
    logs: Sequence[str],
) -> Any:
    """Return what a form says of one field, as the use case takes it."""
    text = typed.get(control.name, "")
    if control.kind == "logs":
        if not logs:
            raise RequestError("no log is chosen", hint="choose one")
        return tuple(write_source_word(site, value) for value in logs)
    if control.kind == "log":
        chosen = control.read(text)
        if chosen is None:
            return None
        return write_source_word(site, chosen)

    if control.kind == "set":
        chosen = control.read(text)
        if chosen is None:
            return None
        return write_set_word(site, site.set(chosen))

    # texts go to files, whose paths the command line has
    if control.kind == "profile":
        profile = read_profile(typed)
        if profile is None:
            return None
        return store_text(site, "domain.toml", profile.toml())
    if control.kind == "models":
        return None
    if control.kind == "text":
        chosen = control.read(text)
        if chosen is None:
            return None
        return store_text(site, f"{control.option.name}.md", chosen)

    return control.read(text)


def write_source_word(site: Site, value: str) -> str:
    """Return the word of a command for a log, or a run, that was chosen.

    Raises:
        RequestError: It isn't among those that can be.
    """
    sources = {log.value: log.source for log in list_available_logs(site)}
    runs = {run.id: run.id for run in site.runs()}
    source = (sources | runs).get(value)
    if source is None:
        raise RequestError(
            f"there is no log {value[:80]!r}",
            hint="choose one of those of the list",
        )

    return source


def write_set_word(site: Site, named: NamedSet) -> str:
    """Return the word of a command for a rubric set: its digest, or its file where the store has it not."""
    # a set that a run of this store made is found by its digest
    if named.run in {run.id for run in site.runs()}:
        return named.id

    # any other is a file: beside the store, or where its name leads to
    for place in (site.store.folder.absolute().parent / named.name, Path(named.name)):
        if place.is_file():
            return str(place)
    return named.id


def store_text(site: Site, name: str, text: str) -> str:
    """Write a text that was typed where a command can read it, for its owner alone; return its path."""
    # the digest of the text names the folder, so that the same text is written once
    folder = site.store.folder / TEXTS_FOLDER / hashlib.sha256(text.encode()).hexdigest()[:16]
    make_private_folder(folder.parent)
    make_private_folder(folder)
    path = folder / name
    if not path.exists():
        # nobody else can read it, from the moment that it exists
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(text)

    return str(path)


def _read_asked_model(
    site: Site,
    door: UseCaseDoor,
    values: OptionValues,
    typed: Mapping[str, str],
) -> AskedModel | None:
    """Return the model that is asked; its address is checked, and a profile's fields are filled in.

    Raises:
        PollexError: It may not be asked, or has no name.
    """
    # a profile of the server's owner stands in for the fields of the form
    profile = site.profiles.get(typed.get(PROFILE_FIELD, ""))
    if profile is not None:
        return _fill_in_profile(values, profile)

    # an address that a visitor typed is checked before anything is sent there
    base_url = values.get("base_url") or ""
    if base_url:
        require_endpoint(site, base_url)

    # a use case without a field for the model asks the judge of the chosen set
    if not names_a_model(door.use_case):
        model = _find_judge(site, typed)
        is_named = not base_url or base_url in list_named_addresses(site)
        if model:
            return AskedModel(model, base_url, is_named=is_named)
        return None

    model = values.get("model") or ""
    if not model and door.needs_model:
        raise RequestError(
            "no model is named, and this asks one",
            hint="open “With a language model”, and fill in Model",
        )
    if base_url and not model:
        raise RequestError(
            "the model has no name",
            hint="fill in Model, or leave Base URL out",
        )
    if not model:
        return None

    return AskedModel(
        model,
        base_url,
        is_named=not base_url or base_url in list_named_addresses(site),
    )


def _fill_in_profile(values: OptionValues, profile: ModelOptions) -> AskedModel:
    """Fill in a profile of the server's owner."""
    endpoint = profile.endpoint()
    # an address with a key in it goes by the environment, not by the command line
    has_secret = bool(set(endpoint.secrets) - {endpoint.api_key})
    price = profile.limits.price
    if "model" in values:
        values["model"] = profile.model

    values["base_url"] = None if has_secret else endpoint.base_url
    if price is not None:
        values["price"] = f"{price.read}:{price.written}"
    if profile.limits.max_cost is not None:
        values["max_cost"] = profile.limits.max_cost

    return AskedModel(
        endpoint.model,
        endpoint.base_url,
        profile.key_env,
        True,
        has_secret,
    )


def _read_assistant(
    site: Site,
    values: OptionValues,
    typed: Mapping[str, str],
) -> AskedModel | None:
    """Return the model that answers as the assistant; it is written into a file of models without its key.

    Raises:
        PollexError: Its address may not be asked, or its price is none.
    """
    if "profiles" not in values or typed.get(BY_FILES_FIELD) == "files":
        return None

    model = typed.get(f"{ASSISTANT_PREFIX}model", "").strip()
    if not model:
        what = "the model behind your assistant has no name"
        raise RequestError(what, hint="fill in Its model, or choose files")

    base_url = typed.get(f"{ASSISTANT_PREFIX}base_url", "").strip()
    if base_url:
        require_endpoint(site, base_url)

    # the file names the variable that holds the key, and not the key itself
    table: OptionValues = {"model": model, "key_env": ASSISTANT_KEY_VARIABLE}
    table |= {"base_url": base_url} if base_url else {}
    if price := typed.get(f"{ASSISTANT_PREFIX}price", "").strip():
        try:
            table["price_in"], table["price_out"] = parse_two_numbers(price)
        except ValueError:
            raise RequestError(
                f"{price[:40]!r} is no price",
                hint="give one like 0.15:0.60",
            ) from None

        # cost can be limited once the price is known: as the form says, or as usual
        table["max_cost"] = float(values.get("max_cost") or DEFAULT_MAX_COST)

    # lines of TOML: texts in quotes, numbers as they are
    lines = []
    for name, value in table.items():
        lines.append(f"{name} = {write_toml_value(value) if isinstance(value, str) else value}")

    # the same model proposes the change, unless somebody typed it
    roles = ["assistant", *(["proposer"] if not values.get("edit") else [])]
    text = "\n".join("\n".join([f"[{role}]", *lines, ""]) for role in roles)
    values["profiles"] = store_text(site, "models.toml", text)

    return AskedModel(
        model,
        base_url,
        is_named=not base_url or base_url in list_named_addresses(site),
    )


def _make_exchange_folder(
    site: Site,
    door: UseCaseDoor,
    values: Mapping[str, object],
    typed: Mapping[str, str],
) -> Path | None:
    """Return a new folder of the store for what the assistant is asked by files; None where it isn't.

    Raises:
        RequestError: Nobody would propose a change.
    """
    if "profiles" not in values or typed.get(BY_FILES_FIELD) != "files":
        return None
    if not values.get("edit"):
        what = "nobody proposes a change where the assistant is asked by files"
        raise RequestError(
            what,
            hint=f"fill in {door.labels.get('edit') or get_label('edit')}",
        )

    # what was typed names the folder: the same form finds its answers again
    digest = hashlib.sha256("\0".join(map(str, sorted(typed.items()))).encode()).hexdigest()
    return site.store.folder / ASKED_FOLDER / digest[:16]


def _find_judge(site: Site, typed: Mapping[str, str]) -> str:
    """Return the model that judges by the rubric set that was chosen; empty for the built-in judge."""
    chosen = site.sets().get(typed.get("o-rubrics", ""))
    if chosen is None or chosen.rubric_set.judge.built_in:
        return ""
    return chosen.rubric_set.judge.name


def _drop_idle_limits(values: Mapping[str, object], *, is_asked: bool) -> OptionValues:
    """Return the values without limits that hold for nothing: nobody is asked, or no price is known."""
    if not is_asked:
        return {name: value for name, value in values.items() if name not in MODEL_OPTIONS}
    if values.get("price") is None:
        return {name: value for name, value in values.items() if name != "max_cost"}
    return dict(values)


def remember_form(site: Site, begun: CommandForm) -> CommandForm:
    """Keep what was asked for in memory, to show it again; the oldest go."""
    site.begun[begun.id] = begun
    for old in list(site.begun)[: max(0, len(site.begun) - MAX_FORMS_REMEMBERED)]:
        del site.begun[old]
    return begun


def find_form(site: Site, id_: str) -> CommandForm:
    """Return what was asked for. Raises RequestError where the server has forgotten it."""
    begun = site.begun.get(id_)
    if not isinstance(begun, CommandForm):
        raise RequestError("this form is not known any more", hint="fill it in again")
    return begun


def start_command(site: Site, begun: CommandForm, *, planned: bool = False) -> Child:
    """Start the command of a form.

    Args:
        planned: Only count the calls that it would make.
    """
    # keys go by the environment, never by the command line
    variables = (begun.asking or AskedModel("")).environment(site.keys)
    if begun.assistant is not None:
        variables[ASSISTANT_KEY_VARIABLE] = begun.assistant.environment(site.keys)[KEY_VARIABLE]

    # where the command's page leads back to: the plan's own page, or the form as it was filled in
    if planned:
        back = f"{links.PLAN_PATH}/{begun.id}"
    else:
        back = links.link_to_form(begun.door.slug, begun=begun.id)

    # named and queued in one turn: another command may have taken the name since the form was read
    with site.turn:
        if planned:
            words = (*begun.words, "--json", "--dry-run")
        else:
            words = (*rename_output(site, begun.words, begun.door.result), "--json")

        return site.children.start(
            f"Plan: {begun.title}" if planned else begun.title,
            words,
            back=back,
            environment=variables,
            quick=planned or begun.door.quick,
            keeps_result=not planned,
        )


def shows_plan_first(begun: CommandForm) -> bool:
    """Return whether people see the calls before anything is asked."""
    asks = begun.asking is not None or begun.assistant is not None
    return asks and asks_a_model(begun.door.use_case)


def find_child_of_run(site: Site, run: Run) -> Child | None:
    """Return the command of this server that works on a run now; None where none does."""
    for child in site.children.by_id.values():
        # a run that is carried on is known by its page, a new one by its command
        is_carried_on = child.back == links.link_to_run(run.id)
        if not child.over and (is_carried_on or find_run_of_child(site, child) == run):
            return child

    return None


def get_failure_of_child(child: Child) -> str:
    """Return why a command failed; empty where it didn't."""
    return replace_options_by_labels(child.failure) if child.state == "failed" else ""


def find_run_of_child(site: Site, child: Child) -> Run | None:
    """Return the run that a command makes; None before it has begun one, or where it makes none."""
    # a new run has noted the command that began it
    command = shlex.join(["pollex", *child.arguments])
    for run in site.runs():
        # a run that is carried on was begun by another command
        if child.back == links.link_to_run(run.id):
            return run
        if run.started >= child.began and run.arguments.get("command") == command:
            return run

    return None
