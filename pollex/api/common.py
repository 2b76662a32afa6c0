"""What all functions of the Python API share."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.gateway.langsmith import tracing_off
from pollex.graphs.context import NullProgress, Progress
from pollex.rubrics import rubric_set
from pollex.services.arguments import ModelArguments
from pollex.services.logs import Data, logs_given
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.scorer import chat_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.language_models import BaseChatModel


def logs_of(given: Data, *, labels_needed: bool = True) -> Logs:
    """Return logs from whatever holds conversations, read as usual."""
    return logs_given(given, ReadOptions(labels_needed=labels_needed))


def set_of(rubrics: str | Path | rubric_set.RubricSet) -> Path | rubric_set.RubricSet:
    """Return a rubric set, or its file."""
    return rubrics if isinstance(rubrics, rubric_set.RubricSet) else Path(rubrics)


def path_of(given: str | Path | None) -> Path | None:
    """Return a path where one is given."""
    return None if given is None else Path(given)


def model_of(model: str | BaseChatModel | None, given: ModelArguments) -> ModelOptions:
    """Return the options of a model, named or given as a chat model."""
    tracing_off()
    name, chat = (model, None) if isinstance(model, str | None) else (None, chat_model(model))
    return ModelOptions.of(model=name, chat=chat, **given)


class Common(TypedDict):
    """Arguments of every use case that runs something."""

    reading: ReadOptions
    run: RunOptions
    progress: Progress


@contextmanager
def shown_progress(progress: Progress | None) -> Iterator[Progress]:
    """Yield where progress goes: as bars in a notebook, and elsewhere to what is given."""
    if progress is not None or "ipykernel" not in sys.modules:
        yield progress or NullProgress()
        return
    from pollex.api.notebook import NotebookProgress  # it draws, and is needed in notebooks only

    with NotebookProgress() as shown:
        yield shown


@contextmanager
def running(store: str | Path, progress: Progress | None, *, resume: bool = False) -> Iterator[Common]:
    """Yield what every use case takes; progress is shown as bars in a notebook, and elsewhere where one is given."""
    with shown_progress(progress) as shown:
        yield Common(reading=ReadOptions(), run=RunOptions(Path(store), resume=resume), progress=shown)
