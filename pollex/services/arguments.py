"""Keyword arguments of use cases, typed, for callers in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict

from pollex.agents.llm.rater import Variant
from pollex.formats.fields import OnDuplicate, Redact
from pollex.prompts.domain import DomainProfile
from pollex.prompts.messages import Closing
from pollex.rubrics.answers import ScaleName


class ReadArguments(TypedDict, total=False):
    """Keyword arguments for reading logs; see `ReadOptions`."""

    id_field: str | None
    label_field: str | None
    judge_field: str | None
    group_field: str | None
    comment_field: str | None
    comments: bool
    messages_field: str | None
    positive: str | None
    negative: str | None
    max_bad: int
    encoding: str
    on_duplicate: OnDuplicate
    thumbs: Literal["last", "worst", "each"] | None
    pairs: bool
    label_sources: str
    redact: Redact | None


class ModelArguments(TypedDict, total=False):
    """Keyword arguments for a model; see `ModelOptions` and `Limits`.

    Prices are for a million tokens.
    """

    base_url: str | None
    scale: ScaleName
    elicitation: Literal["batched", "independent"]
    samples: int
    require: Literal["logprobs"] | None
    without: frozenset[str]
    canary: bool
    straight_lining: bool
    closing: Closing
    value: Literal["auto", "expected", "mode"]
    retry_refused: bool
    embedding_model: str
    concurrency: int
    deadline: float
    max_wait: float
    max_calls: int | None
    max_cost: float | None
    price: tuple[float, float] | None
    by_batch: bool
    batch_files: Path | None
    batch_api: str
    batch_discount: float


class QuestionArguments(ModelArguments, total=False):
    """How a question is asked in several runs; see `services.judge.JudgeOptions`, also for a model."""

    minimum: int | None
    variant: Variant
    domain: Path | DomainProfile | None
    instructions: Path | None
    seed: int
    temperature: float | None
