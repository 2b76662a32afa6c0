"""Parsing of what a model wrote into checked values."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pollex.gateway.json_in_text import JsonBlock, find_last_object

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def object_in(text: str) -> JsonBlock | None:
    """Parse the last complete JSON object in `text`, with texts that can be stored."""
    block = find_last_object(text)
    # nearly no answer has a surrogate: the others stay as they were parsed
    if block is None or not _SURROGATE.search(text):
        return block

    try:
        return JsonBlock(_storable(block.value), block.start, block.end)
    except RecursionError:
        return None


def option_named(answer: Any, options: Sequence[str]) -> int | None:
    """Return the index of the option that `answer` names; None where none does, or more than one.

    What is written like an option is that option. Else case, quotes, marks at the end, emphasis and
    joined words are folded, and true and false are yes and no, where that leaves one option alone.
    Nothing is translated or guessed.
    """
    # a JSON boolean is a yes or a no
    if isinstance(answer, bool):
        return _only(_folded(tuple(options)), _BOOLEANS[answer])
    if not isinstance(answer, str):
        return None

    # an exact spelling counts before any folding
    exact = _places(tuple(options)).get(as_read(answer))
    if exact is not None:
        return exact

    folded = fold(answer)
    by_spelling = _folded(tuple(options))
    if not folded:
        return None

    named = _only(by_spelling, (folded,))
    # “true” may stand for “yes” where no option is called so
    if named is None and (words := _AS_BOOLEAN.get(folded)):
        return _only(by_spelling, words)
    return named


def not_an_option(answer: Any) -> str:
    """Say that an answer names no option."""
    if answer is None:
        return "not answered"
    return f"not an option: {str(answer)[:80]!r}"


_BOOLEANS = {True: ("yes", "true"), False: ("no", "false")}
_AS_BOOLEAN = {word: words for words in _BOOLEANS.values() for word in words}
_AROUND = " \t\r\n\"'`*_“”„‘’‚«»‹›「」『』()[]"
_FINAL = ".!,;:…。！，、।"
_JOINTS = re.compile(r"[\s_\u2010-\u2015-]+")


def fold(option: str) -> str:
    """Fold what a spelling may differ in without being another option: see `option_named`."""
    text = as_read(option)
    # marks may be nested, such as quotes in brackets
    while text != (bare := text.strip(_AROUND).rstrip(_FINAL)):
        text = bare
    return _JOINTS.sub(" ", text).casefold()


def _only(by_spelling: Mapping[str, tuple[int, ...]], words: Sequence[str]) -> int | None:
    """Return the one option that one of the words names."""
    places = [place for word in words for place in by_spelling.get(word, ())]
    return places[0] if len(places) == 1 else None


@lru_cache(maxsize=256)
def _folded(options: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the indices of options by their folded spelling."""
    by_spelling: dict[str, tuple[int, ...]] = {}
    for place, option in enumerate(options):
        by_spelling[fold(option)] = (*by_spelling.get(fold(option), ()), place)
    return by_spelling


@lru_cache(maxsize=256)
def _places(options: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each option by its spelling as it is compared; of equal ones the first."""
    places: dict[str, int] = {}
    # from the last, so that of equal spellings the first one stays
    for place, option in reversed(list(enumerate(options))):
        places[as_read(option)] = place
    return places


def as_read(option: str) -> str:
    """Normalize an option's spelling for comparison."""
    return unicodedata.normalize("NFKC", option).strip()


def option_of(answer: str, options: Sequence[str]) -> str | None:
    """Return the option that a person named, regardless of case."""
    plain = [as_read(option).casefold() for option in options]
    folded = as_read(answer).casefold()
    if plain.count(folded) == 1:
        return options[plain.index(folded)]
    return None


def numbers(value: Any, allowed: range) -> list[int]:
    """Return the distinct whole numbers in a list that are `known`, in its order; none for any other value."""
    items = value if isinstance(value, list) else []
    # a boolean is an `int` to `isinstance`, but no number here
    return list(dict.fromkeys(item for item in items if type(item) is int and item in allowed))


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; empty for any other value."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return []


def _storable(value: Any) -> Any:
    """Replace lone surrogates, which no store accepts, by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value
