"""Rendering of templates: one HTML file without scripts or external resources."""

import base64
import hashlib
import html
import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from pollex.reports import numbers
from pollex.reports.svg import escape
from pollex.rooms import folders_of, modules_named
from pollex.rubrics.records import WITHIN
from pollex.text import printable

STYLES = ("tokens.css", "parts.css", "report.css")

NAME, QUOTE, REASON, TEXT = 120, 400, 600, 1000
"""Characters shown of a name or id, of a quote, of a reason, path or remedy, and of a rubric."""

_OF_FILE = re.compile(rb'<meta name="of-file" content="([^"]+)">')
_HEAD = 2048
"""The first bytes of a page, which hold its `meta` elements."""


def render(template: str, **data: Any) -> str:
    """Fill a template; the same text for the same data. Write it as UTF-8."""
    return environment().get_template(template).render(data)


@cache
def environment() -> Environment:
    """Make the template environment: text is escaped, and a missing name is an error."""
    loader = ChoiceLoader(
        [
            PackageLoader("pollex.reports", "templates"),
            FileSystemLoader([*folders_of("templates")]),
        ]
    )
    environment = Environment(
        loader=loader,
        autoescape=True,
        # text is escaped so that it is no link either
        finalize=lambda value: escape(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # templates know these filters by the functions' names
    written = (
        numbers.count,
        numbers.interval,
        numbers.interval_in_words,
        numbers.listed,
        numbers.number,
    )
    shares = (numbers.percent, numbers.percent_interval, numbers.points)
    environment.filters.update(
        {filter_.__name__: filter_ for filter_ in (*written, *shares, short)}
    )
    environment.tests["known"] = numbers.known
    environment.globals["charts"] = Charts()
    environment.globals.update(
        LEVEL=numbers.LEVEL,
        NAME=NAME,
        QUOTE=QUOTE,
        REASON=REASON,
        TEXT=TEXT,
        WITHIN=WITHIN,
    )
    # the policy of a page allows this style alone, by its digest
    style = "".join(style_of(name) for name in STYLES)
    environment.globals.update(
        style=style,
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )

    return environment


class Charts:
    """The charts of all rooms, loaded by the first template that draws one: most pages have none."""

    def __getattr__(self, chart: str) -> Any:
        homes = map(import_module, modules_named("reports", "charts"))
        return getattr(next(home for home in homes if hasattr(home, chart)), chart)


def style_of(name: str) -> str:
    """Read one of the style sheets; `tokens.css` and `parts.css` are those of every page."""
    return (files("pollex.reports") / "styles" / name).read_text(encoding="utf-8")


def short(text: str, limit: int = NAME) -> str:
    """Cut a text to `limit` visible characters; a longer one ends in `…`."""
    return printable(text, limit, keep_lines=True)


def file_of(page: Path) -> str | None:
    """Return the rubric-set file that a report was rendered from; None if unknown."""
    try:
        with page.open("rb") as written:
            match = _OF_FILE.search(written.read(_HEAD))
    except OSError:
        return None

    return match and html.unescape(match[1].decode("utf-8", "replace"))
