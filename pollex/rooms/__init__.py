"""Rooms: capabilities beside the core, each one folder with the floor plan of this package.

A room is a package that has, as far as it needs them, `usecases/ services/ graphs/ agents/ prompts/
formats/ measures/ web/pages/ templates/`. Ours are the folders beside this file. A stranger's room
is a package of its own, which names itself by an entry point of the group `pollex.rooms`. Every
registry of the core (verbs, Python functions, pages, templates, prompts) and every hook asks all
rooms by the functions below, so that a room can be added, or taken away, as a folder.

The core is the first room, `pollex` itself. It imports no other room; a room imports the core, and
no other room.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

Hook = TypeVar("Hook")

CORE_PACKAGE = "pollex"
ENTRY_POINT_GROUP = "pollex.rooms"
"""Of entry points: the name of each is the room's, its value the package."""


@cache
def list_own_rooms() -> Mapping[str, Path]:
    """Return the folders of the core and of our rooms, by the names of their packages; the core comes first."""
    here = Path(__file__).parent
    folders = sorted(folder for folder in here.iterdir() if (folder / "__init__.py").is_file())
    return {CORE_PACKAGE: here.parent} | {f"{__name__}.{folder.name}": folder for folder in folders}


@cache
def list_foreign_rooms() -> Mapping[str, Path]:
    """Return the folders of the rooms in other packages, by the names of their packages.

    Only what our rooms don't have is looked for there: to read all entry points takes some
    hundredths of a second.
    """
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    rooms: dict[str, Path] = {}
    # by package, so that the order isn't that of installation
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.value):
        spec = find_spec(entry_point.value)
        # a name may be left of a package that is gone
        if spec is not None and spec.submodule_search_locations:
            rooms[entry_point.value] = Path(spec.submodule_search_locations[0])

    return rooms


def list_rooms() -> Mapping[str, Path]:
    """Return the folders of all rooms by the names of their packages, the core first and strangers' last."""
    return {**list_own_rooms(), **list_foreign_rooms()}


def find_room_of_class(kind: type) -> str:
    """Return the package of the room that declares a class."""
    # rooms of ours lie below this package, others are packages of their own
    module = kind.__module__
    inside = module.removeprefix(f"{__name__}.")
    if inside != module:
        return f"{__name__}.{inside.partition('.')[0]}"
    return module.partition(".")[0]


def list_modules_in_part(part: str) -> Mapping[str, str]:
    """Return the modules that all rooms have in a part such as `web.pages`: full names by their own names.

    Where two rooms have one of the same name, the first room's counts.
    """
    modules: dict[str, str] = {}
    for room, folder in list_rooms().items():
        for module in iter_modules([str(folder / part.replace(".", "/"))]):
            modules.setdefault(module.name, f"{room}.{part}.{module.name}")
    return modules


def find_module(part: str, name: str) -> str | None:
    """Return the full name of a module in a part of the first room that has it; None where none has."""
    return next(iter(find_modules(part, name)), None)


def find_modules(part: str, name: str) -> list[str]:
    """Return the full names of a module in a part of each of our rooms that has it, else of strangers' rooms."""
    ours = []
    for room, folder in list_own_rooms().items():
        if has_module(folder, part, name):
            ours.append(room)

    # strangers' rooms are looked at only where ours have no such module
    rooms = ours or [
        room for room, folder in list_foreign_rooms().items() if has_module(folder, part, name)
    ]
    return [f"{room}.{part}.{name}" for room in rooms]


def has_module(folder: Path, part: str, name: str) -> bool:
    """Tell whether a room has a module, or a package, in a part."""
    inside = folder.joinpath(*part.split("."))
    return (inside / f"{name}.py").is_file() or (inside / name / "__init__.py").is_file()


def import_part(name: str) -> Iterator[Any]:
    """Import and yield a module that rooms have under the same name, such as `studio`, of each room that has it."""
    inside = Path(*name.split("."))
    for room, folder in list_rooms().items():
        if room != CORE_PACKAGE and (folder / f"{inside}.py").is_file():
            yield import_module(f"{room}.{name}")


@cache
def list_python_names() -> Mapping[str, str]:
    """Return where the things are that `import pollex` has of the rooms: full names by their names there.

    A room names them in its package as `PYTHON_NAMES`: a use case, or anything else, such as
    `usecases.remedy.ProveRemedy`, by the name that it has in `import pollex`.
    """
    rooms = {}
    for room in list_rooms():
        # the core's names stand in `pollex` itself
        if room != CORE_PACKAGE:
            rooms[room] = import_module(room)

    names: dict[str, str] = {}
    for room, package in rooms.items():
        for name, home in getattr(package, "PYTHON_NAMES", {}).items():
            names[name] = f"{room}.{home}"

    return names


@cache
def list_hooks(kind: type[Hook]) -> tuple[Hook, ...]:
    """Return what all rooms hang onto a hook, the core's first.

    A hook is a class that the core declares in a module `hooks` of one of its parts, such as
    `pollex.web.hooks`. A room that hangs something onto it has a module of the same name in the
    same part, with a tuple `HOOKS` of objects of such classes; the core's own is called `own_hooks`.
    """
    rooms_hooks = []
    for module in import_part(find_part_of_hook(kind)):
        rooms_hooks += select_hooks(module, kind)

    return (*list_core_hooks(kind), *rooms_hooks)


def list_core_hooks(kind: type[Hook]) -> tuple[Hook, ...]:
    """Return what the core hangs onto a hook; no other room is imported for it."""
    within = find_part_of_hook(kind).removesuffix("hooks").rstrip(".")
    hooks: list[Hook] = []
    for home in find_modules(within, "own_hooks"):
        hooks += select_hooks(import_module(home), kind)

    return tuple(hooks)


def find_part_of_hook(kind: type) -> str:
    """Return where rooms have what they hang onto a hook: `web.hooks` for one of `pollex.web.hooks`."""
    return kind.__module__.removeprefix(f"{CORE_PACKAGE}.")


def select_hooks(module: Any, kind: type[Hook]) -> list[Hook]:
    """Return those of a module's hooks that are of a class."""
    return [hook for hook in module.HOOKS if isinstance(hook, kind)]


def iterate_part_folders(part: str) -> Iterator[Path]:
    """Yield the folders that rooms have of a part such as `prompts`; the core's comes first."""
    for folder in list_rooms().values():
        inside = folder / part
        if inside.is_dir():
            yield inside


def find_file(part: str, name: str) -> Path | None:
    """Return a file in a part of the first room that has it; None where none has."""
    # ours first, since strangers' take time to find
    for rooms in (list_own_rooms, list_foreign_rooms):
        for folder in rooms().values():
            file = folder / part / name
            if file.is_file():
                return file

    return None
