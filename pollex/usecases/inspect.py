"""What files of logs hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.usecases.families import Commented, Grouped, Judged, Reading
from pollex.usecases.use_case import Crew, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.conversations.logs import Logs
    from pollex.services.inspect import Inspection
    from pollex.services.logs import Data, Sources


@use_case("inspect")
class InspectLogs(Commented, Judged, Grouped, Reading, UseCase["Inspection"]):
    """Tell what files hold before anything is learned from them.

    That is formats, fields, labels with their spellings, scores with their sources, roles, lengths, images, languages,
    duplicates, bad rows by cause, and two conversations as they were read.

    \b
    Examples
      pollex inspect logs.jsonl
      pollex inspect export/ --label-field feedback.score --positive 1 --negative 0
      pollex inspect spans.jsonl annotations.jsonl --json
    """

    does = "inspect.inspect_logs"
    sources: tuple[str, ...] | Data = opt(kw_only=False, place="argument", metavar="LOGS…")

    @property
    def logs(self) -> tuple[str, ...] | Data:
        """The same as other use cases have."""
        return self.sources

    def as_sources(self, crew: Crew) -> Sources | Logs:
        """Return files, or logs."""
        return self.as_logs(crew)
