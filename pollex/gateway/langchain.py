"""Any LangChain chat model as a place to ask, through `ainvoke`."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from httpx2 import AsyncClient
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import DefaultAioHttpClient
from pydantic import SecretStr

from pollex.gateway.calls import Call, Reply, Request, request_for
from pollex.gateway.deadline import within
from pollex.gateway.endpoint import LANGCHAIN
from pollex.gateway.redaction import redacted, without

_FINISH_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
    "safety": "content_filter",
}


@dataclass(frozen=True)
class ChatModel:
    """A chat model that the user made.

    An OpenAI model takes every parameter of a call, and its own retries are switched off. Of another provider's model
    the sampling parameters stay as the user set them; a schema reaches it as a tool, or in the prompt.
    """

    chat: BaseChatModel = field(repr=False)

    @cached_property
    def model(self) -> str:
        """The model's name."""
        for name in ("model_name", "model", "model_id", "deployment_name"):
            if isinstance(value := getattr(self.chat, name, None), str) and value:
                return value
        return self.chat._llm_type

    @cached_property
    def place(self) -> str:
        """Class and settings of the model: what a base URL is to an endpoint."""
        kind = type(self.chat)
        settings = json.dumps(self.chat._identifying_params, sort_keys=True, default=repr)
        digest = hashlib.sha256(without(self.secrets, settings).encode("utf-8", "replace")).hexdigest()[:16]
        return f"{LANGCHAIN}{kind.__module__}.{kind.__qualname__}:{digest}"

    @property
    def shown(self) -> str:
        """See `Endpoint`; no key is in it."""
        return self.place

    @property
    def keyless(self) -> bool:
        """Whether calls carry no key; False, since only the model knows."""
        return False

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Keys that the model holds."""
        held = (getattr(self.chat, name, None) for name in type(self.chat).model_fields)
        return tuple(value.get_secret_value() for value in held if isinstance(value, SecretStr))

    def request(self, call: Call) -> Request:
        """Prepare `call` for this model."""
        return request_for(self.place, self.model, call)


class ChatModelWire:
    """Sends through `ainvoke` and stores the message in the form of an endpoint's body."""

    def __init__(self, place: ChatModel) -> None:
        self._place = place
        self._chat = place.chat
        self._http: AsyncClient | None = None
        if isinstance(place.chat, BaseChatOpenAI):
            if place.chat.http_async_client is None:
                # By default all models share connections, which die with the event loop that opened them.
                self._http = DefaultAioHttpClient(follow_redirects=False, trust_env=False)
            self._chat = _own(place.chat, self._http)

    async def send(self, request: Request, seconds: float) -> Reply:
        """See `Wire`."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with within(seconds):
                message = await self._bound(request.call).ainvoke([dict(message) for message in request.call.messages])
        except TimeoutError:
            return Reply(problem="timeout", detail=f"no reply within {seconds:g} s", seconds=loop.time() - began)
        except Exception as error:  # what a provider's package raises, nobody knows
            return _reply_to(error, self._place.secrets, loop.time() - began)
        body = json.dumps(_completion(message), ensure_ascii=False, default=str)
        return Reply(status=200, body=without(self._place.secrets, body), seconds=loop.time() - began)

    async def close(self) -> None:
        """See `Wire`. Connections that the user made stay open."""
        if self._http is not None:
            await self._http.aclose()

    def _bound(self, call: Call) -> Runnable[LanguageModelInput, BaseMessage]:
        if isinstance(self._chat, BaseChatOpenAI):
            fields = call.payload(self._place.model, {})
            return self._chat.bind(extra_body={k: v for k, v in fields.items() if k not in {"model", "messages"}})
        if call.schema is not None and call.form == "tool":
            tool = {"title": call.schema_name, "description": "The answer.", **call.schema}
            return self._chat.bind_tools([tool], tool_choice=call.schema_name)
        return self._chat


def _own(chat: BaseChatOpenAI, http: AsyncClient | None) -> BaseChatOpenAI:
    """Return the model with `http` for connections and its own retries off: the gateway retries."""
    client = chat.root_async_client.with_options(max_retries=0, http_client=http)
    return chat.model_copy(update={"root_async_client": client, "async_client": client.chat.completions})


def _completion(message: BaseMessage) -> dict[str, Any]:
    about = message.response_metadata
    reason = str(about.get("finish_reason") or about.get("stop_reason") or "stop").lower()
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    arguments = [{"function": {"name": call["name"], "arguments": json.dumps(call["args"])}} for call in calls]
    content = message.content if message.content or not arguments else None
    return {
        "model": about.get("model_name") or about.get("model"),
        "system_fingerprint": about.get("system_fingerprint"),
        "choices": [
            {
                "finish_reason": _FINISH_REASONS.get(reason, reason),
                "logprobs": about.get("logprobs"),
                "message": {
                    "content": content,
                    "refusal": message.additional_kwargs.get("refusal"),
                    "tool_calls": arguments,
                },
            }
        ],
        "usage": {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
        if usage
        else None,
    }


def _reply_to(error: Exception, secrets: tuple[str, ...], seconds: float) -> Reply:
    """Return the reply behind a provider's exception: its status, or a fault of the connection."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    words = redacted(f"{type(error).__name__}: {error}", secrets)
    if isinstance(status, int):
        headers: Mapping[str, str] = getattr(response, "headers", None) or {}
        return Reply(status=status, body=words, headers=headers, seconds=seconds)
    if isinstance(error, NotImplementedError):
        return Reply(status=400, body=words, seconds=seconds)  # a model that can't call tools: it is asked otherwise
    if isinstance(error, ValueError | TypeError | LookupError):
        return Reply(status=200, body=words, seconds=seconds)  # a body that the package could not read
    return Reply(problem="connection", detail=words, seconds=seconds)
