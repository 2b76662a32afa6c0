"""The Python API: each use case as a function with typed keyword arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import Unpack

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import python_words
from pollex.formats.fields import ReadOptions
from pollex.formats.frames import Rows
from pollex.formats.peer_scores import requests_of
from pollex.formats.read_logs import logs_of, read_rows
from pollex.formats.read_logs import read_logs as read_files
from pollex.gateway.budget import Limits, Price
from pollex.gateway.langsmith import tracing_off
from pollex.graphs.context import NullProgress, Progress
from pollex.graphs.learn.state import LearnSettings
from pollex.prompts.domain import DomainProfile
from pollex.reports.learning import learning_page
from pollex.rubrics import rubric_set
from pollex.rubrics.netsat import Score
from pollex.selection.policies import DEFAULT as DEFAULT_POLICY
from pollex.services import calibrate as calibrating
from pollex.services import grade as grading
from pollex.services import judge as judging
from pollex.services import learn as learning
from pollex.services import score as scoring
from pollex.services import set_differences
from pollex.services import share as sharing
from pollex.services.arguments import ModelArguments, ReadArguments
from pollex.services.exchange import aims_of, export_texts, require_form
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.scorer import chat_model
from pollex.services.set_differences import SetDifference
from pollex.services.verdicts import JudgeResult
from pollex.store.folder import STORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.language_models import BaseChatModel

PAGE = "page of the run"
"""Where a learned set has what renders its report."""

Paths = str | Path | Sequence[str | Path]
Data = Logs | Iterable[Conversation] | Paths | Rows
"""Logs, conversations, paths or globs, dicts, or a table of pandas, polars or Arrow."""


class RubricSet(rubric_set.RubricSet):
    """A rubric set that can render its report."""

    @classmethod
    def of(cls, result: learning.LearnResult) -> RubricSet:
        """Return the rubric set of a learning run, which knows what its report shows."""
        found = cls.model_construct(**{name: getattr(result.rubrics, name) for name in cls.model_fields})
        found._arrays = result.rubrics._arrays
        found.__dict__[PAGE] = result.page  # beside the fields: two sets are equal whatever run they are of
        return found

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report page; a loaded set shows what its file holds."""
        page = self.__dict__[PAGE]() if PAGE in self.__dict__ else learning_page(self)
        Path(path).write_text(page, encoding="utf-8")
        return Path(path)


@python_words()
def read_logs(sources: Data, **options: Unpack[ReadArguments]) -> Logs:
    """Read conversations from files, dicts or tables.

    Args:
        sources: Paths or globs of JSON lines, JSON, CSV or Parquet, or rows in memory.
        options: Fields of `ReadOptions`, for example `label_field="rating", positive=">=4"`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    return _logs(sources, ReadOptions(**options))


@python_words()
def learn(
    logs: Data,
    *,
    out: str | Path | None = None,
    domain: str | Path | DomainProfile | None = None,
    rubrics: str | Path | None = None,
    starter: str | Path | rubric_set.RubricSet | None = None,
    test_fraction: float = 0.5,
    budget: int = 10,
    method: Literal["rubicon", "spur"] = "rubicon",
    policy: str = DEFAULT_POLICY,
    alpha: float | None = None,
    seed: int = 0,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> RubricSet:
    """Learn a rubric set from conversations with thumbs up and down.

    Args:
        logs: Conversations with labels; see `Data`.
        out: Where the rubric set and its report are written; None writes neither.
        domain: A domain profile or its file; None for the neutral one.
        rubrics: A file of rubrics written by hand, or a bundled set's name: all are fitted, none learned.
        starter: A rubric set learned elsewhere; with few labels, both together predict better.
        test_fraction: Share held out for honest figures; 0 holds nothing out.
        budget: Maximum number of SAT and of DSAT rubrics.
        method: `spur` for the baseline that revises one small set in place; it needs a model.
        policy: A name of `selection.policies`.
        alpha: Weight of sharpness; None for cross-validation.
        model: An LLM's name (its key is taken from `OPENAI_API_KEY`) or a LangChain chat model; None for built-in.
        store: Folder where runs, answers and embeddings are kept.
        resume: Go on with the last unfinished run of the same data and settings.
        options: How a model is asked and called, for example `samples=5`.

    Raises:
        BadLabels: One class is missing or too small.
        WrongUse: There is no such policy or method, or something takes a model and none is named.
    """
    settings = LearnSettings(
        test_fraction=test_fraction, budget=(budget, budget), method=method, policy=policy, alpha=alpha, seed=seed
    )
    with _shown(progress) as shown:
        result = learning.learn(
            _logs(logs),
            out=_path(out),
            domain=domain if isinstance(domain, DomainProfile) else _path(domain),
            rubrics_from=rubrics,
            starter=None if starter is None else _set(starter),
            settings=settings,
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, options),
            progress=shown,
        )
    return RubricSet.of(result)


@python_words()
def refit(
    logs: Data,
    rubrics: str | Path | rubric_set.RubricSet,
    *,
    out: str | Path | None = None,
    test_fraction: float | None = None,
    seed: int | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> RubricSet:
    """Judge edited rubrics again, and fit θ, window and probability again."""
    with _shown(progress) as shown:
        result = learning.refit(
            _logs(logs),
            _set(rubrics),
            out=_path(out),
            test_fraction=test_fraction,
            seed=seed,
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, options),
            progress=shown,
        )
    return RubricSet.of(result)


@python_words()
def score(
    logs: Data,
    rubrics: str | Path | rubric_set.RubricSet,
    *,
    out: str | Path | None = None,
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> scoring.ScoreResult:
    """Score conversations with a rubric set; the result holds the scores, or `out` does.

    Args:
        judges: Annotators whose own probabilities are wanted; `["all"]` for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad: they move the decision.
    """
    with _shown(progress) as shown:
        return scoring.score(
            _logs(logs),
            _set(rubrics),
            out=_path(out),
            judges=judges,
            costs=costs,
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, options),
            progress=shown,
        )


@python_words()
def evaluate(
    logs: Data,
    rubrics: str | Path | rubric_set.RubricSet,
    *,
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> scoring.Evaluation:
    """Measure a rubric set on labeled conversations, with 95 % intervals."""
    with _shown(progress) as shown:
        return scoring.evaluate(
            _logs(logs),
            _set(rubrics),
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, options),
            progress=shown,
        )


@python_words()
def share(
    logs: Data,
    rubrics: str | Path | rubric_set.RubricSet | None = None,
    *,
    labels: str | Path | None = None,
    by: str | None = None,
    drawn: Literal["random", "voluntary"] | None = None,
    page: str | Path | None = None,
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> sharing.ShareResult:
    """Estimate the share of good conversations over all, from few labels.

    Args:
        logs: All conversations, those without a label too.
        rubrics: A rubric set, which narrows the interval most where it was learned from other conversations.
        labels: A file of labels; see `pollex share --help`.
        by: A field of the logs; `FIELD:week` for times; `segment` for topics.
        drawn: How labels were drawn whose rows don't say it.

    Raises:
        BadLabels: There are no labels, or nobody says how they were drawn.
    """
    with _shown(progress) as shown:
        return sharing.share(
            _logs(logs),
            None if rubrics is None else _set(rubrics),
            labels=_path(labels),
            by=by,
            drawn=drawn,
            page=_path(page),
            reading=ReadOptions(),
            run=RunOptions(Path(store)),
            model=_model(model, options),
            progress=shown,
        )


@python_words()
def judge(
    logs: Data,
    options: judging.JudgeOptions,
    *,
    out: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **model_options: Unpack[ModelArguments],
) -> JudgeResult:
    """Rate conversations with one question, asked in several independent runs."""
    with _shown(progress) as shown:
        return judging.judge(
            _logs(logs),
            options,
            out=_path(out),
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, model_options),
            progress=shown,
        )


@python_words()
def grade(
    questions: Paths,
    options: grading.GradeOptions,
    *,
    out: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    store: str | Path = STORE,
    resume: bool = False,
    progress: Progress | None = None,
    **model_options: Unpack[ModelArguments],
) -> grading.GradeResult:
    """Grade answers against references."""
    with _shown(progress) as shown:
        return grading.grade(
            questions,
            options,
            out=_path(out),
            reading=ReadOptions(),
            run=RunOptions(Path(store), resume=resume),
            model=_model(model, model_options),
            progress=shown,
        )


@python_words()
def export_rubrics(rubrics: rubric_set.RubricSet, *, to: str) -> dict[str, str]:
    """Return the files of a rubric set in another tool's form, as texts by name.

    Args:
        to: A tool as in `pollex export --to`, for example `promptfoo`.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: No such tool is known.
    """
    return dict(export_texts(rubrics, to))


@python_words()
def export_scores(
    scores: Iterable[Score], rubrics: rubric_set.RubricSet, *, as_: str, logs: Iterable[Conversation] = ()
) -> list[dict[str, Any]]:
    """Return scores as another tool's requests, one a figure; conversations without figures have none.

    Args:
        as_: A tool as in `pollex score --as`, for example `langfuse`.
        logs: What was scored, for the ids of traces; without it a conversation's id is its session's.

    Raises:
        WrongUse: No such tool is known.
    """
    require_form(as_)
    return requests_of(as_, scores, rubrics, aims_of(logs)).requests


@python_words()
def diff_sets(before: str | Path | rubric_set.RubricSet, after: str | Path | rubric_set.RubricSet) -> SetDifference:
    """Compare two rubric sets, with what people edited in each."""
    return set_differences.diff_sets(_set(before), _set(after))


calibrate = calibrating.fit_calibrator
"""Fit a calibrator of a judge's answers to what people say, and keep it."""


def _logs(given: Data, options: ReadOptions | None = None) -> Logs:
    """Make logs from any source of conversations."""
    if isinstance(given, Logs):
        return given
    if isinstance(given, str | Path):
        return read_files(given, options=options)
    if isinstance(given, Mapping) or hasattr(given, "columns") or not isinstance(given, Iterable):
        return read_rows(cast(Rows, given), options=options)
    items: list[Any] = list(given)
    if items and all(isinstance(item, str | Path) for item in items):
        return read_files(items, options=options)
    if not items or any(isinstance(item, Conversation) for item in items):
        return logs_of(items)
    return read_rows(items, options=options)


def _set(rubrics: str | Path | rubric_set.RubricSet) -> Path | rubric_set.RubricSet:
    return rubrics if isinstance(rubrics, rubric_set.RubricSet) else Path(rubrics)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _model(model: str | BaseChatModel | None, given: ModelArguments) -> ModelOptions:
    """Return the options of a model, named or given as a chat model."""
    tracing_off()
    values: dict[str, Any] = dict(given)
    if price := values.pop("price", None):
        values["price"] = Price(read=price[0], written=price[1])
    limits = Limits(**{one.name: values.pop(one.name) for one in fields(Limits) if one.name in values})
    name, chat = (model, None) if isinstance(model, str | None) else (None, chat_model(model))
    return ModelOptions(model=name, chat=chat, limits=limits, **values)


@contextmanager
def _shown(progress: Progress | None) -> Iterator[Progress]:
    """Show progress as bars in a notebook; elsewhere nothing, unless a progress is given."""
    if progress is not None or "ipykernel" not in sys.modules:
        yield progress or NullProgress()
        return
    from pollex.notebook import NotebookProgress

    with NotebookProgress() as shown:
        yield shown
