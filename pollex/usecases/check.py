"""A gate for build servers, closed by differences and drift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import ByJudge, Grouped, page_option, path_of, rubrics_option, set_of
from pollex.usecases.use_case import Crew, UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.services.check import CheckResult
    from pollex.usecases.families import Rubrics

FAILED = 4


@use_case("check")
class CheckRelease(Grouped, ByJudge, UseCase["CheckResult"]):
    """Check new conversations against a baseline; exit with 4 if a condition fails.

    A condition fails where its limit is reached by more than chance. Conditions: 'mean(p) drops by 0.03' (p, netsat,
    or a rubric's id; drops or rises), 'share drops by 0.05' (labels at random), 'drift(p) above 0.25' (population
    stability), 'unlike above 0.2' (share without a counterpart in the baseline).

    \b
    Examples
      pollex check new.jsonl --against old.jsonl --rubrics rubrics.json --fail-if 'mean(p) drops by 0.03'
      pollex check today.jsonl --against old.jsonl --rubrics rubrics.json --again --fail-if 'mean(p) drops by 0.03'
      pollex check new.jsonl --against score-3 --rubrics rubrics.json --fail-if 'drift(p) above 0.25' --junit check.xml
    """

    shown_with = ("github",)
    new: str | Path = opt(kw_only=False, place="argument", metavar="NEW")
    against: str | Path = opt("Files or a run that NEW is compared with.", kw_only=False, metavar="BASELINE")
    rubrics: Path | Rubrics = rubrics_option(kw_only=False)
    fail_if: tuple[str, ...] | Sequence[str] = opt("See above. Repeatable.", metavar="CONDITION")
    again: bool = opt("NEW grows and is checked again and again: no look raises false alarms.", default=False)
    strict: bool = opt("Also fail where the data can't decide yet.", default=False)
    labels: Path | str | None = opt("Labels by id, with `drawn`.", default=None, metavar="FILE")
    page: Path | str | None = page_option()
    junit: Path | str | None = opt("Also write JUnit's XML.", default=None, metavar="FILE")
    github: bool = opt(
        "Print GitHub's annotations, and append to the summary of the step.", default=False, door="terminal"
    )

    def exit_code(self, result: CheckResult) -> int:
        """Return 4 if a condition failed."""
        return FAILED if result.failed else 0

    def carry_out(self, crew: Crew) -> CheckResult:
        """See `services.check.check`."""
        from pollex.services.check import check

        return check(
            self.new,
            self.against,
            set_of(self.rubrics),
            fail_if=self.fail_if,
            again=self.again,
            strict=self.strict,
            labels=path_of(self.labels),
            page=path_of(self.page),
            xml=path_of(self.junit),
            **self.common(crew),
        )
