"""Two samples of conversations beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pollex.errors import WrongUse
from pollex.usecases.families import (
    RUBRICS_HELP,
    GroupOptions,
    JudgedLogOptions,
    declare_page_option,
    get_store_folder,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.conversations.logs import Logs
    from pollex.services.compare import CompareResult
    from pollex.usecases.families import Rubrics


@use_case("compare")
class CompareSamples(GroupOptions, JudgedLogOptions, UseCase["CompareResult"]):
    """Compare samples of conversations: which is better, in which rubrics, and how sure that is.

    Samples are files, runs of the store (score-3), or with --by the values of a field of the logs.
    The same ids on both sides are compared as pairs. Labels at random on both sides give the
    difference of the share of good ones.

    \b
    Examples
      pollex compare before.jsonl after.jsonl --rubrics rubrics.json
      pollex compare logs.jsonl --by release --baseline 1.0 --rubrics rubrics.json --page compare.html
      pollex compare score-3 score-4 --rubrics rubrics.json --json
    """

    does = "compare.compare"
    logs: tuple[str | Path | Logs, ...] = opt(
        kw_only=False,
        place="argument",
        metavar="A B… | LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, group="Rubrics")
    # one log cut by a field, in place of several
    by: str | None = opt(
        "Cut the logs by a field: release, started:week, country.",
        default=None,
        metavar="FIELD",
    )
    baseline: str | None = opt(
        "The value of --by that others are compared with; the first if not set.",
        default=None,
        metavar="VALUE",
    )
    # labels beside the logs
    labels: Path | str | None = opt(
        "Labels by id, with `drawn`.",
        default=None,
        metavar="FILE",
    )
    drawn: Literal["random", "voluntary"] | None = opt(
        "How labels without `drawn` were drawn.",
        default=None,
    )
    see: float = opt(
        "The difference to plan for.", default=0.05, metavar="SHARE", least=0.001, most=0.9
    )
    page: Path | str | None = declare_page_option()

    def __post_init__(self) -> None:
        """Refuse one sample alone, before anything is read. Raises WrongUse."""
        super().__post_init__()
        # one log that was read already, or is cut by a field, holds several samples
        if len(self.logs) == 1 and isinstance(self.logs[0], str | Path) and self.by is None:
            raise WrongUse(
                "one sample can't be compared",
                hint="name two files or runs, or a field",
                option="by",
            )

    def as_samples(self, context: CallContext) -> Sequence[str | Path] | Logs:
        """Return files or runs; or one log that is read already.

        Raises:
            WrongUse: There are several of those.
        """
        # what is no path holds conversations already
        paths = []
        for log in self.logs:
            if isinstance(log, str | Path):
                paths.append(log)

        read = []
        for log in self.logs:
            if not isinstance(log, str | Path):
                read.append(log)

        if read and len(self.logs) > 1:
            raise WrongUse(
                "several logs that are read already",
                hint="give their files, or one `Logs` and `by`",
            )

        from pollex.services.readings import resolve_named_sample  # not needed for --help

        if read:
            return read[0]
        return [resolve_named_sample(path, get_store_folder(self)) for path in paths]
