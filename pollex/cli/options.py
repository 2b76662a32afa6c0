"""Options that several verbs have, each family one decorator; the values arrive as one object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollex.cli.session import announce_stop
from pollex.cli.settings import settings_of
from pollex.cli.typed import typed_command
from pollex.services.options import RunOptions
from pollex.store.folder import STORE, VARIABLE

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


F = TypeVar("F", bound=Callable[..., Any])

READING = [
    click.option("--id-field", metavar="FIELD", help="Field of the conversation's id, such as metadata.id."),
    click.option(
        "--label-field",
        metavar="FIELD",
        multiple=True,
        help="Field of the label: thumbs or ratings. Others after it are shown beside rubrics: retried:down, stars.",
    ),
    click.option("--judge-field", metavar="FIELD", help="Field of the annotator who gave the label."),
    click.option("--group-field", metavar="FIELD", help="Field of a group that is never split, such as user_id."),
    click.option("--comment-field", metavar="FIELD", help="Field of what people wrote with the thumb."),
    click.option("--messages-field", metavar="FIELD", help="Field of the list of turns."),
    click.option("--positive", metavar="RULE", help="Values that are positive: '>=4', or 'solved,great'."),
    click.option("--negative", metavar="RULE", help="Values that are negative: '<=2', or 'failed,bad'."),
    click.option("--max-bad", default=0, show_default=True, metavar="N", help="Maximum number of malformed rows."),
]
"""Fields of `ReadOptions`, under their names."""
LOGS = ("label_field", "positive", "negative", "id_field", "messages_field", "max_bad")
"""Those of them that every verb has that reads logs."""


def _read_options(**given: Any) -> ReadOptions:
    from pollex.formats.fields import ReadOptions

    label, *signals = given.pop("label_field", ()) or (None,)
    return ReadOptions(**given | {"label_field": label, "signals": tuple(signals)} | settings_of("reading"))


RUN = [
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(STORE),
        envvar=VARIABLE,
        show_default=True,
        help="Folder of the store.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line."),
    click.option("--resume", is_flag=True, help="Resume the last unfinished run of this command."),
    click.option("--dry-run", is_flag=True, help="Show calls, tokens and, with prices, cost; make no call."),
]


def with_run(command: F) -> F:
    """Add the options of runs; they arrive as `run: RunOptions`."""
    return family(
        command, RUN, "run", lambda **given: RunOptions(**given, on_interrupt=announce_stop, typed=typed_command())
    )


def with_store(command: F) -> F:
    """Add the options for looking at runs; they arrive as `run: RunOptions`."""
    return family(command, RUN[:2], "run", lambda **given: RunOptions(**given, resume=False))


def _model_option(said: str) -> Callable[[Any], Any]:
    return click.option("--model", envvar="POLLEX_MODEL", help=said)


URL = click.option(
    "--base-url",
    envvar=["POLLEX_BASE_URL", "OPENAI_BASE_URL"],
    metavar="URL",
    help="Address of an OpenAI-compatible server. The key is read from OPENAI_API_KEY only.",
)

SAMPLES = click.option(
    "--samples",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Calls for one distribution if the endpoint gives no log-probabilities.",
)

CONCURRENCY = click.option("--concurrency", default=64, show_default=True, help="Maximum number of concurrent calls.")
MAX_CALLS = click.option("--max-calls", type=int, metavar="N", help="Stop after N calls; continue with --resume.")
BATCH = click.option(
    "--batch",
    "by_batch",
    is_flag=True,
    help="Leave calls to the provider's batches, at half the price; the command ends, and --resume fetches.",
)

MODEL = [
    _model_option("LLM for all roles; default: built-in (no LLM)."),
    URL,
    SAMPLES,
    CONCURRENCY,
    MAX_CALLS,
    click.option("--max-cost", type=float, metavar="AMOUNT", help="Stop at this cost; needs --price."),
    click.option(
        "--price", metavar="IN:OUT", help="Prices of a million prompt and completion tokens, such as 0.15:0.60."
    ),
    BATCH,
]
"""Of the roles on a model."""

JUDGE_CALLS = [URL, CONCURRENCY, MAX_CALLS, BATCH]
"""Of the judge of a rubric set, which is asked as it was."""

RATER = [_model_option("LLM to ask; default: built-in (no LLM)."), URL, MAX_CALLS, BATCH]
"""Those that count where one question is asked about conversations."""

GRADER = [_model_option("LLM to ask; required."), URL, SAMPLES, MAX_CALLS, BATCH]
"""Those that count where answers are graded."""

PAPER_SCALE = "likert-domain"

ENDPOINT = [_model_option("Model to ask; required."), URL, CONCURRENCY, MAX_CALLS]
"""Those of them that count where a model plays a user or an assistant."""

RESPONDENT = [*ENDPOINT, BATCH]
"""Those of them that count where a model is asked as its users ask it, and plays no role."""


def with_model(command: F) -> F:
    """Add the options of an LLM in all roles; they arrive as `model: ModelOptions`."""
    return family(command, MODEL, "model", _model_options)


def with_set_judge(command: F) -> F:
    """Add the options for calling a rubric set's judge; they arrive as `model: ModelOptions`."""
    return family(command, JUDGE_CALLS, "model", _model_options)


def with_logs(*more: str, usual: tuple[str, ...] = LOGS) -> Callable[[F], F]:
    """Add the usual options of reading logs, and others; they arrive as `reading: ReadOptions`."""
    names = (*usual, *more)
    chosen = [option for option, name in zip(READING, names_of(READING), strict=True) if name in names]
    return lambda command: family(command, chosen, "reading", _read_options)


def names_of(options: list[Callable[[Any], Any]]) -> list[str]:
    """Return the names under which options arrive."""

    def taking() -> None:
        """Take the options."""

    for option in reversed(options):
        option(taking)
    return [str(one.name) for one in reversed(getattr(taking, "__click_params__", []))]


def with_rater(command: F) -> F:
    """Add the options of a rating model; they arrive as `model: ModelOptions`."""
    return family(command, RATER, "model", _model_options)


def with_grader(command: F) -> F:
    """Add the options of a grading model; they arrive as `model: ModelOptions`."""
    return family(command, GRADER, "model", _model_options)


def with_respondent(command: F) -> F:
    """Add the options of a model that is asked by itself; they arrive as `model: ModelOptions`."""
    return family(command, RESPONDENT, "model", _model_options)


def with_endpoint(command: F) -> F:
    """Add the options of a model without roles; they arrive as `model: ModelOptions`."""
    return family(command, ENDPOINT, "model", _model_options)


def _model_options(**given: Any) -> ModelOptions:
    from pollex.gateway.langsmith import tracing_off, tracing_on
    from pollex.services.options import ModelOptions

    given = {name: value for name, value in given.items() if value is not None} | settings_of("model")
    if given.get("prompts") == "paper":
        given.setdefault("scale", PAPER_SCALE)
    (tracing_on if given.pop("langsmith", False) else tracing_off)()
    price = given.pop("price", None)
    return ModelOptions.of(price=None if price is None else prices_of(price), **given)


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
    """Return the settings of scoring that were given: `costs`, `wide` and `cascade`."""
    given = settings_of("scoring")
    if "costs" in given:
        given["costs"] = two_numbers(given["costs"], "two costs such as 5:1", "--set costs")
    return given | ({"cascade": Path(given["cascade"])} if "cascade" in given else {})


def family(command: F, options: list[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> F:
    """Collect the values of a group of options in one argument of the command."""

    @wraps(command)
    def gathered(**values: Any) -> Any:
        mine = {key: values.pop(key) for key in keys}
        return command(**values, **{name: make(**mine)})

    keys, decorated = names_of(options), gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[return-value]


def out_option(default: str, said: str) -> Callable[[Any], Any]:
    """Make the option of a verb's output file; it arrives as `out: Path`."""
    return click.option("--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help=said)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show all figures, notes and calls.")
logs_argument = click.argument("logs", nargs=-1, required=True, metavar="LOGS…")
rubrics_option = click.option(
    "--rubrics", type=click.Path(path_type=Path), required=True, help="A rubric set that `pollex learn` wrote."
)
