"""What `pollex calibrate fit` and `predict` do: read tables, fit or load, write, tell."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from pollex.calibration.estimator import Aggregate
from pollex.calibration.judgments import NOBODY, Judgments
from pollex.calibration.model_choice import Choice
from pollex.calibration.models import model_named
from pollex.calibration.storage import JSON_NAME, load, packed, save
from pollex.cli.output import print_json
from pollex.errors import WrongUse
from pollex.formats.answers import AnswerTable
from pollex.formats.columns import Fault
from pollex.formats.files import find_files
from pollex.formats.judgments import JudgmentTable
from pollex.formats.predictions import rows_of_predictions, writer_for
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import draft_of, require_writable
from pollex.measures.intervals import support
from pollex.text import count, printable

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


DONE, PARTLY = 0, 3


def fit_command(
    answers: str,
    judgments: str,
    *,
    out: Path,
    main: str | None,
    nominal: Sequence[str],
    options: Sequence[str],
    shift: str | None,
    model: str,
    network: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Reads both tables, fits, keeps, tells; the exit code."""
    console = Console(stderr=as_json)
    require_writable(out / JSON_NAME, answers, judgments)
    find_files([answers, judgments])
    kind = taught_model(model)
    settings = settings_for(kind, seed, shift, network=network)
    table = read_answers(answers, options=dict(map(_options, options)), nominal=[])
    judged = read_judgments(judgments, table, main=main, nominal=nominal)
    faults = (*table.faults, *judged.faults)
    tell_tables(console, table, judged)
    made = kind(**settings)
    with console.status(f"Fitting: {kind.title or model}"):
        fitted = _fitted(made, table, judged, shift)
    path = save(fitted, out)
    about = _about(fitted, table, judged)
    keep_training(out, fitted, table, judged, about | {"files": [answers, judgments], "shift": shift})
    for line in told_choice(fitted):
        say(console, line)
    say(console, f"{name_for_people(fitted)}: {support(about['labels'])}")
    next_command = shlex.join(["pollex", "calibrate", "report", str(out), answers, judgments])
    say(console, f"Wrote {path}. How good is it: {next_command}")
    if as_json:
        print_json({"out": str(out), **about, **faults_json(faults)})
    return faults_exit_code(faults)


def predict_command(
    folder: Path, answers: str, *, out: Path, judges: Sequence[str], aggregate: str | None, as_json: bool
) -> int:
    """Reads answers, predicts, writes a row a text, tells; the exit code."""
    console = Console(stderr=as_json)
    write, how = writer_for(out, answers), aggregate_named(aggregate)
    find_files([answers])
    model = load(folder)
    table = read_answers(answers, scales=model.questionnaire_.asked)
    tell_faults(console, table.faults)
    strangers = [name for name in judges if name not in model.judges_]
    if strangers:
        say(console, f"Note: judges not seen in training get the shared part: {', '.join(strangers)}", "yellow")
    training = training_of(folder)
    labels = training.labels
    seen = training.seen(table)
    if flattered := told_seen(seen):
        say(console, f"Note: {flattered}", "yellow")
    write(rows_of_predictions(model, table, judges, how))
    said = "" if labels is None else f"; {support(labels)}"
    say(console, f"Wrote {out}: {count(len(table.texts), 'text')}, {name_for_people(model)}{said}")
    if as_json:
        about = {"out": str(out), "texts": len(table.texts), "learnt_from": seen, "strangers": strangers}
        print_json(about | {"calibrated": labels is not None and support(labels).enough} | faults_json(table.faults))
    return faults_exit_code(table.faults)


def told_seen(seen: int | None) -> str:
    """A warning about predictions of texts that were learnt from, or may have been; empty where none was."""
    if seen is None:
        what = f"there is no {TRAINING} of this calibrator"
        return f"which texts it learnt from isn't known, as {what}: predictions of these flatter it"
    return f"the calibrator learnt from {seen} of these texts: its predictions of them flatter it" if seen else ""


def aggregate_named(how: str | None) -> Aggregate | None:
    """The way to aggregate that was typed.

    Raises:
        WrongUse: There is none like it.
    """
    if how is None:
        return None
    if how == "mean":
        return "mean"
    if how == "max":
        return "max"
    try:
        quantile = float(how)
    except ValueError:
        quantile = -1.0
    if not 0 <= quantile <= 1:
        raise WrongUse(f"no way to aggregate is called {how!r}", remedy="use mean, max or a quantile from 0 to 1")
    return quantile


def _options(said: str) -> tuple[str, tuple[float, ...]]:
    question, equals, values = said.rpartition("=")
    try:
        found = tuple(float(value) for value in values.split(","))
    except ValueError:
        found = ()
    if not equals or not question or len(set(found)) < 2 or not np.isfinite(found).all():
        raise WrongUse(f"{said!r} names no options", remedy="write a question and its options: --options Q8=1,2,3")
    return question, found


def taught_model(name: str) -> type[JudgedEstimator]:
    """The model of this name.

    Raises:
        WrongUse: There is none, or it learns nothing from labels.
    """
    kind = model_named(name)
    if not kind.taught:
        what = f"{name!r}, the {kind.title}, learns nothing from judgments, so there is nothing to fit"
        raise WrongUse(what, remedy="name another model; `pollex calibrate report` has this one beside every other")
    return kind


def settings_for(kind: type[JudgedEstimator], seed: int, shift: str | None, *, network: bool) -> dict[str, Any]:
    """Settings that the command gives a model; a network's own are searched for.

    Raises:
        WrongUse: The model doesn't choose among others, and something is said of how.
    """
    known = kind._get_param_names()
    given = {"seed": seed, "search": "random"}
    for name, said in {"shift": shift is not None, "network": network}.items():
        if said and name not in known:
            raise WrongUse(
                f"{kind.title} chooses nothing, so there is no --{name}", remedy=f"leave out --{name} or --model"
            )
    return {name: value for name, value in given.items() if name in known} | ({"network": True} if network else {})


def _fitted(model: JudgedEstimator, table: AnswerTable, judged: JudgmentTable, shift: str | None) -> JudgedEstimator:
    groups = None
    if shift is not None:
        model.set_params(shift=True)
        groups = shift_groups(table, judged, shift)
    return model.fit(table.X, judged.judgments, questions=judged.questionnaire, groups=groups)


def groups_of(table: AnswerTable, judged: JudgmentTable) -> dict[str, tuple[str, ...]]:
    """Columns of groups of both tables; where both have a column, the answers' one counts, then the judgments'."""
    names = dict.fromkeys([*table.groups, *judged.groups])
    empty = ("",) * len(table.texts)
    return {
        name: tuple(
            one or other
            for one, other in zip(table.groups.get(name, empty), judged.groups.get(name, empty), strict=True)
        )
        for name in names
    }


def shift_groups(table: AnswerTable, judged: JudgmentTable, column: str) -> tuple[str, ...]:
    """The group of each text in a column.

    Raises:
        WrongUse: There is no such column, or it has one group only.
    """
    found = groups_of(table, judged)
    if column not in found:
        others = f"--shift is one of {', '.join(found)}" if found else "the tables have no column of groups: add one"
        raise WrongUse(f"no column is called {column!r}", remedy=others)
    if len(set(found[column])) < 2:
        raise WrongUse(f"all texts have the same {column!r}", remedy="leave out --shift")
    return found[column]


def tell_tables(console: Console, table: AnswerTable, judged: JudgmentTable) -> None:
    """What was read, and what was left out."""
    questions, given = judged.questionnaire, judged.judgments
    say(
        console,
        f"{count(len(table.texts), 'text')} with answers to {count(len(table.scales), 'question')}; "
        f"{count(len(given), 'judgment')}, "
        f"{len(_main(judged))} of them of the main question {questions.main!r}; {_judges(given)}",
    )
    tell_faults(console, (*table.faults, *judged.faults))


def _judges(given: Judgments) -> str:
    nobody = int((given.judge == NOBODY).sum())
    known = count(len(given.judges), "judge")
    return f"{known}; {count(nobody, 'judgment names', 'judgments name')} none" if nobody else known


def _main(judged: JudgmentTable) -> Judgments:
    return judged.judgments.of_question(judged.questionnaire.index())


def tell_faults(console: Console, faults: Iterable[Fault]) -> None:
    """What was left out, in yellow, and what is worth knowing."""
    for fault in faults:
        if fault.left_out:
            say(console, f"Left out: {fault}", "yellow")
        else:
            say(console, f"Note: {fault}")


def told_choice(model: JudgedEstimator) -> list[str]:
    """What a model that chooses among others or among settings chose, and by how much."""
    choice, search = choice_of(model), getattr(model, "search_", None)
    said = [] if choice is None else [f"Chosen: {choice.sentence()}"]
    return said if search is None else [*said, f"Chosen: {search.sentence()}"]


def choice_of(model: JudgedEstimator) -> Choice | None:
    """How a model that chooses among others chose."""
    found: Choice | None = getattr(model, "choice_", None)
    return found


def name_for_people(model: JudgedEstimator) -> str:
    """The model's title; of one that chooses among others, what it chose."""
    choice = choice_of(model)
    if choice is None:
        return model.title
    names = [choice.trials[place].name for place in choice.weights]
    return f"calibrator ({names[0] if len(names) == 1 else f'{len(names)} models together'})"


def _about(model: JudgedEstimator, table: AnswerTable, judged: JudgmentTable) -> dict[str, Any]:
    labels = _main(judged).labels
    return {
        "model": name_for_people(model),
        "main": judged.questionnaire.main,
        "texts": len(table.texts),
        "labels": labels,
        "judgments": len(judged.judgments),
        "judges": len(judged.judgments.judges),
        "calibrated": support(labels).enough,
        "missing_labels": support(labels).missing,
        "choice": told_choice(model),
    }


def faults_json(faults: Iterable[Fault]) -> dict[str, Any]:
    """What was left out and what is worth knowing, for scripts."""
    found = [(fault.left_out, asdict(fault)) for fault in faults]
    return {
        "left_out": [_shown(fault) for out, fault in found if out],
        "notes": [_shown(fault) for out, fault in found if not out],
    }


def _shown(fault: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fault.items() if name != "left_out"}


def faults_exit_code(faults: Iterable[Fault]) -> int:
    """3 where something was left out."""
    return PARTLY if any(fault.left_out for fault in faults) else DONE


def say(console: Console, text: str, style: str | None = None) -> None:
    """A line for people; control characters of foreign text are made visible."""
    console.print(printable(text, keep_lines=True), style=style, markup=False, highlight=False, soft_wrap=True)


TRAINING = "training.json"
ARRAYS = "arrays_sha256"
"""Of the calibrator that the record is of, as the calibrator names it: another may have taken its place since."""


@dataclass(frozen=True)
class TrainingRecord:
    """What a calibrator was fitted on, as far as that is known.

    Attributes:
        labels: How many answers to the main question; None where nobody knows.
        shift: The column of groups that the model was chosen by.
        hashes: Of the texts; None where nobody knows.
    """

    labels: int | None = None
    shift: str | None = None
    hashes: frozenset[str] | None = None

    def seen(self, table: AnswerTable) -> int | None:
        """How many of these texts the calibrator learnt from; None where nobody knows."""
        return None if self.hashes is None else sum(one in self.hashes for one in _hashes(table))


def keep_training(
    folder: Path, model: JudgedEstimator, table: AnswerTable, judged: JudgmentTable, about: Mapping[str, Any]
) -> None:
    """Writes the record of a calibrator that was saved.

    Args:
        about: JSON values; of these `labels` and `shift` are read again.
    """
    learnt = np.zeros(len(table.texts), dtype=bool)
    learnt[judged.judgments.row] = True
    hashes = [one for one, used in zip(_hashes(table), learnt.tolist(), strict=True) if used]
    record = {**about, ARRAYS: packed(model).facts[ARRAYS], "text_hashes": hashes}
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    with draft_of(folder / TRAINING) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8", errors="replace")


def training_of(folder: Path) -> TrainingRecord:
    """What a calibrator was fitted on; nothing is known where that isn't kept, or is of another calibrator.

    Args:
        folder: The calibrator's, or its JSON file.
    """
    calibrator = folder / JSON_NAME if folder.is_dir() else folder
    kept = _facts(calibrator.with_name(TRAINING))
    if kept.get(ARRAYS) != _facts(calibrator).get(ARRAYS):
        return TrainingRecord()
    labels, shift, hashes = kept.get("labels"), kept.get("shift"), kept.get("text_hashes")
    return TrainingRecord(
        labels=labels if type(labels) is int and labels >= 0 else None,
        shift=shift if isinstance(shift, str) else None,
        hashes=frozenset(hashes) if isinstance(hashes, list) and all(isinstance(one, str) for one in hashes) else None,
    )


def _facts(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _hashes(table: AnswerTable) -> list[str]:
    """By id and answers: the same id in another log is another text."""
    rows = np.ascontiguousarray(table.X)
    return [
        hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + row.tobytes()).hexdigest()[:16]
        for text, row in zip(table.texts, rows, strict=True)
    ]
