"""Settings of runs, and in which two runs differ, in words: a digest tells a person nothing."""

import json
from collections.abc import Iterator, Mapping

from pollex.store.tables import FactRow, dump_json

SETTINGS_FACT_KIND = "settings"
"""Kind of the fact that tells what stands behind the digests of a run's roles."""

WORDS_BY_OPAQUE_SETTING: Mapping[str, str] = {
    "data": "other conversations, or read or labeled in another way",
    "rubrics": "another rubric set, or one that was edited or fitted again",
    "domain": "another domain profile",
    "profile": "another grading profile",
    "question": "another question, or other options",
    "questionnaire": "another questionnaire",
    "scenes": "other topics, systems or personas",
    "graph": "another version of pollex, which works in other steps",
}
"""What a digest stands for, by its part of a fingerprint."""

ROLE_SETTINGS = frozenset(
    (
        "classifier",
        "deduplicator",
        "extractor",
        "judge",
        "plain",
        "registered",
        "respondent",
        "rewriter",
        "simulator",
        "summarizer",
        "updater",
    )
)

WORDS_BY_CAPABILITY: Mapping[str, tuple[str, str]] = {
    "json_schema": ("obeys a JSON schema", "obeys no JSON schema"),
    "tools": ("answers by forced tool calls", "answers by no forced tool calls"),
    "json_object": ("has a JSON mode", "has no JSON mode"),
    "logprobs": ("gives log-probabilities", "gives no log-probabilities"),
    "seed": ("takes a seed", "takes no seed"),
    "temperature": ("takes a temperature", "takes no temperature"),
}
"""Of a model's endpoint: in words where it has them, and where it hasn't."""


def make_setting_writable(value: object) -> object:
    """Return a setting as JSON has it."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    return value


def make_settings_row(run: str, behind: Mapping[str, object]) -> FactRow:
    """Return what stands behind the digests of a run's roles as a row."""
    return FactRow(run, SETTINGS_FACT_KIND, "roles", dump_json(dict(behind)))


def describe_fingerprint_differences(
    before: Mapping[str, str],
    now: Mapping[str, str],
    behind_before: Mapping[str, object] | None = None,
    behind_now: Mapping[str, object] | None = None,
) -> list[str]:
    """Return the parts in which two fingerprints differ, each in words.

    Args:
        behind_before: What stands behind the digests of roles, as `resume.read_settings_behind_digests` returns
            it.
    """
    # parts that differ; roles are told together
    parts = []
    for part in sorted({*before, *now}):
        if before.get(part) != now.get(part):
            parts.append(part)

    roles = []
    for part in parts:
        if part in ROLE_SETTINGS:
            roles.append(part)

    sentences = []
    for part in parts:
        if part not in ROLE_SETTINGS:
            sentences.append(f"{part}: {_describe_part_difference(part, before, now)}")

    if not roles:
        return sentences

    # what is known of both sides says how they differ
    changes: list[str] = []
    if behind_before and behind_now:
        changes = list(describe_changes_behind_digests(behind_before, behind_now))

    how = "; ".join(changes) or "another model, prompt or setting"
    return [*sentences, f"{', '.join(roles)}: {how}"]


def _describe_part_difference(
    part: str,
    before: Mapping[str, str],
    now: Mapping[str, str],
) -> str:
    if part in WORDS_BY_OPAQUE_SETTING:
        return WORDS_BY_OPAQUE_SETTING[part]
    return f"{_format_setting(before.get(part))}, and now {_format_setting(now.get(part))}"


def describe_changes_behind_digests(
    before: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[str]:
    """Yield what changed of model, endpoint, settings and prompts, in words."""
    for name in sorted({*before, *now}):
        old = before.get(name)
        new = now.get(name)
        if old == new:
            continue
        kind, _, what = name.partition(" ")
        if kind == "can" and what in WORDS_BY_CAPABILITY:
            yield _describe_capability_change(what, old, new)
        elif kind == "prompt":
            yield f"the prompt {what} is another version"
        elif kind == "profile":
            yield WORDS_BY_OPAQUE_SETTING["domain"]
        else:
            yield f"{what or name} was {_format_setting(old)} and is {_format_setting(new)} now"


def _describe_capability_change(what: str, old: object, new: object) -> str:
    has, has_not = WORDS_BY_CAPABILITY[what]
    if old and new:
        return f"the model {has}: {_format_setting(old)} before, {_format_setting(new)} now"
    return f"the model {has if new else has_not} now"


def _format_setting(value: object) -> str:
    """Return a setting as a person reads it; learning settings are kept as JSON."""
    try:
        if isinstance(value, str):
            setting = json.loads(value)
        else:
            setting = value
    except (ValueError, RecursionError):
        setting = value

    if setting is None or setting in ("", [], {}):
        return "not set"
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    if isinstance(setting, list):
        return ", ".join(map(str, setting))
    return str(setting)
