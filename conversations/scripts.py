"""In which script a text is written: a cheap sign that two texts are in different languages.

Languages that share a script, English and French for example, can't be told apart this way, and nothing is said of
texts that are short, mixed, or mostly formulas and code.
"""

from __future__ import annotations

import re
from collections import Counter

FEWEST_WORDS = 6
"""Below so many words (of Chinese: characters) nothing is said."""

SHARE = 0.75
"""Of the words, at least, for a text to be in a script."""

_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$[^$]*\$|\\\w+|https?://\S+|\S+@\S+", re.DOTALL)
_WORDS = {
    "Kana": re.compile(r"[\u3041-\u30ff]"),
    "Han": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"),
    "Hangul": re.compile(r"[\uac00-\ud7af]+"),
    # Variables and chemical symbols are short: what counts as a word of prose has three letters.
    "Latin": re.compile(r"(?<![^\W\d_])[A-Za-z\u00c0-\u024f]{3,}(?![^\W\d_])"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]{2,}"),
    "Greek": re.compile(r"[\u0370-\u03ff]{3,}"),
    "Arabic": re.compile(r"[\u0600-\u06ff]{2,}"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]{2,}"),
    "Devanagari": re.compile(r"[\u0900-\u097f]+"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]+"),
}
_OTHER_LANGUAGE = re.compile(
    r"翻译|译成|译为|英译|汉译|中译|[英法德日韩俄中汉]文|[英法德日韩俄汉]语|语言|拼音|读音|代码|编程"
    r"|translat|english|chinese|french|german|spanish|japanese|korean|russian|arabic|language|\bcode\b",
    re.IGNORECASE,
)


def script_of(text: str) -> str | None:
    """The script of most words of prose in `text`; None where that can't be told."""
    prose = _NOT_PROSE.sub(" ", text)
    words = Counter({name: len(pattern.findall(prose)) for name, pattern in _WORDS.items()})
    if words["Kana"] * 5 >= words["Han"] > 0:  # Japanese is written with both
        words["Kana"] += words.pop("Han")
    (script, most), total = words.most_common(1)[0], sum(words.values())
    return script if most >= FEWEST_WORDS and most >= SHARE * total else None


def foreign(text: str, to: str) -> bool:
    """Whether both texts are clearly written, and in different scripts."""
    scripts = {script_of(text), script_of(to)}
    return len(scripts) == 2 and None not in scripts


def speaks_of_languages(question: str) -> bool:
    """Whether a question speaks of a language, of translating or of code: then the answer may well be in another."""
    return _OTHER_LANGUAGE.search(question) is not None
