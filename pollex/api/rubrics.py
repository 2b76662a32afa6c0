"""Rubrics from Python: read logs, learn, refit, score, evaluate, distill, and estimate a share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typing_extensions import Unpack

from pollex.api.common import logs_of, model_of, path_of, running, set_of
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress, Progress
from pollex.graphs.learn.state import LearnSettings, budget_of
from pollex.prompts.domain import DomainProfile
from pollex.reports.learning import learning_page
from pollex.rubrics import rubric_set
from pollex.selection.policies import DEFAULT as DEFAULT_POLICY
from pollex.services import distill as distilling
from pollex.services import learn as learning
from pollex.services import score as scoring
from pollex.services import set_differences
from pollex.services.arguments import ModelArguments, ReadArguments
from pollex.services.distill_figures import Hard
from pollex.services.exchange import export_texts
from pollex.services.inspect import Inspection, inspect_logs
from pollex.services.learn_result import LearnResult
from pollex.services.logs import Data, logs_given
from pollex.services.set_differences import SetDifference
from pollex.store.folder import STORE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

PAGE = "page of the run"
"""Where a learned set has what renders its report."""


class RubricSet(rubric_set.RubricSet):
    """A rubric set that can render its report."""

    @classmethod
    def of(cls, result: LearnResult) -> RubricSet:
        """Return the rubric set of a learning run, which knows what its report shows."""
        found = cls.model_construct(**{name: getattr(result.rubrics, name) for name in cls.model_fields})
        found._arrays = result.rubrics._arrays
        found.__dict__[PAGE] = result.page  # beside the fields: two sets are equal whatever run they are of
        return found

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report page; of a set that was loaded it shows what the set's file holds."""
        page = self.__dict__[PAGE]() if PAGE in self.__dict__ else learning_page(self)
        Path(path).write_text(page, encoding="utf-8")
        return Path(path)

    def export(self, *, to: str) -> dict[str, str]:
        """Return the files of the set in another tool's form; see `export_rubrics`."""
        return dict(export_texts(self, to))


def read_logs(sources: Data, **options: Unpack[ReadArguments]) -> Logs:
    """Read conversations from files, dicts or tables.

    Args:
        sources: Paths or globs of JSON lines, JSON, CSV or Parquet, or rows in memory.
        options: Fields of `ReadOptions`, for example `label_field="rating", positive=">=4"`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    return logs_given(sources, ReadOptions(**options))


def inspect(sources: Data, **options: Unpack[ReadArguments]) -> Inspection:
    """Describe what logs hold, before anything is learned from them.

    Args:
        sources: As for `read_logs`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    reading = ReadOptions(**options)
    return inspect_logs(logs_given(sources, reading), reading=reading, progress=NullProgress())


def learn(
    logs: Data,
    *,
    out: str | Path | None = None,
    domain: str | Path | DomainProfile | None = None,
    rubrics: str | Path | None = None,
    starter: str | Path | rubric_set.RubricSet | None = None,
    test_fraction: float = 0.5,
    budget: int | None = None,
    method: Literal["rubicon", "spur"] = "rubicon",
    policy: str = DEFAULT_POLICY,
    alpha: float | None = None,
    probability: str = "network",
    also: str = "",
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
        budget: Maximum number of SAT and of DSAT rubrics; None: ten in either list.
        method: `spur` for the baseline that revises one small set in place; it needs a model.
        policy: A name of `selection.policies`.
        alpha: Weight of sharpness; None for cross-validation.
        probability: What gives the probability of a thumb up: `network`, `best`, or the name of a model.
        also: Fields of other questions that people rated, separated by commas, where the labels are grades.
        model: An LLM's name (its key is taken from `OPENAI_API_KEY`) or a LangChain chat model; None for built-in.
        store: Folder where runs, answers and embeddings are kept.
        resume: Go on with the last unfinished run of the same data and settings.
        options: How a model is asked and called, for example `samples=5`.

    Raises:
        BadLabels: One class is missing or too small.
        WrongUse: There is no such policy or method, or something takes a model and none is named.
    """
    settings = LearnSettings(
        test_fraction=test_fraction,
        budget=budget_of(budget),
        method=method,
        policy=policy,
        alpha=alpha,
        probability=probability,
        also=also,
        seed=seed,
    )
    with running(store, progress, resume=resume) as run:
        result = learning.learn(
            logs_of(logs),
            out=path_of(out),
            domain=domain if isinstance(domain, DomainProfile) else path_of(domain),
            rubrics_from=rubrics,
            starter=None if starter is None else set_of(starter),
            settings=settings,
            model=model_of(model, options),
            **run,
        )
    return RubricSet.of(result)


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
    with running(store, progress, resume=resume) as run:
        result = learning.refit(
            logs_of(logs),
            set_of(rubrics),
            out=path_of(out),
            test_fraction=test_fraction,
            seed=seed,
            model=model_of(model, options),
            **run,
        )
    return RubricSet.of(result)


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
    with running(store, progress, resume=resume) as run:
        return scoring.score(
            logs_of(logs, labels_needed=False),
            set_of(rubrics),
            out=path_of(out),
            judges=judges,
            costs=costs,
            model=model_of(model, options),
            **run,
        )


def distill(
    logs: Data,
    rubrics: str | Path | rubric_set.RubricSet,
    *,
    out: str | Path | None = None,
    hard: Hard = "drop",
    least: float = distilling.LEAST,
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> distilling.DistillResult:
    """Teach a built-in judge to answer a set's rubrics from the model's answers in the store.

    Args:
        logs: The conversations that were judged, with their thumbs.
        out: Where the new set is written; None writes nothing: the result's `rubrics` scores as well.
        hard: What becomes of rubrics that can't be answered without the model: they go, or the model goes on.
        least: Correlation with the model's answers from which on a rubric can be.

    Raises:
        WrongUse: The set has no model, or too few of the conversations were judged by it.
    """
    with running(store, progress) as run:
        return distilling.distill(
            logs_of(logs),
            set_of(rubrics),
            out=path_of(out),
            hard=hard,
            least=least,
            model=model_of(model, options),
            **run,
        )


def diff_sets(before: str | Path | rubric_set.RubricSet, after: str | Path | rubric_set.RubricSet) -> SetDifference:
    """Compare two rubric sets, with what people edited in each."""
    return set_differences.diff_sets(set_of(before), set_of(after))
