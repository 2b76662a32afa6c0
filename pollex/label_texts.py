"""What `pollex label next --calibrator` does: predict, pick the labels worth most and whom to ask, list them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from pollex.answer_tables import read_answers, read_judgments
from pollex.calibrating import exit_code, faults_json, say, tell_faults
from pollex.calibration.active import Picked, doubt_of, most_telling, vectors_of
from pollex.calibration.decoding import entropy
from pollex.calibration.intervals import support
from pollex.calibration.judgments import Judgments
from pollex.calibration.kept import load
from pollex.calibration.questionnaire import Bools, Floats, Questionnaire
from pollex.conversations.files import find_files
from pollex.errors import WrongUse
from pollex.label_rows import Row, show_rows, writer_for
from pollex.prediction_files import expected_of
from pollex.terminal.printing import print_json
from pollex.training_record import training_of

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


def next_texts(
    folder: Path,
    answers: str,
    judgments: str | None,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> int:
    """Lists which text to label next, and whom to ask; the exit code."""
    console = Console(stderr=as_json)
    write = writer_for(out, answers, judgments)
    find_files([answers, *([judgments] if judgments else [])])
    model = load(folder)
    if strangers := sorted(set(judges) - set(model.judges_)):
        known = ", ".join(model.judges_) or "none"
        raise WrongUse(f"the calibrator doesn't know judge {strangers[0]!r}", remedy=f"it knows {known}")
    answered = read_answers(answers, scales=model.questionnaire_.asked)
    faults = answered.faults
    given = None
    if judgments is not None:
        judged = read_judgments(judgments, answered, questionnaire=model.questionnaire_)
        given, faults = judged.judgments, (*faults, *judged.faults)
    tell_faults(console, faults)
    names = tuple(judges) or model.judges_
    rows = text_rows(model, answered.texts, answered.X, given, names, count)
    show_rows(console, rows, ("text_id", "judge", "expected", "entropy"))
    labels = training_of(folder).labels
    say(console, f"Labels of {model.questionnaire_.main!r} to ask for: {len(rows)}; {model.title}")
    if labels is not None:
        say(console, f"Predictions: {support(labels)}")
    if out is not None:
        write(rows)
        say(console, f"Wrote {out}")
    if as_json:
        print_json({"next": rows, "texts": len(answered.texts)} | faults_json(faults))
    return exit_code(faults)


def text_rows(
    model: JudgedEstimator, texts: Sequence[str], X: Floats, given: Judgments | None, judges: Sequence[str], count: int
) -> list[Row]:
    """The labels to ask for next, a row each: a judgment without its answer, and what the model expects of it."""
    sheet = model.questionnaire_
    who: list[str | None] = [*judges] or [None]
    proba = np.stack([model.predict_proba(X, [judge] * len(X)) for judge in who], axis=1)
    known = known_labels(given, sheet, len(X), judges)
    picked: Picked = most_telling(vectors_of(columns_of(sheet, X)), doubt_of(proba, sheet), known, count)
    rows = []
    for row, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True):
        p = proba[row, judge]
        asked = {"question": sheet.main} | ({"judge": judges[judge]} if judges else {})
        (expected,) = expected_of(p[None], sheet.scale())
        figures = {"expected": expected, "entropy": float(entropy(p)), "probabilities": p.tolist()}
        rows.append({"text_id": texts[row]} | asked | figures)
    return rows


def known_labels(given: Judgments | None, sheet: Questionnaire, rows: int, judges: Sequence[str]) -> Bools:
    """Which labels of the main question there are `[row, judge]`; of anybody where no judges are told apart."""
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
    """What predictions rest on `[row, column]`: expected answers, and the options' shares where these have no order."""
    expected = sheet.expected(X)
    parts = [
        expected[:, [place]] if scale.ordinal else X[:, block][:, :-1]
        for place, (scale, block) in enumerate(zip(sheet.asked, sheet.blocks.values(), strict=True))
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(X), 0))
