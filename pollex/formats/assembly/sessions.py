"""Conversations from spans and runs: the text of each trace, and the order of traces.

A trace has the messages of its root, else of its last model call of least depth. The traces of a
session either repeat the history, or have only their own turn. Rules (i) to (iv) of `_Thread` join
both kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import ModelCall, Turns, Words
from pollex.formats.assembly.trees import Built, gather_fields

FAILED = Turn(role="assistant", content="[error]")
UNREAD = "what came out can't be read as words, and [error] stands for it"
"""What stands for an answer that never came."""
CALL = "[tool call: "
"""How the line of a turn begins that stands for a call of a tool."""

Core = tuple[tuple[str, str], ...]


class NoWords(BadInput):
    """No span of a session has any words."""


class Said(NamedTuple):
    """The messages of one trace.

    Attributes:
        history: Whether `before` may repeat earlier turns.
        spans: Ids of the trace and of its spans, which scores may name.
    """

    before: Turns
    after: Turns
    history: bool
    trace: str
    spans: tuple[str, ...]
    at: float | None
    error: str


def from_calls(calls: Sequence[ModelCall], words: Mapping[str, Words]) -> Built:
    """Build the conversation of a session's spans.

    Args:
        calls: All spans of the session's traces, each once.
        words: By span, the messages that stood in rows of their own.

    Raises:
        BadInput: No span has messages, or the traces contradict each other.
    """
    traces: dict[str, list[ModelCall]] = {}
    for call in calls:
        traces.setdefault(call.trace, []).append(call)
    candidates: list[list[Said]] = []
    wordless: dict[int, list[str]] = {}  # by how many traces with words come before
    for trace in _in_time(traces):
        if found := _candidates([_filled(call, words) for call in trace]):
            candidates.append(found)
        else:
            spans = [trace[0].trace, *(call.span for call in trace)]
            wordless.setdefault(max(len(candidates), 1), []).extend(spans)
    if not candidates:
        raise NoWords("no span has messages", remedy=WITHOUT_WORDS)
    candidates = _without_examples(candidates)
    thread = _Thread()
    for index, choice in enumerate(candidates):
        if (said := _chosen(choice, candidates[index + 1 :], thread)) is not None:
            thread.add(said)
        thread.hang(wordless.get(index + 1, ()))
    facts = gather_fields([_facts(call) for call in calls]) | _origin(calls, candidates)
    errors = tuple(
        dict.fromkeys(said.error for choice in candidates for said in choice[-1:] if said.error)
    )
    if not errors and FAILED in thread.turns:
        errors = (UNREAD,)
    places: dict[str, int | None] = {
        span: None for call in calls for span in (call.trace, call.span)
    }
    return Built(
        tuple(thread.turns), places | thread.places, errors, facts, thread.way(len(candidates))
    )


WITHOUT_WORDS = (
    "turn the capture of messages on where the traces are recorded (OpenTelemetry: "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true), and export again"
)


def _origin(calls: Sequence[ModelCall], candidates: Sequence[Sequence[Said]]) -> dict[str, object]:
    first = candidates[0][0].trace
    last = candidates[-1][-1].trace
    root = next((call.span for call in calls if call.trace == last and call.parent is None), last)
    session = next((call.session for call in calls if call.session), None)
    return {"traces": [first, last, root]} | ({"session": session} if session else {})


def _facts(call: ModelCall) -> Mapping[str, object]:
    """Return what is known of a call; only a trace's own metadata are its conversation's."""
    return {
        name: value
        for name, value in call.facts.items()
        if name != "metadata" or call.parent is None
    }


def _in_time(traces: Mapping[str, list[ModelCall]]) -> list[list[ModelCall]]:
    """Sort traces by their first span's time, and spans by time; ties keep file order."""

    def start(call: ModelCall) -> float:
        return call.at or 0

    def first(calls: Sequence[ModelCall]) -> float:
        return min((call.at for call in calls if call.at is not None), default=0)

    groups = [sorted(calls, key=start) for calls in traces.values()]
    if len(groups) > 1 and first(groups[0]) > first(groups[-1]):
        groups.reverse()
    return sorted(groups, key=first)


def _filled(call: ModelCall, words: Mapping[str, Words]) -> ModelCall:
    found = words.get(call.span)
    if found is None:
        return call
    return call._replace(
        before=call.before if call.before else found.before,
        after=call.after or found.after or None,
        model=not call.agent,
        history=True,
    )


def _candidates(trace: Sequence[ModelCall]) -> list[Said]:
    spans = tuple(dict.fromkeys([trace[0].trace, *(call.span for call in trace)]))
    parents = {call.span: call.parent for call in trace}
    depths = {call.span: _depth(call.span, parents) for call in trace}
    trace = _in_full(_as_it_stands(trace))
    readable = [call for call in trace if _is_whole(call)]
    if not readable:
        readable = [call for call in trace if call.before and depths[call.span] == 0]
    roots = [call for call in readable if depths[call.span] == 0]
    calls = [call for call in readable if call.model] or readable
    if roots and not all(call.model for call in roots):
        plain = [call for call in roots if not call.model]
        return [
            _told_fully(
                _said(plain[-1], spans), [_said(call, spans) for call in calls if call.model]
            )
        ]
    least = min((depths[call.span] for call in calls), default=0)
    return [_said(call, spans) for call in calls if depths[call.span] == least]


def _as_it_stands(trace: Sequence[ModelCall]) -> list[ModelCall]:
    """Take what may be words as words where no model's call of the trace tells them."""
    if any(call.model and _is_whole(call) for call in trace):
        return list(trace)
    return [_with_unsure(call) if call.unsure and not _is_whole(call) else call for call in trace]


def _with_unsure(call: ModelCall) -> ModelCall:
    before = call.unsure.get("before", call.before)
    after = call.unsure.get("after", call.after)
    return call._replace(before=before, after=after)


def _in_full(trace: Sequence[ModelCall]) -> list[ModelCall]:
    """Complete what went into model calls by what earlier ones of the trace said.

    Some libraries drop words beside calls of tools from the history, and some send the tools'
    answers alone.
    """
    full: list[ModelCall] = []
    last = ModelCall("", "")
    said = list[Turn]()
    for call in trace:
        if call.model and call.before:
            alone = all(turn.role == "tool" for turn in call.before)
            before = (
                (*(last.before or ()), *(last.after or ()), *call.before) if alone else call.before
            )
            last = call = call._replace(before=_with_words(before, said))
            said += call.after or ()
        full.append(call)
    return full


def _with_words(turns: Turns, known: Sequence[Turn]) -> Turns:
    """Put words beside calls of tools back where another record of the same calls has them."""
    left = [turn for turn in known if _marks(turn)]
    found: list[Turn] = []
    for turn in turns:
        marks = _marks(turn)
        place = next((i for i, one in enumerate(left) if marks and _marks(one) == marks), None)
        if place is not None and found and _words(left[place]) == _words(found[-1]) != "":
            del left[: place + 1]  # the words stand in a turn of their own
        elif place is not None:
            turn = max(turn, left[place], key=lambda one: (len(one.content), one.size))
            del left[: place + 1]
        found.append(turn)
    return tuple(found)


def _words(turn: Turn) -> str:
    """Return what an assistant said beside its calls."""
    lines = turn.content.splitlines() if turn.role == "assistant" else []
    return "\n".join(line for line in lines if not line.startswith(CALL)).strip()


def _marks(turn: Turn) -> list[str]:
    if turn.role != "assistant" or CALL not in turn.content:
        return []
    return [line for line in turn.content.splitlines() if line.startswith(CALL)]


FEW = 3
"""Traces from which on prompts that begin alike are told from one turn that was edited."""


def _without_examples(candidates: list[list[Said]]) -> list[list[Said]]:
    """Remove examples that are repeated before every prompt after the first.

    A history grows from trace to trace; examples don't.
    """
    heads = [core(choice[-1].before) for choice in candidates]
    alike = next(
        (i for i, lines in enumerate(zip(*heads, strict=False)) if len(set(lines)) > 1),
        min(map(len, heads)),
    )
    shown = max((i + 1 for i in range(alike) if heads[0][i][0] == "assistant"), default=0)
    answers = {line for choice in candidates for line in core(choice[-1].after)}
    if not shown or len(set(heads)) < FEW or any(answers & set(head[shown:]) for head in heads):
        return candidates
    cut = [
        [said._replace(before=_after(said.before, shown)) for said in choice]
        for choice in candidates[1:]
    ]
    return [candidates[0], *cut]


def _is_whole(call: ModelCall) -> bool:
    """Return whether both sides can be read, one of which may be the whole conversation."""
    if call.before:
        return bool(call.after or call.error) or call.before[-1].role == "assistant"
    return call.after is not None and any(turn.role == "user" for turn in call.after)


def _depth(span: str, parents: Mapping[str, str | None]) -> int:
    """Count the spans around one; missing parents count as one, cycles end."""
    depth = 0
    seen = {span}
    parent = parents[span]
    if parent and parent not in parents:
        return 1
    while parent is not None and parent in parents and parent not in seen:
        seen.add(parent)
        depth = depth + 1
        parent = parents[parent]
    return depth


def _said(call: ModelCall, spans: tuple[str, ...]) -> Said:
    before, after = _split(call.before or (), call.after or ())
    history = call.history or before != (call.before or ())
    if after[: len(before)] == before and len(after) > len(before):
        after = after[len(before) :]
    elif before and (told := _repeated(core(before), core(after))):
        before, after, history = *_last_said(before, after, told), True
    answered = bool(after) or (bool(before) and before[-1].role == "assistant")
    error = "" if core(after) else call.error
    return Said(
        before, after if answered else (FAILED,), history, call.trace, spans, call.at, error
    )


def _split(before: Turns, after: Turns) -> tuple[Turns, Turns]:
    """Split a whole talk on one side behind its last user turn, so that its last answer came out."""
    whole = before or after
    last = max((index for index, turn in enumerate(whole) if turn.role == "user"), default=-1)
    if (before and after) or last < 0 or last == len(whole) - 1:
        return before, after
    return whole[: last + 1], whole[last + 1 :]


def _repeated(asked: Core, answered: Core) -> int:
    ends = (
        end
        for end in range(len(answered) - 1, len(asked) - 1, -1)
        if asked and answered[end - 1] == asked[-1]
    )
    return next((end for end in ends if answered[end - len(asked) : end] == asked), 0)


def _last_said(before: Turns, after: Turns, told: int) -> tuple[Turns, Turns]:
    index = (_index(after, told) or 0) + 1
    system = tuple(turn for turn in before if turn.role == "system")
    return system + tuple(turn for turn in after[:index] if turn.role != "system"), after[index:]


def _told_fully(said: Said, calls: Sequence[Said]) -> Said:
    """Add tool calls to a root's turn, from a model call with its answer."""
    if not said.after or not core(said.before):
        return said
    if any(map(_marks, said.after)):
        return said._replace(
            after=_with_words(
                said.after, [turn for call in calls for turn in (*call.before, *call.after)]
            )
        )
    fullest = said
    heard = core(said.before)
    grown = said.history and any(role == "assistant" for role, _ in heard)
    for call in reversed(calls):
        before = _same_talk(call.before, heard, grown=grown)
        if before and len(core(before)) >= (len(heard) if said.history else 0):
            if core(call.after) == core(said.after):
                return said._replace(
                    before=before, after=call.after if core(call.after) else said.after
                )
            # the answer was worked on after the model gave it
            if fullest is said and any(map(_marks, before)):
                fullest = said._replace(before=before)
    return fullest


def _same_talk(turns: Turns, heard: Core, *, grown: bool) -> Turns:
    """Return of what went into a model what a root heard, too: all of it, or from its own turn on.

    Args:
        grown: Whether the root heard the history as well.
    """
    if core(turns) == heard:
        return turns
    last = max((index for index, turn in enumerate(turns) if turn.role == "user"), default=0)
    told = core(turns[last:])
    return turns[last:] if not grown and told and told[0][1].startswith(heard[-1][1]) else ()


def core(turns: Iterable[Turn]) -> Core:
    """Return role and text of user and assistant turns, for comparing two records.

    What was said beside calls of tools isn't among it: only some records have that.
    """
    return tuple(line for line in _lines(turns) if line)


def _lines(turns: Iterable[Turn]) -> list[tuple[str, str] | None]:
    """Return the line of `core` for each turn; None for a turn without one."""
    listed = list(turns)
    found: list[tuple[str, str] | None] = []
    for turn, after in zip_longest(listed, listed[1:]):
        words = turn.role in ("user", "assistant") and turn != FAILED
        step = (
            turn.role == "assistant"
            and after is not None
            and (after.role == "tool" or bool(_marks(after)))
        )
        lines = turn.content.splitlines() if words and not step else []
        text = "\n".join(line for line in lines if not line.startswith(CALL)).strip()
        found.append((turn.role, text) if text else None)
    return found


def _chosen(
    choice: Sequence[Said], later: Sequence[Sequence[Said]], thread: _Thread
) -> Said | None:
    """Return the call of a trace that belongs to the conversation.

    Its answer comes back later, or it ends the session. None if the trace only makes a title or a
    summary.
    """
    if not choice[-1].history or not _repeats(later):
        continuing = [said for said in choice if thread.continues(said)]
        return (continuing or list(choice))[-1]
    said_again = {
        line for said in (s for trace in later for s in trace) for line in core(said.before)
    }
    back = [said for said in choice if said.error or set(core(said.after)) & said_again]
    return back[-1] if back else None


def _repeats(later: Sequence[Sequence[Said]]) -> bool:
    return any(
        role == "assistant" for trace in later for said in trace for role, _ in core(said.before)
    )


class _Thread:
    """The turns of a session as they grow, trace by trace."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.places: dict[str, int | None] = {}
        self._ways: Counter[str] = Counter()

    def continues(self, said: Said) -> bool:
        """Return whether a trace repeats the conversation so far, and continues it."""
        told = core(self.turns)
        return core(said.before)[: len(told)] == told

    def way(self, traces: int) -> str:
        if traces == 1:
            return "one trace"
        return (
            "traces that repeat the history" if self._ways["history"] else "traces strung together"
        )

    def add(self, said: Said) -> None:
        """Add a trace to the conversation.

        (i) A history that begins with the talk so far, or differs from it at a turn that was
        edited, is followed;
        (ii) a turn of its own is strung on; (iii) a history that was cut at its beginning is joined
        where it overlaps;
        (iv) anything else contradicts.

        Raises:
            BadInput: (iv).
        """
        told = core(self.turns)
        heard = core(said.before)
        if self.turns and _marks(self.turns[-1]) and told[-1:] != heard[len(told) - 1 : len(told)]:
            # its tool answers in this trace
            told = core([*self.turns, Turn(role="tool", content="")])
        own = not said.history or not any(role == "assistant" for role, _ in heard)
        shared = _shared(told, heard)
        if not told or shared == len(told) or (shared and not own):
            self._follow(said, shared, edited=bool(told) and shared < len(told))
        elif own:
            self._append(
                said,
                tuple(one for one in said.before if one.role != "system" or one not in self.turns),
            )
        elif overlap := _overlap(told, heard):
            self._ways["history"] += 1
            self._append(said, _after(said.before, overlap))
        else:
            raise BadInput(
                "its traces contradict each other",
                remedy="give each conversation a session id of its own",
            )

    def hang(self, spans: Iterable[str]) -> None:
        """Give spans of traces without words the place of the last answer before them."""
        if self.turns:
            self.places.update(dict.fromkeys(spans, len(self.turns) - 1))

    def _follow(self, said: Said, shared: int, *, edited: bool) -> None:
        """Continue after the shared lines; of two records of them, keep the fuller."""
        if self.turns:
            self._ways["history"] += 1
        said = said._replace(before=_with_words(said.before, self.turns))
        known = self.turns[: (_index(tuple(self.turns), shared) or 0) + 1] if edited else self.turns
        known = list(_with_words(tuple(known), said.before))
        new = _after(said.before, shared)
        while known and new and _marks(known[-1]) and _marks(known[-1]) == _marks(new[0]):
            known = known[:-1]  # the history has the call, and its result after it
        failed = bool(known) and known[-1] == FAILED and FAILED not in said.before
        if failed and not new and said.after and FAILED not in said.after:
            known = known[:-1]  # the same was asked again, and answered
            failed = False
        if failed or len(known) > len(said.before) - len(new):
            said = said._replace(before=(*known, *new))
        moved: dict[str, int | None] = {}
        for span, place in self.places.items():
            count = None if place is None else sum(map(bool, _lines(self.turns)[: place + 1]))
            moved[span] = (
                None if count is None or (edited and count > shared) else _index(said.before, count)
            )
        self.places = moved
        self.turns = []
        self._append(said, said.before)

    def _append(self, said: Said, before: Turns) -> None:
        self.turns += [*before, *said.after]
        self.places.update(dict.fromkeys(said.spans, len(self.turns) - 1))


def _shared(told: Core, heard: Core) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(told, heard, strict=False)) if a != b),
        min(len(told), len(heard)),
    )


def _overlap(told: Core, heard: Core) -> int:
    lengths = range(min(len(told), len(heard)), 0, -1)
    return next((length for length in lengths if told[-length:] == heard[:length]), 0)


def _after(turns: Turns, lines: int) -> Turns:
    index = _index(turns, lines)
    return turns if index is None else turns[index + 1 :]


def _index(turns: Turns, lines: int) -> int | None:
    """Return the index of the last of `lines` turns with text; None if fewer."""
    places = [index for index, line in enumerate(_lines(turns)) if line]
    return places[lines - 1] if 0 < lines <= len(places) else None
