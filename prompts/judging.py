"""Variable parts of the judges' prompts: numbered items, lettered options, the schema."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from pollex.errors import WrongUse
from pollex.prompts.data_boundary import write_value_as_escaped_json_line


def write_numbered_texts(texts: Sequence[str]) -> str:
    """Return one line a text, from 1, each an escaped JSON string."""
    return "\n".join(f"{i}. {_asked(text)}" for i, text in enumerate(texts, 1))


def join_options_in_one_line(options: Sequence[str]) -> str:
    """Return the options in one line."""
    return ", ".join(map(write_option_for_prompt, options))


def prefix_options_with_letters(options: Sequence[str]) -> list[str]:
    """Return each option behind a letter: `A. Strongly Disagree`.

    An answer's first token then tells the options apart. Without the letter two that begin alike
    share it, and the log-probabilities of an answer that begins otherwise say nothing of either.

    Raises:
        WrongUse: There are more options than letters.
    """
    if len(options) > len(ascii_uppercase):
        raise WrongUse(
            f"{len(options)} options for one question",
            hint=f"use at most {len(ascii_uppercase)}",
        )

    lines: list[str] = []
    # letters beyond the last option are left over
    for letter, option in zip(ascii_uppercase, options, strict=False):
        lines.append(f"{letter}. {write_option_for_prompt(option)}")

    return lines


def write_lettered_options_one_per_line(options: Sequence[str]) -> str:
    """Return the coded options, one a line."""
    return "\n".join(prefix_options_with_letters(options))


@lru_cache(maxsize=1024)
def _asked(text: str) -> str:
    return write_value_as_escaped_json_line(text)


@lru_cache(maxsize=1024)
def write_option_for_prompt(option: str) -> str:
    """Write an option for a prompt, unquoted if it is only words."""
    written = write_value_as_escaped_json_line(option)
    # quotes stay where a comma or an escape could be misread
    if written == f'"{option}"' and "," not in option:
        return option
    return written


def explain_meaning_of_options(options: Sequence[str]) -> dict[str, str]:
    """Explain what a statement's options mean, for the gaps `ends` and `middle`.

    Words speak for themselves; grades don't.

    Args:
        options: Of a rubric; none where something else is asked.
    """
    # words say themselves which end is which
    if not options or not all(option.isdecimal() for option in options):
        return {"ends": "", "middle": "Neutral"}

    low = options[0]
    high = options[-1]
    ends = f", from {low}, not at all, to {high}, wholly"
    # of two middle grades the lower one
    return {"ends": ends, "middle": options[(len(options) - 1) // 2]}


LIKERT_OPTION_GLOSSES = (
    "not true, though there was an occasion for it",
    "hardly true, there is only a trace of it",
    "true in part",
    "nearly true, a little is missing",
    "plainly true",
)
"""What the five options of agreement mean, in their order."""
NO_OCCASION_MEANING = "the conversation has no occasion for it"
"""What the option for what never came up means."""


def write_options_with_meanings(options: Sequence[str]) -> str:
    """List the options of a statement that may never come up with their meanings, one a line.

    Args:
        options: Five of agreement, from none to full, then the one for what never came up.
    """
    # the last option is for what never came up, however many there are before
    meanings = [*LIKERT_OPTION_GLOSSES[: len(options) - 1], NO_OCCASION_MEANING]
    lines = []
    for option, gloss in zip(options, meanings, strict=True):
        lines.append(f"  - {write_option_for_prompt(option)}: {gloss}")
    return "\n".join(lines)


def write_options_one_per_line(options: Sequence[str]) -> str:
    """List options without meanings, one a line."""
    return "\n".join(f"  - {write_option_for_prompt(option)}" for option in options)


def make_json_schema_of_several_answers(
    schema: Mapping[str, Any],
    count: int,
    options: Sequence[str],
) -> dict[str, object]:
    """Return the schema of `count` answers with these options.

    The answers are properties named 1 to `count`, not items of a list: an endpoint that keeps to
    the schema then answers every one, once, in order.

    Args:
        schema: That of the prompt `judge_batch`.
    """
    numbers = [str(i) for i in range(1, count + 1)]
    answer = schema["$defs"]["a"]
    # nothing but these options can be answered
    narrowed = answer["properties"] | {"answer": {"type": "string", "enum": list(options)}}

    return {
        **schema,
        "properties": {number: {"$ref": "#/$defs/a"} for number in numbers},
        "required": numbers,
        "$defs": {"a": {**answer, "properties": narrowed}},
    }


def make_json_schema_of_one_answer(
    schema: Mapping[str, Any], options: Sequence[str]
) -> dict[str, object]:
    """Return the schema of one answer with these options.

    Args:
        schema: That of the prompt `rate`.
    """
    answer = {**schema["properties"]["answer"], "enum": list(options)}
    return {**schema, "properties": {**schema["properties"], "answer": answer}}
