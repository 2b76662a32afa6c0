"""Exchange rubric sets and scores with other tools."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pollex.conversations.conversation import Conversation
from pollex.errors import BadRubrics, WrongUse
from pollex.formats.write import write_text_files_into_folder
from pollex.graphs.context import Progress
from pollex.outputs import write_text
from pollex.rooms.exchange.formats.peer_scores import (
    REQUEST_FORMS,
    PeerIds,
    WrittenRequests,
    iterate_file_lines,
    make_requests,
)
from pollex.rooms.exchange.formats.peers.targets import (
    EMBEDDED_JUDGE_NOTE,
    EXPORT_TARGETS,
    ExportTarget,
    make_sheet,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.runs.options import RunOptions
from pollex.services.named_sets import get_store_folder, read_rubric_set
from pollex.services.results import Result
from pollex.text import TerminalLines, render_notes


@dataclass(frozen=True, kw_only=True)
class ExportResult(Result):
    """A rubric set in another tool's form.

    Attributes:
        notes: What can't be said there, or differs.
    """

    target: ExportTarget
    files: tuple[Path, ...]
    notes: tuple[str, ...]

    complete = True
    json_fields = ("to=target.name", "netsat=target.netsat", "files", "notes")

    def told(self) -> TerminalLines:
        """Yield the files, how the tool comes to NetSAT, and what it can't say."""
        for path in self.files:
            yield f"Wrote {path}"
        yield f"NetSAT in {self.target.name} ({self.target.version}): {self.target.netsat}"
        yield from render_notes(self.notes)


def export_texts(rubrics: RubricSet, to: str) -> Mapping[str, str]:
    """Convert a rubric set to another tool's files, as texts by name.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: No such tool is known, or it can't hold the set.
    """
    rubrics.require_unedited()
    return find_target(to).files(make_sheet(rubrics))


def find_target(to: str) -> ExportTarget:
    """Return the tool of a name; raise `WrongUse` if unknown."""
    if to not in EXPORT_TARGETS:
        raise WrongUse(
            f"no tool is called {to!r:.40}",
            hint=f"one of: {', '.join(EXPORT_TARGETS)}",
        )

    return EXPORT_TARGETS[to]


def export_rubrics(
    rubrics: Path | RubricSet,
    *,
    to: str,
    out: Path,
    run: RunOptions | None = None,
    progress: Progress,
) -> ExportResult:
    """Write a rubric set in another tool's form.

    Args:
        out: A folder, which is made.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
        WrongUse: No such tool is known, or the folder can't be written.
    """
    del progress  # it takes no time
    loaded = read_rubric_set(rubrics, get_store_folder(run), arrays=False)
    # all texts are made before the folder is touched
    texts = export_texts(loaded, to)

    if out.exists() and not out.is_dir():
        raise WrongUse(
            "it is a file",
            where=str(out),
            hint="give the name of a folder",
        )

    # the set's own file must not be written over
    write_text_files_into_folder(
        out,
        texts,
        *([] if isinstance(rubrics, RubricSet) else [rubrics]),
    )
    notes = (EMBEDDED_JUDGE_NOTE,) if loaded.judge.kind == "embedded" else ()
    return ExportResult(
        target=find_target(to),
        files=tuple(out / name for name in texts),
        notes=notes,
    )


def require_form(form: str) -> None:
    """Raise `WrongUse` where no tool takes scores back under a name."""
    if form not in REQUEST_FORMS:
        raise WrongUse(
            f"no form of scores is called {form!r:.40}",
            hint=f"one of: {', '.join(REQUEST_FORMS)}",
        )


def collect_peer_ids(conversations: Iterable[Conversation]) -> dict[str, PeerIds]:
    """Return the identifiers of conversations in the tool that they came from."""
    # by the id of the conversation in this project
    counts = {}
    for conversation in conversations:
        # the traces of a log: first and last trace, and the last one's span
        traces = conversation.metadata.get("traces")
        first, last, span = (
            traces if isinstance(traces, list | tuple) and len(traces) == 3 else ("", "", "")
        )
        # without a trace the conversation's own id names the session
        if last:
            session = str(conversation.metadata.get("session") or "")
        else:
            session = conversation.id

        counts[conversation.id] = PeerIds(session, last, span, first)

    return counts


def write_requests(
    path: Path,
    form: str,
    scores: Iterable[Score],
    rubrics: RubricSet,
    conversations: Sequence[Conversation],
) -> WrittenRequests:
    """Write scores as a file of another tool's requests."""
    written = make_requests(form, scores, rubrics, collect_peer_ids(conversations))
    # conversations there are, and not one with figures for this tool
    if not written.requests and written.left_out:
        raise BadRubrics(
            f"nothing to write: {written.left_out[0][1]}",
            hint="score conversations of that tool",
        )

    write_text(path, "".join(iterate_file_lines(form, written.requests)))
    return written
