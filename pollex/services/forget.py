"""Forget conversations: out of the store for good, and named in the files that quote them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pollex.errors import WrongUse
from pollex.graphs.context import Progress
from pollex.outputs import find_left_drafts
from pollex.runs.options import RunOptions
from pollex.services.forgetting_bounds import MAX_WHOLE_FILE_BYTES, FileNotSearched
from pollex.services.forgetting_files import (
    RUBRIC_SET_MARK,
    file_quotes_target,
    remove_forgotten_quotes,
)
from pollex.services.readings import READING_FILE_NAME as READING
from pollex.services.readings import keep_reading, list_readings
from pollex.services.results import Result
from pollex.store.forgetting import (
    ForgettingTarget,
    delete_conversations_from_store,
    find_conversations_to_forget,
    list_unforgotten_files,
    require_idle_store,
)
from pollex.store.outputs import OutputFile, list_outputs, update_noted_outputs
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store
from pollex.text import TerminalLine, TerminalLines

SEARCHED_FILE_ENDINGS = (
    ".json",
    ".jsonl",
    ".html",
    ".toml",
    ".csv",
    ".md",
    ".parquet",
    ".xml",
    ".gz",
    ".zst",
)
UNNAMED_FILE_REASON = (
    "the store alone names it, and it isn't as pollex wrote it: name it, if it is yours"
)
LINKED_FILE_REASON = "it is a link: name what it leads to, if that is yours"


@dataclass(frozen=True)
class ForgetResult(Result):
    """What was forgotten.

    Attributes:
        conversations: How many.
        gone: Rows that went out of the store, by table; of a dry run those of conversations, which
            would go.
        quoting: Files that quote them, or name them.
        rewritten: Those of these that no longer do.
        left: Files that could not be looked into, with the reason for each.
        unconfirmed: Files among those that quote which are not rewritten, with the reason for each.
    """

    json_fields = (
        "conversations",
        "gone",
        "quoting",
        "rewritten",
        "left",
        "unconfirmed",
        "dry_run",
    )

    conversations: int
    gone: dict[str, int]
    quoting: tuple[Path, ...]
    rewritten: tuple[Path, ...]
    left: dict[str, str]
    unconfirmed: dict[str, str]
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is left that quotes them."""
        return not self.left and set(self.quoting) == set(self.rewritten)

    def told(self) -> TerminalLines:
        """Yield what went, and what still quotes it."""
        rows = (
            ", ".join(f"{count} {name}" for name, count in self.gone.items() if count)
            or "nothing is kept of them"
        )
        if self.dry_run:
            yield f"Would forget {self.conversations} conversations, with answers, texts, labels and calls ({rows})"
        else:
            yield f"Forgot {self.conversations} conversations ({rows})"

        for path in self.quoting:
            yield f"{'Rewritten' if path in self.rewritten else 'Still quotes them'}: {path}"

        for place, why in self.unconfirmed.items():
            yield f"{'Would not be' if self.dry_run else 'Not'} rewritten: {place}: {why}"

        for place, why in self.left.items():
            yield f"Not looked into: {place}: {why}"

        if set(self.quoting) - set(self.rewritten):
            if self.dry_run:
                rest = ""
            else:
                rest = ": make these files again, or edit them"

            yield TerminalLine(
                f"--rewrite would {'take' if self.dry_run else 'have taken'} the quotes out{rest}",
                "bold",
            )


def forget_conversations(
    run: RunOptions,
    ids: Sequence[str],
    users: Sequence[str],
    places: Sequence[Path] = (),
    *,
    rewrite: bool = False,
    dry_run: bool = False,
    progress: Progress,
) -> ForgetResult:
    """Take conversations out of the store, and find the files that quote them.

    Args:
        users: All whose conversations are to go.
        places: Files and folders to look through, beside the store's own folder and what its runs
            wrote.
        rewrite: Whether quotes are taken out of those files, too: afterwards nothing tells what to
            look for.
        dry_run: Whether the files are only named.

    Raises:
        StoreBusy: A run goes on.
        WrongUse: Nothing was named, or the store has no such conversation.
    """
    if not ids and not users:
        raise WrongUse(
            "no conversation was named",
            hint="name one, or a user",
            option="conversation",
        )
    for option, names in (("conversation", ids), ("user", users)):
        if not all(name.strip() for name in names):
            raise WrongUse("an empty name", hint="leave it out", option=option)

    # opening would make a store where there is none
    if not (run.store / "store.sqlite").exists():
        raise WrongUse(
            "there is no store here",
            where=str(run.store),
            hint="name its folder",
            option="store",
        )

    # a run that goes on could write about them again
    require_idle_store(run.store)
    with Store.open(run.store) as store:
        target = find_conversations_to_forget(store, ids, users)
        if not target.ids:
            raise WrongUse(
                "no conversation in the store is theirs",
                where=str(run.store),
                hint="check the spelling",
            )

        # files are searched before the store forgets what to look for
        search = find_files_to_search(store, target, places)
        left = dict(search.left)
        quoting = list[Path]()
        for path in search.files:
            try:
                if file_quotes_target(path, target):
                    quoting.append(path)
            except FileNotSearched as refused:
                left[str(path)] = refused.what

        if dry_run:
            gone = {"conversations": target.stored_rows}
            rewritten = []
        else:
            # the store's own files are always cleaned, those of the user only if that was asked for
            gone = delete_conversations_from_store(store, target)
            own = []
            for path in quoting:
                if path in search.own:
                    own.append(path)

            rewritten = rewrite_quoting_files(
                quoting if rewrite else own,
                search,
                target,
                left,
            )
            reset_reading_counts(run.store, rewritten)
            # an interrupted writing may have left a draft beside a file
            for draft in [draft for path in search.outputs for draft in find_left_drafts(path)]:
                draft.unlink()
            record_output_places(store, search.outputs)

    # neither rows nor files: most likely the name was mistyped
    if not any(gone.values()) and not quoting:
        raise WrongUse(
            "nothing is kept of them",
            where=str(run.store),
            hint="check the spelling",
        )

    for path in quoting:
        progress.note(f"{'Rewrote' if path in rewritten else 'Note: it is quoted in'} {path}")

    # what was set aside as damaged can't be opened, only found
    for path in list_unforgotten_files(run.store, target):
        left[str(path)] = "it was set aside as damaged"

    unconfirmed = {}
    for path in quoting:
        if path in search.unconfirmed:
            unconfirmed[str(path)] = search.unconfirmed[path]

    return ForgetResult(
        len(target.ids),
        gone,
        tuple(quoting),
        tuple(rewritten),
        left,
        unconfirmed,
        dry_run,
    )


def reset_reading_counts(store: Path, rewritten: Collection[Path]) -> None:
    """Forget how many conversations a log that was brought has, where some went out of it."""
    for reading in list_readings(store, kept_only=False):
        # how many are left is counted when the log is next read
        if any(path.parent == reading.folder.resolve() for path in rewritten):
            keep_reading(replace(reading, conversations=None))


def rewrite_quoting_files(
    quoting: Sequence[Path],
    search: FileSearch,
    target: ForgettingTarget,
    left: dict[str, str],
) -> list[Path]:
    """Take the conversations out of files that may be written; return those in which nothing is left.

    Args:
        left: Is told of those that can't be read any more.
    """
    rewritten = []
    for path in quoting:
        if path in search.unconfirmed:
            continue
        try:
            if remove_forgotten_quotes(path, target):
                rewritten.append(path)
        except FileNotSearched as refused:
            left[str(path)] = refused.what

    return rewritten


@dataclass(frozen=True)
class FileSearch:
    """Files outside the store that are looked into.

    Attributes:
        files: All of them, resolved.
        own: Those in the store's own folder: logs that were brought, results of commands, and what
            an assistant is asked by files. They are rewritten without being asked to.
        outputs: Those that pollex wrote: the store knows them, and they are as they were written,
            or the user named them.
        unconfirmed: Those that are read but not written, with the reason: who made the store, or
            the folder, need not be the user.
        left: What isn't looked into, with the reason.
    """

    files: tuple[Path, ...]
    own: frozenset[Path]
    outputs: Mapping[Path, OutputFile]
    unconfirmed: Mapping[Path, str]
    left: Mapping[str, str]


def find_files_to_search(
    store: Store,
    target: ForgettingTarget,
    places: Sequence[Path],
) -> FileSearch:
    """Find the files to look into: those named, those beside the store, and those that pollex wrote."""
    beside = store.folder.absolute().parent
    near = [*list_named_files(places), *list_pollex_files(beside)]
    # a link that the user named is followed; one that merely lies there is not
    named = set()
    for path in places:
        if path.is_file():
            named.add(path)

    links = set()
    for path in near:
        if path.is_symlink() and path not in named:
            links.add(path)

    confirmed = set()
    for path in near:
        if path not in links:
            confirmed.add(path.resolve())

    # what the store says it wrote is checked before it is believed
    outputs, unsure, left = find_known_outputs(store, target, places, confirmed)
    unconfirmed = {path.resolve(): LINKED_FILE_REASON for path in links} | unsure
    confirmed |= set(outputs)
    own = frozenset(list_own_files(store.folder.resolve()))

    left_unconfirmed = {}
    for path, why in unconfirmed.items():
        if path not in confirmed:
            left_unconfirmed[path] = why

    return FileSearch(
        tuple(dict.fromkeys([*confirmed, *own, *unconfirmed])),
        own,
        outputs,
        left_unconfirmed,
        left,
    )


MAX_FILES_SEARCHED = 5_000
"""Files of a folder that are looked at for one that was moved."""

OWN_FILE_PATTERNS = ("logs/*/*", "commands/ended/*.json", "asked/*/*.jsonl")
"""Files in a store that may hold conversations, beside its database."""


def list_own_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a store that may hold conversations; a link is none of its own."""
    for pattern in OWN_FILE_PATTERNS:
        # the file that says how a log is read quotes nobody
        paths = (path for path in sorted(folder.glob(pattern)) if path.name != READING)
        for path in paths:
            if path.is_file() and not path.is_symlink():
                yield path


def list_named_files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of the named kinds: those given, and those that lie in the given folders."""
    for place in places:
        if place.is_dir():
            inside = sorted(place.iterdir())
        else:
            inside = [place]

        for path in inside:
            if path.is_file() and path.suffix in SEARCHED_FILE_ENDINGS:
                yield path


def list_pollex_files(folder: Path) -> Iterator[Path]:
    """Yield the rubric sets and pages in a folder; a log that lies there is nobody's but the user's."""
    for path in list_named_files([folder]):
        if path.suffix in (".html", ".toml") or (path.suffix == ".json" and is_set_file(path)):
            yield path


def is_set_file(path: Path) -> bool:
    """Tell whether a file looks like a rubric set; one that is too large to look into counts as one."""
    return path.stat().st_size > MAX_WHOLE_FILE_BYTES or RUBRIC_SET_MARK in path.read_bytes()


def find_known_outputs(
    store: Store,
    target: ForgettingTarget,
    places: Sequence[Path],
    confirmed: Collection[Path],
) -> tuple[dict[Path, OutputFile], dict[Path, str], dict[str, str]]:
    """Find the files that pollex wrote, as the store knows them.

    A store may come from anybody: a path in it is only believed where the file is what was written,
    byte for byte, or the user named it.

    Args:
        confirmed: Files that the user named, or that lie beside the store.

    Returns:
        Those that are there, also under another name in a folder that is looked through; those that
        are there and not believed, with the reason; and why others may quote the conversations all
        the same.
    """
    outputs: dict[Path, OutputFile] = {}
    doubted: dict[str, Path] = {}
    missing: list[OutputFile] = []
    store_folder = store.folder.resolve()
    for output in list_outputs(store):
        there = output.places(store_folder)
        # a path in a store counts only if its content is what was written, or somebody confirmed it
        sure = []
        for path in there:
            if path.resolve() in confirmed or output.is_believed(path, store_folder):
                sure.append(path)

        outputs |= {path.resolve(): output for path in sure[:1]}
        if sure:
            continue

        # in a copy of a folder the path is that of the original, and the copy's own file may be renamed
        missing.append(output)
        if there:
            doubted[output.path] = there[0]

    unsure: dict[Path, str] = {}

    # earlier stores have no digests, so that nothing of them can be sure
    for path in list_unlisted_outputs(store):
        if path.resolve() not in outputs:
            unsure.setdefault(path.resolve(), UNNAMED_FILE_REASON)

    # What isn't there may have been moved.
    folders_named = []
    for path in places:
        if path.is_dir():
            folders_named.append(path)

    folders = {*folders_named, store.folder.absolute().parent}
    folders |= {path.parent for path in outputs}
    left: dict[str, str] = {}
    for output in missing:
        if output.path not in doubted and not _may_hold_conversations(output, target):
            continue
        # what lies on another file system is not looked for
        if output.remote:
            moved = []
        else:
            moved = _find_moved_outputs(output, folders)

        if moved:
            outputs |= {path.resolve(): output for path in moved}
        elif output.path in doubted:
            path = doubted[output.path]
            unsure[path.resolve()] = (
                LINKED_FILE_REASON if path.is_symlink() else UNNAMED_FILE_REASON
            )
        elif output.remote:
            left[output.path] = "it lies on another file system: make it again, or remove it"
        else:
            left[output.path] = (
                "pollex wrote it, and it is no longer there: if it was moved, give its new place"
            )

    return outputs, unsure, left


def _may_hold_conversations(output: OutputFile, target: ForgettingTarget) -> bool:
    """Tell whether a file that isn't there may have the conversations: not one of a run that never had them."""
    # without a digest no file was there that could be read, as where it went to a pipe
    written = bool(output.digest) or output.remote
    return written and (not output.run or output.run in target.runs)


def _find_moved_outputs(output: OutputFile, folders: Iterable[Path]) -> list[Path]:
    """Return where a file and its copies lie now, known by their content."""
    moved = []
    for folder in folders:
        for path in _list_files_below(folder):
            if output.is_unchanged(path):
                moved.append(path)

    return moved


def _list_files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in those below it, nearest first; hidden ones, and those of a crowd, not."""
    folders = [folder]
    yielded = 0
    # grows while it is walked through, so that nearer folders come first
    for current in folders:
        with suppress(OSError):
            for path in sorted(current.iterdir()):
                if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                    folders.append(path)
                elif path.is_file():
                    yielded += 1
                    yield path

        if yielded > MAX_FILES_SEARCHED:
            return


def record_output_places(store: Store, outputs: Mapping[Path, OutputFile]) -> None:
    """Keep where the files are now, and what stands in them."""
    update_noted_outputs(
        store,
        [output.path for output in outputs.values()],
        {str(p): o.run for p, o in outputs.items()},
    )


def list_unlisted_outputs(store: Store) -> Iterator[Path]:
    """Yield the files of runs from before the store kept a list of them, with the pages beside them."""
    for run in list_stored_runs(store):
        out = run.arguments.get("out")
        # as it was typed, it is meant from the folder of the run
        if isinstance(out, str):
            folders = [store.folder.absolute().parent, Path(run.arguments.get("folder", ""))]
            place = next(
                (folder / out for folder in folders if (folder / out).is_file()),
                Path(out),
            )
            beside = [place, place.with_suffix(".html"), place.with_name("report.html")]
            yield from list_named_files([path.absolute() for path in beside if path.is_file()])
