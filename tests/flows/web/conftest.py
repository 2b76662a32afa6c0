"""A store made by hand, and clients of the application on it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from small_runs import learnt
from web_site import client_of, made_app, made_store

from pollex.store.store import Store

__all__ = ["learnt"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with made_store(tmp_path_factory.mktemp("web") / ".pollex") as made:
        yield made


@pytest.fixture
async def client(store: Store) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(made_app(store)) as opened:
        yield opened


@pytest.fixture
async def stranger(store: Store) -> AsyncIterator[httpx2.AsyncClient]:
    """Brings no token."""
    async with client_of(made_app(store), token=None) as opened:
        yield opened


@pytest.fixture
async def nothing(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a store without runs."""
    with Store.open(tmp_path / ".pollex") as empty:
        async with client_of(made_app(empty)) as opened:
            yield opened
