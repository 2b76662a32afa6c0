"""Calls of models that no session names, put together by the history that each of them repeats."""

from collections.abc import Iterable, Mapping

from pollex.formats.assembly.log_parts import ModelCall
from pollex.formats.assembly.sessions import core

BY_HISTORY = "by history"
"""The session of a call that is found by what was said before it."""


def chained(calls: Iterable[ModelCall]) -> Mapping[str, str]:
    """Return by trace the first trace of its conversation.

    A call goes on with another one whose messages and answer it begins with. Where several do, as
    with greetings, each has one that goes on with it.
    """
    ends: dict[int, list[str]] = {}
    silent: dict[int, list[str]] = {}
    first: dict[str, str] = {}
    in_time = sorted(calls, key=lambda call: (call.at or 0, len(call.before or ())))
    for call in in_time:
        heard = core(call.before or ())
        prefixes = _prefixes(heard)
        said = core(call.after or ())
        found = silent.get(prefixes[-1]) if prefixes else None
        for prefix in [] if found else reversed(prefixes[:-1]):
            if found := ends.get(prefix):
                break
        first[call.trace] = first[found.pop()] if found else call.trace
        whole = _prefixes((*heard, *said))
        if whole:
            # what only called a tool, or failed, is followed by the same messages once more
            (ends if said else silent).setdefault(whole[-1], []).append(call.trace)
    return first


def _prefixes(lines: tuple[tuple[str, str], ...]) -> list[int]:
    """Return a hash of the first line, of the first two, and so on."""
    found: list[int] = []
    for line in lines:
        found.append(hash((found[-1] if found else 0, line)))
    return found
