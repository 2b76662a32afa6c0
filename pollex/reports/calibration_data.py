"""Data of the page on a calibrator: figures, with nothing left to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pollex.calibration.leverage import Leverage
from pollex.calibration.model_choice import Choice
from pollex.calibration.response_curves import ResponseCurve
from pollex.conversations.conversation import Turn
from pollex.formats.columns import Fault
from pollex.measures.distributions import Assessment
from pollex.measures.intervals import Figure, Support
from pollex.measures.reliability import Reliability


@dataclass(frozen=True)
class ComparedModel:
    """A model beside the calibrator, cross-fitted on the same judgments.

    Attributes:
        assessment: None where it can't be fitted on these tables.
        behind: Its log-loss minus the calibrator's; None for the calibrator itself.
        why_not: Why there is no assessment.
    """

    title: str
    assessment: Assessment | None
    behind: Figure | None = None
    why_not: str = ""


@dataclass(frozen=True)
class QuestionGain:
    """Rise of the held-out log-loss when the LLM is not asked a question."""

    question: str
    gain: Figure


@dataclass(frozen=True)
class LearningPoint:
    """Held-out log-loss with a share of the training texts.

    Attributes:
        labels: Mean number behind a model.
        log_loss: Mean over draws of the texts; None where it is undefined.
        deviation: Standard deviation over the draws, which share texts.
        draws: How many there were.
    """

    share: float
    labels: float
    log_loss: float | None
    deviation: float | None
    draws: int


@dataclass(frozen=True)
class TailText:
    """A text of the lower tail, with its turns where the log was given."""

    id: str
    score: float
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class PredictedScores:
    """Expected answers of texts to a question, the mean over judges; bands are over texts and judges.

    Attributes:
        column: Column of the subset, and its `group`; both empty for all texts.
        mesh: Where the density is known.
        low: Its lower bound; empty, as `high` is, where there are too few texts.
        tail: The lowest texts.
    """

    question: str
    column: str
    group: str
    mean: Figure
    mesh: Sequence[float]
    density: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    tail: tuple[TailText, ...]


@dataclass(frozen=True)
class CalibrationData:
    """Everything on the page.

    Attributes:
        title: The calibrator's name for people.
        worker: The model that gains and the learning curve are of: the calibrator's heaviest member where it
            has members, another in place of one that takes too long to be fitted often.
        unlike: How the cross-fitted models differ from the kept calibrator; empty where they don't.
        main: Id of the main question.
        texts: How many have a judgment of the main question.
        folds: Of cross-fitting, by text.
        learned_from: Of these texts, how many the kept calibrator was fitted on; None where that is unknown.
        agreement: Krippendorff's alpha between the judges.
        choice: Which model was chosen and by how much; None where the model was named.
        compared: The calibrator first.
        subgroups: By column, the figures of each group.
        mesh: The LLM's expected main answers at which response curves are drawn; empty where it was not asked.
    """

    title: str
    worker: str
    unlike: str
    main: str
    values: tuple[float, ...]
    texts: int
    labels: int
    judges: int
    folds: int
    seed: int
    learned_from: int | None
    support: Support
    agreement: Figure
    choice: Choice | None
    compared: tuple[ComparedModel, ...]
    reliabilities: tuple[Reliability, ...]
    subgroups: Mapping[str, Mapping[str, Assessment]]
    mesh: tuple[float, ...]
    responses: tuple[ResponseCurve, ...]
    gains: tuple[QuestionGain, ...]
    learning: tuple[LearningPoint, ...]
    leverages: tuple[Leverage, ...]
    faults: tuple[Fault, ...] = ()
    predicted: tuple[PredictedScores, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> Assessment:
        """The calibrator's figures."""
        found = self.compared[0].assessment
        assert found is not None, "a calibrator that can't be fitted has no page"
        return found
