"""What the labels do to a rubric set's calibrator: which of them move it most, and whether more would help.

The calibrator is fitted again and again with the rubrics as they are. Log-loss by number of labels
is that of held-out ones, by fits to those that rubrics were chosen on; all else is of all labels
that the kept one was fitted to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pollex.agents.embedded.signals import FORM
from pollex.calibration.candidates import NETWORK
from pollex.calibration.thumbs import fit_candidate, predict_thumb_up
from pollex.errors import BadCalibrator
from pollex.measures.arrays import Bools, Floats, Ints, draw_some, number_names
from pollex.measures.distributions import compute_answer_log_losses
from pollex.measures.intervals import Figure, Measure, estimate_figures, make_mean_statistic
from pollex.reports.calibration import LearningPoint
from pollex.rubrics.answers import SCALES
from pollex.rubrics.records import CalibratorRecord
from pollex.rubrics.rubric import TONE
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.tone import ToneRecord, ToneScale, make_tone_answers
from pollex.store.resume import conversations_of
from pollex.store.store import Store
from pollex.text import writable

SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)
DRAWS = 10
REDRAWS = 100
RESAMPLES = 1000
MOST = 1000
"""Conversations of each side that are read, drawn at random where there are more."""
TRIED, SHOWN = 200, 10
"""Labels that are left out one by one, and those that are shown."""
EXACT = 1e-6
"""Of a probability: a calibrator that differs less is the same."""

READ = """
    SELECT id, arg_max(side, seq) AS side, arg_max(label, seq) AS label, arg_max(judge, seq) AS judge,
        arg_max("group", seq) AS "group" FROM conversations GROUP BY id ORDER BY min(seq)
"""
ANSWERED = """
    SELECT conversation, question, arg_max(probabilities, seq) AS probabilities FROM answers
    WHERE outcome = '' AND list_contains($1, question) AND list_contains($2, conversation)
    GROUP BY conversation, question
"""


@dataclass(frozen=True)
class CalibratorPoint:
    """A calibrator that was fitted to some of the labels, measured on held-out ones.

    Attributes:
        loss: Mean log-loss, with its interval over users.
        behind: How much larger it is than that with all labels, on the same conversations.
    """

    point: LearningPoint
    loss: Figure
    behind: Figure


@dataclass(frozen=True)
class Pull:
    """What one label does.

    Attributes:
        before: P(up) of its conversation by a calibrator that was fitted without it.
        after: P(up) with it.
        moved: Mean absolute change of P(up) over the other conversations.
    """

    id: str
    up: bool
    before: float
    after: float
    moved: Figure


@dataclass(frozen=True)
class LabelFigures:
    """The labels of a rubric set's calibrator.

    Attributes:
        training: Labels that it was fitted to; `annotators` gave them, as far as the log says who.
        held_out: Labels that it is measured on.
        drawn: Whether there were too many conversations, so that some were drawn at random.
        same: Whether the calibrator that is fitted anew gives the kept one's probabilities; None
            where the kept one's arrays aren't here, as in a store of an earlier pollex.
        curve: With few to all labels; empty where nothing was held out.
        pulls: The labels that move it most.
        tried: Labels that were left out one by one: those that it is most surprised by.
        redrawn: Mean absolute change of P(up) where the labels are drawn anew, with replacement by
            user; the ends are those that 95 % of the redraws lie between.
    """

    training: int
    annotators: int
    held_out: int
    drawn: bool
    same: bool | None
    curve: tuple[CalibratorPoint, ...]
    pulls: tuple[Pull, ...]
    tried: int
    redrawn: Figure

    @property
    def last_change(self) -> Figure:
        """Change of the log-loss by the last labels; lower is better."""
        if len(self.curve) < 2:
            return Figure(None, undefined="too few labels")

        # what the point before the last is behind, with the sign turned: its ends change places
        behind = self.curve[-2].behind
        ends = []
        for end in (behind.high, behind.low):
            ends.append(None if end is None else -end)

        return replace(
            behind,
            value=None if behind.value is None else -behind.value,
            low=ends[0],
            high=ends[1],
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """Conversations of a learning run.

    Attributes:
        answers: `[row, rubric, option]`; NaN where unanswered.
        up: Whether the thumb is up; meaningless without one `[row]`.
        unit: Number of the user, or of the conversation where nobody is known `[row]`.
    """

    record: CalibratorRecord
    signs: tuple[float, ...]
    ids: list[str]
    answers: Floats
    up: Bools
    judges: list[str | None]
    unit: Ints

    def fit(self, rows: Ints, answers: Floats) -> Floats:
        # without a single name the model has no judges
        judge_of_row = [self.judges[row] for row in rows.tolist()]
        judges = judge_of_row if any(judge_of_row) else None
        # a network takes seconds
        if self.record.chosen == NETWORK:
            name = self.record.beginning
        else:
            name = self.record.chosen

        model = fit_candidate(
            name,
            self.answers[rows],
            self.signs,
            self.up[rows],
            judges,
            self.record.rubrics,
        )
        return predict_thumb_up(model, answers)

    def varied(self, rows: Ints) -> bool:
        return 0 < int(self.up[rows].sum()) < len(rows)


def label_figures(
    store: Store,
    rubric_set: RubricSet,
    rng: np.random.Generator,
) -> LabelFigures | None:
    """Measure what each label does to a set's calibrator; None where the learning run has too little for it.

    Args:
        store: The one that has the run which the set names.
    """
    record = rubric_set.calibrator
    rows = store.ask(rubric_set.run, READ)
    # labels that the run learned from, and those that it held out
    train = []
    for row in rows:
        if row["side"] == "train" and row["label"] != "none":
            train.append(row)

    test = []
    for row in rows:
        if row["side"] == "test" and row["label"] != "none":
            test.append(row)

    # edited rubrics are not those that the run's answers are about
    if record is None or rubric_set.edited or not train:
        return None

    sides = train, test, [row for row in rows if row["label"] == "none"]
    sampled = [draw_some(side, MOST, rng) for side in sides]
    table = _read(
        store,
        rubric_set,
        record,
        [row for part in sampled for row in part],
    )
    # rows of training come first, then those held out, then those without a label
    ends = np.cumsum([len(part) for part in sampled])
    own_rows = np.arange(ends[0])
    others = np.arange(ends[0], ends[1])
    # one kind of thumb alone teaches nothing
    if not table.varied(own_rows):
        return None

    # those that were held out, too, but of sets of before
    labeled_rows = np.arange(ends[int(record.labels > len(train))])
    whole = table.fit(labeled_rows, table.answers)
    pulls, tried = _pulls(table, labeled_rows, whole, rng)

    return LabelFigures(
        training=len(labeled_rows),
        annotators=len({judge for judge in table.judges[: len(labeled_rows)] if judge is not None}),
        held_out=len(others),
        drawn=any(len(part) == MOST for part in sampled),
        same=_same(rubric_set, table, whole),
        curve=_curve(table, own_rows, others, rng) if len(others) else (),
        pulls=pulls,
        tried=tried,
        redrawn=_redrawn(table, labeled_rows, whole, rng),
    )


def _same(rubric_set: RubricSet, table: _Table, whole: Floats) -> bool | None:
    try:
        model = rubric_set.thumb_model
    except BadCalibrator:
        return None

    if model is None:
        return False

    # a network begins as a quick model, which is what is fitted here
    start = (getattr(model.model, "starts_", ()) or (model.model,))[0]
    return bool(np.abs(predict_thumb_up(start, table.answers) - whole).max() < EXACT)


def _tones(
    store: Store,
    run: str,
    tone: ToneRecord,
    ids: Sequence[str],
    options: int,
) -> Floats:
    """Return answers of tone `[row, 1, option]`; NaN of conversations that the store has no more."""
    # a tone is measured on the conversation itself, and has no answer in the store
    conversations = list(conversations_of(store, run, ids=list(ids)))
    features = FORM.measure(conversations)
    tones = ToneScale.from_json(tone.learned, features.shape[1]).tone(features)
    answers_by_id = {}
    for conversation, answer in zip(conversations, make_tone_answers(tones, options), strict=True):
        answers_by_id[writable(conversation.id)] = answer

    missing = np.full(options, np.nan)
    return np.array([[answers_by_id.get(id_, missing)] for id_ in ids])


def _read(
    store: Store,
    rubric_set: RubricSet,
    record: CalibratorRecord,
    rows: Sequence[dict[str, str]],
) -> _Table:
    ids = [row["id"] for row in rows]
    side = {rubric.id: rubric.sign for rubric in rubric_set.rubrics}
    # no starter's
    record = record.model_copy(
        update={"rubrics": tuple(rubric for rubric in record.rubrics if rubric in side)}
    )
    # the place of each id and of each rubric in the array of answers
    place, column = ({name: n for n, name in enumerate(names)} for names in (ids, record.rubrics))
    answers = np.full(
        (len(ids), len(record.rubrics), len(SCALES[rubric_set.judge.scale])),
        np.nan,
    )
    for row in store.ask(rubric_set.run, ANSWERED, [list(record.rubrics), ids]):
        answers[place[row["conversation"]], column[row["question"]]] = row["probabilities"]

    signs = [float(side[rubric]) for rubric in record.rubrics]
    # tone is one more column, with its weight for a sign
    if (tone := rubric_set.tone) is not None and tone.weight:
        record = record.model_copy(update={"rubrics": (*record.rubrics, TONE)})
        answers = np.concatenate(
            [answers, _tones(store, rubric_set.run, tone, ids, answers.shape[2])],
            axis=1,
        )
        signs.append(tone.weight)

    return _Table(
        record,
        tuple(signs),
        ids,
        answers,
        np.array([row["label"] == "positive" for row in rows]),
        [row["judge"] for row in rows],
        number_names(
            ("user", row["group"]) if row["group"] is not None else ("id", row["id"])
            for row in rows
        ),
    )


def _curve(
    table: _Table,
    labeled_rows: Ints,
    others: Ints,
    rng: np.random.Generator,
) -> tuple[CalibratorPoint, ...]:
    # each draw is an order of users: a larger share has all labels of a smaller one
    orders = []
    for _ in range(DRAWS):
        orders.append(rng.permutation(np.unique(table.unit[labeled_rows])))

    figures = []
    up = table.up[others].astype(np.int64)
    for share in SHARES:
        rows = []
        for order in orders:
            rows.append(
                labeled_rows[
                    np.isin(table.unit[labeled_rows], order[: max(1, round(share * len(order)))])
                ]
            )

        # all labels can be drawn in one way only, and a fit takes thumbs of both kinds
        fits = [part for part in (rows[:1] if share == 1 else rows) if table.varied(part)]
        if fits:
            # `[fit, conversation]`, probabilities and losses of conversations that are held out
            p = np.array([table.fit(part, table.answers[others]) for part in fits])
            losses = np.array(
                [
                    compute_answer_log_losses(np.stack([1 - probability, probability], axis=1), up)
                    for probability in p
                ]
            )
            figures.append((share, float(np.mean([len(part) for part in fits])), losses))

    # the losses with all labels, which each point is compared with
    best = figures[-1][2].mean(axis=0)
    return tuple(
        _point(share, labels, losses, best, table.unit[others], rng)
        for share, labels, losses in figures
    )


def _point(
    share: float,
    labels: float,
    losses: Floats,
    best: Floats,
    unit: Ints,
    rng: np.random.Generator,
) -> CalibratorPoint:
    # for each conversation the mean over draws; for each draw the mean over conversations
    mean = losses.mean(axis=0)
    spread = losses.mean(axis=1)
    measures = {
        "loss": Measure(make_mean_statistic(mean)),
        "behind": Measure(make_mean_statistic(mean - best)),
    }
    figures = estimate_figures(measures, unit, rng, RESAMPLES)
    deviation = None
    if len(spread) > 1:
        deviation = float(spread.std(ddof=1))

    point = LearningPoint(
        share,
        labels,
        float(mean.mean()),
        deviation,
        len(losses),
    )
    return CalibratorPoint(point, figures["loss"], figures["behind"])


def _pulls(
    table: _Table,
    rows: Ints,
    whole: Floats,
    rng: np.random.Generator,
) -> tuple[tuple[Pull, ...], int]:
    # labels that the calibrator is most surprised by are left out one by one
    surprise = np.abs(table.up[rows] - whole[rows])
    tried = rows[np.argsort(-surprise, kind="stable")[:TRIED]].tolist()
    without = {}
    for row in tried:
        if table.varied(rows[rows != row]):
            without[row] = table.fit(rows[rows != row], table.answers)

    change = {row: np.abs(p - whole) for row, p in without.items()}
    # a label always moves its own conversation: only what it does to others counts
    most = sorted(change, key=lambda row: -float(np.delete(change[row], row).mean()))[:SHOWN]
    losses_drawn = []
    for row in most:
        others = np.arange(len(whole)) != row
        moved = estimate_figures(
            {"moved": Measure(make_mean_statistic(change[row][others]))},
            table.unit[others],
            rng,
            RESAMPLES,
        )["moved"]
        pull = Pull(
            table.ids[row],
            bool(table.up[row]),
            float(without[row][row]),
            float(whole[row]),
            moved,
        )
        losses_drawn.append(pull)

    return tuple(losses_drawn), len(tried)


def _redrawn(
    table: _Table,
    labeled_rows: Ints,
    whole: Floats,
    rng: np.random.Generator,
) -> Figure:
    # a user is drawn with all labels, as labels of a user depend on each other
    users = np.unique(table.unit[labeled_rows])
    rows_of = {}
    for user in users.tolist():
        rows_of[user] = labeled_rows[table.unit[labeled_rows] == user]

    moved = []
    for _ in range(REDRAWS):
        # a draw of one kind of thumb can't be fitted
        rows = np.concatenate([rows_of[user] for user in rng.choice(users, len(users)).tolist()])
        if table.varied(rows):
            moved.append(float(np.abs(table.fit(rows, table.answers) - whole).mean()))

    if not moved:
        return Figure(None, undefined="too few labels of one kind")

    low, high = np.quantile(moved, [0.025, 0.975]).tolist()
    return Figure(
        float(np.mean(moved)),
        low,
        high,
        len(moved),
        units=len(users),
    )
