"""Selection of conversations to label: the least sure first, some at random."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from pollex.measures.arrays import Bools, Ints
from pollex.store.labels import RANDOM_DRAW
from pollex.store.store import Store
from pollex.store.tables import (
    LabelRow,
    LabelSheetRow,
    LeaseRow,
    QueueRow,
    Row,
    format_current_time,
)
from pollex.text import JsonDict
from pollex.web.calibrated import select_label_source
from pollex.web.faults import NotFound
from pollex.web.filters import combine_masks
from pollex.web.lens import RunColumns
from pollex.web.listing import (
    INFORMATION_ORDER,
    find_holding_ids,
    make_masks,
    read_list_form,
    sort_rows,
)

THUMB_QUESTION = "thumb"
LEASE_DURATION = timedelta(minutes=15)

CHOSEN_KIND = "chosen"

QUEUE_KINDS: dict[str, tuple[str, Callable[[RunColumns], Bools], str]] = {
    "telling": ("most telling first", lambda lens: ~np.isnan(lens.probability), INFORMATION_ORDER),
    "unsure": ("least sure first", lambda lens: ~np.isnan(lens.probability), "entropy"),
    "window": ("inside the uncertainty window", lambda lens: lens.certain == 0, "entropy"),
    "differs": ("thumb and verdict differ", lambda lens: lens.differs == 1, "surprise"),
    "filter": ("of a filtered list", lambda lens: np.ones(len(lens), dtype=bool), "place"),
    "random": ("at random", lambda lens: np.ones(len(lens), dtype=bool), "place"),
    CHOSEN_KIND: ("chosen by hand", lambda lens: np.zeros(len(lens), dtype=bool), "place"),
}
"""Kind to words, conversations that are in the queue, and the column that orders them, the largest first."""


@dataclass(frozen=True)
class QueueProgress:
    """The progress of a queue.

    Attributes:
        wanted: Texts; `done`, `skipped` and `leased`, which are in work, are of these. A text is
            skipped, and not done, if all who were to answer skipped it.
        same_text: Ids of conversations that aren't asked about, as another one has the same text.
        repeats: Answers about a conversation that its person was shown a second time.
    """

    wanted: int
    done: int
    skipped: int
    leased: int
    same_text: tuple[str, ...]
    repeats: int

    @property
    def is_over(self) -> bool:
        """Whether nobody is to be asked anything more."""
        return self.done + self.skipped >= self.wanted


@dataclass(frozen=True)
class ShareOfAnnotator:
    """What a queue has for one person: texts left, and texts labeled elsewhere."""

    left: int
    labeled_elsewhere: int


def list_queues(store: Store) -> list[QueueRow]:
    """Return all queues, the last one first."""
    queues: list[QueueRow] = []
    for row in store.rows("SELECT * FROM queues ORDER BY time DESC, rowid DESC"):
        queues.append(QueueRow(**row))
    return queues


def get_queue(store: Store, queue_id: str) -> QueueRow:
    """Return a queue. Raises NotFound where there is none."""
    rows = store.rows("SELECT * FROM queues WHERE id = ?", [queue_id])
    if not rows:
        raise NotFound(
            "there is no such queue",
            hint="the page of all queues has those there are",
        )

    return QueueRow(**rows[0])


def get_lease(store: Store, lease_id: str) -> LeaseRow:
    """Return a lease. Raises NotFound where there is none."""
    rows = store.rows("SELECT * FROM leases WHERE id = ?", [lease_id])
    if not rows:
        raise NotFound(
            "there is no such lease",
            hint="ask for the next conversation",
        )

    return LeaseRow(**rows[0])


UNDONE_ANSWER = "(undone)"
"""In place of the reason of a skip: the annotator took the answer back."""

_SEEN_TEXTS_QUERY = """
    WITH last AS (SELECT lease, skip, max(rowid) FROM sheets WHERE queue = ?1 GROUP BY lease)
    SELECT l.text_hash, l.annotator, l.until, coalesce(n.skip <> '', 0) AS skipped,
        iif(l.drawn = 'random' OR coalesce(max(b.drawn = 'random'), 0), l.conversation, '') AS drawn,
        coalesce(n.skip <> '(undone)', 0) AS answered
    FROM leases AS l LEFT JOIN last AS n ON n.lease = l.id
        LEFT JOIN sheets AS s ON s.lease = l.id LEFT JOIN labels AS b ON b.id = s.label
    WHERE l.queue = ?1 GROUP BY l.id
"""
_COUNT_REPEATS_QUERY = """
    SELECT count(*) FROM leases WHERE queue = ? AND drawn = 'repeat' AND id IN (SELECT lease FROM sheets)
"""
_LABELED_ELSEWHERE_QUERY = """
    SELECT l.text_hash, max(b.drawn = 'random') AS random
    FROM queues AS q JOIN leases AS l ON l.queue = q.id JOIN sheets AS s ON s.lease = l.id
    JOIN labels AS b ON b.id = s.label
    WHERE q.sheet = ? AND q.id <> ? AND l.annotator = ? AND l.drawn <> 'repeat'
        AND (SELECT skip FROM sheets WHERE lease = l.id ORDER BY rowid DESC LIMIT 1) = ''
    GROUP BY l.text_hash
"""
_LABELED_IN_OTHER_QUEUES_QUERY = """
    SELECT DISTINCT l.text_hash
    FROM queues AS q JOIN leases AS l ON l.queue = q.id JOIN sheets AS s ON s.lease = l.id
    WHERE q.sheet = ? AND q.id <> ?
        AND (SELECT skip FROM sheets WHERE lease = l.id ORDER BY rowid DESC LIMIT 1) = ''
"""
_OPEN_LEASES_QUERY = """
    SELECT * FROM leases AS l WHERE queue = ? AND annotator = ? AND until > ? AND coalesce(
        (SELECT skip FROM sheets WHERE lease = l.id ORDER BY rowid DESC LIMIT 1), '(undone)') = '(undone)'
"""


def count_progress(store: Store, queue: QueueRow, lens: RunColumns) -> QueueProgress:
    """Count how far a queue is."""
    leased = _collect_leased_texts(store, queue)
    # the same row may come by the queue's kind, by hand and by chance
    rows = _list_wanted_rows(store, queue, lens, leased)
    texts_wanted = set()
    same_text = []
    for row in sorted(rows):
        if lens.hashes[row] in texts_wanted:
            same_text.append(lens.ids[row])
        texts_wanted.add(lens.hashes[row])

    # few of many: a queue may have 100,000 texts
    begun = []
    answered = []
    for text, about in leased.items():
        if text in texts_wanted:
            begun.append(about)
            if len(about["by"]) >= queue.overlap:
                answered.append(about)

    # who skips a text says nothing of it
    skipped = sum(about["by"] == about["skips"] for about in answered)
    return QueueProgress(
        len(texts_wanted),
        len(answered) - skipped,
        skipped,
        sum(bool(about["out"]) for about in begun),
        tuple(same_text),
        store.value(_COUNT_REPEATS_QUERY, [queue.id]),
    )


def _list_wanted_rows(
    store: Store,
    queue: QueueRow,
    lens: RunColumns,
    leased: Mapping[str, JsonDict],
) -> set[int]:
    return {
        *_sort_rows(store, queue, lens).tolist(),
        *_list_chosen_rows(store, queue, lens),
        *_list_texts_drawn_at_random(leased, lens),
    }


def count_share_of_annotator(
    store: Store,
    queue: QueueRow,
    lens: RunColumns,
    annotator: str,
) -> ShareOfAnnotator:
    """Count what a queue has left for a person, and what they labeled elsewhere."""
    leased = _collect_leased_texts(store, queue)
    texts_wanted = {lens.hashes[row] for row in _list_wanted_rows(store, queue, lens, leased)}
    texts_seen = _collect_seen_texts(queue, leased, annotator)
    chosen = {lens.hashes[row] for row in _list_chosen_rows(store, queue, lens)}
    elsewhere = texts_wanted & {*_find_texts_labeled_elsewhere(store, queue, annotator)}
    elsewhere -= texts_seen | chosen
    return ShareOfAnnotator(len(texts_wanted - texts_seen - elsewhere), len(elsewhere))


def _collect_seen_texts(
    queue: QueueRow,
    leased: Mapping[str, JsonDict],
    annotator: str,
) -> set[str]:
    """Return texts that a person had, or that enough people have."""
    texts_seen = set()
    for text, about in leased.items():
        people = about["by"] | about["out"]
        if annotator in people or len(people) >= queue.overlap:
            texts_seen.add(text)

    return texts_seen


def _find_texts_labeled_elsewhere(
    store: Store,
    queue: QueueRow,
    annotator: str,
) -> dict[str, bool]:
    """Return texts labeled in like queues; true for those drawn at random."""
    rows = store.rows(_LABELED_ELSEWHERE_QUERY, [queue.sheet, queue.id, annotator])
    return {row["text_hash"]: bool(row["random"]) for row in rows}


def _find_texts_labeled_in_other_queues(store: Store, queue: QueueRow) -> set[str]:
    """Return texts that anybody labeled in like queues: another one begins with what nobody labeled."""
    rows = store.rows(_LABELED_IN_OTHER_QUEUES_QUERY, [queue.sheet, queue.id])
    return {row["text_hash"] for row in rows}


def choose_next_lease(
    store: Store,
    queue: QueueRow,
    lens: RunColumns,
    annotator: str,
) -> tuple[LeaseRow | None, frozenset[str]]:
    """Choose an annotator's next conversation; None if there is none.

    A text that they have before them comes again. No text goes to more people than the queue wants.
    What is drawn at random is drawn from the whole run, whatever the queue's kind: only so it
    speaks for the run. Before another one is drawn, those that were drawn for others go to as many
    people as are wanted. What they labeled in another queue comes again only where it was put into
    this one by hand; what others labeled there comes last.

    Returns:
        The lease, and the texts that chance drew on the way though they had been answered: see
        `chance.adopted`.
    """
    # a lease that goes on is given again
    for row in store.rows(_OPEN_LEASES_QUERY, [queue.id, annotator, format_current_time()]):
        return LeaseRow(**row), frozenset()

    # who answered each text, or works on it now
    leased = _collect_leased_texts(store, queue)
    labeled_elsewhere = _find_texts_labeled_elsewhere(store, queue, annotator)
    texts_had = _collect_seen_texts(queue, leased, annotator)
    texts_seen = texts_had | {*labeled_elsewhere}

    # the first free row of those chosen by hand, of the queue's kind that nobody labeled in another
    # queue, of its kind at all, and drawn before
    of_kind = _sort_rows(store, queue, lens).tolist()
    every = (
        (_list_chosen_rows(store, queue, lens), texts_had),
        (of_kind, texts_seen | _find_texts_labeled_in_other_queues(store, queue)),
        (of_kind, texts_seen),
        (_list_texts_drawn_at_random(leased, lens), texts_seen),
    )
    chosen, new, free, drawn = (
        next((row for row in rows if lens.hashes[row] not in seen), None) for rows, seen in every
    )
    preferred = next((row for row in (chosen, new, free) if row is not None), None)
    lease_count = store.value("SELECT count(*) FROM leases WHERE queue = ?", [queue.id])
    # a seed for each lease: draws differ, and can be repeated
    rng = np.random.default_rng([queue.seed, lease_count])
    # now and then a text that this person answered before
    if rng.random() < queue.repeat_share and (
        again := _choose_repeat(store, queue, annotator, rng)
    ):
        return again, frozenset()
    # labeled elsewhere, though not because chance drew it
    not_by_chance = {text for text, is_random in labeled_elsewhere.items() if not is_random}
    if preferred is None and drawn is None:
        # chance went through all of a random queue
        if queue.kind == RANDOM_DRAW:
            return None, frozenset(not_by_chance.intersection(lens.hashes))
        return None, frozenset()

    # by chance: where nothing else is left, in a random queue, else by its share
    by_chance = (
        preferred is None
        or (queue.kind == RANDOM_DRAW and chosen is None)
        or rng.random() < queue.random_share
    )
    # rows that chance drew for others come before new ones
    lot = drawn if by_chance else None
    passed = frozenset[str]()
    if by_chance and lot is None:
        lot, passed = _draw_row(lens, leased, texts_seen, not_by_chance, rng)

    # the label says how its conversation was drawn, as only some count for figures
    place = preferred if lot is None else lot
    assert place is not None
    if lot is not None:
        how = RANDOM_DRAW
    elif chosen is None:
        how = queue.kind
    else:
        how = CHOSEN_KIND

    return _make_lease(queue, lens.hashes[place], lens.ids[place], annotator, how), passed


def _make_lease(
    queue: QueueRow,
    text: str,
    conversation: str,
    annotator: str,
    how: str,
) -> LeaseRow:
    until = (datetime.now(UTC) + LEASE_DURATION).isoformat(timespec="microseconds")
    return LeaseRow(
        secrets.token_hex(8),
        queue.id,
        text,
        conversation,
        annotator,
        how,
        format_current_time(),
        until,
    )


def _draw_row(
    lens: RunColumns,
    leased: Mapping[str, dict[str, object]],
    texts_seen: Set[str],
    not_by_chance: Set[str],
    rng: np.random.Generator,
) -> tuple[int | None, frozenset[str]]:
    """Draw a row whose text is not among those seen; return it, and what was answered among all that were drawn."""
    passed = set[str]()
    for place in _iterate_places(len(lens), rng):
        text = lens.hashes[place]
        # answered before, though not because chance drew it
        if (about := leased.get(text)) and about["by"] and not about["drawn"]:
            passed.add(text)
        if text in not_by_chance:
            passed.add(text)
        if text not in texts_seen:
            return place, frozenset(passed)

    return None, frozenset(passed)


def _iterate_places(n: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield places at random: some quickly, then every one that there is."""
    yield from rng.integers(n, size=100).tolist()
    yield from rng.permutation(n).tolist()


def _list_texts_drawn_at_random(
    leased: Mapping[str, dict[str, object]], lens: RunColumns
) -> list[int]:
    return [lens.place[about["drawn"]] for about in leased.values() if about["drawn"] in lens.place]


ANSWERED_QUERY = """
    SELECT l.text_hash, l.conversation, max(l.drawn = 'repeat') AS again FROM leases AS l JOIN sheets AS s
    ON s.lease = l.id WHERE l.queue = ? AND l.annotator = ? AND s.skip = '' GROUP BY l.text_hash ORDER BY min(l.rowid)
"""
ANSWERS_BETWEEN_REPEATS = 3
"""A conversation is shown once more only after so many others."""


def _choose_repeat(
    store: Store,
    queue: QueueRow,
    annotator: str,
    rng: np.random.Generator,
) -> LeaseRow | None:
    """Choose a conversation to show to the same person once more; None while there is none long enough ago."""
    rows = store.rows(ANSWERED_QUERY, [queue.id, annotator])[:-ANSWERS_BETWEEN_REPEATS]
    # a text is shown once more, not a third time
    left = [row for row in rows if not row["again"]]
    if not left:
        return None

    row = left[int(rng.integers(len(left)))]
    return _make_lease(
        queue,
        row["text_hash"],
        row["conversation"],
        annotator,
        "repeat",
    )


def _list_chosen_rows(store: Store, queue: QueueRow, lens: RunColumns) -> list[int]:
    rows = store.rows("SELECT conversation FROM chosen WHERE queue = ? ORDER BY rowid", [queue.id])
    return [lens.place[row["conversation"]] for row in rows if row["conversation"] in lens.place]


def _sort_rows(store: Store, queue: QueueRow, lens: RunColumns) -> Ints:
    # rows in the order of the list that the queue was made of
    if queue.kind == "filter":
        form = read_list_form(queue.filter)
        lens = select_label_source(lens, store, form.source, by_chance=False)
        order = sort_rows(
            store,
            queue.run,
            lens,
            form.sort,
            down=form.down,
            waits=False,
        )
        holding = find_holding_ids(store, queue.run, form)
        masks = make_masks(form, lens, holding=holding)
        return np.asarray(order[combine_masks(masks, len(lens))[order]])

    _, inside, column = QUEUE_KINDS[queue.kind]
    # nobody waits while an order with the latest labels is made
    order = sort_rows(store, queue.run, lens, column, down=True, waits=False)
    return np.asarray(order[inside(lens)[order]])


def _collect_leased_texts(store: Store, queue: QueueRow) -> Mapping[str, JsonDict]:
    """Return by text who answered, who of them skipped it, who works on it, and its id where chance drew it."""
    leased: dict[str, JsonDict] = defaultdict(
        lambda: {"by": set(), "out": set(), "skips": set(), "drawn": ""}
    )
    moment = format_current_time()
    for row in store.rows(_SEEN_TEXTS_QUERY, [queue.id]):
        about = leased[row["text_hash"]]
        # drawn by chance for one person, it counts as drawn for all
        about["drawn"] = about["drawn"] or row["drawn"]
        if row["answered"]:
            about["by"].add(row["annotator"])
            if row["skipped"]:
                about["skips"].add(row["annotator"])
        elif row["until"] > moment:
            # a lease that has run out is nobody's
            about["out"].add(row["annotator"])

    return leased


_LAST_ANSWERS_QUERY = """
    SELECT b.annotator, b.text_hash, b.conversation, b.run, b.question, b.value, b.source, b.id, b.drawn, s.lease,
        s.skip, s.comment, s.shown_ms, s.took_ms, l.queue, max(s.rowid)
    FROM leases AS l JOIN sheets AS s ON s.lease = l.id JOIN labels AS b ON b.id = s.label
    WHERE l.queue IN (SELECT id FROM queues WHERE sheet = ?) AND l.drawn <> 'repeat'
    GROUP BY l.id, b.question ORDER BY s.rowid
"""
COPIED_FIELDS = ("annotator", "text_hash", "conversation", "run", "question", "value", "source")


def repeat_answers(
    store: Store,
    queue: QueueRow,
    texts: Collection[str],
) -> Iterator[Row]:
    """Yield the last answers about texts, in this and like queues, once more as those of conversations drawn at random.

    Chance draws from all of a run. If it left out what was labeled for being doubtful, the rest
    would look surer than the run is.
    """
    for row in store.rows(_LAST_ANSWERS_QUERY, [queue.sheet]) if texts else []:
        if row["text_hash"] in texts and row["drawn"] != RANDOM_DRAW:
            # the same label, now as drawn by chance; it replaces the earlier one
            label = LabelRow(**{name: row[name] for name in COPIED_FIELDS}, drawn=RANDOM_DRAW)
            row_parts = row["skip"], row["comment"], row["id"], row["shown_ms"], row["took_ms"]
            yield from (label, LabelSheetRow(label.id, row["lease"], row["queue"], *row_parts))
