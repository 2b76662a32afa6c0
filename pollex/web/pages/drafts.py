"""Drafts of rubric sets: words edited with a preview of what flips, fitted again, and taken home as a file."""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pollex.conversations.conversation import format_openai_messages
from pollex.rubrics.edits import (
    EDITS_FILE_ENDING,
    EditEntry,
    apply_edits_to_rubrics,
    make_editable_rubric_entries,
    write_edits_toml,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.known_answers import count_unasked_questions
from pollex.runs.options import ModelOptions
from pollex.runs.workspace import run_coroutine_to_end
from pollex.services.rejudging import estimate_preview_calls, find_changed_rubrics, preview_edits
from pollex.store.folder import DRAFT_COPIES_FOLDER_NAME
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.store.tables import DraftRow, dump_json, format_current_time, load_json
from pollex.web import frame, links
from pollex.web.faults import NotFound, RequestError
from pollex.web.forms import PrefixedFields, RowIndex
from pollex.web.listing import find_run_that_asked
from pollex.web.site import NamedSet, Site
from pollex.web.views import NextPage, PageData, page, post, send_file

NEW_RUBRIC_ID = "new"


TypedFields = Annotated[PrefixedFields, "text-", "polarity-", "on-", "anew-", "remove-", "judge"]
"""The fields of a draft, by rubric: `text-ID`, `on-ID` and the like; `new` is one more."""


@post("/api/drafts")
def begin_draft(site: Site, named: NamedSet) -> NextPage:
    """Begin a draft with a set as it is."""
    row = _make_row(
        secrets.token_hex(4),
        1,
        named,
        make_editable_rubric_entries(named.rubric_set.rubrics, named.rubric_set.off),
    )
    site.store.keep([row])
    return f"{links.DRAFTS_PATH}/{row.id}", {"draft": row.id, "version": 1}


def _make_row(
    id_: str,
    version: int,
    named: NamedSet,
    entries: Sequence[EditEntry],
) -> DraftRow:
    payload = dump_json([entry.model_dump(mode="json") for entry in entries])
    return DraftRow(id_, version, format_current_time(), named.id, named.name, payload)


def get_draft(site: Site, id_: str) -> tuple[DraftRow, tuple[EditEntry, ...], NamedSet]:
    """Return the last version of a draft, its entries, and the set that it began with. Raises NotFound."""
    rows = site.store.rows("SELECT * FROM drafts WHERE id = ? ORDER BY version DESC LIMIT 1", [id_])
    if not rows:
        raise NotFound(
            "there is no such draft",
            hint="begin one on the page of a rubric set",
        )

    row = DraftRow(**rows[0])
    return (
        row,
        tuple(EditEntry.model_validate(entry) for entry in load_json(row.payload)),
        site.set(row.base),
    )


@page(f"{links.DRAFTS_PATH}/{{draft}}")
def show_draft(site: Site, draft_id: str, as_json: bool) -> PageData | Response:
    """Show a draft to edit."""
    row, entries, named = get_draft(site, draft_id)
    if as_json:
        return _make_draft_json(row, entries)
    return _show_page(site, row, entries, named)


def _show_page(
    site: Site,
    row: DraftRow,
    entries: Sequence[EditEntry],
    named: NamedSet,
    theirs: Sequence[EditEntry] = (),
    new: str = "",
) -> Response:
    """Show entries of a draft; with those of a newer version that came meanwhile beside them, as 409.

    Args:
        new: Words of a rubric that is typed, and not in the draft yet.
    """
    # the words of the set, beside which changed words are shown
    written = {}
    for rubric in (*named.rubric_set.rubrics, *named.rubric_set.off):
        written[rubric.id] = rubric.text

    run = find_run_that_asked(site, named)
    # how much a refit would ask; the built-in judge asks nobody
    left = None
    if run and not named.rubric_set.judge.built_in:
        left = count_unasked_questions(site.store, run.id, _apply_draft(named, entries))

    return frame.answer_page(
        "draft.html",
        409 if theirs else 200,
        site=site.id,
        here="Rubrics",
        draft=row,
        entries=entries,
        theirs={entry.name: entry for entry in theirs},
        new=new,
        named=named,
        written=written,
        earlier=site.store.rows(EARLIER_VERSIONS_QUERY, [row.id, row.version]),
        run=run,
        left=left,
        judges={
            name: compute_cost(judge, left.prompt, left.completion)
            for name, judge in list_judge_profiles(site, named).items()
        }
        if left
        else {},
        read_only=site.read_only,
    )


EARLIER_VERSIONS_QUERY = (
    "SELECT version, time FROM drafts WHERE id = ? AND version < ? ORDER BY version DESC LIMIT 50"
)


def _read_typed_entries(
    entries: Sequence[EditEntry], form_fields: Mapping[str, object]
) -> list[EditEntry]:
    """Return the entries with what a form says of them; those that it doesn't have as they are."""
    # empty words leave the old ones; a box that isn't ticked sends nothing
    typed_entries = []
    for entry in entries:
        typed_entries.append(
            entry.model_copy(
                update={
                    "text": " ".join(str(form_fields[f"text-{entry.name}"]).split()) or entry.text,
                    "polarity": "dsat"
                    if form_fields.get(f"polarity-{entry.name}", entry.polarity) == "dsat"
                    else "sat",
                    "on": f"on-{entry.name}" in form_fields,
                    "judge_anew": f"anew-{entry.name}" in form_fields,
                }
            )
            if f"text-{entry.name}" in form_fields
            else entry
        )

    return typed_entries


def _read_edited_entries(
    entries: Sequence[EditEntry], form_fields: Mapping[str, object]
) -> list[EditEntry]:
    """Return the entries as a form has them, without those that it removes."""
    entries_left = []
    for entry in entries:
        if f"remove-{entry.name}" not in form_fields:
            entries_left.append(entry)

    # words are filled in where the form has none, so that its ticks count for every entry
    entries_typed = _read_typed_entries(
        entries_left,
        {f"text-{entry.name}": entry.text for entry in entries_left} | dict(form_fields),
    )
    if words := " ".join(str(form_fields.get(f"text-{NEW_RUBRIC_ID}", "")).split()):
        try:
            new = EditEntry(
                text=words,
                polarity=form_fields.get(f"polarity-{NEW_RUBRIC_ID}", "sat"),
            )
        except ValidationError as error:
            raise RequestError(
                "the new rubric has more than 2,000 characters",
                hint="say it in one sentence",
            ) from error

        # the id follows from the words: the same rubric twice is added once
        if new.name not in [entry.name for entry in entries]:
            entries_typed.append(new.model_copy(update={"id": new.name}))

    if not any(entry.on for entry in entries_typed):
        raise RequestError(NO_RUBRIC_ON_FAULT, hint="switch one on")
    return entries_typed


NO_RUBRIC_ON_FAULT = "no rubric is on"


@post("/api/drafts/{draft}")
def keep_draft(
    site: Site,
    draft_id: str,
    request: Request,
    version: int,
    given: TypedFields,
) -> NextPage | Response:
    """Keep a new version of a draft; what was typed over an older one comes back beside the newer."""
    # nobody else keeps a version between the comparison and the write
    with site.turn:
        row, entries, named = get_draft(site, draft_id)
        # a newer version came meanwhile: both are shown, and neither is lost
        if version != row.version:
            if frame.wants_json(request.scope):
                what = {
                    "ok": False,
                    "error": f"version {row.version} has come since",
                    "where": "",
                }
                error = (
                    what
                    | {"remedy": "change that one", "status": 409}
                    | _make_draft_json(row, entries)
                )
                return JSONResponse(error, 409)

            new = " ".join(str(given.get(f"text-{NEW_RUBRIC_ID}", "")).split())
            return _show_page(
                site,
                row,
                _read_typed_entries(entries, given),
                named,
                entries,
                new,
            )

        row_kept = _make_row(
            row.id,
            row.version + 1,
            named,
            _read_edited_entries(entries, given),
        )
        site.store.keep([row_kept])

    return f"{links.DRAFTS_PATH}/{row.id}", {"draft": row.id, "version": row_kept.version}


@post("/api/drafts/{draft}/again")
def restore_version(site: Site, draft_id: str, version: RowIndex) -> NextPage:
    """Keep an earlier version of a draft as its newest: nothing is lost by it."""
    with site.turn:
        row, _, named = get_draft(site, draft_id)
        sql = "SELECT payload FROM drafts WHERE id = ? AND version = ?"
        payload = site.store.value(sql, [row.id, version])
        if payload is None:
            raise NotFound(
                f"the draft has no version {version}",
                hint="its page has those there are",
            )

        draft_row = DraftRow(
            row.id,
            row.version + 1,
            format_current_time(),
            named.id,
            named.name,
            payload,
        )
        site.store.keep([draft_row])

    return f"{links.DRAFTS_PATH}/{row.id}", {"draft": row.id, "version": draft_row.version}


def _make_draft_json(row: DraftRow, entries: Sequence[EditEntry]) -> PageData:
    entries_json = [entry.model_dump(mode="json") for entry in entries]
    return {
        "draft": row.id,
        "version": row.version,
        "set": row.base,
        "entries": entries_json,
    }


@post("/api/drafts/{draft}/preview")
def preview_draft(site: Site, draft_id: str, version: int, given: TypedFields) -> Response:  # noqa: ARG001 - the form's
    """Show what the words in the form would do, under the old θ; nothing is kept."""
    row, entries, named = get_draft(site, draft_id)
    on, _ = apply_edits_to_rubrics(
        _read_edited_entries(entries, given),
        named.rubric_set.rubrics,
        named.rubric_set.off,
    )
    run = find_run_that_asked(site, named)
    if run is None:
        raise NotFound(
            "no run in this store has asked these rubrics",
            hint="score with the set first",
        )

    # a fixed seed: the same words give the same preview
    rng = np.random.default_rng(0)
    rubric_set = named.rubric_set
    judges = list_judge_profiles(site, named)
    judge = str(given.get("judge", ""))
    # new words, and no model chosen to judge by them: what each would cost is shown instead
    if (
        not rubric_set.judge.built_in
        and find_changed_rubrics(rubric_set, on)
        and judge not in judges
    ):
        plan = estimate_preview_calls(site.store, run.id, rubric_set, on, rng)
        prices = {
            name: compute_cost(judge, plan["prompt_tokens"], plan["completion_tokens"])
            for name, judge in judges.items()
        }
        return frame.answer_page(
            "preview.html",
            found=None,
            plan=plan,
            judges=prices,
            named=named,
            draft=row,
        )

    previewed = run_coroutine_to_end(
        preview_edits(
            site.store,
            run.id,
            rubric_set,
            on,
            rng,
            judges.get(judge),
        )
    )
    return frame.answer_page(
        "preview.html",
        found=previewed,
        run=run,
        theta=rubric_set.theta,
    )


def _apply_draft(named: NamedSet, entries: Sequence[EditEntry]) -> RubricSet:
    """Return a set as a draft has it; a rubric that changed its side was never answered."""
    on, off = apply_edits_to_rubrics(entries, named.rubric_set.rubrics, named.rubric_set.off)
    sides = {}
    for rubric in (*named.rubric_set.rubrics, *named.rubric_set.off):
        sides[rubric.id] = rubric.polarity

    # answers to words of the other side don't count
    rewritten = []
    for rubric in on:
        rewritten.append(
            rubric.model_copy(update={"written": ""})
            if sides.get(rubric.id, rubric.polarity) != rubric.polarity
            else rubric
        )

    on = tuple(rewritten)
    return named.rubric_set.model_copy(update={"rubrics": on, "off": off})


@post("/api/drafts/{draft}/refit")
def refit_draft(site: Site, draft_id: str, judge: str = "") -> NextPage:
    """Fit a draft again on the conversations of the set's run: a command of its own."""
    row, entries, named = get_draft(site, draft_id)
    run = find_run_that_asked(site, named)
    if run is None:
        raise RequestError(
            "no run in this store has asked these rubrics",
            hint="take the file home, and use `pollex refit`",
        )

    # the model's options stand on the command line, its key in the environment
    asking, keys = _make_model_words(site, run, named, entries, judge)
    folder, grouped = write_draft_for_command(site, run, row, _apply_draft(named, entries))
    arguments = [
        "refit",
        str(folder / "log.jsonl"),
        "--rubrics",
        str(folder / "draft.json"),
    ]
    arguments += [
        "--out",
        str(folder / "refitted.json"),
        "--store",
        str(site.store.folder),
        "--json",
        *asking,
    ]
    arguments += ["--group-field", "group"] if grouped else []
    words = f"{row.name}, version {row.version}, is fitted again"
    # the folder with the conversations goes once the command has ended
    child = site.children.start(
        words,
        arguments,
        back=links.SETS_PATH,
        remove=[folder],
        environment=keys,
    )

    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}


def _make_model_words(
    site: Site,
    run: Run,
    named: NamedSet,
    entries: Sequence[EditEntry],
    judge: str,
) -> tuple[list[str], dict[str, str]]:
    """Return the options and the environment of a refit by the model that answered a set's rubrics.

    Raises:
        RequestError: It has to be asked, and no profile of it is named.
    """
    if named.rubric_set.judge.built_in:
        return [], {}

    options_of_refit: list[str] = []
    judges = list_judge_profiles(site, named)
    # all answers are in the store: no model is asked, whatever the server's settings name
    if not count_unasked_questions(site.store, run.id, _apply_draft(named, entries)).calls:
        return options_of_refit, {"POLLEX_MODEL": ""}
    if (options := judges.get(judge)) is None:
        what = f"{named.rubric_set.judge.name} answered these rubrics, and has to be asked about new words"
        raise RequestError(
            what,
            hint="choose a profile of it; `pollex serve --profiles FILE` names them",
        )

    # the limit of the profile's owner holds here, too
    if price := options.limits.price:
        options_of_refit += ["--price", f"{price.read}:{price.written}"]
        if options.limits.max_cost is not None:
            options_of_refit += ["--max-cost", str(options.limits.max_cost)]

    # an address may have a password in it, which no command line shows
    endpoint = options.endpoint()
    return options_of_refit, {
        "POLLEX_MODEL": "",
        "POLLEX_BASE_URL": endpoint.base_url,
        "OPENAI_API_KEY": endpoint.api_key or "",
    }


@page(f"{links.DRAFTS_PATH}/{{draft}}/file")
def send_draft_file(site: Site, draft_id: str) -> Response:
    """Send a draft as the file that people edit beside a set."""
    row, entries, _ = get_draft(site, draft_id)
    return send_file(
        f"draft-{row.id}{EDITS_FILE_ENDING}",
        "application/toml",
        write_edits_toml(entries, row.name),
    )


THUMBS_BY_LABEL = {"positive": "up", "negative": "down"}


def list_judge_profiles(site: Site, named: NamedSet) -> dict[str, ModelOptions]:
    """Return the profiles of the model that answered a set's rubrics."""
    judges: dict[str, ModelOptions] = {}
    for name, profile in site.profiles.items():
        if profile.name == named.rubric_set.judge.name:
            judges[name] = profile
    return judges


def compute_cost(options: ModelOptions, prompt: int, completion: int) -> float | None:
    """Return what tokens cost; None where prices aren't known."""
    price = options.limits.price
    if price:
        return price.cost(prompt, completion)
    return None


def write_draft_for_command(
    site: Site,
    run: Run,
    row: DraftRow,
    changed: RubricSet,
) -> tuple[Path, bool]:
    """Write a draft and a run's conversations, in their order, where a command can read them.

    Returns:
        The folder, and whether the conversations have groups.
    """
    grouped = False
    # a folder for each refit, which its owner alone can read
    folder = (
        site.store.folder
        / DRAFT_COPIES_FOLDER_NAME
        / f"{row.id}-{row.version}-{secrets.token_hex(2)}"
    )
    folder.mkdir(parents=True, mode=0o700)
    (folder / "draft.json").write_text(changed.to_json(), encoding="utf-8")

    # the file, too, is its owner's alone
    with os.fdopen(
        os.open(folder / "log.jsonl", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8"
    ) as file:
        for conversation in iterate_conversations(site.store, run.id):
            fields: dict[str, object] = {
                "id": conversation.id,
                "messages": format_openai_messages(conversation),
                "group": conversation.group or conversation.id,
            }
            grouped |= conversation.group is not None
            # a label that is no thumb is left out
            if conversation.label.value in THUMBS_BY_LABEL:
                fields["thumbs"] = THUMBS_BY_LABEL[conversation.label.value]
            file.write(json.dumps(fields) + "\n")

    return folder, grouped
