"""Choose what people should label next, or keep a queue of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.errors import WrongUse
from pollex.runs.options import RunOptions
from pollex.usecases.families import (
    RUBRICS_HELP,
    JudgedLogOptions,
    Reading,
    StoreOptions,
    declare_output_option,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.label_queue import LabelQueue
    from pollex.services.logs import Data


@use_case("label next")
class LabelNext(JudgedLogOptions, UseCase[Any]):
    """List what to label next: that whose label would make the predictions of all surest.

    These are texts that can't be predicted yet, unlike each other and like many others. Those with
    a label are not listed, but count as known where they can be judged for free: give them, too. A
    .jsonl file has the conversations as the log has them, with an empty thumb: fill it in, and
    learn from both.

    With --questionnaire the file is a sheet: a row for each text and question, whose empty `answer`
    people fill in;
    `calibrate fit` reads it as judgments. In serve, a queue and a study take the same
    questionnaires.

    With judges, whom to ask about each; then a text that one has judged may be listed for another.

    \b
    Examples
      pollex label next logs.jsonl --rubrics rubrics.json --count 20 --out to-label.jsonl
      pollex learn logs.jsonl to-label.jsonl --set on_duplicate=last                 once the thumbs are filled in
      pollex label next logs.jsonl --out to-label.jsonl            no set yet: a random sample, the best to begin with
      pollex label next logs.jsonl --rubrics rubrics.json --judge ann --judge ben
      pollex label next logs.jsonl --for share --count 100 --out to-label.jsonl      needs no rubric set
      pollex label next logs.jsonl --for share --count 50 --questionnaire llm-rubric --out sheet.csv
      pollex label next --calibrator calibrator answers.csv judgments.csv --json
    """

    resumable = True
    plans = True
    logs: tuple[str, ...] = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS… | ANSWERS [JUDGMENTS]",
    )
    # what predicts
    rubrics: Path | None = opt(RUBRICS_HELP, default=None, group="Rubrics")
    calibrator: Path | None = opt(
        "A calibrator of `pollex calibrate fit`, instead of --rubrics.",
        default=None,
        metavar="DIR",
    )
    # what the labels are for
    purpose: Literal["model", "share"] = opt(
        "Labels that improve predictions (model), or a random sample for `pollex share` (share).",
        default="model",
        flag="for",
    )
    by: str | None = opt(
        "With --for share: draw --count conversations for each value of this field.",
        default=None,
        metavar="FIELD",
    )
    count: int = opt("Number of conversations to list.", default=20, least=1)
    # who can be asked, and what
    judges: tuple[str, ...] = opt(
        "Annotator who can be asked; repeatable, or `all`.",
        default=(),
        flag="judge",
        metavar="NAME",
    )
    questionnaire: str | None = opt(
        "With --out: write a sheet of these questions: llm-rubric, or TOML.",
        default=None,
        metavar="NAME|FILE",
    )
    out: Path | None = declare_output_option("Output file: .jsonl or .csv.", metavar="FILE")

    def carry_out(self, context: CallContext) -> Any:
        """See `services.label`."""
        # a random sample needs nothing that predicts
        if self.purpose == "share" or self.needs_none:
            return self.call("label.draw_for_share", context)

        self.require_one()
        if self.rubrics is not None:
            return self.call("label.choose_next_conversations", context)

        from pollex.services.hooks import find_option_service  # tables alone need it

        return self.call_at(find_option_service("label next", "calibrator"), context)

    def as_answers(self, context: CallContext) -> str:
        """Return the table of a judge's answers, for a calibrator."""
        return self.logs[0]

    def as_judgments(self, context: CallContext) -> str | None:
        """Return the table of people's answers, for a calibrator."""
        return self.logs[1] if len(self.logs) == 2 else None

    @property
    def needs_none(self) -> bool:
        """Whether nothing predicts yet: the first labels are of a random sample."""
        return self.rubrics is None and self.calibrator is None and not self.judges

    def plan(self, context: CallContext) -> Any:
        """See `UseCase.plan`; what asks no judge is done at once, as it costs nothing."""
        if self.rubrics and self.purpose == "model":
            return super().plan(context)
        return self.carry_out(context)

    def require_one(self) -> None:
        """Refuse what can't be carried out.

        Raises:
            WrongUse: Says what.
        """
        # neither, or both
        if (self.rubrics is None) == (self.calibrator is None):
            raise WrongUse(
                "what predicts is a rubric set or a calibrator",
                hint="give one of them",
                option="rubrics",
            )

        if len(self.logs) > 2 and self.calibrator is not None:
            raise WrongUse(
                "a calibrator takes ANSWERS and, if there are any, JUDGMENTS",
                hint="leave out the rest",
            )


@use_case("label queue")
class QueueLog(Reading, StoreOptions, UseCase["LabelQueue"]):
    """Keep conversations of a log as a queue that people label in `pollex serve`. No rubric set is needed.

    They are drawn at random, those with a thumb, too; a further queue of the same log begins with
    those that no earlier one drew. Learn from the answers with the log's thumbs:
    `--set label_sources=log,person`.

    \b
    Example
      pollex label queue logs.jsonl --count 50 && pollex serve
      pollex learn logs.jsonl --set label_sources=log,person
    """

    does = "label_queue.draw_label_queue"
    labels_needed = False
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    name: str | None = opt(
        "Name of the queue; that of the log if not set.",
        default=None,
    )
    count: int = opt("Number of conversations, at random.", default=200, least=1)
    seed: int = opt("Random seed.", default=0, place="rare", least=0)

    def as_run(self, context: CallContext) -> RunOptions:
        """Return where the queue is kept, with the command that made it."""
        return replace(context.run, store=Path(self.store))

    def as_number(self, context: CallContext) -> int:
        """Return how many conversations are drawn."""
        return self.count

    def as_name(self, context: CallContext) -> str:
        """Return the name of the queue."""
        from pollex.services.label_queue import name_queue_after  # numpy is not needed for --help

        return self.name or name_queue_after(self.logs)
