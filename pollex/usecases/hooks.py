"""What a room hangs onto the use cases of the core: it names it in its own `usecases/hooks.py`, as `HOOKS`."""

from dataclasses import dataclass

from pollex.errors import WrongUse
from pollex.rooms import hooks_of


@dataclass(frozen=True)
class OptionWork:
    """What a room does for a verb of the core, where an option of that verb asks for it.

    Attributes:
        verb: Of the use case.
        option: Name of its field.
        does: Full name of the service, whose arguments are the use case's.
    """

    verb: str
    option: str
    does: str


def work_of(verb: str, option: str) -> str:
    """Return the full name of the service that an option asks for.

    Raises:
        WrongUse: The room that has it isn't installed.
    """
    for work in hooks_of(OptionWork):
        if (work.verb, work.option) == (verb, option):
            return work.does
    raise WrongUse(
        "the room that has this option is not installed",
        remedy="pip install 'pollex[all]' has all rooms",
        option=option,
    )
