"""Logs that a use case reads, with labels by whom they were given (they mix only where asked for), and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pollex.conversations.conversation import DRAW_METHOD_FIELD, Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import make_logs_of_conversations, read_logs, read_logs_from_rows
from pollex.graphs.context import Progress
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.store import Store
from pollex.text import format_count

if TYPE_CHECKING:
    from pollex.formats.frames import RowSource
    from pollex.store.labels import Opinion

MAX_LINES_LISTED = 10
"""How many bad rows or conversations are listed."""

IN_MEMORY_NAME = "(in memory)"

Sources = Sequence[str | Path] | str | Path
Data: TypeAlias = "Logs | Iterable[Conversation] | Sources | RowSource"
"""Logs, conversations, paths or globs, dicts, or a table of pandas, polars or Arrow."""


def read_given_logs(data: Data, options: ReadOptions) -> Logs:
    """Return logs from whatever holds conversations, as callers in Python give it."""
    if isinstance(data, Logs):
        return data
    if isinstance(data, str | Path):
        return read_logs(data, options=options)
    # its lines would be taken for the names of files
    if hasattr(data, "read"):
        raise WrongUse(f"not a log, but {type(data).__name__}", hint="give the path of the file")
    # a table has columns, a dict has fields, and not every table can be walked
    if isinstance(data, Mapping) or hasattr(data, "columns") or not isinstance(data, Iterable):
        return read_logs_from_rows(cast("RowSource", data), options=options)

    # a list is told by its items
    items: list[Any] = list(data)
    if items and all(isinstance(item, str | Path) for item in items):
        return read_logs(items, options=options)
    if not items or any(isinstance(item, Conversation) for item in items):
        return make_logs_of_conversations(items)
    return read_logs_from_rows(items, options=options)


def logs_from(
    sources: Sources | Logs,
    options: ReadOptions,
    progress: Progress,
) -> Logs:
    """Read the conversations of some files, and report what was read and skipped.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
        WrongUse: The options contradict each other or the log.
    """
    if isinstance(sources, Logs):
        return sources

    progress.start("read", 1)
    # runs of these conversations say which files they are of
    logs = replace(read_logs(sources, options=options), sources=tuple(list_source_names(sources)))
    progress.advance("read")
    for line in describe_logs(logs):
        progress.note(line)

    return logs


def describe_logs(logs: Logs) -> list[str]:
    """Return what was read, and what was left out, in a few lines."""
    up, down, none = (
        logs.counts.get(label, 0) for label in (Label.POSITIVE, Label.NEGATIVE, Label.NONE)
    )
    lines = [
        f"{format_count(len(logs), 'conversation')}: {up} up, {down} down, {none} without a label"
    ]
    if logs.duplicates:
        lines.append(
            f"{format_count(logs.duplicates, 'identical duplicate counts', 'identical duplicates count')} once"
        )

    if logs.overruled:
        lines.append(
            f"{format_count(logs.overruled, 'conversation')} gave way to another of the same id"
        )

    if logs.originals:
        copies = sum(map(len, logs.originals.values()))
        lines.append(
            f"{format_count(copies, 'placeholder')} in {format_count(len(logs.originals), 'conversation')}, redacted"
        )

    lines += [f"Note: {note}" for note in logs.notes]
    for flag, ids in logs.flags.items():
        holds = format_count(len(ids), "conversation holds", "conversations hold")
        lines.append(f"Note: {holds} odd text ({flag}): {format_first_ids(ids)}")

    lines += format_count_with_lines(
        "bad row was left out",
        "bad rows were left out",
        [str(row) for row in logs.bad_rows],
    )
    odd = [f"{id_}: {why}" for id_, why in list_unscorable(logs)]
    return lines + format_count_with_lines(
        "conversation can't be judged", "conversations can't be judged", odd
    )


def report_repeats(logs: Logs, progress: Progress) -> None:
    """Report how many labeled conversations are not learned from, since they repeat a text."""
    for note in logs.note_on_repeats:
        progress.note(f"Note: {note}")


def list_unscorable(conversations: Iterable[Conversation]) -> list[tuple[str, str]]:
    """Return conversations that no judge can be asked about, and why."""
    pairs: list[tuple[str, str]] = []
    for c in conversations:
        if c.not_scorable:
            pairs.append((c.id, c.not_scorable))
    return pairs


def format_count_with_lines(singular: str, more: str, lines: Sequence[str]) -> list[str]:
    """Return a count with its noun, and the first lines; nothing without lines."""
    if not lines:
        return []

    if len(lines) > MAX_LINES_LISTED:
        rest = [f"  and {len(lines) - MAX_LINES_LISTED} more"]
    else:
        rest = []

    return [
        f"{format_count(len(lines), singular, more)}:",
        *(f"  {line}" for line in lines[:MAX_LINES_LISTED]),
        *rest,
    ]


def format_first_ids(ids: Sequence[str], most: int = 3) -> str:
    """Return the first ids of many."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def list_file_names(*sources: object) -> list[str]:
    """Return the names of files or globs, which may not be overwritten."""
    files: list[str] = []
    for source in sources:
        for name in list_source_names(source):
            if name != IN_MEMORY_NAME:
                files.append(name)

    return files


def list_source_names(source: object) -> list[str]:
    """Return file names for the record of a run; `IN_MEMORY_NAME` for other data."""
    if source is None:
        return []
    if isinstance(source, str | Path):
        return [str(source)]
    if isinstance(source, Logs) and source.sources:
        return list(source.sources)
    if isinstance(source, Logs) or not isinstance(source, Sequence):
        return [IN_MEMORY_NAME]
    return [str(source) for source in source]


LABELS_BY_THUMB = {"up": Label.POSITIVE, "down": Label.NEGATIVE}
LABEL_SOURCES_IN_WORDS = {
    "log": "of the log",
    "person": "of people",
    "adjudicated": "adjudicated",
}


def read_labeled_logs(
    sources: Sources | Logs,
    reading: ReadOptions,
    store: Path,
    progress: Progress,
) -> Logs:
    """Read logs with the labels of the sources that are wanted; report what was read. Raises as `logs_from`."""
    read = logs_from(sources, reading, progress)
    with_those_of_files = replace_labels(read, reading, store)
    # the notes on reading were told already
    for note in with_those_of_files.notes[len(read.notes) :]:
        progress.note(f"Note: {note}")

    return with_those_of_files


def replace_labels(logs: Logs, options: ReadOptions, store: Path) -> Logs:
    """Return the logs with the labels of the sources that `options` names.

    An adjudicated label stands over people's, theirs over the log's. People who disagree give none.
    A label whose giver had seen the score gives none either. The notes count the labels of each
    source.
    """
    # labels of the log alone need no look into the store
    if options.sources == ("log",):
        return logs

    opinions = read_thumbs_of_people(store, options.sources)
    used: Counter[str] = Counter()
    labeled = []
    for conversation in logs:
        labeled.append(_label_conversation(conversation, opinions, options.sources, used))

    # counts and the fingerprint are those of the new labels
    labeled_logs = make_logs_of_conversations(labeled)
    notes = (*logs.notes, *describe_label_sources(used, logs, labeled, opinions))
    return replace(
        logs,
        conversations=labeled_logs.conversations,
        counts=labeled_logs.counts,
        fingerprint=labeled_logs.fingerprint,
        notes=notes,
    )


def read_thumbs_of_people(store: Path, sources: Sequence[str]) -> Mapping[str, Opinion]:
    """Return people's thumbs in a store, by text."""
    if not (store / DATABASE_FILE_NAME).exists():
        return {}

    from pollex.store.labels import (  # few logs take labels of people
        THUMB_QUESTION,
        read_opinions,
        settle_opinions,
    )

    with Store.open(store, read_only=True) as opened:
        # an opinion counts only if its giver had not seen the score
        opinion_sources = []
        for opinion in read_opinions(opened, THUMB_QUESTION):
            if opinion.source in sources and opinion.counts:
                opinion_sources.append(opinion)

    return settle_opinions(opinion_sources)


def describe_label_sources(
    used: Mapping[str, int],
    logs: Logs,
    labeled: Sequence[Conversation],
    opinions: Mapping[str, Opinion],
) -> list[str]:
    """Say how many labels each source gave, and which replaced others."""
    counts_in_words = []
    for name, words in LABEL_SOURCES_IN_WORDS.items():
        if used[name]:
            counts_in_words.append(f"{used[name]} {words}")
    counted = ", ".join(counts_in_words)
    # labels of people that stand where the log has another one
    replaced = 0
    for a, b in zip(logs, labeled, strict=True):
        replaced += a.label not in (b.label, Label.NONE) and _find_opinion(a, opinions) is not None
    chosen = 0
    for conversation in labeled:
        if _find_opinion(conversation, opinions) is not None:
            chosen += conversation.preferred
    notes = [f"labels by source: {counted or 'none'}"]
    if replaced:
        notes.append(
            f"{format_count(replaced, 'label of people stands', 'labels of people stand')} in "
            "place of another one of the log"
        )

    if chosen:
        verb = "is" if chosen == 1 else "are"
        notes.append(
            f"{format_count(chosen, 'conversation')} that a queue chose, and not chance, {verb} never held out"
        )

    return notes


def _find_opinion(conversation: Conversation, opinions: Mapping[str, Opinion]) -> Opinion | None:
    # of before calls of tools were kept
    return opinions.get(conversation.text_hash) or opinions.get(conversation.words_hash)


def _label_conversation(
    conversation: Conversation,
    opinions: Mapping[str, Opinion],
    sources: Sequence[str],
    used: Counter[str],
) -> Conversation:
    opinion = _find_opinion(conversation, opinions)
    if opinion is not None:
        used[opinion.source] += 1
        # a label that came by no queue was drawn as by chance
        metadata = conversation.metadata | {DRAW_METHOD_FIELD: opinion.drawn or "random"}
        update = {
            "label": LABELS_BY_THUMB[opinion.value],
            "judge": opinion.annotator,
            "metadata": metadata,
        }
        return conversation.model_copy(update=update)
    # without the log among the sources, its own labels don't count
    if "log" not in sources:
        return conversation.model_copy(update={"label": Label.NONE})

    used["log"] += conversation.label is not Label.NONE
    return conversation
