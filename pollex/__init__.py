"""pollex learns the rubrics behind your users' thumbs, and scores conversations with them.

import pollex

logs = pollex.read_logs("logs.jsonl")
rubrics = pollex.learn(logs, domain="debugging.toml")
rubrics.save("rubrics.json")
score = pollex.Scorer.load("rubrics.json").score(conversation)
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""Type checkers take it for true. It isn't imported: `typing` would take longer than all else here."""
if TYPE_CHECKING:
    from typing import Any

    from pollex.api.estimator import RubricClassifier
    from pollex.api.rubrics import RubricSet, read_logs
    from pollex.api.verbs import (
        check,
        compare,
        diff_sets,
        evaluate,
        inspect,
        learn,
        refit,
        score,
        share,
    )
    from pollex.conversations.conversation import Conversation, Label, Turn
    from pollex.errors import PollexError
    from pollex.rubrics.score import Score
    from pollex.services.scorer import Scorer

__all__ = [
    "Conversation",
    "Label",
    "PollexError",
    "RubricClassifier",
    "RubricSet",
    "Score",
    "Scorer",
    "Turn",
    "check",
    "compare",
    "diff_sets",
    "evaluate",
    "inspect",
    "learn",
    "read_logs",
    "refit",
    "score",
    "share",
]
_CORE = tuple(__all__)
del __all__  # `__getattr__` tells it: it has the names of the rooms, too

_NAMES = {
    "api.estimator": ("RubricClassifier",),
    "api.rubrics": ("RubricSet", "read_logs"),
    "conversations.conversation": ("Conversation", "Label", "Turn"),
    "errors": ("PollexError",),
    "rubrics.score": ("Score",),
    "services.scorer": ("Scorer",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
"""Where names are; all others are use cases, those of rooms among them."""


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import pollex` is quick."""
    # the core's names have homes in a table; all others of it are verbs
    if name in _CORE:
        return getattr(
            import_module(f"{__name__}.{_HOMES.get(name, 'api.verbs')}"),
            name,
        )

    from pollex.rooms import find_module, list_python_names  # `import pollex` is quick

    if name == "__all__":
        return sorted({*_CORE, *list_python_names()})
    # what Python asks for itself, such as `__wrapped__`, is no verb
    if name.startswith("__") or (
        find_module("usecases", name) is None and name not in list_python_names()
    ):
        raise AttributeError(f"module 'pollex' has no attribute {name!r}")
    return import_module(f"{__name__}.api.verbs").find_function(name)


def __dir__() -> list[str]:
    """Name what is public, and what every module has."""
    return sorted([*(name for name in globals() if name.startswith("__")), *__getattr__("__all__")])
