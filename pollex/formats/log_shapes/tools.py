"""The export formats of tools, as `tools.toml` lists them; a module that reads one is loaded with its first row."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from pollex.formats.assembly.pieces import Piece, Score, Target, moment
from pollex.formats.log_shapes.exports import Fields, WrongFile, at, has, required, text

NEAR = 0.6
"""The share of a format's keys from which on a row that lacks the others is said to look like it."""


@dataclass(frozen=True, slots=True)
class Export:
    """One export format, recognized by its keys; `tools.toml` says what its fields mean."""

    module: str
    name: str
    signs: tuple[tuple[str, ...], ...]
    without: str = ""
    where: str = ""
    more: str = ""
    read_by: str = ""
    thumb: Mapping[str, str] | None = None
    refuse: tuple[str, ...] = ()

    def recognises(self, fields: Fields) -> bool:
        """Return whether a row has the keys of this format."""
        if not any(_all_in(fields, sign) for sign in self.signs) or any(has(fields, k) for k in self.without.split()):
            return False
        return not self.where or bool(self._function(self.where)(fields))

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces of a row.

        Raises:
            BadInput: It can't be read.
            WrongFile: The whole file can't be used.
        """
        if self.refuse:
            raise WrongFile(self.refuse[0], remedy=self.refuse[1])
        if self.thumb:
            return _thumb(self.thumb, fields)
        found: Iterable[Piece] = self._function(self.read_by)(fields) if self.read_by else ()
        return found

    def _function(self, name: str) -> Callable[[Fields], Any]:
        found: Callable[[Fields], Any] = getattr(import_module(f"{__package__}.{self.module}"), name)
        return found

    def missing(self, fields: Fields) -> tuple[float, list[str]]:
        """Return the share of a format's keys that a row has, and the missing keys."""
        best = max(self.signs, key=lambda sign: sum(has(fields, key) for key in sign) / len(sign))
        lacking = [key for key in best if not has(fields, key)]
        return 1 - len(lacking) / len(best), lacking

    def weight(self, fields: Fields) -> int:
        """Return how many keys of the row itself mark it."""
        return max(sum("*" not in key for key in sign) for sign in self.signs if _all_in(fields, sign))


def _all_in(fields: Fields, sign: tuple[str, ...]) -> bool:
    return all(has(fields, key) for key in sign)


def _thumb(names: Mapping[str, str], fields: Fields) -> Iterator[Score]:
    found = {part: _filled(fields, name) for part, name in names.items()}
    target: Target = next(target for target in get_args(Target) if target in names)
    value = found.get("stars", found.get("value"))
    if value in (None, "") and not found.get("comment"):
        return
    yield Score(
        *(target, required(fields, *names[target].split("|")), value),
        source=str(found.get("source") or ""),
        comment=found.get("comment"),
        tags=found.get("tags"),
        person=text(found.get("person")),
        at=moment(found.get("at")),
        rating="stars" in names,
        message=text(found.get("message")) if target != "message" else None,
    )


def _filled(fields: Fields, names: str) -> Any:
    values = (at(fields, name) for name in names.split("|"))
    return next((value for value in values if value not in (None, "")), None)


def _listed() -> Iterator[Export]:
    for module, exports in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items():
        for name, row in exports.items():
            signs = tuple(tuple(keys.split()) for keys in row.pop("keys"))
            yield Export(module, name, signs, read_by=row.pop("read", ""), **row)


EXPORTS = tuple(_listed())


def export_of(fields: Fields) -> Export | None:
    """Return the most specific format whose keys a row has; None if there is none."""
    fitting = [export for export in _possible(frozenset(fields)) if export.recognises(fields)]
    return max(fitting, key=lambda export: export.weight(fields), default=None)


@lru_cache(maxsize=256)
def _possible(names: frozenset[str]) -> tuple[Export, ...]:
    """Return the formats possible for these top-level names; cached for all rows of a table."""
    known = {*names, "*"}
    return tuple(
        export
        for export in EXPORTS
        if any(all(key in names or key.partition(".")[0] in known for key in sign) for sign in export.signs)
    )


def respelled(fields: Fields) -> dict[str, Any] | None:
    """Return a row with keys respelled as a known format's; None if none fits."""
    spelled = {_folded(name) for name in fields}
    for export in EXPORTS:
        for sign in export.signs:
            tops = [key.partition(".")[0] for key in sign]
            if len(sign) > 1 and all(_folded(top) in spelled for top in tops):
                every = (*(key.partition(".")[0] for keys in export.signs for key in keys), *export.more.split(), *tops)
                known = {_folded(name): name for name in every}
                row = {known.get(_folded(name), name): value for name, value in fields.items()}
                if export.recognises(row):
                    return row
    return None


def nearest(fields: Fields) -> str:
    """Describe the format that a row resembles, and its missing keys; empty if none."""
    with_words = (e for e in EXPORTS if all(e.signs) and (e.read_by or e.thumb or e.refuse))
    shares = [(*export.missing(fields), export.name) for export in with_words]
    share, lacking, name = max(shares, key=lambda found: (found[0], -len(found[1])))
    if share < NEAR or not lacking:
        return ""
    return f"it looks like {name}, but has no {' and no '.join(lacking)}"


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
