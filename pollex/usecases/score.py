"""New conversations, scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.usecases.families import (
    RUBRICS_HELP,
    JudgedLogOptions,
    declare_output_option,
    parse_two_numbers,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.services.dry_run import CallPlan
    from pollex.services.logs import Data
    from pollex.services.score_result import ScoreResult
    from pollex.usecases.families import Rubrics


def parse_path_or_address(text: str | Path) -> str | Path:
    """Return a path, or an address such as `s3://bucket/scores/`, which stays a text."""
    if "://" in str(text):
        return text
    return Path(text)


def declare_setting(help_text: str, **more: Any) -> Any:
    """Declare a rare setting."""
    return opt(help_text, default=None, place="setting", **more)


@use_case("score")
class ScoreLogs(JudgedLogOptions, UseCase["ScoreResult"]):
    """Score conversations with a rubric set, one row a conversation.

    Filter by `decision`: positive where the probability of a thumb up is at least .5, or as `--set
    costs=5:1` has it where a bad conversation taken for good costs five times as much as a good one
    taken for bad.

    A row has id, netsat, label (by NetSAT alone, as in the paper; `differs` says why it is not the
    decision), confident (outside the uncertainty window), probability of a thumb up with its
    entropy, the answers, and
    guaranteed: whether it is outside the window with a guarantee as well; empty where the set has
    no such window. A conversation that could not be scored has its outcome in place of figures, and
    the exit code is 3.

    \b
    Examples
      pollex score new.jsonl --rubrics rubrics.json --out scores.parquet
      pollex score new.jsonl --rubrics rubrics.json --out - | jq .netsat
      pollex score - --rubrics rubrics.json --out scores.csv < new.jsonl
      pollex score new.jsonl --rubrics rubrics.json --judge anna --judge ben
      pollex score traces.jsonl --rubrics rubrics.json --as langfuse --out scores.json
      pollex score 's3://bucket/logs/*.parquet' --rubrics rubrics.json --out s3://bucket/scores/ --engine ray
    """

    does = "score.score"
    resumable = True
    goes_on_in_browser = True
    plans = True
    labels_needed = False
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    out: Path | str | None = declare_output_option(
        "Output file: .parquet, .jsonl or .csv. With --engine: a folder, also s3://….",
        typed="scores.parquet",
        metavar="PATH",
        parse=parse_path_or_address,
    )
    judges: tuple[str, ...] | Sequence[str] = opt(
        "Also predict the label of this annotator; repeatable, or `all`.",
        default=(),
        flag="judge",
        metavar="NAME",
    )
    form: str | None = opt(
        "Write requests for another tool: langfuse, phoenix, mlflow, langsmith, otel, opik or openinference.",
        default=None,
        flag="as",
        metavar="TOOL",
        group="Output",
    )
    # large logs: into a folder, and in several processes
    engine: str | None = opt(
        "Score into a folder of parts, by `ray` or `one`: logs of any size.",
        default=None,
        metavar="NAME",
    )
    workers: int | None = opt(
        "Processes, where no model is asked; one a core for a large log if not set.",
        default=None,
        least=1,
    )
    address: str | None = opt(
        "With --engine ray: of a running cluster; default: one is started here.",
        default=None,
        metavar="A",
    )
    # what a decision costs, and who is asked where a label is in doubt
    costs: tuple[float, float] | None = declare_setting(
        "Costs of a bad conversation taken for good, and of a good one taken for bad; 1:1 if not set.",
        parse=parse_two_numbers,
        metavar="pair such as 5:1",
    )
    cascade: Path | str | None = declare_setting(
        "Rubric set of a model, which is asked where a distilled set leaves a label in doubt."
    )
    # what is sent elsewhere, stored, and written
    events: str | None = declare_setting(
        "OpenTelemetry collector that each score is sent to: http://localhost:4318."
    )
    no_texts: bool | None = declare_setting(
        "Store answers and scores, but nothing of what was said, and no prompts."
    )
    wide: bool | None = declare_setting(
        "Give each rubric's value a column of its own, as .csv always has."
    )
    trace: Literal["batch", "each"] | None = declare_setting(
        "Spans of a run that asks no model: one a batch, or two for each conversation."
    )

    @property
    def into_parts(self) -> bool:
        """Whether scores go into a folder of parts."""
        return self.engine is not None or "://" in str(self.out)

    @property
    def data(self) -> bool:
        """Whether scores go to standard output."""
        return str(self.out) == "-"

    def carry_out(self, context: CallContext) -> ScoreResult:
        """See `services.score.score`; into parts a room scores."""
        # a dry run counts calls, which is alike for a file and a folder
        service = "pollex.services.score.score"
        if self.into_parts and not context.run.dry_run:
            from pollex.services.hooks import find_option_service  # parts alone need it

            service = find_option_service("score", "engine")

        result: ScoreResult = self.call_at(service, context)
        return result

    def as_out(self, context: CallContext) -> object:
        """Return a file, or the name of a folder."""
        if not self.into_parts:
            return self.taken("out")
        if context.run.dry_run:
            return None
        # the usual name of a file, without its ending, is that of the folder
        if str(self.out) == "scores.parquet":
            return "scores"
        return str(self.out)
