"""Rare settings as `--set NAME=VALUE`, instead of an option for each."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Literal

import click

VALUES = "pollex.settings"

Kind = type | tuple[str, ...]

SETTINGS: dict[str, tuple[Kind, str]] = {
    "id_field": (str, "Field of the conversation's id, such as metadata.id."),
    "messages_field": (str, "Field of the list of turns."),
    "judge_field": (str, "Field of the annotator who gave the label."),
    "group_field": (str, "Field of what must stay on one side of a split, such as user_id."),
    "encoding": (str, "Text encoding of the files; utf-8 if not set."),
    "on_duplicate": (("error", "first", "last"), "Which of different conversations with the same id to use."),
    "thumbs": (("last", "worst", "each"), "Which of several thumbs on a conversation to use."),
    "pairs": (bool, "Read preference data: chosen is positive, rejected negative."),
    "policy": (str, "Selection policy: separation, greedy, correctness, brute_force, ucb, swaps, random_order."),
    "wide": (bool, "Give each rubric's value a column of its own."),
    "costs": (str, "Costs of a bad conversation taken for good, and of a good one taken for bad; 1:1 if not set."),
    "cascade": (str, "Rubric set of a model, which is asked where a distilled set leaves a label in doubt."),
    "alpha": (float, "Weight of sharpness in the selection loss; cross-validated if not set."),
    "scale": (
        ("occasion", "likert-domain", "likert", "numeric"),
        'Answer scale of rubrics; `occasion` (the default) includes "Never came up".',
    ),
    "prompts": (
        ("pollex", "paper"),
        "Whose answer scale: paper is RUBICON's own, on which Neutral also means that the occasion never came up.",
    ),
    "elicitation": (
        ("batched", "independent"),
        "`batched`: ten rubrics in each call, with reasons; `independent`: one rubric, one token.",
    ),
    "require": (("logprobs",), "Fail if the endpoint gives no log-probabilities."),
    "without": (str, "What to leave out: built-in (rubrics found without the model); ds, cdp, domain of prompts."),
    "canary": (bool, "Also ask a question with a known answer, as attention check; true if not set."),
    "straight_lining": (bool, "Mark answers that are all the same; true if not set."),
    "closing": (("system", "user", "merged"), "Role of the task message; merged for strict chat templates."),
    "value": (("auto", "expected", "mode"), "Part of an answer's distribution that NetSAT sums."),
    "embedding_model": (str, "A sentence-transformers model, by name or path."),
    "concurrency": (int, "Maximum number of calls in flight; 64 if not set."),
    "deadline": (float, "Time limit of a single call in seconds; 120 if not set."),
    "max_wait": (float, "Maximum wait for an endpoint that is down, in seconds; 120 if not set."),
    "max_cost": (float, "Stop at this cost; needs price."),
    "price": (str, "Prices of a million prompt and completion tokens, as 0.15:0.60."),
    "retry_refused": (bool, "Repeat calls that the model refused in an earlier run."),
    "langsmith": (bool, "Switch LangSmith tracing on; otherwise it is always off, whatever the environment says."),
}
"""Type (or words) and help by name."""

TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class SetOption(click.Option):
    """The option `--set` of one verb.

    Attributes:
        names: The settings that the verb heeds.
    """

    def __init__(self, *args: Any, names: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.names = names


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
        if name not in option.names or not equals:
            near = get_close_matches(name, option.names, n=1)
            hint = f" Did you mean {near[0]}?" if near and equals else ""
            raise click.BadParameter(f"{text!r} is not NAME=VALUE with a name of {', '.join(option.names)}.{hint}")
        found[name] = parsed(name, value)


def parsed(name: str, value: str) -> Any:
    """Return a setting's value in its type."""
    kind = SETTINGS[name][0]
    if isinstance(kind, tuple):
        if value not in kind:
            raise click.BadParameter(f"{name} is one of {', '.join(kind)}, not {value!r}")
        return value
    try:
        return TRUTHS[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise click.BadParameter(f"{name} is a {kind.__name__}, and {value!r} is none") from None


Family = Literal["reading", "model", "learning", "scoring"]
FAMILIES: dict[Family, frozenset[str]] = {
    "reading": frozenset(list(SETTINGS)[:8]),
    "learning": frozenset({"policy", "alpha"}),
    "scoring": frozenset({"costs", "cascade", "wide"}),
    "model": frozenset(list(SETTINGS)[13:]),
}


def settings_of(family: Family) -> dict[str, Any]:
    """Return the settings of a family that the running command was given."""
    context = click.get_current_context(silent=True)
    given: dict[str, Any] = context.meta.get(VALUES, {}) if context else {}
    return {name: value for name, value in given.items() if name in FAMILIES[family]}
