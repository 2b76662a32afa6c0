"""The browser's view of a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pollex.errors import WrongUse
from pollex.gateway.endpoint import require_http_address
from pollex.runs.options import MAX_UPLOAD_BYTES
from pollex.store.folder import DEFAULT_STORE_FOLDER, STORE_ENVIRONMENT_VARIABLE
from pollex.text import parse_size
from pollex.usecases.use_case import TerminalUseCase, import_by_name, opt, use_case


@use_case("serve")
class ServeStore(TerminalUseCase):
    """Learn, score, label and compare in the browser, and look at runs, conversations and rubric sets.

    It listens on this machine only, and lets in whoever has the token in the address that it
    prints. It sends nothing anywhere, unless --profiles or the set of --score name a model, or
    --events or --webhook an address.

    \b
    Examples
      pollex demo && pollex serve
      pollex serve --example
      pollex serve --store .pollex --rubrics rubrics.json --port 0
      pollex serve --root /srv/logs --max-upload 20GB
      pollex serve --watch /srv/logs/today --watch-every 10
      POLLEX_TOKEN=… pollex serve --score rubrics.json
    """

    store: Path | None = opt(
        f"The store's folder; else {DEFAULT_STORE_FOLDER}, or the only one below the current folder.",
        default=None,
        env=(STORE_ENVIRONMENT_VARIABLE,),
        group="Data",
    )
    rubrics: tuple[Path, ...] = opt(
        "Rubric set; default: those next to the store.",
        default=(),
        group="Data",
    )
    calibrators: tuple[Path, ...] = opt(
        "Calibrator's folder; default: those next to the store. Repeatable.",
        default=(),
        flag="calibrator",
        group="Data",
        metavar="DIR",
    )
    # models that pages may ask, and studies with people
    profiles: Path | None = opt(
        "Models that pages may ask, as TOML.",
        default=None,
        group="Data",
    )
    studies: tuple[Path, ...] = opt(
        "Study in which people talk to systems, as TOML. Repeatable.",
        default=(),
        flag="study",
        group="Data",
    )
    # logs that are named or brought in the browser
    roots: tuple[str, ...] = opt(
        "Folder, or s3://BUCKET/FOLDER, whose logs may be named in the browser. Repeatable.",
        default=(),
        flag="root",
        group="Data",
        metavar="FOLDER",
    )
    max_upload: int = opt(
        "Most that files may have which are brought at once, packed or unpacked: 500MB.",
        default=MAX_UPLOAD_BYTES,
        typed="5GB",
        parse=parse_size,
        group="Data",
        metavar="SIZE",
    )
    # folders that are looked at, and who is told of what is found
    watch: tuple[Path, ...] = opt(
        "Folder that is looked at: each new log in it is scored, and compared with what was there "
        "before. Repeatable.",
        default=(),
        group="Data",
        metavar="FOLDER",
    )
    watch_every: float = opt(
        "Minutes between two looks at a folder.",
        default=5.0,
        least=0.001,
        group="Data",
        metavar="MINUTES",
    )
    webhook: str | None = opt(
        "Address that is told where a rubric holds more often than before: signed, without texts.",
        default=None,
        group="Data",
        metavar="URL",
    )
    example: bool = opt(
        "Show the recorded run of a large language model on the sample log.",
        default=False,
        group="Data",
    )
    # scores in place of pages
    score: Path | None = opt(
        "Serve scores by this rubric set, and no pages.",
        default=None,
        metavar="SET",
    )
    queue: int = opt("With --score: conversations that may wait.", default=256, least=1)
    events: str | None = opt(
        "With --score: OpenTelemetry collector that each score is sent to.",
        default=None,
        metavar="URL",
    )
    # where it listens, and by what names it is reached
    host: str = opt("Address to listen at.", default="127.0.0.1")
    port: int = opt("Port to listen at; 0 takes a free one.", default=8765, least=0, most=65_535)
    allow_host: tuple[str, ...] = opt(
        "Host name of the server, if it is not only used locally. Repeatable.",
        default=(),
        metavar="NAME",
    )
    behind: str | None = opt(
        "Address of the proxy in front of it.",
        default=None,
        metavar="URL",
    )
    # what those who come in may do
    allow_local_endpoints: bool = opt(
        "Models may be named in the browser at addresses of this machine and its network, too, "
        "where others can reach the server.",
        default=False,
    )
    read_only: bool = opt("Allow no changes.", default=False)
    no_token: bool = opt("Require no token; on this machine only.", default=False)
    no_open: bool = opt("Do not open the browser.", default=False, group="Output")
    as_json: bool = opt(
        "Print the address as one JSON object.",
        default=False,
        flag="json",
        group="Output",
    )

    def work(self) -> int:
        """Serve pages, or scores."""
        from pollex.services.hooks import find_option_service  # verbs alone that run load services

        self._require_addresses()
        # pages are the core's, scores a room's
        if self.score is None:
            server = "pollex.web.server.serve"
        else:
            server = find_option_service("serve", "score")

        code: int = import_by_name(server)(self)
        return code

    def _require_addresses(self) -> None:
        """Refuse addresses and folders that are none, before anything is opened.

        Raises:
            WrongUse: One is none.
        """
        addresses = {"behind": self.behind, "webhook": self.webhook, "events": self.events}
        for option, address in addresses.items():
            if address:
                require_http_address(
                    address,
                    "the address",
                    option,
                    hint="give one that begins with https:// or http://",
                )

        local_roots = [root for root in self.roots if "://" not in root]
        named_folders: dict[str, Sequence[str | Path]] = {"root": local_roots, "watch": self.watch}
        for option, folders in named_folders.items():
            for folder in folders:
                if not Path(folder).is_dir():
                    raise WrongUse(
                        f"{str(folder)!r:.200} is no folder", hint="name one", option=option
                    )
