"""Rendering of templates: one HTML file without scripts or external resources."""

import base64
import hashlib
import html
import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from pollex.reports import numbers
from pollex.reports.svg import escape_markup
from pollex.rooms import find_modules, iterate_part_folders
from pollex.rubrics.records import NESTED_FINDING_PREFIX, SIDES_IN_WORDS
from pollex.text import escape_controls

STYLE_FILE_NAMES = ("tokens.css", "parts.css", "report.css")

MAX_NAME_CHARACTERS, MAX_QUOTE_CHARACTERS, MAX_REASON_CHARACTERS, MAX_RUBRIC_CHARACTERS = (
    120,
    400,
    600,
    1000,
)
"""Characters shown of a name or id, of a quote, of a reason, path or remedy, and of a rubric."""

_FILE_META_PATTERN = re.compile(rb'<meta name="of-file" content="([^"]+)">')
_PAGE_HEAD_BYTES_READ = 2048
"""The first bytes of a page, which hold its `meta` elements."""


def render_template(template: str, **data: object) -> str:
    """Fill a template; the same text for the same data. Write it as UTF-8."""
    return make_template_environment().get_template(template).render(data)


@cache
def make_template_environment() -> Environment:
    """Make the template environment: text is escaped, and a missing name is an error."""
    loader = ChoiceLoader(
        [
            PackageLoader("pollex.reports", "templates"),
            FileSystemLoader([*iterate_part_folders("templates")]),
        ]
    )
    environment = Environment(
        loader=loader,
        autoescape=True,
        # text is escaped so that it is no link either
        finalize=lambda value: escape_markup(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # templates call filters by nouns, as they do those of Jinja
    environment.filters.update(
        {
            "count": numbers.format_grouped_count,
            "interval": numbers.format_interval,
            "interval_in_words": numbers.format_interval_in_words,
            "listed": numbers.join_with_and,
            "number": numbers.format_number,
            "percent": numbers.format_percent,
            "percent_interval": numbers.format_percent_interval,
            "points": numbers.format_points,
            "short": shorten_text,
        }
    )
    environment.tests["known"] = numbers.is_known
    environment.globals["charts"] = ChartLoader()
    environment.globals.update(
        LEVEL=numbers.INTERVAL_WORDS,
        NAME=MAX_NAME_CHARACTERS,
        QUOTE=MAX_QUOTE_CHARACTERS,
        REASON=MAX_REASON_CHARACTERS,
        SIDES=SIDES_IN_WORDS,
        TEXT=MAX_RUBRIC_CHARACTERS,
        WITHIN=NESTED_FINDING_PREFIX,
    )
    # the policy of a page allows this style alone, by its digest
    style = "".join(read_style_sheet(name) for name in STYLE_FILE_NAMES)
    environment.globals.update(
        style=style,
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )

    return environment


class ChartLoader:
    """The charts of all rooms, loaded by the first template that draws one: most pages have none."""

    def __getattr__(self, chart: str) -> object:
        homes = map(import_module, find_modules("reports", "charts"))
        return getattr(next(home for home in homes if hasattr(home, chart)), chart)


def read_style_sheet(name: str) -> str:
    """Read one of the style sheets; `tokens.css` and `parts.css` are those of every page."""
    return (files("pollex.reports") / "styles" / name).read_text(encoding="utf-8")


def shorten_text(text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Cut a text to `limit` visible characters; a longer one ends in `…`."""
    return escape_controls(text, limit, keep_lines=True)


def read_rubric_file_of_page(page: Path) -> str | None:
    """Return the rubric-set file that a report was rendered from; None if unknown, or no file is there."""
    # a pipe that nobody writes into would never be open
    if not page.is_file():
        return None

    try:
        with page.open("rb") as written:
            match = _FILE_META_PATTERN.search(written.read(_PAGE_HEAD_BYTES_READ))
    except OSError:
        return None

    return match and html.unescape(match[1].decode("utf-8", "replace"))
