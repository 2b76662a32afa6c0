"""Errors in the words of Python: what the command line calls `--base-url` is `base_url` here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pollex.errors import PollexError

# Commands, in backticks, stay as they are, and so does what is quoted. What follows an option is its value if that is
# quoted, or ends the clause.
_OPTION = re.compile(r"`[^`]*`|(?<![^\s(])--(?P<name>[a-z][a-z-]*)(?: (?:(?=')|(?P<value>[^\s,'…]+)(?=$|,)))?")


@contextmanager
def python_words() -> Iterator[None]:
    """Lets errors through, with options named as arguments."""
    try:
        yield
    except PollexError as error:
        error.what, error.remedy = in_python(error.what), in_python(error.remedy)
        error.args = (str(error),)
        raise


def in_python(text: str) -> str:
    """`text` with arguments in place of options: `--samples 5` is `samples=5`, `--label-field` alone `label_field`."""
    return _OPTION.sub(_argument, text)


def _argument(option: re.Match[str]) -> str:
    if option["name"] is None:
        return option[0]
    name, value = option["name"].replace("-", "_"), option["value"]
    if value is None:
        return f"{name}=" if option[0].endswith(" ") else name
    return f"{name}={value if re.fullmatch(r'[0-9.]+', value) else repr(value)}"
