"""Choose what to label next: conversations by a rubric set, texts by a calibrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.view import views_of
from pollex.calibration.active_learning import Picked, predictive_variance, select_queries, vectors_of
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire
from pollex.calibration.storage import load
from pollex.conversations.conversation import Conversation, Label, messages_of
from pollex.conversations.logs import BadRow, Logs
from pollex.errors import WrongUse
from pollex.formats.columns import Fault
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files
from pollex.formats.label_files import DRAWN, RANDOM, drawn_of
from pollex.formats.label_requests import FORMATS, LOGGED, Row, write_requests
from pollex.formats.predictions import expected_of
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import require_format
from pollex.graphs.context import Progress
from pollex.graphs.score.run import Scored, score, scores_of
from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import entropy
from pollex.measures.intervals import support
from pollex.measures.share import FEWEST, expected_half_width
from pollex.rubrics.answers import Answer
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.services.calibrate import faults_json
from pollex.services.labeled_sample import grouped
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import CallPlan, plan_scoring
from pollex.services.results import Usage, support_json, usage_json
from pollex.services.roles import judging
from pollex.services.score import unedited
from pollex.services.training_record import training_of
from pollex.services.workspace import Workspace, workspace

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


@dataclass(frozen=True, eq=False)
class Candidates:
    """Conversations that have a probability, including labeled ones.

    Attributes:
        probability: Probability for each requested judge, or one column for an unknown judge `[conversation, judge]`.
    """

    conversations: list[Conversation]
    scores: list[Score]
    probability: Floats
    judges: tuple[str, ...]

    @property
    def labelled(self) -> Bools:
        """Mask of the conversations with a label `[conversation]`."""
        return np.array([c.label is not Label.NONE for c in self.conversations], dtype=bool)

    @property
    def known(self) -> Bools:
        """Mask of the known labels `[conversation, judge]`."""
        if not self.judges:
            return self.labelled[:, None]
        who = np.array([c.judge for c in self.conversations], dtype=object)
        return np.asarray(self.labelled[:, None] & (who[:, None] == np.array(self.judges, dtype=object)), dtype=bool)


@dataclass(frozen=True, kw_only=True)
class NextConversations:
    """The conversations to label next.

    Attributes:
        rows: A row each: id, probability, entropy, how it begins and, where annotators were named, whom to ask.
        unlabelled: Conversations without a label.
    """

    run: str
    rubrics: RubricSet
    rows: tuple[Row, ...]
    unlabelled: int
    out: Path | None
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was scored."""
        return not self.bad_rows and not self.outcomes.keys() - {"scored"}

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        about = {"run": self.run, "judge": self.rubrics.judge.name, "outcomes": self.outcomes}
        return {"next": list(self.rows)} | about | support_json(self.rubrics) | usage_json(self.usage)


@dataclass(frozen=True, kw_only=True)
class NextTexts:
    """The texts to label next, and whom to ask, by a custom calibrator.

    Attributes:
        support: How many labels the calibrator was fitted on, in words.
    """

    rows: tuple[Row, ...]
    texts: int
    question: str
    model: str
    support: str
    out: Path | None
    faults: tuple[Fault, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return not any(fault.left_out for fault in self.faults)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return {"next": list(self.rows), "texts": self.texts} | faults_json(self.faults)


def next_conversations(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> NextConversations:
    """Score unlabeled conversations, and pick those whose labels reduce uncertainty most."""
    rubric_set = unedited(rubrics)
    if out is not None:
        require_format(out, *files_of(rubrics, logs), formats=FORMATS)
    wanted = judges_wanted(rubric_set.thumb_model, judges) if judges else ()  # to rebuild the model takes a second
    read = logs_from(logs, reading, progress)
    with workspace(run, progress) as opened:
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0]}
        asked = to_score(read, rubric_set)
        scored, usage, rows = opened.run(_ask(opened, asked, rubric_set, model, arguments, wanted, count))
    if out is not None:
        write_requests(out, rows_to_fill_in(rows, read, reading))
    return NextConversations(
        run=scored.run,
        rubrics=rubric_set,
        rows=tuple(rows),
        unlabelled=sum(c.label is Label.NONE for c in read.conversations),
        out=out,
        outcomes=dict(scored.counts),
        bad_rows=read.bad_rows,
        usage=usage,
    )


@dataclass(frozen=True, kw_only=True)
class DrawnConversations:
    """Conversations drawn at random, to estimate a share from.

    Attributes:
        groups: Number of conversations drawn by group; empty where none was asked for.
        half_width: Half the 95 % interval that as many labels will give, by group; of all under the empty name.
        share: The share that the width is for: of the labels that there are, else one half, where it is widest.
    """

    rows: tuple[Row, ...]
    population: int
    groups: Mapping[str, int]
    half_width: Mapping[str, float]
    share: float
    out: Path | None
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every row was read."""
        return not self.bad_rows

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        shown = [{name: value for name, value in row.items() if name != LOGGED} for row in self.rows]
        widths = {"half_width": dict(self.half_width), "share": self.share}
        return {"next": shown, "population": self.population, "groups": dict(self.groups)} | widths


def draw_for_share(
    logs: Sources | Logs,
    *,
    count: int,
    by: str | None = None,
    seed: int = 0,
    out: Path | None,
    reading: ReadOptions,
    progress: Progress,
) -> DrawnConversations:
    """Draw conversations at random to be labeled; with `by` as many of each group.

    Every conversation without a label at random has the same chance, those with a thumb, too: to leave these out would
    make the sample one of people who don't vote.
    """
    if out is not None:
        require_format(out, *files_of(logs), formats=FORMATS)
    read = logs_from(logs, reading, progress)
    open_ = [c for c in read if not c.not_scorable and not (c.label is not Label.NONE and drawn_of(c) == RANDOM)]
    rng = np.random.default_rng(seed)
    masks = {"": np.ones(len(open_), dtype=bool)} if by is None else grouped(open_, by)
    places = {
        name: rng.permutation(np.flatnonzero(mask))[:count].tolist() for name, mask in masks.items() if mask.any()
    }
    known = [c.label is Label.POSITIVE for c in read if c.label is not Label.NONE]
    share = float(np.mean(known)) if len(known) >= FEWEST else 0.5
    rows = []
    for place in dict.fromkeys(place for chosen in places.values() for place in chosen):
        one = open_[place]
        row: Row = {"id": one.id, "drawn": RANDOM, "begins": " ".join(one.opening.split())[:80]}
        rows.append(row | {LOGGED: as_logged(one, row, read.label_field, reading)})
    if out is not None:
        write_requests(out, rows)
    return DrawnConversations(
        rows=tuple(rows),
        population=len(open_),
        groups={name: len(chosen) for name, chosen in places.items() if name},
        half_width={name: expected_half_width(len(chosen), share, rest=len(open_)) for name, chosen in places.items()},
        share=share,
        out=out,
        bad_rows=read.bad_rows,
    )


def plan_next(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> CallPlan:
    """Plan what `next_conversations` would ask."""
    rubric_set = unedited(rubrics)
    read = logs_from(logs, reading, progress)
    return plan_scoring(to_score(read, rubric_set).conversations, rubric_set, run, model)


def to_score(logs: Logs, rubric_set: RubricSet) -> Logs:
    """Return the unlabeled conversations, and labeled ones if asking costs nothing."""
    free = rubric_set.judge.built_in
    kept = tuple(c for c in logs.conversations if free or c.label is Label.NONE)
    return Logs(conversations=kept, fingerprint=logs.fingerprint)


async def _ask(
    opened: Workspace,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    judges: Sequence[str],
    count: int,
) -> tuple[Scored, Usage | None, list[Row]]:
    async with judging(model, rubric_set, opened.store) as staff:
        opened.announce(staff)
        scored = await score(
            logs.conversations,
            rubric_set,
            judge=staff.roles.judge,
            data_fingerprint=logs.fingerprint,
            setting=opened.setting(arguments, staff),
            command="label",
        )
        scores = scores_of(opened.store, scored.run, rubric_set, logs.conversations, judges)
        rows = picked_rows(candidates(logs.conversations, scores, judges), staff.embedder, count)
        return scored, Usage.of(staff), rows


def candidates(conversations: Sequence[Conversation], scores: Any, judges: Sequence[str]) -> Candidates:
    """Return the conversations that have a probability."""
    both = [(c, s) for c, s in zip(conversations, scores, strict=True) if s.probability is not None]
    each = [[s.judges[judge] for judge in judges] if judges else [s.probability] for _, s in both]
    probability = np.array(each, dtype=np.float64).reshape(len(both), max(1, len(judges)))
    return Candidates([c for c, _ in both], [s for _, s in both], probability, tuple(judges))


def picked_rows(found: Candidates, embedder: Embedder, count: int) -> list[Row]:
    """Return the conversations to label next, a row for each."""
    if not found.conversations:
        return []
    p = found.probability
    answers = [[a.expected() for a in s.answers if isinstance(a, Answer)] for s in found.scores]
    vectors = vectors_of(np.array(answers), embeddings_of(found.conversations, embedder))
    picked = select_queries(
        vectors,
        p * (1 - p),
        found.known,
        count,
        askable=np.broadcast_to(~found.labelled[:, None], p.shape),
    )
    return [_row(found, place, judge) for place, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True)]


def embeddings_of(conversations: Sequence[Conversation], embedder: Embedder) -> Floats:
    """Return mean embeddings of user's and of assistant's turns `[row, 2 × width]`."""
    views = views_of(conversations, embedder, vectors=True)
    parts = [[view.vectors[view.user].mean(axis=0), view.vectors[view.assistant].mean(axis=0)] for view in views]
    return np.asarray(parts, dtype=np.float64).reshape(len(views), -1)


def _row(found: Candidates, place: int, judge: int) -> Row:
    one, p = found.conversations[place], float(found.probability[place, judge])
    row: Row = {"id": one.id, "probability": p, "entropy": float(entropy(np.array([1 - p, p])))}
    if found.judges:
        row["judge"] = found.judges[judge]
    return row | {"begins": " ".join(one.opening.split())[:80]}


def rows_to_fill_in(rows: Sequence[Row], logs: Logs, reading: ReadOptions) -> list[Row]:
    """Add each conversation's row of the log, under `LOGGED`.

    Field names are those of the log, so that the same options read both: a row that lost its group would be split from
    the others of its user.
    """
    wanted = {row["id"] for row in rows}
    kept = {one.id: one for one in logs if one.id in wanted}
    return [row | {LOGGED: as_logged(kept[row["id"]], row, logs.label_field, reading)} for row in rows]


def as_logged(one: Conversation, row: Row, label_field: str, reading: ReadOptions) -> Row:
    """Return a conversation as a row of a log, with predictions and an empty thumb."""
    said = {name: row[name] for name in ("probability", "entropy", DRAWN) if name in row}
    found = one.metadata | {reading.id_field or "id": one.id} | said
    if one.group is not None:
        found[reading.group_field or "group"] = one.group
    if "judge" in row:
        found[reading.judge_field or "judge"] = row["judge"]
    return found | {reading.messages_field or "messages": messages_of(one), label_field or "thumbs": None}


def next_texts(
    calibrator: Path,
    answers: str,
    judgments: str | None,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    progress: Progress,  # noqa: ARG001 - as every use case; this one is done in a second
) -> NextTexts:
    """Pick the texts whose labels would help a calibrator most, and whom to ask."""
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
        write_requests(out, rows)
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
) -> list[Row]:
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
