"""Options that several use cases have: reading logs, asking a model, keeping a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pollex.runs.options import ModelOptions, RunOptions
from pollex.store.folder import DEFAULT_STORE_FOLDER, LOG_COPY_PREFIX, STORE_ENVIRONMENT_VARIABLE
from pollex.usecases.use_case import CallContext, declare_options, opt

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pollex.conversations.logs import Logs
    from pollex.formats.fields import ReadOptions
    from pollex.graphs.context import Progress
    from pollex.rubrics.rubric_set import RubricSet
    from pollex.services.logs import Data, Sources

    Rubrics = Path | str | RubricSet

PAPER_SCALE_NAME = "likert-domain"


def parse_two_numbers(text: str | tuple[float, float]) -> tuple[float, float]:
    """Return two numbers with a colon between them, such as 0.15:0.60."""
    # Python callers may give the two numbers themselves
    first, second = (float(part) for part in text.split(":")) if isinstance(text, str) else text
    return first, second


def parse_pairs(
    pairs_or_text: str | Mapping[str, object] | tuple[tuple[str, str], ...],
) -> tuple[tuple[str, str], ...]:
    """Return pairs of what was given as NAME=VALUE,NAME=VALUE or as a table."""
    from pollex.formats.mapping import parse_name_pairs  # what reads is not needed for --help

    return parse_name_pairs(pairs_or_text)


def join_rule(several: tuple[str, ...]) -> str | None:
    """Return a rule that was given in several options; a value with a comma and a space is one."""
    # a single value stays as it is typed
    if len(several) < 2:
        return several[0] if several else None
    # commas part values, so that a value with a comma is quoted
    return ",".join(f'"{part}"' if ", " in part and '"' not in part else part for part in several)


def split_words(text: str) -> list[str]:
    """Return the words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


@declare_options
class StoreOptions:
    """Where runs are kept."""

    store: Path | str = opt(
        "Folder of the store.",
        default=Path(DEFAULT_STORE_FOLDER),
        env=(STORE_ENVIRONMENT_VARIABLE,),
        group="Output",
    )
    progress: Progress | None = opt(
        "What is told how far the work is.",
        default=None,
        door="python",
    )

    def as_run(self, context: CallContext) -> RunOptions:
        """Return where the store is."""
        return RunOptions(Path(self.store))


@declare_options
class ResumableRunOptions(StoreOptions):
    """Where a run is kept, and whether it goes on."""

    resume: bool = opt(
        "Resume the last unfinished run of this command.",
        default=False,
        group="Output",
    )

    def as_run(self, context: CallContext) -> RunOptions:
        """Return the options of the run."""
        return replace(context.run, store=Path(self.store), resume=self.resume)


def declare_reading_option(help_text: str, **more: Any) -> Any:
    """Declare how logs are read."""
    return opt(help_text, default=None, group="Data", **more)


@declare_options
class Reading:
    """How files of logs are read; see `ReadOptions`."""

    # where the parts of a conversation stand
    id_field: str | None = declare_reading_option(
        "Field of the conversation's id, such as metadata.id.",
        place="rare",
        metavar="FIELD",
    )
    label_field: tuple[str, ...] | str | None = declare_reading_option(
        "Field of the label: thumbs or ratings. Others after it are shown beside rubrics: retried:down, stars.",
        metavar="FIELD",
    )
    messages_field: str | None = declare_reading_option(
        "Field of the list of turns.",
        place="rare",
        metavar="FIELD",
    )
    columns: str | dict[str, str] | None = declare_reading_option(
        "Which column is what: conversation=chat_nr,role=absender,text=nachricht,label=note,time=zeit.",
        metavar="PART=COLUMN,…",
        parse=parse_pairs,
    )
    roles: str | dict[str, str] | None = declare_reading_option(
        "Whose turns the log's names mean: user=Kunde,assistant=Bot; none=X is no turn, * any other name.",
        metavar="ROLE=NAME,…",
        parse=parse_pairs,
    )
    # what its label means
    positive: tuple[str, ...] | str | None = declare_reading_option(
        "Values that are positive: '>=4', or 'solved,great'; repeatable, * for any other word.",
        metavar="RULE",
    )
    negative: tuple[str, ...] | str | None = declare_reading_option(
        "Values that are negative: '<=2', or 'failed,bad'; repeatable.",
        metavar="RULE",
    )
    unrated: str | None = declare_reading_option(
        "Values that are no rating: 'later,not now'.",
        place="rare",
        metavar="WORDS",
    )
    max_bad: int = opt(
        "Maximum number of malformed rows.",
        default=0,
        group="Data",
        metavar="N",
    )
    # who gave it, and which conversations belong together
    judge_field: str | None = declare_reading_option(
        "Field of the annotator who gave the label.",
        place="setting",
    )
    group_field: str | None = declare_reading_option(
        "Field of what must stay on one side of a split, such as user_id.",
        place="setting",
    )
    comment_field: str | None = declare_reading_option(
        "Field of what people wrote with the thumb.",
        place="setting",
    )
    comments: bool | None = declare_reading_option(
        "Whether to read what people wrote with the thumb; yes if not set.",
        place="setting",
    )
    # how texts are decoded, and which of several rows or thumbs count
    encoding: str | None = declare_reading_option(
        "Text encoding of the files; utf-8 if not set.",
        place="setting",
    )
    redact: Literal["yes", "names"] | None = declare_reading_option(
        "Put placeholders in place of mail addresses, links, numbers and keys; names: of names and places, too.",
        place="setting",
    )
    on_duplicate: Literal["error", "first", "last"] | None = declare_reading_option(
        "Which of different conversations with the same id to use.",
        place="setting",
    )
    thumbs: Literal["last", "worst", "each"] | None = declare_reading_option(
        "Which of several thumbs on a conversation to use.",
        place="setting",
    )
    query_seconds: int | None = declare_reading_option(
        "Seconds that a query of a database has; 60 if not set.",
        place="setting",
    )
    pairs: bool | None = declare_reading_option(
        "Read preference data: chosen is positive, rejected negative.",
        place="setting",
    )

    labels_needed: ClassVar[bool] = True
    """Whether a label that can't be read is an error to callers in Python."""

    def as_reading(self, context: CallContext) -> ReadOptions:
        """Return the options for reading."""
        return read_options(self)

    def as_logs(self, context: CallContext) -> Sources | Logs:
        """Return files; or what else holds conversations, as logs."""
        logs: Data = getattr(self, "logs")  # noqa: B009 - each use case says how they are given
        # a tuple has the names of files, as a terminal gives them
        if isinstance(logs, tuple):
            return read_named_sources(logs, get_store_folder(self))

        from pollex.services.logs import read_given_logs

        return read_given_logs(
            logs,
            replace(self.as_reading(context), labels_needed=self.labels_needed),
        )


def read_options(use_case: object) -> ReadOptions:
    """Return how a use case reads its files; for what it doesn't say, as usual."""
    from pollex.formats.fields import ReadOptions  # what reads is not needed for --help

    # three sources, the nearest first: options, the log in the store, the domain profile
    of_log = read_options_of_named_log(use_case)
    options = {}
    for option in fields(ReadOptions):
        options[option.name] = getattr(use_case, option.name, None)

    # what was said when a log was brought holds where nothing else is said now
    options |= {name: value for name, value in of_log.items() if options.get(name) in (None, (), 0)}
    # a log that was brought with columns or roles needs no profile
    table = {} if of_log.get("columns") or of_log.get("roles") else read_log_table(use_case)
    for name in ("columns", "roles"):
        options[name] = parse_pairs(options[name] or table.get(name, {}))

    # a rule that was given in parts becomes one
    for side in ("positive", "negative"):
        if isinstance(several := options[side], tuple):
            options[side] = join_rule(several)

    # the first field is the label, all others are shown beside rubrics
    if isinstance(options["label_field"], tuple):
        label, *signals = options["label_field"] or (None,)
        options |= {"label_field": label, "signals": tuple(signals)}

    # whether columns and roles come from the rubric set alone
    table_is_of_log = (
        bool(table)
        and getattr(use_case, "domain", None) is None
        and not getattr(use_case, "columns", None)
    )
    typed_options = {}
    for name, value in options.items():
        if value is not None:
            typed_options[name] = value

    return ReadOptions(**typed_options | {"kept_mapping": table_is_of_log})


def get_store_folder(use_case: object) -> Path:
    """Return the store's folder of a use case, as its option has it."""
    return Path(
        getattr(use_case, "store", None)
        or os.environ.get(STORE_ENVIRONMENT_VARIABLE)
        or DEFAULT_STORE_FOLDER
    )


def read_options_of_named_log(use_case: object) -> Mapping[str, object]:
    """Return how the logs are read that were brought to the store under a name, as `log:NAME`."""
    logs = getattr(use_case, "logs", None)
    if not has_named_log(logs):
        return {}

    from pollex.services.readings import read_named_options  # logs that were brought alone need it

    return read_named_options(logs, get_store_folder(use_case))


def read_named_sources(logs: tuple[str, ...], store: Path) -> tuple[str, ...]:
    """Return sources with those of a log that was brought in place of `log:NAME`."""
    if not has_named_log(logs):
        return logs

    from pollex.services.readings import replace_named_sources  # as above

    return replace_named_sources(logs, store)


def has_named_log(logs: object) -> bool:
    """Tell whether logs that were brought to the store are among some sources."""
    return isinstance(logs, tuple) and any(
        str(source).startswith(LOG_COPY_PREFIX) for source in logs
    )


def read_log_table(use_case: object) -> Mapping[Any, Any]:
    """Return the table `[log]` of the domain profile: the one that was given, else that of the rubric set."""
    from pollex.prompts.domain import (  # pydantic is not needed for --help
        DomainProfile,
        get_log_table_of_domain_profile,
    )

    domain = getattr(use_case, "domain", None)
    rubrics = getattr(use_case, "rubrics", None)
    # a profile that was given comes before the rubric set's
    if domain is not None:
        if isinstance(domain, DomainProfile):
            profile = domain
        else:
            profile = DomainProfile.load(domain)

        return profile.log or {}

    return get_log_table_of_domain_profile(rubrics)


@declare_options
class GroupOptions:
    """Logs whose groups count."""

    group_field: str | None = declare_reading_option(
        "Field of a group that is never split, such as user_id.",
        metavar="FIELD",
    )


@declare_options
class AnnotatorOptions:
    """Logs whose annotators count."""

    judge_field: str | None = declare_reading_option(
        "Field of the annotator who gave the label.",
        place="rare",
        metavar="FIELD",
    )


@declare_options
class CommentOptions:
    """Logs in which what people wrote counts."""

    comment_field: str | None = declare_reading_option(
        "Field of what people wrote with the thumb.",
        metavar="FIELD",
    )


@declare_options
class LabelSourceOptions:
    """Logs whose labels may come from the store, too."""

    label_sources: str | None = declare_reading_option(
        "Whose labels count, of log,person,adjudicated: the last two are in the store; log if not set.",
        place="setting",
    )


@declare_options
class QuestionFileOptions:
    """How files of questions are read."""

    id_field: str | None = declare_reading_option(
        "Field of the conversation's id, such as metadata.id.",
        place="rare",
        metavar="FIELD",
    )
    max_bad: int = opt(
        "Maximum number of malformed rows.",
        default=0,
        group="Data",
        place="rare",
        metavar="N",
    )
    category_field: str | None = declare_reading_option(
        "Field of the task's category; `category` if not set.",
        place="setting",
    )
    sources_field: str | None = declare_reading_option(
        "Field of the documents that the answer was written with; `sources` if not set.",
        place="setting",
    )
    encoding: str | None = declare_reading_option(
        "Text encoding of the files; utf-8 if not set.",
        place="setting",
    )
    redact: Literal["yes", "names"] | None = declare_reading_option(
        "Put placeholders in place of mail addresses, links, numbers and keys; names: of names and places, too.",
        place="setting",
    )

    def as_reading(self, context: CallContext) -> ReadOptions:
        """Return the options for reading."""
        return read_options(self)


def declare_limit(help_text: str, **more: Any) -> Any:
    """Declare a limit of calls."""
    return opt(help_text, default=None, group="Limits", **more)


def declare_judge_setting(**more: Any) -> Any:
    """Declare a field of `JudgeSettings`, which describes it."""
    return opt(
        default=None,
        group="Model",
        place=more.pop("place", "setting"),
        **more,
    )


def declare_samples_option() -> Any:
    """Declare how often a model is asked for one distribution."""
    return opt(
        "Calls for one distribution if the endpoint gives no log-probabilities.",
        default=1,
        least=1,
        group="Model",
        place="rare",
    )


def declare_model_option(help_text: str) -> Any:
    """Declare the model."""
    return opt(help_text, default=None, env=("POLLEX_MODEL",), group="Model")


def declare_url_option() -> Any:
    """Declare the address of a model."""
    return opt(
        "Address of an OpenAI-compatible server. The key is read from OPENAI_API_KEY only.",
        default=None,
        env=("POLLEX_BASE_URL", "OPENAI_BASE_URL"),
        metavar="URL",
        group="Model",
    )


@declare_options
class ModelCallOptions(ResumableRunOptions):
    """How a model is called."""

    base_url: str | None = declare_url_option()
    # how many calls, how many at once, and how long they may take
    max_calls: int | None = declare_limit(
        "Stop after N calls; continue with --resume.",
        metavar="N",
    )
    concurrency: int = opt(
        "Maximum number of calls in flight; 64 if not set.",
        default=64,
        group="Limits",
        place="setting",
    )
    calls_per_minute: int | None = declare_limit(
        "Maximum number of calls sent in a minute; as many as the endpoint takes if not set.",
        place="setting",
    )
    deadline: float | None = declare_limit(
        "Time limit of a single call in seconds; 120 if not set.",
        place="setting",
    )
    max_wait: float | None = declare_limit(
        "Maximum wait for an endpoint that is down, in seconds; 120 if not set.",
        place="setting",
    )
    # what they may cost
    max_cost: float | None = declare_limit(
        "Stop at this cost; needs price.",
        place="setting",
        metavar="AMOUNT",
    )
    price: tuple[float, float] | None = declare_limit(
        "Prices of a million prompt and completion tokens, as 0.15:0.60.",
        place="setting",
        metavar="IN:OUT",
        parse=parse_two_numbers,
    )
    # what is asked again, and what of it is stored
    retry_refused: bool | None = declare_limit(
        "Repeat calls that the model refused in an earlier run.",
        place="setting",
    )
    no_prompts: bool | None = declare_limit("Store replies, but no prompts.", place="setting")
    again: bool | None = declare_limit(
        "Ask again what the same judge answered in an earlier run about the same words.",
        place="setting",
    )
    langsmith: bool | None = opt(
        "Switch LangSmith tracing on; otherwise it is always off, whatever the environment says.",
        default=None,
        group="Model",
        place="setting",
    )

    def as_model(self, context: CallContext) -> ModelOptions:
        """Return the options of the model, with LangSmith's tracing switched as they say."""
        from pollex.gateway.langsmith import switch_tracing  # not needed for --help

        # options of the model are fields of the families here that call one
        families = []
        for family in type(self).__mro__:
            if issubclass(family, ModelCallOptions) and family.__module__ == __name__:
                families.append(family)

        names = {field.name for family in families for field in fields(family)} - {
            option.name for option in fields(ResumableRunOptions)
        }
        # those that read logs as well have options that are none of a model's
        names -= {option.name for option in (*fields(Reading), *fields(LabelSourceOptions))}
        values = {name: getattr(self, name) for name in names}
        options = {}
        for name, value in values.items():
            if value is not None:
                options[name] = value

        # the paper's prompts are meant for its scale, unless another one is given
        if options.get("prompts") == "paper":
            options.setdefault("scale", PAPER_SCALE_NAME)

        switch_tracing(on=options.pop("langsmith", False))
        return ModelOptions.of(**options | convert_model_to_options(options.pop("model", None)))


def convert_model_to_options(model: str | BaseChatModel | None) -> dict[str, object]:
    """Return a model as options: its name, or the object that is asked."""
    if isinstance(model, str | None):
        return {"model": model}

    from pollex.services.scorer import wrap_chat_model  # LangChain comes with it

    return {"chat": wrap_chat_model(model)}


@declare_options
class BatchCallOptions(ModelCallOptions):
    """Calls that may be left to a provider's batches."""

    by_batch: bool = opt(
        "Leave calls to the provider's batches, at half the price; the command ends, and --resume fetches.",
        default=False,
        flag="batch",
        group="Limits",
    )
    batch_files: Path | None = declare_limit(
        "Folder of files for `vllm run-batch`, in place of a provider's batches.",
        place="setting",
    )
    batch_api: Literal["openai", "anthropic"] | None = declare_limit(
        "Protocol of the provider's batches; if not set, its address tells.",
        place="setting",
    )
    batch_discount: float | None = declare_limit(
        "Share of the price that calls by batch don't cost; 0.5 if not set.",
        place="setting",
    )


@declare_options
class SetJudgeOptions(BatchCallOptions):
    """Calls of the judge of a rubric set, which is asked as it was."""

    model: BaseChatModel | None = opt(
        "A LangChain chat model that stands for the set's endpoint.",
        default=None,
        door="python",
    )
    concurrency: int = opt(
        "Maximum number of concurrent calls.",
        default=64,
        group="Limits",
        place="rare",
    )
    embedding_model: str | None = declare_judge_setting()
    require: Literal["logprobs"] | None = declare_judge_setting()


@declare_options
class LearningRoleOptions(BatchCallOptions):
    """Calls of the roles that learn."""

    model: str | BaseChatModel | None = declare_model_option(
        "LLM for all roles; default: built-in (no LLM)."
    )
    samples: int = declare_samples_option()
    concurrency: int = opt(
        "Maximum number of concurrent calls.",
        default=64,
        group="Limits",
        place="rare",
    )
    max_cost: float | None = declare_limit(
        "Stop at this cost; needs --price.",
        metavar="AMOUNT",
    )
    price: tuple[float, float] | None = declare_limit(
        "Prices of a million prompt and completion tokens, such as 0.15:0.60.",
        metavar="IN:OUT",
        parse=parse_two_numbers,
    )
    # how the judge is asked; see `JudgeSettings`
    elicitation: Literal["batched", "independent"] | None = declare_judge_setting()
    require: Literal["logprobs"] | None = declare_judge_setting()
    without: str | frozenset[str] | None = declare_judge_setting()
    canary: bool | None = declare_judge_setting()
    straight_lining: bool | None = declare_judge_setting()
    closing: str | None = declare_judge_setting()
    sources: int | None = declare_judge_setting()
    value: Literal["auto", "expected", "mode"] | None = declare_judge_setting()
    embedding_model: str | None = declare_judge_setting()


@declare_options
class RubricWriterOptions(LearningRoleOptions):
    """Calls of the roles that write rubrics."""

    prompts: Literal["pollex", "paper"] | None = declare_judge_setting()
    scale: str | None = declare_judge_setting()
    reasons: int | None = declare_judge_setting()
    new_rubrics: int | None = declare_judge_setting()
    near: float | None = declare_judge_setting()
    alike: float | None = declare_judge_setting()


@declare_options
class RaterModelOptions(BatchCallOptions):
    """Calls of a model that is asked one question."""

    model: str | BaseChatModel | None = declare_model_option(
        "LLM to ask; default: built-in (no LLM)."
    )
    closing: str | None = declare_judge_setting()
    sources: int | None = declare_judge_setting()
    embedding_model: str | None = declare_judge_setting()
    temperature: float | None = declare_judge_setting()


@declare_options
class GraderModelOptions(BatchCallOptions):
    """Calls of a model that grades or answers a questionnaire."""

    model: str | BaseChatModel | None = declare_model_option("LLM to ask; required.")
    samples: int = declare_samples_option()
    require: Literal["logprobs"] | None = declare_judge_setting()
    closing: str | None = declare_judge_setting()
    sources: int | None = declare_judge_setting()
    value: Literal["auto", "expected", "mode"] | None = declare_judge_setting()


@declare_options
class ColumnReaderOptions(ModelCallOptions):
    """Calls of a model that reads the columns of a log."""

    model: str | BaseChatModel | None = declare_model_option(
        "LLM to ask where no way to read the log is found."
    )


@declare_options
class ProfileDrafter(ModelCallOptions):
    """Calls of a model that drafts a domain profile."""

    model: str | BaseChatModel | None = declare_model_option("LLM to ask; required.")
    max_cost: float | None = declare_limit(
        "Stop at this cost; needs --price.",
        metavar="AMOUNT",
    )
    price: tuple[float, float] | None = declare_limit(
        "Prices of a million prompt and completion tokens, such as 0.15:0.60.",
        metavar="IN:OUT",
        parse=parse_two_numbers,
    )


@declare_options
class PlayerModelOptions(ModelCallOptions):
    """Calls of a model that plays a user or an assistant."""

    model: str | BaseChatModel | None = declare_model_option("Model to ask; required.")
    concurrency: int = opt(
        "Maximum number of concurrent calls.",
        default=64,
        group="Limits",
        place="rare",
    )


@declare_options
class TestedModelOptions(PlayerModelOptions, BatchCallOptions):
    """Calls of a model that is asked as its users ask it."""


@declare_options
class JudgedLogOptions(Reading, SetJudgeOptions):
    """Logs, and the judge of a rubric set."""


RUBRICS_HELP = "A rubric set: its file, the run that made it, or its digest."


def declare_page_option() -> Any:
    """Declare a page that may be written."""
    return opt(
        "Also write a page (.html).",
        default=None,
        metavar="FILE",
        group="Output",
    )


def declare_output_option(
    help_text: str = "Output file.", typed: str | None = None, **more: Any
) -> Any:
    """Declare the file that is written; on a terminal it has a name if none is given."""
    named: dict[str, Any]
    if typed is None:
        named = {}
    else:
        named = {"typed": Path(typed)}

    return opt(help_text, default=None, group="Output", **named, **more)
