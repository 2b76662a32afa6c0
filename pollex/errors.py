"""The error tree. Every error says what was wrong, where, and what to do next.

    PollexError
    ├── WrongUse              a command or call that can't be carried out as asked        exit 2
    ├── BadInput              a file, row or field that can't be read as conversations, answers or
    judgments
    │   └── NotText           a file whose bytes are no text in the encoding that was named
    ├── BadLabels             labels from which nothing can be learnt or measured
    ├── BadRubrics            a rubric set that can't be read or doesn't fit the data
    ├── BadCalibrator         a kept calibrator that can't be read or was changed
    ├── ModelUnavailable      the endpoint can't serve now; a retry or a later resume can mend it
    ├── ModelRefused          the endpoint will never serve this as configured (key, quota, name)
    ├── StoreBusy             another process works on the run, perhaps this one          exit 75
    ├── StoreDamaged          the store can't be trusted as it lies there
    ├── StoreFull             the disk under the store is full; what was acknowledged is safe
    ├── ResumeRefused         the run to resume was started with other settings
    ├── LimitReached          max_calls or max_cost ended the run; it can be resumed
    └── Interrupted           the user stopped the run; it can be resumed                 exit 130
        └── AnswersPending    calls wait for a provider's batch; a later resume goes on   exit 75

This module imports nothing of ours, and every room may import it.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar

UNREADABLE_FILE_HINT = "check the path; the file is to be UTF-8"
"""What to do about a file of settings, rubrics or people's words that can't be read."""


ProposedOptions = Mapping[str, object]
"""Arguments that an error names, with the values that it proposes; None where it proposes none."""


def spell_as_arguments(options: ProposedOptions) -> str:
    """Spell options as Python does: `label_field='stars', positive='>=4'`."""
    return ", ".join(
        f"{name}=" if value is None else f"{name}={value!r}" for name, value in options.items()
    )


OPTION_SPELLER: ContextVar[Callable[[ProposedOptions], str]] = ContextVar(
    "spelling",
    default=spell_as_arguments,
)
"""How options are written in messages; a command line sets its own way."""


def spell_options(**options: object) -> str:
    """Spell options as whoever calls writes them."""
    return OPTION_SPELLER.get()(options)


def map_options_by_name(option: str | ProposedOptions) -> ProposedOptions:
    """Return options by name, of which one may be given by its name alone."""
    # a name alone proposes no value
    if isinstance(option, str):
        return {option: None} if option else {}
    return option


class PollexError(Exception):
    """Base of all errors that pollex raises on purpose.

    Args:
        what: What was wrong, one clause.
        where: File and line, conversation id or rubric id; empty when there is no place.
        hint: What to do next, one clause.
        option: The argument that the remedy is about, or several with the values to give; it ends
            the remedy.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        hint: str = "",
        option: str | ProposedOptions = "",
    ) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        self.options = map_options_by_name(option)
        super().__init__(what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}{self.advice and ' → '}{self.advice}"

    @property
    def advice(self) -> str:
        """The remedy with its options."""
        return ": ".join(filter(None, [self.hint, OPTION_SPELLER.get()(self.options)]))


class WrongUse(PollexError):
    """A command or call that can't be carried out as asked."""

    exit_code = 2


class BadInput(PollexError):
    """A file, row or field that can't be read as conversations, answers or judgments."""


class NotText(BadInput):
    """A file whose bytes are no text in the encoding that was named."""


class BadLabels(PollexError):
    """Labels that nothing can be learned or measured from."""


class BadRubrics(PollexError):
    """A rubric set that can't be read or doesn't fit the data."""


class BadCalibrator(PollexError):
    """A kept calibrator that can't be read or was changed."""


class ModelUnavailable(PollexError):
    """The endpoint or model can't serve now; a retry or a later resume may succeed.

    Attributes:
        fault: What the last attempt failed with, one word (`connection`, `server`), where that is
            known.
    """

    fault: str = ""


class ModelRefused(PollexError):
    """The endpoint will never serve this as configured: key, quota or model name."""


class StoreBusy(PollexError):
    """Another process works on the run, or keeps the store from being written."""

    exit_code = 75


class StoreDamaged(PollexError):
    """The store is damaged and can't be used as it is."""


class StoreFull(PollexError):
    """The disk under the store is full; what was acknowledged is safe."""


class ResumeRefused(PollexError):
    """The run to resume was started with other data, settings or versions."""


class LimitReached(PollexError):
    """A limit that the user set ended the run; it can be resumed."""


class Interrupted(PollexError):
    """The user stopped the run; it can be resumed."""

    exit_code = 130


class AnswersPending(Interrupted):
    """Calls wait for a provider's batch; a later resume goes on."""

    exit_code = 75
