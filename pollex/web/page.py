"""A page as a whole: one HTML file that needs nothing else, without a script and without a web address."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from pollex.web.markup import Child, Markup, escape, join, tag

HERE = Path(__file__).parent
SHARED = "report.css"

_OF_FILE = re.compile(rb'<meta name="of-file" content="([^"]+)">')
_HEAD = 2048
"""Bytes of a page that have its head, but for the styles."""


class Section(NamedTuple):
    """A part of a page.

    Attributes:
        lead: What is to be seen, in a sentence or two.
    """

    id: str
    title: str
    lead: str
    content: Markup


def section(part: Section) -> Markup:
    """Under its title."""
    lead = tag("p", part.lead, class_="lead") if part.lead else None
    return tag("section", tag("h2", part.title), lead, part.content, id=part.id)


def whole_page(title: str, body: Sequence[Child], *styles: str, file: str = "") -> str:
    """HTML, the same for the same arguments. Write it as UTF-8.

    Args:
        title: What a browser shows in the window's head.
        body: Its parts, each on lines of its own.
        styles: Files of styles, beside those that all pages have.
        file: Name of the file that the page tells of; see `file_of`.
    """
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in (SHARED, *styles))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = Template((HERE / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title), file=escape(file), style=style, digest=digest, body=join(body, "\n")
    )


def file_of(page: Path) -> str | None:
    """Name of the file that a page on disk tells of; None where there is no page, or it doesn't say."""
    try:
        with page.open("rb") as written:
            found = _OF_FILE.search(written.read(_HEAD))
    except OSError:
        return None
    return found and html.unescape(found[1].decode("utf-8", "replace"))
