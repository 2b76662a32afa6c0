"""Forget conversations: out of the store for good, and named in the files that quote them."""

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pollex.errors import WrongUse
from pollex.graphs.context import Progress
from pollex.services.forgetting_files import SET_FILE, quotes, without_quotes
from pollex.services.options import RunOptions
from pollex.services.results import Result
from pollex.store.forgetting import ToForget, conversations_to_forget, forget, left_in, require_idle
from pollex.store.outputs import Output, digest_of_file, outputs_of, renew_outputs
from pollex.store.resume import runs
from pollex.store.store import Store
from pollex.text import Line, Told

ENDINGS = (".json", ".jsonl", ".html", ".toml", ".csv", ".md", ".parquet", ".xml", ".gz", ".zst")
LARGEST = 256 << 20
"""Bytes of the largest file outside the store that is looked through."""


@dataclass(frozen=True)
class Forgotten(Result):
    """What was forgotten.

    Attributes:
        conversations: How many.
        gone: Rows that went out of the store, by table; of a dry run those of conversations, which
            would go.
        quoting: Files that quote them, or name them.
        rewritten: Those of these that no longer do.
        left: Files that could not be looked into, with the reason for each.
    """

    json_fields = ("conversations", "gone", "quoting", "rewritten", "left", "dry_run")

    conversations: int
    gone: dict[str, int]
    quoting: tuple[Path, ...]
    rewritten: tuple[Path, ...]
    left: dict[str, str]
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is left that quotes them."""
        return not self.left and set(self.quoting) == set(self.rewritten)

    def told(self) -> Told:
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
        for place, why in self.left.items():
            yield f"Not looked into: {place}: {why}"
        if set(self.quoting) - set(self.rewritten):
            rest = "" if self.dry_run else ": make these files again, or edit them"
            yield Line(
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
) -> Forgotten:
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
            "no conversation was named", remedy="name one, or a user", option="conversation"
        )
    if not (run.store / "store.sqlite").exists():
        raise WrongUse(
            "there is no store here", where=str(run.store), remedy="name its folder", option="store"
        )
    require_idle(run.store)
    with Store.open(run.store) as store:
        target = conversations_to_forget(store, ids, users)
        if not target.ids:
            raise WrongUse(
                "no conversation in the store is theirs",
                where=str(run.store),
                remedy="check the spelling",
            )
        outputs, left = found_outputs(store, target, places)
        files = [*looked_through(places), *ours_in(run.store.absolute().parent), *outputs]
        files = list(dict.fromkeys(path.resolve() for path in files))
        left |= {
            str(path): f"it has more than {LARGEST >> 20} MB"
            for path in files
            if path.stat().st_size > LARGEST
        }
        quoting = [path for path in files if str(path) not in left and quotes(path, target)]
        gone = {"conversations": target.stored_rows} if dry_run else forget(store, target)
        done = [
            path for path in quoting if rewrite and not dry_run and without_quotes(path, target)
        ]
        if not dry_run:
            note_places(store, outputs)
    if not any(gone.values()) and not quoting:
        raise WrongUse("nothing is kept of them", where=str(run.store), remedy="check the spelling")
    for path in quoting:
        progress.note(f"{'Rewrote' if path in done else 'Note: it is quoted in'} {path}")
    left |= {str(path): "it was set aside as damaged" for path in left_in(run.store, target)}
    return Forgotten(len(target.ids), gone, tuple(quoting), tuple(done), left, dry_run)


def looked_through(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of the named kinds: those given, and those that lie in the given folders."""
    for place in places:
        inside = sorted(place.iterdir()) if place.is_dir() else [place]
        yield from (path for path in inside if path.is_file() and path.suffix in ENDINGS)


def ours_in(folder: Path) -> Iterator[Path]:
    """Yield the rubric sets and pages in a folder; a log that lies there is nobody's but the user's."""
    for path in looked_through([folder]):
        if path.suffix in (".html", ".toml") or (
            path.suffix == ".json" and SET_FILE in path.read_bytes()
        ):
            yield path


def found_outputs(
    store: Store, target: ToForget, places: Sequence[Path]
) -> tuple[dict[Path, Output], dict[str, str]]:
    """Find the files that pollex wrote, as the store knows them.

    Returns:
        Those that are there, also under another name in a folder that is looked through; and why
        others may quote the conversations all the same.
    """
    outputs = outputs_of(store)
    lying = [(output.place(store.folder.resolve()), output) for output in outputs]
    output_by_place = {place: output for place, output in lying if place is not None}
    folders = {*(path for path in places if path.is_dir()), store.folder.absolute().parent}
    folders |= {path.parent for path in output_by_place}
    left: dict[str, str] = {}
    for output in (
        output for place, output in lying if place is None and _may_hold(output, target)
    ):
        moved = None if output.remote else _moved(output, folders)
        if moved is not None:
            output_by_place[moved] = output
        elif output.remote:
            left[output.path] = "it lies on another file system: make it again, or remove it"
        else:
            left[output.path] = (
                "pollex wrote it, and it is no longer there: if it was moved, give its new place"
            )
    for path in written_by_earlier_runs(store):
        output_by_place.setdefault(path.resolve(), Output(str(path), "", "", 0, ""))
    for path in output_by_place:
        # what a killed command left
        for draft in path.parent.glob(f".{glob.escape(path.name)}.*"):
            draft.unlink()
    return output_by_place, left


def _may_hold(output: Output, target: ToForget) -> bool:
    """Tell whether a file that isn't there may have the conversations: not one of a run that never had them."""
    written = bool(output.digest) or output.remote
    return written and (not output.run or output.run in target.runs)


def _moved(output: Output, folders: Iterable[Path]) -> Path | None:
    """Return where a file lies now, known by its content."""
    files = (path for folder in folders for path in sorted(folder.iterdir()) if path.is_file())
    alike = (path for path in files if path.stat().st_size == output.size)
    return next((path for path in alike if digest_of_file(path) == output.digest), None)


def note_places(store: Store, outputs: Mapping[Path, Output]) -> None:
    """Keep where the files are now, and what stands in them."""
    renew_outputs(
        store,
        [output.path for output in outputs.values()],
        {str(p): o.run for p, o in outputs.items()},
    )


def written_by_earlier_runs(store: Store) -> Iterator[Path]:
    """Yield the files of runs from before the store kept a list of them, with the pages beside them."""
    for run in runs(store):
        out = run.arguments.get("out")
        if isinstance(out, str):
            folders = [store.folder.absolute().parent, Path(run.arguments.get("folder", ""))]
            place = next(
                (folder / out for folder in folders if (folder / out).is_file()), Path(out)
            )
            beside = [place, place.with_suffix(".html"), place.with_name("report.html")]
            yield from looked_through([path.absolute() for path in beside if path.is_file()])
