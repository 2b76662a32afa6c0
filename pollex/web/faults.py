"""Errors between a browser and the application, with their HTTP status."""

from pollex.errors import (
    LimitReached,
    ModelRefused,
    ModelUnavailable,
    PollexError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    WrongUse,
)


class RequestError(WrongUse):
    """A request that is refused."""

    status = 400


class NotFound(RequestError):
    """An error for an address that does not exist."""

    status = 404


class NothingToShow(NotFound):
    """An error for a page that has nothing to show, as no run has scored conversations."""


class VersionConflict(RequestError):
    """Another version, lease or store than the page was made for."""

    status = 409


class Forbidden(RequestError):
    """A write that this server, or this visitor, may not make."""

    status = 403


STATUS_BY_ERROR: dict[type[PollexError], int] = {
    StoreBusy: 503,
    StoreFull: 503,
    StoreDamaged: 503,
    ModelUnavailable: 502,
    ModelRefused: 502,
    LimitReached: 429,
    WrongUse: 404,
}


def find_status(error: PollexError) -> int:
    """Return the HTTP status that says what kind of error this is."""
    if isinstance(error, RequestError):
        return error.status

    return next(
        (status for kind, status in STATUS_BY_ERROR.items() if isinstance(error, kind)),
        500,
    )
