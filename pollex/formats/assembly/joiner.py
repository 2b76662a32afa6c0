"""All files' parts joined: spans with annotations, runs with feedback, chats with votes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pollex.conversations.conversation import Turn
from pollex.conversations.logs import BadRow, describe_bad_rows
from pollex.errors import BadInput
from pollex.formats.assembly.beside import find_rated_target, iterate_label_columns_as_scores
from pollex.formats.assembly.chains import chain_calls_by_history
from pollex.formats.assembly.intake import Intake
from pollex.formats.assembly.label_tables import match_label_rows_to_export
from pollex.formats.assembly.log_parts import (
    EMPTY_CONVERSATION_FACTS,
    SCORE_SOURCE_COLUMN,
    SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY,
    ConversationFacts,
    ConversationLink,
    LeftOutRow,
    LogPart,
    Message,
    MessageAddition,
    ModelCall,
    SpanWords,
    ToolScore,
    TurnTuple,
    WholeTalk,
    format_iso_time,
    iterate_plausible_times,
)
from pollex.formats.assembly.sessions import (
    MISSING_WORDS_HINT,
    UNREADABLE_ANSWER_NOTE,
    SessionWithoutWords,
    build_conversation_from_calls,
)
from pollex.formats.assembly.thumbs import (
    choose_thumbs,
    describe_thumb_scores,
    is_from_person,
    keep_latest_scores,
    normalize_column_path,
)
from pollex.formats.assembly.trees import (
    BuiltConversation,
    HasTime,
    build_conversation_from_messages,
    merge_fields_of_facts,
)
from pollex.formats.feedback import split_signal_option_into_field_and_side
from pollex.formats.fields import ReadOptions
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import is_usual_thumb
from pollex.formats.names import is_named_as_part
from pollex.formats.paths import get_path_value
from pollex.text import JsonObject, format_count

SourceAndLineNumber = tuple[str, int]


class JoinedConversation(NamedTuple):
    """A conversation put together, before its label is known."""

    id: str
    built: BuiltConversation
    scores: tuple[ToolScore, ...]
    place: SourceAndLineNumber


class PartJoiner:
    """Takes parts from all files, and makes conversations of them in the end.

    Attributes:
        votes: Thumbs on conversations that aren't joined, as `elsewhere` finds them.
        steps: How many calls of traces are inner steps.
    """

    def __init__(
        self,
        options: ReadOptions,
        intake: Intake,
        elsewhere: Callable[[ToolScore], str | None] = lambda _: None,
    ) -> None:
        self._options = options
        self._intake = intake
        self._elsewhere = elsewhere
        self.votes: dict[str, list[ToolScore]] = {}
        self.steps = 0
        self._messages: dict[str, dict[object, Message]] = {}
        self._calls: dict[tuple[str, str], ModelCall] = {}
        self._words: dict[str, list[SpanWords]] = {}
        self._beside: dict[str, list[MessageAddition]] = {}
        self._talks: dict[str, list[WholeTalk]] = {}
        self._facts: dict[str, list[JsonObject]] = {}
        self._shown: dict[str, tuple[float, str]] = {}
        self._scores: list[ToolScore] = []
        self._remarks: list[ToolScore] = []
        self._signals: list[ToolScore] = []
        self._columns: dict[tuple[str, ...], ToolScore] = {}
        self._places: dict[str, SourceAndLineNumber] = {}
        self._turns: dict[Turn, Turn] = {}
        self._links: dict[str, str] = {}
        self._bad: list[BadRow] = []

    def take(self, row: LogRow, name: str, parts: Iterable[LogPart]) -> None:
        """Store the parts of a row; repeated messages and spans count once.

        Raises:
            BadInput: The row can't be read.
        """
        self._intake.account.formats[name] += 1
        place = (row.source, row.line)
        log_parts = [_set_file_name_as_conversation_id(part, row.source) for part in parts]
        for part in log_parts:
            self._keep(part, place)
            self._intake.odd.look_at(list_part_turns(part), place)

        self._columns_beside(row, log_parts, place)
        # columns may be the label, too, though the tool itself doesn't know them as scores
        for score in iterate_label_columns_as_scores(
            row.fields, log_parts, f"{row.source}:{row.line}", self._options.label_field
        ):
            self._columns[score.target, score.id, score.name, str(score.value)] = score

    def _columns_beside(
        self,
        row: LogRow,
        parts: Sequence[LogPart],
        place: SourceAndLineNumber,
    ) -> None:
        comment = self._options.comment_field
        owner = find_rated_target(parts, f"{row.source}:{row.line}")
        if comment and (value := get_path_value(row.fields, comment)) not in (None, ""):
            self._intake.comments_found = True
            if owner is not None:
                self._keep(ToolScore(*owner, None, comment=value), place)

        for name, _ in map(split_signal_option_into_field_and_side, self._options.signals):
            if owner is not None and isinstance(
                value := get_path_value(row.fields, name), str | int | float
            ):
                self._signals.append(ToolScore(*owner, value, name, SCORE_SOURCE_COLUMN))

    def _keep(self, part: LogPart, place: SourceAndLineNumber) -> None:
        match part:
            case Message():
                self._places.setdefault(part.conversation, place)
                messages = self._messages.setdefault(part.conversation, {})
                # a message without an id is told by its place
                key: object = part.key or (place, len(messages))
                # of two records of a message the newer counts
                if key not in messages or messages[key].state <= part.state:
                    messages[key] = part._replace(turns=self._shared(part.turns))
            case ModelCall():
                self._places.setdefault(part.trace, place)
                # attributes beside a call may be large, and aren't held
                self._call(part._replace(beside=EMPTY_CONVERSATION_FACTS))
            case SpanWords():
                self._places.setdefault(part.trace, place)
                self._words.setdefault(part.span, []).append(part)
            case MessageAddition():
                self._beside.setdefault(part.message, []).append(part)
            case WholeTalk():
                id_ = part.id or f"{place[0]}:{place[1]}"
                self._places.setdefault(id_, place)
                self._talks.setdefault(id_, []).append(
                    part._replace(turns=self._shared(part.turns))
                )
            case ConversationFacts():
                self._places.setdefault(part.conversation, place)
                self._facts.setdefault(part.conversation, []).append(part.facts)
                if part.shown:
                    # the newest state tells which path of a tree was shown
                    previous = self._shown.get(part.conversation, (0, ""))
                    self._shown[part.conversation] = max(
                        previous,
                        (part.state, part.shown),
                        key=lambda shown: shown[0],
                    )
            case ConversationLink():
                self._links[part.conversation] = part.before
            case ToolScore():
                self._score(part, place)
            case LeftOutRow():
                self._intake.odd.add(part.why, place)

    def _score(self, score: ToolScore, place: SourceAndLineNumber) -> None:
        """Keep a thumb with what was written with it, or a comment that has the name which the user gave."""
        if (
            (name := self._options.comment_field)
            and score.name
            and normalize_column_path(score.name) == normalize_column_path(name)
        ):
            self._intake.comments_found = True
            score = score._replace(value=None, comment=score.value)
        elif _is_written_comment(score, self._options.label_field):
            score = score._replace(value=None, comment=score.value)

        if any(
            normalize_column_path(score.name)
            == normalize_column_path(split_signal_option_into_field_and_side(signal)[0])
            for signal in self._options.signals
        ):
            self._signals.append(score)

        comment, tags = self._intake.odd.written(score.comment, score.tags, place)
        score = score._replace(comment=comment, tags=tags)
        # a score has a value; a remark is what a person wrote without one
        if score.value is not None:
            self._scores.append(score)
        elif (comment or tags) and is_from_person(score):
            self._remarks.append(score)

    def _shared(self, turns: TurnTuple) -> TurnTuple:
        """Equal turns kept once: traces repeat their history in every span."""
        return tuple(self._turns.setdefault(turn, turn) for turn in turns)

    def _call(self, call: ModelCall) -> None:
        # a later record without words doesn't replace one that has them
        previous = self._calls.get((call.trace, call.span))
        if (
            previous is not None
            and (previous.before or previous.after)
            and not (call.before or call.after)
        ):
            return

        before = None
        if call.before is not None:
            before = self._shared(call.before)

        after = None
        if call.after is not None:
            after = self._shared(call.after)

        self._calls[call.trace, call.span] = call._replace(before=before, after=after)

    def _all_words(self) -> dict[str, SpanWords]:
        words_by_span = {}
        for span, rows in self._words.items():
            # one row with all messages of the span, else its rows in the order of time
            rows = [row for row in rows if row.whole][-1:] or sorted(
                rows, key=lambda row: row.at or 0
            )
            # the third and fourth fields: before and after
            before, after = (
                self._shared(tuple(chain(*column)))
                for column in zip(*(row[2:4] for row in rows), strict=True)
            )
            words_by_span[span] = rows[0]._replace(before=before, after=after)

        return words_by_span

    def join(self) -> Iterator[JoinedConversation | BadRow]:
        """Yield all conversations with their thumbs.

        Raises:
            BadInput: The files have thumbs and no words, or none of the thumbs belongs to their
                conversations.
            WrongUse: Several scores may be the thumb.
        """
        # what the scores may name: conversations, traces, spans and messages
        self._link()
        sessions = self._sessions()
        targets = self._targets(sessions)
        self._take_label_tables(targets)
        thumb_scores, self._intake.account.scores = choose_thumbs(
            [*self._scores, *self._columns.values()],
            self._options,
        )
        self._intake.notes += describe_thumb_scores(self._intake.account.scores)
        # facts about a span belong to the conversation that it is part of
        for id_ in [id_ for id_ in self._facts if ("span", id_) in targets]:
            self._facts.setdefault(targets["span", id_], []).extend(self._facts.pop(id_))

        # each thumb and comment to its conversation
        thumbs: dict[str, list[ToolScore]] = {}
        lost = 0
        newest, older = keep_latest_scores(thumb_scores, self._options.thumbs)
        self._intake.notes += older

        for score in (*newest, *self._remarks):
            score = _assign_score_to_enclosing_conversation(score, targets)
            owner = targets.get((score.target, score.id)) or targets.get(
                ("message", score.message or "")
            )
            if owner is not None:
                thumbs.setdefault(owner, []).append(score)
            elif (other := self._elsewhere(score)) is not None:
                self.votes.setdefault(other, []).append(score)
            else:
                lost += 1

        # signals are facts of their conversations
        for score in self._signals:
            score = _assign_score_to_enclosing_conversation(score, targets)
            if (owner := targets.get((score.target, score.id))) is not None:
                names = (
                    split_signal_option_into_field_and_side(signal)[0]
                    for signal in self._options.signals
                )
                signal = next(
                    name
                    for name in names
                    if normalize_column_path(name) == normalize_column_path(score.name)
                )
                self._facts.setdefault(owner, []).append({signal: score.value})

        has_conversations = bool(self.votes)
        for outcome in self._all(sessions, thumbs):
            has_conversations = has_conversations or isinstance(outcome, JoinedConversation)
            yield outcome

        self._check(has_conversations, lost, len(thumb_scores))

    def _take_label_tables(self, targets: Mapping[tuple[str, str], str]) -> None:
        """Take rows that nobody knows for thumbs where they name what is in the files."""
        settled = match_label_rows_to_export(
            self._intake.label_rows, targets, self._options.label_field
        )
        self._intake.notes += settled.notes
        self._intake.label_rows = settled.rest
        for row, score in settled.labels:
            self._intake.labels_of.append(row.source)
            self._score(score, (row.source, row.line))

        self._intake.unread += [bad for _, bad in settled.rest]

    def _check(
        self,
        has_conversations: bool,
        lost: int,
        thumb_count: int,
    ) -> None:
        belong = f"{format_count(lost, 'thumb belongs', 'thumbs belong')} to conversations that aren't in these files"
        hint = "give the conversations' file, too"
        if (
            not has_conversations
            and self._scores
            and not self._messages
            and not self._calls
            and not self._talks
        ):
            raise BadInput(
                f"the files have scores and no words{self._also}",
                hint=hint,
            )
        if has_conversations and thumb_count and lost == thumb_count:
            raise BadInput(f"{belong}{self._also}", hint=hint)
        if lost:
            self._intake.notes.append(f"{belong}, and were left out")

    @property
    def _also(self) -> str:
        if self._intake.unread:
            return f", and {describe_bad_rows(self._intake.unread)}"
        return ""

    def _link(self) -> None:
        conversation_ids = set(self._messages)
        # whatever goes on with another conversation joins the first of its chain in the files
        for id_ in list(self._links):
            first = id_
            visited = {id_}
            while (before := self._links.get(first)) is not None and before not in visited:
                if before not in conversation_ids:
                    break
                visited.add(before)
                first = before

            if first != id_ and id_ in self._messages:
                self._messages.setdefault(first, {}).update(self._messages.pop(id_))
                self._facts.setdefault(first, []).extend(self._facts.pop(id_, []))

    def _sessions(self) -> dict[str, list[ModelCall]]:
        # calls that are joined by the history that they repeat
        loose = []
        for call in self._calls.values():
            if call.session == SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY:
                loose.append(call)

        first = chain_calls_by_history(loose)
        for call in loose:
            self._calls[call.trace, call.span] = call._replace(session=first[call.trace])

        if len(set(first.values())) < len(loose):
            calls = format_count(len(loose), "call names", "calls name")
            self._intake.notes.append(
                f"{calls} no session, and went together by the history that they repeat"
            )

        # the sessions that the spans of each trace name
        named: dict[str, set[str]] = {}
        for call in self._calls.values():
            ids = named.setdefault(call.trace, set())
            if call.session:
                ids.add(call.session)

        # a span of which only the messages are in the files counts as a call
        for span, (words, *_) in self._words.items():
            if words.trace and (words.trace, span) not in self._calls:
                self._calls[words.trace, span] = ModelCall(words.trace, span)
                named.setdefault(words.trace, set())

        without = sum(not ids for ids in named.values())
        if without:
            traces = format_count(without, "trace has", "traces have")
            self._intake.notes.append(
                f"{traces} no session id: each is a conversation; record session.id to join turns"
            )

        # each trace to its session; one that names two has its root's
        grouped: dict[str, list[ModelCall]] = {}
        for call in self._calls.values():
            ids = named[call.trace]
            if len(ids) > 1:
                if not (root_session := self._session_of_root(call.trace)):
                    self._two_sessions(call.trace, sorted(ids))
                named[call.trace] = {root_session}

            # a trace with two sessions that its root doesn't decide is a bad row already
            if named[call.trace] != {""}:
                grouped.setdefault(min(ids, default=call.trace), []).append(call)

        return grouped

    def _session_of_root(self, trace: str) -> str:
        """Return the session that the spans around all others of a trace name; empty where they name none or two."""
        roots = []
        for (of, _), call in self._calls.items():
            if of == trace and call.parent is None:
                roots.append(call)

        named = set()
        for call in roots:
            if call.session:
                named.add(call.session)

        return named.pop() if len(named) == 1 else ""

    def _two_sessions(self, trace: str, ids: Sequence[str]) -> None:
        source, line = self._places[trace]
        reason = f"the trace {trace:.40} names {len(ids)} sessions: {', '.join(ids[:3])}"
        self._bad.append(
            BadRow(
                source,
                line,
                reason,
                "give all spans of a trace one session id",
            )
        )

    def _targets(self, sessions: Mapping[str, Sequence[ModelCall]]) -> dict[tuple[str, str], str]:
        # what a score may name, and the conversation that it is in
        targets: dict[tuple[str, str], str] = {}
        for id_ in (*self._messages, *self._talks, *sessions):
            targets["conversation", id_] = id_

        for id_, calls in sessions.items():
            for call in calls:
                # some tools write the trace's id in place of a span's
                targets["trace", call.trace] = targets["span", call.trace] = targets[
                    "span", call.span
                ] = id_

        for id_, messages in self._messages.items():
            for key in messages:
                # keys of messages without an id are places, which no score names
                if isinstance(key, str):
                    targets["message", key] = id_

        for id_, talks in self._talks.items():
            for talk in talks:
                for key in talk.keys:
                    if key:
                        targets["message", key] = id_

        return targets

    def _all(
        self, sessions: Mapping[str, list[ModelCall]], thumbs: Mapping[str, list[ToolScore]]
    ) -> Iterator[JoinedConversation | BadRow]:
        yield from self._bad
        words = self._all_words()
        for id_, messages in self._messages.items():
            yield self._build_from_messages(id_, messages, thumbs)

        wordless: list[str] = []
        for id_, calls in sessions.items():
            try:
                yield self._build_from_session(id_, calls, words, thumbs)
            except SessionWithoutWords:
                wordless.append(id_)

        # conversations in one row
        for id_, talks in self._talks.items():
            for talk in _keep_newest_states(talks):
                yield self._joined(id_, _build_whole_talk(talk), thumbs, [talk])

        if wordless:
            self._report_wordless(wordless, sessions, thumbs)

    def _build_from_messages(
        self,
        id_: str,
        messages: Mapping[object, Message],
        thumbs: Mapping[str, list[ToolScore]],
    ) -> JoinedConversation | BadRow:
        """Build a conversation of a table or tree of messages."""
        scores = sorted(thumbs.get(id_, []), key=lambda score: score.at or 0)
        complete_messages = []
        for message in messages.values():
            additions = self._beside.get(message.key or "", ())
            complete_messages.append(_add_files_and_steps_to_message(message, additions))

        built = build_conversation_from_messages(
            complete_messages,
            self._shown.get(id_, (0, None))[1],
            [score.id for score in scores],
        )
        # some tools keep what was asked in another file
        lacks = next((message.lacks for message in messages.values() if message.lacks), "")
        if lacks and not any(turn.role == "user" for turn in built.turns):
            return BadRow(*self._places[id_], f"{id_:.60} comes without what was asked", lacks)
        return self._joined(id_, built, thumbs, complete_messages)

    def _build_from_session(
        self,
        id_: str,
        calls: Sequence[ModelCall],
        words: Mapping[str, SpanWords],
        thumbs: Mapping[str, list[ToolScore]],
    ) -> JoinedConversation | BadRow:
        """Build a conversation of the traces of a session.

        Raises:
            SessionWithoutWords: None of its spans has words.
        """
        # all calls of a trace but one are inner steps
        self.steps += len(calls) - len({call.trace for call in calls})
        span_words = [words[call.span] for call in calls if call.span in words]
        try:
            built = build_conversation_from_calls(calls, words)
            return self._joined(id_, built, thumbs, (*calls, *span_words))
        except SessionWithoutWords:
            raise
        except BadInput as error:
            source, line = self._places[calls[0].trace]
            return BadRow(source, line, f"session {id_:.60}: {error.what}", error.advice)

    def _report_wordless(
        self,
        wordless: Sequence[str],
        sessions: Mapping[str, list[ModelCall]],
        thumbs: Mapping[str, list[ToolScore]],
    ) -> None:
        """Note how many sessions have no words.

        Raises:
            BadInput: Nothing else has any either.
        """
        if len(wordless) == len(sessions) and not self._messages and not self._talks:
            raise BadInput(
                f"no span has messages{self._also}",
                where=next(iter(self._places.values()))[0],
                hint=MISSING_WORDS_HINT,
            )

        rated = sum(id_ in thumbs for id_ in wordless)
        traces = format_count(len(wordless), "session has", "sessions have")
        self._intake.notes.append(
            f"{traces} no messages, {rated} of them with thumbs, and were left out"
        )

    def _joined(
        self,
        id_: str,
        built: BuiltConversation,
        thumbs: Mapping[str, list[ToolScore]],
        parts: Iterable[HasTime],
    ) -> JoinedConversation:
        self._intake.account.ways[built.way] += 1
        # a conversation begins with its earliest part
        start = min(iterate_plausible_times(part.at for part in parts), default=None)
        if start is None:
            times = {}
        else:
            times = {"timestamp": format_iso_time(start)}

        facts = times | merge_fields_of_facts([built.facts, *self._facts.get(id_, [])])
        place = self._places.get(id_) or self._places[next(iter(built.places))]
        if UNREADABLE_ANSWER_NOTE in built.errors:
            self._intake.odd.add(UNREADABLE_ANSWER_NOTE, place)

        return JoinedConversation(
            id_,
            built._replace(facts=facts),
            tuple(thumbs.get(id_, ())),
            place,
        )


def _is_written_comment(score: ToolScore, label_field: str | None) -> bool:
    """Return whether a score is what a person wrote, by its name and its value, and no thumb."""
    named = is_named_as_part(score.name, "comment") or is_named_as_part(score.name, "remark")
    if not named or score.name == label_field or score.source == SCORE_SOURCE_COLUMN:
        return False
    return (
        isinstance(score.value, str) and not is_usual_thumb(score.value) and is_from_person(score)
    )


def _assign_score_to_enclosing_conversation(
    score: ToolScore, targets: Mapping[tuple[str, str], str]
) -> ToolScore:
    """Return a score as one of the trace or conversation around what it names, where that isn't in the files."""
    if (score.target, score.id) in targets:
        return score

    reachable = ((target, id_) for target, id_ in score.around if id_ and (target, id_) in targets)
    target, id_ = next(reachable, (score.target, score.id))
    return score._replace(target=target, id=id_)


def _add_files_and_steps_to_message(message: Message, beside: Sequence[MessageAddition]) -> Message:
    """Add a message's files and steps; an answer that begins with the words of its steps has them once."""
    if not beside or not message.turns:
        return message

    # files stand at the end of the question, steps before the answer
    first, *rest = message.turns
    marks = []
    for addition in beside:
        if addition.mark:
            marks.append(addition.mark)

    if marks:
        first = first.model_copy(update={"content": "\n".join([first.content, *marks])})

    in_order = sorted(beside, key=lambda addition: addition.at or 0)
    steps = list(chain.from_iterable(addition.steps for addition in in_order))
    if rest and rest[-1].role == "assistant":
        answer = rest[-1].content
        for turn in steps:
            words = ""
            if turn.role == "assistant":
                words = turn.content.partition("\n[tool call: ")[0]
            if words and answer != words:
                answer = answer.removeprefix(words).lstrip()

        rest = [*rest[:-1], *steps, rest[-1].model_copy(update={"content": answer})]

    return message._replace(turns=(first, *(rest or steps)))


def _build_whole_talk(talk: WholeTalk) -> BuiltConversation:
    places: dict[str, int | None] = {key: index for index, key in enumerate(talk.keys) if key}
    turns = talk.turns
    # a failed answer leaves a mark in its place
    if talk.error and (not turns or turns[-1].role == "user"):
        turns = (*turns, Turn(role="assistant", content="[error]"))

    errors = (talk.error,) if talk.error else ()
    return BuiltConversation(
        turns,
        places,
        errors,
        dict(talk.facts),
        "whole conversations",
    )


def _keep_newest_states(talks: Sequence[WholeTalk]) -> list[WholeTalk]:
    """Return the newest of several states that extend each other; else all states."""
    if len(talks) == 1:
        return list(talks)
    if all(talk.at is not None for talk in talks):
        return [max(talks, key=lambda talk: (talk.at or 0, len(talk.turns)))]

    longest = max(talks, key=lambda talk: len(talk.turns))
    are_prefixes = all(longest.turns[: len(talk.turns)] == talk.turns for talk in talks)
    if are_prefixes:
        return [longest]
    return list(talks)


def _set_file_name_as_conversation_id(part: LogPart, source: str) -> LogPart:
    """Return a part of a file that is one conversation, whose rows don't name it, with the file's name as its id."""
    if isinstance(part, Message | ConversationFacts) and part.conversation == "":
        return part._replace(conversation=Path(source).stem)
    return part


def list_part_turns(part: LogPart) -> tuple[Turn, ...]:
    """Return all turns of a part of an export."""
    turns: Any = ()
    match part:
        case Message() | WholeTalk():
            turns = part.turns
        case ModelCall() | SpanWords():
            turns = (*(part.before or ()), *(part.after or ()))
        case MessageAddition():
            turns = part.steps

    return tuple(turns)
