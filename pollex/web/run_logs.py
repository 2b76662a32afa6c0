"""Which logs a run read, in words; and which runs belong to a rubric set and its log."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath

from pollex.services.logs import IN_MEMORY_NAME
from pollex.services.readings import LOGS_FOLDER_NAME, list_readings
from pollex.store.folder import LOG_COPY_PREFIX
from pollex.store.runs import Run
from pollex.web.hooks import IS_READER, SERVED_SITE
from pollex.web.logs_at_hand import may_be_log
from pollex.web.site import SCORING_COMMANDS, NamedSet, Site


def name_log_of_run(run: Run) -> str:
    """Return the names of the logs that a run read, of two with “and”; empty if unknown."""
    return " and ".join(list_log_names_of_run(run))


def list_log_names_of_run(run: Run) -> list[str]:
    """Return the names of the logs that a run read: of those that were brought, or of files."""
    try:
        typed = shlex.split(run.arguments.get("command") or "")
    except (ValueError, AttributeError):
        typed = []

    # a log that was brought has a name of its own
    if names := list_brought_logs_in_command(typed):
        return names

    sources = run.arguments.get("logs")
    names = []
    for source in sources if isinstance(sources, list) else [sources]:
        if isinstance(source, str) and source != IN_MEMORY_NAME and (name := name_source(source)):
            names.append(name)

    return list(dict.fromkeys(names))


def identify_logs_of_run(run: Run) -> frozenset[str]:
    """Return what tells the logs of a run from others; nothing where they were given in memory."""
    sources = run.arguments.get("logs")
    folder = run.arguments.get("folder")
    ids = set()
    for source in sources if isinstance(sources, list) else [sources]:
        if not isinstance(source, str) or source == IN_MEMORY_NAME:
            continue
        # a store that was moved has its copies elsewhere, in folders of the same names
        path = PurePath(folder if isinstance(folder, str) else "") / source
        is_copy = path.parent.parent.name == LOGS_FOLDER_NAME
        ids.add(path.parent.name if is_copy else str(path))

    return frozenset(ids)


def list_brought_logs_in_command(words: Sequence[str]) -> list[str]:
    """Return the names of the logs among the words of a command that were brought to the store."""
    names = []
    for word in words:
        if word.startswith(LOG_COPY_PREFIX):
            names.append(word.removeprefix(LOG_COPY_PREFIX))

    return list(dict.fromkeys(names))


def name_logs_of_command(words: Sequence[str]) -> str:
    """Return the names of the logs in the words of a command that pages started; empty if unknown."""
    names = list_brought_logs_in_command(words)
    for word in () if names or IS_READER.get() else words:
        if may_be_log(Path(word)):
            names.append(PurePath(word).name)

    return " and ".join(names)


def name_source(source: str) -> str:
    """Return the name of a log by its path; empty where who asks sees no file's name."""
    path = PurePath(source)
    site = SERVED_SITE.get()
    # a copy in the store has the name that people call it by
    if path.parent.parent.name == LOGS_FOLDER_NAME and site is not None:
        for reading in list_readings(site.store.folder):
            if reading.id == path.parent.name:
                return reading.name

    return "" if IS_READER.get() else path.name


def list_runs_of_set(site: Site, named: NamedSet) -> list[Run]:
    """Return the ended runs that made a rubric set or scored by it, the last one first."""
    runs = []
    for run in site.runs():
        belongs = run.id == named.run or run.fingerprint.get("rubrics") == named.id
        if belongs and run.command in SCORING_COMMANDS and run.finished is not None:
            runs.append(run)

    return runs


def list_runs_of_own_log(site: Site, named: NamedSet) -> list[Run]:
    """Return those of them on the log that the set was learned from; all, where the store lacks it."""
    runs = list_runs_of_set(site, named)
    made_by = next((run for run in runs if run.id == named.run), None)
    if made_by is None:
        return runs

    own_logs = identify_logs_of_run(made_by)
    own = []
    for run in runs:
        # of a log in memory nobody knows whether it is the same
        if run is made_by or (own_logs and identify_logs_of_run(run) == own_logs):
            own.append(run)

    return own
