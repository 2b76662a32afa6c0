"""LangSmith tracing, off unless the user asks for it, whatever the environment says."""

import os
import sys

_TRACING_VARIABLES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)


def switch_tracing(*, on: bool) -> None:
    """Switch LangSmith tracing on (`--langsmith`) or off in this process and its children, before any run."""
    for name in _TRACING_VARIABLES:
        os.environ[name] = str(on).lower()

    # it may have read the environment already, and keeps what it has read
    if "langsmith" in sys.modules:
        from langsmith import configure

        configure(enabled=on)
