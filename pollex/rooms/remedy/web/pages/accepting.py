"""What people answer a remedy that waits: proposals that they accept, and replies that they bring as a file."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from pollex.rooms.remedy.agents.assistant import REPLIES_FILE_NAME, TODO_FILE_NAME
from pollex.rooms.remedy.web.hooks import REMEDIES_PATH
from pollex.rooms.remedy.web.waiting import (
    find_files_folder,
    format_replies,
    list_waiting_proposals,
)
from pollex.store.folder import make_private_folder
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.children import Child
from pollex.web.faults import NotFound, RequestError, VersionConflict
from pollex.web.kept_commands import go_on_with_run, read_kept_command, require_confirmation
from pollex.web.site import Site
from pollex.web.views import NextPage, page, post, send_file

RepliesText = Annotated[str, Field(max_length=1 << 20)]


@post(f"/api{REMEDIES_PATH}/{{run}}/accept")
def accept_proposals(
    site: Site,
    run: Run,
    name: tuple[str, ...] = (),
    confirmed: str = "",
    key: str = "",
) -> NextPage:
    """Accept proposals, and go on to prove them, by the command that the store keeps."""
    # only proposals that passed may be accepted
    names = []
    for proposal in list_waiting_proposals(site, run):
        if not proposal["refused"]:
            names.append(proposal["name"])

    # somebody else may have accepted meanwhile
    if not names:
        raise VersionConflict(f"{run.id} waits for no proposal", hint="load the page again")
    if not name:
        raise RequestError(
            "no proposal is ticked",
            hint="tick those that are to be proved",
        )

    # names come from the form, so they are checked
    if unknown := [one_name for one_name in name if one_name not in names]:
        raise NotFound(
            f"no proposal is called {unknown[0]!r:.60}",
            hint=f"those are {', '.join(names)}",
        )

    # the same command goes on, with what was accepted
    child = _continue_run(
        site,
        run,
        confirmed,
        key,
        f"--accept={','.join(name)}",
    )
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}


@page(f"{REMEDIES_PATH}/{{run}}/todo.jsonl")
def send_todo(site: Site, run: Run) -> Response:
    """Send what the assistant is asked, a line a reply: arms can't be told apart there."""
    # runs that ask by files have a folder in their command
    folder = find_files_folder(site, run)
    if folder is None or not (folder / TODO_FILE_NAME).is_file():
        raise NotFound(
            f"{run.id} asks nothing by files",
            hint="its page says what it waits for",
        )

    return send_file(
        f"{run.id}-{TODO_FILE_NAME}",
        "application/jsonl",
        (folder / TODO_FILE_NAME).read_bytes(),
    )


@post(f"/api{REMEDIES_PATH}/{{run}}/replies")
def receive_replies(
    site: Site,
    run: Run,
    lines: RepliesText,
    confirmed: str = "",
    key: str = "",
) -> NextPage:
    """Keep replies that somebody brings, and go on with them."""
    folder = find_files_folder(site, run)
    if folder is None:
        raise VersionConflict(f"{run.id} asks nothing by files", hint="load the page again")

    # read as a whole before anything is written
    try:
        text = format_replies(lines.encode())
    except (ValueError, RecursionError) as error:
        what = f"these are no replies: {error}"[:200]
        raise RequestError(what, hint='a line each: {"key": …, "reply": …}') from None

    # a yes to the command first: to go on costs money
    require_confirmation(site, run, confirmed)
    # appended, readable by the owner alone
    make_private_folder(folder)
    with os.fdopen(
        os.open(folder / REPLIES_FILE_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a"
    ) as file:
        file.write(text)

    child = _continue_run(site, run, confirmed, key)
    return f"{links.CHILDREN_PATH}/{child.id}", {"child": child.id}


def _continue_run(
    site: Site,
    run: Run,
    confirmed: str,
    key: str,
    *words: str,
) -> Child:
    """Go on with a run, once somebody has said yes to its command.

    Raises:
        VersionConflict: Nobody has, or it can't be gone on with here.
    """
    require_confirmation(site, run, confirmed)
    # a key stays in memory, never in the store
    command = read_kept_command(site, run)
    if command is not None and key.strip():
        site.keys[command.key_address] = key.strip()

    child = go_on_with_run(site, run, *words)
    if child is None:
        raise VersionConflict(
            f"no form of this server began {run.id}",
            hint="go on with it where it was begun",
        )

    return child
