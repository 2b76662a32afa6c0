"""HTML from small functions. Text is escaped unless it says that it is markup, so that forgetting is safe."""

from __future__ import annotations

import html
from collections.abc import Iterable

from pollex.text import printable

VOID = frozenset(["br", "col", "hr", "img", "link", "meta"])


class Markup(str):
    """HTML that is safe as it stands."""

    __slots__ = ()

    def __add__(self, other: str) -> Markup:
        """The other text after this one, escaped unless it is markup too."""
        return Markup(str.__add__(self, escape(other)))


Child = str | Markup | None | Iterable["Child"]
Attribute = str | float | bool | None


def escape(text: str, limit: int | None = None) -> Markup:
    """Text as inert HTML: control and bidi characters are visible, and nothing in it reads as a web address.

    Args:
        limit: Characters shown of the text; a longer one ends in `…`.
    """
    if isinstance(text, Markup):
        return text
    # A quoted address is the conversation's own words: shown in full, but no scanner of the file finds a link.
    return Markup(html.escape(printable(text, limit, keep_lines=True)).replace("//", "&#47;&#47;"))


def tag(name: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element. `class_` and `for_` lose their underscore, others become hyphens; None and False leave one out."""
    opening = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{opening}>")
    return Markup(f"<{name}{opening}>{join(children)}</{name}>")


def table_head(names: Iterable[Child]) -> Markup:
    """A table's first row."""
    return tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))


def join(children: Iterable[Child], separator: str = "") -> Markup:
    """Children one after another; None is left out, an iterable is joined in turn."""
    return Markup(escape(separator).join(_inside(child) for child in children if child is not None))


def _inside(child: Child) -> Markup:
    if isinstance(child, str):
        return escape(child)
    return join(child or ())


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{escape(shown)}"'
