"""Files for other tools: templates whose places take nothing that a function of the file's language hasn't quoted."""

import json
import math
import re
from functools import cache

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pollex.rooms import iterate_part_folders
from pollex.text import escape_controls

LINE_END_ESCAPES = str.maketrans({mark: json.dumps(mark)[1:-1] for mark in "\x85\u2028\u2029"})
"""What some readers of JSON lines take for the end of a line."""


class QuotedText(str):
    """A text that may stand in a file as it is."""

    __slots__ = ()


def quote_as_python(value: object) -> QuotedText:
    """Return a literal of Python; a text of several lines stands in several."""
    if isinstance(value, str) and "\n" in value:
        lines = []
        for line in re.findall(r"[^\n]*\n|[^\n]+", value):
            lines.append(repr(line))
        return QuotedText("(\n" + "".join(f"    {line}\n" for line in lines) + ")")

    return QuotedText(repr(value))


def quote_as_json(value: object) -> QuotedText:
    """Return JSON in one line, for every reader's idea of a line."""
    return QuotedText(json.dumps(value, ensure_ascii=False).translate(LINE_END_ESCAPES))


def quote_as_javascript(value: object) -> QuotedText:
    """Return a literal of JavaScript."""
    return QuotedText(json.dumps(value))


def quote_as_yaml(text: str) -> QuotedText:
    """Return a text as one scalar of YAML, on one line."""
    return QuotedText(
        yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")
    )


def quote_number(value: float) -> QuotedText:
    """Return a number, as short as it can be told."""
    return QuotedText(f"{value:g}")


def quote_comment(lines: list[str], mark: str = "#") -> QuotedText:
    """Return lines as comments: a break inside one is shown, and ends nothing."""
    return QuotedText("".join(f"{mark} {escape_controls(line)}\n" for line in lines))


def separate_braces(text: str) -> str:
    """Part what begins and ends places in template languages, so that they find none in a text."""
    return re.sub(r"\}(?=\})", "} ", re.sub(r"\{(?=[{%#])", "{ ", text))


def escape_nunjucks(text: str) -> str:
    """Return a text that promptfoo shows as it is: neither a place nor the name of a file to run."""
    # a text that ends raw blocks can't stand in one
    if re.search(r"\{%-?\s*endraw", text):
        text = separate_braces(text)

    # places of a template, and what begins like an address of a file
    needs_raw = any(mark in text for mark in ("{{", "{%", "{#")) or re.match(r"\s*\w+:", text)
    return f"{{% raw %}}{text}{{% endraw %}}" if needs_raw else text


def require_quoted_text(value: object) -> object:
    """Return what fills a place; raise TypeError where it is a text that nothing has quoted."""
    if not isinstance(value, QuotedText) and value not in ("", ","):
        raise TypeError(f"a place that nothing quotes: {value!r:.60}")
    return value


@cache
def load_templates() -> Environment:
    """Return the templates of all rooms, with the functions that quote as filters."""
    environment = Environment(  # noqa: S701 - no page
        *("<%", "%>", "<<", ">>", "<#", "#>"),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=require_quoted_text,
        loader=FileSystemLoader([*iterate_part_folders("formats/peers/templates")]),
    )
    environment.filters |= {
        "python": quote_as_python,
        "json": quote_as_json,
        "js": quote_as_javascript,
        "yaml": quote_as_yaml,
        "g": quote_number,
    }
    environment.globals |= {
        "unbraced": separate_braces,
        "nunjucks": escape_nunjucks,
        "comment": quote_comment,
    }

    return environment


def fill_template(name: str, **context: object) -> str:
    """Fill a template."""
    return load_templates().get_template(f"{name}.txt").render(context)
