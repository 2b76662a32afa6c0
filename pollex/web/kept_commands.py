"""Commands that a store keeps, to go on with its runs: whoever serves the store may not have written them.

A store is data. What such a command would read, write and ask is shown, and it is carried out once
somebody has said yes to exactly that. The key of this server goes only to addresses that its owner
named.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from pollex.rooms import find_module
from pollex.store.runs import Run
from pollex.usecases.use_case import USE_CASES_BY_MODULE
from pollex.web import links
from pollex.web.children import Child
from pollex.web.faults import VersionConflict
from pollex.web.frame import make_resume_words
from pollex.web.site import Site

URL_OPTION = "--base-url"
KEY_VARIABLE = "OPENAI_API_KEY"
ASSISTANT_KEY_VARIABLE = "POLLEX_ASSISTANT_KEY"
"""Variable of the environment in which a command finds the key of the assistant's model."""
TEXTS_FOLDER = "texts"
"""Folder in the store of profiles and prompts that were typed."""
ASKED_FOLDER = "asked"
"""Folder in the store of what an assistant is asked by files, and of its replies."""
URL_VARIABLES = ("POLLEX_BASE_URL", "OPENAI_BASE_URL")


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
        assistant_key: That of the model which answers as the assistant, likewise; None where
            none is asked.
        key_address: Address that a key which is typed now is for.
    """

    words: Sequence[str]
    folder: str | None
    model: str
    endpoint: str
    trusted: bool
    key: str = field(default="", repr=False)
    assistant_key: str | None = field(default=None, repr=False)
    key_address: str = ""

    @property
    def lacks_key(self) -> bool:
        """Whether a key is to be typed, if the model that it asks wants one."""
        if self.assistant_key is not None:
            return not self.assistant_key
        return bool(self.model) and not self.trusted and not self.key

    def with_words(self, *words: str) -> KeptCommand:
        """Return the command with more words behind it: what somebody answered to it."""
        return replace(self, words=(*self.words, *words))

    @property
    def shown(self) -> str:
        """The command as one would type it."""
        command = shlex.join(self.words)
        if self.folder:
            return f"cd {shlex.quote(self.folder)} && {command}"
        return command

    @property
    def digest(self) -> str:
        """Hash of all that somebody says yes to."""
        parts = [self.folder or "", self.model, self.endpoint, *self.words]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def keeps(self) -> str:
        """What becomes of what the run had done, in words."""
        # only what asks somebody can cost anything
        if self.model or self.assistant_key is not None:
            return "What it had done is kept, and nothing is paid twice."
        return "What it had done is kept."

    @property
    def asks(self) -> str:
        """What model it asks, and where, in words."""
        if not self.model:
            if self.assistant_key is not None:
                return "It asks your assistant's model, and no other."
            return "It asks no model, so it costs nothing."
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
        # the server's key stays for a trusted address; else a typed one, or none, hides it
        return {
            "POLLEX_MODEL": self.model,
            **({} if self.trusted and not self.key else {KEY_VARIABLE: self.key}),
            **({} if self.assistant_key is None else {ASSISTANT_KEY_VARIABLE: self.assistant_key}),
        }


def can_go_on(verb: str) -> bool:
    """Tell whether a command of a verb, of the core or of a room, may go on with its run."""
    # a store may be a stranger's: only the name of a module is looked for
    home = find_module("usecases", verb) if verb.isidentifier() else None
    if home is None:
        return False

    import_module(home)
    return any(use_case.goes_on_in_browser for use_case in USE_CASES_BY_MODULE.get(home, ()))


def read_kept_command(site: Site, run: Run) -> KeptCommand | None:
    """Return the command that goes on with a run; None where no such command began it."""
    words = make_resume_words(run, site.store.folder)
    if not any(map(can_go_on, words[1:2])):
        return None

    asking = _find_asked_assistant(site, words)
    if asking is None:
        return None

    # an address that isn't named is that of the server's settings, and is trusted
    named = list(list_option_values(words, URL_OPTION))
    folder = run.arguments.get("folder")
    model = run.arguments.get("model")

    return KeptCommand(
        words=words,
        folder=folder if isinstance(folder, str) else None,
        model=" ".join(list_option_values(words, "--model"))
        or (model if isinstance(model, str) else ""),
        endpoint=" ".join(named),
        trusted=set(named) <= list_named_addresses(site),
        key=site.keys.get(" ".join(named), ""),
        assistant_key=asking.get(ASSISTANT_KEY_VARIABLE),
        key_address=asking.get(URL_OPTION, " ".join(named)),
    )


def _find_asked_assistant(site: Site, words: Sequence[str]) -> Mapping[str, str] | None:
    """Return key and address of the assistant of a command, if any; None where no form wrote who that is.

    Such a file names variables of this server's environment as keys, and such a word may name code:
    only what a form of this server writes is followed.
    """
    store = site.store.folder.resolve()
    folders = []
    for folder in list_option_values(words, "--assistant"):
        folders.append(Path(folder).resolve())

    # what the assistant is asked by files has to lie in this store
    if any((store / ASKED_FOLDER) not in folder.parents for folder in folders):
        return None

    addresses: list[str] = []
    for profiles in list_option_values(words, "--profiles"):
        path = Path(profiles).resolve()
        try:
            # a file elsewhere isn't read: no form of this server wrote it
            if store / TEXTS_FOLDER in path.parents:
                tables = tomllib.loads(path.read_text("utf-8"))
            else:
                tables = {}
        except (OSError, ValueError):
            return None

        named = []
        for table in tables.values():
            if isinstance(table, dict):
                named.append(table)

        if not named or any(table.get("key_env") != ASSISTANT_KEY_VARIABLE for table in named):
            return None
        addresses += [str(table.get("base_url", "")) for table in named]

    if not addresses:
        return {}

    address = addresses[0]
    is_named = not address or address in list_named_addresses(site)
    # the owner's key goes along only where all tables have the same address, and a named one
    owners = ""
    if is_named and {address} == set(addresses):
        owners = os.environ.get(KEY_VARIABLE, "")

    return {ASSISTANT_KEY_VARIABLE: site.keys.get(address) or owners, URL_OPTION: address}


def list_option_values(words: Sequence[str], option: str) -> Sequence[str]:
    """Return all values that a command has of an option."""
    # a value is the word behind its option, or stands in the same word
    beside = []
    for word, after in zip(words, [*words, ""][1:], strict=True):
        if word == option:
            beside.append(after)

    return [*beside, *(word.partition("=")[2] for word in words if word.startswith(f"{option}="))]


def list_named_addresses(site: Site) -> set[str]:
    """Return the addresses of models that this server's owner named."""
    profiles = set()
    for options in site.profiles.values():
        if options.base_url:
            profiles.add(options.base_url)

    return profiles | {os.environ[name] for name in URL_VARIABLES if os.environ.get(name)}


def require_confirmation(site: Site, run: Run, confirmed: str) -> None:
    """Refuse to go on with a run before somebody has said yes to its command.

    Raises:
        VersionConflict: Nobody has; the message says what the command would do.
    """
    command = read_kept_command(site, run)
    if command is not None and confirmed != command.digest:
        what = f"the run would go on by a command that the store keeps: {command.shown} ({command.asks})"
        raise VersionConflict(
            what,
            hint="if it is to, go back and tick “Go on by this command” above the button; a program sends "
            f"confirmed={command.digest}",
        )


def go_on_with_run(site: Site, run: Run, *words: str) -> Child | None:
    """Start the command that goes on with a run; None where no command began it. `require_confirmation` comes first.

    Args:
        words: What somebody answered to it, as more options.
    """
    if (command := read_kept_command(site, run)) is None:
        return None

    command = command.with_words(*words)
    return site.children.start(
        f"{run.id} goes on",
        command.words[1:],
        back=links.link_to_run(run.id),
        folder=command.folder,
        environment=command.environment,
    )
