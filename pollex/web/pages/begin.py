"""Forms of use cases: filled in, planned where a model is asked, and begun."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pollex.errors import PollexError
from pollex.graphs.hooks import name_stage
from pollex.services.readings import list_readings
from pollex.text import JsonDict
from pollex.web import frame, links
from pollex.web.begun import (
    CommandForm,
    find_form,
    get_failure_of_child,
    read_form,
    remember_form,
    shows_plan_first,
    start_command,
)
from pollex.web.children import Child
from pollex.web.controls import (
    MODEL_OPTIONS,
    PROFILE_PREFIX,
    Control,
    asks_a_model,
    group_controls,
    list_profile_questions,
    make_controls,
    names_a_model,
)
from pollex.web.doors.hooks import UseCaseDoor, get_door, list_doors
from pollex.web.form_of_run import list_fields_of_run
from pollex.web.forms import LongText, PrefixedFields
from pollex.web.line_changes import LineChange, list_line_changes
from pollex.web.logged_prompts import find_logged_prompt
from pollex.web.logs_at_hand import list_available_logs
from pollex.web.pages.home import name_reports
from pollex.web.pages.sets import name_logs_of_sets
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.views import NextPage, PageData, page, post

TypedFields = Annotated[PrefixedFields, "o-", "domain-", "assistant-"]
"""The fields of a use case by name, and those of the domain profile and of the assistant's model."""
LOOK_FIELD = "look"
DRAFT = "draft"
"""What a button of a form does that has a model draft the domain profile first."""
DRAFT_DOOR = "domain-draft"
PROMPT_FIELD, EDIT_FIELD = "o-prompt", "o-edit"
FIELDS_TAKEN_OVER = ("o-rubrics", PROMPT_FIELD)
"""Fields that the form of one use case takes over from that of another."""


@page(links.BEGIN_PATH, "begin_list.html", here="Begin")
def list_use_cases(site: Site) -> PageData:
    """List what can be begun here."""
    return {"doors": list_doors(), "has_set": bool(site.sets())}


@page(f"{links.BEGIN_PATH}/{{door}}", here="Begin")
def show_use_case_form(
    site: Site,
    door_id: str,
    begun: str = "",
    log: str = "",
    rubrics: str = "",
    against: str = "",
    target: str = "",
    sentence: LongText = "",
    drafted: str = "",
    people: bool = False,
    like: str = "",
    pairs: int = 0,
) -> Response:
    """Show the form of a use case; as it was filled in, where somebody did so before.

    Args:
        begun: Of this use case or of another, whose log, set and prompt are taken over.
        sentence: What is added to the prompt that was typed there.
        drafted: Command that drafted a domain profile, which fills in its fields.
        like: Run whose command fills in the fields.
        pairs: That people compare.
    """
    door = get_door(door_id)
    before = site.begun.get(begun)
    # a run is to be done once more, with people
    if like:
        typed, logs = list_fields_of_run(site, door, site.run(like))
        asked = {"o-people": str(pairs)} if pairs > 0 else {}
        return _show_form(site, door, typed | asked, logs, is_new=True)

    # a drafted profile comes into the form that asked for it, with all that was typed there
    if drafted:
        drafted_fields = list_drafted_fields(site.children.find(drafted))
        # a server that was started anew has the draft, and no longer the form
        if not isinstance(before, CommandForm):
            return _show_form(site, door, drafted_fields, (), is_new=True)
        typed = dict(before.typed) | drafted_fields
        return _show_form(site, door, typed, before.logs, is_new=True)

    # the same form is shown as it was left
    if isinstance(before, CommandForm) and before.door == door:
        return _show_form(site, door, before.typed, before.logs)
    if isinstance(before, CommandForm):
        # from another form the set, the prompt and the log are taken over
        taken_over = {}
        for name in FIELDS_TAKEN_OVER:
            taken_over[name] = before.typed.get(name, "")

        # a sentence that is to be tried stands behind the prompt
        prompt = taken_over["o-prompt"].rstrip()
        if prompt and sentence:
            edit = f"{prompt}\n{sentence}"
        else:
            edit = prompt

        typed = taken_over | {"o-target": target, "o-edit": edit}
        return _show_form(
            site,
            door,
            typed,
            before.logs,
            is_new=True,
            sentence=sentence,
        )

    # nothing was filled in before: what the address names is chosen already
    typed = {
        "o-rubrics": rubrics or find_set_for_log(site, log),
        "o-new": log,
        "o-against": against,
        "o-target": target,
        "o-label_sources": "log,person,adjudicated" if people else "",
    }
    chosen = {}
    for name, value in typed.items():
        if value:
            chosen[name] = value

    return _show_form(
        site,
        door,
        chosen,
        (log,) if log else (),
        is_new=True,
        sentence=sentence,
    )


def find_set_for_log(site: Site, log: str) -> str:
    """Return the id of the set that was learned from a log, or from one of the same columns; empty where none was."""
    reports = name_logs_of_sets(site)
    readings = list_readings(site.store.folder)
    asked = next((reading for reading in readings if reading.argument == log), None)
    if asked is None:
        return ""

    # the log itself comes before others that have its columns
    names = [asked.name]
    for reading in readings:
        if asked.columns and set(reading.columns) == set(asked.columns):
            names.append(reading.name)

    for name in names:
        for set_id, log_name in reports.items():
            if log_name == name:
                return set_id

    return ""


def list_drafted_fields(child: Child) -> dict[str, str]:
    """Return the fields of the profile that a command drafted, as a form has them; none where it drafted none."""
    profile = child.told.get("profile") if isinstance(child.told, dict) else None
    fields: dict[str, str] = {}
    if not isinstance(profile, dict):
        return fields

    for name in list_profile_questions():
        value = profile.get(name, "")
        text = "\n".join(value) if isinstance(value, list) else str(value)
        fields[PROFILE_PREFIX + name] = text

    return fields


def _show_form(
    site: Site,
    door: UseCaseDoor,
    typed: Mapping[str, str],
    logs: tuple[str, ...],
    fault: PollexError | None = None,
    command: str = "",
    *,
    is_new: bool = False,
    sentence: str = "",
) -> Response:
    """Show a form; with what is wrong in it, as 400.

    Args:
        is_new: Nobody has filled it in yet: what nothing is said of is as usual.
        sentence: That may be tried in a prompt.
    """
    # three parts: what everybody fills in, what is about the model, and the rest by groups
    controls = list(make_controls(door.use_case, door))
    front = []
    for control in controls:
        if control.option.name in door.first:
            front.append(control)

    front.sort(key=lambda control: door.first.index(control.option.name))
    of_model = []
    for control in controls:
        if control.option.name in MODEL_OPTIONS:
            of_model.append(control)

    of_model.sort(key=lambda control: MODEL_OPTIONS.index(control.option.name))
    rest = []
    for control in controls:
        if control not in (*front, *of_model):
            rest.append(control)

    # a prompt that nobody typed yet is that of the log, where the log has it
    logged = None
    if is_new and any(control.name == PROMPT_FIELD for control in front):
        if not typed.get(PROMPT_FIELD):
            logged = find_logged_prompt(site, logs, typed.get("o-rubrics", ""))
        if logged is not None:
            typed = dict(typed) | fill_in_prompt(controls, logged.text, sentence)

    values = FormValues(controls, typed, is_new=is_new)

    scoring_runs = []
    for run in site.runs():
        if run.command in SCORING_COMMANDS:
            scoring_runs.append(run)

    return frame.answer_page(
        "begin.html",
        400 if fault else 200,
        site=site.id,
        here="Begin",
        read_only=site.read_only,
        door=door,
        front=front,
        of_model=of_model,
        plans=asks_a_model(door.use_case),
        names_model=names_a_model(door.use_case),
        groups=group_controls(rest),
        values=values,
        logs=list_available_logs(site),
        chosen_logs=logs,
        runs=scoring_runs,
        sets=list(site.sets().values()),
        reports=name_reports(site),
        profiles=site.profiles,
        questions=list_profile_questions(),
        has_profile=any(name.startswith(PROFILE_PREFIX) and typed[name] for name in typed),
        key_kept=bool(site.keys.get(typed.get("o-base_url", ""))),
        fault=fault,
        command=command or f"pollex {door.verb} …",
        changes=_list_prompt_changes(typed),
        sentence=sentence,
        prompt_told=logged.told if logged is not None else "",
    )


def fill_in_prompt(controls: Sequence[Control], prompt: str, sentence: str) -> dict[str, str]:
    """Return the fields of a prompt, and of the changed one where a sentence is to be tried in it."""
    fields = {PROMPT_FIELD: prompt}
    if sentence and any(control.name == EDIT_FIELD for control in controls):
        fields[EDIT_FIELD] = f"{prompt}\n{sentence}"

    return fields


def _list_prompt_changes(typed: Mapping[str, str]) -> list[LineChange]:
    """Return what a changed prompt changes; nothing where no form has both."""
    return list_line_changes(typed.get("o-prompt", ""), typed.get("o-edit", ""))


def _fill_changes_part(typed: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a form that shows what a changed prompt changes; nothing where none was typed."""
    # an emptied prompt empties the part; a form without that field doesn't have it
    if not typed.get("o-edit", "").strip():
        return {"changes": ""} if "o-edit" in typed else {}
    return {"changes": frame.fill_template("changes.html", changes=_list_prompt_changes(typed))}


@dataclass(frozen=True)
class FormValues:
    """What a form's fields hold: what was typed, or what is usual where nobody typed yet."""

    controls: list[Control]
    typed: Mapping[str, str]
    is_new: bool

    def of(self, control: Control) -> str:
        """Return the value of a control."""
        if control.name in self.typed or not self.is_new:
            return self.typed.get(control.name, "")
        return control.usual

    def named(self, name: str) -> str:
        """Return the value of another field."""
        return self.typed.get(name, "")


@post("/api/begin/{door}")
def begin_from_form(
    site: Site,
    request: Request,
    door_id: str,
    typed: TypedFields,
    log: tuple[str, ...] = (),
    profile: str = "",
    key: str = "",
    key_of_assistant: str = "",
    do: str = "",
) -> NextPage | Response:
    """Begin what a form asks for; or show its plan, or its command alone."""
    # a button of another form drafts the profile from what is typed there
    door = get_door(DRAFT_DOOR if do == DRAFT else door_id)
    # a browser ends lines of a text as no file of ours does
    lines = {}
    for name, value in typed.items():
        lines[name] = str(value).replace("\r\n", "\n")

    form_fields = lines | {"profile": profile}
    # a list in which nothing was chosen sends an empty word
    chosen = tuple(value for value in log if value)
    try:
        # a look at the command keeps no key
        keys = ("", "") if do == LOOK_FIELD else (key, key_of_assistant)
        begun = read_form(site, door, form_fields, chosen, *keys)
    except PollexError as fault:
        if do == LOOK_FIELD and frame.wants_json(request.scope):
            error = {
                "ok": False,
                "error": fault.what,
                "remedy": fault.advice,
            }
            return JSONResponse(
                error | _fill_changes_part(form_fields)
            )  # a form that is half filled in is no mistake
        # scripts get the error, people their form with it
        if frame.wants_json(request.scope):
            raise
        return _show_form(site, get_door(door_id), form_fields, chosen, fault)

    # only a look: nothing is remembered or started
    if do == LOOK_FIELD:
        if frame.wants_json(request.scope):
            return JSONResponse(
                {"ok": True, "command": begun.command} | _fill_changes_part(form_fields)
            )
        return _show_form(site, door, form_fields, chosen, command=begun.command)

    remember_form(site, begun)
    # what asks a model starts only after somebody has seen its plan
    if shows_plan_first(begun):
        child = start_command(site, begun, planned=True)
        return f"{links.PLAN_PATH}/{begun.id}", {"plan": begun.id, "child": child.id}

    child = start_command(site, begun)
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}


@page(f"{links.PLAN_PATH}/{{begun}}", "plan.html", here="Begin")
def show_plan(site: Site, begun_id: str) -> PageData:
    """Show what a command would ask, what it may cost, and what leaves this machine."""
    begun = find_form(site, begun_id)
    child = site.children.last_of(f"{links.PLAN_PATH}/{begun.id}")
    return {
        "begun": begun,
        "child": child,
        "run": None,
        "planned": _read_plan(child),
        "fault": get_failure_of_child(child) if child is not None else "",
        "stages": _list_stages(child, begun.door.verb.partition(" ")[0]),
        "redacts": begun.typed.get("o-redact", ""),
        "keyed": bool(begun.asking and begun.asking.environment(site.keys).get("OPENAI_API_KEY")),
    }


@page(f"{links.PLAN_PATH}/{{begun}}/live", "child_live.html")
def show_plan_live(site: Site, begun_id: str) -> PageData:
    """Return the part of a plan's page that tells how far the counting is."""
    child = site.children.last_of(f"{links.PLAN_PATH}/{find_form(site, begun_id).id}")
    over = child is None or child.over
    fault = ""
    if child is not None:
        fault = get_failure_of_child(child)

    return {
        "child": child,
        "run": None,
        "fault": fault,
        "headers": {"X-Pollex-Ended": "again" if over else ""},
    }


def _read_plan(child: Child | None) -> JsonDict:
    """Return what a dry run told; nothing before its end."""
    if child is None or not isinstance(child.told, dict) or "plan" not in child.told:
        return {}
    return child.told


def _list_stages(child: Child | None, verb: str) -> list[PageData]:
    """Return a row for each stage of a plan, with what is likely beside what is most."""
    planned = _read_plan(child)
    likely = planned.get("likely", {})
    rows = []
    for name, row in planned.get("plan", {}).items():
        stage = name_stage(name, verb)
        rows.append(row | {"name": stage, "total": name == "all", "likely": likely.get(name)})

    # each model of a panel has a plan of its own
    for model, table in planned.get("panel", {}).items():
        for name, row in table.items():
            stage = f"{model}: {name_stage(name, verb)}"
            rows.append(row | {"name": stage, "total": False, "likely": None})

    return rows


@post(f"/api{links.PLAN_PATH}/{{begun}}/start")
def begin_planned_command(site: Site, begun_id: str) -> NextPage:
    """Begin what was planned."""
    child = start_command(site, find_form(site, begun_id))
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}
