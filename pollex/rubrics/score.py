"""The score of a conversation: NetSAT, the sum of its rubric values, what it means, and the model of the probability.

A batch of answers and scores stands as columns: what is computed, stored and written without an
object for each. Most answers of the built-in judge are the same in many conversations, so each
different one stands there once.
Source: Biyani et al. 2024, "RUBICON: Rubric-Based Evaluation of Domain-Specific Human-AI
    Conversations".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from pydantic import BaseModel, ConfigDict

from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse, spell_options
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import compute_entropy_of_distributions
from pollex.rubrics.answers import LIKERT_OPTIONS, MIDDLE_OPTION_VALUE, Answer, Unanswered
from pollex.rubrics.rubric import TONE_SOURCE
from pollex.selection.netsat import sum_rubric_columns_in_order
from pollex.selection.threshold import Calibration, Window
from pollex.text import make_html_table

if TYPE_CHECKING:
    from pandas import DataFrame

    from pollex.calibration.estimator import JudgedEstimator


class Score(BaseModel):
    """The score of a conversation.

    Attributes:
        netsat: Sum of the signed rubric values; None if any rubric is unanswered, and so are the
            six below.
        label: `positive` if NetSAT is over θ, as in the paper; `decision` is the one to filter by.
        confident: Whether NetSAT lies outside the uncertainty window, with a probability that is no
            toss-up; None where too few labels could tell.
        guaranteed: Whether it lies outside the window with a guarantee; None if the set has no such
            window.
        probability: P(positive), of an unknown annotator.
        entropy: Entropy of that probability, in nats: 0 is certain, log 2 = 0.69 is open.
        decision: `positive` if the probability is at least that at which both mistakes cost the
            same.
        differs: Why the decision is not the label, in a sentence; empty if it is.
        judges: P(positive) of each requested annotator.
        rating: Expected grade; None where the set has not learned grades.
        grades: Probability of each grade, by the grade; empty likewise.
        judge_ratings: Expected grade of each requested annotator.
        outcome: `scored`, or why there is no score.
        answers: One for each rubric, in the set's order.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    netsat: float | None = None
    label: Literal["positive", "negative"] | None = None
    confident: bool | None = None
    guaranteed: bool | None = None
    probability: float | None = None
    entropy: float | None = None
    decision: Literal["positive", "negative"] | None = None
    differs: str = ""
    judges: dict[str, float] = {}
    rating: float | None = None
    grades: dict[str, float] = {}
    judge_ratings: dict[str, float] = {}
    outcome: str = "scored"
    answers: tuple[Answer | Unanswered, ...] = ()

    def __repr__(self) -> str:
        """Return the score in a line."""
        if self.netsat is None or self.probability is None:
            return f"<Score of {self.conversation_id}: {self.outcome}>"
        # a score doesn't know whether its set's probabilities are calibrated
        verdict = describe_verdict(self.decision, self.probability, calibrated=False)
        return f"<Score of {self.conversation_id}: {verdict}>"

    def _repr_html_(self) -> str:
        answers = []
        for a in self.answers:
            answers.append((a.question_id, a.word if isinstance(a, Answer) else a.outcome))

        return make_html_table(repr(self), ("rubric", "answer"), answers)

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a rubric."""
        from pandas import DataFrame  # it takes half a second to import

        rows = []
        for a in self.answers:
            rows.append(
                {
                    "rubric": a.question_id,
                    "value": None if a.never_came_up else a.expected(),
                    "justification": a.justification,
                }
                if isinstance(a, Answer)
                else {"rubric": a.question_id, "outcome": a.outcome}
            )

        return DataFrame(rows)


@dataclass(frozen=True)
class AnswerColumns:
    """Answers to the same rubrics about several conversations.

    Attributes:
        rubrics: Ids, in the set's order.
        different: The answers, each once.
        index: Place of an answer in `different` `[conversation, rubric]`; −1 where there is none.
    """

    rubrics: tuple[str, ...]
    different: Sequence[Answer | Unanswered]
    index: Ints

    @classmethod
    def of(cls, rubrics: Sequence[str], answers: Sequence[Sequence[Answer | Unanswered]]) -> Self:
        """Order the answers of each conversation; those to other questions are left out."""
        columns = {rubric: place for place, rubric in enumerate(rubrics)}
        different = list[Answer | Unanswered]()
        index = list[list[int]]()
        # by identity: place of the answer, and of its rubric
        places = dict[int, tuple[int, int]]()
        # `row` has a place for each rubric, −1 until there is an answer
        for answers_of_conversation in answers:
            row = [-1] * len(rubrics)
            for answer in answers_of_conversation:
                # an object that was met before is the same answer to the same rubric
                if (place := places.get(id(answer))) is None and (
                    column := columns.get(answer.question_id)
                ) is not None:
                    place = places[id(answer)] = len(different), column
                    different.append(answer)

                if place is not None:
                    row[place[1]] = place[0]

            index.append(row)

        return cls(
            tuple(rubrics),
            different,
            np.array(index, np.int64).reshape(len(index), len(rubrics)),
        )

    def at(self, row: int) -> tuple[Answer | Unanswered, ...]:
        """Return the answers about one conversation, in the set's order."""
        return tuple([self.different[place] for place in self.index[row].tolist() if place >= 0])

    def beside(self, others: Self) -> Self:
        """Return the answers to other rubrics about the same conversations, in columns behind these."""
        # places of the others begin behind those of these; −1 stays
        moved = np.where(others.index < 0, others.index, others.index + len(self.different))
        return type(self)(
            (*self.rubrics, *others.rubrics),
            [*self.different, *others.different],
            np.hstack([self.index, moved]),
        )

    def take(self, rows: Ints) -> Self:
        """Return the answers about some of the conversations."""
        # −1 sorts first among the places, and moves all others by one where it is there
        places, index = np.unique(self.index[rows], return_inverse=True)
        answer_places = places[places >= 0]
        index = index.reshape(len(rows), len(self.rubrics)) - (len(places) - len(answer_places))

        return type(self)(
            self.rubrics,
            [self.different[place] for place in answer_places.tolist()],
            index,
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put answers to the same rubrics behind one another."""
        different = list[Answer | Unanswered]()
        index = list[Ints]()
        # places of a part begin behind those of the parts before it; −1 stays
        for part in parts:
            index.append(
                np.where(
                    part.index < 0,
                    part.index,
                    part.index + len(different),
                )
            )
            different += part.different

        return cls(parts[0].rubrics, different, np.concatenate(index))

    def __reduce__(self) -> tuple[object, ...]:
        """Travel to another process as plain values, which is quicker."""
        # validation is left out on arrival, as these were answers before
        different = []
        for answer in self.different:
            different.append((type(answer), dict(vars(answer))))

        return _make_arrived_columns, (self.rubrics, different, self.index)


def _make_arrived_columns(
    rubrics: tuple[str, ...],
    different: Sequence[tuple[type[Answer] | type[Unanswered], dict[str, Any]]],
    index: Ints,
) -> AnswerColumns:
    return AnswerColumns(
        rubrics,
        [kind.model_construct(**values) for kind, values in different],
        index,
    )


@dataclass(frozen=True, repr=False)  # `asyncio.run` makes the repr of what it returns, twice
class ScoreColumns(Sequence[Score]):
    """Scores of several conversations; one by one they are `Score`s.

    Attributes:
        ids: Of the conversations.
        fields: By the name of a field of `Score`, its values `[conversation]`; those left out have
            their default.
        tone: The answers of tone, which are no rubric's; None where they weren't asked for.
    """

    ids: Sequence[str]
    answers: AnswerColumns
    fields: dict[str, list[Any]]
    tone: AnswerColumns | None = None

    @classmethod
    def of(cls, scores: Sequence[Score], rubrics: Sequence[str]) -> Self:
        """Return scores as columns."""
        answers = AnswerColumns.of(rubrics, [score.answers for score in scores])
        names = []
        for name in Score.model_fields:
            if name not in ("conversation_id", "answers"):
                names.append(name)

        fields = {}
        for name in names:
            fields[name] = [getattr(score, name) for score in scores]

        return cls([score.conversation_id for score in scores], answers, fields)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put scores by the same set behind one another."""
        ids: list[str] = []
        for part in parts:
            ids.extend(part.ids)
        all_names: list[str] = []
        for part in parts:
            all_names.extend(part.fields)
        names = dict.fromkeys(all_names)
        fields = {}
        for name in names:
            column_values = []
            for part in parts:
                column_values.extend(part.column(name))

            fields[name] = column_values

        tones = []
        for part in parts:
            if part.tone is not None:
                tones.append(part.tone)

        tone = None
        if tones:
            tone = AnswerColumns.joined(tones)

        return cls(
            ids,
            AnswerColumns.joined([part.answers for part in parts]),
            fields,
            tone,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Score: ...
    @overload
    def __getitem__(self, place: slice) -> list[Score]: ...
    def __getitem__(self, place: int | slice) -> Score | list[Score]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]

        values_here = {}
        for name, values in self.fields.items():
            values_here[name] = values[place]

        # Its fields are our own: to check them takes as long as all the rest.
        return Score.model_construct(
            conversation_id=self.ids[place],
            answers=self.answers.at(place),
            **values_here,
        )

    def take(self, rows: Sequence[int]) -> Self:
        """Return the scores of some of the conversations."""
        fields = {}
        for name, values in self.fields.items():
            fields[name] = [values[row] for row in rows]

        places = np.array(rows, np.int64)
        tone = None
        if self.tone is not None:
            tone = self.tone.take(places)

        return type(self)(
            [self.ids[row] for row in rows],
            self.answers.take(places),
            fields,
            tone,
        )

    def column(self, name: str) -> list[Any]:
        """Return the values of a field `[conversation]`."""
        return self.fields.get(name) or [Score.model_fields[name].default] * len(self)


PROBABILITY_DECIMALS = 12
"""Of a probability: those after it depend on how many conversations are worked out at once."""

MAX_JUDGE_NAMES_IN_ERROR = 10
"""Names of judges that an error lists."""


@dataclass(eq=False)
class ThumbModel:
    """A fitted calibrator of thumbs.

    Attributes:
        rubrics: Ids, in the order in which it wants the answers.
        model: Fitted.
        options: Of each rubric.
        rating: Model of the grades, fitted; None where the labels are no grades.
    """

    rubrics: tuple[str, ...]
    model: JudgedEstimator
    options: int = len(LIKERT_OPTIONS)
    rating: JudgedEstimator | None = None

    def rows(self, answers: AnswerColumns) -> Floats:
        """Conversations' answers in its order `[conversation, rubric, option]`; NaN where unanswered."""
        # missing ones point to the row behind all others: −1 takes the last
        missing = (np.nan,) * self.options
        probabilities = []
        for answer in answers.different:
            probabilities.append(answer.probabilities if isinstance(answer, Answer) else missing)

        column_of_rubric = {rubric: place for place, rubric in enumerate(answers.rubrics)}
        places = []
        # a rubric that nobody was asked about is missing everywhere
        for id_ in self.rubrics:
            places.append(
                answers.index[:, column_of_rubric[id_]]
                if id_ in column_of_rubric
                else [-1] * len(answers.index)
            )

        return np.array([*probabilities, missing], dtype=np.float64)[
            np.array(places, dtype=np.int64).T
        ]

    def probability(self, answers: Floats, judge: str | None = None) -> Floats:
        """Compute P(thumb up) `[conversation]`; for an unknown annotator if `judge` is None.

        Args:
            answers: Probability of each option `[conversation, rubric, option]`; NaN where
                unanswered.
        """
        from pollex.calibration.thumbs import predict_thumb_up_probability

        if not len(answers):
            return np.zeros(0)

        probability = predict_thumb_up_probability(
            self.model,
            answers,
            None if judge is None else [judge] * len(answers),
        )
        return np.round(probability, PROBABILITY_DECIMALS)

    def compute_moves(self, answers: AnswerColumns) -> Floats:
        """Compute by how much P(thumb up) is higher with an answer than without it `[conversation, rubric]`."""
        rows = self.rows(answers)
        whole = self.probability(rows)
        moves = np.zeros(answers.index.shape)
        column_of_rubric = {rubric: place for place, rubric in enumerate(answers.rubrics)}
        for place, rubric in enumerate(self.rubrics):
            # nobody was asked about it
            if rubric not in column_of_rubric:
                continue

            without = rows.copy()
            without[:, place] = np.nan
            moves[:, column_of_rubric[rubric]] = whole - self.probability(without)

        return moves

    def grades(self, answers: Floats, judge: str | None = None) -> Floats:
        """Return the probability of each grade `[conversation, grade]`; see `probability`."""
        assert self.rating is not None, "only asked where there is one"
        grades = self.rating.predict_proba(
            answers.reshape(len(answers), -1),
            None if judge is None else [judge] * len(answers),
        )
        return np.round(grades, PROBABILITY_DECIMALS)

    def weights(self) -> list[float]:
        """Return what each rubric weighs: log-odds at its last option minus at its first, others in the middle."""
        n = len(self.rubrics)
        # two rows a rubric: its first and its last option, all others in the middle
        middle = self.options // 2
        answers = np.zeros((2 * n, n, self.options))
        answers[:, :, middle] = 1.0
        for place in range(n):
            for row, option in ((2 * place, 0), (2 * place + 1, self.options - 1)):
                answers[row, place] = 0.0
                answers[row, place, option] = 1.0

        # certain probabilities have no finite log-odds
        p = np.clip(self.probability(answers), 1e-9, 1 - 1e-9)
        odds = np.log(p / (1 - p))
        weights: list[float] = []
        for low, high in zip(odds[::2], odds[1::2], strict=True):
            weights.append(float(high - low))

        return weights

    @cached_property
    def weight_by_rubric(self) -> Mapping[str, float]:
        """What each rubric weighs, by its id; see `weights`."""
        return dict(zip(self.rubrics, self.weights(), strict=True))

    @property
    def judges(self) -> tuple[str, ...]:
        """Annotators of the thumbs that it was fitted on, if the log names them."""
        return self.model.judges_

    def wanted(self, judges: Sequence[str]) -> tuple[str, ...]:
        """Return the annotators that a user asks for; `all` means every known one.

        Raises:
            WrongUse: One is not known, or a name stands for a list.
        """
        if isinstance(judges, str):
            raise WrongUse(
                f"one name, {judges!r}, for a set of judges",
                hint="give a list of names",
            )
        # an annotator may be called “all”
        if list(judges) == ["all"] and "all" not in self.judges:
            return self.judges
        if strangers := [judge for judge in judges if judge not in self.judges]:
            learn = spell_options(judge_field="user")
            more = f" … ({len(self.judges)} in all)" * (len(self.judges) > MAX_JUDGE_NAMES_IN_ERROR)
            hint = f"its log names no annotators: leave annotators out, or learn again with {learn}"
            if self.judges:
                hint = f"name one of {', '.join(self.judges[:MAX_JUDGE_NAMES_IN_ERROR])}{more}"
            raise WrongUse(
                f"no thumb of {strangers[0]!r} was learned from",
                hint=hint,
            )

        # each once, in the order of the request
        return tuple(dict.fromkeys(judges))


def list_requested_judges(model: ThumbModel | None, judges: Sequence[str]) -> tuple[str, ...]:
    """Return the requested annotators, also for a rubric set without any.

    Raises:
        WrongUse: One is not known, or there is no model that knows any.
    """
    if judges and model is None:
        raise WrongUse(
            "this rubric set has no annotators",
            hint="learn it again, or score without annotators",
        )
    if model is None:
        return ()
    return model.wanted(judges)


def list_annotator_of_each_conversation(
    conversations: Sequence[Conversation],
) -> list[str | None] | None:
    """Return who gave each thumb; None if the log names nobody."""
    judges = [conversation.judge for conversation in conversations]
    if any(judge is not None for judge in judges):
        return judges
    return None


@dataclass(frozen=True, kw_only=True)
class NetSat:
    """The sum of rubric values, and what it means. Source: Biyani et al. 2024, §NetSAT.

    Attributes:
        signs: +1 for SAT and −1 for DSAT rubrics, by id.
        guaranteed: The window with a guarantee; None where the set has none.
        never: What "Never came up" counts as, by rubric id; neutral for those not named.
        calibration: The curve that gives a probability where there is no model.
        thumb_model: What gives probabilities; None where there is none.
        decide_at: Probability from which on a conversation is decided to be positive; see
            `compute_decision_probability_from_costs`.
    """

    signs: Mapping[str, int]
    theta: float
    window: Window
    calibration: Calibration
    thumb_model: ThumbModel | None = None
    guaranteed: Window | None = None
    value: Literal["auto", "expected", "mode"] = "auto"
    never: Mapping[str, float] = field(default_factory=dict)
    decide_at: float = 0.5

    def score_all(
        self, answers: Mapping[str, Sequence[Answer | Unanswered]], judges: Sequence[str] = ()
    ) -> ScoreColumns:
        """Score conversations by their answers, answers_by_conversation by conversation; see `columns`."""
        return self.columns(list(answers), list(answers.values()), judges)

    def columns(
        self,
        ids: Sequence[str],
        answers_by_conversation: Sequence[Sequence[Answer | Unanswered]],
        judges: Sequence[str] = (),
    ) -> ScoreColumns:
        """Score conversations by their answers; unanswered rubrics give a reason instead.

        Args:
            answers_by_conversation: By conversation, in any order; they are added up in the set's, since the last
                digit of a sum depends on it.
            judges: Annotators whose probabilities are wanted besides that of an unknown one.
        """
        # one column a rubric, in the set's order, whatever the order of the answers
        answers = AnswerColumns.of(tuple(self.signs), answers_by_conversation)
        netsats = self._sums(answers)
        # NetSAT is NaN where any rubric is unanswered
        whole = np.flatnonzero(~np.isnan(netsats))
        fields = self._figures(netsats[whole])
        if self.thumb_model is not None and len(whole):
            every = answers
            # a starter's rubrics, too
            if not self.signs.keys() >= set(self.thumb_model.rubrics):
                every = AnswerColumns.of(self.thumb_model.rubrics, answers_by_conversation)
            if len(whole) == len(ids):
                scored = every
            else:
                scored = every.take(whole)

            fields |= self._likelihoods(self.thumb_model.rows(scored), judges)
            fields["confident"] = self.window.certain(
                netsats[whole],
                np.array(fields["probability"]),
            )

        # decisions follow from the final probability, whoever gave it
        fields |= self._decisions(fields) | {"outcome": ["scored"] * len(whole)}
        # fields are of those with a score; the others get defaults in between
        if len(whole) < len(ids):
            fields = self._with_unscored(fields, whole.tolist(), answers)

        with_tone = self.thumb_model is not None and TONE_SOURCE in self.thumb_model.rubrics
        return ScoreColumns(
            ids,
            answers,
            fields,
            AnswerColumns.of((TONE_SOURCE,), answers_by_conversation) if with_tone else None,
        )

    def _sums(self, answers: AnswerColumns) -> Floats:
        # signed values of the different answers; the NaN behind them stands for none
        signed = []
        for answer in answers.different:
            signed.append(
                self.signs[answer.question_id] * self.counted(answer)
                if isinstance(answer, Answer)
                else np.nan
            )

        columns = np.array([*signed, np.nan])[answers.index].T
        return sum_rubric_columns_in_order(columns, len(answers.index))

    def _decisions(self, fields: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        # the decision goes by the probability, the label by θ
        ups = [p >= self.decide_at for p in fields["probability"]]
        differs = [""] * len(ups)
        for row, (up, label) in enumerate(zip(ups, fields["label"], strict=True)):
            if up != (label == "positive"):
                over, reaches = ("not over", "reaches") if up else ("over", "is under")
                differs[row] = (
                    f"NetSAT {fields['netsat'][row]:.1f} is {over} θ, {self.theta:.1f}, midway between the means of "
                    f"good and bad conversations, but the probability of a thumb up, {fields['probability'][row]:.2f}, "
                    f"{reaches} {self.decide_at:.2f}."
                )

        return {
            "decision": ["positive" if up else "negative" for up in ups],
            "differs": differs,
        }

    def _with_unscored(
        self,
        fields: Mapping[str, Sequence[object]],
        whole: Sequence[int],
        answers: AnswerColumns,
    ) -> dict[str, list[object]]:
        # by row, its place among those with a score
        places = {row: place for place, row in enumerate(whole)}
        rows = range(len(answers.index))
        filled = dict[str, list[object]]()
        for name, values in fields.items():
            default = Score.model_fields[name].default
            filled[name] = [values[places[row]] if row in places else default for row in rows]

        for row in rows:
            if row not in places:
                # where all rubrics failed alike, that is the reason
                missing = []
                for answer in answers.at(row):
                    if isinstance(answer, Unanswered):
                        missing.append(answer)

                alike = missing and len(missing) == len(self.signs)
                filled["outcome"][row] = missing[0].outcome if alike else "incomplete"

        return filled

    def counted(self, answer: Answer) -> float:
        """Return the value, 0 to 10, that an answer counts as, before its sign."""
        return compute_answer_value(
            answer,
            self.value,
            self.never.get(answer.question_id, MIDDLE_OPTION_VALUE),
        )

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """What each rubric weighs, from its lowest answer to its highest, by id.

        In log-odds of the model of the probability; where there is none, its whole scale in points
        of NetSAT.
        """
        if self.thumb_model is None:
            return {id_: 10.0 * sign for id_, sign in self.signs.items()}
        return self.thumb_model.weight_by_rubric

    def compute_probability_moves(self, answers: AnswerColumns) -> Floats:
        """Compute by how much each answer moves the probability of a thumb up: with it less without it.

        What never came up, has no answer, or is no rubric of this set moves nothing.

        Args:
            answers: Those of tone among them, where the set has it.

        Returns:
            `[conversation, rubric]`, rubrics as in `answers`.
        """
        speaks = []
        for answer in answers.different:
            speaks.append(
                isinstance(answer, Answer)
                and answer.question_id in self.signs
                and not answer.never_came_up
            )

        if self.thumb_model is None:
            moves = self._compute_moves_on_curve(answers)
        else:
            moves = self.thumb_model.compute_moves(answers)

        # the last one stands for what has no answer
        return np.where(np.array([*speaks, False])[answers.index], moves, 0.0)

    def _compute_moves_on_curve(self, answers: AnswerColumns) -> Floats:
        signed = []
        beyond_middle = []
        for answer in answers.different:
            sign = self.signs.get(answer.question_id, 0)
            value = self.counted(answer) if isinstance(answer, Answer) else MIDDLE_OPTION_VALUE
            signed.append(sign * value)
            # an answer that says neither yes nor no takes the place of this one
            beyond_middle.append(sign * (value - MIDDLE_OPTION_VALUE))

        netsats = np.array([*signed, 0.0])[answers.index].sum(axis=1, keepdims=True)
        without = netsats - np.array([*beyond_middle, 0.0])[answers.index]
        return self.calibration.probability(netsats) - self.calibration.probability(without)

    def _likelihoods(self, rows: Floats, judges: Sequence[str]) -> dict[str, list[object]]:
        model = self.thumb_model
        assert model is not None, "only called where there is one"
        probability = model.probability(rows)
        fields = {"probability": probability.tolist(), "entropy": _compute_entropies(probability)}
        if judges:
            fields["judges"] = _split_by_row(
                {judge: model.probability(rows, judge).tolist() for judge in judges},
                len(rows),
            )

        if model.rating is None:
            return fields

        # the grades of the main question
        values = model.rating.questionnaire_.scale().values
        by_judge = {}
        for judge in judges:
            by_judge[judge] = (model.grades(rows, judge) @ np.array(values)).tolist()

        grades = model.grades(rows).tolist()
        grade_shares = []
        for grade_proba in grades:
            ratings = {}
            for value, p in zip(values, grade_proba, strict=True):
                ratings[f"{value:g}"] = p

            grade_shares.append(ratings)

        return fields | {
            # the expected grade, and each probability by its grade
            "rating": [
                sum(p * value for p, value in zip(grade_proba, values, strict=True))
                for grade_proba in grades
            ],
            "grades": grade_shares,
            "judge_ratings": _split_by_row(by_judge, len(rows)),
        }

    def read(
        self,
        conversation_id: str,
        netsat: float,
        probability: float | None = None,
    ) -> Score:
        """Return what a NetSAT means by itself.

        Args:
            probability: Of a thumb up, where a model gave one.
        """
        # by the curve first; a model's probability takes its place
        fields = self._figures(np.array([netsat]))
        if probability is not None:
            fields["probability"] = [probability]
            fields["confident"] = self.window.certain(
                np.array([netsat]),
                np.array([probability]),
            )

        own_values = {}
        for name, values in (fields | self._decisions(fields)).items():
            own_values[name] = values[0]

        return Score(conversation_id=conversation_id, **own_values)

    def _figures(self, netsats: Floats) -> dict[str, list[Any]]:
        probability = self.calibration.probability(netsats)
        if self.guaranteed is None:
            guaranteed = [None] * len(netsats)
        else:
            guaranteed = self.guaranteed.confident(netsats).tolist()

        return {
            "netsat": netsats.tolist(),
            "label": ["positive" if over else "negative" for over in netsats > self.theta],
            "confident": self.window.certain(netsats, probability),
            "guaranteed": guaranteed,
            "probability": probability.tolist(),
            "entropy": _compute_entropies(probability),
        }


def _split_by_row(columns: Mapping[str, Sequence[float]], count: int) -> list[dict[str, float]]:
    rows = []
    for row in range(count):
        rows.append({name: values[row] for name, values in columns.items()})

    return rows


MIN_TOLD_MOVE = 0.02
"""Change of a probability from which on an answer is said to move it."""


def describe_verdict(decision: str | None, probability: float, *, calibrated: bool) -> str:
    """Say a verdict as people read it: good or bad, and how sure, if probabilities are known to be right."""
    good = decision == "positive"
    if not calibrated:
        return f"{'good' if good else 'bad'}, at P(up) {probability:.2f}"
    sure = probability if good else 1 - probability
    return f"{'good' if good else 'bad'}, {'over 99' if sure > 0.99 else round(100 * sure)} % sure"


def describe_certainty(confident: bool | None) -> str:
    """Say how sure a score is."""
    if confident is None:
        return "too few labels to say how sure"
    return "confident" if confident else "in doubt"


def compute_decision_probability_from_costs(costs: tuple[float, float]) -> float:
    """Return the probability at which both mistakes cost the same: c_up / (c_up + c_down).

    Args:
        costs: Of a bad conversation taken for good (c_up), and of a good one taken for bad
            (c_down).

    Raises:
        WrongUse: One is not positive.
    """
    if not all(math.isfinite(cost) and cost > 0 for cost in costs):
        raise WrongUse(
            f"costs of {costs[0]:g} and {costs[1]:g}",
            hint="give two numbers over 0",
        )

    return costs[0] / (costs[0] + costs[1])


def compute_binary_entropy(p: float) -> float:
    """Compute the entropy of a probability, in nats."""
    return _compute_entropies(np.array([p]))[0]


def _compute_entropies(p: Floats) -> list[float]:
    entropies: list[float] = compute_entropy_of_distributions(
        np.stack([p, 1 - p], axis=-1)
    ).tolist()
    return entropies


def compute_answer_value(
    answer: Answer,
    rule: Literal["auto", "expected", "mode"] = "auto",
    never: float = MIDDLE_OPTION_VALUE,
) -> float:
    """Return an answer's value for NetSAT, by rule; by default mode or expected value."""
    if answer.never_came_up:
        return never
    if rule == "auto":
        return answer.value()
    if rule == "expected":
        return answer.expected()
    return answer.mode()
