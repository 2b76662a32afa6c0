"""Pages as a browser reads them, and texts that must stay harmless in them."""

import re
from html.parser import HTMLParser

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"><svg onload='alert(1)'>",
    "' onmouseover='alert(1)",
    "</title></summary></details><iframe srcdoc='<script>alert(1)</script>'>",
    "<!-- --> <![CDATA[ <a href='javascript:alert(1)'>x</a> ]]>",
    "$digest ${style} $body $$ {0} %s {{7*7}}",
    "&lt;script&gt; &#60;b&#62; &amp;lt;",
    "\u202eevil\u202c \u200b \x00 \x1b[31m \x85 \ud800",
    "see http://example.org/x and https://example.org or //example.org",
    '`; rm -rf ~ #\' "$(reboot)"',
    "x" * 20_000,
]


class Reader(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and the words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.words = ""
        self.drawings = 0
        self._silent = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.links += [
            value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")
        ]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self._silent = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        self.words += "" if self._silent else data + " "


def loud(read: Reader) -> set[str]:
    """What a strict policy forbids: elements that load or run something, styles and handlers inside elements."""
    names = {name for name, _ in read.elements}
    attributes = {attribute for _, found in read.elements for attribute in found}
    return names & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "input",
        "base",
        "use",
    } | {
        attribute
        for attribute in attributes
        if attribute.startswith("on") or attribute in ("style", "src")
    }
