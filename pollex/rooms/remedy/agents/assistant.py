"""The assistant whose prompt is to be changed, and the ways to ask it: an endpoint, a function, a graph, or files."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import ToolCall, format_openai_messages, iterate_tool_uses
from pollex.errors import BadInput, PollexError, WrongUse
from pollex.gateway.calls import Call, CompletedReply
from pollex.gateway.thoughts import remove_thoughts
from pollex.outputs import write_text
from pollex.rooms.remedy.agents.acting import (
    find_acting_parts_behind,
    find_acting_parts_of_graph,
    is_compiled_graph,
)
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.text import JsonObject, is_visible, read_file_bytes

MAX_TOOL_ROUNDS = 8
"""Calls of recorded tools in a row, after which a continuation counts as diverged."""
NO_LIVE_TOOLS: Mapping[str, Callable[..., object]] = {}
TODO_FILE_NAME = "todo.jsonl"
REPLIES_FILE_NAME = "replies.jsonl"


@dataclass(frozen=True)
class AssistantReply:
    """What an assistant said, or the tools that it calls.

    Attributes:
        cost: In tokens of its prompt; 0 where nobody counts.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class NoReply:
    """Why there is no reply; never a score.

    Attributes:
        kind: `refused`, `truncated`, `diverged`, `pending`, `error` and other outcomes of calls.
    """

    kind: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class ReplyRequest:
    """What an assistant is asked.

    Attributes:
        key: Names the request, and tells nothing of its arm.
        system: The system prompt, with the conversation's values.
        messages: OpenAI style, without the system's.
        item: Id of the conversation, by which all about it can be forgotten.
        seed: Of this reply.
        written: Tokens of the logged reply, about, for plans.
    """

    key: str
    item: str
    system: str
    messages: Sequence[JsonObject]
    seed: int
    written: int = 0

    @property
    def all_messages(self) -> list[JsonObject]:
        """The system prompt and the messages."""
        return [{"role": "system", "content": self.system}, *self.messages]


class Assistant(Protocol):
    """Answers as the deployed assistant does."""

    @property
    def name(self) -> str:
        """What people call it."""

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Answer once."""


@dataclass(frozen=True)
class EndpointAssistant:
    """A model at an endpoint, through the gateway: nothing paid for is bought twice.

    Attributes:
        written: What a token that it writes costs, in tokens that it reads.
    """

    asker: PromptAsker
    temperature: float | None = None
    written: float = 4.0

    @property
    def name(self) -> str:
        """The model's name."""
        return self.asker.name

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Ask the model; only what it wrote to the end is a reply."""
        # seed and replicate are one number, so each reply has a stored call of its own
        call = Call(
            messages=request.all_messages,
            temperature=self.temperature,
            seed=request.seed,
            replicate=request.seed,
            max_tokens=self.asker.settings.max_tokens,
            stage="reply",
            apart=True,
            written=request.written,
            item=request.item,
        )
        outcome = await self.asker.door.ask(self.asker.capabilities.fit(call))
        # truncated and refused replies are no replies
        if not isinstance(outcome, CompletedReply):
            return NoReply(outcome.kind, outcome.detail)
        text = remove_thoughts(outcome.text)
        if not is_visible(text):
            return NoReply("empty", "thoughts and no answer")

        # cost in prices of a read token: a written one costs `written` times as much
        used = outcome.usage
        if used.prompt and used.completion:
            cost = used.prompt + self.written * used.completion
        else:
            cost = 0.0

        return AssistantReply(text, cost=cost, seconds=outcome.seconds)


@dataclass(frozen=True)
class CallableAssistant:
    """A function `(messages, system)` that returns a text or an `AssistantReply`; it may be async.

    Attributes:
        module: Where the user found it.
    """

    function: Callable[..., Awaitable[Any] | Any]
    name: str = "a function"
    module: str = ""

    @property
    def acts(self) -> list[str]:
        """What behind it carries out tools, or can't be seen not to."""
        return sorted({*find_acting_parts_behind(self.function, self.module)})

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Call it; what it raises is the outcome of this reply alone."""
        try:
            # the function gets copies: what it changes must not reach the next call
            reply = self.function(
                [dict(message) for message in request.messages],
                request.system,
            )
            reply = await reply if inspect.isawaitable(reply) else reply
        # faults that the user has to mend end the run, all others are one reply's
        except PollexError:
            raise
        except (Exception, SystemExit) as error:
            return NoReply("error", f"{type(error).__name__}: {error}"[:300])

        return convert_reply(reply)


@dataclass(frozen=True)
class GraphAssistant:
    """A compiled LangGraph graph: messages in `messages`, the system prompt in its configuration as `system`."""

    graph: Any
    configurable: str = "system"

    @property
    def name(self) -> str:
        """The graph's name."""
        return f"graph {self.graph.get_name()}"

    @property
    def acts(self) -> list[str]:
        """What of it carries out tools, or can't be seen not to."""
        return [*find_acting_parts_of_graph(self.graph)]

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Run it; its last message is the reply."""
        inputs = {"messages": [dict(message) for message in request.messages]}
        # a checkpointer would add the messages to those that it has of a thread
        thread = str(uuid4())
        # the system prompt goes where the graph looks for it
        settings = {"configurable": {self.configurable: request.system, "thread_id": thread}}
        if self.graph.context_schema is None:
            more = {}
        else:
            more = {"context": {self.configurable: request.system}}

        try:
            state = await self.graph.ainvoke(inputs, settings, **more)
        except (Exception, SystemExit) as error:
            return NoReply("error", f"{type(error).__name__}: {error}"[:300])

        # whatever the graph's state has, its last message counts
        messages = None
        if isinstance(state, Mapping):
            messages = state.get("messages")

        last: Any = messages[-1] if messages else None
        try:
            # arguments of calls may be any objects; only JSON can be compared with the log
            called = []
            for tool_call in getattr(last, "tool_calls", ()):
                called.append(convert_tool_call(tool_call))
        except (TypeError, ValueError, RecursionError) as error:
            return NoReply("error", f"arguments of a call are no JSON: {error}"[:300])

        # of content blocks, too
        if hasattr(last, "text"):
            text = str(last.text)
        else:
            text = last

        # with calls the text may be empty: their results come next
        if called:
            return convert_reply(AssistantReply(str(text), tuple(called)))
        return convert_reply(text)


@dataclass(frozen=True)
class ObjectAssistant:
    """An object of the user's that has a name and answers requests by itself."""

    given: Assistant

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.given.name)

    @property
    def acts(self) -> list[str]:
        """All of it: nobody sees what it does."""
        return [f"the code of {self.name}"]

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Answer as it does."""
        return convert_reply(await self.given.reply(request))


def convert_tool_call(called: Mapping[str, object]) -> ToolCall:
    """Return a call of a tool of LangChain's."""
    return ToolCall(
        name=called["name"],
        arguments=json.dumps(called["args"]),
        id=called["id"],
    )


def convert_reply(reply: Any) -> AssistantReply | NoReply:
    """Return a reply from what a function gave: without thoughts, as an endpoint's is."""
    if isinstance(reply, NoReply):
        return reply

    if isinstance(reply, AssistantReply):
        full_reply = reply
    else:
        full_reply = AssistantReply(reply)

    if not isinstance(full_reply.text, str):
        return NoReply("error", f"no text but {type(full_reply.text).__name__}")

    # nobody sees thoughts, nor what has no visible character; with calls the text may be empty
    text = remove_thoughts(full_reply.text)
    if not is_visible(text) and not full_reply.calls:
        why = "thoughts and no answer" if is_visible(full_reply.text) else "an empty text"
        return NoReply("error", why)

    # figures that are no numbers are dropped, the reply stays
    figures = (full_reply.cost, full_reply.seconds)
    if not all(isinstance(figure, int | float) and math.isfinite(figure) for figure in figures):
        full_reply = replace(full_reply, cost=0.0, seconds=0.0)
    if text == full_reply.text.strip():
        return full_reply
    return replace(full_reply, text=text)


@dataclass
class FileAssistant:
    """Replies that somebody writes into `replies.jsonl` beside `todo.jsonl`: arms can't be told apart there.

    Attributes:
        waiting: Requests that have no reply yet, by key.
    """

    folder: Path
    replies: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, ReplyRequest] = field(default_factory=dict)
    name: str = "files"

    @classmethod
    def of(cls, folder: Path) -> FileAssistant:
        """Read the replies that are there.

        Raises:
            BadInput: A line isn't an object with `key` and `reply`, a text, or null where none
                came.
            WrongUse: A file of somebody else has the name of what would be written.
        """
        if not _may_overwrite_todo(folder / TODO_FILE_NAME):
            what = "a file is there already that pollex did not write"
            place = str(folder / TODO_FILE_NAME)
            raise WrongUse(what, where=place, hint="give another folder", option="assistant")

        return cls(
            folder,
            {key: reply for key, reply, _ in read_keyed_lines(folder / REPLIES_FILE_NAME, "reply")},
        )

    async def reply(self, request: ReplyRequest) -> AssistantReply | NoReply:
        """Return what was written, or note that it is waited for."""
        if request.key in self.replies:
            return convert_reply(self.replies[request.key])

        self.waiting[request.key] = request
        return NoReply("pending", "no reply was written yet")

    def write_todo(self) -> Path:
        """Write what is waited for, in an order that tells nothing of arms."""
        path = self.folder / TODO_FILE_NAME
        self.folder.mkdir(parents=True, exist_ok=True)
        # sorted by key, which is random: the order tells nothing of arms
        rows = []
        for key, waiting_reply in sorted(self.waiting.items()):
            rows.append({"key": key, "messages": waiting_reply.all_messages})

        write_text(
            path,
            "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
            named=False,
        )
        return path


def _may_overwrite_todo(path: Path) -> bool:
    """Tell whether a file may be written anew: it isn't there, or each line is a request of an earlier run."""
    if not path.exists():
        return True

    for line in read_file_bytes(path).splitlines():
        try:
            row = json.loads(line) if line.strip() else {"key": "", "messages": []}
        except (ValueError, RecursionError):
            return False
        if not isinstance(row, dict) or not {"key", "messages"} <= row.keys():
            return False

    return True


def read_keyed_lines(path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the key, the value, empty for null, and the place of each line that people wrote; none without a file.

    Raises:
        BadInput: A line isn't an object with `key` and that value, a text.
    """
    # without a file nobody has answered yet
    if path.is_file():
        lines = read_file_bytes(path).split(b"\n")
    else:
        lines = []

    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        # only the first line may begin with a byte order mark
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            row = None
            if text.strip():
                row = json.loads(text)
            if row is not None:
                # null is an answer, too: there is no reply
                if not isinstance(value := row[name], str | int | None):
                    raise TypeError(f"{name} is no text")
                yield str(row["key"]), "" if value is None else str(value), where
        except UnicodeDecodeError as error:
            raise BadInput(
                f"it isn't UTF-8: {error}",
                where=where,
                hint="save the file as UTF-8",
            ) from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            what = f"no object with `key` and `{name}`: {error!r:.80}"
            raise BadInput(
                what,
                where=where,
                hint=f'write {{"key": …, "{name}": …}}',
            ) from error


async def ask_with_tools(
    assistant: Assistant,
    request: ReplyRequest,
    context: ReplyContext,
    tools: Mapping[str, Callable[..., object]] = NO_LIVE_TOOLS,
) -> AssistantReply | NoReply:
    """Ask for a reply; calls that the log has get the logged results, any other call ends it as diverged.

    Args:
        tools: Functions that answer calls which the log doesn't have, by the tools' names.
    """
    # each round sends the results of the calls before, up to a limit
    for _ in range(MAX_TOOL_ROUNDS):
        reply = await assistant.reply(request)
        if isinstance(reply, NoReply) or not reply.calls:
            return reply
        # all calls of a reply are answered, or none
        results = []
        for call in reply.calls:
            results.append(await find_tool_result(call, context, tools))

        if None in results:
            unknown = reply.calls[results.index(None)]
            return NoReply(
                "diverged",
                f"the log has no call of {unknown.name} with these arguments",
            )

        # calls and results in the form of the chat protocol, in the same order
        tool_calls = []
        for c in reply.calls:
            tool_calls.append(
                {
                    "id": c.id or c.name,
                    "type": "function",
                    "function": {"name": c.name, "arguments": c.arguments},
                }
            )

        tool_messages = []
        for c, text in zip(reply.calls, results, strict=True):
            tool_messages.append({"role": "tool", "tool_call_id": c.id or c.name, "content": text})

        messages = [
            *request.messages,
            {"role": "assistant", "content": reply.text, "tool_calls": tool_calls},
            *tool_messages,
        ]
        request = replace(request, messages=messages)

    return NoReply("diverged", f"more than {MAX_TOOL_ROUNDS} rounds of calls")


async def find_tool_result(
    call: ToolCall,
    context: ReplyContext,
    tools: Mapping[str, Callable[..., object]],
) -> str | None:
    """Return the logged result of a call equal in name and arguments, else what a function of the user's says.

    None where there is neither, or the function fails.
    """
    # the log first: its result is what the old reply rested on
    turns = context.conversation.turns
    for use in iterate_tool_uses(turns):
        # arguments are compared as values: order and spacing of JSON don't count
        same = (use.call.name, use.call.normalized) == (call.name, call.normalized)
        if same and use.result is not None and (text := turns[use.result].content):
            return text

    # a function of the user's stands in for a tool that the log has no call of
    try:
        result = tools[call.name](**json.loads(call.arguments or "{}"))
        return str(await result if inspect.isawaitable(result) else result)
    except (Exception, SystemExit):  # whatever the user's function does, or none has this name
        return None


def build_messages_before(context: ReplyContext) -> list[dict[str, object]]:
    """Return the messages before a reply without the system's, calls of tools as they were recorded."""
    messages = format_openai_messages(context.conversation)[: context.turn]
    return [message for message in messages if message["role"] != "system"]


ASSISTANT_CLASSES = (
    EndpointAssistant,
    CallableAssistant,
    GraphAssistant,
    ObjectAssistant,
    FileAssistant,
)


def build_assistant(answerer: object, module: str = "") -> Assistant:
    """Return the assistant that a user gives in Python: a function or a compiled graph.

    Args:
        module: Where the user found it.

    Raises:
        WrongUse: It is neither.
    """
    # graphs are told by their class, so that no import of LangGraph is needed
    if is_compiled_graph(answerer):
        return GraphAssistant(answerer)
    if isinstance(answerer, ASSISTANT_CLASSES):
        return answerer
    if hasattr(answerer, "reply") and hasattr(answerer, "name"):
        return ObjectAssistant(answerer)
    if callable(answerer):
        name = getattr(answerer, "__name__", "a function")
        return CallableAssistant(answerer, name, module)

    raise WrongUse(
        f"{type(answerer).__name__} is no assistant",
        hint="give a function of messages and system, or a compiled graph",
    )
