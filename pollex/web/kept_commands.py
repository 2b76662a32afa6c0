"""Commands that a store keeps, to go on with its runs: whoever serves the store may not have written them.

A store is data. What such a command would read, write and ask is shown, and it is carried out once
somebody has said yes to exactly that. The key of this server goes only to addresses that its owner
named.
"""

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pollex.store.runs import Run
from pollex.web import links
from pollex.web.children import Child
from pollex.web.faults import Clash
from pollex.web.frame import resumed
from pollex.web.site import Site

URL_OPTION = "--base-url"
KEY = "OPENAI_API_KEY"
GOES_ON = {"learn", "refit", "score", "evaluate", "judge", "grade", "answer", "ask", "share"}
"""Verbs whose runs a command goes on with."""
URLS = ("POLLEX_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class KeptCommand:
    """A command that goes on with a run, as the store has it.

    Attributes:
        words: Of the whole command.
        folder: Where it would work; None for the server's own.
        model: Name of the model that it would ask; empty for none.
        endpoint: Address that it names for the model; empty where it names none.
        trusted: Whether the model would be asked where this server's owner named it, with the key.
        key: One that was typed for its address since this server's start; empty for none.
    """

    words: Sequence[str]
    folder: str | None
    model: str
    endpoint: str
    trusted: bool
    key: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The command as one would type it."""
        command = shlex.join(self.words)
        return f"cd {shlex.quote(self.folder)} && {command}" if self.folder else command

    @property
    def digest(self) -> str:
        """Hash of all that somebody says yes to."""
        parts = [self.folder or "", self.model, self.endpoint, *self.words]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def asks(self) -> str:
        """What model it asks, and where, in words."""
        if not self.model:
            return "It asks no model."
        if not self.endpoint:
            return f"It asks {self.model} where this server's settings say."
        sentence = f"It asks {self.model} at {self.endpoint}"
        if self.trusted:
            return f"{sentence}."
        if self.key:
            return f"{sentence}, with the key that was typed for that address."
        unnamed = "its owner did not name that address (POLLEX_BASE_URL, --profiles)"
        return f"{sentence}, without this server's key: {unnamed}."

    @property
    def environment(self) -> Mapping[str, str]:
        """What the command finds beside the server's own environment."""
        return {
            "POLLEX_MODEL": self.model,
            **({} if self.trusted and not self.key else {KEY: self.key}),
        }


def kept_command(site: Site, run: Run) -> KeptCommand | None:
    """Return the command that goes on with a run; None where no such command began it."""
    words = resumed(run, site.store.folder)
    if not set(words[1:2]) & GOES_ON:
        return None
    named = list(values_of(words, URL_OPTION))
    folder = run.arguments.get("folder")
    model = run.arguments.get("model")
    return KeptCommand(
        words=words,
        folder=folder if isinstance(folder, str) else None,
        model=" ".join(values_of(words, "--model")) or (model if isinstance(model, str) else ""),
        endpoint=" ".join(named),
        trusted=set(named) <= addresses_named(site),
        key=site.keys.get(" ".join(named), ""),
    )


def values_of(words: Sequence[str], option: str) -> Sequence[str]:
    """Return all values that a command has of an option."""
    beside = [after for word, after in zip(words, [*words, ""][1:], strict=True) if word == option]
    return [*beside, *(word.partition("=")[2] for word in words if word.startswith(f"{option}="))]


def addresses_named(site: Site) -> set[str]:
    """Return the addresses of models that this server's owner named."""
    profiles = {options.base_url for options in site.profiles.values() if options.base_url}
    return profiles | {os.environ[name] for name in URLS if os.environ.get(name)}


def require_yes(site: Site, run: Run, confirmed: str) -> None:
    """Refuse to go on with a run before somebody has said yes to its command.

    Raises:
        Clash: Nobody has; the message says what the command would do.
    """
    command = kept_command(site, run)
    if command is not None and confirmed != command.digest:
        what = f"the run would go on by a command that the store keeps: {command.shown} ({command.asks})"
        raise Clash(
            what,
            remedy=f"if it is to, send confirmed={command.digest}, or tick the box on the run's page",
        )


def go_on(site: Site, run: Run) -> Child | None:
    """Start the command that goes on with a run; None where no command began it. `require_yes` comes first."""
    if (command := kept_command(site, run)) is None:
        return None
    return site.children.start(
        f"{run.id} goes on",
        command.words[1:],
        back=links.run(run.id),
        folder=command.folder,
        environment=command.environment,
    )
