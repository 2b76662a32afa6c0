"""A list of conversations by address: filters, order, one window of rows, and what labels would tell most."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal
from urllib.parse import parse_qsl

import numpy as np
from pydantic import Field

from pollex.calibration.active_learning import (
    make_vectors_for_choosing_labels,
    rank_unlabeled_texts_by_information,
)
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer
from pollex.store.labels import THUMB_QUESTION, read_opinions
from pollex.store.rows import read_answer_row
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.web import links
from pollex.web.calibrated import LabelSource, select_label_source
from pollex.web.faults import NothingToShow
from pollex.web.filters import (
    FACETS,
    FacetValue,
    Histogram,
    combine_masks,
    count_choices,
    make_histogram,
    make_mask,
    mask_range,
)
from pollex.web.forms import RequestForm
from pollex.web.lens import RunColumns, read_run_columns
from pollex.web.site import SCORING_COMMANDS, NamedSet, Site

UpDown = Literal["up", "down", "none"]
YesNo = Literal["yes", "no"]
DEFAULT_WINDOW_ROWS = 100
MAX_WINDOW_ROWS = 500
TITLES_OF_RANGES = {
    "netsat": "NetSAT",
    "probability": "P(up)",
    "entropy": "Entropy",
    "turns": "Turns",
}
"""Figures that a list is narrowed by, with their heads."""
CHOICE_NAMES = (*FACETS, "side", "group", "flag")
"""What a list is narrowed by a value of."""


class ListForm(RequestForm):
    """The address of a list.

    Attributes:
        source: Whose thumbs are shown, filtered and sorted by.
        holds: Id of a rubric that holds in the conversations.
        q: Words that a conversation has in its first turn or id; with `words=all` in any of its
            turns.
        at: First row that is shown, from 0.
        version: That of the list that `at` counts in.
    """

    run: str = ""
    source: LabelSource = "log"
    thumb: UpDown | None = None
    predicted: UpDown | None = None
    decision: UpDown | None = None
    certain: YesNo | None = None
    guaranteed: YesNo | None = None
    differs: YesNo | None = None
    answered: YesNo | None = None
    side: Literal["train", "test", "none"] | None = None
    group: str | None = None
    flag: str | None = None
    holds: str | None = Field(None, max_length=80)
    netsat_from: float | None = None
    netsat_to: float | None = None
    probability_from: float | None = None
    probability_to: float | None = None
    entropy_from: float | None = None
    entropy_to: float | None = None
    turns_from: float | None = None
    turns_to: float | None = None
    q: str = Field("", max_length=500)
    words: Literal["first", "all"] = "first"
    sort: Literal[
        "place", "netsat", "probability", "entropy", "surprise", "information", "turns", "failed"
    ] = "place"
    down: bool = False
    at: int = Field(0, ge=0)
    n: int = Field(DEFAULT_WINDOW_ROWS, ge=1, le=MAX_WINDOW_ROWS)
    version: str = ""

    def but(self, **changes: object) -> dict[str, object]:
        """Return the parameters with changes, from the first row; None takes one away."""
        form_fields = self.model_dump(
            exclude_defaults=True,
            exclude={"at", "version", "run"},
        )
        return {name: value for name, value in (form_fields | changes).items() if value is not None}

    def range_of(self, name: str) -> tuple[float | None, float | None]:
        """Return the ends of a figure's range; None where it is open."""
        return getattr(self, f"{name}_from"), getattr(self, f"{name}_to")

    @property
    def narrowed(self) -> dict[str, str]:
        """The parameters that leave rows out, with their values as text."""
        # both ends of each range, under the names that the address has for them
        ends = []
        for name in TITLES_OF_RANGES:
            for end in ("from", "to"):
                ends.append(f"{name}_{end}")

        parts = (*CHOICE_NAMES, "holds", *ends, "q")
        values_by_name = {name: getattr(self, name) for name in parts}
        filled_values = {}
        for name, value in values_by_name.items():
            if value not in (None, ""):
                filled_values[name] = str(value)

        return filled_values


@dataclass(frozen=True)
class ListedConversation:
    """One conversation of a list."""

    number: int
    id: str
    opening: str
    turns: int
    thumb: int
    predicted: int
    verdict: int
    certain: int
    netsat: float
    probability: float
    failed: int

    @property
    def good(self) -> bool | None:
        """The verdict: by the probability, without one by NetSAT; None without a score."""
        return None if self.verdict == -1 else self.verdict == 1

    @classmethod
    def of(cls, lens: RunColumns, row: int, number: int) -> ListedConversation:
        """Return a row of a run as the one with a number in a list."""
        figures = (getattr(lens, name)[row].item() for name in ROW_COLUMNS)
        return cls(number, lens.ids[row], lens.openings[row], *figures)


ROW_COLUMNS = (
    "turns",
    "label",
    "predicted",
    "verdict",
    "certain",
    "netsat",
    "probability",
    "failed",
)
"""Columns of a row's figures, in their order."""


@dataclass(frozen=True, eq=False)
class Listing:
    """A filtered list of a run's conversations.

    Attributes:
        every_row: All rows of the run, in the list's order.
        calibrated: Whether probabilities say how sure verdicts are.
    """

    run: Run
    lens: RunColumns
    form: ListForm
    masks: dict[str, Bools]
    every_row: Ints
    calibrated: bool

    @cached_property
    def found(self) -> Bools:
        """Rows of the run that are in the list `[row]`."""
        return combine_masks(self.masks, len(self.lens))

    @cached_property
    def order(self) -> Ints:
        """Rows of the run in the list's order."""
        return np.asarray(self.every_row[self.found[self.every_row]])

    @property
    def total(self) -> int:
        """Number of conversations in the list."""
        return len(self.order)

    @property
    def at(self) -> int:
        """First row of the window; a place behind the end shows the last window."""
        return min(self.form.at, max(0, self.total - 1) // self.form.n * self.form.n)

    @property
    def facets(self) -> dict[str, list[FacetValue]]:
        """Number of rows that every further choice would leave."""
        return count_choices(self.lens, self.masks)

    def histogram(self, name: str) -> Histogram | None:
        """Count a figure over the run, and over rows found by other filters."""
        return make_histogram(
            self.lens.column(name),
            combine_masks(self.masks, len(self.lens), but=name),
        )

    def rows(self) -> Iterator[ListedConversation]:
        """Yield the rows of the window."""
        return self._rows(self.at, self.at + self.form.n)

    def every(self) -> Iterator[ListedConversation]:
        """Yield all rows of the list."""
        return self._rows(0, self.total)

    def _rows(self, first: int, last: int) -> Iterator[ListedConversation]:
        for number, row in enumerate(self.order[first:last].tolist(), first):
            yield ListedConversation.of(self.lens, row, number)

    def neighbors(self, conversation_id: str) -> tuple[str | None, str | None]:
        """Return the ids before and behind a conversation in the list."""
        # a conversation that the list leaves out has no neighbors in it
        row = self.lens.place.get(conversation_id)
        places = np.flatnonzero(self.order == (-1 if row is None else row))
        if not len(places):
            return None, None

        place = int(places[0])
        before = self.lens.ids[self.order[place - 1]] if place else None
        behind = None
        if place + 1 < self.total:
            behind = self.lens.ids[self.order[place + 1]]

        return before, behind

    def address(self, **changes: object) -> str:
        """Link to this list with changes."""
        return links.link_to_conversations(self.run.id, **self.form.but(**changes))


def make_row_json(row: ListedConversation) -> dict[str, object]:
    """Return a row as JSON values; missing figures are null."""
    row_values = {}
    for name, value in vars(row).items():
        row_values[name] = None if isinstance(value, float) and math.isnan(value) else value

    return row_values


def read_list_form(text: str) -> ListForm:
    """Read a list's query from another page's; invalid queries give the whole list."""
    try:
        return ListForm.model_validate(dict(parse_qsl(text)))
    except ValueError:
        return ListForm()


def find_scoring_run(site: Site, name: str) -> Run:
    """Return the run to list; the last one that scored where none is named.

    Raises:
        NotFound: There is none of that name.
        NothingToShow: None has scored.
    """
    if name:
        return site.run(name)

    run = next((run for run in site.runs() if run.command in SCORING_COMMANDS), None)
    if run is None:
        raise NothingToShow(
            "no run has scored conversations yet",
            hint="`pollex learn` or `pollex score` does",
        )

    return run


def find_run_that_asked(site: Site, named: NamedSet) -> Run | None:
    """Return a run that asked a set's rubrics: the one that made it, else the last one that scored with it."""
    # the run that made the set comes before those that only scored with it
    runs_of_set = []
    for run in site.runs():
        if run.id == named.run:
            runs_of_set.append(run)

    used = []
    for run in site.runs():
        if run.command in SCORING_COMMANDS and run.fingerprint.get("rubrics") == named.id:
            used.append(run)

    return next(iter([*runs_of_set, *used]), None)


def has_calibrated_probability(site: Site, run: Run) -> bool:
    """Tell whether a run's probabilities may be called calibrated; not where its set is lost."""
    named = site.set_of(run)
    return named is not None and named.rubric_set.support.enough


def load_run_columns(site: Site, run: Run) -> RunColumns:
    """Return a run's columns, cached once it has ended."""
    # part of the cache's key: a run that goes on has another one after each beat
    ended = f"{run.finished}-{run.status}"
    if run.status == "unfinished":
        beat = site.store.value("SELECT max(beat) FROM progress WHERE run = ?", [run.id])
        ended = f"{beat or ''}"

    # a run that learned has its own split; for others the set says what it was learned from
    named = site.set_of(run)
    if named and run.command != "learn":
        learned = named.rubric_set.learned_from
    else:
        learned = frozenset()

    guarantee = named.rubric_set.guaranteed if named else None
    window = guarantee.window if guarantee else None
    by_folds = run.command == "learn" and named is not None and named.rubric_set.data.folds > 0
    make = partial(
        read_run_columns,
        site.store,
        run,
        learned,
        window,
        by_folds=by_folds,
    )
    return site.kept(("lens", run.id, ended), make)


def load_measured_columns(site: Site, run: Run) -> RunColumns:
    """Return a run's columns; what its set was learned from by the scores of the folds, where these are."""
    lens = load_run_columns(site, run)
    named = site.set_of(run)
    if named is None or run.command == "learn" or not named.rubric_set.data.folds:
        return lens

    # only the run that made the set has the scores of its folds
    made_by = next(
        (run for run in site.runs() if run.id == named.rubric_set.run and run.finished),
        None,
    )
    if made_by is None:
        return lens

    learned = load_run_columns(site, made_by)
    return site.kept(
        ("measured", lens.version, learned.version),
        lambda: lens.scored_by(learned, learned.measured),
    )


def add_labels(site: Site, lens: RunColumns, source: LabelSource) -> RunColumns:
    """Return a run's columns with the thumbs of a source; they change as people label."""
    # the number of the last label is part of the cache's key, so that a new label counts
    last = site.store.value("SELECT max(rowid) FROM labels")
    make = lambda: select_label_source(lens, site.store, source, by_chance=False)  # noqa: E731
    if source == "log":
        return lens
    return site.kept(("labeled", lens.version, source, str(last)), make)


def make_listing(site: Site, form: ListForm) -> Listing:
    """Return what an address asks for."""
    run = find_scoring_run(site, form.run)
    lens = add_labels(site, load_run_columns(site, run), form.source)
    # lazy: the store is searched only where the cache has no hashes for these words
    every_hash = lambda: (  # noqa: E731
        text for texts, *_ in search_texts(site.store, run.id, form.q) for text in texts
    )
    hashes = None
    if form.q and form.words == "all":
        hashes = find_texts_with_words(site, lens, form.q, every_hash)

    every = sort_rows(site.store, run.id, lens, form.sort, down=form.down)
    masks = make_masks(form, lens, hashes, find_holding_ids(site.store, run.id, form))
    return Listing(run, lens, form, masks, every, has_calibrated_probability(site, run))


ANSWERS_TO_RUBRIC = "SELECT * FROM answers WHERE question = ? ORDER BY seq"


def find_holding_ids(store: Store, run: str, form: ListForm) -> frozenset[str]:
    """Return the conversations in which the rubric of an address holds; none where it names none."""
    if form.holds is None:
        return frozenset()

    # the last answer counts
    answers = {}
    for row in store.ask(run, ANSWERS_TO_RUBRIC, [form.holds]):
        answers[row["conversation"]] = read_answer_row(row)

    holding = []
    for conversation, answer in answers.items():
        if (
            isinstance(answer, Answer)
            and not answer.never_came_up
            and answer.value() > MIDDLE_OPTION_VALUE
        ):
            holding.append(conversation)

    return frozenset(holding)


def make_masks(
    form: ListForm,
    lens: RunColumns,
    hashes: frozenset[str] | None = None,
    holding: frozenset[str] = frozenset(),
) -> dict[str, Bools]:
    """Return what each part of an address leaves, by name `[row]`.

    Args:
        hashes: Of the texts that have its words in any turn; None looks for them in the first.
        holding: Conversations in which the rubric holds that it names.
    """
    # values that were chosen: thumbs, sides, groups and the like
    chosen = {}
    for name in CHOICE_NAMES:
        if (value := getattr(form, name)) is not None:
            chosen[name] = str(value)

    # a range that is open at both ends leaves nothing out
    ends = {}
    for name in TITLES_OF_RANGES:
        if (bounds := form.range_of(name)) != (None, None):
            ends[name] = bounds

    masks = {name: make_mask(lens, name, value) for name, value in chosen.items()}
    for name, end in ends.items():
        masks[name] = mask_range(lens.column(name), *end)

    # words of any turn were found in the store; those of the first turn are in the columns
    if hashes is not None:
        masks["q"] = np.fromiter(
            (text_hash in hashes for text_hash in lens.hashes),
            bool,
            len(lens),
        )
    elif form.q:
        masks["q"] = lens.found(form.q)

    if form.holds is not None:
        masks["holds"] = np.fromiter((id_ in holding for id_ in lens.ids), bool, len(lens))

    return masks


TEXTS_PER_BATCH = 16_384
"""Texts that are read at once: as many as lie together in the store's files."""

TEXT_PLACES_QUERY = "SELECT seq FROM texts ORDER BY seq"
TEXTS_WITH_WORDS_QUERY = """
    SELECT DISTINCT text_hash FROM texts WHERE seq > $1 AND seq <= $2 AND regexp_matches(turns, $3, 'il')
        AND regexp_matches(array_to_string(list_concat(json_extract_string(turns, '$[*][1]'),
            json_extract_string(turns, '$[*][2].calls[*].arguments')), chr(10)), $4, 'il')
"""
"""Roles and the names of fields are no words: of the texts whose JSON has the words those whose contents have them."""


def search_texts(
    store: Store,
    run: str,
    words: str,
    batch: int = TEXTS_PER_BATCH,
) -> Iterator[tuple[frozenset[str], int, int]]:
    """Look for words, ignoring case: yield after each batch of the texts those found, how many are read, and all."""
    stored = json.dumps(words, ensure_ascii=False)[1:-1]  # turns are kept as JSON
    places = [row["seq"] for row in store.ask(run, TEXT_PLACES_QUERY)]
    # Texts of several runs may have the same number, and then belong to one batch.
    ends = [*dict.fromkeys([*places[batch - 1 :: batch], *places[-1:]])]
    # each batch begins behind the end of the one before
    before = -1
    for place, end in enumerate(ends, 1):
        rows = store.ask(run, TEXTS_WITH_WORDS_QUERY, [before, end, stored, words])
        before = end
        yield (
            frozenset(row["text_hash"] for row in rows),
            min(place * batch, len(places)),
            len(places),
        )


def find_texts_with_words(
    site: Site,
    lens: RunColumns,
    words: str,
    find_hashes: Callable[[], Iterable[str]],
) -> frozenset[str]:
    """Return hashes of the texts that have words in any turn; what was found is kept."""
    return site.kept(
        ("search", lens.version, words),
        lambda: frozenset(find_hashes()),
    )


INFORMATION_ORDER = "information"
LABELS_BEFORE_NEW_ORDER = 10
"""The order is made anew after so many labels."""

CHOSEN_ONE_BY_ONE = 2 * LABELS_BEFORE_NEW_ORDER
"""Conversations that are chosen one after another, so that they are unlike each other."""

ASKED_QUESTIONS_QUERY = "SELECT DISTINCT question FROM answers ORDER BY question"
EXPECTED_ANSWERS_QUERY = """
    SELECT conversation, {columns} FROM (
        SELECT conversation, question, arg_max({{'p': probabilities}}, seq) AS said FROM answers
        GROUP BY conversation, question) AS a,
    LATERAL (SELECT list_dot_product(said.p, range(len(said.p))::DOUBLE[]) / nullif(list_sum(said.p), 0) AS expected)
    GROUP BY conversation
"""


def sort_rows(
    store: Store,
    run: str,
    lens: RunColumns,
    sort: str,
    *,
    down: bool,
    waits: bool = True,
) -> Ints:
    """Return a run's rows sorted by a column, or by how telling a label of each is.

    Args:
        waits: Whether the latest labels have to count; if not, a newer order is made beside, and
            counts from then on.
    """
    if sort != INFORMATION_ORDER:
        return lens.order(sort, down=down)

    # the ranking has a version for each ten labels: it isn't made anew after each of them
    labeled_texts = {opinion.text_hash for opinion in read_opinions(store, THUMB_QUESTION)}
    rows_shown = lens.kept if waits else lens.latest
    ranked = rows_shown(
        INFORMATION_ORDER,
        f"{len(labeled_texts) // LABELS_BEFORE_NEW_ORDER}",
        lambda: rank_by_information(store, run, lens, labeled_texts),
    )
    # rows that the ranking leaves out stand last, whichever way it is sorted
    rest = np.setdiff1d(np.arange(len(lens)), ranked)
    return np.concatenate([ranked if down else ranked[::-1], rest])


def rank_by_information(
    store: Store,
    run: str,
    lens: RunColumns,
    labeled_hashes: set[str],
) -> Ints:
    """Return the rows that nobody has labeled, the most telling first; those without a probability are none.

    Args:
        labeled_hashes: Hashes of the texts that people have labeled.
    """
    rows = np.flatnonzero(~np.isnan(lens.probability))
    if not len(rows):
        return rows

    # one column, as if all labels came from one judge `[row, 1]`
    p = lens.probability[rows][:, None]
    is_labeled = np.array([[lens.hashes[row] in labeled_hashes] for row in rows.tolist()])
    # answers don't change with labels, so that their vectors are made once
    vectors = lens.kept(
        "vectors",
        "",
        lambda: make_vectors_for_choosing_labels(read_expected_answers(store, run, lens)),
    )
    return np.asarray(
        rows[
            rank_unlabeled_texts_by_information(
                vectors[rows], p * (1 - p), is_labeled, CHOSEN_ONE_BY_ONE
            )
        ]
    )


def read_expected_answers(store: Store, run: str, lens: RunColumns) -> Floats:
    """Return the expected answers `[row, question]`, as places on the scale; NaN without one."""
    questions = [row["question"] for row in store.ask(run, ASKED_QUESTIONS_QUERY)]
    # without questions NetSAT alone tells texts apart `[row, 1]`
    if not questions:
        return lens.netsat[:, None]

    # a column for each question, whose id is a parameter and never part of the SQL
    columns = ", ".join(
        f"max(expected) FILTER (question = ?) AS q{place}" for place in range(len(questions))
    )
    expected_answers = np.full((len(lens), len(questions)), np.nan)
    for row in store.ask(run, EXPECTED_ANSWERS_QUERY.format(columns=columns), questions):
        conversation, *expected = row.values()
        if (place := lens.place.get(conversation)) is not None:
            expected_answers[place] = [np.nan if value is None else value for value in expected]

    return expected_answers
