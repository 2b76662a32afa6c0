"""The embedded judge: answers any rubric from its evidence in the turns, on a scale learnt on a labelled log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from pollex.agents.answers import Answer, Question, Unanswered
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import evidence_of, strongest
from pollex.agents.embedded.resampling import RESAMPLED, chance, drawn
from pollex.agents.embedded.rewording import reworded
from pollex.agents.embedded.scale import UNSTUDIED, Flags, Scale, binomial, learn_scale
from pollex.agents.embedded.signals.signal import MEASURES, Signal, measured
from pollex.agents.embedded.view import Floats, Indices, View, views_of
from pollex.agents.rubrics import Rubric, content_id
from pollex.conversations.model import Conversation, Label

VERSION = "2"
FOLDS = 5
MOST_TURNS = 3
"""So many turns are named as what an answer rests on."""


class EmbeddedJudge:
    """Answers from signals, phrases and likeness of turns; no LLM.

    A conversation that it has studied is answered on a scale learnt without it (five folds), so that answers on
    training data are as honest as answers on new data.

    Args:
        embedder: Turns to vectors.
        learned: What an earlier judge's `learned` gave.
    """

    def __init__(self, embedder: Embedder, learned: Mapping[str, Any] | None = None) -> None:
        self.embedder = embedder
        self.scales = {id_: Scale.from_json(stored) for id_, stored in (learned or {}).items()}
        self._fold_scales: list[dict[str, Scale]] = []
        self._folds: dict[str, int] = {}
        self._fingerprint: str | None = None
        self._replicate: int | None = None

    @property
    def name(self) -> str:
        return "embedded" if self._replicate is None else RESAMPLED

    @property
    def fingerprint(self) -> str:
        if self._fingerprint is None:
            scales = sorted(f"{id_} {scale.to_json()}" for id_, scale in self.scales.items())
            self._fingerprint = content_id("judge", VERSION, self.embedder.identity, *scales)
        return self._fingerprint

    @property
    def learned(self) -> Mapping[str, Any]:
        return {id_: scale.to_json() for id_, scale in sorted(self.scales.items())}

    async def study(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learns a scale a rubric from the labelled conversations, and again without each of five folds."""
        ordered = sorted(training, key=lambda c: (c.text_hash, c.id))  # sums depend on their order, in the last digit
        labelled = [c for c in ordered if c.label is not Label.NONE and not c.not_scorable]
        positive = np.array([c.label is Label.POSITIVE for c in labelled], dtype=bool)
        evidence = [evidence_of(rubric, self.embedder) for rubric in rubrics]
        measures = measured_on(views_of(labelled, self.embedder), evidence)
        folds = deal([c.text_hash for c in labelled], positive)
        self._folds = dict(zip((c.text_hash for c in labelled), folds.tolist(), strict=True))
        self._fingerprint = None
        self.scales = scales_of(measures, positive, rubrics, evidence)
        self._fold_scales = [
            scales_of(measures[folds != fold], positive[folds != fold], rubrics, evidence) for fold in range(FOLDS)
        ]

    def again(self, replicate: int) -> Self:
        """The judge on resampled turns; see `agents.ensemble.Repeatable`."""
        other = copy(self)
        other._replicate = replicate
        return other

    def reworded(self, rubric: Rubric, written: str) -> Rubric:
        """The rubric with the evidence that its text now asks for."""
        return reworded(rubric, written, self.embedder)

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Embeds all turns at once."""
        views = [View(conversation, self.embedder) for conversation in conversations if not conversation.not_scorable]
        self.embedder.embed([text for view in views for text in view.texts])

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """One answer a question; a conversation without both parties is not scorable."""
        if reason := conversation.not_scorable:
            return [
                Unanswered(question_id=q.id, outcome="not_scorable", detail=reason, judge=self.name) for q in questions
            ]
        view = View(conversation, self.embedder)
        scales = self._scales_for(conversation)
        return [self._answer(view, question, scales) for question in questions]

    def _scales_for(self, conversation: Conversation) -> Mapping[str, Scale]:
        fold = self._folds.get(conversation.text_hash)
        return self.scales if fold is None else self._fold_scales[fold]

    def _answer(self, view: View, question: Question, scales: Mapping[str, Scale]) -> Answer:
        rubric = question.rubric or Rubric(id=question.id, text=question.text, polarity="sat")
        evidence = evidence_of(rubric, self.embedder)
        marks = evidence.marks(view)
        turns = view.of(evidence.party)
        seen = turns if self._replicate is None else drawn(turns, chance(view.conversation, self._replicate))
        measures = measured(marks, seen)
        odds = float(scales.get(rubric.id, UNSTUDIED).odds(measures))
        p = binomial(1 / (1 + np.exp(-odds)), len(question.options))
        return Answer(
            question_id=question.id,
            probabilities=p,
            chosen=int(np.argmax(p)),
            source="embedded",
            justification=justified(evidence, measures, scales.get(rubric.id)),
            turns=tuple(strongest(marks, turns, MOST_TURNS)),
            judge=self.name,
        )


def measured_on(views: Sequence[View], evidence: Sequence[Signal]) -> Floats:
    """Measures [conversation, rubric, measure]."""
    rows = [[measured(signal.marks(view), view.of(signal.party)) for signal in evidence] for view in views]
    return np.array(rows).reshape(len(views), len(evidence), len(MEASURES))


def scales_of(
    measures: Floats,
    positive: Flags,
    rubrics: Sequence[Rubric],
    evidence: Sequence[Signal],
) -> dict[str, Scale]:
    """A scale a rubric from measures [conversation, rubric, measure]; none where only one class is at hand."""
    if not positive.any() or positive.all():
        return {}
    return {
        rubric.id: learn_scale(measures[:, i], positive, +1 if rubric.polarity == "sat" else -1, signal.lean)
        for i, (rubric, signal) in enumerate(zip(rubrics, evidence, strict=True))
    }


def deal(hashes: Sequence[str], positive: Flags) -> Indices:
    """A fold a conversation, class by class in the order of the hashes: the same whatever the order of the rows.

    Conversations of the same text share a fold.
    """
    order = {
        text: rank
        for label in (True, False)
        for rank, text in enumerate(sorted({h for h, p in zip(hashes, positive, strict=True) if p == label}))
    }
    return np.array([order[text] % FOLDS for text in hashes], dtype=np.intp)


def justified(evidence: Signal, measures: Floats, scale: Scale | None) -> str:
    """What was seen, in the measure that weighs most, beside what is half way between good and bad."""
    if scale is None:
        return f"{evidence.name}: likeness {measures[2]:.2f}; the scale was never fitted to labelled conversations"
    if not scale.weight.any():
        return f"{evidence.name}: tells nothing here; in the training log it doesn't separate good from bad"
    heaviest = int(np.argmax(scale.weight))
    return f"{evidence.name}: {MEASURES[heaviest]} {measures[heaviest]:.2f}, the middle is {scale.middle[heaviest]:.2f}"
