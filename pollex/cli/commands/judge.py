"""`pollex judge`: one question about each conversation, answered by an ensemble; or answers graded by a reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli.options import (
    out_option,
    refuse_without_model,
    with_judge,
    with_reading,
    with_referencing,
    with_store,
    written,
)
from pollex.errors import WrongUse
from pollex.services.options import ReferenceOptions, RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions

LAST = "last"

TASK = (
    *("question", "options", "runs", "minimum", "panel", "variant", "domain", "instructions"),
    *("tau", "tau_agree", "tau_precision", "stop_early", "seed"),
)
"""What a run is begun with, and keeps."""

PROMPTED = ("variant", "domain", "instructions", "seed")
"""What only a model heeds: the embedded rater reads no prompt, and its runs are drawn from the conversation."""

TAKEN_UP = (
    *("logs", "resume", "out", "accepted", "for_humans", "answers", "ask"),
    *("store", "as_json", "dry_run", "langsmith"),
)
"""What counts where a run is only taken up for people's answers: nothing is read but these, and nobody else asked."""

TOLD = ("accepted", "for_humans", "ask")
THUMBS = ("label_field", "judge_field", "group_field", "messages_field", "positive", "negative", "on_duplicate")
REFERENCING = ("profile", "plain", "human", "human_field", "category_field", "page", "samples", "require", "value")


@click.command("judge")
@click.argument("logs", nargs=-1, metavar="[LOGS…]")
@click.option("--question", metavar="TEXT", help="What is asked about every conversation.")
@click.option(
    "--options", default="yes,no", show_default=True, metavar="A,B,…", help="Its answers; the first is a thumb up."
)
@click.option("--ensemble", "runs", default=7, show_default=True, metavar="N", help="Independent runs a conversation.")
@click.option("--minimum", type=int, metavar="N", help="Runs that must have answered; more than half if left out.")
@click.option("--panel", multiple=True, metavar="MODEL", help="Another model at the endpoint that takes turns.")
@click.option(
    "--variant",
    type=click.Choice(["v0", "v1", "v2", "v3", "v4"]),
    default="v4",
    show_default=True,
    help="Prompt: bare, with instructions, grounded, expected end state first, actual end state first too.",
)
@click.option("--domain", type=click.Path(path_type=Path), help="Domain profile (TOML).")
@click.option("--instructions", type=click.Path(path_type=Path), help="What human raters are told; else the profile.")
@click.option("--tau", type=float, metavar="NATS", help="A rating passes up to this diversity entropy.")
@click.option("--tau-agree", is_flag=True, help="It passes where at least N − 1 runs agree; the default.")
@click.option("--tau-precision", type=float, metavar="P", help="τ is fitted to this precision on the thumbs in LOGS.")
@click.option("--stop-early", is_flag=True, help="Ask no more runs once the verdict can no longer change.")
@click.option("--seed", default=0, show_default=True, help="Of the runs: each is sent another one.")
@out_option("verdicts.jsonl", "Verdicts; ends in .jsonl, .csv or .parquet.")
@click.option("--accepted", type=click.Path(path_type=Path), help="Conversations with a rating, ready for fine-tuning.")
@click.option("--for-humans", type=click.Path(path_type=Path), help="Conversations without one, by entropy.")
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    help="That file, with people's answers in it; with --reference: the answers to grade.",
)
@click.option("--ask", is_flag=True, help="Ask here and now, on this terminal, what the runs don't agree on.")
@click.option(
    "--resume", is_flag=False, flag_value=LAST, metavar="[RUN]", help="Go on with a run; without its id the last one."
)
@click.option("--dry-run", is_flag=True, help="Tell calls, tokens and, with prices, cost; ask nobody.")
@with_referencing
@with_reading
@with_judge
@with_store
def command(
    logs: tuple[str, ...],
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    resume: str | None,
    dry_run: bool,
    referencing: ReferenceOptions | None,
    **given: Any,
) -> int:
    """Rate conversations with one question, asked in several independent runs.

    Where the runs agree the conversation gets their rating, and goes to --accepted. Where they don't it gets NONE, and
    goes to --for-humans, the most contested first: write an answer into the field `answer` of its lines and hand the
    file back with --answers. A failed run is never a vote.

    With --reference LOGS are questions with references, as AlignBench has them, and --answers (or their field `answer`)
    are graded against these: on the dimensions of each task's type and as a whole, a row a question in --out, and means
    and distributions on a page beside it. A question's category tells the type; where the profile doesn't know it the
    model is asked, and may be unsure. A reference that is missing or contradicts its evidence gives no grade.

    \b
    Examples
      pollex judge logs.jsonl --question "Was the task completed?" --model gpt-5-mini --accepted good.jsonl
      pollex judge logs.jsonl --question "Was the task completed?" --for-humans people.jsonl
      pollex judge --resume judge-1 --answers people.jsonl --accepted good.jsonl
      pollex judge logs.jsonl --question "Did the user give up?" --options no,yes --tau-precision 0.9
      pollex judge logs.jsonl --question "Was the task completed?" --model M1 --panel M2 --stop-early --dry-run
      pollex judge logs.jsonl --question "How polite is it?" --options rude,plain,kind --model M --ask
      pollex answer questions.jsonl --model M1 --out answers.jsonl
      pollex judge questions.jsonl --reference --answers answers.jsonl --model M2
      pollex judge graded.csv --reference --profile english --plain --human-field rating --model M2 --out grades.csv
    """
    run = replace(run, resume=resume is not None, dry_run=dry_run)
    if referencing:
        return grade(logs, reading, run, model, referencing, resume, given["out"], given["answers"])
    if strange := written(*REFERENCING):
        raise WrongUse(f"{', '.join(strange)} without --reference", remedy="add it, or leave them out")
    refuse_idle(logs, resume, model, given["variant"])
    from pollex.services.judge import judge_command
    from pollex.services.options import JudgeOptions  # what judges is not needed for --help

    return judge_command(logs, reading, run, model, JudgeOptions(named=resume, **given))


def refuse_idle(logs: tuple[str, ...], resume: str | None, model: ModelOptions, variant: str) -> None:
    """Refuses what the ensemble, or a run that is taken up, would not heed."""
    if logs:
        refuse_without_model(model, *PROMPTED)
        if model.model and (strange := written("embedding_model")):
            raise WrongUse(f"{strange[0]} with a model, which embeds nothing here", remedy="leave it out")
        if variant == "v0" and (strange := written("instructions")):
            remedy = "leave them out, or choose v1 to v4: --variant"
            raise WrongUse(f"{strange[0]}: the prompt v0 has no room for instructions", remedy=remedy)
    elif resume and (strange := written(*(str(one.name) for one in command.params if one.name not in TAKEN_UP))):
        remedy = "leave them out, or name LOGS for a run of its own: answers that are known are not asked for again"
        raise WrongUse(f"{', '.join(strange)}: a run that is taken up keeps what it was begun with", remedy=remedy)


def grade(
    questions: tuple[str, ...],
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    referencing: ReferenceOptions,
    named: str | None,
    out: Path,
    answers: Path | None,
) -> int:
    """Grades answers against references."""
    from pollex.services.grade import OUT, reference_command  # what judges is not needed for --help

    if strange := written(*TASK, *TOLD, *THUMBS, "embedding_model"):
        raise WrongUse(f"{', '.join(strange)} and --reference don't go together", remedy="leave one of them out")
    if named not in (None, LAST):
        remedy = "write --resume behind the questions, or --resume last"
        raise WrongUse(f"with --reference a run is not resumed by its name ({named})", remedy=remedy)
    reading = replace(reading, category_field=referencing.category_field)
    return reference_command(questions, out if written("out") else OUT, answers, reading, run, model, referencing)
