"""Rubrics from conversations with thumbs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.runs.options import LEARN_SETTINGS_BY_SYSTEM_NAME, require_model_of_system
from pollex.usecases.families import (
    CommentOptions,
    GroupOptions,
    LabelSourceOptions,
    Reading,
    RubricWriterOptions,
    declare_output_option,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.prompts.domain import DomainProfile
    from pollex.rubrics.learning.settings import LearnSettings
    from pollex.runs.options import ModelOptions
    from pollex.services.learn_result import LearnResult
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics


@use_case("learn")
class LearnRubrics(
    CommentOptions,
    GroupOptions,
    LabelSourceOptions,
    Reading,
    RubricWriterOptions,
    UseCase["LearnResult"],
):
    """Learn rubrics from conversations with thumbs up and down.

    Writes the rubric set and, beside it, report.html: what was learned, how well it does on
    held-out conversations, and why each rubric was kept or dropped. Where report.html is another
    set's, it is NAME-report.html.

    With --model the model's rubrics and the built-in ones compete in one pool; each is answered by
    whom it belongs to, and no call is made more. `--set without=built-in` leaves the built-in ones
    out, `--set prompts=paper` asks with the prompts and on the scale of RUBICON's paper, and `--as
    rubicon` does all as the paper does.

    \b
    Examples
      pollex learn logs.jsonl
      pollex learn 'logs/*.parquet' --domain support.toml --out support.json
      pollex learn ratings.csv --label-field stars --positive '>=4' --negative '<=2'
      pollex learn logs.jsonl --group-field user_id --test-fraction 0.3
      pollex learn logs.jsonl --rubrics-from generic       rubrics written by hand, for comparison
      pollex learn logs.jsonl --as rubicon --model NAME --dry-run
      pollex learn logs.jsonl --as adapted --model NAME --domain support.toml    a general set in your domain's words
      pollex learn logs.jsonl --starter other.json         few labels, and a set from another product
      pollex learn logs.jsonl --from learn-3:deduplicate --rubrics-from pool.toml
      pollex learn logs.jsonl --review pool                edit the rubrics before they are judged
      pollex learn logs.jsonl --resume                     after a kill or Ctrl-C
    """

    does = "learn.learn"
    resumable = True
    goes_on_in_browser = True
    looks_at_its_place = True
    plans = True
    shown_with = ("verbose",)
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    out: Path | str | None = declare_output_option(typed="rubrics.json")
    domain: Path | str | DomainProfile | None = opt(
        "Domain profile (TOML); `pollex domain new` writes one.",
        default=None,
        group="Data",
    )
    # rubrics that are there already, and where a run goes on
    rubrics: str | Path | None = opt(
        "Rubrics written by hand, or a bundled set's name: all are fitted, none learned.",
        default=None,
        door="python",
    )
    rubrics_from: str | None = opt(
        "Fit existing rubrics instead: a TOML, autorubric or promptfoo file, or a bundled set's name.",
        default=None,
        metavar="FILE",
        group="Rubrics",
        door="terminal",
    )
    start: str | None = opt(
        "Go on from this run after this node; --rubrics-from is then the pool as it is to be.",
        default=None,
        flag="from",
        metavar="RUN:NODE",
        group="Rubrics",
    )
    review: Literal["pool"] | None = opt(
        "Wait for you at the pool: at the terminal, or with a file that you edit and --resume.",
        default=None,
        group="Rubrics",
        door="terminal",
    )
    starter: Path | Rubrics | None = opt(
        "A rubric set learned elsewhere: with few labels, both together predict better.",
        default=None,
        metavar="SET",
    )
    # how many labels are held out, and how many rubrics chosen
    test_fraction: float | None = opt(
        "Share held out for testing; else all labels teach, and five folds test.  "
        "[default: 0.5 with a model and 200 labels of each class]",
        default=None,
        group="Rubrics",
    )
    budget: int | None = opt(
        "Maximum number of rubrics of each side, whoever wrote them.  [default: 15 in all]",
        default=None,
        group="Rubrics",
    )
    system: str | None = opt(
        "Settings of a system of RUBICON's paper, for what isn't given; `--dry-run` shows them.",
        default=None,
        flag="as",
        presets=LEARN_SETTINGS_BY_SYSTEM_NAME,
        door="terminal",
    )
    # how rubrics are written, and which labels teach
    method: Literal["rubicon", "spur"] = opt(
        "`rubicon` selects from a growing pool; `spur` lets a model revise one small set.",
        default="rubicon",
        group="Rubrics",
    )
    also: str = opt(
        "Other questions that people rated, separated by commas: where labels are grades, these are learned, too.",
        default="",
        metavar="FIELDS",
    )
    seed: int = opt("Random seed.", default=0, group="Question", place="rare")
    # how they are chosen, and what gives the probability
    policy: str | None = opt(
        "Selection policy: greedy (the default), correctness, brute_force, ucb, separation.",
        default=None,
        place="setting",
    )
    probability: str | None = opt(
        "Model of the probability: network (the default); best of those compared; or a name.",
        default=None,
        place="setting",
    )
    alpha: float | None = opt(
        "Weight of sharpness in the selection loss; cross-validated if not set.",
        default=None,
        place="setting",
    )
    mini_batch: int | None = opt(
        "Reasons that the summarizer sees at once; 20 if not set.",
        default=None,
        place="setting",
    )
    adapt: Literal["yes", "no"] = opt(
        "Have a model adapt the rubrics of --rubrics-from to the domain: keep, reword or leave out each.",
        default="no",
        place="setting",
    )
    verbose: bool = opt(
        "Show all figures, notes and calls.",
        default=False,
        group="Output",
        door="terminal",
    )

    def as_rubrics_from(self, context: CallContext) -> str | Path | None:
        """Return rubrics that are fitted and not learned."""
        if self.rubrics_from is None:
            return self.rubrics
        return self.rubrics_from

    def as_adapt(self, context: CallContext) -> bool:
        """Return whether rubrics that are given are adapted to the domain first."""
        return self.adapt == "yes"

    def as_review(self, context: CallContext) -> bool:
        """Return whether the run waits for people at the pool."""
        return self.review == "pool"

    def as_people(self, context: CallContext) -> object:
        """Return who edits the pool now; None if nobody sits at the terminal."""
        return context.editor()

    def as_settings(self, context: CallContext) -> LearnSettings:
        """Return the settings of the run."""
        # not for --help
        from pollex.rubrics.learning.settings import (
            DEFAULT_HELD_OUT_SHARE,
            LearnSettings,
            make_rubric_budget_per_side,
        )

        # options that are settings by the same name
        names = ("method", "policy", "alpha", "probability", "also", "seed", "mini_batch")
        # a pool that is edited or gone on from was written by a run, and isn't given
        of_pool = self.review is not None or ":" in (self.start or "")
        model = self.as_model(context)
        written = of_pool or not self.as_rubrics_from(context)
        share = self.test_fraction
        # what is given is fitted: half of the labels measure it
        if share is None and not written:
            share = DEFAULT_HELD_OUT_SHARE
        elif share is None and model.name is None:
            # without a model all labels teach, and folds measure
            share = 0.0
        elif share is None and (self.method == "spur" or model.settings.prompts == "paper"):
            # as the paper does
            share = DEFAULT_HELD_OUT_SHARE

        # the paper chooses up to the budget
        fills = model.settings.prompts == "paper"
        return LearnSettings(
            test_fraction=share,
            budget=make_rubric_budget_per_side(self.budget),
            fills=fills,
            **self.given(*names),
        )

    def as_model(self, context: CallContext) -> ModelOptions:
        """Return the options of the model, which some systems need."""
        model = super().as_model(context)
        # some of the paper's systems need a model
        if self.system is not None:
            require_model_of_system(self.system, model.name)
        return model
