"""A store made by hand, and clients of the application on it."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from web_site import client_of, made_app, made_store

from pollex.store.store import Store


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of a store with so many conversations, made once, for copies."""

    @cache
    def of(n: int) -> Path:
        with made_store(tmp_path_factory.mktemp("kept") / ".pollex", n=n) as made:
            return made.folder

    return of


@pytest.fixture(scope="module")
def store(kept: Callable[[int], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(shutil.copytree(kept(30), tmp_path_factory.mktemp("web") / ".pollex")) as made:
        yield made


@pytest.fixture
async def client(store: Store) -> AsyncIterator[AsyncClient]:
    async with client_of(made_app(store)) as opened:
        yield opened


@pytest.fixture
def own(
    kept: Callable[[int], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Store]:
    """A store of one's own, to write into, with twelve conversations or as many as are asked for."""
    with Store.open(
        shutil.copytree(kept(getattr(request, "param", 12)), tmp_path / ".pollex")
    ) as made:
        yield made


@pytest.fixture
async def web(own: Store) -> AsyncIterator[AsyncClient]:
    async with client_of(made_app(own)) as opened:
        yield opened


@pytest.fixture
async def stranger(store: Store) -> AsyncIterator[AsyncClient]:
    """Brings no token."""
    async with client_of(made_app(store), token=None) as opened:
        yield opened


@pytest.fixture
async def nothing(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    """A client of a store without runs."""
    with Store.open(tmp_path / ".pollex") as empty:
        async with client_of(made_app(empty)) as opened:
            yield opened
