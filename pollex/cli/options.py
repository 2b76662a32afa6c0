"""Options that several verbs have, each family one decorator; the values arrive as one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollex.cli.session import announce_stop
from pollex.cli.settings import settings_of
from pollex.services.options import RunOptions
from pollex.store.folder import STORE, VARIABLE

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
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
    """Add the options for reading logs; they arrive as `reading: ReadOptions`."""
    return family(command, READING, "reading", _read_options)


def with_questions(command: F) -> F:
    """Add the options for reading questions; they arrive as `reading: ReadOptions`."""
    return family(command, QUESTIONS, "reading", _read_options)


def _read_options(**given: Any) -> ReadOptions:
    from pollex.formats.fields import ReadOptions

    return ReadOptions(**given | settings_of("reading"))


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
    """Add the options of runs; they arrive as `run: RunOptions`."""
    return family(command, RUN, "run", partial(RunOptions, on_interrupt=announce_stop))


def with_store(command: F) -> F:
    """Add the options for looking at runs; they arrive as `run: RunOptions`."""
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

SAMPLES = click.option(
    "--samples",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Calls per distribution where the endpoint gives no log-probabilities.",
)

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

NO_PROMPTS = click.option("--no-prompts", is_flag=True, help="Keep no prompts in the store, replies alone.")

MODEL = [
    _model_option("LLM for all roles; without it the built-in roles (no LLM) work."),
    URL,
    SAMPLES,
    *CALLS[1:2],
    *CALLS[4:6],
    click.option("--price", metavar="IN:OUT", help="Prices of a million prompt and completion tokens: 0.15:0.60."),
    NO_PROMPTS,
]
"""Of the roles on a model."""

JUDGE_CALLS = [URL, CALLS[1], CALLS[4], NO_PROMPTS]
"""Of the judge of a rubric set, which is asked as it was."""

RATER = [
    _model_option("LLM that is asked; without it the built-in rater answers."),
    URL,
    CLOSING,
    *CALLS,
    EMBEDDING,
    NO_PROMPTS,
]
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
    NO_PROMPTS,
]
"""Those that count where answers are graded."""

ENDPOINT = [_model_option("The model that is asked."), URL, *CALLS, NO_PROMPTS]
"""Those of them that count where a model is asked as its users ask it, and plays no role."""


def with_model(command: F) -> F:
    """Add the options of an LLM in all roles; they arrive as `model: ModelOptions`."""
    return family(command, MODEL, "model", _model_options)


def with_set_judge(command: F) -> F:
    """Add the options for calling a rubric set's judge; they arrive as `model: ModelOptions`."""
    return family(command, JUDGE_CALLS, "model", _model_options)


def with_logs(*names: str) -> Callable[[F], F]:
    """Add those options of reading logs; they arrive as `reading: ReadOptions`."""
    chosen = [option for option, name in zip(READING, names_of(READING), strict=True) if name in names]
    return lambda command: family(command, chosen, "reading", _read_options)


def names_of(options: list[Callable[[Any], Any]]) -> list[str]:
    """Return the names under which options arrive."""

    def taking() -> None:
        """Take the options."""

    for option in reversed(options):
        option(taking)
    return [str(one.name) for one in reversed(taking.__click_params__)]  # type: ignore[attr-defined]


def with_rater(command: F) -> F:
    """Add the options of a rating model; they arrive as `model: ModelOptions`."""
    return family(command, RATER, "model", _model_options)


def with_grader(command: F) -> F:
    """Add the options of a grading model; they arrive as `model: ModelOptions`."""
    return family(command, GRADER, "model", _model_options)


def with_endpoint(command: F) -> F:
    """Add the options of a model without roles; they arrive as `model: ModelOptions`."""
    return family(command, ENDPOINT, "model", _model_options)


def _model_options(**given: Any) -> ModelOptions:
    from pollex.gateway.budget import Limits, Price
    from pollex.gateway.langsmith import tracing_off, tracing_on
    from pollex.services.options import ModelOptions

    given = {name: value for name, value in given.items() if value is not None} | settings_of("model")
    (tracing_on if given.pop("langsmith", False) else tracing_off)()
    if price := given.pop("price", None):
        given |= dict(zip(("price_in", "price_out"), prices_of(price), strict=True))
    prices = given.pop("price_in", None), given.pop("price_out", None)
    if (prices[0] is None) != (prices[1] is None):
        raise click.UsageError("--price-in and --price-out go together")
    price = None if prices[0] is None or prices[1] is None else Price(read=prices[0], written=prices[1])
    names = {field.name for field in fields(Limits)} & given.keys()
    limited = {name: given.pop(name) for name in names}
    without = frozenset(part.strip() for part in given.pop("without", "").split(",") if part.strip())
    return ModelOptions(limits=Limits(price=price, **limited), without=without, **given)


def prices_of(text: str) -> tuple[float, float]:
    """Return the prices of a million prompt and completion tokens, written as `0.15:0.60`."""
    return two_numbers(text, "two prices such as 0.15:0.60", "--price")


def two_numbers(text: str, what: str, hint: str) -> tuple[float, float]:
    """Return two numbers with a colon between them."""
    try:
        first, second = (float(part) for part in text.split(":"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not {what}", param_hint=hint) from None
    return first, second


def scoring_settings() -> dict[str, Any]:
    """Return the settings of scoring: `costs`, where they were given."""
    given = settings_of("scoring").get("costs")
    return {} if given is None else {"costs": two_numbers(given, "two costs such as 5:1", "--set costs")}


def family(command: F, options: list[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> F:
    """Collect the values of a group of options in one argument of the command."""

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
    """Make the option of a verb's output file; it arrives as `out: Path`."""
    return click.option("--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help=said)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show all figures, notes and calls.")
logs_argument = click.argument("logs", nargs=-1, required=True, metavar="LOGS…")
rubrics_option = click.option(
    "--rubrics", type=click.Path(path_type=Path), required=True, help="A rubric set that `pollex learn` wrote."
)
