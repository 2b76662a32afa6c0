"""The answer array X from a table's records; unusable answers are missing and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.calibration.questionnaire import PROBABILITY_SUM_TOLERANCE, Scale
from pollex.errors import BadInput, WrongUse, spell_options
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rooms.questionnaire.formats.answer_tables import AnswerRecords


def convert_to_numbers(values: Sequence[object]) -> Floats:
    """Convert values to numbers `[record]`; NaN for others, infinite numbers, true and false."""
    out = np.array([_convert_to_number(value) for value in values], dtype=np.float64)
    out[np.isinf(out)] = np.nan
    return out


def _convert_to_number(value: Any) -> float:
    if isinstance(value, (bool, type(None))):
        return np.nan

    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def find_places_of_names(names: Sequence[str], order: Sequence[str]) -> Ints:
    """Return the place of each name in an order `[name]`; −1 if it isn't there."""
    places = {name: place for place, name in enumerate(order)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)


def find_groups(
    records: AnswerRecords, texts: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], list[TableIssue]]:
    """Return each text's group by column, and report texts with two groups in one column."""
    groups: dict[str, tuple[str, ...]] = {}
    faults: list[TableIssue] = []
    # the text of each row, by the row's number
    row_text: dict[int, str] = dict(zip(records.row, records.text, strict=True))
    for column, values in records.groups.items():
        of_text: dict[str, str] = {}
        # the first value of a text counts; others are told
        pairs = set()
        for row, text in row_text.items():
            if values[row]:
                pairs.add((text, values[row]))

        for row, text in row_text.items():
            if values[row]:
                of_text.setdefault(text, values[row])
        if of_text:
            groups[column] = tuple(of_text.get(text, "") for text in texts)
        differing = []
        for text, value in pairs:
            if value != of_text[text]:
                differing.append(text)

        several = sorted(differing)
        faults += make_named_issues(
            "text",
            f"with two values of {column!r}: used with the first",
            dict.fromkeys(several),
            left_out=False,
        )

    return groups, faults


def make_natural_key(name: str) -> list[tuple[int, str, str]]:
    """Return a sort key that puts Q2 before Q10, for numbers of any length."""
    parts = enumerate(re.split(r"(\d+)", name))
    # the length goes before the digits, so that no number has to be converted
    parts_of_key = []
    for n, part in parts:
        parts_of_key.append(
            (len(digits := part.lstrip("0")), digits, part) if n % 2 else (-1, part, "")
        )

    return parts_of_key


def mask_first_of_each(keys: Ints) -> Bools:
    """Return a mask of the first occurrence of each key `[record]`."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


MAX_EXAMPLES_SHOWN = 3


@dataclass(frozen=True)
class TableIssue:
    """One thing about a table.

    Attributes:
        noun: One of what it is about: `judge`.
        what: What they have in common, in words for one and for several: `with one label only`.
        count: How many records, answers, texts or judges it is about.
        examples: Where, the first few.
        hint: What to do; empty where nothing needs to be done.
        left_out: Whether they were left out; else they were kept.
    """

    noun: str
    what: str
    count: int
    examples: tuple[str, ...] = ()
    hint: str = ""
    left_out: bool = True

    @property
    def described(self) -> str:
        """Text after the count: `judges with one label only`."""
        if self.noun.endswith("y"):
            several = f"{self.noun[:-1]}ies"
        else:
            several = f"{self.noun}s"

        return f"{self.noun if self.count == 1 else several} {self.what}"

    def __str__(self) -> str:
        shown = "; ".join(self.examples)
        more = ""
        if self.count > len(self.examples):
            more = f"; and {self.count - len(self.examples)} more"

        examples = f": {shown}{more}" if shown else ""
        mend = f" → {self.hint}" if self.hint else ""
        return f"{self.count} {self.described}{examples}{mend}"


def make_fault_issues(
    noun: str,
    what: str,
    which: Bools | Ints,
    place: Callable[[int], str],
    hint: str = "",
    *,
    left_out: bool = True,
) -> list[TableIssue]:
    """Return the issue of the items that `which` picks; none if it picks nothing.

    Args:
        place: What to say of one of them; for `noun` and `what` see `TableIssue`.
    """
    numbers = np.flatnonzero(which) if which.dtype == bool else which
    if not len(numbers):
        return []

    examples = tuple(place(int(n)) for n in numbers[:MAX_EXAMPLES_SHOWN])
    return [TableIssue(noun, what, len(numbers), examples, hint, left_out)]


def make_named_issues(
    noun: str,
    what: str,
    names: Iterable[str],
    hint: str = "",
    *,
    left_out: bool = True,
) -> list[TableIssue]:
    """Return the issue of named items; `noun` and `what` as for `make_fault_issues`."""
    listed = list(names)
    if listed:
        return [
            TableIssue(noun, what, len(listed), tuple(listed[:MAX_EXAMPLES_SHOWN]), hint, left_out)
        ]
    return []


CORRECT_HINT = "correct each; the question counts as unanswered there"
ROUNDED_DIGITS_HINT = f"write all digits where they were rounded; else {CORRECT_HINT}"

RARE_OPTION_SHARE = 0.05
"""An option that so small a share of its question's texts has may be a slip."""


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Answer distributions of texts.

    Attributes:
        texts: Ids `[text]`, in the order of the table; each has an answer to some question.
        X: Probabilities `[text, question × option]`, as calibrators take them.
        scales: The questions, all asked, in the order of X's blocks.
        groups: By column of the table, the value of each text; empty where it has none.
        faults: What was left out, or is worth knowing.
    """

    texts: tuple[str, ...]
    X: Floats
    scales: tuple[Scale, ...]
    groups: Mapping[str, tuple[str, ...]]
    faults: tuple[TableIssue, ...] = ()


def make_answer_table(
    records: AnswerRecords,
    *,
    scales: Sequence[Scale] | None = None,
    options: Mapping[str, Sequence[float]] | None = None,
    nominal: Collection[str] = (),
) -> AnswerTable:
    """X from records.

    Args:
        scales: The questions that are known, of a fitted calibrator; None: those of the table.
        options: By question, the options that it allows; the others' are those that occur in the
            table.
        nominal: Questions whose options have no order.

    Raises:
        BadInput: Nothing can be used.
        WrongUse: Options are given for a question that there is not.
    """
    faults: list[TableIssue] = []
    known_questions = None
    if scales is not None:
        known_questions = {scale.question for scale in scales}

    if scales is None:
        scales, faults = _make_scales(
            records,
            options or {},
            frozenset(nominal) | records.nominal,
        )

    if not scales or not len(records):
        raise _make_nothing_usable_error(
            "no question has two options or more",
            faults,
            records,
        )

    texts = []
    for text in dict.fromkeys(records.text):
        if text:
            texts.append(text)

    X, broken = _build_array(records, texts, scales, known_questions)
    faults += broken
    silent: Bools = np.asarray(np.isnan(X).all(axis=1))
    if silent.all():
        raise _make_nothing_usable_error("no answer can be used", faults, records)

    usable_texts = tuple(texts[row] for row in np.flatnonzero(~silent))
    groups, several = find_groups(records, usable_texts)
    faults += make_fault_issues(
        "text",
        "without an answer that can be used",
        silent,
        texts.__getitem__,
    )

    return AnswerTable(
        usable_texts,
        X[~silent],
        tuple(scales),
        groups,
        (*faults, *several),
    )


def _make_scales(
    records: AnswerRecords,
    options: Mapping[str, Sequence[float]],
    nominal: Collection[str],
) -> tuple[tuple[Scale, ...], list[TableIssue]]:
    names = sorted(dict.fromkeys(records.question), key=make_natural_key)
    if strangers := sorted(set(options) - set(names)):
        raise WrongUse(
            f"no question is called {strangers[0]!r}",
            hint=f"options are of {', '.join(names)}",
        )

    # the different options of each question, where the caller gives none
    option = convert_to_numbers(records.option)
    pairs = np.stack([find_places_of_names(records.question, names), option], axis=1)[
        ~np.isnan(option)
    ]
    distinct = np.unique(pairs, axis=0)
    values_by_question = {}
    for place, name in enumerate(names):
        values_by_question[name] = tuple(distinct[distinct[:, 0] == place, 1].tolist())

    values = {}
    for name, those in values_by_question.items():
        values[name] = tuple(sorted(map(float, options.get(name, those))))

    # a question needs two options
    few = []
    for name, those in values.items():
        if len(those) < 2:
            few.append(f"{name!r} with {len(those)}")

    kept_scales = []
    for name, those in values.items():
        if len(those) > 1:
            kept_scales.append(Scale(name, those, name not in nominal))

    scales = tuple(kept_scales)
    faults = make_named_issues(
        "question",
        "with fewer than two options",
        few,
        "give every option a number and a row",
    )
    odd_names = []
    for name in names:
        if name not in options:
            odd_names.append(name)

    return scales, [
        *faults,
        *_report_odd_options(pairs, odd_names, names),
    ]


def _report_odd_options(
    pairs: Floats,
    guessed: Sequence[str],
    names: Sequence[str],
) -> list[TableIssue]:
    """Report options that hardly any text has, which may be typing errors.

    Args:
        pairs: Place of the question and option of each record `[record, 2]`.
        guessed: The questions whose options are those that occur.
    """
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    # how many texts have the most frequent option of each question
    most = {}
    for place in np.unique(distinct[:, 0]):
        most[place] = int(counts[distinct[:, 0] == place].max())

    odd = []
    for (place, option), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        if names[int(place)] in guessed and count < RARE_OPTION_SHARE * most[place]:
            odd.append(f"{option:g} of {names[int(place)]!r} in {count} of {most[place]}")

    return make_named_issues(
        "option",
        "that hardly any text has",
        odd,
        f"if that is a slip, say which there are: {spell_options(options=None)}",
        left_out=False,
    )


def find_option_places(scales: Sequence[Scale], question: Ints, value: Floats) -> Ints:
    """Return the place of each record's option among its question's `[record]`; −1 where the question has no such one.

    Args:
        question: Place of its question among the scales `[record]`; −1 for none of them.
    """
    place = np.full(len(value), -1, dtype=np.int64)
    for number, scale in enumerate(scales):
        of_question = np.flatnonzero(question == number)
        values = np.array(scale.values)
        order = np.argsort(values)
        answers = value[of_question]
        # place of the first option that is no smaller; it counts only where it is equal
        in_order = np.clip(
            np.searchsorted(values[order], answers),
            0,
            len(values) - 1,
        )
        no_smaller = order[in_order]
        place[of_question] = np.where(
            values[no_smaller] == answers,
            no_smaller,
            -1,
        )

    return place


def _build_array(
    records: AnswerRecords,
    texts: Sequence[str],
    scales: Sequence[Scale],
    known_questions: Collection[str] | None,
) -> tuple[Floats, list[TableIssue]]:
    """Build X `[text, column]` with NaN for invalid blocks; a missing option has probability 0."""
    # where each record stands: its text, its question, and its option of that [record]
    text = find_places_of_names(records.text, texts)
    question = find_places_of_names(records.question, [scale.question for scale in scales])
    place = find_option_places(scales, question, convert_to_numbers(records.option))
    probability = convert_to_numbers(records.probability)
    usable = (text >= 0) & (place >= 0)
    alien = np.array(
        [known_questions is not None and name not in known_questions for name in records.question],
        dtype=bool,
    )

    # usable records whose probability is none
    with np.errstate(invalid="ignore"):
        wrong = {
            "without a number": np.isnan(probability) & usable,
            "below 0": (probability < 0) & usable,
            "over 1": (probability > 1 + PROBABILITY_SUM_TOLERANCE) & usable,
        }

    # the cell of each record in X, whose columns are the options of all questions in order
    sizes = np.array([len(scale.values) for scale in scales], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    cell = text * sizes.sum() + starts[question] + place
    good = usable & ~np.any([*wrong.values()], axis=0)
    # a cell takes its first record; a later one that differs spoils the answer
    first = good.copy()
    first[good] = mask_first_of_each(cell[good])
    X = np.zeros((len(texts), int(sizes.sum())))
    X.flat[cell[first]] = probability[first]
    again = good & ~first
    changed = again & (X.flat[np.where(again, cell, 0)] != probability)
    broken = (usable & ~good) | changed
    # an answer [text, question] counts only whole: no broken record, and no sum over 1
    answered = np.zeros((len(texts), len(sizes)), dtype=bool)
    answered[text[usable], question[usable]] = True
    answered[text[broken], question[broken]] = False
    over = answered & (np.add.reduceat(X, starts, axis=1) > 1 + PROBABILITY_SUM_TOLERANCE)
    X[~np.repeat(answered & ~over, sizes, axis=1)] = np.nan
    inside = np.flatnonzero(first & over[text, question])  # one record of each such answer
    inside = inside[mask_first_of_each(text[inside] * len(sizes) + question[inside])]
    # what is told of the records that were left out
    named = f"options are numbers; name them all: {spell_options(options=None)}"
    about: list[tuple[str, str, Bools | Ints, str]] = [
        ("row", "without a text_id", text < 0, "give each its text's id"),
        ("row", "whose question the calibrator doesn't know", alien, ""),
        ("row", "with an unknown option", (question >= 0) & (place < 0), named),
        *(("probability", what, which, CORRECT_HINT) for what, which in wrong.items()),
        ("answer", "whose probabilities sum to more than 1", inside, ROUNDED_DIGITS_HINT),
        ("row", "with another probability of an option than the first", changed, CORRECT_HINT),
    ]
    faults = []
    for noun, what, which, hint in about:
        faults.extend(make_fault_issues(noun, what, which, records.describe, hint))

    same = make_fault_issues(
        "row",
        "given again: counted once",
        again & ~changed,
        records.describe,
        left_out=False,
    )
    return X, [*faults, *same]


def _make_nothing_usable_error(
    what: str,
    faults: Sequence[TableIssue],
    records: AnswerRecords,
) -> BadInput:
    why = "".join(f"; {issue}" for issue in faults[:3])
    where = records.where(0) if len(records) else ""
    return BadInput(
        what + why,
        where=where,
        hint="give each text and question a row for every option",
    )
