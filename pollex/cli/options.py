"""Options that several verbs have, each family one decorator; the values arrive as one object."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollex.cli.session import announce_stop
from pollex.errors import WrongUse
from pollex.services.options import RunOptions
from pollex.store.place import STORE, VARIABLE

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.rubrics.records import JudgeRecord
    from pollex.services.options import ModelOptions


F = TypeVar("F", bound=Callable[..., Any])

FILES = [
    click.option("--max-bad", default=0, show_default=True, metavar="N", help="Bad rows to put up with."),
    click.option("--encoding", default="utf-8-sig", show_default=True, help="Of text files."),
]
"""Of reading rows of whatever."""

READING = [
    click.option("--id-field", metavar="FIELD", help="Field of the conversation's id; dots reach inside."),
    click.option("--label-field", metavar="FIELD", help="Field of the thumb or rating."),
    click.option("--judge-field", metavar="FIELD", help="Field of who gave the label."),
    click.option(
        "--group-field", metavar="FIELD", help="Field of what must stay on one side of a split, e.g. user_id."
    ),
    click.option("--messages-field", metavar="FIELD", help="Field of the turns."),
    click.option("--positive", metavar="RULE", help="What is a thumb up: '>=4', or spellings as 'solved,great'."),
    click.option("--negative", metavar="RULE", help="What is a thumb down: '<=2', or spellings."),
    *FILES,
    click.option(
        "--on-duplicate",
        type=click.Choice(["error", "first", "last"]),
        default="error",
        show_default=True,
        help="Different conversations under one id.",
    ),
    click.option(
        "--thumbs",
        type=click.Choice(["last", "worst", "each"]),
        help="Several thumbs on a conversation that differ: which counts, or each its own conversation.",
    ),
    click.option(
        "--pairs", is_flag=True, help="Chosen and rejected answers of preference data are thumbs up and down."
    ),
]
"""Fields of `ReadOptions`, under their names."""

QUESTIONS = [
    click.option("--id-field", metavar="FIELD", help="Field of the question's id."),
    click.option("--category-field", metavar="FIELD", help="Field of the task's category, or type; else `category`."),
    *FILES,
]
"""Those of them that count where questions are read."""


def with_reading(command: F) -> F:
    """Adds the options of reading logs; they arrive as `reading: ReadOptions`."""
    return family(command, READING, "reading", _read_options)


def with_questions(command: F) -> F:
    """Adds the options of reading questions; they arrive as `reading: ReadOptions`."""
    return family(command, QUESTIONS, "reading", _read_options)


def _read_options(**given: Any) -> ReadOptions:
    from pollex.formats.fields import ReadOptions

    return ReadOptions(**given)


RUN = [
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(STORE),
        envvar=VARIABLE,
        show_default=True,
        help="Folder of all that is kept.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line."),
    click.option("--resume", is_flag=True, help="Go on with the last run of this command that didn't end."),
    click.option("--dry-run", is_flag=True, help="Tell calls, tokens and, with prices, cost; ask nobody."),
]


def with_run(command: F) -> F:
    """Adds the options of runs; they arrive as `run: RunOptions`."""
    return family(command, RUN, "run", partial(RunOptions, on_interrupt=announce_stop))


def with_store(command: F) -> F:
    """Adds the options of looking at runs, as `run: RunOptions`."""
    return family(command, RUN[:2], "run", lambda **given: RunOptions(**given, resume=False))


def _model_option(said: str) -> Callable[[Any], Any]:
    return click.option("--model", envvar="POLLEX_MODEL", help=said)


URL = click.option(
    "--base-url",
    envvar=["POLLEX_BASE_URL", "OPENAI_BASE_URL"],
    metavar="URL",
    help="Of any server that speaks OpenAI's protocol. The key is taken from OPENAI_API_KEY alone.",
)

CLOSING = click.option(
    "--closing",
    type=click.Choice(["system", "user", "merged"]),
    default="system",
    show_default=True,
    help="Who says the task after the conversation; 'merged' for chat templates that want strict turns.",
)

EMBEDDING = click.option(
    "--embedding-model", metavar="NAME", help="Another sentence-transformers model, a name or a path."
)

ROLES = [
    click.option(
        "--elicitation",
        type=click.Choice(["batched", "independent"]),
        default="batched",
        show_default=True,
        help="Ten rubrics a call with reasons, or one question and one token a call.",
    ),
    click.option(
        "--samples",
        default=1,
        show_default=True,
        type=click.IntRange(min=1),
        help="Calls a distribution, where there are no logprobs.",
    ),
    click.option("--require", type=click.Choice(["logprobs"]), help="Fail rather than fall back on samples."),
    click.option("--without", default="", metavar="PARTS", help="Parts of prompts to leave out: ds, cdp, domain."),
    click.option("--canary/--no-canary", default=True, show_default=True, help="Ask a question of known answer too."),
    click.option("--straight-lining/--no-straight-lining", default=True, show_default=True, help="Mark it as suspect."),
    CLOSING,
    click.option(
        "--value",
        type=click.Choice(["auto", "expected", "mode"]),
        default="auto",
        show_default=True,
        help="What of an answer NetSAT adds up.",
    ),
]
"""Of the roles on a model: how they ask."""

CALLS = [
    click.option("--retry-refused", is_flag=True, help="Ask again what the model refused in an earlier run."),
    click.option("--concurrency", default=64, show_default=True, help="Most calls out at once."),
    click.option("--deadline", default=120.0, show_default=True, metavar="SECONDS", help="Of a single call."),
    click.option(
        "--max-wait",
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait for an endpoint that is away.",
    ),
    click.option("--max-calls", type=int, metavar="N", help="Stop after so many calls; --resume goes on."),
    click.option("--max-cost", type=float, metavar="AMOUNT", help="Stop at this cost; needs prices."),
    click.option("--price-in", type=float, metavar="AMOUNT", help="Of a million prompt tokens."),
    click.option("--price-out", type=float, metavar="AMOUNT", help="Of a million completion tokens."),
    click.option("--langsmith", is_flag=True, help="Let LangSmith trace; it is off whatever the environment says."),
]
"""Of all calls, whatever they ask."""

MODEL = [
    _model_option("An LLM for the roles; without it the embedded roles work."),
    URL,
    *ROLES,
    *CALLS,
    EMBEDDING,
]

RATER = [_model_option("LLM that is asked; without it the built-in rater answers."), URL, CLOSING, *CALLS, EMBEDDING]
"""Those that count where one question is asked about conversations."""

GRADER = [
    _model_option("LLM that grades."),
    URL,
    click.option(
        "--samples", default=1, show_default=True, type=click.IntRange(min=1), help="Calls a grade without logprobs."
    ),
    click.option("--require", type=click.Choice(["logprobs"]), help="Fail rather than fall back on samples."),
    click.option(
        "--value",
        type=click.Choice(["auto", "expected", "mode"]),
        default="auto",
        show_default=True,
        help="The grade is the one written, or the mean of its distribution (expected).",
    ),
    CLOSING,
    *CALLS,
]
"""Those that count where answers are graded."""

ENDPOINT = [_model_option("The model that is asked."), URL, *CALLS]
"""Those of them that count where a model is asked as its users ask it, and plays no role."""


def with_model(command: F) -> F:
    """Adds the options of an LLM; they arrive as `model: ModelOptions`."""
    return family(command, MODEL, "model", _model_options)


def with_rater(command: F) -> F:
    """Adds the options of a model that is asked one question; they arrive as `model: ModelOptions`."""
    return family(command, RATER, "model", _model_options)


def with_grader(command: F) -> F:
    """Adds the options of a model that grades; they arrive as `model: ModelOptions`."""
    return family(command, GRADER, "model", _model_options)


def with_endpoint(command: F) -> F:
    """Adds the options of a model that plays no role; they arrive as `model: ModelOptions`."""
    return family(command, ENDPOINT, "model", _model_options)


def _model_options(**given: Any) -> ModelOptions:
    from pollex.gateway.budget import Limits, Price
    from pollex.gateway.langsmith import tracing_off, tracing_on
    from pollex.services.options import ModelOptions

    (tracing_on if given.pop("langsmith") else tracing_off)()
    prices = given.pop("price_in"), given.pop("price_out")
    if (prices[0] is None) != (prices[1] is None):
        raise click.UsageError("--price-in and --price-out go together")
    price = None if prices[0] is None or prices[1] is None else Price(read=prices[0], written=prices[1])
    limited = {name: given.pop(name) for name in ("concurrency", "deadline", "max_wait", "max_calls", "max_cost")}
    without = frozenset(part.strip() for part in given.pop("without", "").split(",") if part.strip())
    embedding = given.pop("embedding_model", None)
    chosen = {"embedding_model": embedding} if embedding else {}
    return ModelOptions(limits=Limits(price=price, **limited), without=without, **given, **chosen)


def written(*names: str) -> list[str]:
    """Those of the running command's options that somebody wrote into the command line, of parameters of these names.

    What stands there and does nothing is to be refused, not passed over.
    """
    context = click.get_current_context()
    wanted = (parameter for parameter in context.command.params if parameter.name in names)
    source = click.core.ParameterSource.COMMANDLINE
    return [_spelt(one, context) for one in wanted if context.get_parameter_source(str(one.name)) is source]


def _spelt(option: click.Parameter, context: click.Context) -> str:
    """An option as somebody wrote it: `--canary`, or `--no-canary`."""
    negated = option.secondary_opts and context.params[str(option.name)] is False
    return (option.secondary_opts if negated else option.opts)[0]


def family(command: F, options: list[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> F:
    """Gathers a family's values into one argument of the command."""

    @wraps(command)
    def gathered(**values: Any) -> Any:
        mine = {key: values.pop(key) for key in keys}
        return command(**values, **{name: make(**mine)})

    decorated = gathered
    for option in reversed(options):
        decorated = option(decorated)
    parameters: list[click.Parameter] = decorated.__click_params__[-len(options) :]  # type: ignore[attr-defined]
    keys = [parameter.name for parameter in parameters]
    return decorated  # type: ignore[return-value]


def out_option(default: str, said: str) -> Callable[[Any], Any]:
    """Where a verb writes what it makes; it arrives as `out: Path`."""
    return click.option("--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help=said)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show all figures, notes and calls.")
logs_argument = click.argument("logs", nargs=-1, required=True, metavar="LOGS…")
rubrics_option = click.option(
    "--rubrics", type=click.Path(path_type=Path), required=True, help="A rubric set that `pollex learn` wrote."
)


ASKED = ("elicitation", "samples", "without", "canary", "straight_lining", "closing", "value")
"""How a model is asked: what a rubric set remembers."""

CALLED = (
    *("base_url", "require", "retry_refused", "concurrency", "deadline", "max_wait"),
    *("max_calls", "max_cost", "price_in", "price_out"),
)
"""How a model is called, whatever it is asked."""

EMBEDDING_NAME = "embedding_model"


def refuse_without_model(model: ModelOptions, *others: str) -> None:
    """Refuses what only a model would heed.

    Args:
        others: Further parameters of the running command that it heeds for a model alone.

    Raises:
        WrongUse: Such an option was written, and no model is named.
    """
    if model.model is None and (idle := written(*ASKED, *CALLED, *others)):
        raise WrongUse(f"{', '.join(idle)} without a model", remedy="name one: --model, or leave them out")


def refuse_for(record: JudgeRecord, *, embeds: bool = False) -> None:
    """Refuses what the judge of a rubric set doesn't heed: it answers as it did when θ was fitted.

    Args:
        embeds: Whether texts are embedded beside what a model does.

    Raises:
        WrongUse: Such an option was written.
    """
    if record.built_in:
        # Its own embedding model may be named: one that isn't bundled is not loaded before.
        told = click.get_current_context().params.get(EMBEDDING_NAME) == record.options.get(EMBEDDING_NAME)
        judge, names = "the embedded judge of the rubric set", [*ASKED, *CALLED, *([] if told else [EMBEDDING_NAME])]
    else:
        judge, names = f"the judge {record.name}", [name for name in ASKED if name in (*record.options, "value")]
        names += [] if embeds else [EMBEDDING_NAME]
    if idle := written(*names):
        raise WrongUse(
            f"{', '.join(idle)}: {judge} answers as it did when θ was fitted",
            remedy="leave them out, or fit θ to a model's answers: `pollex refit … --model M`",
        )
