"""Conversations from spans and runs: the text of each trace, and the order of traces.

A trace has the messages of its root, else of its last model call of least depth. The traces of a
session either repeat the history, or have only their own turn. Rules (i) to (iv) of `_SessionThread` join
both kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import ModelCall, SpanWords, TurnTuple
from pollex.formats.assembly.trees import BuiltConversation, merge_fields_of_facts

TURN_FOR_FAILED_ANSWER = Turn(role="assistant", content="[error]")
UNREADABLE_ANSWER_NOTE = "what came out can't be read as words, and [error] stands for it"
"""What stands for an answer that never came."""
TOOL_CALL_LINE_PREFIX = "[tool call: "
"""How the line of a turn begins that stands for a call of a tool."""

RoleAndTextLines = tuple[tuple[str, str], ...]


class SessionWithoutWords(BadInput):
    """No span of a session has any words."""


class TraceExchange(NamedTuple):
    """The messages of one trace.

    Attributes:
        history: Whether `before` may repeat earlier turns.
        spans: Ids of the trace and of its spans, which scores may name.
    """

    before: TurnTuple
    after: TurnTuple
    history: bool
    trace: str
    spans: tuple[str, ...]
    at: float | None
    error: str


def build_conversation_from_calls(
    calls: Sequence[ModelCall], words: Mapping[str, SpanWords]
) -> BuiltConversation:
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

    candidates: list[list[TraceExchange]] = []
    wordless: dict[int, list[str]] = {}  # by how many traces with words come before
    # what each trace may add to the conversation, in order of time
    for trace in _sort_traces_by_time(traces):
        if trace_candidates := _list_candidate_exchanges(
            [_fill_span_words(call, words) for call in trace]
        ):
            candidates.append(trace_candidates)
        else:
            spans = [trace[0].trace, *(call.span for call in trace)]
            wordless.setdefault(max(len(candidates), 1), []).extend(spans)

    if not candidates:
        raise SessionWithoutWords("no span has messages", hint=MISSING_WORDS_HINT)

    candidates = _remove_repeated_examples(candidates)
    # one exchange of each trace continues the conversation
    thread = _SessionThread()
    for index, choice in enumerate(candidates):
        if (chosen := _choose_call(choice, candidates[index + 1 :], thread)) is not None:
            thread.add(chosen)
        thread.hang(wordless.get(index + 1, ()))

    facts = merge_fields_of_facts([_get_call_facts(call) for call in calls]) | _describe_origin(
        calls, candidates
    )
    last_errors = [choice[-1].error for choice in candidates]
    errors = tuple(dict.fromkeys(filter(None, last_errors)))
    if not errors and TURN_FOR_FAILED_ANSWER in thread.turns:
        errors = (UNREADABLE_ANSWER_NOTE,)

    # scores may name any span, also one without a turn of its own
    places: dict[str, int | None] = {}
    for call in calls:
        for span in (call.trace, call.span):
            places[span] = None

    return BuiltConversation(
        tuple(thread.turns),
        places | thread.places,
        errors,
        facts,
        thread.way(len(candidates)),
    )


MISSING_WORDS_HINT = (
    "turn the capture of messages on where the traces are recorded (OpenTelemetry: "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true), and export again"
)


def _describe_origin(
    calls: Sequence[ModelCall], candidates: Sequence[Sequence[TraceExchange]]
) -> dict[str, object]:
    first = candidates[0][0].trace
    last = candidates[-1][-1].trace
    root = next(
        (call.span for call in calls if call.trace == last and call.parent is None),
        last,
    )
    session = next((call.session for call in calls if call.session), None)
    return {"traces": [first, last, root]} | ({"session": session} if session else {})


def _get_call_facts(call: ModelCall) -> Mapping[str, object]:
    """Return what is known of a call; only a trace's own metadata are its conversation's."""
    facts: dict[str, object] = {}
    for name, value in call.facts.items():
        if name != "metadata" or call.parent is None:
            facts[name] = value
    return facts


def _sort_traces_by_time(traces: Mapping[str, list[ModelCall]]) -> list[list[ModelCall]]:
    """Sort traces by their first span's time, and spans by time; ties keep file order."""

    def start(call: ModelCall) -> float:
        return call.at or 0

    def first(calls: Sequence[ModelCall]) -> float:
        moments = []
        for call in calls:
            if call.at is not None:
                moments.append(call.at)

        return min(moments, default=0)

    groups = [sorted(calls, key=start) for calls in traces.values()]
    # a file may have its newest trace first; traces of equal times then stay in order
    if len(groups) > 1 and first(groups[0]) > first(groups[-1]):
        groups.reverse()

    return sorted(groups, key=first)


def _fill_span_words(call: ModelCall, words: Mapping[str, SpanWords]) -> ModelCall:
    span_words = words.get(call.span)
    if span_words is None:
        return call

    # messages from rows of their own fill what the span lacks
    return call._replace(
        before=call.before if call.before else span_words.before,
        after=call.after or span_words.after or None,
        model=not call.agent,
        history=True,
    )


def _list_candidate_exchanges(trace: Sequence[ModelCall]) -> list[TraceExchange]:
    spans = tuple(dict.fromkeys([trace[0].trace, *(call.span for call in trace)]))
    parents = {call.span: call.parent for call in trace}
    depths = {}
    for call in trace:
        depths[call.span] = _count_parent_spans(call.span, parents)

    # the spans whose two sides can be read
    trace = _complete_histories(_take_unsure_words(trace))
    readable = []
    for call in trace:
        if _has_readable_sides(call):
            readable.append(call)

    # no span is whole: a root that was asked and never answered
    if not readable:
        readable = []
        for call in trace:
            if call.before and depths[call.span] == 0:
                readable.append(call)

    # a root has the words as the user saw them; else the model calls of least depth
    roots = []
    for call in readable:
        if depths[call.span] == 0:
            roots.append(call)

    calls = [call for call in readable if call.model] or readable
    if roots and not all(call.model for call in roots):
        plain = []
        for call in roots:
            if not call.model:
                plain.append(call)

        model_exchanges = []
        for call in calls:
            if call.model:
                model_exchanges.append(_make_exchange(call, spans))

        return [_add_tool_calls(_make_exchange(plain[-1], spans), model_exchanges)]

    least = min((depths[call.span] for call in calls), default=0)
    candidates: list[TraceExchange] = []
    for call in calls:
        if depths[call.span] == least:
            candidates.append(_make_exchange(call, spans))

    return candidates


def _take_unsure_words(trace: Sequence[ModelCall]) -> list[ModelCall]:
    """Take what may be words as words where no model's call of the trace tells them."""
    if any(call.model and _has_readable_sides(call) for call in trace):
        return list(trace)
    return [
        _use_unsure_sides(call) if call.unsure and not _has_readable_sides(call) else call
        for call in trace
    ]


def _use_unsure_sides(call: ModelCall) -> ModelCall:
    before = call.unsure.get("before", call.before)
    after = call.unsure.get("after", call.after)
    return call._replace(before=before, after=after)


def _complete_histories(trace: Sequence[ModelCall]) -> list[ModelCall]:
    """Complete what went into model calls by what earlier ones of the trace said.

    Some libraries drop words beside calls of tools from the history, and some send the tools'
    answers alone.
    """
    full: list[ModelCall] = []
    last = ModelCall("", "")
    earlier_turns = list[Turn]()
    for call in trace:
        if call.model and call.before:
            # tools' answers alone: what led to them stands in the call before
            alone = all(turn.role == "tool" for turn in call.before)
            if alone:
                before = (*(last.before or ()), *(last.after or ()), *call.before)
            else:
                before = call.before

            last = call = call._replace(before=_restore_words_beside_calls(before, earlier_turns))
            earlier_turns += call.after or ()

        full.append(call)

    return full


def _restore_words_beside_calls(turns: TurnTuple, recorded_turns: Sequence[Turn]) -> TurnTuple:
    """Put words beside calls of tools back where another record of the same calls has them."""
    remaining = [turn for turn in recorded_turns if _list_call_marks(turn)]
    completed: list[Turn] = []
    for turn in turns:
        marks = _list_call_marks(turn)
        same_calls = (
            index
            for index, candidate in enumerate(remaining)
            if marks and _list_call_marks(candidate) == marks
        )
        place = next(same_calls, None)
        if (
            place is not None
            and completed
            and _get_words_beside_calls(remaining[place])
            == _get_words_beside_calls(completed[-1])
            != ""
        ):
            del remaining[: place + 1]  # the words stand in a turn of their own
        elif place is not None:
            turn = max(turn, remaining[place], key=_measure_fullness)
            del remaining[: place + 1]

        completed.append(turn)

    return tuple(completed)


def _measure_fullness(turn: Turn) -> tuple[int, int]:
    return len(turn.content), turn.size


def _get_words_beside_calls(turn: Turn) -> str:
    """Return what an assistant said beside its calls."""
    if turn.role == "assistant":
        lines = turn.content.splitlines()
    else:
        lines = []

    lines_of_words = []
    for line in lines:
        if not line.startswith(TOOL_CALL_LINE_PREFIX):
            lines_of_words.append(line)

    return "\n".join(lines_of_words).strip()


def _list_call_marks(turn: Turn) -> list[str]:
    if turn.role != "assistant" or TOOL_CALL_LINE_PREFIX not in turn.content:
        return []
    return [line for line in turn.content.splitlines() if line.startswith(TOOL_CALL_LINE_PREFIX)]


MIN_TRACES_WITH_EXAMPLES = 3
"""Traces from which on prompts that begin alike are told from one turn that was edited."""


def _remove_repeated_examples(candidates: list[list[TraceExchange]]) -> list[list[TraceExchange]]:
    """Remove examples that are repeated before every prompt after the first.

    A history grows from trace to trace; examples don't.
    """
    # how many lines all prompts begin with, up to their last answer
    heads = [list_user_and_assistant_lines(choice[-1].before) for choice in candidates]
    alike = next(
        (i for i, lines in enumerate(zip(*heads, strict=False)) if len(set(lines)) > 1),
        min(map(len, heads)),
    )
    answered = []
    for i in range(alike):
        if heads[0][i][0] == "assistant":
            answered.append(i + 1)

    shown = max(
        answered,
        default=0,
    )
    answers: set[tuple[str, str]] = set()
    for choice in candidates:
        answers.update(list_user_and_assistant_lines(choice[-1].after))
    # an answer that comes back behind them shows a growing history, and no examples
    if (
        not shown
        or len(set(heads)) < MIN_TRACES_WITH_EXAMPLES
        or any(answers & set(head[shown:]) for head in heads)
    ):
        return candidates

    cut = []
    for choice in candidates[1:]:
        shortened = []
        for exchange in choice:
            shortened.append(exchange._replace(before=_list_turns_after(exchange.before, shown)))

        cut.append(shortened)

    return [candidates[0], *cut]


def _has_readable_sides(call: ModelCall) -> bool:
    """Return whether both sides can be read, one of which may be the whole conversation."""
    if call.before:
        return bool(call.after or call.error) or call.before[-1].role == "assistant"
    return call.after is not None and any(turn.role == "user" for turn in call.after)


def _count_parent_spans(span: str, parents: Mapping[str, str | None]) -> int:
    """Count the spans around one; missing parents count as one, cycles end."""
    depth = 0
    visited = {span}
    parent = parents[span]
    if parent and parent not in parents:
        return 1

    while parent is not None and parent in parents and parent not in visited:
        visited.add(parent)
        depth = depth + 1
        parent = parents[parent]

    return depth


def _make_exchange(call: ModelCall, spans: tuple[str, ...]) -> TraceExchange:
    before, after = _split_sides(call.before or (), call.after or ())
    history = call.history or before != (call.before or ())
    # what came out may begin with all that went in
    if after[: len(before)] == before and len(after) > len(before):
        after = after[len(before) :]
    elif before and (
        repeated_lines := _count_repeated_lines(
            list_user_and_assistant_lines(before), list_user_and_assistant_lines(after)
        )
    ):
        before, after, history = *_split_repeated_turns(before, after, repeated_lines), True

    answered = bool(after) or (bool(before) and before[-1].role == "assistant")
    error = "" if list_user_and_assistant_lines(after) else call.error
    return TraceExchange(
        before,
        after if answered else (TURN_FOR_FAILED_ANSWER,),
        history,
        call.trace,
        spans,
        call.at,
        error,
    )


def _split_sides(before: TurnTuple, after: TurnTuple) -> tuple[TurnTuple, TurnTuple]:
    """Split a whole talk on one side behind its last user turn, so that its last answer came out."""
    whole = before or after
    user_places = []
    for index, turn in enumerate(whole):
        if turn.role == "user":
            user_places.append(index)

    last = max(
        user_places,
        default=-1,
    )
    if (before and after) or last < 0 or last == len(whole) - 1:
        return before, after
    return whole[: last + 1], whole[last + 1 :]


def _count_repeated_lines(question_lines: RoleAndTextLines, answer_lines: RoleAndTextLines) -> int:
    # from the end: the last place in the answer where all lines of the question stand
    ends = (
        end
        for end in range(len(answer_lines) - 1, len(question_lines) - 1, -1)
        if question_lines and answer_lines[end - 1] == question_lines[-1]
    )
    return next(
        (end for end in ends if answer_lines[end - len(question_lines) : end] == question_lines),
        0,
    )


def _split_repeated_turns(
    before: TurnTuple,
    after: TurnTuple,
    repeated_lines: int,
) -> tuple[TurnTuple, TurnTuple]:
    # the system's turns of what went in stay first
    index = (_find_line_index(after, repeated_lines) or 0) + 1
    system_turns = []
    for turn in before:
        if turn.role == "system":
            system_turns.append(turn)

    system = tuple(system_turns)
    later_turns = []
    for turn in after[:index]:
        if turn.role != "system":
            later_turns.append(turn)

    return system + tuple(later_turns), after[index:]


def _add_tool_calls(root: TraceExchange, calls: Sequence[TraceExchange]) -> TraceExchange:
    """Add tool calls to a root's turn, from a model call with its answer."""
    if not root.after or not list_user_and_assistant_lines(root.before):
        return root
    if any(map(_list_call_marks, root.after)):
        recorded_turns: list[Turn] = []
        for call in calls:
            recorded_turns.extend((*call.before, *call.after))
        return root._replace(after=_restore_words_beside_calls(root.after, recorded_turns))

    fullest = root
    history_lines = list_user_and_assistant_lines(root.before)
    grown = root.history and _has_assistant_line(history_lines)
    # from the last call back: one with the same answer has the root's history in full
    for call in reversed(calls):
        before = _select_shared_turns(call.before, history_lines, grown=grown)
        if before and len(list_user_and_assistant_lines(before)) >= (
            len(history_lines) if root.history else 0
        ):
            if list_user_and_assistant_lines(call.after) == list_user_and_assistant_lines(
                root.after
            ):
                return root._replace(
                    before=before,
                    after=call.after if list_user_and_assistant_lines(call.after) else root.after,
                )

            # the answer was worked on after the model gave it
            if fullest is root and any(map(_list_call_marks, before)):
                fullest = root._replace(before=before)

    return fullest


def _select_shared_turns(
    turns: TurnTuple, history_lines: RoleAndTextLines, *, grown: bool
) -> TurnTuple:
    """Return of what went into a model what a root heard, too: all of it, or from its own turn on.

    Args:
        grown: Whether the root heard the history as well.
    """
    if list_user_and_assistant_lines(turns) == history_lines:
        return turns

    user_places = []
    for index, turn in enumerate(turns):
        if turn.role == "user":
            user_places.append(index)

    last = max(
        user_places,
        default=0,
    )
    last_lines = list_user_and_assistant_lines(turns[last:])
    if grown or not last_lines:
        return ()

    first_text = last_lines[0][1]
    question = history_lines[-1][1]
    return turns[last:] if first_text.startswith(question) else ()


def list_user_and_assistant_lines(turns: Iterable[Turn]) -> RoleAndTextLines:
    """Return role and text of user and assistant turns, for comparing two records.

    What was said beside calls of tools isn't among it: only some records have that.
    """
    return tuple(line for line in _list_turn_lines(turns) if line)


def _list_turn_lines(turns: Iterable[Turn]) -> list[tuple[str, str] | None]:
    """Return the line of `list_user_and_assistant_lines` for each turn; None for a turn without one."""
    listed = list(turns)
    core_lines: list[tuple[str, str] | None] = []
    for turn, after in zip_longest(listed, listed[1:]):
        words = turn.role in ("user", "assistant") and turn != TURN_FOR_FAILED_ANSWER
        # what is said before a tool's answer or another call is a step, and no answer
        step = (
            turn.role == "assistant"
            and after is not None
            and (after.role == "tool" or bool(_list_call_marks(after)))
        )
        if words and not step:
            lines = turn.content.splitlines()
        else:
            lines = []

        lines_of_words = []
        for line in lines:
            if not line.startswith(TOOL_CALL_LINE_PREFIX):
                lines_of_words.append(line)

        text = "\n".join(lines_of_words).strip()
        core_lines.append((turn.role, text) if text else None)

    return core_lines


def _choose_call(
    choice: Sequence[TraceExchange],
    later: Sequence[Sequence[TraceExchange]],
    thread: _SessionThread,
) -> TraceExchange | None:
    """Return the call of a trace that belongs to the conversation.

    Its answer comes back later, or it ends the session. None if the trace only makes a title or a
    summary.
    """
    # no later history shows which answer was given: the last call that continues the talk
    if not choice[-1].history or not _repeats_history(later):
        continuing = []
        for exchange in choice:
            if thread.continues(exchange):
                continuing.append(exchange)

        return (continuing or list(choice))[-1]

    # answers that come back in later histories were shown to the user
    said_again: set[tuple[str, str]] = set()
    for exchange in chain.from_iterable(later):
        said_again.update(list_user_and_assistant_lines(exchange.before))

    answered_later = []
    for exchange in choice:
        if exchange.error or said_again & set(list_user_and_assistant_lines(exchange.after)):
            answered_later.append(exchange)

    return answered_later[-1] if answered_later else None


def _repeats_history(later: Sequence[Sequence[TraceExchange]]) -> bool:
    return any(
        _has_assistant_line(list_user_and_assistant_lines(exchange.before))
        for exchange in chain.from_iterable(later)
    )


def _has_assistant_line(lines: RoleAndTextLines) -> bool:
    return any(role == "assistant" for role, _ in lines)


class _SessionThread:
    """The turns of a session as they grow, trace by trace."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.places: dict[str, int | None] = {}
        self._ways: Counter[str] = Counter()

    def continues(self, exchange: TraceExchange) -> bool:
        """Return whether a trace repeats the conversation so far, and continues it."""
        thread_lines = list_user_and_assistant_lines(self.turns)
        return list_user_and_assistant_lines(exchange.before)[: len(thread_lines)] == thread_lines

    def way(self, traces: int) -> str:
        if traces == 1:
            return "one trace"
        if self._ways["history"]:
            return "traces that repeat the history"
        return "traces strung together"

    def add(self, exchange: TraceExchange) -> None:
        """Add a trace to the conversation.

        (i) A history that begins with the talk so far, or differs from it at a turn that was
        edited, is followed;
        (ii) a turn of its own is strung on; (iii) a history that was cut at its beginning is joined
        where it overlaps;
        (iv) anything else contradicts.

        Raises:
            BadInput: (iv).
        """
        thread_lines = list_user_and_assistant_lines(self.turns)
        history_lines = list_user_and_assistant_lines(exchange.before)
        end = len(thread_lines)
        differs = thread_lines[-1:] != history_lines[end - 1 : end]
        if self.turns and _list_call_marks(self.turns[-1]) and differs:
            # its tool answers in this trace
            thread_lines = list_user_and_assistant_lines(
                [*self.turns, Turn(role="tool", content="")]
            )

        # a turn of its own is one text, or a history without answers
        is_own_turn = not exchange.history or not _has_assistant_line(history_lines)
        shared = _count_shared_lines(thread_lines, history_lines)
        if not thread_lines or shared == len(thread_lines) or (shared and not is_own_turn):
            self._follow(
                exchange,
                shared,
                edited=bool(thread_lines) and shared < len(thread_lines),
            )
        elif is_own_turn:
            # system turns come with each trace, and stand in the conversation once
            new_turns = []
            for turn in exchange.before:
                if turn.role != "system" or turn not in self.turns:
                    new_turns.append(turn)

            self._append(exchange, tuple(new_turns))
        elif overlap := _count_overlapping_lines(thread_lines, history_lines):
            self._ways["history"] += 1
            self._append(exchange, _list_turns_after(exchange.before, overlap))
        else:
            raise BadInput(
                "its traces contradict each other",
                hint="give each conversation a session id of its own",
            )

    def hang(self, spans: Iterable[str]) -> None:
        """Give spans of traces without words the place of the last answer before them."""
        if self.turns:
            self.places.update(dict.fromkeys(spans, len(self.turns) - 1))

    def _follow(self, exchange: TraceExchange, shared: int, *, edited: bool) -> None:
        """Continue after the shared lines; of two records of them, keep the fuller."""
        if self.turns:
            self._ways["history"] += 1

        # of two records of the shared turns, the one with more words
        exchange = exchange._replace(
            before=_restore_words_beside_calls(exchange.before, self.turns)
        )
        if edited:
            earlier_turns = self.turns[: (_find_line_index(tuple(self.turns), shared) or 0) + 1]
        else:
            earlier_turns = self.turns

        earlier_turns = list(_restore_words_beside_calls(tuple(earlier_turns), exchange.before))
        new = _list_turns_after(exchange.before, shared)
        while (
            earlier_turns
            and new
            and _list_call_marks(earlier_turns[-1])
            and _list_call_marks(earlier_turns[-1]) == _list_call_marks(new[0])
        ):
            earlier_turns = earlier_turns[:-1]  # the history has the call, and its result after it

        # the thread ends in an error that this history doesn't have
        failed = (
            bool(earlier_turns)
            and earlier_turns[-1] == TURN_FOR_FAILED_ANSWER
            and TURN_FOR_FAILED_ANSWER not in exchange.before
        )
        if failed and not new and exchange.after and TURN_FOR_FAILED_ANSWER not in exchange.after:
            earlier_turns = earlier_turns[:-1]  # the same was asked again, and answered
            failed = False
        # the thread's own record has more turns than the history repeats
        if failed or len(earlier_turns) > len(exchange.before) - len(new):
            exchange = exchange._replace(before=(*earlier_turns, *new))

        # the places of earlier spans, counted anew in the history that is followed
        moved: dict[str, int | None] = {}
        for span, place in self.places.items():
            count = None
            if place is not None:
                count = sum(map(bool, _list_turn_lines(self.turns)[: place + 1]))
            moved[span] = (
                None
                if count is None or (edited and count > shared)
                else _find_line_index(exchange.before, count)
            )

        self.places = moved
        self.turns = []
        self._append(exchange, exchange.before)

    def _append(self, exchange: TraceExchange, before: TurnTuple) -> None:
        self.turns += [*before, *exchange.after]
        self.places.update(dict.fromkeys(exchange.spans, len(self.turns) - 1))


def _count_shared_lines(thread_lines: RoleAndTextLines, history_lines: RoleAndTextLines) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(thread_lines, history_lines, strict=False)) if a != b),
        min(len(thread_lines), len(history_lines)),
    )


def _count_overlapping_lines(
    thread_lines: RoleAndTextLines, history_lines: RoleAndTextLines
) -> int:
    # the longest end of the thread with which the history begins
    lengths = range(min(len(thread_lines), len(history_lines)), 0, -1)
    return next(
        (length for length in lengths if thread_lines[-length:] == history_lines[:length]),
        0,
    )


def _list_turns_after(turns: TurnTuple, lines: int) -> TurnTuple:
    index = _find_line_index(turns, lines)
    return turns if index is None else turns[index + 1 :]


def _find_line_index(turns: TurnTuple, lines: int) -> int | None:
    """Return the index of the last of `lines` turns with text; None if fewer."""
    places = []
    for index, line in enumerate(_list_turn_lines(turns)):
        if line:
            places.append(index)

    return places[lines - 1] if 0 < lines <= len(places) else None
