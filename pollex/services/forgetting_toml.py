"""Conversations taken out of TOML: strings, comments and names are masked, and all else stays as it was written."""

import json
import re
import tomllib

from pollex.store.forgetting import ForgettingTarget
from pollex.store.fragments import REPLACEMENT_OF_FORGOTTEN_TEXT

_TOKEN_PATTERN = re.compile(
    r'(?P<string>"""(?:[^\\"]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*')"
    r"|(?P<comment>\#[^\n\r]*)"
    r"|(?P<bare>[A-Za-z0-9_+:.-]+)",
    re.DOTALL,
)
"""What can quote: strings of the four kinds, comments, and names and numbers without quotation marks."""


def remove_from_toml(text: str, target: ForgettingTarget) -> str | None:
    """Return TOML without the conversations, which can be read as before.

    Returns:
        The text; None if it is no TOML, or if a quote can't be taken out of it.
    """
    # what is no TOML can't be checked for being read as before
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None

    # masked in place; the result has to be TOML without a quote
    cleaned = _TOKEN_PATTERN.sub(lambda token: _remove_from_token(token, target), text)
    try:
        tomllib.loads(cleaned)
    except tomllib.TOMLDecodeError:
        return None

    return None if target.traces.within(cleaned) else cleaned


def _remove_from_token(token: re.Match[str], target: ForgettingTarget) -> str:
    """Return a string, comment or name without quotes; as it was written if it has none."""
    written = token[0]
    # comments and names have no escapes
    if token["string"] is None:
        masked = target.masked(written)
        if masked == written:
            return written
        if token["comment"]:
            return f"# {REPLACEMENT_OF_FORGOTTEN_TEXT}"
        return _quote_toml_string(REPLACEMENT_OF_FORGOTTEN_TEXT)

    # a string is searched as what it says, without its escapes
    value = tomllib.loads(f"value = {written}")["value"]
    masked = target.masked(value)
    if masked == value:
        return written
    return _quote_toml_string(masked)


def _quote_toml_string(text: str) -> str:
    """Return a text as a string of TOML on one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
