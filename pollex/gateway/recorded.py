"""An endpoint whose replies were recorded: nothing leaves the machine, nothing is paid.

Which rubrics are asked about together changes whenever others are chosen. Where a judging prompt
was not recorded, but the model answered each of its statements about the same conversation in other
prompts of the same words, the reply is put together from these answers, and counted. Its attention
check has the answer to one of the same truth.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pollex.errors import PollexError
from pollex.gateway.calls import Capabilities, Reply, Request
from pollex.gateway.endpoint import Endpoint

RECORDED_URL = "https://recorded.invalid/v1"
"""Stands for the address in each call's key; such a host can't exist (RFC 6761)."""


_NUMBERED_STATEMENT_REGEX = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
_CANARY_STATEMENT_REGEX = re.compile(
    r'"The user (?:uses the word \\"(.*)\\" in their first message|writes a message)\."'
)


class PromptNotRecorded(PollexError):
    """A prompt that the recording has no reply to: it was changed since, or the data was."""


@dataclass(frozen=True)
class RecordedEndpoint(Endpoint):
    """A model whose replies are in a file, by the key of the call.

    Attributes:
        file: JSON lines, packed by gzip, with `key`, `stage`, `item` and `body`, the reply as it
            came; of judgings also `form` and `statements`, see `split_recorded_request`.
        composed: Keys of prompts whose replies were put together.
    """

    base_url: str = RECORDED_URL
    file: Path = field(kw_only=True)
    composed: set[str] = field(
        default_factory=set,
        compare=False,
        repr=False,
        kw_only=True,
    )

    @cached_property
    def shown(self) -> str:
        """What messages and files call the place."""
        return "a recording"

    @cached_property
    def lines(self) -> Mapping[str, dict[str, Any]]:
        """What was recorded, by key."""
        if not self.file.exists():
            return {}

        lines = map(
            json.loads,
            gzip.decompress(self.file.read_bytes()).decode().splitlines(),
        )
        return {line["key"]: line for line in lines}

    @cached_property
    def answers(self) -> dict[tuple[str, str], object]:
        """The model's answers by the form of a prompt and a statement; of several to the same the first."""
        answers: dict[tuple[str, str], object] = {}
        for line in self.lines.values():
            if "statements" in line:
                recorded = json.loads(json.loads(line["body"])["choices"][0]["message"]["content"])
                for number, statement in enumerate(line["statements"], 1):
                    answers.setdefault(
                        (line["form"], statement),
                        recorded[str(number)],
                    )

        return answers

    def reply(self, request: Request) -> str | None:
        """Return the body of a reply, as recorded or put together; None where that can't be."""
        if request.key in self.lines:
            return str(self.lines[request.key]["body"])

        form, statements = split_recorded_request(request)
        answers = []
        for statement in statements:
            answers.append(self.answers.get((form, statement)))

        if not answers or None in answers:
            return None

        self.composed.add(request.key)
        text = json.dumps(
            {str(number): answer for number, answer in enumerate(answers, 1)},
            ensure_ascii=False,
        )
        return make_reply_body(self.model, text, request)

    @property
    def capabilities(self) -> Capabilities:
        """What the model could do when it was recorded."""
        return replace(
            Capabilities(self.model),
            tools=False,
            json_object=False,
            logprobs=0,
        )

    async def send(self, request: Request, seconds: float) -> Reply:  # noqa: ARG002
        """Return the recorded reply: it is its own `ModelConnection`.

        Raises:
            NotRecorded: There is none.
        """
        body = self.reply(request)
        if body is None:
            raise PromptNotRecorded(
                f"no reply to this prompt was recorded: {request.call.stage} of {request.call.item}",
                where=str(self.file),
                hint="record it (`make record`), or look at the recorded result",
            )

        return Reply(status=200, body=body)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def split_recorded_request(request: Request) -> tuple[str, list[str]]:
    """Return a hash of a prompt without its numbered statements, and these; a check is told by its truth alone."""
    *before, last = (str(message["content"]) for message in request.call.messages)
    first = _NUMBERED_STATEMENT_REGEX.search(last)
    head = last[: first.start()] if first else last
    identity = json.dumps([*before, head, request.call.replicate])
    data = "\n".join(before[1:])

    statements = []
    for statement in _NUMBERED_STATEMENT_REGEX.findall(last):
        statements.append(_make_key_of_statement(statement, data))
    return hashlib.sha256(identity.encode()).hexdigest()[:16], statements


def _make_key_of_statement(statement: str, data: str) -> str:
    check = _CANARY_STATEMENT_REGEX.fullmatch(statement)
    if check:
        return f"check: {check[1] is None or check[1] in data}"
    return statement


def make_reply_body(model: str, text: str, request: Request) -> str:
    """Return a reply's body; four characters are counted as a token."""
    prompt = sum(len(message["content"]) for message in request.call.messages)
    usage = {"prompt_tokens": prompt // 4, "completion_tokens": len(text) // 4}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }

    return json.dumps(
        {
            "model": model,
            "choices": [choice],
            "usage": usage,
        },
        ensure_ascii=False,
    )
