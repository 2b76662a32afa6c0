"""Labels by whom they were given: thumbs of the log, people's, and adjudicated ones; they mix only where asked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pollex.conversations.conversation import DRAWN, Conversation, Label
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import logs_of
from pollex.graphs.context import Progress
from pollex.services.logs import Sources, logs_from
from pollex.store.database import FILE
from pollex.store.labels import THUMB, VOLUNTARY, Opinion, opinions, settled
from pollex.store.store import Store
from pollex.text import count

LABELS = {"up": Label.POSITIVE, "down": Label.NEGATIVE}
WORDS = {"log": "of the log", "person": "of people", "adjudicated": "adjudicated"}


def labeled_logs(given: Sources | Logs, reading: ReadOptions, store: Path, progress: Progress) -> Logs:
    """Read logs with the labels of the sources that are wanted; report what was read. Raises as `logs_from`."""
    read = logs_from(given, reading, progress)
    found = with_labels(read, reading, store)
    for note in found.notes[len(read.notes) :]:
        progress.note(f"Note: {note}")
    return found


def with_labels(logs: Logs, options: ReadOptions, store: Path) -> Logs:
    """Return the logs with the labels of the sources that `options` names.

    An adjudicated label stands over people's, theirs over the log's. People who disagree give none. A label whose
    giver had seen the score gives none either. The notes count the labels of each source.
    """
    if options.sources == ("log",):
        return logs
    said = given(store, options.sources)
    used: Counter[str] = Counter()
    labeled = [_labeled(one, said, options.sources, used) for one in logs]
    made = logs_of(labeled)
    notes = (*logs.notes, *notes_on(used, logs, labeled, said))
    return replace(
        logs, conversations=made.conversations, counts=made.counts, fingerprint=made.fingerprint, notes=notes
    )


def given(store: Path, sources: Sequence[str]) -> Mapping[str, Opinion]:
    """Return people's thumbs in a store, by text."""
    if not (store / FILE).exists():
        return {}
    with Store.open(store, read_only=True) as opened:
        said = [one for one in opinions(opened, THUMB) if one.source in sources and one.drawn != VOLUNTARY]
    return settled(said)


def notes_on(
    used: Mapping[str, int], logs: Logs, labeled: Sequence[Conversation], said: Mapping[str, Opinion]
) -> list[str]:
    """Say how many labels each source gave, and which replaced others."""
    counted = ", ".join(f"{used[name]} {words}" for name, words in WORDS.items() if used[name])
    replaced = sum(
        a.label not in (b.label, Label.NONE) and _of(a, said) is not None for a, b in zip(logs, labeled, strict=True)
    )
    chosen = sum(one.preferred for one in labeled if _of(one, said) is not None)
    notes = [f"labels by source: {counted or 'none'}"]
    if replaced:
        notes.append(
            f"{count(replaced, 'label of people stands', 'labels of people stand')} in place of another one of the log"
        )
    if chosen:
        verb = "is" if chosen == 1 else "are"
        notes.append(f"{count(chosen, 'conversation')} that a queue chose, and not chance, {verb} never held out")
    return notes


def _of(one: Conversation, said: Mapping[str, Opinion]) -> Opinion | None:
    return said.get(one.text_hash) or said.get(one.words_hash)  # of before calls of tools were kept


def _labeled(
    one: Conversation, said: Mapping[str, Opinion], sources: Sequence[str], used: Counter[str]
) -> Conversation:
    opinion = _of(one, said)
    if opinion is not None:
        used[opinion.source] += 1
        metadata = one.metadata | {DRAWN: opinion.drawn or "random"}
        return one.model_copy(update={"label": LABELS[opinion.value], "judge": opinion.annotator, "metadata": metadata})
    if "log" not in sources:
        return one.model_copy(update={"label": Label.NONE})
    used["log"] += one.label is not Label.NONE
    return one
