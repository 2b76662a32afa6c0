"""Choose the texts to label next, and whom to ask, by a custom calibrator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.active_learning import Picked, predictive_variance, select_queries, vectors_of
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire
from pollex.calibration.storage import load
from pollex.errors import WrongUse
from pollex.formats.answers import Issue
from pollex.formats.files import find_files
from pollex.formats.judgments import expected_of
from pollex.formats.label_files import FORMATS, Request, sheet_for, write_requests
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import require_format
from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import entropy
from pollex.measures.intervals import support
from pollex.services.calibrate import faults_json
from pollex.services.results import Shown, rows_told
from pollex.services.training_record import training_of
from pollex.text import Told, notes_told

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


@dataclass(frozen=True, kw_only=True, repr=False)
class NextTexts(Shown):
    """The texts to label next, and whom to ask, by a custom calibrator.

    Attributes:
        support: How many labels the calibrator was fitted on, in words.
    """

    rows: tuple[Request, ...]
    texts: int
    question: str
    model: str
    support: str
    out: Path | None
    faults: tuple[Issue, ...] = ()

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.texts} texts to label next, on {self.question}"

    def records(self) -> Iterable[dict[str, Any]]:
        return self.rows

    def told(self) -> Told:
        """Yield the texts to label next, and whom to ask."""
        yield from notes_told(self.faults)
        yield from rows_told(self.rows, ("text_id", "judge", "expected", "entropy"))
        yield f"Labels of {self.question!r} to ask for: {len(self.rows)}; {self.model}"
        if self.support:
            yield f"Predictions: {self.support}"
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> dict[str, Any]:
        return {"next": list(self.rows), "texts": self.texts} | faults_json(self.faults)


def next_texts(
    calibrator: Path,
    answers: str,
    judgments: str | None,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    questionnaire: str | None = None,
) -> NextTexts:
    """Pick the texts whose labels would help a calibrator most, and whom to ask."""
    questions = sheet_for(questionnaire, out)
    if out is not None:
        require_format(out, answers, judgments, formats=FORMATS)
    find_files([answers, *([judgments] if judgments else [])])
    model = load(calibrator)
    if unknown := sorted(set(judges) - set(model.judges_)):
        known = ", ".join(model.judges_) or "none"
        raise WrongUse(f"the calibrator doesn't know judge {unknown[0]!r}", remedy=f"it knows {known}")
    answered = read_answers(answers, scales=model.questionnaire_.asked)
    faults, given = answered.faults, None
    if judgments is not None:
        judged = read_judgments(judgments, answered, questionnaire=model.questionnaire_)
        given, faults = judged.judgments, (*faults, *judged.faults)
    rows = text_rows(model, answered.texts, answered.X, given, tuple(judges) or model.judges_, count)
    if out is not None:
        write_requests(out, rows, questions)
    labels = training_of(calibrator).labels
    return NextTexts(
        rows=tuple(rows),
        texts=len(answered.texts),
        question=model.questionnaire_.main,
        model=model.title,
        support="" if labels is None else str(support(labels)),
        out=out,
        faults=tuple(faults),
    )


def text_rows(
    model: JudgedEstimator, texts: Sequence[str], X: Floats, given: Judgments | None, judges: Sequence[str], count: int
) -> list[Request]:
    """Return the labels to ask for next: judgments without answers, with predictions."""
    sheet = model.questionnaire_
    who: list[str | None] = [*judges] or [None]
    proba = np.stack([model.predict_proba(X, [judge] * len(X)) for judge in who], axis=1)
    known = known_labels(given, sheet, len(X), judges)
    picked: Picked = select_queries(vectors_of(columns_of(sheet, X)), predictive_variance(proba, sheet), known, count)
    rows = []
    for row, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True):
        p = proba[row, judge]
        asked = {"question": sheet.main} | ({"judge": judges[judge]} if judges else {})
        (expected,) = expected_of(p[None], sheet.scale())
        figures = {"expected": expected, "entropy": float(entropy(p)), "probabilities": p.tolist()}
        rows.append({"text_id": texts[row]} | asked | figures)
    return rows


def known_labels(given: Judgments | None, sheet: Questionnaire, rows: int, judges: Sequence[str]) -> Bools:
    """Mask the known labels of the main question `[row, judge]`; one column without judges."""
    known = np.zeros((rows, max(1, len(judges))), dtype=bool)
    if given is None:
        return known
    main = given.of_question(sheet.index())
    if not judges:
        known[main.row, 0] = True
        return known
    coded = main.coded(judges)
    mine = coded.judge >= 0
    known[coded.row[mine], coded.judge[mine]] = True
    return known


def columns_of(sheet: Questionnaire, X: Floats) -> Floats:
    """Return features `[row, column]`: expected answers, or shares of options without order."""
    expected = sheet.expected(X)
    parts = [
        expected[:, [place]] if scale.ordinal else X[:, block][:, :-1]
        for place, (scale, block) in enumerate(zip(sheet.asked, sheet.blocks.values(), strict=True))
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(X), 0))
