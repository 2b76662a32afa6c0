"""The distilled judge, and the judge without a model that leaves each rubric to whom it belongs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log1p
from typing import Any

import numpy as np

from pollex.agents.distilled.student import Features, Student, learn_student
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.reading import ANYWHERE
from pollex.agents.embedded.events.topics import Topics
from pollex.agents.embedded.judge import FOLDS, EmbeddedJudge, deal
from pollex.agents.embedded.signals import MEASURES, SIGNALS, measured
from pollex.agents.embedded.view import View
from pollex.agents.roles import Judge, no_answers
from pollex.conversations.conversation import Conversation, Label
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import DISTILLED, Rubric, content_id

SEEN = {name: signal for name, signal in SIGNALS.items() if signal.pattern is not None}
"""Signals that are found by their words: the others compare vectors or lengths."""

NO_TOPICS = Topics(())
_WORD = re.compile(r"[^\W_]{2,}")


def features_of(conversation: Conversation, embedder: Embedder) -> dict[str, float]:
    """Compute the features that are not 0, by name: `w:PARTY:WORD`, `s:SIGNAL:MEASURE`, `e:EVENT` and `n:PARTY`."""
    view, found = View(conversation, embedder), dict[str, float]()
    for turn in conversation.turns:
        party = turn.role[:1]
        words = _WORD.findall(turn.content.casefold())
        found[f"n:{party}"] = found.get(f"n:{party}", 0.0) + len(words)
        found |= {f"w:{party}:{word}": 1.0 for word in words}
        found |= {f"w:{party}:{first} {second}": 1.0 for first, second in pairwise(words)}
    found |= {name: log1p(count) for name, count in found.items() if name.startswith("n:")}
    for name, signal in SEEN.items():
        values = measured(signal.marks(view), view.of(signal.party))
        found |= {f"s:{name}:{measure}": float(v) for measure, v in zip(MEASURES, values, strict=True) if v}
    reading = view.reading("{}", NO_TOPICS)
    found |= {f"e:{event.pattern}": reading.sure(event) for event in reading.seen if event.topic == ANYWHERE}
    return found


VERSION = "1"
NAME = "distilled"


@dataclass(frozen=True)
class Taught:
    """What a model answered, by text hash and rubric.

    Attributes:
        value: 0 to 10; None where the occasion never came up.
        picked: Place of the answer; one past the options for "Never came up".
    """

    value: float | None
    picked: int


Lessons = Mapping[str, Mapping[str, Taught]]
"""By rubric and text hash."""


class DistilledJudge(Judge):
    """Answers a model's rubrics from words, signals and events, as it learned from the model's answers.

    A conversation that it learned from is answered by what was learned without it (five folds).

    Args:
        learned: What an earlier judge's `learned` gave.
        lessons: What `fit` learns from.

    Raises:
        BadRubrics: What was learned has another form.
    """

    def __init__(
        self, embedder: Embedder, learned: Mapping[str, Any] | None = None, lessons: Lessons | None = None
    ) -> None:
        self.embedder = embedder
        self.students = {id_: Student.from_json(id_, stored) for id_, stored in (learned or {}).items()}
        self.lessons = lessons or {}
        self._fold_students: list[dict[str, Student]] = []
        self._folds: dict[str, int] = {}

    @property
    def name(self) -> str:
        return NAME

    @property
    def fingerprint(self) -> str:
        return content_id(NAME, VERSION, json.dumps(self.learned, sort_keys=True), str(sorted(self.lessons)))

    @property
    def learned(self) -> Mapping[str, Any]:
        return {id_: student.to_json() for id_, student in sorted(self.students.items())}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learn each rubric from what the model answered about training conversations, and again without each fold."""
        ordered = sorted((c for c in training if not c.not_scorable), key=lambda c: (c.text_hash, c.id))
        features = [features_of(conversation, self.embedder) for conversation in ordered]
        hashes = [conversation.text_hash for conversation in ordered]
        folds = deal(hashes, np.array([c.label is Label.POSITIVE for c in ordered], dtype=bool))
        self._folds = dict(zip(hashes, folds.tolist(), strict=True))
        self.students = self._learned(rubrics, features, hashes)
        self._fold_students = [
            self._learned(
                rubrics,
                [one for one, its in zip(features, folds, strict=True) if its != fold],
                [one for one, its in zip(hashes, folds, strict=True) if its != fold],
            )
            for fold in range(FOLDS)
        ]

    def _learned(
        self, rubrics: Sequence[Rubric], features: Sequence[Features], hashes: Sequence[str]
    ) -> dict[str, Student]:
        found = {}
        for rubric in rubrics:
            known = self.lessons.get(rubric.id, {})
            rows = [(one, known[text]) for one, text in zip(features, hashes, strict=True) if text in known]
            if rows:
                values = np.array([np.nan if taught.value is None else taught.value for _, taught in rows])
                picked = np.array([taught.picked for _, taught in rows], dtype=np.intp)
                found[rubric.id] = learn_student([one for one, _ in rows], values, picked)
        return found

    def foretold(self, conversation: Conversation) -> dict[str, float]:
        """Predict the value of each rubric, by what was learned without the conversation."""
        features, fold = features_of(conversation, self.embedder), self._folds.get(conversation.text_hash)
        students = self.students if fold is None else self._fold_students[fold]
        return {id_: student.value(features) for id_, student in students.items()}

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Answer each question by what was learned about its rubric."""
        if why := conversation.not_scorable:
            return no_answers(questions, "not_scorable", why, NAME)
        fold = self._folds.get(conversation.text_hash)
        students = self.students if fold is None else self._fold_students[fold]
        features = features_of(conversation, self.embedder)
        return [self._answer(question, students.get(question.id), features) for question in questions]

    def _answer(self, question: Question, student: Student | None, features: Features) -> Answer | Unanswered:
        if student is None:
            detail = "Untaught: the model's answers to this rubric were never learned from"
            return Unanswered(question_id=question.id, outcome="error", detail=detail, judge=NAME)
        options = len(question.options)
        shares = student.probabilities(features, options)
        never = int(np.argmax(shares)) == options and question.may_never
        p = np.zeros(options) if never else shares[:options] / max(shares[:options].sum(), 1e-12)
        heaviest = sorted(student.weights, key=lambda name: -abs(student.weights[name] * features.get(name, 0.0)))[:3]
        return Answer(
            question_id=question.id,
            probabilities=tuple(p.tolist()),
            chosen=options if never else int(np.argmax(p)),
            source="built-in",
            justification=f"value {student.value(features):.1f} by {', '.join(heaviest) or 'the mean'}",
            judge=NAME,
        )


class LocalJudge(Judge):
    """Has each rubric answered without a model: distilled ones by what was learned, others by the built-in judge."""

    def __init__(self, embedder: Embedder, learned: Mapping[str, Any], lessons: Lessons | None = None) -> None:
        scales = {id_: stored for id_, stored in learned.items() if "weights" not in stored}
        taught = {id_: stored for id_, stored in learned.items() if "weights" in stored}
        self.built_in = EmbeddedJudge(embedder, scales)
        self.distilled = DistilledJudge(embedder, taught, lessons)

    @property
    def name(self) -> str:
        return NAME if self.distilled.students or self.distilled.lessons else self.built_in.name

    @property
    def fingerprint(self) -> str:
        return content_id("local", self.built_in.fingerprint, self.distilled.fingerprint)

    @property
    def learned(self) -> Mapping[str, Any]:
        return {**self.built_in.learned, **self.distilled.learned}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learn the scale of the built-in rubrics, and the answers to the distilled ones."""
        await self.built_in.fit(training, [rubric for rubric in rubrics if rubric.answered_by != DISTILLED])
        if self.distilled.lessons:
            await self.distilled.fit(training, [rubric for rubric in rubrics if rubric.answered_by == DISTILLED])

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric as its judge asks it."""
        judge = self.distilled if rubric.answered_by == DISTILLED else self.built_in
        return judge.understood(rubric)

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Answer each question by whom it belongs to, in the questions' order."""
        own = [q for q in questions if q.rubric and q.rubric.answered_by == DISTILLED]
        others = [q for q in questions if not (q.rubric and q.rubric.answered_by == DISTILLED)]
        found: dict[str, Answer | Unanswered] = {}
        for judge, part in ((self.distilled, own), (self.built_in, others)):
            if part:
                found |= zip((q.id for q in part), await judge.judge(conversation, part), strict=True)
        return [found[question.id] for question in questions]
