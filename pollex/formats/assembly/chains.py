"""Calls of models that no session names, put together by the history that each of them repeats."""

from collections.abc import Iterable, Mapping

from pollex.formats.assembly.log_parts import ModelCall
from pollex.formats.assembly.sessions import list_user_and_assistant_lines


def chain_calls_by_history(calls: Iterable[ModelCall]) -> Mapping[str, str]:
    """Return by trace the first trace of its conversation.

    A call goes on with another one whose messages and answer it begins with. Where several do, as
    with greetings, each has one that goes on with it.
    """
    ends: dict[int, list[str]] = {}
    silent: dict[int, list[str]] = {}
    first: dict[str, str] = {}
    # earlier calls first, and of equal times the shorter history
    in_time = sorted(calls, key=lambda call: (call.at or 0, len(call.before or ())))
    for call in in_time:
        history_lines = list_user_and_assistant_lines(call.before or ())
        prefixes = _hash_prefixes(history_lines)
        answer_lines = list_user_and_assistant_lines(call.after or ())
        predecessors = None
        # the same messages once more, after a call that brought no words
        if prefixes:
            predecessors = silent.get(prefixes[-1])
        if not predecessors:
            # of those whose end it repeats, the one with the longest history
            longest_first = (ends.get(prefix) for prefix in reversed(prefixes[:-1]))
            predecessors = next(filter(None, longest_first), None)

        first[call.trace] = first[predecessors.pop()] if predecessors else call.trace
        whole = _hash_prefixes((*history_lines, *answer_lines))
        if whole:
            # what only called a tool, or failed, is followed by the same messages once more
            (ends if answer_lines else silent).setdefault(whole[-1], []).append(call.trace)

    return first


def _hash_prefixes(lines: tuple[tuple[str, str], ...]) -> list[int]:
    """Return a hash of the first line, of the first two, and so on."""
    hashes: list[int] = []
    for line in lines:
        hashes.append(hash((hashes[-1] if hashes else 0, line)))
    return hashes
