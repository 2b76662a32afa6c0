"""A run's conversations as columns in memory: what lists are filtered, sorted and counted by.

Rows are in the order in which the run first used each conversation; that of equal ones is kept when
sorted. Counting 100,000 rows takes milliseconds here, and hundreds from files.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.selection.threshold import Window
from pollex.services.paired_texts import match_rows
from pollex.store.runs import Run
from pollex.store.store import Store

Value = TypeVar("Value")

SCORED_CONVERSATIONS_QUERY = """
    SELECT c.*, CASE c.thumb WHEN 'positive' THEN 1 WHEN 'negative' THEN 0 ELSE -1 END AS label,
        CASE l.s.label WHEN 'positive' THEN 1 WHEN 'negative' THEN 0 ELSE -1 END AS predicted,
        coalesce(l.s.confident::INTEGER, -1) AS certain, l.s.netsat AS netsat, l.s.probability AS probability,
        coalesce(f.n, 0) AS failed
    FROM (SELECT id AS ids, arg_max(text_hash, seq) AS hashes, arg_max(opening, seq) AS openings,
            arg_max(side, seq) AS sides, arg_max("group", seq) AS groups, coalesce(arg_max(flags, seq), '') AS flags,
            arg_max(turn_count, seq) AS turns, arg_max(label, seq) AS thumb, min(seq) AS place
        FROM conversations GROUP BY id) AS c
    LEFT JOIN (SELECT conversation, arg_max(
            {'netsat': netsat, 'label': label, 'confident': confident, 'probability': probability}, seq) AS s
        FROM scores GROUP BY conversation) AS l ON l.conversation = c.ids
    LEFT JOIN (SELECT conversation, count(*) AS n FROM (
            SELECT conversation, question, arg_max(outcome, seq) AS outcome FROM answers
            GROUP BY conversation, question) WHERE outcome <> '' GROUP BY conversation) AS f ON f.conversation = c.ids
    ORDER BY c.place
"""
"""Each conversation once, with the last that a run said of it: a struct is never NULL, so a missing score counts."""


@dataclass(frozen=True, eq=False)
class RunColumns:
    """Columns of a run, one entry for each conversation; NaN is a missing figure.

    Attributes:
        version: Changes with the rows; places in a list are valid for one version.
        label: The thumb of the log: 1, 0, or −1 without one.
        predicted: The label predicted by the rubrics: 1, 0, or −1 without one.
        certain: 1 outside the uncertainty window, 0 inside, −1 without a score.
        probability: P(positive).
        entropy: Entropy of the probability, in nats.
        surprise: −log of the probability of the actual thumb.
        failed: Number of questions without an answer.
        flags: What is odd about each text, joined by spaces; none where a run of an older version
            kept no flags.
        folded: Hashes of the texts that the run itself learned from: answered without their own
            fold, unlike others.
        measured: Hashes of texts that the rubrics were learned from, scored by rubrics that did not
            see them.
        guarantee: The window whose precision is guaranteed; None where the rubric set has none.
        guaranteed: 1 outside that window, 0 inside, −1 without a score or window.
    """

    version: str
    ids: list[str]
    hashes: list[str]
    openings: list[str]
    sides: list[str]
    groups: list[str | None]
    turns: Ints
    label: Ints
    predicted: Ints
    certain: Ints
    netsat: Floats
    probability: Floats
    failed: Ints
    flags: list[str] = field(default_factory=list)
    folded: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()
    guarantee: Window | None = None
    _orders: dict[str, Ints] = field(default_factory=dict)
    _kept: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _making: set[str] = field(default_factory=set)

    @cached_property
    def unseen(self) -> Bools:
        """Whether the figures are of rubrics that were learned without the conversation `[row]`."""
        # a text that was learned from counts as unseen where a fold without it scored it
        rows = zip(self.sides, self.hashes, strict=True)
        return np.fromiter(
            (side != "train" or text in self.measured for side, text in rows),
            bool,
            len(self),
        )

    def scored_by(self, other: "RunColumns", texts: frozenset[str]) -> "RunColumns":
        """Return the columns with another run's scores of these texts, of those that both have."""
        rows, other_rows = match_rows(self.hashes, other.hashes, texts)
        # copies, as the columns of this lens stay as they are
        columns = {name: getattr(self, name).copy() for name in SCORE_COLUMNS}
        for name, column in columns.items():
            column[rows] = getattr(other, name)[other_rows]

        # orders and values that were made of the old scores are dropped
        return replace(
            self,
            **columns,
            measured=self.measured | (other.measured & texts & {*other.hashes}),
            version=f"{self.version}+{other.version}",
            _orders={},
            _kept={},
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def entropy(self) -> Floats:
        """Entropy of the probability, in nats."""
        # kept away from 0 and 1, whose logarithms are infinite
        p = np.clip(self.probability, 1e-12, 1 - 1e-12)
        return np.asarray(-(p * np.log(p) + (1 - p) * np.log1p(-p)), dtype=np.float64)

    @cached_property
    def surprise(self) -> Floats:
        """−log of the probability of the thumb that came; NaN without thumb or probability."""
        p = np.clip(self.probability, 1e-12, 1 - 1e-12)
        # −log p of a thumb up, −log (1 − p) of a thumb down
        losses = np.where(self.label == 1, -np.log(p), -np.log1p(-p))
        return np.where(self.label < 0, np.nan, losses)

    @cached_property
    def decided(self) -> Ints:
        """The decision by the probability, at .5: 1, 0, or −1 without one."""
        return np.where(
            np.isnan(self.probability),
            -1,
            (self.probability >= 0.5).astype(int),
        )

    @cached_property
    def verdict(self) -> Ints:
        """The verdict that rows show: by the probability, without one the label: 1, 0, or −1 without both."""
        return np.where(self.decided < 0, self.predicted, self.decided)

    @cached_property
    def guaranteed(self) -> Ints:
        """1 outside the window with a guarantee, 0 inside, −1 without a score or window."""
        if self.guarantee is None:
            return np.full(len(self), -1)

        return np.where(
            np.isnan(self.netsat),
            -1,
            self.guarantee.confident(self.netsat).astype(int),
        )

    @cached_property
    def differs(self) -> Ints:
        """1 where thumb and verdict differ, 0 where they agree, −1 where one is missing."""
        both = (self.label >= 0) & (self.verdict >= 0)
        return np.where(both, (self.label != self.verdict).astype(int), -1)

    @cached_property
    def group_codes(self) -> tuple[list[str], Ints]:
        """Names of groups, and the place of each row's among them; −1 without one `[row]`."""
        return _encode_values(self.groups)

    @cached_property
    def side_codes(self) -> tuple[list[str], Ints]:
        """Parts of the split, and the place of each row's among them; −1 for rows that are in none `[row]`."""
        return _encode_values(self.sides)

    @cached_property
    def flagged(self) -> dict[str, Bools]:
        """Rows with each flag that any row has, by flag, in the order of their number `[row]`."""
        counts: Counter[str] = Counter()
        for flags in self.flags:
            for flag in flags.split():
                counts[flag] += 1
        masks = {}
        for flag, _ in counts.most_common():
            masks[flag] = np.fromiter(
                (flag in flags.split() for flags in self.flags), bool, len(self)
            )

        return masks

    @cached_property
    def answered(self) -> Ints:
        """1 where every question has an answer, else 0."""
        return np.asarray(self.failed == 0, dtype=np.int64)

    @cached_property
    def place(self) -> dict[str, int]:
        """Row by id."""
        return {id_: row for row, id_ in enumerate(self.ids)}

    @cached_property
    def _lowered(self) -> list[str]:
        searchable_texts = []
        for id_, opening in zip(self.ids, self.openings, strict=True):
            searchable_texts.append(f"{id_}\n{opening}".lower())

        return searchable_texts

    def found(self, words: str) -> Bools:
        """Mask the conversations with words in first turn or id `[row]`, ignoring case."""
        lowered = words.lower()
        return np.fromiter(
            (lowered in text for text in self._lowered),
            bool,
            len(self),
        )

    def order(self, name: str, *, down: bool) -> Ints:
        """Return rows sorted by a column; what has no figure comes last, whichever way."""
        key = f"{name}-{down}"
        if key not in self._orders:
            values = self.column(name)
            values = -values if down else values
            # infinity puts rows without a figure last; equal figures keep the order of the run
            self._orders[key] = np.argsort(
                np.where(np.isnan(values), np.inf, values),
                kind="stable",
            )

        return self._orders[key]

    def kept(self, name: str, version: str, make: Callable[[], Value]) -> Value:
        """Return what was made of the rows, or make it; of several versions the last is kept."""
        if name not in self._kept or self._kept[name][0] != version:
            self._kept[name] = (version, make())

        made_now: Value = self._kept[name][1]
        return made_now

    def latest(self, name: str, version: str, make: Callable[[], Value]) -> Value:
        """Return what was made of the rows last; a newer version is made beside, and returned from then on."""
        if name not in self._kept:
            # nothing was made before that could be shown meanwhile
            return self.kept(name, version, make)
        if self._kept[name][0] != version and name not in self._making:
            # one thread makes it, whoever else asks meanwhile
            self._making.add(name)
            Thread(target=self._renewed, args=(name, version, make), daemon=True).start()

        made_before: Value = self._kept[name][1]
        return made_before

    def _renewed(self, name: str, version: str, make: Callable[[], object]) -> None:
        try:
            self.kept(name, version, make)
        finally:
            self._making.discard(name)

    def column(self, name: str) -> Floats:
        """Return a column that can be sorted by, as numbers; `place` is the row's own."""
        if name == "place":
            return np.arange(len(self), dtype=np.float64)
        return np.asarray(getattr(self, name), dtype=np.float64)


def _encode_values(values: Sequence[str | None]) -> tuple[list[str], Ints]:
    # names in the order in which they come first; rows without one get −1
    names = [*dict.fromkeys(value for value in values if value)]
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place.get(value or "", -1) for value in values], dtype=np.int64)


def read_run_columns(
    store: Store,
    run: Run,
    learned: frozenset[str] = frozenset(),
    guarantee: Window | None = None,
    *,
    by_folds: bool = False,
) -> RunColumns:
    """Read a run's columns.

    Args:
        by_folds: Whether the run learned from all labels, and scored each conversation by a set
            that did not see it.
        learned: Text hashes of the conversations that its rubrics were learned from, by another
            run.
        guarantee: The window of its rubric set whose precision is guaranteed.
    """
    rows = store.ask(run.id, SCORED_CONVERSATIONS_QUERY)
    # texts that the run itself learned from, before those of another run are added
    folded_hashes = []
    for row in rows:
        if row["sides"] == "train":
            folded_hashes.append(row["hashes"])

    folded = frozenset(folded_hashes)
    for row in rows:
        row["openings"] = " ".join(row["openings"].split())
        # a rubric set keeps the first 16 characters of each hash
        row["sides"] = "train" if row["hashes"][:16] in learned else row["sides"]

    columns: dict[str, Any] = {}
    for name in LIST_COLUMNS:
        columns[name] = [row[name] for row in rows]

    for name in CODE_COLUMNS:
        columns[name] = np.array([row[name] for row in rows], dtype=np.int64)

    for name in FIGURE_COLUMNS:
        columns[name] = np.array([row[name] for row in rows], dtype=np.float64)

    # part of the version, as a run at work adds scores to rows that are there
    scores = sum(row["netsat"] is not None for row in rows)
    return RunColumns(
        f"{run.id}.{len(rows)}.{scores}",
        **columns,
        folded=folded,
        measured=folded if by_folds else frozenset(),
        guarantee=guarantee,
    )


SCORE_COLUMNS = "netsat", "probability", "predicted", "certain"
LIST_COLUMNS = "ids", "hashes", "openings", "sides", "groups", "flags"
CODE_COLUMNS = "turns", "label", "predicted", "certain", "failed"
FIGURE_COLUMNS = "netsat", "probability"
