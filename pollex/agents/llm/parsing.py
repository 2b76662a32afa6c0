"""Parsing of what a model wrote into checked values."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pollex.gateway.json_in_text import JsonBlock, find_last_json_object

_SURROGATE_REGEX = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def parse_last_object(text: str) -> JsonBlock | None:
    """Parse the last complete JSON object in `text`, with texts that can be stored."""
    block = find_last_json_object(text)
    # nearly no answer has a surrogate: the others stay as they were parsed
    if block is None or not _SURROGATE_REGEX.search(text):
        return block

    try:
        return JsonBlock(_replace_lone_surrogates(block.value), block.start, block.end)
    except RecursionError:
        return None


def find_named_option(answer: object, options: Sequence[str]) -> int | None:
    """Return the index of the option that `answer` names; None where none does, or more than one.

    What is written like an option is that option. Else case, quotes, marks at the end, emphasis and
    joined words are folded, and true and false are yes and no, where that leaves one option alone.
    Nothing is translated or guessed.
    """
    # a JSON boolean is a yes or a no
    if isinstance(answer, bool):
        return _find_only_option(
            _index_options_by_folded_spelling(tuple(options)), _WORDS_BY_BOOLEAN[answer]
        )
    if not isinstance(answer, str):
        return None

    # an exact spelling counts before any folding
    exact = _index_options_by_spelling(tuple(options)).get(normalize_option(answer))
    if exact is not None:
        return exact

    folded = fold_spelling(answer)
    by_spelling = _index_options_by_folded_spelling(tuple(options))
    if not folded:
        return None

    named = _find_only_option(by_spelling, (folded,))
    # “true” may stand for “yes” where no option is called so
    if named is None and (words := _BOOLEAN_WORDS_BY_WORD.get(folded)):
        return _find_only_option(by_spelling, words)
    return named


def describe_unknown_option(answer: object) -> str:
    """Say that an answer names no option."""
    if answer is None:
        return "not answered"
    return f"not an option: {str(answer)[:80]!r}"


_WORDS_BY_BOOLEAN = {True: ("yes", "true"), False: ("no", "false")}
_BOOLEAN_WORDS_BY_WORD = {word: words for words in _WORDS_BY_BOOLEAN.values() for word in words}
_SURROUNDING_MARKS = " \t\r\n\"'`*_“”„‘’‚«»‹›「」『』()[]"
_FINAL_PUNCTUATION = ".!,;:…。！，、।"
_WORD_SEPARATOR_REGEX = re.compile(r"[\s_\u2010-\u2015-]+")


def fold_spelling(option: str) -> str:
    """Fold what a spelling may differ in without being another option: see `find_named_option`."""
    text = normalize_option(option)
    # marks may be nested, such as quotes in brackets
    while text != (bare := text.strip(_SURROUNDING_MARKS).rstrip(_FINAL_PUNCTUATION)):
        text = bare
    return _WORD_SEPARATOR_REGEX.sub(" ", text).casefold()


def _find_only_option(
    by_spelling: Mapping[str, tuple[int, ...]], words: Sequence[str]
) -> int | None:
    """Return the one option that one of the words names."""
    places = [place for word in words for place in by_spelling.get(word, ())]
    return places[0] if len(places) == 1 else None


@lru_cache(maxsize=256)
def _index_options_by_folded_spelling(options: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the indices of options by their folded spelling."""
    by_spelling: dict[str, tuple[int, ...]] = {}
    for place, option in enumerate(options):
        by_spelling[fold_spelling(option)] = (*by_spelling.get(fold_spelling(option), ()), place)
    return by_spelling


@lru_cache(maxsize=256)
def _index_options_by_spelling(options: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each option by its spelling as it is compared; of equal ones the first."""
    places: dict[str, int] = {}
    # from the last, so that of equal spellings the first one stays
    for place, option in reversed(list(enumerate(options))):
        places[normalize_option(option)] = place
    return places


def normalize_option(option: str) -> str:
    """Normalize an option's spelling for comparison."""
    return unicodedata.normalize("NFKC", option).strip()


def match_option_of_person(answer: str, options: Sequence[str]) -> str | None:
    """Return the option that a person named, regardless of case."""
    plain = [normalize_option(option).casefold() for option in options]
    folded = normalize_option(answer).casefold()
    if plain.count(folded) == 1:
        return options[plain.index(folded)]
    return None


def read_numbers(value: object, allowed: range) -> list[int]:
    """Return the distinct whole numbers in a list that are `known`, in its order; none for any other value."""
    items = value if isinstance(value, list) else []
    # a boolean is an `int` to `isinstance`, but no number here
    return list(dict.fromkeys(item for item in items if type(item) is int and item in allowed))


def read_objects(value: object) -> list[dict[str, object]]:
    """Return the objects in a list; empty for any other value."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return []


def _replace_lone_surrogates(value: object) -> Any:
    """Replace lone surrogates, which no store accepts, by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_replace_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            _replace_lone_surrogates(key): _replace_lone_surrogates(item)
            for key, item in value.items()
        }
    return value
