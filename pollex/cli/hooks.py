"""What a room hangs into the command line beside its verbs: it names it in its own `cli/hooks.py`, as `HOOKS`."""

from abc import ABC, abstractmethod
from pathlib import Path

from pollex.errors import WrongUse
from pollex.rooms import list_hooks
from pollex.runs.options import ModelOptions


class DemoSequel(ABC):
    """What `pollex demo` shows besides, once the sample log is learned from and scored.

    Attributes:
        option: The option of `pollex demo` that asks for it.
    """

    option: str

    @abstractmethod
    def show_built_in(self, out: Path, learned: Path, as_json: bool) -> int:
        """Show it without a model, and return the exit code; `learned` is the folder of the rubric set."""

    @abstractmethod
    def show(self, out: Path, model: ModelOptions, as_json: bool) -> int:
        """Show it with a model, and return the exit code."""


def find_demo_sequel(option: str) -> DemoSequel:
    """Return the sequel that an option asks for.

    Raises:
        WrongUse: Its room isn't installed.
    """
    # rooms that are installed hang theirs on this hook
    sequels: tuple[DemoSequel, ...] = list_hooks(DemoSequel)
    for sequel in sequels:
        if sequel.option == option:
            return sequel

    raise WrongUse(
        f"the room {option!r} is not installed",
        hint="pip install 'pollex[all]' has all rooms",
        option=option,
    )
