"""A page as a whole: one HTML file that needs nothing else, without a script and without a web address."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from string import Template

from pollex.web.markup import Child, escape, join

HERE = Path(__file__).parent
SHARED = "report.css"


def whole_page(title: str, body: Sequence[Child], *styles: str) -> str:
    """HTML, the same for the same arguments. Write it as UTF-8.

    Args:
        title: What a browser shows in the window's head.
        body: Its parts, each on lines of its own.
        styles: Files of styles, beside those that all pages have.
    """
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in (SHARED, *styles))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = Template((HERE / "page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), style=style, digest=digest, body=join(body, "\n"))
