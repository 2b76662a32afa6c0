"""The rater without a model: whether a conversation went well, from all signals at once.

It doesn't understand a question. What it answers is whether the conversation went well: the first
of two options for yes, the second for no. From the thumbs of a log it learns what goes with the
first option:

    P(first option) = σ(b + Σ_s Σ_v w_sv · z_sv)

z the measures v of each signal s, standardised on the log; w by logistic regression with a strong
L2 penalty (C = 0.01: on dialogues of two services the best of four by cross-validation). Without
enough thumbs w is what is known of the signals in general, +1, −1 or 0, and the odds are those of
going better than the log's average.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded import BUILT_IN_MODEL_NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import choose_strongest_turns
from pollex.agents.embedded.judge import (
    MAX_STANDARD_SCORE,
    MAX_TURNS_OF_EVIDENCE,
    SCALE_FOLDS,
    assign_stratified_folds,
)
from pollex.agents.embedded.signals import MEASURE_NAMES, SIGNALS_BY_NAME, summarize_marks_of_party
from pollex.agents.embedded.view import (
    RESAMPLED_MODEL_NAME,
    BoolArray,
    ConversationView,
    Floats,
    Indices,
    make_conversation_views,
    make_random_generator,
    resample_turn_indices,
)
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import WrongUse
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric, make_content_id

RATER_VERSION = "2"
FEWEST_LABELS_TO_LEARN = 10
"""Thumbs of each kind from which on weights are learnt."""

WEIGHT_PENALTY = 0.01
MAX_REMEMBERED_MEASURES = 256
MAX_SIGNALS_NAMED = 2
"""So many signals are named as what an answer rests on."""

SignalMeasures = list[npt.NDArray[np.float64]]


@dataclass(frozen=True)
class RaterWeights:
    """A standardized linear model of measures [signal, measure]: middle, spread, w, and b."""

    middle: Floats
    spread: Floats
    weight: Floats
    intercept: float = 0.0

    def parts(self, measures: Floats) -> Floats:
        """Return each signal's part of the log-odds [..., signal], from measures [..., signal, measure]."""
        z = np.clip((measures - self.middle) / self.spread, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)
        return np.asarray((z * self.weight).sum(axis=-1))

    def odds(self, measures: Floats) -> Floats:
        """Return the log-odds of the first option, from measures [..., signal, measure]."""
        return np.asarray(self.intercept + self.parts(measures).sum(axis=-1))


class EmbeddedRater(Judge):
    """The built-in rater; conversations learned from are answered by weights learned without them (five folds)."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.signals = list(SIGNALS_BY_NAME.values())
        self.labelled = 0
        self._weights: RaterWeights | None = None
        self._fold_weights: list[RaterWeights] = []
        self._folds: dict[str, int] = {}
        self._replicate: int | None = None
        self._marks: dict[str, tuple[ConversationView, SignalMeasures]] = {}

    @property
    def name(self) -> str:
        return BUILT_IN_MODEL_NAME if self._replicate is None else RESAMPLED_MODEL_NAME

    @property
    def fingerprint(self) -> str:
        if self._weights is None:
            learnt = []
        else:
            learnt = [self._weights.weight.tobytes().hex(), str(self._weights.intercept)]

        return make_content_id("rater", RATER_VERSION, self.embedder.identity, *learnt)

    @property
    def learned(self) -> Mapping[str, Any]:
        return {} if self._weights is None else {"labelled": self.labelled}

    def again(self, replicate: int) -> Self:
        """Return the rater on resampled turns; see `RepeatableJudge`."""
        other = copy(self)
        other._replicate = replicate
        return other

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:  # noqa: ARG002
        """Learn typical measures of this log, and weights for the first option from its labels."""
        # by text, so that the order of rows in a file changes no weight
        ordered = sorted(
            (c for c in training if not c.not_scorable),
            key=lambda c: (c.text_hash, c.id),
        )
        if not ordered:
            return

        measures = np.array(
            [
                self._measured(view)
                for view in make_conversation_views(ordered, self.embedder, vectors=False)
            ]
        )
        # [conversation]; rows without a label count for middle and spread alone
        positive = np.array([c.label is Label.POSITIVE for c in ordered], dtype=bool)
        labelled = np.array([c.label is not Label.NONE for c in ordered], dtype=bool)
        self._weights = fit_rater_weights(measures, positive, labelled, self._leans())
        # a labelled conversation gets the weights of the other folds, never its own thumb's
        folds = np.full(len(ordered), -1)
        folds[labelled] = assign_stratified_folds(
            [c.text_hash for c in ordered if c.label is not Label.NONE],
            positive[labelled],
        )
        self._fold_weights = [
            fit_rater_weights(measures, positive, labelled & (folds != fold), self._leans())
            for fold in range(SCALE_FOLDS)
        ]
        self._folds = {
            c.text_hash: fold for c, fold in zip(ordered, folds.tolist(), strict=True) if fold >= 0
        }
        # too few labels of either kind: the weights are the leans, and nothing was learned
        enough = (
            min(positive[labelled].sum(), (~positive[labelled]).sum()) >= FEWEST_LABELS_TO_LEARN
        )
        self.labelled = int(labelled.sum()) if enough else 0

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer every question of two options in the same way.

        Raises:
            WrongUse: A question has more or fewer options, or nothing was studied.
        """
        if any(len(question.options) != 2 for question in questions):
            what = "the built-in rater answers questions of two options alone"
            raise WrongUse(
                what,
                hint="give two options, or an LLM",
                option="model",
            )
        if why := conversation.not_scorable:
            return make_unanswered_for_all(questions, "not_scorable", why, self.name)

        # a text of the training labels is answered by the fold that never saw its label
        fold = self._folds.get(conversation.text_hash)
        weights = self._weights if fold is None else self._fold_weights[fold]
        if weights is None:
            raise WrongUse(
                "the built-in rater has studied no log",
                hint="call `fit` with the log first",
            )

        answers: list[Answer | Unanswered] = []
        for question in questions:
            answers.append(self._answer(conversation, question, weights))

        return answers

    def _answer(
        self,
        conversation: Conversation,
        question: Question,
        weights: RaterWeights,
    ) -> Answer:
        view, marks = self._seen(conversation)
        # indices of turns by party, as the measures take them
        turns = {}
        for party in ("user", "assistant"):
            turns[party] = view.of(party)

        # a repeated run draws the turns anew, with replacement: that is how its runs differ
        if self._replicate is not None:
            rng = make_random_generator(conversation, self._replicate)
            turns = {party: resample_turn_indices(indices, rng) for party, indices in turns.items()}

        measures = self._measures(marks, turns)
        # log odds of the first option; 0 or 1 is its place among the options
        p = float(1 / (1 + np.exp(-weights.odds(measures))))
        chosen = int(p < 0.5)
        # the signals that speak most for the chosen option come first
        order = np.argsort(weights.parts(measures) * (1 if chosen else -1))[
            :MAX_SIGNALS_NAMED
        ].tolist()

        return Answer(
            question_id=question.id,
            probabilities=(p, 1 - p),
            chosen=chosen,
            source="built-in",
            justification=f"most for it: {', '.join(self.signals[i].name for i in order)}",
            turns=tuple(
                choose_strongest_turns(
                    marks[order[0]], view.of(self.signals[order[0]].party), MAX_TURNS_OF_EVIDENCE
                )
            ),
            judge=self.name,
        )

    def _seen(self, conversation: Conversation) -> tuple[ConversationView, SignalMeasures]:
        if conversation.text_hash not in self._marks:
            if len(self._marks) >= MAX_REMEMBERED_MEASURES:
                del self._marks[next(iter(self._marks))]
            view = ConversationView(conversation, self.embedder)
            self._marks[conversation.text_hash] = (
                view,
                [signal.marks(view) for signal in self.signals],
            )

        return self._marks[conversation.text_hash]

    def _measured(self, view: ConversationView) -> Floats:
        marks = [signal.marks(view) for signal in self.signals]
        return self._measures(
            marks,
            {party: view.of(party) for party in ("user", "assistant")},
        )

    def _measures(self, marks: SignalMeasures, turns: Mapping[str, Indices]) -> Floats:
        parties = {**turns, "both": np.sort(np.concatenate(list(turns.values())))}
        return np.array(
            [
                summarize_marks_of_party(m, parties[s.party])
                for m, s in zip(marks, self.signals, strict=True)
            ]
        )

    def _leans(self) -> Floats:
        return np.array(
            [[signal.lean] * len(MEASURE_NAMES) for signal in self.signals],
            dtype=np.float64,
        )


def fit_rater_weights(
    measures: Floats,
    positive: BoolArray,
    labelled: BoolArray,
    leans: Floats,
) -> RaterWeights:
    """Fit weights on a log.

    Args:
        measures: [conversation, signal, measure]; all rows give middle and spread.
        positive: [conversation]; used where `labelled`.
        labelled: [conversation].
        leans: [signal, measure], in place of weights if there are too few labels.
    """
    middle = measures.mean(axis=0)
    spread = measures.std(axis=0)
    # a measure that is the same everywhere must not be divided by 0
    spread = np.where(spread > 1e-9, spread, 1.0)
    # too few of either kind: leans in place of weights, scaled down by how many there are
    y = positive[labelled]
    if min(y.sum(), (~y).sum()) < FEWEST_LABELS_TO_LEARN:
        return RaterWeights(
            middle,
            spread,
            leans / max(1.0, float(np.abs(leans).sum()) ** 0.5),
        )

    # a second, needed where there are thumbs alone
    from sklearn.linear_model import LogisticRegression

    # a single extreme measure must not decide the fit
    z = np.clip((measures[labelled] - middle) / spread, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)
    model = LogisticRegression(C=WEIGHT_PENALTY, max_iter=2000).fit(z.reshape(len(z), -1), y)

    return RaterWeights(
        middle,
        spread,
        model.coef_[0].reshape(middle.shape),
        float(model.intercept_[0]),
    )
