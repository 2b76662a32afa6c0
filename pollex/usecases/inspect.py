"""What files of logs hold."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import (
    AnnotatorOptions,
    ColumnReaderOptions,
    CommentOptions,
    GroupOptions,
    Reading,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.conversations.logs import Logs
    from pollex.prompts.domain import DomainProfile
    from pollex.services.inspect import Inspection
    from pollex.services.logs import Data, Sources


@use_case("inspect")
class InspectLogs(
    CommentOptions,
    AnnotatorOptions,
    GroupOptions,
    Reading,
    ColumnReaderOptions,
    UseCase["Inspection"],
):
    """Tell what files hold before anything is learned from them.

    A sentence each for shapes, roles, the thumb with all its values, what is left out, comments,
    tools, languages, times, groups and other fields; two conversations as they were read; and the
    command to learn from them. Where nobody knows the columns, a way to read them is tried and
    proposed. Where none is found, a model that you name is asked once for one, by names of columns
    and disguised values.

    \b
    Examples
      pollex inspect logs.jsonl
      pollex inspect export/ --label-field feedback.score --positive 1 --negative 0
      pollex inspect spans.jsonl annotations.jsonl --json
      pollex inspect tickets.csv --columns conversation=chat_nr,role=absender,text=nachricht --roles user=Kunde
      pollex inspect 'sqlite:support.db?SELECT * FROM messages'
      pollex inspect odd.jsonl --model MODEL --dry-run
    """

    does = "inspect.inspect_logs"
    plans = True
    shown_with = ("sources", "given_options")
    sources: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )

    domain: Path | str | DomainProfile | None = opt(
        "Domain profile (TOML), whose table [log] says which column is what.",
        default=None,
        group="Data",
    )

    @property
    def logs(self) -> tuple[str, ...] | Data:
        """The same as other use cases have."""
        return self.sources

    @property
    def given_options(self) -> dict[str, object]:
        """The options of reading that differ from the usual, as they are typed."""
        from pollex.formats.mapping import format_name_pairs  # what reads is not needed for --help

        # left out: options of the model, and the logs, which the command names anyway
        of_model = {option.name for option in fields(ColumnReaderOptions)} | {"sources"}
        names = (option for option in fields(self) if option.name not in of_model)
        typed = {}
        for option in names:
            if (value := getattr(self, option.name)) not in (option.default, None, ()):
                typed[option.name] = value

        # pairs are shown as one types them, not as a table
        return typed | {
            name: format_name_pairs(typed[name]) for name in ("columns", "roles") if name in typed
        }

    def as_sources(self, context: CallContext) -> Sources | Logs:
        """Return files, or logs."""
        return self.as_logs(context)
