"""`pollex check`: a gate for build servers, closed by differences and drift."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import rubrics_option, with_logs, with_run, with_set_judge
from pollex.cli.settings import set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions

FAILED = 4
"""Exit code of a gate that is shut."""


@click.command("check", cls=Verb)
@click.argument("new", metavar="NEW")
@click.option("--against", required=True, metavar="BASELINE", help="Files or a run that NEW is compared with.")
@rubrics_option
@click.option("--fail-if", multiple=True, required=True, metavar="CONDITION", help="See above. Repeatable.")
@click.option("--again", is_flag=True, help="NEW grows and is checked again and again: no look raises false alarms.")
@click.option("--strict", is_flag=True, help="Also fail where the data can't decide yet.")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Labels by id, with `drawn`.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Also write a page (.html).")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write JUnit's XML.")
@click.option("--github", is_flag=True, help="Print GitHub's annotations, and append to the summary of the step.")
@with_logs("group_field")
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "on_duplicate", "thumbs", "pairs", "judge_field"),
    *("embedding_model", "require", "deadline", "max_wait", "max_cost", "price", "retry_refused", "langsmith"),
)
def command(
    new: str,
    against: str,
    rubrics: Path,
    fail_if: tuple[str, ...],
    again: bool,
    strict: bool,
    labels: Path | None,
    page: Path | None,
    junit: Path | None,
    github: bool,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
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
    from pollex.cli.check_output import show_annotations, show_check
    from pollex.services.check import CheckResult, check

    verdicts: list[CheckResult] = []

    def shown(screen: cli.Screen, found: CheckResult) -> None:
        verdicts.append(found)
        show_check(screen, found)
        if github:
            show_annotations(found, os.environ.get("GITHUB_STEP_SUMMARY"))

    gate = partial(check, new, against, rubrics, fail_if=fail_if, again=again, strict=strict, labels=labels)
    bound = partial(gate, page=page, xml=junit, reading=reading, run=run, model=model)
    code = cli.run(bound, shown, as_json=run.as_json)
    return FAILED if verdicts[0].failed else code
