"""Known shapes of tables of answers and of judgments, each a `Shape` in `SHAPES`.

It is given rows; `formats.read_tables` reads files (CSV, TSV, JSON lines, Parquet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pollex.errors import BadInput
from pollex.formats.json_rows import Row
from pollex.rubrics.answers import SCALES

Side = Literal["answers", "judgments"]


@dataclass
class Records:
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
    option: list[Any] = field(default_factory=list)
    probability: list[Any] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    nominal: frozenset[str] = frozenset()
    blank: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.text)

    def where(self, record: int) -> str:
        """File and line."""
        return place_of(self.rows[self.row[record]])

    def describe(self, record: int) -> str:
        """Describe a record with its place."""
        about = f"{self.text[record]}, {self.question[record]}"
        if self.judge:
            return f"{self.where(record)} ({about}, judge {self.judge[record]}: {self.option[record]})"
        return f"{self.where(record)} ({about}, option {self.option[record]}: {self.probability[record]})"

    def joined(self, other: Records) -> Records:
        """Append the records of another file."""
        shift = len(self.rows)
        groups = {
            name: [*self.groups.get(name, [""] * shift), *other.groups.get(name, [""] * len(other.rows))]
            for name in dict.fromkeys([*self.groups, *other.groups])
        }
        return Records(
            text=self.text + other.text,
            question=self.question + other.question,
            judge=self.judge + other.judge,
            option=self.option + other.option,
            probability=self.probability + other.probability,
            row=self.row + [shift + row for row in other.row],
            rows=self.rows + other.rows,
            groups=groups,
            nominal=self.nominal | other.nominal,
            blank=self.blank + [shift + row for row in other.blank],
        )


@dataclass(frozen=True)
class Shape:
    """One shape of tables.

    Attributes:
        name: For people.
        columns: What each side's table has, for people.
        needed: The columns that tell it, by side. No two shapes recognise the same.
        numbered: What one of the other columns is called, by side; empty where nothing else tells it.
        answers: Records of a table of answers.
        judgments: Records of a table of judgments; None where the shape has only answers.
    """

    name: str
    columns: Mapping[Side, str]
    needed: Mapping[Side, str]
    answers: Callable[[Sequence[Row]], Records]
    judgments: Callable[[Sequence[Row]], Records] | None = None
    numbered: Mapping[Side, re.Pattern[str]] = field(default_factory=dict)

    def recognises(self, fields: Mapping[str, Any], side: Side) -> bool:
        """Return whether a row's fields have this shape."""
        told = side in self.needed and fields.keys() >= {*self.needed[side].split()}
        return told and (side not in self.numbered or any(map(self.numbered[side].fullmatch, fields)))

    def records(self, rows: Sequence[Row], side: Side) -> Records:
        """Make the records of a table of this side."""
        make = self.answers if side == "answers" else self.judgments
        assert make is not None, "what a shape recognises it can read"
        return make(rows)


def place_of(row: Row) -> str:
    """File and line."""
    return f"{row.source}:{row.line}"


def name(value: Any) -> str:
    """Convert an id to text; a missing one is empty."""
    return "" if value is None else str(value).strip()


YES_AND_NO = {"no": 0, "yes": 1}
GROUPS = ("system", "topic", "persona")


def _answers_of_dialogues(rows: Sequence[Row]) -> Records:
    """Make a record for each question and option; the option that was chosen has all the probability."""
    cells = [
        (number, question, option, said)
        for number, row in enumerate(rows)
        for question, said in (row.fields["quality"] or {}).items()
        for option in YES_AND_NO
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[question for _, question, *_ in cells],
        option=[YES_AND_NO[option] for *_, option, _ in cells],
        probability=[float(said == option) for *_, option, said in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
        groups={column: [name(row.fields.get(column)) for row in rows] for column in GROUPS},
    )


DIALOGUES = Shape(
    name="simulated dialogues",
    columns={"answers": "id, messages, quality"},
    needed={"answers": "id messages quality"},
    answers=_answers_of_dialogues,
)


# The tables that the authors of LLM-Rubric released, as they are. Answers: a row a text and question, with the
# probabilities of answers 1 … 4. Judgments: a row a text and judge, with the answers to Q0 … Q8; 0 means that the
# question does not apply, an empty cell that the answer is missing. DQQ0 … DQQ2 ask about the dialogue's own quality
# and belong to no questionnaire. The system is a column (`dialogue_system`), or the beginning of a text's id (`V3_17`).
PROBABILITY = re.compile(r"answer(\d+)_prob")
_NUMBERED = re.compile(r"Q\d+")
SYSTEM = re.compile(r"(V\d+)_")
NOMINAL = frozenset({"Q8"})
"""Is the number of exchanges right: 1 fewer would do, 2 more are needed, 3 reasonable."""
NOT_APPLICABLE = 0.0


def _answers_of_llm_rubric(rows: Sequence[Row]) -> Records:
    """Make a record for each row and option.

    An option that is 0 in all rows of a question does not belong to that question.
    """
    options = {column: found[1] for column in rows[0].fields if (found := PROBABILITY.fullmatch(column))}
    questions = [name(row.fields.get("criterion")) for row in rows]
    used = {
        (question, column)
        for question, row in zip(questions, rows, strict=True)
        for column in options
        if _number(row.fields.get(column)) != 0
    }
    cells = [
        (number, column)
        for number, question in enumerate(questions)
        for column in options
        if (question, column) in used
    ]
    return Records(
        text=[name(rows[number].fields.get("text_id")) for number, _ in cells],
        question=[questions[number] for number, _ in cells],
        option=[options[column] for _, column in cells],
        probability=[rows[number].fields.get(column) for number, column in cells],
        row=[number for number, _ in cells],
        rows=list(rows),
        groups={"system": _systems(rows)},
        nominal=NOMINAL & set(questions),
    )


def _judgments_of_llm_rubric(rows: Sequence[Row]) -> Records:
    columns = [column for column in rows[0].fields if _NUMBERED.fullmatch(column)]
    cells = list(_cells(rows, columns))
    given = [(number, column, value) for number, column, value in cells if value != ""]
    return Records(
        text=[name(rows[number].fields.get("text_id")) for number, *_ in given],
        question=[column for _, column, _ in given],
        judge=[name(rows[number].fields.get("annotator_id")) or None for number, *_ in given],
        option=[value for *_, value in given],
        row=[number for number, *_ in given],
        rows=list(rows),
        groups={"system": _systems(rows)},
        nominal=NOMINAL & set(columns),
        blank=sorted({number for number, _, value in cells if value == ""}),
    )


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield row, question and text of each answered cell, without those that don't apply."""
    for number, row in enumerate(rows):
        for column in columns:
            value = name(row.fields.get(column))
            if _number(value) != NOT_APPLICABLE:
                yield number, column, value


def _systems(rows: Sequence[Row]) -> list[str]:
    return [name(row.fields.get("dialogue_system")) or _prefix(name(row.fields.get("text_id"))) for row in rows]


def _prefix(text: str) -> str:
    found = SYSTEM.match(text)
    return found[1] if found else ""


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


LLM_RUBRIC = Shape(
    name="LLM-Rubric's",
    columns={
        "answers": "text_id, criterion, answer1_prob, answer2_prob …",
        "judgments": "text_id, annotator_id, Q0, Q1 …",
    },
    needed={"answers": "text_id criterion", "judgments": "text_id annotator_id"},
    numbered={"answers": PROBABILITY, "judgments": _NUMBERED},
    answers=_answers_of_llm_rubric,
    judgments=_judgments_of_llm_rubric,
)


KNOWN: dict[Side, frozenset[str]] = {
    # Who answered stands for an LLM there, and is a group like others.
    "answers": frozenset({"text_id", "question", "option", "probability", "answer", "ordinal", "source"}),
    "judgments": frozenset({"text_id", "question", "option", "probability", "judge", "answer", "asks"}),
}


def _answers_of_long(rows: Sequence[Row]) -> Records:
    found = _records(rows, "answers")
    found.option = [row.fields.get("option") for row in rows]
    found.probability = [row.fields.get("probability") for row in rows]
    classes = (name(row.fields.get("question")) for row in rows if name(row.fields.get("ordinal")).lower() == "false")
    found.nominal = frozenset(classes)  # as `ask` writes it
    return found


def _judgments_of_long(rows: Sequence[Row]) -> Records:
    found = _records(rows, "judgments")
    found.judge = [name(row.fields.get("judge")) or None for row in rows]
    found.option = [row.fields.get("answer") for row in rows]
    return found


def _records(rows: Sequence[Row], side: Side) -> Records:
    columns = [
        column for column in dict.fromkeys(key for row in rows for key in row.fields) if column not in KNOWN[side]
    ]
    return Records(
        text=[name(row.fields.get("text_id")) for row in rows],
        question=[name(row.fields.get("question")) for row in rows],
        row=list(range(len(rows))),
        rows=list(rows),
        groups={column: [name(row.fields.get(column)) for row in rows] for column in columns},
    )


LONG = Shape(
    name="long",
    columns={
        "answers": "text_id, question, option, probability",
        "judgments": "text_id, question, judge, answer",
    },
    needed={"answers": "text_id question option probability", "judgments": "text_id question answer"},
    answers=_answers_of_long,
    judgments=_judgments_of_long,
)


VALUES = {len(scale): [option.value for option in scale] for scale in SCALES.values()}


def _answers_of_scores(rows: Sequence[Row]) -> Records:
    cells = [
        (number, answer["rubric"], value, probability)
        for number, row in enumerate(rows)
        for answer in row.fields["answers"] or ()
        if answer.get("outcome") == "answered"
        for value, probability in zip(VALUES[len(answer["probabilities"])], answer["probabilities"], strict=True)
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[rubric for _, rubric, _, _ in cells],
        option=[value for _, _, value, _ in cells],
        probability=[probability for *_, probability in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
    )


SCORES = Shape(
    name="scores",
    columns={"answers": "id, netsat, answers"},
    needed={"answers": "id netsat answers"},
    answers=_answers_of_scores,
)


VERDICT = "rating"


def _answers_of_verdicts(rows: Sequence[Row]) -> Records:
    """Make a record for each option: the last is worth 0, the first most; runs without an answer are missing mass."""
    cells = [
        (number, place, count / row.fields["runs"])
        for number, row in enumerate(rows)
        if row.fields["runs"]
        for place, count in enumerate(reversed([*row.fields["votes"].values()]))
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[VERDICT] * len(cells),
        option=[place for _, place, _ in cells],
        probability=[share for *_, share in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
    )


VERDICTS = Shape(
    name="verdicts",
    columns={"answers": "id, votes, runs"},
    needed={"answers": "id votes runs"},
    answers=_answers_of_verdicts,
)


SHAPES = (DIALOGUES, LLM_RUBRIC, LONG, SCORES, VERDICTS)


def shape_of(rows: Sequence[Row], side: Side) -> Shape:
    """Return the shape of the rows of one file, by its first row.

    Raises:
        BadInput: There is no row, or no shape fits; says what each needs.
    """
    if not rows:
        raise BadInput("a table without a row", remedy=f"give {_needs(side)}")
    for shape in SHAPES:
        if shape.recognises(rows[0].fields, side):
            return shape
    have = ", ".join(list(rows[0].fields)[:12])
    where = f"{rows[0].source}:{rows[0].line}"
    raise BadInput(f"no table of {side}: it has {have}", where=where, remedy=f"known are {_needs(side)}")


def _needs(side: Side) -> str:
    return "; ".join(f"{shape.name} ({shape.columns[side]})" for shape in SHAPES if side in shape.columns)
