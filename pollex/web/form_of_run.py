"""The form of a run: what its command says, as the fields that somebody would fill in to begin it again."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from pollex.store.runs import Run
from pollex.web.controls import ASSISTANT_PREFIX, Control, make_controls
from pollex.web.doors.hooks import UseCaseDoor
from pollex.web.frame import make_resume_words
from pollex.web.kept_commands import ASKED_FOLDER, TEXTS_FOLDER, list_option_values
from pollex.web.logs_at_hand import find_log_of_run
from pollex.web.site import Site

ASSISTANT_FIELDS = ("model", "base_url")


def list_fields_of_run(
    site: Site,
    door: UseCaseDoor,
    run: Run,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the fields of a form, and its logs, as the run's command has them; what it can't say is left out."""
    words = make_resume_words(run, site.store.folder)
    settings = {}
    for setting in list_option_values(words, "--set"):
        name, _, value = setting.partition("=")
        settings[name] = value

    typed = {}
    for control in make_controls(door.use_case, door):
        option = control.option
        flag = f"--{(option.flag or option.name).replace('_', '-')}"
        values = list_option_values(words, flag)
        if option.place == "setting" and option.name in settings:
            typed[control.name] = settings[option.name]
        elif control.kind == "yes" and flag in words:
            typed[control.name] = "yes"
        elif control.kind == "models" and values:
            typed |= _list_assistant_fields(site, values[-1])
        elif values:
            typed[control.name] = _write_value(site, control, values)

    # what the assistant is asked by files lies in the store
    if any(ASKED_FOLDER in Path(word).parts for word in list_option_values(words, "--assistant")):
        typed[f"{ASSISTANT_PREFIX}as"] = "files"

    log = find_log_of_run(site, run)
    return typed, (log,) if log else ()


def _write_value(site: Site, control: Control, values: Sequence[str]) -> str:
    if control.kind == "text":
        return _read_typed_text(site, values[-1])
    if control.kind == "lines":
        return "\n".join(values)
    return values[-1]


def _read_typed_text(site: Site, path: str) -> str:
    """Return a text that a form wrote into the store; empty for a file elsewhere, which isn't read."""
    place = Path(path).resolve()
    if (site.store.folder / TEXTS_FOLDER).resolve() not in place.parents or not place.is_file():
        return ""
    return place.read_text("utf-8", "replace")


def _list_assistant_fields(site: Site, path: str) -> dict[str, str]:
    """Return the fields of the assistant's model, from the file that a form wrote."""
    try:
        table = tomllib.loads(_read_typed_text(site, path)).get("assistant", {})
    except ValueError:
        return {}

    fields = {}
    for name in ASSISTANT_FIELDS:
        if name in table:
            fields[f"{ASSISTANT_PREFIX}{name}"] = str(table[name])

    if "price_in" in table and "price_out" in table:
        fields[f"{ASSISTANT_PREFIX}price"] = f"{table['price_in']}:{table['price_out']}"
    return fields
