"""What `pollex label next` does: predict, pick the labels worth most, list them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from pollex.agents.answers import Answer
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.view import views_of
from pollex.answer_tables import read_answers, read_judgments
from pollex.calibrating import exit_code as exit_code_of_tables
from pollex.calibrating import faults_json, say, tell_faults
from pollex.calibration.active import Picked, doubt_of, most_telling, vectors_of
from pollex.calibration.estimator import JudgedEstimator, entropy
from pollex.calibration.intervals import support
from pollex.calibration.judgments import Judgments
from pollex.calibration.kept import load
from pollex.calibration.questionnaire import Bools, Floats, Questionnaire
from pollex.conversations.cells import guarded
from pollex.conversations.counts import count
from pollex.conversations.display import printable
from pollex.conversations.logs import Logs
from pollex.conversations.model import Conversation, Label
from pollex.conversations.options import ReadOptions
from pollex.errors import WrongUse
from pollex.export import Source, draft_of, require_writable
from pollex.graphs.calibrating import judges_wanted
from pollex.graphs.netsat import Score
from pollex.graphs.results import Scored, scores_of
from pollex.graphs.rubric_set import RubricSet
from pollex.graphs.runs import score
from pollex.prediction_files import expected_of
from pollex.rehiring import judging
from pollex.scoring import DONE, exit_code, support_json
from pollex.terminal.idle_options import refuse_for
from pollex.terminal.options import RunOptions
from pollex.terminal.printing import cell, print_json, table
from pollex.terminal.reading import logs_from
from pollex.terminal.session import Session, session
from pollex.terminal.show import show_logs, show_outcomes, show_usage, usage_json
from pollex.training_record import training_of
from pollex.verdict_files import messages_of
from pollex.workers import ModelOptions, Workers

Row = dict[str, Any]

LOGGED = "logged"
"""Where a row to be written has its conversation, as the log has it."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Conversations that have a probability, labelled ones too: those say what is known already.

    Attributes:
        probability: Of each judge that was asked for, or one column of somebody unknown `[conversation, judge]`.
    """

    conversations: list[Conversation]
    scores: list[Score]
    probability: Floats
    judges: tuple[str, ...]

    @property
    def labelled(self) -> Bools:
        """Which have a label `[conversation]`."""
        return np.array([c.label is not Label.NONE for c in self.conversations], dtype=bool)

    @property
    def known(self) -> Bools:
        """Which labels there are `[conversation, judge]`."""
        if not self.judges:
            return self.labelled[:, None]
        who = np.array([c.judge for c in self.conversations], dtype=object)
        return np.asarray(self.labelled[:, None] & (who[:, None] == np.array(self.judges, dtype=object)), dtype=bool)


def next_conversations(
    sources: Sequence[str],
    rubrics: Path,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Scores what has no label, lists what to label next; the exit code."""
    rubric_set = RubricSet.load(rubrics)
    rubric_set.require_unedited(str(rubrics))
    refuse_for(rubric_set.judge, embeds=True)
    write, wanted = writer_for(out, rubrics, *sources), judges_wanted(rubric_set.thumb_model, judges)
    logs = logs_from(sources, reading)
    asked = to_score(logs, rubric_set)
    if run.dry_run:
        from pollex.planning import plan_scoring  # the client behind it takes a second to import

        return plan_scoring(asked.conversations, rubric_set, run, model)
    with session(run) as opened:
        show_logs(opened, logs)
        arguments = {"logs": list(sources), "rubrics": str(rubrics)}
        scored, staff, rows = opened.run(_ask(opened, asked, rubric_set, model, arguments, wanted, count))
        show_rows(opened.console, rows, ("id", "probability", "entropy", "judge", "begins"))
        opened.say(counted(len(rows), logs.conversations))
        show_outcomes(opened, scored.counts)
        show_usage(opened, staff)
        opened.say(f"Probabilities: {rubric_set.support}")
        if out is not None:
            write(rows_to_fill_in(rows, logs, reading))
            opened.say(f"Wrote {out}")
        if run.as_json:
            about = {"run": scored.run, "judge": rubric_set.judge.name, "outcomes": scored.counts}
            print_json({"next": rows} | about | support_json(rubric_set) | usage_json(staff))
    return exit_code(logs, scored)


def to_score(logs: Logs, rubric_set: RubricSet) -> Logs:
    """What has no label; labelled ones too where asking costs nothing, since they say what is known already."""
    free = rubric_set.judge.kind == "embedded"
    kept = tuple(c for c in logs.conversations if free or c.label is Label.NONE)
    return Logs(conversations=kept, fingerprint=logs.fingerprint)


def counted(listed: int, conversations: Sequence[Conversation]) -> str:
    """How many are listed of how many without a label."""
    left = sum(c.label is Label.NONE for c in conversations)
    return f"{listed} of {count(left, 'conversation')} without a label, those first whose labels would make all surest"


async def _ask(
    opened: Session,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    judges: Sequence[str],
    count: int,
) -> tuple[Scored, Workers, list[Row]]:
    async with judging(model, rubric_set, opened.store) as staff:
        opened.meet(staff)
        setting = opened.setting(arguments, staff)
        scored = await score(
            logs.conversations,
            rubric_set,
            judge=staff.roles.judge,
            data_fingerprint=logs.fingerprint,
            setting=setting,
            command="label",
        )
        scores = scores_of(opened.store, scored.run, rubric_set, logs.conversations, judges)
        return scored, staff, picked_rows(candidates(logs.conversations, scores, judges), staff.embedder, count)


def candidates(conversations: Sequence[Conversation], scores: Any, judges: Sequence[str]) -> Candidates:
    """Those that have a probability."""
    both = [(c, s) for c, s in zip(conversations, scores, strict=True) if s.probability is not None]
    each = [[s.judges[judge] for judge in judges] if judges else [s.probability] for _, s in both]
    probability = np.array(each, dtype=np.float64).reshape(len(both), max(1, len(judges)))
    return Candidates([c for c, _ in both], [s for _, s in both], probability, tuple(judges))


def picked_rows(found: Candidates, embedder: Embedder, count: int) -> list[Row]:
    """The conversations to label next, a row each."""
    if not found.conversations:
        return []
    p = found.probability
    answers = [[a.expected() for a in s.answers if isinstance(a, Answer)] for s in found.scores]
    vectors = vectors_of(np.array(answers), embeddings_of(found.conversations, embedder))
    picked = most_telling(
        vectors,
        p * (1 - p),
        found.known,
        count,
        askable=np.broadcast_to(~found.labelled[:, None], p.shape),
    )
    return [_row(found, place, judge) for place, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True)]


def embeddings_of(conversations: Sequence[Conversation], embedder: Embedder) -> Floats:
    """What each conversation is about: mean vectors of the user's turns and of the assistant's `[row, 2 × width]`."""
    views = views_of(conversations, embedder)
    parts = [[view.vectors[view.user].mean(axis=0), view.vectors[view.assistant].mean(axis=0)] for view in views]
    return np.asarray(parts, dtype=np.float64).reshape(len(views), -1)


def _row(found: Candidates, place: int, judge: int) -> Row:
    one, p = found.conversations[place], float(found.probability[place, judge])
    row: Row = {"id": one.id, "probability": p, "entropy": float(entropy(np.array([1 - p, p])))}
    if found.judges:
        row["judge"] = found.judges[judge]
    return row | {"begins": " ".join(one.opening.split())[:80]}


def rows_to_fill_in(rows: Sequence[Row], logs: Logs, reading: ReadOptions) -> list[Row]:
    """The same with the row of the log that each is from, under `LOGGED`.

    Names are those of the log, so that the options that read it read both: a row that lost its group would be split
    from the others of its user.
    """
    wanted = {row["id"] for row in rows}
    kept = {one.id: one for one in logs if one.id in wanted}
    return [row | {LOGGED: as_logged(kept[row["id"]], row, logs.label_field, reading)} for row in rows]


def as_logged(one: Conversation, row: Row, label_field: str, reading: ReadOptions) -> Row:
    """A conversation as a row of a log, with what was predicted of it and an empty thumb."""
    said = {name: row[name] for name in ("probability", "entropy")}
    found = one.metadata | {reading.id_field or "id": one.id} | said
    if one.group is not None:
        found[reading.group_field or "group"] = one.group
    if "judge" in row:
        found[reading.judge_field or "judge"] = row["judge"]
    return found | {reading.messages_field or "messages": messages_of(one), label_field or "thumbs": None}


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
    """The same for answers of one's own and a calibrator: which text, and whom to ask; the exit code."""
    console = Console(stderr=as_json)
    write, model = writer_for(out, answers, judgments), load(folder)
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
    return exit_code_of_tables(faults) if faults else DONE


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


def show_rows(console: Console, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """A table of those columns that the rows have."""
    if not rows:
        return
    shown = [name for name in columns if rows[0].get(name) is not None]
    made = table(*shown)
    for row in rows:
        made.add_row(*(cell(f"{v:.3f}" if isinstance(v := row[name], float) else str(v), 80) for name in shown))
    console.print(made)


def writer_for(out: Path | None, *read: Source) -> Callable[[Sequence[Row]], None]:
    """What writes the format that the name ends in; nothing where there is no name.

    Args:
        read: What the command reads.

    Raises:
        WrongUse: It ends in none that is known, or can't or may not be written there.
    """
    if out is None:
        return lambda _rows: None
    writers: dict[str, Callable[[Path, Sequence[Row]], None]] = {".jsonl": _write_jsonl, ".csv": _write_csv}
    if out.suffix not in writers:
        raise WrongUse(
            f"no format ends in {out.suffix or 'nothing'!r}", where=str(out), remedy=f"use {', '.join(writers)}"
        )
    require_writable(out, *read)

    def written(rows: Sequence[Row]) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(out) as draft:
            writers[out.suffix](draft, rows)

    return written


def _write_jsonl(draft: Path, rows: Sequence[Row]) -> None:
    """Conversations whole and with an empty thumb: filled in, the file can be learnt from."""
    with draft.open("w", encoding="utf-8", errors="replace") as file:
        for row in rows:  # a log's own fields may hold NaN, figures may not
            file.write(json.dumps(row.get(LOGGED, row), ensure_ascii=False, allow_nan=LOGGED in row) + "\n")


def _write_csv(draft: Path, rows: Sequence[Row]) -> None:
    """Without the conversations; cells that a spreadsheet would run are guarded by an apostrophe."""
    names = [name for name in rows[0] if name not in (LOGGED, "probabilities")] if rows else ["id"]
    with draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([guarded(_shown(name, row[name])) for name in names] for row in rows)


def _shown(name: str, value: Any) -> Any:
    """What a conversation says is for the eye; ids and judges stay as they are, or nothing would join them again."""
    return printable(value) if name == "begins" else value
