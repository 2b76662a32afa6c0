"""Reactions written as text, as channels are exported: `+1 (2), eyes (1)` or `:thumbsup: :tada:`."""

import re

from pollex.formats.names import split_name_words

_REACTION_SEPARATOR_PATTERN = re.compile(r"\s*[,;|]\s*")
_COUNTED_REACTION_PATTERN = re.compile(
    r"(?P<name>.+?)\s*(?:\((?P<in_brackets>\d+)\)|[x×]\s?(?P<times>\d+)|\s(?P<after>\d+))?"
)


def is_reactions_column_name(path: str) -> bool:
    """Return whether a column is named after reactions, of which a message may have several."""
    return "reactions" in split_name_words(path)


def parse_reactions(value: object) -> list[tuple[str, int]] | None:
    """Return the names of reactions with their numbers; None where a value is no text."""
    if not isinstance(value, str):
        return None

    reactions = []
    for part in filter(None, _REACTION_SEPARATOR_PATTERN.split(value.strip())):
        counted = _COUNTED_REACTION_PATTERN.fullmatch(part)
        assert counted is not None, "any text is a name"
        number = int(counted["in_brackets"] or counted["times"] or counted["after"] or 1)
        reactions += [(name, number) for name in counted["name"].split()]

    return reactions
