"""One embedder for all tests of the built-in roles, and a small log whose classes differ."""

import pytest
from small_logs import small_log

from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.conversation import Conversation


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The bundled model, without a cache on disk."""
    return Embedder()


@pytest.fixture(scope="session")
def log() -> list[Conversation]:
    return small_log()
