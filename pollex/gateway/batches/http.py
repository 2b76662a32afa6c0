"""Requests beside the chat operation, which batches need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
import httpx2
from openai import DefaultAioHttpClient

from pollex.errors import ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.batches.provider import Doubtful, Gone
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Reply
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.redaction import redacted, without
from pollex.gateway.responses import fault_of

FAULTS = (httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError, OSError, EOFError, ValueError)
_CONNECT_SECONDS = 10.0
_PAUSES = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


class Http:
    """Connections to one endpoint; environment proxies aren't used, redirects not followed.

    Args:
        headers: Sent with every request, the credentials among them.
    """

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str], limits: Limits) -> None:
        self._endpoint, self._limits = endpoint, limits
        self._http = DefaultAioHttpClient(
            timeout=httpx2.Timeout(limits.deadline, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
            proxy=endpoint.proxy,
            headers={**endpoint.headers, **headers},
        )

    async def once(self, path: str, body: Any) -> Any:
        """Return the reply to a request that must not be sent twice.

        Raises:
            Doubtful: It may have been carried out.
            PollexError: It was not.
        """
        try:
            response = await self._http.post(self._endpoint.url(path), json=body)
        except FAULTS as error:
            raise Doubtful(self._words(error)) from error
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status_code in _PAUSES:
            raise Doubtful(f"HTTP {response.status_code}")
        if response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            raise self.error(response)
        try:
            return response.json()
        except ValueError as error:
            raise Doubtful("the reply is no JSON") from error

    async def ask(self, method: str, path: str, **given: Any) -> Any:
        """Return the reply to a request that may be sent again.

        Args:
            given: What httpx takes: `params`, `files`, `data`.

        Raises:
            PollexError: It can't be answered.
        """
        for attempt in range(self._limits.max_attempts):
            if attempt:
                await asyncio.sleep(self._limits.backoff * 2.0**attempt)
            try:
                response = await self._http.request(method, self._endpoint.url(path), **given)
                if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
                    return response.json()
            except FAULTS as error:
                last: PollexError = self._unavailable(self._words(error))
                continue
            last = self.error(response)
            if isinstance(last, ModelRefused):
                break
        raise last

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of a file; none where it is gone.

        Raises:
            ModelUnavailable: It can't be read to its end.
        """
        try:
            async with self._http.stream("GET", self._endpoint.url(path)) as response:
                if response.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                    return
                if response.status_code != HTTPStatus.OK:
                    await response.aread()
                    raise self.error(response)
                left = b""
                async for chunk in response.aiter_bytes():  # `aiter_lines` ends lines at U+2028 and others, too
                    *whole, left = (left + chunk).split(b"\n")
                    for line in whole:
                        yield line
                yield left
        except FAULTS as error:
            raise self._unavailable(self._words(error)) from error

    def error(self, response: httpx2.Response) -> PollexError:
        """Return the error that a reply stands for."""
        body = without(self._endpoint.secrets, response.text)
        fault = fault_of(Reply(status=response.status_code, body=body, headers=response.headers))
        if fault is None or fault.action in ("retry", "wait"):
            return self._unavailable(fault.detail if fault else f"HTTP {response.status_code}")
        kind = Gone if response.status_code == HTTPStatus.NOT_FOUND else ModelRefused
        return kind(fault.detail, where=self._endpoint.shown, remedy=fault.remedy)

    async def close(self) -> None:
        """End all connections."""
        await self._http.aclose()

    def _unavailable(self, words: str) -> ModelUnavailable:
        return ModelUnavailable(words, where=self._endpoint.shown, remedy="resume later")

    def _words(self, error: Exception) -> str:
        return redacted(f"{type(error).__name__}: {error}", self._endpoint.secrets)
