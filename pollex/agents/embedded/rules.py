"""Tables of detectors: signals, acts and patterns."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_BREAK = re.compile(r"\n(?! )")
_FRAGMENT = re.compile(r"\{([A-Z_]+)\}")


def rows(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield group, name and fields of each row of a table.

    A text right in a group is a fragment: `{NAME}` stands for it in all texts of the group that follow. A line break
    stands for nothing, unless the next line is indented.
    """
    for group, inner in tomllib.loads(path.read_text("utf-8")).items():
        fragments: dict[str, str] = {}
        for name, value in inner.items():
            found = _written_out(value, fragments)
            if isinstance(found, str):
                fragments[name] = found
            else:
                yield group, name, found


def _written_out(value: Any, fragments: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _FRAGMENT.sub(lambda found: fragments[found[1]], _BREAK.sub("", value))
        case list():
            return [_written_out(one, fragments) for one in value]
        case dict():
            return {name: _written_out(one, fragments) for name, one in value.items()}
    return value
