"""Forget conversations: out of the store for good, and named in the files that quote them."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.calibration.files import write_whole
from pollex.errors import WrongUse
from pollex.graphs.context import Progress
from pollex.rubrics.rubric_set import RubricSet, digest_of
from pollex.services.options import RunOptions
from pollex.services.results import Result
from pollex.store.forgetting import FORGOTTEN, ToForget, conversations_to_forget, forget, left_in, require_idle
from pollex.store.resume import runs
from pollex.store.store import Store
from pollex.text import Line, Told

ENDINGS = (".json", ".jsonl", ".html", ".toml", ".csv", ".md", ".parquet")
SET = b'"rubrics_digest"'
"""What every rubric set has in it."""
LARGEST = 256 << 20
"""Bytes of the largest file beside the store that is looked through."""
_BLOCKS = (
    "html|head|body|title|main|header|footer|nav|aside|section|article|div|p|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|th|td"
    "|blockquote|figure|figcaption|details|summary|h[1-6]|pre"
)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS})\b[^>]*>", re.IGNORECASE)
_LINE = re.compile(r"\n")
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Forgotten(Result):
    """What was forgotten.

    Attributes:
        conversations: How many.
        gone: Rows that went out of the store, by table; of a dry run those of conversations, which would go.
        quoting: Files that quote them, or name them.
        rewritten: Those of these that no longer do.
        left: Files of the store that could not be looked into.
    """

    json_fields = ("conversations", "gone", "quoting", "rewritten", "left", "dry_run")

    conversations: int
    gone: dict[str, int]
    quoting: tuple[Path, ...]
    rewritten: tuple[Path, ...]
    left: tuple[Path, ...]
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is left that quotes them."""
        return not self.left and set(self.quoting) == set(self.rewritten)

    def told(self) -> Told:
        """Yield what went, and what still quotes it."""
        rows = ", ".join(f"{count} {name}" for name, count in self.gone.items() if count) or "nothing is kept of them"
        if self.dry_run:
            yield f"Would forget {self.conversations} conversations, with answers, texts, labels and calls ({rows})"
        else:
            yield f"Forgot {self.conversations} conversations ({rows})"
        for path in self.quoting:
            yield f"{'Rewritten' if path in self.rewritten else 'Still quotes them'}: {path}"
        for path in self.left:
            yield f"Set aside as damaged, and not looked into: {path}"
        if set(self.quoting) - set(self.rewritten):
            rest = "" if self.dry_run else ": make these files again, or edit them"
            yield Line(f"--rewrite would {'take' if self.dry_run else 'have taken'} the quotes out{rest}", "bold")


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
        places: Files and folders to look through, beside the store's own folder and what its runs wrote.
        rewrite: Whether quotes are taken out of those files, too: afterwards nothing tells what to look for.
        dry_run: Whether the files are only named.

    Raises:
        StoreBusy: A run goes on.
        WrongUse: Nothing was named, or the store has no such conversation.
    """
    if not ids and not users:
        raise WrongUse("no conversation was named", remedy="name one, or a user", option="conversation")
    if not (run.store / "store.sqlite").exists():
        raise WrongUse("there is no store here", where=str(run.store), remedy="name its folder", option="store")
    require_idle(run.store)
    with Store.open(run.store) as store:
        target = conversations_to_forget(store, ids, users)
        if not target.ids:
            raise WrongUse("no conversation in the store is theirs", where=str(run.store), remedy="check the spelling")
        files = [*looked_through(places), *ours_in(run.store.absolute().parent), *written_by_runs(store)]
        quoting = [path for path in dict.fromkeys(path.resolve() for path in files) if quotes(path, target)]
        gone = {"conversations": target.kept} if dry_run else forget(store, target)
    if not any(gone.values()) and not quoting:
        raise WrongUse("nothing is kept of them", where=str(run.store), remedy="check the spelling")
    done = [path for path in quoting if rewrite and not dry_run and without_quotes(path, target)]
    for path in quoting:
        progress.note(f"{'Rewrote' if path in done else 'Note: it is quoted in'} {path}")
    left = tuple(left_in(run.store, target))
    return Forgotten(len(target.ids), gone, tuple(quoting), tuple(done), left, dry_run)


def looked_through(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of the named kinds: those given, and those that lie in the given folders."""
    for place in places:
        inside = sorted(place.iterdir()) if place.is_dir() else [place]
        yield from (path for path in inside if path.is_file() and path.suffix in ENDINGS)


def ours_in(folder: Path) -> Iterator[Path]:
    """Yield the rubric sets and pages in a folder; a log that lies there is nobody's but the user's."""
    for path in looked_through([folder]):
        if path.suffix in (".html", ".toml") or (path.suffix == ".json" and SET in path.read_bytes()):
            yield path


def written_by_runs(store: Store) -> Iterator[Path]:
    """Yield the files that runs were told to write, with the pages beside them."""
    for run in runs(store):
        out = run.arguments.get("out")
        if isinstance(out, str) and Path(out).is_file():
            yield from looked_through([Path(out), Path(out).with_suffix(".html"), Path(out).with_name("report.html")])


def quotes(path: Path, target: ToForget) -> bool:
    """Tell whether a file quotes or names one of the conversations."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        return False
    if path.suffix == ".parquet":
        return bool(_ids_of(path) & target.ids)
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".json", ".jsonl"):
        return any(target.cleaned(value) != value for value in _values(path, text))
    return target.traces.within(_said(text) if path.suffix == ".html" else text)


def without_quotes(path: Path, target: ToForget) -> bool:
    """Take the conversations out of a file; return whether nothing is left in it."""
    if path.suffix == ".parquet":
        _filter(path, target)
    elif path.suffix in (".json", ".jsonl"):
        values = [target.cleaned(value) for value in _values(path, path.read_text(encoding="utf-8"))]
        lines = path.suffix == ".jsonl"
        kept = [value for value in values if not (lines and isinstance(value, dict) and value.get("id") in target.ids)]
        shown = (json.dumps(with_new_digest(value), ensure_ascii=False, indent=None if lines else 1) for value in kept)
        write_whole(path, "".join(f"{one}\n" for one in shown).encode())
    else:
        write_whole(path, _masked(path.read_text(encoding="utf-8"), path.suffix == ".html", target).encode())
    return not quotes(path, target)


def with_new_digest(value: Any) -> Any:
    """Return a rubric set with the digest of its rubrics as they are now: quotes are a part of it."""
    if not isinstance(value, dict) or "rubrics_digest" not in value:
        return value
    before = RubricSet.parse(value)
    return before.model_copy(update={"rubrics_digest": digest_of(before.rubrics)}).model_dump(mode="json")


def _values(path: Path, text: str) -> list[Any]:
    try:
        return (
            [json.loads(line) for line in text.splitlines() if line.strip()]
            if path.suffix == ".jsonl"
            else [json.loads(text)]
        )
    except ValueError:
        return [text]


def _masked(text: str, page: bool, target: ToForget) -> str:
    """Replace what quotes them: in a page runs of text, and whole blocks where tags lie within a quote."""
    for pattern in (_TAG, _BLOCK) if page else (_LINE,):
        parts = re.split(f"({pattern.pattern})", text, flags=pattern.flags)
        text = "".join(
            FORGOTTEN if place % 2 == 0 and target.traces.within(_said(part)) else part
            for place, part in enumerate(parts)
        )
    return text


def _said(page: str) -> str:
    return html.unescape(_TAG.sub(" ", page))


def _ids_of(path: Path) -> set[str]:
    import duckdb  # only where files of columns lie beside the store

    with duckdb.connect() as database:
        columns = [row[0] for row in database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()]
        if "id" not in columns:
            return set()
        return {str(row[0]) for row in database.execute("SELECT id FROM read_parquet(?)", [str(path)]).fetchall()}


def _filter(path: Path, target: ToForget) -> None:
    import duckdb  # as above

    draft = path.with_name(f".{path.name}.draft")
    with duckdb.connect() as database:
        kept = "SELECT * FROM read_parquet(?) WHERE NOT list_contains(?, CAST(id AS VARCHAR))"
        quoted = str(draft).replace("'", "''")
        database.execute(f"COPY ({kept}) TO '{quoted}' (FORMAT parquet)", [str(path), sorted(target.ids)])
    draft.replace(path)
