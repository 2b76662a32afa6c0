"""The parts of a rubric set, as they stand in its file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pollex.gateway.capabilities import Capabilities
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure
from pollex.prompts.messages import Closing
from pollex.rubrics.answers import SCALES, ScaleName
from pollex.rubrics.rubric import Polarity, Rubric, content_id


class Record(BaseModel):
    """Base of all records: unknown fields are errors, to detect typing errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Choice(Record):
    """The choice of a rubric, with the losses at that step.

    Attributes:
        step: From 1, in the order of choice.
        loss: `−LC/(10·|R|) + α·LS` of the set with it in.
        correctness: LC of that set.
        sharpness: LS of that set.
        stability: Share of bootstrap resamples of the training conversations in which it is chosen.
    """

    step: int
    loss: float
    correctness: float
    sharpness: float
    stability: float | None = None


class Worth(Record):
    """Associations of a rubric with thumbs on held-out conversations, not causes.

    Attributes:
        holds: Share of conversations in which it holds: the answer is beyond the middle of the scale.
        down_with: Share of thumbs down where it holds.
        down_without: Share of thumbs down where it doesn't.
    """

    holds: Figure
    down_with: Figure
    down_without: Figure


JudgedBy = Literal["event", "signal", "words", "likeness", "model", "distilled"]
"""By what a rubric is judged. Likeness of turns to its words is weak."""


class Alone(Record):
    """Figures of a rubric alone on training conversations.

    Attributes:
        spread: Standard deviation of what its answers count as, of 10.
        commonest: The answer that is given most often.
        share: Of conversations with that answer.
        auc: Of its values, larger where it speaks for a thumb up.
    """

    by: JudgedBy
    spread: float
    commonest: str
    share: Figure
    auc: Figure


class Segment(Record):
    """Held-out conversations on one topic.

    Attributes:
        down: Share of thumbs down among them.
        rest: Likewise of all others.
        examples: Ids of three of them, thumbs down first.
    """

    topic: str
    down: Figure
    rest: Figure
    examples: tuple[str, ...]


class ChosenRubric(Rubric):
    """A rubric of the set; one added by a person needs only text and polarity.

    Attributes:
        worth: On held-out conversations; None where nothing was held out, and for a rubric that a person added.
        written: The text that θ was fitted for; differs from `text` once a person re-worded it; empty for a new one.
        choice: None for a rubric that a person added.
        note: What a person wrote beside it.
        alone: How it does by itself; None before it was fitted.
        unexpected: Whether its words contradict its side, by what is known of its event or signal in general.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    written: str = ""
    choice: Choice | None = None
    worth: Worth | None = None
    note: str = ""
    alone: Alone | None = None
    unexpected: bool = False

    @property
    def headlined(self) -> bool:
        """Whether it is shown as something to act on."""
        return self.leads and not self.unexpected

    @model_validator(mode="before")
    @classmethod
    def _with_id(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("id") and "text" in data:
            data = {**data, "id": content_id(str(data.get("polarity", "")), str(data["text"]))}
        return data


class DroppedRubric(Record):
    """A rubric of the pool that is not in the set.

    Attributes:
        reason: In words: what it was a duplicate of, or which rubric was chosen before it.
        duplicate_of: Id of the rubric that it went into.
        loss: Of the set with it in, at the last step at which its kind was open; None for duplicates.
    """

    id: str
    text: str
    polarity: Polarity
    support: int
    reason: str
    duplicate_of: str | None = None
    loss: float | None = None
    stability: float | None = None


class Baseline(Record):
    """Figures of a simpler method on the same split.

    Attributes:
        advantage: AUC of the rubrics minus that of the baseline, with its interval.
    """

    name: str
    training: Assessment | None = None
    held_out: Assessment | None = None
    advantage: Figure | None = None


class AlphaRow(Record):
    """Cross-validated AUC of one α; no deviation where there is only one fold."""

    alpha: float
    mean_auc: float
    deviation: float | None
    folds: int


class JudgeOptions(BaseModel):
    """Those of a judge's options that it is asked with again."""

    model_config = ConfigDict(extra="ignore")

    place: str = ""
    embedding_model: str = ""
    elicitation: Literal["batched", "independent"] = "batched"
    samples: int = Field(default=1, ge=1)
    canary: bool = True
    straight_lining: bool = True
    closing: Closing = "system"
    without: list[str] = []
    seed: int = 0
    capabilities: Capabilities | None = None


LLM = "llm"
"""The kind of a judge that is a model behind the gateway."""


class JudgeRecord(Record):
    """The judge that answers, and all that it has learned.

    Attributes:
        kind: `embedded`, or `llm`; see `agents.backends`.
        value: What NetSAT adds up: the expected value of an answer's distribution, or the chosen option's.
        options: What it was made with: the embedding model, or the LLM's name and mode.
        learned: `Judge.learned`.
    """

    kind: str
    name: str
    fingerprint: str
    value: Literal["auto", "expected", "mode"] = "auto"
    options: dict[str, Any] = Field(default_factory=dict)
    learned: dict[str, Any] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _that_it_can_be_asked_with(cls, options: dict[str, Any]) -> dict[str, Any]:
        if "scale" in options and options["scale"] not in list(SCALES):
            raise ValueError(f"the scale {options['scale']!r:.60} is none of {', '.join(SCALES)}")
        try:
            JudgeOptions.model_validate(options)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        return options

    @property
    def built_in(self) -> bool:
        """Whether it answers on this machine, without a model: nothing is sent or paid."""
        return self.kind != LLM

    @property
    def scale(self) -> ScaleName:
        """Scale on which rubrics are asked."""
        found: ScaleName = self.options.get("scale", "likert-domain")
        return found


class DataRecord(Record):
    """The data of a set, with text hashes to recognize conversations seen before.

    Attributes:
        training_hashes: Of those that rubrics came from and were chosen on.
        fitted_hashes: Of those that only θ, window and probability are fitted to.
    """

    fingerprint: str
    conversations: int
    positives: int
    negatives: int
    unlabeled: int
    not_scorable: int
    training: int
    held_out: int
    test_fraction: float
    seed: int
    training_hashes: tuple[str, ...] = ()
    fitted_hashes: tuple[str, ...] = ()


class WindowRecord(Record):
    """The uncertainty window; see `selection.threshold.Window`."""

    lower: float | None
    upper: float | None
    precision: float


class CalibrationRecord(Record):
    """P(positive | NetSAT); see `selection.probability.Calibration`."""

    slope: float
    intercept: float


class CandidateRow(Record):
    """Cross-validated figures of a probability model, with rubrics chosen without the fold.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        behind: Its log-loss minus that of the best.
        error: Standard error of `behind`.
    """

    name: str
    log_loss: float
    behind: float
    error: float
    n: int


class ProbabilityFigures(Record):
    """Figures of the probabilities of one set of conversations.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        brier: Mean (p − thumb)².
        smece: Smoothed calibration error; None if it was not measured.
        share_log_loss: Log-loss of the share of positive training conversations, as prediction for every conversation.
        share_brier: Brier score of that share.
        gain: `share_log_loss` minus `log_loss`.
    """

    n: int
    log_loss: Figure
    brier: Figure
    smece: Figure | None = None
    share_log_loss: Figure
    share_brier: Figure
    gain: Figure


class CalibratorRecord(Record):
    """The model of the probability; its arrays are in a file with the recorded hash.

    Attributes:
        chosen: Which of those compared.
        compared: None where there were too few conversations to compare on.
        labels: Training thumbs that it was fitted on.
        training: Of training conversations, each by a model and a choice of rubrics that did not see it; None where
            there are none.
        rubrics: Ids, in the order in which it wants the answers.
        facts: See `calibration.storage.Packed`; the questionnaire follows from `rubrics`.
    """

    chosen: str
    compared: tuple[CandidateRow, ...] = ()
    labels: int
    training: ProbabilityFigures | None = None
    held_out: ProbabilityFigures | None = None
    rubrics: tuple[str, ...]
    facts: dict[str, Any]
