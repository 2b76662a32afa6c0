"""Which provider takes a model's batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pollex.errors import WrongUse
from pollex.gateway.batches.client import AnthropicBatches, OpenAIBatches
from pollex.gateway.batches.desk import (
    BatchProvider,
    BatchSubmissionRound,
    FileBatches,
    ModelBatchQueue,
)
from pollex.gateway.endpoint import Endpoint
from pollex.store.ledger import StoreBatchRecords

if TYPE_CHECKING:
    from pollex.gateway.calls import Ledger
    from pollex.gateway.transport import ChatModel
    from pollex.runs.options import ModelOptions
    from pollex.store.store import Store

ANTHROPIC_HOST = "api.anthropic.com"


def open_batch_queue(
    options: ModelOptions,
    endpoint: Endpoint | ChatModel,
    store: Store,
    ledger: Ledger,
    together: BatchSubmissionRound | None,
) -> ModelBatchQueue | None:
    """Return where an endpoint's calls wait for batches; None where no batch is asked for, and none is open.

    Without `by_batch` what is open is still fetched, and only what it didn't bring is asked at
    once.

    Raises:
        WrongUse: Calls of a LangChain chat model are to go by batch.
    """
    by_batch = options.by_batch or options.batch_files is not None
    # only an endpoint with an address has batches
    if not isinstance(endpoint, Endpoint):
        if by_batch:
            raise WrongUse(
                "a LangChain chat model has no batches",
                hint="name the model and its address",
            )

        return None

    book = StoreBatchRecords(store)
    # what was handed in before is fetched, even if nothing more is
    if not by_batch and not book.open(endpoint.place, endpoint.model):
        return None

    # a client is made only for the provider that is needed
    providers: dict[str, Callable[[], BatchProvider]] = {
        OpenAIBatches.name: lambda: OpenAIBatches(endpoint, options.limits),
        AnthropicBatches.name: lambda: AnthropicBatches(endpoint, options.limits),
        FileBatches.name: lambda: FileBatches(options.batch_files or Path()),
    }
    to = ""
    if by_batch:
        to = choose_provider_name(options, endpoint)

    return ModelBatchQueue(
        endpoint,
        providers,
        ledger,
        book,
        options.limits,
        to,
        together or BatchSubmissionRound(),
    )


def choose_provider_name(options: ModelOptions, endpoint: Endpoint) -> str:
    """Return the provider that new calls go to."""
    # files go before any provider, and a named protocol before what the address tells
    if options.batch_files is not None:
        return FileBatches.name

    if urlsplit(endpoint.place).hostname == ANTHROPIC_HOST:
        summary = AnthropicBatches.name
    else:
        summary = OpenAIBatches.name

    return options.batch_api or summary
