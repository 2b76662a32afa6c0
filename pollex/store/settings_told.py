"""Settings of runs, and in which two runs differ, in words: a digest tells a person nothing."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.store.tables import FactRow, pack

BEHIND_FACT_KIND = "settings"
"""Kind of the fact that tells what stands behind the digests of a run's roles."""

OPAQUE: Mapping[str, str] = {
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

ROLES = frozenset(
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

CAPABILITIES: Mapping[str, tuple[str, str]] = {
    "json_schema": ("obeys a JSON schema", "obeys no JSON schema"),
    "tools": ("answers by forced tool calls", "answers by no forced tool calls"),
    "json_object": ("has a JSON mode", "has no JSON mode"),
    "logprobs": ("gives log-probabilities", "gives no log-probabilities"),
    "seed": ("takes a seed", "takes no seed"),
    "temperature": ("takes a temperature", "takes no temperature"),
}
"""Of a model's endpoint: in words where it has them, and where it hasn't."""


def writable_setting(value: Any) -> Any:
    """Return a setting as JSON has it."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    return value


def settings_row(run: str, behind: Mapping[str, Any]) -> FactRow:
    """Return what stands behind the digests of a run's roles as a row."""
    return FactRow(run, BEHIND_FACT_KIND, "roles", pack(dict(behind)))


def describe_differences(
    before: Mapping[str, str],
    now: Mapping[str, str],
    behind_before: Mapping[str, Any] | None = None,
    behind_now: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the parts in which two fingerprints differ, each in words.

    Args:
        behind_before: What stands behind the digests of roles, as `resume.read_settings_behind` returns
            it.
    """
    # parts that differ; roles are told together
    parts = []
    for part in sorted({*before, *now}):
        if before.get(part) != now.get(part):
            parts.append(part)

    roles = []
    for part in parts:
        if part in ROLES:
            roles.append(part)

    sentences = []
    for part in parts:
        if part not in ROLES:
            sentences.append(f"{part}: {_part_in_words(part, before, now)}")

    if not roles:
        return sentences

    # what is known of both sides says how they differ
    changes: list[str] = []
    if behind_before and behind_now:
        changes = list(describe_changes_behind(behind_before, behind_now))

    how = "; ".join(changes) or "another model, prompt or setting"
    return [*sentences, f"{', '.join(roles)}: {how}"]


def _part_in_words(
    part: str,
    before: Mapping[str, str],
    now: Mapping[str, str],
) -> str:
    if part in OPAQUE:
        return OPAQUE[part]
    return f"{_plain(before.get(part))}, and now {_plain(now.get(part))}"


def describe_changes_behind(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what changed of model, endpoint, settings and prompts, in words."""
    for name in sorted({*before, *now}):
        old = before.get(name)
        new = now.get(name)
        if old == new:
            continue
        kind, _, what = name.partition(" ")
        if kind == "can" and what in CAPABILITIES:
            yield _capability_in_words(what, old, new)
        elif kind == "prompt":
            yield f"the prompt {what} is another version"
        elif kind == "profile":
            yield OPAQUE["domain"]
        else:
            yield f"{what or name} was {_plain(old)} and is {_plain(new)} now"


def _capability_in_words(what: str, old: Any, new: Any) -> str:
    has, has_not = CAPABILITIES[what]
    if old and new:
        return f"the model {has}: {_plain(old)} before, {_plain(new)} now"
    return f"the model {has if new else has_not} now"


def _plain(value: Any) -> str:
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
