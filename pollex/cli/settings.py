"""Rare settings as `--set NAME=VALUE`, instead of an option for each."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import click

from pollex.errors import Options
from pollex.services.systems import SYSTEMS
from pollex.usecases.use_case import Option

VALUES = "pollex.settings"

Kind = type | tuple[str, ...]

Family = Literal["reading", "learning", "scoring", "question", "network", "model"]

READING: dict[str, tuple[Kind, str]] = {
    "label_field": (str, "Field of the label: thumbs or ratings."),
    "positive": (str, "Values that are positive: '>=4', or 'solved,great'."),
    "negative": (str, "Values that are negative: '<=2', or 'failed,bad'."),
    "id_field": (str, "Field of the conversation's id, such as metadata.id."),
    "messages_field": (str, "Field of the list of turns."),
    "judge_field": (str, "Field of the annotator who gave the label."),
    "group_field": (str, "Field of what must stay on one side of a split, such as user_id."),
    "comment_field": (str, "Field of what people wrote with the thumb."),
    "comments": (bool, "Whether to read what people wrote with the thumb; yes if not set."),
    "category_field": (str, "Field of the task's category; `category` if not set."),
    "max_bad": (int, "Maximum number of malformed rows; 0 if not set."),
    "encoding": (str, "Text encoding of the files; utf-8 if not set."),
    "label_sources": (
        str,
        "Whose labels count, of log,person,adjudicated: the last two are in the store; log if not set.",
    ),
    "redact": (
        ("yes", "names"),
        "Put placeholders in place of mail addresses, links, numbers and keys; names: of names and places, too.",
    ),
    "on_duplicate": (("error", "first", "last"), "Which of different conversations with the same id to use."),
    "thumbs": (("last", "worst", "each"), "Which of several thumbs on a conversation to use."),
    "pairs": (bool, "Read preference data: chosen is positive, rejected negative."),
}
LEARNING: dict[str, tuple[Kind, str]] = {
    "policy": (str, "Selection policy: greedy (the default), correctness, brute_force, ucb, separation."),
    "answers": (str, "Run whose answers stand for rubrics as they were; only others are asked."),
    "probability": (
        str,
        "Model of the probability: network, unless another is clearly better; best; or a name.",
    ),
    "mini_batch": (int, "Reasons that the summarizer sees at once; 20 if not set."),
    "alpha": (float, "Weight of sharpness in the selection loss; cross-validated if not set."),
}
SCORING: dict[str, tuple[Kind, str]] = {
    "costs": (str, "Costs of a bad conversation taken for good, and of a good one taken for bad; 1:1 if not set."),
    "wide": (bool, "Give each rubric's value a column of its own, as .csv always has."),
    "workers": (int, "Processes of a set that asks no model; one a core for a large log if not set."),
    "trace": (("batch", "each"), "Spans of a run that asks no model: one a batch, or two for each conversation."),
    "no_texts": (bool, "Store answers and scores, but nothing of what was said, and no prompts."),
    "events": (str, "OpenTelemetry collector that each score is sent to: http://localhost:4318."),
    "cascade": (str, "Rubric set of a model, which is asked where a distilled set leaves a label in doubt."),
}
QUESTION: dict[str, tuple[Kind, str]] = {
    "minimum": (int, "Minimum number of answered runs; more than half if not set."),
    "variant": (
        ("v0", "v1", "v2", "v3", "v4"),
        "Prompt: v0 question only, v1 instructions, v2 grounded, v3 expected end state, v4 actual end state (default).",
    ),
    "domain": (Path, "Domain profile (TOML)."),
    "instructions": (Path, "File with the instructions for human annotators."),
    "seed": (int, "Random seed; each run gets another one."),
}
NETWORK: dict[str, tuple[Kind, str]] = {
    "recipe": (("shrunk", "authors"), "Training of the calibration network: shrunk (the default), or the authors'."),
    "personal": (("all", "heads", "none"), "Layers in which each annotator has weights of their own; all if not set."),
    "heads": (("softmax", "ordinal"), "Heads of its questions: softmax (the default), or ordinal: a cumulative link."),
    "h1": (int, "Units of its first layer; 10 if not set, 25 in the authors' recipe."),
    "h2": (int, "Units of its second layer; likewise."),
    "batch": (int, "Sheets a step in the authors' recipe; 64 if not set. Otherwise a step is on all."),
    "pretraining": (int, "Its steps on all questions: 40 if not set; epochs in the authors' recipe: 20."),
    "finetuning": (int, "Its steps on the question it predicts: 40 if not set; epochs in the authors' recipe: 30."),
    "seeds": (int, "Networks whose probabilities are averaged: 10 if not set, 1 in the authors' recipe."),
}
CALLS: dict[str, tuple[Kind, str]] = {
    "concurrency": (int, "Maximum number of calls in flight; 64 if not set."),
    "calls_per_minute": (int, "Maximum number of calls sent in a minute; as many as the endpoint takes if not set."),
    "deadline": (float, "Time limit of a single call in seconds; 120 if not set."),
    "max_wait": (float, "Maximum wait for an endpoint that is down, in seconds; 120 if not set."),
    "max_cost": (float, "Stop at this cost; needs price."),
    "price": (str, "Prices of a million prompt and completion tokens, as 0.15:0.60."),
    "retry_refused": (bool, "Repeat calls that the model refused in an earlier run."),
    "no_prompts": (bool, "Store replies, but no prompts."),
    "batch_files": (Path, "Folder of files for `vllm run-batch`, in place of a provider's batches."),
    "batch_api": (("openai", "anthropic"), "Protocol of the provider's batches; if not set, its address tells."),
    "batch_discount": (float, "Share of the price that calls by batch don't cost; 0.5 if not set."),
    "langsmith": (bool, "Switch LangSmith tracing on; otherwise it is always off, whatever the environment says."),
}
BATCHES = ("no_prompts", "batch_files", "batch_api", "batch_discount")
"""Names of those settings of calls that verbs with few of them have, too."""
FAMILIES: dict[Family, dict[str, tuple[Kind, str]]] = {
    "reading": READING,
    "learning": LEARNING,
    "scoring": SCORING,
    "question": QUESTION,
    "network": NETWORK,
    "model": CALLS,
}
SETTINGS = READING | LEARNING | SCORING | QUESTION | NETWORK | CALLS
"""Type (or words) and help by name; any other name is a field of `JudgeSettings`."""

PLACES = {"events", "cascade"}
"""Settings that name a place and are no path."""

TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class SetOption(click.Option):
    """The option `--set` of one verb.

    Attributes:
        names: The settings that the verb heeds.
    """

    def __init__(
        self, *args: Any, names: tuple[str, ...] = (), known: Mapping[str, Option] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.names, self.known = names, known or {}


def set_option(*names: str) -> Callable[[Any], Any]:
    """Add `--set`; each setting arrives with the options of its family."""
    return click.option(
        "--set",
        "settings",
        cls=SetOption,
        names=names,
        multiple=True,
        metavar="NAME=VALUE",
        is_eager=True,
        expose_value=False,
        callback=keep,
        help="A rare setting; repeatable. `--help-all` lists them.",
    )


def keep(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> None:
    """Parse the settings and keep them for the families of options."""
    assert isinstance(option, SetOption)
    found = context.meta.setdefault(VALUES, {})
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        usual = name in READING and any(one.name == name for one in context.command.params)
        usual = usual or name in option.known
        if not (usual or name in option.names) or not equals:
            near = get_close_matches(name, option.names, n=1)
            hint = f" Did you mean {near[0]}?" if near and equals else ""
            raise click.BadParameter(f"{text!r} is not NAME=VALUE with a name of {', '.join(option.names)}.{hint}")
        found[name] = setting_of(option.known[name], value) if name in option.known else parsed(name, value)


def preset(context: click.Context, option: click.Parameter, name: str | None) -> str | None:  # noqa: ARG001
    """Take a system's settings for what isn't given."""
    options = {one.name for one in context.command.params}
    sets = SYSTEMS[name] if name else {}
    context.default_map = {**(context.default_map or {}), **{each: sets[each] for each in sets if each in options}}
    found = context.meta.setdefault(VALUES, {})
    found |= {each: sets[each] for each in sets if each not in options | found.keys()}
    return name


def preset_told(context: click.Context, name: str) -> str:
    """Tell with which options a system runs: its own, and in place of some those that were given."""
    given = context.params | context.meta[VALUES]
    return f"As {name}: {spelled(context.command, {each: given[each] for each in SYSTEMS[name]})}"


def parsed(name: str, value: str) -> Any:
    """Return a setting's value in its type; one of `JudgeSettings` is checked there."""
    kind = SETTINGS[name][0] if name in SETTINGS else str
    if not value.strip() and (kind is Path or name in PLACES):
        raise click.BadParameter(f"{name} is empty: give a place, or leave the setting out")
    if isinstance(kind, tuple):
        if value not in kind:
            raise click.BadParameter(f"{name} is one of {', '.join(kind)}, not {value!r}")
        return value
    try:
        return TRUTHS[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise click.BadParameter(f"{name} is a {kind.__name__}, and {value!r} is none") from None


def setting_of(one: Option, value: str) -> Any:
    """Return a setting's value in its type; what describes itself in `JudgeSettings` is checked there."""
    name, kind = one.name, one.kind
    if not value.strip() and (kind is Path or name in PLACES):
        raise click.BadParameter(f"{name} is empty: give a place, or leave the setting out")
    if isinstance(kind, tuple) and one.help:
        if value not in kind:
            raise click.BadParameter(f"{name} is one of {', '.join(kind)}, not {value!r}")
        return value
    try:
        if one.parse is not None:
            return one.parse(value)
        made: Any = str if not one.help else kind
        return TRUTHS[value.lower()] if made is bool else made(value)
    except (KeyError, ValueError):
        what = one.metavar or getattr(kind, "__name__", name)
        raise click.BadParameter(f"{name} is a {what}, and {value!r} is none") from None


def settings_of(family: Family) -> dict[str, Any]:
    """Return the settings of a family that the running command was given; those of a judge belong to the model."""
    context = click.get_current_context(silent=True)
    given: dict[str, Any] = context.meta.get(VALUES, {}) if context else {}
    known = FAMILIES[family].keys() | (given.keys() - SETTINGS.keys() if family == "model" else set())
    return {name: value for name, value in given.items() if name in known}


def described(name: str, one: Option | None = None) -> str:
    """Return a setting's help."""
    if one is not None and one.help:
        return one.help
    if name in SETTINGS:
        return SETTINGS[name][1]
    from pollex.rubrics.judge_settings import JudgeSettings  # pydantic is not needed for --help

    field = JudgeSettings.model_fields[name]
    return f"{field.description}" + (f" Default: {field.default}." if field.default else "")


def spelled(command: click.Command, options: Options) -> str:
    """Spell options as one types them for a command: `--label-field stars`, or `--set thumbs=last`."""
    settings = {name for one in command.params if isinstance(one, SetOption) for name in one.names}
    return " ".join(_spelled(name, value, setting=name in settings) for name, value in options.items())


def _spelled(name: str, value: object, *, setting: bool) -> str:
    if setting:
        return f"--set {shlex.quote(f'{name}={value}')}" if value is not None else f"--set {name}=VALUE"
    option = f"--{name.replace('_', '-')}"
    return option if value is None or value is True else f"{option} {shlex.quote(str(value))}"
