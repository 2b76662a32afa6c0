"""Rubric sets and logs from Python."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Literal, TypedDict

from typing_extensions import Unpack

from pollex.conversations.logs import Logs
from pollex.formats.fields import DuplicateConversationChoice, RedactionChoice
from pollex.outputs import write_text
from pollex.reports.learning import render_learning_page
from pollex.rubrics import rubric_set
from pollex.services.hooks import get_set_forms
from pollex.services.learn_result import LearnResult
from pollex.services.logs import Data, read_given_logs
from pollex.usecases.families import read_options

REPORT_DATA_KEY = "page of the run"
"""Where a learned set has what renders its report."""


class RubricSet(rubric_set.RubricSet):
    """A rubric set that can render its report."""

    @classmethod
    def of(cls, result: LearnResult) -> RubricSet:
        """Return the rubric set of a learning run, which knows what its report shows."""
        # the fields were checked once, and aren't again
        rubric_set = cls.model_construct(
            **{name: getattr(result.rubrics, name) for name in cls.model_fields}
        )
        # arrays stand beside the fields
        rubric_set._arrays = result.rubrics._arrays
        # beside the fields: two sets are equal whatever run they are of
        rubric_set.__dict__[REPORT_DATA_KEY] = result.page

        return rubric_set

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report page; of a set that was loaded it shows what the set's file holds."""
        if REPORT_DATA_KEY in self.__dict__:
            page = self.__dict__[REPORT_DATA_KEY]()
        else:
            page = render_learning_page(self)

        write_text(Path(path), page)
        return Path(path)

    def export(self, *, to: str) -> dict[str, str]:
        """Return the files of the set in another tool's form, such as `promptfoo`."""
        return dict(get_set_forms().texts(self, to))


def read_logs(sources: Data, **options: Unpack[ReadArguments]) -> Logs:
    """Read conversations from files, dicts or tables.

    Args:
        sources: Paths or globs of JSON lines, JSON, CSV or Parquet, or rows in memory.
        options: Fields of `ReadOptions`, for example `label_field="rating", positive=">=4"`.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
    """
    return read_given_logs(sources, read_options(SimpleNamespace(**options)))


class ReadArguments(TypedDict, total=False):
    """Keyword arguments for reading logs; see `ReadOptions`."""

    id_field: str | None
    label_field: str | None
    judge_field: str | None
    group_field: str | None
    comment_field: str | None
    comments: bool
    messages_field: str | None
    columns: str | dict[str, str]
    roles: str | dict[str, str | list[str]]
    positive: str | None
    negative: str | None
    max_bad: int
    encoding: str
    on_duplicate: DuplicateConversationChoice
    thumbs: Literal["last", "worst", "each"] | None
    pairs: bool
    label_sources: str
    redact: RedactionChoice | None
