"""Choose the texts to label next, and whom to ask, by a calibrator of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pollex.calibration.active_learning import (
    LabelQueries,
    choose_texts_to_label_next,
    compute_relative_variance_of_prediction,
    make_vectors_for_choosing_labels,
)
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire
from pollex.calibration.storage import load
from pollex.errors import WrongUse
from pollex.formats.files import find_files_of_sources
from pollex.formats.label_files import (
    LABEL_FILE_ENDINGS,
    LabelRequestRow,
    load_sheet_questions,
    require_label_file_not_filled_in,
    write_label_requests,
)
from pollex.formats.write import require_known_ending
from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import compute_entropy_of_distributions
from pollex.measures.intervals import LabelSupport
from pollex.rooms.questionnaire.formats.answers import TableIssue
from pollex.rooms.questionnaire.formats.judgments import compute_expected_answers
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments
from pollex.rooms.questionnaire.services.calibrate import write_faults_json
from pollex.rooms.questionnaire.services.training_record import read_training_record
from pollex.services.results import TabularResult, tabulate_rows
from pollex.text import JsonDict, TerminalLines, render_notes

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator


@dataclass(frozen=True, kw_only=True, repr=False)
class NextTexts(TabularResult):
    """The texts to label next, and whom to ask, by a custom calibrator.

    Attributes:
        support: How many labels the calibrator was fitted on, in words.
    """

    rows: tuple[LabelRequestRow, ...]
    texts: int
    question: str
    model: str
    support: str
    out: Path | None
    faults: tuple[TableIssue, ...] = ()

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.texts} texts to label next, on {self.question}"

    def records(self) -> Iterable[dict[str, object]]:
        return self.rows

    def told(self) -> TerminalLines:
        """Yield the texts to label next, and whom to ask."""
        yield from render_notes(self.faults)
        yield from tabulate_rows(self.rows, ("text_id", "judge", "expected", "entropy"))
        yield f"Labels of {self.question!r} to ask for: {len(self.rows)}; {self.model}"
        if self.support:
            yield f"Predictions: {self.support}"
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> JsonDict:
        return {"next": list(self.rows), "texts": self.texts} | write_faults_json(self.faults)


def choose_next_texts(
    calibrator: Path,
    answers: str,
    judgments: str | None = None,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None = None,
    questionnaire: str | None = None,
) -> NextTexts:
    """Pick the texts whose labels would help a calibrator most, and whom to ask.

    Args:
        judges: Who can be asked; nobody, or `all`: everybody whom the calibrator knows.
    """
    if tuple(judges) == ("all",):
        judges = ()
    questions = load_sheet_questions(questionnaire, out)
    if out is not None:
        require_known_ending(out, answers, judgments, formats=LABEL_FILE_ENDINGS)
        require_label_file_not_filled_in(out)

    find_files_of_sources([answers, *([judgments] if judgments else [])])
    model = load(calibrator)
    # a judge that the calibrator never saw has no prediction of its own
    if unknown := sorted(set(judges) - set(model.judges_)):
        judge_names = ", ".join(model.judges_) or "none"
        raise WrongUse(
            f"the calibrator doesn't know judge {unknown[0]!r}",
            hint=f"it knows {judge_names}",
        )

    # read by the calibrator's scales, so that columns are those that it was fitted to
    answered = read_answers(answers, scales=model.questionnaire_.asked)
    faults = answered.faults
    # labels that there are make their texts known, and are not asked for again
    given_judgments = None
    if judgments is not None:
        judged = read_judgments(
            judgments,
            answered,
            questionnaire=model.questionnaire_,
        )
        given_judgments = judged.judgments
        faults = (*faults, *judged.faults)

    rows = list_label_requests(
        model,
        answered.texts,
        answered.X,
        given_judgments,
        tuple(judges) or model.judges_,
        count,
    )
    if out is not None:
        write_label_requests(out, rows, questions)

    labels = read_training_record(calibrator).labels
    return NextTexts(
        rows=tuple(rows),
        texts=len(answered.texts),
        question=model.questionnaire_.main,
        model=model.title,
        support="" if labels is None else str(LabelSupport(labels)),
        out=out,
        faults=tuple(faults),
    )


def list_label_requests(
    model: JudgedEstimator,
    texts: Sequence[str],
    X: Floats,
    judgments: Judgments | None,
    judges: Sequence[str],
    count: int,
) -> list[LabelRequestRow]:
    """Return the labels to ask for next: judgments without answers, with predictions."""
    sheet = model.questionnaire_
    # `[text, judge, answer]`; without judges one column for an unknown one
    who: list[str | None] = [*judges] or [None]
    proba = np.stack(
        [model.predict_proba(X, [judge] * len(X)) for judge in who],
        axis=1,
    )
    is_labeled = mask_known_labels(judgments, sheet, len(X), judges)
    # likeness is by the judge's answers, doubt by the spread of the predicted answer
    picked: LabelQueries = choose_texts_to_label_next(
        make_vectors_for_choosing_labels(make_feature_columns(sheet, X)),
        compute_relative_variance_of_prediction(proba, sheet),
        is_labeled,
        count,
    )
    rows = []
    for row, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True):
        p = proba[row, judge]
        question_fields = {"question": sheet.main} | ({"judge": judges[judge]} if judges else {})
        (expected,) = compute_expected_answers(p[None], sheet.scale())
        # what is predicted, to be compared with the label when it comes
        figures = {
            "expected": expected,
            "entropy": float(compute_entropy_of_distributions(p)),
            "probabilities": p.tolist(),
        }
        rows.append({"text_id": texts[row]} | question_fields | figures)

    return rows


def mask_known_labels(
    judgments: Judgments | None,
    sheet: Questionnaire,
    rows: int,
    judges: Sequence[str],
) -> Bools:
    """Mask the known labels of the main question `[row, judge]`; one column without judges."""
    is_labeled = np.zeros((rows, max(1, len(judges))), dtype=bool)
    if judgments is None:
        return is_labeled

    main = judgments.of_question(sheet.index())
    # nobody is named: any judge's label makes a text known
    if not judges:
        is_labeled[main.row, 0] = True
        return is_labeled

    # labels of judges that are not asked for have the code −1
    coded = main.coded(judges)
    of_judges = coded.judge >= 0
    is_labeled[coded.row[of_judges], coded.judge[of_judges]] = True

    return is_labeled


def make_feature_columns(sheet: Questionnaire, X: Floats) -> Floats:
    """Return features `[row, column]`: expected answers, or shares of options without order."""
    expected = sheet.expected(X)
    parts = []
    # shares of options add up to 1, so that the last one says nothing new
    for place, (scale, block) in enumerate(zip(sheet.asked, sheet.blocks.values(), strict=True)):
        parts.append(expected[:, [place]] if scale.ordinal else X[:, block][:, :-1])

    if parts:
        return np.concatenate(parts, axis=1)
    return np.zeros((len(X), 0))
