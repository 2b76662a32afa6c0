"""LangSmith tracing, off unless the user asks for it, whatever the environment says."""

import os
import sys

_SWITCHES = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")


def tracing_off() -> None:
    """Switch LangSmith tracing off in this process and its children, before any run."""
    _switch(on=False)


def tracing_on() -> None:
    """Switch LangSmith tracing on: `--langsmith`."""
    _switch(on=True)


def _switch(*, on: bool) -> None:
    for name in _SWITCHES:
        os.environ[name] = str(on).lower()
    if "langsmith" in sys.modules:  # it may have read the environment already, and keeps what it has read
        from langsmith import configure

        configure(enabled=on)
