"""A gate for build servers, closed by differences and drift."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

    from pollex.services.check import CheckResult
    from pollex.usecases.families import Rubrics

GATE_FAILED_EXIT_CODE = 4


@use_case("check")
class CheckRelease(GroupOptions, JudgedLogOptions, UseCase["CheckResult"]):
    """Check new conversations against a baseline; exit with 4 if a condition fails.

    A condition fails where its limit is reached by more than chance. Conditions: 'mean(p) drops by
    0.03' (p, netsat, or a rubric's id; drops or rises), 'share drops by 0.05' (labels at random),
    'drift(p) above 0.25' (population stability), 'unlike above 0.2' (share without a counterpart in
    the baseline). Rubrics that are mended by their state in the store fail it, too, where they hold
    more often again, and are open from then on: no condition is needed.

    \b
    Examples
      pollex check new.jsonl --against old.jsonl --rubrics rubrics.json --fail-if 'mean(p) drops by 0.03'
      pollex check today.jsonl --against old.jsonl --rubrics rubrics.json --again --fail-if 'mean(p) drops by 0.03'
      pollex check new.jsonl --against score-3 --rubrics rubrics.json --fail-if 'drift(p) above 0.25' --junit check.xml
    """

    does = "check.check"
    shown_with = ("github",)
    new: str | Path = opt(kw_only=False, place="argument", metavar="NEW")
    against: str | Path = opt(
        "Files or a run that NEW is compared with.",
        kw_only=False,
        metavar="BASELINE",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    # when it fails
    fail_if: tuple[str, ...] | Sequence[str] = opt(
        "See above. Repeatable.",
        default=(),
        metavar="CONDITION",
    )
    again: bool = opt(
        "NEW grows and is checked again and again: no look raises false alarms.",
        default=False,
    )
    strict: bool = opt("Also fail where the data can't decide yet.", default=False)
    # labels beside the logs, and what is written
    labels: Path | str | None = opt(
        "Labels by id, with `drawn`.",
        default=None,
        metavar="FILE",
    )
    page: Path | str | None = declare_page_option()
    junit: Path | str | None = opt(
        "Also write JUnit's XML.",
        default=None,
        metavar="FILE",
    )
    github: bool = opt(
        "Print GitHub's annotations, and append to the summary of the step.",
        default=False,
        door="terminal",
    )

    @property
    def logs(self) -> tuple[str, ...]:
        """Both samples, as other use cases have their logs."""
        return (str(self.new), str(self.against))

    def as_new(self, context: CallContext) -> str | Path:
        """Return the new conversations; those of a log that was brought, too."""
        return resolve_sample(self, self.new)

    def as_against(self, context: CallContext) -> str | Path:
        """Return the baseline, likewise."""
        return resolve_sample(self, self.against)

    def carry_out(self, context: CallContext) -> CheckResult:
        """See `services.check.check`; append the table to the summary of a step of GitHub's."""
        result: CheckResult = self.call(self.does, context)
        # the build server names the file of the step's summary
        if self.github and (step := os.environ.get("GITHUB_STEP_SUMMARY")):
            from pollex.formats.gates import format_verdict_table

            with Path(step).open("a", encoding="utf-8") as file:
                file.write(format_verdict_table(result.table))

        return result

    def exit_code(self, result: CheckResult) -> int | None:
        """Return 4 if a condition failed."""
        return GATE_FAILED_EXIT_CODE if result.failed else None

    def as_xml(self, context: CallContext) -> Any:
        """Return where JUnit's XML goes."""
        return self.taken("junit")


def resolve_sample(asked: CheckRelease, source: str | Path) -> str | Path:
    """Return a sample of a check: `log:NAME` as its file."""
    from pollex.services.readings import resolve_named_sample  # not needed for --help

    return resolve_named_sample(source, get_store_folder(asked))
