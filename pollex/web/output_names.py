"""Names of the files that commands of the browser write: no command gets the name of another's."""

import os
from collections.abc import Sequence
from pathlib import Path

from pollex.store.runs import FINISHED_STATUSES
from pollex.web.frame import make_resume_words
from pollex.web.kept_commands import list_option_values
from pollex.web.site import Site

OUT_OPTION = "--out"


def find_free_path(site: Site, name: str) -> Path:
    """Return a path beside the store that has no file, and that no other command will write."""
    # relative to the server's own folder, in which the command works, too
    folder = Path(os.path.relpath(site.store.folder.absolute().parent))
    reserved = list_reserved_paths(site)
    stem, _, ending = name.rpartition(".")
    # later files have a number before the ending, from 2 on
    number = 1
    path = folder / name
    while path.exists() or path.resolve() in reserved:
        number += 1
        path = folder / f"{stem}-{number}.{ending}"

    return path


def list_reserved_paths(site: Site) -> set[Path]:
    """Return the absolute paths that commands will write: queued ones, and runs that may still go on."""
    reserved = set[Path]()
    for child in site.children.by_id.values():
        if not child.over and "--dry-run" not in child.arguments:
            reserved |= _list_outputs(child.arguments, child.folder)

    # a run that waits for people writes its file only once it goes on
    for run in site.runs():
        if run.status not in FINISHED_STATUSES:
            folder = run.arguments.get("folder")
            words = make_resume_words(run, site.store.folder)
            reserved |= _list_outputs(words, folder if isinstance(folder, str) else None)

    return reserved


def _list_outputs(words: Sequence[str], folder: str | None) -> set[Path]:
    outputs = set[Path]()
    for value in list_option_values(words, OUT_OPTION):
        outputs.add((Path(folder or ".") / value).resolve())

    return outputs


def rename_output(site: Site, words: Sequence[str], name: str) -> tuple[str, ...]:
    """Return a command that is about to be queued; what it writes has a name that is free now.

    Args:
        name: That of the file, where nothing else has it.
    """
    renamed = []
    for word in words:
        if word.startswith(f"{OUT_OPTION}="):
            renamed.append(f"{OUT_OPTION}={find_free_path(site, name)}")
        else:
            renamed.append(word)

    return tuple(renamed)
