"""Stored conversations: data sets, logs of evaluations, OpenAI's requests, LangGraph's threads."""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import (
    SCORE_SOURCE_PREFERENCE,
    ConversationFacts,
    ConversationLink,
    LogPart,
    Message,
    ToolScore,
    WholeTalk,
    format_iso_time,
    parse_timestamp,
)
from pollex.formats.assembly.thumbs import THUMB_SCORE_NAMES, keep_lowercase_letters_of_name
from pollex.formats.feedback import COMMENT_FIELD_NAMES
from pollex.formats.log_shapes.exports import (
    Fields,
    WrongExportFile,
    format_id,
    get_at_path,
    keep_filled_facts,
    list_objects,
    parse_flag,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import (
    RunSide,
    make_system_turns,
    parse_nested_json,
    read_run_input,
    read_run_output,
)
from pollex.formats.log_shapes.turns import parse_role, read_message_turns, read_turns
from pollex.text import JsonDict, JsonObject


def read_oasst_tree(fields: Fields) -> Iterator[LogPart]:
    # replies are walked level by level; each gets the id of its parent
    waiting = [(unwrap_object(fields.get("prompt")), None)]
    while waiting:
        message, parent = waiting.pop(0)
        yield from read_oasst_message(
            {
                "message_tree_id": require_text(fields, "message_tree_id"),
                **message,
                "parent_id": parent,
            }
        )
        key = require_text(message, "message_id")
        waiting += [(reply, key) for reply in list_objects(message.get("replies"))]  # type: ignore[misc]


def read_oasst_message(fields: Fields) -> Iterator[LogPart]:
    tree = require_text(fields, "message_tree_id")
    key = require_text(fields, "message_id")
    rank = _parse_oasst_number(fields.get("rank"))
    turn = Turn(
        role=parse_role(fields.get("role")),
        content=str(fields.get("text") or ""),
    )
    quality = _read_oasst_labels(fields.get("labels"), "value").get("quality")
    if isinstance(quality, Mapping):
        quality = quality.get("value")

    message_facts = keep_filled_facts(lang=fields.get("lang"), quality=quality)
    parent = format_id(fields.get("parent_id"))
    when = parse_timestamp(fields.get("created_date"))
    yield Message(
        tree,
        key,
        (turn,),
        when,
        parent,
        tree=True,
        facts=message_facts,
        rank=rank,
    )
    ups, downs = (
        _parse_oasst_number(_read_oasst_labels(fields.get("emojis"), "count").get(name))
        for name in ("+1", "-1")
    )
    # more of one emoji than of the other is a thumb on an answer
    if turn.role == "assistant" and ups != downs:
        yield ToolScore("message", key, ups > downs)


def _read_oasst_labels(value: object, inner: str) -> JsonDict:
    # in Parquet a table is two lists side by side: names and values
    table: JsonObject = unwrap_object(value)
    if isinstance(table.get("name"), list):
        values = table.get(inner)
        return dict(
            zip(
                map(str, table["name"]),
                values if isinstance(values, list) else [],
                strict=False,
            )
        )

    return dict(table)


def _parse_oasst_number(value: object) -> float:
    if isinstance(value, int | float) and abs(value) < 1e9:
        return float(value)
    return 0.0


_HUMAN_ASSISTANT_PATTERN = re.compile(r"\n\n(Human|Assistant):")


def _make_preference_pair(
    pair: str,
    sides: Mapping[str, tuple[tuple[Turn, ...], object]],
    **pair_facts: object,
) -> Iterator[LogPart]:
    """Yield the conversations of a pair, in one group, each with its rating: a thumb only if the user says so."""
    for name, (turns, value) in sides.items():
        id_ = f"{pair}#{name}"
        yield WholeTalk(id_, turns, facts=keep_filled_facts(pair=pair, **pair_facts))
        yield ToolScore("conversation", id_, value, source=SCORE_SOURCE_PREFERENCE)


def read_chosen_and_rejected(fields: Fields) -> Iterator[LogPart]:
    # a prompt of its own stands before answers that are plain text
    if isinstance(fields.get("prompt"), str):
        first = [{"role": "user", "content": fields["prompt"]}]
    else:
        first = []

    answers = {}
    for name in ("chosen", "rejected"):
        answers[name] = _parse_answer_turns(fields.get(name), first)

    pair = (
        format_id(fields.get("prompt_id")) or format_id(fields.get("id")) or _make_pair_id(answers)
    )
    yield from _make_preference_pair(
        pair, {"chosen": (answers["chosen"], "up"), "rejected": (answers["rejected"], "down")}
    )


def _parse_answer_turns(value: object, first: Sequence[object]) -> tuple[Turn, ...]:
    if isinstance(value, list):
        return read_turns(value)
    if not isinstance(value, str):
        raise BadInput(
            "an answer of a pair is neither text nor messages",
            hint="give chosen and rejected as text",
        )

    # a text may hold the whole talk, with a mark before each turn
    parts = _HUMAN_ASSISTANT_PATTERN.split(value)
    spoken = []
    for role, words in zip(parts[1::2], parts[2::2], strict=True):
        spoken.append({"role": role, "content": words.strip()})

    if spoken:
        return read_turns(spoken)
    return read_turns([*first, {"role": "assistant", "content": value}])


def _make_pair_id(value: object) -> str:
    return "pair-" + hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def read_preferred_output(fields: Fields) -> Iterator[LogPart]:
    before = list_objects(unwrap_object(fields.get("input")).get("messages"))
    sides = {}
    for name in ("preferred_output", "non_preferred_output"):
        sides[name] = read_turns([*before, *list_objects(fields.get(name))])

    values = ("up", "down")
    yield from _make_preference_pair(
        _make_pair_id(sides), {n: (t, v) for (n, t), v in zip(sides.items(), values, strict=True)}
    )


def read_rated_comparison(fields: Fields) -> Iterator[LogPart]:
    """Yield two answers on a scale from the first, below 0, to the second; at 0 none is the better."""
    before = list_objects(fields.get("context"))
    preference = fields.get("overall_preference")
    answers = []
    for name in ("response1", "response2"):
        answers.append({"role": "assistant", "content": fields.get(name)})

    turns = [read_turns([*before, answer]) for answer in answers]
    if not isinstance(preference, int | float) or not preference:
        better = None
    else:
        better = int(preference > 0)

    if better is None:
        values = ["none", "none"]
    else:
        values = []
        for n in range(2):
            values.append("up" if n == better else "down")

    yield from _make_preference_pair(
        _make_pair_id(turns), {f"{n + 1}": (turns[n], values[n]) for n in range(2)}
    )


def read_arena_comparison(fields: Fields) -> Iterator[LogPart]:
    """Yield a comparison of two models; ties have no label, both bad two negative ones."""
    winner = str(fields.get("winner") or "")
    bad = "bad" in winner
    pair = require_text(fields, "id", "question_id")
    sides = {}
    for side, other in (("a", "b"), ("b", "a")):
        value = "none"
        if bad or winner == f"model_{other}":
            value = "down"
        elif winner == f"model_{side}":
            value = "up"

        sides[side] = (read_turns(fields.get(f"conversation_{side}")), value)

    yield from _make_preference_pair(pair, sides, by=format_id(fields.get("judge")))


def read_ultrafeedback_row(fields: Fields) -> Iterator[LogPart]:
    """Yield the best completion as positive and the worst as negative, by overall score."""
    question = [{"role": "user", "content": fields.get("instruction") or ""}]
    completions = []
    for completion in list_objects(fields.get("completions")):
        if isinstance(completion.get("overall_score"), int | float):
            completions.append(completion)

    scores = []
    for completion in completions:
        scores.append(completion["overall_score"])

    # without a difference there is no best and no worst
    if len(completions) < 2 or min(scores) == max(scores):
        return

    sides = {}
    for name, index in (("best", scores.index(max(scores))), ("worst", scores.index(min(scores)))):
        answer = {"role": "assistant", "content": completions[index].get("response") or ""}
        sides[name] = (read_turns([*question, answer]), "up" if name == "best" else "down")

    yield from _make_preference_pair(_make_pair_id(fields.get("instruction")), sides)


INSPECT_ATTACHMENT_PREFIX = "attachment://"


def read_inspect_sample(fields: Fields) -> Iterator[LogPart]:
    # a sample is run once in each epoch
    id_ = f"{require_text(fields, 'id')}_epoch_{fields.get('epoch') or 1}"
    attached = unwrap_object(fields.get("attachments"))
    turns = read_turns(
        [
            _convert_inspect_message(message, attached)
            for message in list_objects(fields.get("messages"))
        ]
    )
    error: object = fields.get("error")
    if isinstance(error, Mapping):
        error = error.get("message", "failed")

    sample_facts = keep_filled_facts(
        metadata=unwrap_object(fields.get("metadata")),
        sample=format_id(fields.get("id")),
        epoch=fields.get("epoch"),
    )
    when = parse_timestamp(fields.get("started_at") or fields.get("date"))
    yield WholeTalk(
        id_,
        turns,
        at=when,
        error=str(error or ""),
        facts=sample_facts,
    )
    yield from _read_inspect_scores(fields.get("scores"), id_)


def _convert_inspect_message(message: JsonObject, attached: JsonObject) -> JsonDict:
    content = _resolve_inspect_attachments(message.get("content"), attached)
    calls = message.get("tool_calls")
    # a call may have a function's name in place of an object
    if isinstance(calls, list):
        named = []
        for call in calls:
            if isinstance(call, Mapping):
                named.append(call)

        calls = []
        for call in named:
            calls.append(
                {**call, "name": call["function"]}
                if isinstance(call.get("function"), str)
                else call
            )

    return {
        **message,
        "content": content,
        "tool_calls": calls,
    }


def _resolve_inspect_attachments(value: object, attached: JsonObject) -> object:
    # a long content stands among the attachments, and only its name is here
    if isinstance(value, str) and value.startswith(INSPECT_ATTACHMENT_PREFIX):
        return attached.get(value.removeprefix(INSPECT_ATTACHMENT_PREFIX), value)
    if isinstance(value, list):
        return [_resolve_inspect_attachments(element, attached) for element in value]
    if isinstance(value, Mapping):
        return {
            name: _resolve_inspect_attachments(inner, attached) for name, inner in value.items()
        }
    return value


def _read_inspect_scores(listed: object, id_: str) -> Iterator[ToolScore]:
    """Yield scores by name; NaN and null are none."""
    for name, score in unwrap_object(listed).items():
        if isinstance(score, Mapping):
            value = score.get("value")
        else:
            value = score

        # a score of several values counts as several scores
        if isinstance(value, Mapping):
            yield from _read_inspect_scores(
                {inner: {**score, "value": inner_value} for inner, inner_value in value.items()},
                id_,
            )
        elif value is not None and not _is_nan(value) and not isinstance(value, list):
            comment = None
            if isinstance(score, Mapping):
                comment = score.get("explanation")
            yield ToolScore(
                "conversation",
                id_,
                value,
                name=str(name),
                comment=comment,
            )


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def read_inspect_transcript(fields: Fields) -> Iterator[LogPart]:
    """Yield a transcript; `success` counts only if it was scored.

    Failed transcripts have false there, too.
    """
    id_ = require_text(fields, "transcript_id")
    turns = read_turns(
        [_convert_inspect_message(message, {}) for message in list_objects(fields.get("messages"))]
    )
    sample = keep_filled_facts(
        task=format_id(fields.get("task_id")),
        set=format_id(fields.get("task_set")),
        repeat=fields.get("task_repeat"),
    )
    transcript_facts = keep_filled_facts(
        user=format_id(fields.get("user")),
        model=format_id(fields.get("model")),
        comment=fields.get("comment"),
        **sample,
    )
    error = str(fields.get("error") or "").strip()
    yield WholeTalk(
        id_,
        turns,
        at=parse_timestamp(fields.get("date")),
        error=error,
        facts=transcript_facts,
    )
    # scores by name; else whether it succeeded, where that was scored
    scores = parse_nested_json(fields.get("score"))
    if isinstance(scores, Mapping):
        yield from _read_inspect_scores(scores, id_)

    scored = (
        scores not in (None, "", "null") and not isinstance(scores, Mapping) and not _is_nan(scores)
    )
    if (
        scored
        and fields.get("success") is not None
        and not error
        and not _collect_scout_scores(fields)
    ):
        yield ToolScore(
            "conversation",
            id_,
            parse_flag(fields["success"]),
            comment=fields.get("score_explanation"),
        )

    for name, value in _collect_scout_scores(fields).items():
        yield ToolScore(
            "conversation",
            id_,
            value,
            name=name,
            comment=fields.get("score_explanation"),
        )

    if fields.get("comment"):
        yield ToolScore("conversation", id_, None, comment=fields["comment"])


def _collect_scout_scores(fields: Fields) -> JsonDict:
    scores = {}
    for k, v in fields.items():
        if k.startswith("score_") and k != "score_explanation":
            scores[k.removeprefix("score_")] = v

    filled_scores = {}
    for name, value in scores.items():
        if value not in (None, "") and not _is_nan(value):
            filled_scores[name] = value

    return filled_scores


def read_inspect_log(fields: Fields) -> Iterator[LogPart]:
    for sample in list_objects(fields.get("samples")):
        yield from read_inspect_sample(sample)

    if fields.get("samples"):
        return

    raise WrongExportFile(
        "the log has no samples",
        hint="convert the whole log: `inspect log convert --to json`",
    )


MISSING_QUESTION_HINT = (
    "give the file with what was asked, too: "
    "of stored completions their messages, of a batch its input"
)
MISSING_INPUT_HINT = (
    "put into each row's field input what client.responses.input_items.list(ID) has"
)
ANSWER_PLACE = float(10**12)
"""The place of an answer after all messages that led to it, which are numbered from 0."""
_OPENAI_NUMBERED_ID_PATTERN = re.compile(r"(.+)-(\d+)")


def read_openai_completion(fields: Fields) -> Iterator[LogPart]:
    """Yield a completion's answer with what led to it, or without: its messages may be in a file of their own."""
    id_ = require_text(fields, "id")
    metadata = unwrap_object(fields.get("metadata"))
    before = read_run_input(fields.get("input", fields.get("messages")), "words")
    after = read_run_output({"choices": fields.get("choices")})
    turns = (before.turns if before else ()) + (after.turns if after else ())
    created = parse_timestamp(fields.get("created"))
    completion_facts = keep_filled_facts(
        metadata=metadata,
        user=format_id(metadata.get("user")),
        model=fields.get("model"),
    )
    completion_facts |= {} if created is None else {"timestamp": format_iso_time(created)}
    yield Message(
        id_,
        id_,
        turns,
        ANSWER_PLACE,
        facts=completion_facts,
        lacks=MISSING_QUESTION_HINT,
    )
    yield from iterate_metadata_scores(metadata, id_)


def read_openai_messages(fields: Fields) -> Iterator[LogPart]:
    """Yield the messages of a stored completion, whose ids are the completion's and a number."""
    for message in list_objects(fields.get("messages")):
        id_match = _OPENAI_NUMBERED_ID_PATTERN.fullmatch(require_text(message, "id"))
        if id_match:
            words = message.get("content_parts") or message.get("content")
            turns = read_message_turns({**message, "content": words})
            yield Message(
                id_match.group(1),
                id_match.group(),
                turns,
                float(id_match.group(2)),
            )


def has_openai_numbered_messages(fields: Fields) -> bool:
    id_matches = []
    for message in list_objects(fields.get("messages")):
        id_matches.append(_OPENAI_NUMBERED_ID_PATTERN.fullmatch(str(message.get("id"))))

    # every id is numbered, and all are of one completion
    return (
        len({id_match.group(1) if id_match else None for id_match in id_matches} - {None}) == 1
        and None not in id_matches
    )


def read_openai_thread_message(fields: Fields) -> Iterator[LogPart]:
    thread = require_text(fields, "thread_id")
    key = require_text(fields, "id")
    yield Message(
        thread,
        key,
        read_message_turns({"role": fields.get("role"), "content": fields.get("content")}),
        _get_openai_created_time(fields),
    )
    for score in iterate_metadata_scores(fields.get("metadata"), thread):
        yield score._replace(target="message", id=key)


def read_openai_thread(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "id")
    metadata = unwrap_object(fields.get("metadata"))
    yield ConversationFacts(
        id_, keep_filled_facts(metadata=metadata, user=format_id(metadata.get("user")))
    )
    yield from iterate_metadata_scores(metadata, id_)


def _get_openai_created_time(fields: Fields) -> float | None:
    return parse_timestamp(fields.get("created_at"))


def read_openai_batch_request(fields: Fields) -> Iterator[LogPart]:
    """Yield what was asked of a row of a batch; the results are in another file, under the same id."""
    id_ = require_text(fields, "custom_id", "key")
    # requests of OpenAI have `body`, Anthropic's `params`, Gemini's `request`
    nothing = dict[str, object]()
    body: Mapping[str, object] = next(
        (
            request_body
            for name in _BATCH_BODY_FIELDS
            if (request_body := unwrap_object(fields.get(name)))
        ),
        nothing,
    )
    metadata = unwrap_object(body.get("metadata"))
    turns = (read_run_input(body) or RunSide((), True)).turns
    # the system prompt may be among the messages already
    if not any(turn.role == "system" for turn in turns):
        turns = make_system_turns(body) + turns

    # what was asked has place 0, the answer place 1
    yield Message(
        id_,
        f"{id_}/asked",
        turns,
        0,
        facts=keep_filled_facts(metadata=metadata, model=body.get("model")),
    )
    yield from iterate_metadata_scores(metadata, id_)


_BATCH_BODY_FIELDS = ("body", "params", "request")


def read_openai_batch_result(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "custom_id", "key")
    # results of OpenAI have a body, Anthropic's a message, Gemini's the answer itself
    response = unwrap_object(fields.get("response")) or unwrap_object(fields.get("result"))
    body = unwrap_object(response.get("body")) or unwrap_object(response.get("message")) or response
    side = None
    if body.keys() & {"output", "content", "choices", "candidates"}:
        side = read_run_output(body.get("output") or body)

    if side:
        turns = side.turns
    else:
        turns = (Turn(role="assistant", content="[error]"),)

    yield Message(
        id_,
        f"{id_}/answered",
        turns,
        1,
        error="" if side else "failed",
        lacks=MISSING_QUESTION_HINT,
    )


def read_openai_response(fields: Fields) -> Iterator[LogPart]:
    """Yield a response, which names its conversation or the previous response."""
    id_ = require_text(fields, "id")
    metadata = unwrap_object(fields.get("metadata"))
    before = read_run_input(fields.get("input"), "words") or RunSide((), True)
    turns = before.turns + read_turns(fields.get("output") or [])
    error: Mapping[str, object] = unwrap_object(fields.get("error"))
    failed = ""
    if error:
        failed = str(error.get("message") or "failed")
    if failed and (not turns or turns[-1].role == "user"):
        turns += read_turns([{"role": "assistant", "content": "[error]"}])

    # its conversation, or the response before it; else it begins one of its own
    conversation = format_id(unwrap_object(fields.get("conversation")).get("id")) or format_id(
        fields.get("conversation")
    )
    previous = format_id(fields.get("previous_response_id"))
    # instructions count only where a conversation begins
    if conversation is None and previous is None:
        turns = make_system_turns(fields) + turns

    response_facts = keep_filled_facts(
        user=format_id(metadata.get("user")),
        model=fields.get("model"),
        metadata=metadata,
    )
    if conversation is None:
        conversation = id_
        if previous is not None:
            yield ConversationLink(id_, previous)

    yield Message(
        conversation,
        id_,
        turns,
        _get_openai_created_time(fields),
        error=failed,
        facts=response_facts,
        lacks=MISSING_INPUT_HINT,
    )
    for score in iterate_metadata_scores(metadata, id_):
        yield score._replace(target="message", id=id_)


def read_openai_output_item(fields: Fields) -> Iterator[LogPart]:
    id_ = require_text(fields, "id")
    sample = unwrap_object(fields.get("sample"))
    turns = read_turns(list_objects(sample.get("input"))) + read_turns(
        list_objects(sample.get("output"))
    )
    sample_facts = keep_filled_facts(
        model=sample.get("model"),
        item=fields.get("datasource_item"),
    )
    yield WholeTalk(
        id_,
        turns,
        at=parse_timestamp(fields.get("created_at")),
        facts=sample_facts,
    )


LANGGRAPH_ID_PATHS = (
    "thread_id",
    "metadata.thread_id",
    "checkpoint.thread_id",
    "config.configurable.thread_id",
)
LANGGRAPH_EXPORT_HINT = "export the threads with their values: client.threads.search()"


def read_langgraph_thread(fields: Fields) -> Iterator[LogPart]:
    id_names = []
    for name in LANGGRAPH_ID_PATHS:
        if get_at_path(fields, name):
            id_names.append(name)

    id_ = require_text(
        fields,
        *id_names,
        LANGGRAPH_ID_PATHS[0],
    )
    values = fields.get("values") or get_at_path(fields, "checkpoint.channel_values")
    if values is None and get_at_path(fields, "checkpoint.channel_versions"):
        raise WrongExportFile(
            "the checkpoint has no messages: they are in another table",
            hint=LANGGRAPH_EXPORT_HINT,
        )

    side = read_run_output(values) or RunSide((), True)
    metadata = unwrap_object(fields.get("metadata"))
    # ids of messages are places of turns only where each message is one turn
    listed = list_objects(unwrap_object(values).get("messages"))
    if len(listed) == len(side.turns):
        keys = tuple(format_id(message.get("id")) for message in listed)
    else:
        keys = ()

    times = ("state_updated_at", "updated_at", "created_at", "checkpoint.ts")
    when = parse_timestamp(
        next((time for name in times if (time := get_at_path(fields, name))), None)
    )
    errors = []
    for task in list_objects(fields.get("tasks")):
        if task.get("error"):
            errors.append(str(task["error"]))

    error = str(fields.get("error") or next(iter(errors), ""))
    thread_facts = keep_filled_facts(
        metadata=metadata,
        status=fields.get("status"),
        user=format_id(metadata.get("user_id")),
    )
    yield WholeTalk(id_, side.turns, keys, when, error, thread_facts)
    yield from iterate_metadata_scores(metadata, id_)


def iterate_metadata_scores(metadata: object, conversation: str) -> Iterator[ToolScore]:
    """Yield thumbs that an application stored in metadata, by their names, and the comment beside them."""
    fields = unwrap_object(metadata)
    comment = next((fields[name] for name in COMMENT_FIELD_NAMES if fields.get(name)), None)
    thumbs = {}
    for name, value in fields.items():
        if keep_lowercase_letters_of_name(str(name)) in THUMB_SCORE_NAMES:
            thumbs[str(name)] = value

    for name, value in thumbs.items():
        if isinstance(value, str | int | float) and value != "":
            yield ToolScore("conversation", conversation, value, name=name)

    if comment:
        yield ToolScore("conversation", conversation, None, comment=comment)
