"""The fixtures of pages: a store made by hand, and clients of the application on it."""

from small_runs import learnt
from web_fixtures import client, kept, nothing, own, store, stranger, web

__all__ = ["client", "kept", "learnt", "nothing", "own", "store", "stranger", "web"]
