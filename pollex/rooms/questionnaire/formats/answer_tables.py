"""Known shapes of tables of answers and of judgments, each a `TableShape` in `TABLE_SHAPES`.

It is given rows; `formats.read_tables` reads files (CSV, TSV, JSON lines, Parquet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow
from pollex.rubrics.answers import OPTIONS_BY_SCALE

TableSide = Literal["answers", "judgments"]


@dataclass
class AnswerRecords:
    """Records of one or several files as parallel lists, each `[record]`.

    Attributes:
        text: Ids.
        question: Ids.
        judge: Names; None for nobody known. Empty for answers.
        option: Value of the option, or of the answer that a judge gave, as the file has it.
        probability: As the file has it. Empty for judgments.
        row: Which of `rows` each is from.
        rows: The files' rows.
        groups: By column, the value of each row of `rows`.
        nominal: Questions that the shape knows to be without an order.
        blank: Rows of `rows` that have an empty cell where an answer should be.
    """

    text: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    judge: list[str | None] = field(default_factory=list)
    option: list[object] = field(default_factory=list)
    probability: list[object] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    rows: list[LogRow] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    nominal: frozenset[str] = frozenset()
    blank: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.text)

    def where(self, record: int) -> str:
        """File and line."""
        return describe_place(self.rows[self.row[record]])

    def describe(self, record: int) -> str:
        """Describe a record with its place."""
        about = f"{self.text[record]}, {self.question[record]}"
        if self.judge:
            return (
                f"{self.where(record)} ({about}, judge {self.judge[record]}: {self.option[record]})"
            )
        return f"{self.where(record)} ({about}, option {self.option[record]}: {self.probability[record]})"

    def joined(self, other: AnswerRecords) -> AnswerRecords:
        """Append the records of another file."""
        # rows are numbered on from those of the file before
        shift = len(self.rows)
        groups = {}
        for name in dict.fromkeys([*self.groups, *other.groups]):
            groups[name] = [
                *self.groups.get(name, [""] * shift),
                *other.groups.get(name, [""] * len(other.rows)),
            ]

        alike = ("text", "question", "judge", "option", "probability", "rows")
        both: dict[str, Any] = {
            name: [*getattr(self, name), *getattr(other, name)] for name in alike
        }

        return AnswerRecords(
            **both,
            row=self.row + [shift + row for row in other.row],
            groups=groups,
            nominal=self.nominal | other.nominal,
            blank=self.blank + [shift + row for row in other.blank],
        )


class RecordCell(NamedTuple):
    """What one record has: the number of its row, a question, an option, and its probability or who chose it."""

    row: int
    question: str
    option: object
    probability_or_judge: object


def _make_records(
    rows: Sequence[LogRow],
    side: TableSide,
    cells: Iterable[RecordCell],
    id_: str = "text_id",
    **beside: object,
) -> AnswerRecords:
    listed = list(cells)
    answer_column: dict[str, Any] = {
        "probability" if side == "answers" else "judge": [
            cell.probability_or_judge for cell in listed
        ]
    }
    return AnswerRecords(
        text=[format_id(rows[cell.row].fields.get(id_)) for cell in listed],
        question=[cell.question for cell in listed],
        option=[cell.option for cell in listed],
        row=[cell.row for cell in listed],
        rows=list(rows),
        **answer_column | beside,
    )


@dataclass(frozen=True)
class TableShape:
    """One shape of tables.

    Attributes:
        name: For people.
        columns: What each side's table has, for people.
        needed: The columns that tell it, by side. No two shapes recognise the same.
        numbered: What one of the other columns is called, by side; empty where nothing else tells
            it.
        answers: Records of a table of answers.
        judgments: Records of a table of judgments; None where the shape has only answers.
    """

    name: str
    columns: Mapping[TableSide, str]
    needed: Mapping[TableSide, str]
    answers: Callable[[Sequence[LogRow]], AnswerRecords]
    judgments: Callable[[Sequence[LogRow]], AnswerRecords] | None = None
    numbered: Mapping[TableSide, re.Pattern[str]] = field(default_factory=dict)

    def recognises(self, fields: Mapping[str, object], side: TableSide) -> bool:
        """Return whether a row's fields have this shape."""
        has_columns = side in self.needed and fields.keys() >= {*self.needed[side].split()}
        return has_columns and (
            side not in self.numbered or any(map(self.numbered[side].fullmatch, fields))
        )

    def records(self, rows: Sequence[LogRow], side: TableSide) -> AnswerRecords:
        """Make the records of a table of this side."""
        make = self.answers if side == "answers" else self.judgments
        assert make is not None, "what a shape recognises it can read"
        return make(rows)


def describe_place(row: LogRow) -> str:
    """File and line."""
    return f"{row.source}:{row.line}"


def format_id(value: object) -> str:
    """Convert an id to text; a missing one is empty."""
    if value is None:
        return ""
    return str(value).strip()


YES_NO_VALUES = {"no": 0, "yes": 1}
GROUP_COLUMNS = ("system", "topic", "persona")


def _read_dialogue_answers(rows: Sequence[LogRow]) -> AnswerRecords:
    """Make a record for each question and option; the option that was chosen has all the probability."""
    cells: list[RecordCell] = []
    for number, row in enumerate(rows):
        for question, answer in (row.fields["quality"] or {}).items():
            cells += [
                RecordCell(number, question, value, float(answer == option))
                for option, value in YES_NO_VALUES.items()
            ]

    groups = {}
    for column in GROUP_COLUMNS:
        groups[column] = [format_id(row.fields.get(column)) for row in rows]

    return _make_records(rows, "answers", cells, "id", groups=groups)


DIALOGUE_SHAPE = TableShape(
    name="simulated dialogues",
    columns={"answers": "id, messages, quality"},
    needed={"answers": "id messages quality"},
    answers=_read_dialogue_answers,
)


# The tables that the authors of LLM-Rubric released, as they are. Answers: a row a text and
# question, with the probabilities of answers 1 … 4. Judgments: a row a text and judge, with the
# answers to Q0 … Q8; 0 means that the question does not apply, an empty cell that the answer is
# missing. DQQ0 … DQQ2 ask about the dialogue's own quality and belong to no questionnaire. The
# system is a column (`dialogue_system`), or the beginning of a text's id (`V3_17`).
PROBABILITY_COLUMN_PATTERN = re.compile(r"answer(\d+)_prob")
_NUMBERED_QUESTION_PATTERN = re.compile(r"Q\d+")
SYSTEM_PREFIX_PATTERN = re.compile(r"(V\d+)_")
NOMINAL_QUESTIONS = frozenset({"Q8"})
"""Is the number of exchanges right: 1 fewer would do, 2 more are needed, 3 reasonable."""
NOT_APPLICABLE_VALUE = 0.0


def _read_llm_rubric_answers(rows: Sequence[LogRow]) -> AnswerRecords:
    """Make a record for each row and option.

    An option that is 0 in all rows of a question does not belong to that question.
    """
    options = {}
    for column in rows[0].fields:
        if match := PROBABILITY_COLUMN_PATTERN.fullmatch(column):
            options[column] = match[1]

    questions = [format_id(row.fields.get("criterion")) for row in rows]
    # which options each question has, since a row has the columns of all
    used = set()
    for question, row in zip(questions, rows, strict=True):
        for column in options:
            if _parse_number(row.fields.get(column)) != 0:
                used.add((question, column))

    cells = (
        RecordCell(number, question, options[column], rows[number].fields.get(column))
        for number, question in enumerate(questions)
        for column in options
        if (question, column) in used
    )
    nominal = NOMINAL_QUESTIONS & set(questions)
    return _make_records(
        rows,
        "answers",
        cells,
        groups={"system": _list_systems(rows)},
        nominal=nominal,
    )


def _read_llm_rubric_judgments(rows: Sequence[LogRow]) -> AnswerRecords:
    columns = []
    for column in rows[0].fields:
        if _NUMBERED_QUESTION_PATTERN.fullmatch(column):
            columns.append(column)

    cells = list(_iterate_judgment_cells(rows, columns))
    nominal = NOMINAL_QUESTIONS & set(columns)
    # a row with empty cells is told of; its other answers count
    blank_rows = set()
    for cell in cells:
        if cell.option == "":
            blank_rows.add(cell.row)

    blank = sorted(blank_rows)
    filled = (cell for cell in cells if cell.option != "")

    return _make_records(
        rows,
        "judgments",
        filled,
        groups={"system": _list_systems(rows)},
        nominal=nominal,
        blank=blank,
    )


def _iterate_judgment_cells(rows: Sequence[LogRow], columns: Sequence[str]) -> Iterator[RecordCell]:
    """Yield a judgment for each cell, without those that don't apply."""
    for number, row in enumerate(rows):
        judge = format_id(row.fields.get("annotator_id")) or None
        for column in columns:
            value = format_id(row.fields.get(column))
            if _parse_number(value) != NOT_APPLICABLE_VALUE:
                yield RecordCell(number, column, value, judge)


def _list_systems(rows: Sequence[LogRow]) -> list[str]:
    systems: list[str] = []
    for row in rows:
        systems.append(
            format_id(row.fields.get("dialogue_system"))
            or _parse_system(format_id(row.fields.get("text_id")))
        )

    return systems


def _parse_system(text: str) -> str:
    match = SYSTEM_PREFIX_PATTERN.match(text)
    return match[1] if match else ""


def _parse_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


LLM_RUBRIC_SHAPE = TableShape(
    name="LLM-Rubric's",
    columns={
        "answers": "text_id, criterion, answer1_prob, answer2_prob …",
        "judgments": "text_id, annotator_id, Q0, Q1 …",
    },
    needed={"answers": "text_id criterion", "judgments": "text_id annotator_id"},
    numbered={"answers": PROBABILITY_COLUMN_PATTERN, "judgments": _NUMBERED_QUESTION_PATTERN},
    answers=_read_llm_rubric_answers,
    judgments=_read_llm_rubric_judgments,
)


USUAL_COLUMNS: dict[TableSide, frozenset[str]] = {
    # Who answered stands for an LLM there, and is a group like others.
    "answers": frozenset(
        {"text_id", "question", "option", "probability", "answer", "ordinal", "source"}
    ),
    "judgments": frozenset(
        {"text_id", "question", "option", "probability", "judge", "answer", "asks"}
    ),
}


def _read_long_answers(rows: Sequence[LogRow]) -> AnswerRecords:
    classes = (
        format_id(row.fields.get("question"))
        for row in rows
        if format_id(row.fields.get("ordinal")).lower() == "false"
    )
    # as `ask` writes it
    return replace(_read_long_records(rows, "answers", "option"), nominal=frozenset(classes))


def _read_long_records(rows: Sequence[LogRow], side: TableSide, option: str) -> AnswerRecords:
    usual_columns = USUAL_COLUMNS[side]
    # columns that nothing else is known of are groups
    columns = []
    for column in dict.fromkeys(key for row in rows for key in row.fields):
        if column not in usual_columns:
            columns.append(column)

    cells: list[RecordCell] = []
    for number, row in enumerate(rows):
        fields = row.fields
        answer = fields.get("probability")
        if side == "judgments":
            answer = format_id(fields.get("judge")) or None
        cells.append(
            RecordCell(
                number,
                format_id(fields.get("question")),
                fields.get(option),
                answer,
            )
        )

    groups = {}
    for column in columns:
        groups[column] = [format_id(row.fields.get(column)) for row in rows]

    return _make_records(rows, side, cells, groups=groups)


LONG_SHAPE = TableShape(
    name="long",
    columns={
        "answers": "text_id, question, option, probability",
        "judgments": "text_id, question, judge, answer",
    },
    needed={
        "answers": "text_id question option probability",
        "judgments": "text_id question answer",
    },
    answers=_read_long_answers,
    judgments=lambda rows: _read_long_records(rows, "judgments", "answer"),
)


SCALE_VALUES_BY_LENGTH = {
    len(scale): [option.value for option in scale] for scale in OPTIONS_BY_SCALE.values()
}


def _read_score_answers(rows: Sequence[LogRow]) -> AnswerRecords:
    cells: list[RecordCell] = []
    for number, row in enumerate(rows):
        for answer in row.fields["answers"] or ():
            if answer.get("outcome") != "answered":
                continue
            # the number of probabilities tells the scale
            probabilities = answer["probabilities"]
            values = SCALE_VALUES_BY_LENGTH[len(probabilities)]
            for value, probability in zip(values, probabilities, strict=True):
                cells.append(
                    RecordCell(
                        number,
                        answer["rubric"],
                        value,
                        probability,
                    )
                )

    return _make_records(rows, "answers", cells, "id")


SCORES_SHAPE = TableShape(
    name="scores",
    columns={"answers": "id, netsat, answers"},
    needed={"answers": "id netsat answers"},
    answers=_read_score_answers,
)


RATING_QUESTION = "rating"


def _read_verdict_answers(rows: Sequence[LogRow]) -> AnswerRecords:
    """Make a record for each option: the last is worth 0, the first most; runs without an answer are missing mass."""
    cells: list[RecordCell] = []
    for number, row in enumerate(rows):
        runs = row.fields["runs"]
        if not runs:
            continue
        votes = [*row.fields["votes"].values()]
        for place, count in enumerate(reversed(votes)):
            cells.append(RecordCell(number, RATING_QUESTION, place, count / runs))

    return _make_records(rows, "answers", cells, "id")


VERDICTS_SHAPE = TableShape(
    name="verdicts",
    columns={"answers": "id, votes, runs"},
    needed={"answers": "id votes runs"},
    answers=_read_verdict_answers,
)


TABLE_SHAPES = (DIALOGUE_SHAPE, LLM_RUBRIC_SHAPE, LONG_SHAPE, SCORES_SHAPE, VERDICTS_SHAPE)


def find_shape(rows: Sequence[LogRow], side: TableSide) -> TableShape:
    """Return the shape of the rows of one file, by its first row.

    Raises:
        BadInput: There is no row, or no shape fits; says what each needs.
    """
    if not rows:
        raise BadInput(
            "a table without a row",
            hint=f"give {_describe_shapes(side)}",
        )

    for shape in TABLE_SHAPES:
        if shape.recognises(rows[0].fields, side):
            return shape

    have = ", ".join(list(rows[0].fields)[:12])
    where = f"{rows[0].source}:{rows[0].line}"
    raise BadInput(
        f"no table of {side}: it has {have}",
        where=where,
        hint=f"known are {_describe_shapes(side)}",
    )


def _describe_shapes(side: TableSide) -> str:
    shape_texts = []
    for shape in TABLE_SHAPES:
        if side in shape.columns:
            shape_texts.append(f"{shape.name} ({shape.columns[side]})")

    return "; ".join(shape_texts)
