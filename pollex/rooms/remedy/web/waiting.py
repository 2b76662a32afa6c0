"""What a remedy that has no verdict yet waits for: proposals to accept, pairs to compare, or replies by files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pollex.rooms.remedy.agents.assistant import REPLIES_FILE_NAME, TODO_FILE_NAME, read_keyed_lines
from pollex.rooms.remedy.services.result import (
    PROPOSED_RECORD_NAME,
    REMEDY_COMMAND,
    SHEET_RECORD_NAME,
    count_people_who_decided,
    read_browser_choices,
)
from pollex.store.resume import read_step_result
from pollex.store.runs import Run
from pollex.text import JsonDict
from pollex.web.kept_commands import ASKED_FOLDER, list_option_values, read_kept_command
from pollex.web.line_changes import list_line_changes
from pollex.web.pages.runs import ENDED_STATUSES
from pollex.web.site import Site
from pollex.web.views import PageData


def list_waiting_proposals(site: Site, run: Run) -> list[JsonDict]:
    """Return what was proposed in a run that waits for somebody to accept some; none where it doesn't."""
    proposed = read_step_result(site.store, run.id, PROPOSED_RECORD_NAME)
    # a run that goes on waits for nobody
    if not proposed or site.status(run) not in ENDED_STATUSES:
        return []

    proposals: list[dict[str, object]] = []
    for candidate in proposed["candidates"]:
        proposals.append(
            candidate | {"changes": list_line_changes(proposed["prompt"], candidate["text"])}
        )

    return proposals


@dataclass(frozen=True)
class PairProgress:
    """How far people are with the pairs of a run's sheet, in the browser.

    Attributes:
        compared: Pairs of which somebody said which reply helps more, or that there is no difference.
        skipped: Pairs that were seen, and skipped by all who saw them.
        left: Pairs that nobody has seen.
    """

    compared: int
    skipped: int
    left: int


def count_pairs(site: Site, run: Run, sheet: Iterable[JsonDict]) -> PairProgress:
    """Count the pairs of a run's sheet that people have compared, skipped and not seen."""
    choices = read_browser_choices(site.store, run.id)
    compared = skipped = left = 0
    for pair in sheet:
        by = choices.get(pair["key"], {})
        if count_people_who_decided(by):
            compared += 1
        elif by:
            skipped += 1
        else:
            left += 1

    return PairProgress(compared, skipped, left)


def describe_waiting(site: Site, run: Run) -> PageData | None:
    """Return what a run without a verdict waits for, for its page; None where it waits for nobody."""
    if run.command != "remedy" or site.status(run) not in ENDED_STATUSES:
        return None

    # pairs come after proposals, so these were accepted already
    sheet = read_step_result(site.store, run.id, SHEET_RECORD_NAME) or ()
    proposals = [] if sheet else list_waiting_proposals(site, run)
    folder = find_files_folder(site, run)
    if folder is not None:
        asked = count_lines(folder / TODO_FILE_NAME)
    else:
        asked = 0

    if not (sheet or proposals or asked):
        return None

    # answered lines of the file, counted anew
    answered = 0
    if folder is not None and asked:
        answered = sum(1 for _ in read_keyed_lines(folder / REPLIES_FILE_NAME, "reply"))

    progress = count_pairs(site, run, sheet)
    return {
        "pairs": len(sheet),
        "compared": progress.compared,
        "skipped": progress.skipped,
        "left": progress.left,
        "people": run.arguments.get("people"),
        "proposals": proposals,
        "fit": [proposal["name"] for proposal in proposals if not proposal["refused"]],
        "asked": asked,
        "answered": answered,
        "kept": read_kept_command(site, run),
        "folder": site.store.folder,
    }


def count_waiting(site: Site, run: Run) -> dict[str, int]:
    """Return how much of each kind a run waits for; nothing once it has a verdict."""
    if read_step_result(site.store, run.id, REMEDY_COMMAND):
        return {}

    waiting = describe_waiting(site, run)
    if waiting is None:
        return {}

    # pairs that nobody has seen come first, then what has been compared and goes on
    left = waiting["left"]
    return {
        "left": left,
        "compared": 0 if left else waiting["pairs"],
        "proposals": len(waiting["fit"]),
        "replies": 0 if waiting["pairs"] else max(0, waiting["asked"] - waiting["answered"]),
    }


def find_files_folder(site: Site, run: Run) -> Path | None:
    """Return the folder of the files by which the assistant of a run is asked; None where it is asked otherwise."""
    kept = read_kept_command(site, run)
    if kept is not None:
        folders = list_option_values(kept.words, "--assistant")
    else:
        folders = ()

    inside = [Path(folder).resolve() for folder in folders]
    own = (site.store.folder / ASKED_FOLDER).resolve()
    return next((folder for folder in inside if own in folder.parents), None)


def count_lines(path: Path) -> int:
    """Return how many lines a file has; 0 where it isn't there."""
    if not path.is_file():
        return 0

    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def format_replies(lines: bytes) -> str:
    """Return replies that somebody sent, as they are written down.

    Raises:
        ValueError: A line isn't an object with a key and a reply.
    """
    # parsed and written again, so that the file has nothing else
    rows = []
    for number, line in enumerate(lines.decode("utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        row = json.loads(line)
        is_reply = isinstance(row, dict) and isinstance(row.get("key"), str)
        if not is_reply or not isinstance(row.get("reply"), str | None):
            raise ValueError(f"line {number} has no “key” and “reply”")
        rows.append(json.dumps({"key": row["key"], "reply": row["reply"]}))

    return "".join(f"{row}\n" for row in rows)
