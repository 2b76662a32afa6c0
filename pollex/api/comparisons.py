"""Comparisons from Python: two samples of conversations, and a gate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typing_extensions import Unpack

from pollex.api.common import model_of, path_of, running, set_of
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.graphs.context import Progress
from pollex.rubrics.rubric_set import RubricSet
from pollex.services import check as checking
from pollex.services import compare as comparing
from pollex.services.arguments import ModelArguments
from pollex.store.folder import STORE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def compare(
    *logs: str | Path | Logs,
    rubrics: str | Path | RubricSet,
    by: str | None = None,
    baseline: str | None = None,
    labels: str | Path | None = None,
    drawn: Literal["random", "voluntary"] | None = None,
    see: float = 0.05,
    page: str | Path | None = None,
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> comparing.CompareResult:
    """Compare samples of conversations by scores, and by random labels if both have them.

    Args:
        logs: Two or more files or runs, `compare("a.jsonl", "b.jsonl", rubrics=…)`; with `by`, files or one `Logs`
            that a field cuts into samples.
        rubrics: A rubric set or its file.
        by: A field of the logs, such as `release` or `started:week`.
        baseline: The value of `by` that the others are compared with; None: the first.
        labels: A file of labels by conversation id.
        drawn: How labels were drawn whose rows don't say it.
        see: The difference to plan for.

    Raises:
        WrongUse: There are fewer than two samples, or no such value.
    """
    paths = [one for one in logs if not isinstance(one, Logs)]
    read = [one for one in logs if isinstance(one, Logs)]
    if read and len(logs) > 1:
        raise WrongUse("several logs that are read already", remedy="give their files, or one `Logs` and `by`")
    with running(store, progress) as run:
        return comparing.compare(
            read[0] if read else paths,
            set_of(rubrics),
            by=by,
            baseline=baseline,
            labels=path_of(labels),
            drawn=drawn,
            see=see,
            page=path_of(page),
            model=model_of(model, options),
            **run,
        )


def check(
    new: str | Path,
    against: str | Path,
    rubrics: str | Path | RubricSet,
    *,
    fail_if: Sequence[str],
    again: bool = False,
    strict: bool = False,
    labels: str | Path | None = None,
    page: str | Path | None = None,
    junit: str | Path | None = None,
    model: BaseChatModel | None = None,
    store: str | Path = STORE,
    progress: Progress | None = None,
    **options: Unpack[ModelArguments],
) -> checking.CheckResult:
    """Check new conversations against a baseline; the result's `failed` tells whether the gate is shut.

    Args:
        new: File, glob, or run of the store.
        against: The baseline, likewise.
        fail_if: Conditions, such as `mean(p) drops by 0.03`; see `pollex check --help`.
        again: Whether `new` grows and is checked again and again: intervals hold at every look.
        strict: Whether a condition that the data leave open fails, too.

    Raises:
        WrongUse: A condition can't be read, or can't be looked at again and again.
    """
    with running(store, progress) as run:
        return checking.check(
            new,
            against,
            set_of(rubrics),
            fail_if=fail_if,
            again=again,
            strict=strict,
            labels=path_of(labels),
            page=path_of(page),
            xml=path_of(junit),
            model=model_of(model, options),
            **run,
        )
