"""LLM-Rubric's released data as sheets: what one judge said about one dialogue, beside the LLM's answers to it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pollex.calibration.folds import assign_groups_to_folds
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.formats.read_tables import read_answers

MAIN = "Q0"
NOT_APPLICABLE = 0.0
OWN = "{} by the judge"


@dataclass(frozen=True, eq=False)
class AnswerMatrix:
    """Filled-in questionnaires.

    Attributes:
        X: The LLM's answers `[sheet, question × option]`.
        answers: Values `[sheet, question]`; NaN where a question does not apply.
        judges: Who filled each in `[sheet]`.
        dialogue: Number of the dialogue `[sheet]`.
        system: Of the dialogue `[sheet]`.
        questions: Q0 is the main one.
    """

    X: Floats
    answers: Floats
    judges: tuple[str, ...]
    dialogue: Ints
    system: tuple[str, ...]
    questions: Questionnaire

    def __len__(self) -> int:
        return len(self.X)

    @property
    def said(self) -> list[tuple[int, str, str, float]]:
        """Sheet, question, judge and value of each answer."""
        names = [scale.question for scale in self.questions.scales]
        return [
            (sheet, names[place], self.judges[sheet], value)
            for sheet, values in enumerate(self.answers.tolist())
            for place, value in enumerate(values)
            if value == value
        ]

    def part(self, rows: Ints) -> AnswerMatrix:
        """Those rows."""
        return replace(
            self,
            X=self.X[rows],
            answers=self.answers[rows],
            judges=tuple(self.judges[row] for row in rows),
            dialogue=self.dialogue[rows],
            system=tuple(self.system[row] for row in rows),
        )

    def without(self, rows: Ints) -> AnswerMatrix:
        """All but those rows."""
        return self.part(np.setdiff1d(np.arange(len(self)), rows))

    @property
    def main(self) -> Ints:
        """Place of the option that was chosen for Q0 `[sheet]`."""
        values = np.array(self.questions.scale().values)
        column = self.answers[:, self.questions.index()]
        return np.asarray((column[:, None] == values).argmax(axis=1), dtype=np.int64)


def read_sheets(folder: Path, which: str) -> AnswerMatrix:
    """`synthetic` or `real`; without sheets that have no LLM answers, no answer to Q0, or an empty cell."""
    answers = read_answers(folder / f"{which}-llm.tsv")
    questions = Questionnaire(answers.scales, MAIN)
    place = {text: row for row, text in enumerate(answers.texts)}
    names = [scale.question for scale in questions.scales]
    with (folder / f"{which}-human.tsv").open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file, delimiter="\t")
            if row["text_id"] in place
            and all(row[name].strip() for name in names)
            and float(row[MAIN]) != NOT_APPLICABLE
        ]
    values = np.array([[float(row[name]) for name in names] for row in rows])
    values[values == NOT_APPLICABLE] = np.nan
    return AnswerMatrix(
        X=answers.X[[place[row["text_id"]] for row in rows]],
        answers=values,
        judges=tuple(row["annotator_id"] for row in rows),
        dialogue=np.array([place[row["text_id"]] for row in rows]),
        system=tuple(_system(row) for row in rows),
        questions=questions,
    )


def folds_of(sheets: AnswerMatrix, split: int, folds: int = 5) -> list[Ints]:
    """Rows of each fold; a dialogue is in one of them only."""
    return assign_groups_to_folds(sheets.dialogue, folds, np.random.default_rng(split))


def systems_of(sheets: AnswerMatrix) -> list[Ints]:
    """Rows of each dialogue system."""
    systems = np.array(sheets.system)
    return [np.flatnonzero(systems == system) for system in np.unique(systems)]


def with_own_answers(sheets: AnswerMatrix, llm: bool = True) -> AnswerMatrix:
    """X also has the judge's own answers to all but the main question, one-hot; zeros where one does not apply.

    Args:
        llm: False: X has nothing else.
    """
    blocks = [_one_hot(sheets.answers[:, place], scale) for place, scale in _others(sheets)]
    return _widened(sheets, blocks, llm)


def with_others_answers(sheets: AnswerMatrix) -> AnswerMatrix:
    """X is the mean of the other judges' one-hot answers to the dialogue; missing where nobody else judged it."""
    same = sheets.dialogue[:, None] == sheets.dialogue
    others = (same & ~np.eye(len(sheets), dtype=bool)).astype(float)
    counts = others.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        blocks = [
            others @ _one_hot(sheets.answers[:, place], scale) / counts
            for place, scale in _others(sheets)
        ]
    return _widened(sheets, blocks, llm=False)


def without_question(sheets: AnswerMatrix, name: str) -> AnswerMatrix:
    """Neither the LLM's nor the judges' answers to a question; of the main one, not the LLM's."""
    questions = sheets.questions
    main = name == questions.main
    scales = tuple(
        replace(scale, asked=False) if scale.question == name else scale
        for scale in questions.scales
        if main or scale.question != name
    )
    columns = np.arange(questions.width)
    block = questions.blocks[name]
    kept = [place for place, scale in enumerate(questions.scales) if main or scale.question != name]
    return replace(
        sheets,
        X=sheets.X[:, (columns < block.start) | (columns >= block.stop)],
        answers=sheets.answers[:, kept],
        questions=Questionnaire(scales, questions.main),
    )


def with_scores_alone(sheets: AnswerMatrix) -> AnswerMatrix:
    """Every question enters regressions by its expected value, Q8 too, whose answers are in no order."""
    scales = tuple(replace(scale, ordinal=True) for scale in sheets.questions.scales)
    return replace(sheets, questions=Questionnaire(scales, sheets.questions.main))


def only_main(sheets: AnswerMatrix, proba: Floats) -> AnswerMatrix:
    """X is a distribution of the main answer, and there is no other question."""
    place = sheets.questions.index()
    scale = replace(sheets.questions.scale(), asked=True)
    return replace(
        sheets,
        X=proba,
        answers=sheets.answers[:, [place]],
        questions=Questionnaire((scale,), scale.question),
    )


def _system(row: dict[str, Any]) -> str:
    return str(row.get("dialogue_system") or row["text_id"].split("_")[0])


def _others(sheets: AnswerMatrix) -> list[tuple[int, Scale]]:
    return [
        (n, scale)
        for n, scale in enumerate(sheets.questions.scales)
        if scale.question != sheets.questions.main
    ]


def _one_hot(answers: Floats, scale: Scale) -> Floats:
    """`[sheet, option]`; zeros where the answer is NaN."""
    return np.asarray(answers[:, None] == np.array(scale.values), dtype=np.float64)


def _widened(sheets: AnswerMatrix, blocks: Sequence[Floats], llm: bool) -> AnswerMatrix:
    own = [replace(scale, question=OWN.format(scale.question)) for _, scale in _others(sheets)]
    scales = (
        sheets.questions.scales
        if llm
        else tuple(replace(s, asked=False) for s in sheets.questions.scales)
    )
    nothing = np.full((len(sheets), len(own)), np.nan)
    return replace(
        sheets,
        X=np.concatenate([*([sheets.X] if llm else []), *blocks], axis=1),
        answers=np.concatenate([sheets.answers, nothing], axis=1),
        questions=Questionnaire((*scales, *own), sheets.questions.main),
    )


QUESTIONS = ("Q0", *(f"Q{number}" for number in range(1, 9)))
JUDGES = ("3", "7", "11")


def made_tables(folder: Path) -> Path:
    """Write four tables of the released shape; judges 3, 7 and 11 agree with the LLM more or less, and 11 is strict."""
    rng = np.random.default_rng(0)
    for which, texts in (
        ("synthetic", [f"V{n % 2 + 1}_{n}" for n in range(30)]),
        ("real", [f"{n:024x}" for n in range(12)]),
    ):
        answers = []
        sheets = []
        for number, text in enumerate(texts):
            quality = rng.normal()
            for question in QUESTIONS:
                options = 3 if question == "Q8" else 4
                logits = -((np.arange(options) - 1.5 - quality) ** 2) + rng.normal(0, 0.3, options)
                proba = 0.98 * np.exp(logits) / np.exp(logits).sum()
                columns = {
                    f"answer{k + 1}_prob": proba[k] if k < options else 0.0 for k in range(4)
                }
                answers.append({"text_id": text, "criterion": question, "sample_llm": 1, **columns})
            for judge in JUDGES if which == "synthetic" else (JUDGES[number % 3],):
                given = {
                    q: int(
                        np.clip(
                            np.round(2.5 + quality + rng.normal(0, 0.7) - (judge == "11")),
                            1,
                            3 + (q != "Q8"),
                        )
                    )
                    for q in QUESTIONS
                }
                system = {} if which == "synthetic" else {"dialogue_system": number % 3}
                sheets.append({**system, "text_id": text, **given, "annotator_id": judge})
        if which == "synthetic":
            sheets[0]["Q4"] = ""  # missing
            sheets[1]["Q0"] = 0  # says nothing about the overall question
            sheets[2]["Q3"] = 0  # does not apply
            sheets.append({**sheets[3], "text_id": "V9_unanswered"})
        for name, rows in (("llm", answers), ("human", sheets)):
            with (folder / f"{which}-{name}.tsv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
                writer.writeheader()
                writer.writerows(rows)
    return folder
