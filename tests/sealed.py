"""What a model reads between the boundary lines of a prompt."""

import json
from typing import Any


def unseal(message: str) -> list[dict[str, Any]]:
    """The items of a sealed message, whatever stands below them.

    Raises:
        json.JSONDecodeError: It holds none.
    """
    line, _, rest = message.partition("\n")
    items: list[dict[str, Any]] = json.loads(rest.partition(f"\n{line}")[0])
    return items
