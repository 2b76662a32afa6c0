"""The address of a model, and its key."""

import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote, urlsplit, urlunsplit

from pollex.errors import WrongUse
from pollex.gateway.calls import Call, Request, make_model_request
from pollex.gateway.redaction import find_secrets_in_address, is_secret_field_name, redact_secrets
from pollex.text import NAME_HINT, escape_controls, is_valid_name

LOG = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"

LANGCHAIN_PREFIX = "langchain:"
"""What the place of a chat model that the user made begins with."""

_LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class Endpoint:
    """An address that speaks OpenAI's chat protocol.

    Attributes:
        model: Name of the model, as the endpoint knows it.
        base_url: Up to and including the version, for example `http://localhost:8000/v1`. User info
            in it is sent as Basic authorization where there is no key.
        api_key: None where the endpoint wants none.
        headers: Sent with every call.
        extra: Fields added to every request body, for example `{"reasoning_effort": "low"}`; part
            of each call's key.
        proxy: URL of an HTTP proxy. Proxies in the environment are not used.
    """

    model: str
    base_url: str = OPENAI_URL
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra: Mapping[str, object] = field(default_factory=dict)
    proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_http_address(self.base_url)
        if not is_valid_name(self.model):
            raise WrongUse(
                f"{self.model!r:.80} is no name of a model",
                hint=NAME_HINT,
                option="model",
            )

        if self.api_key and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise WrongUse(
                "the API key has characters that no HTTP header may have",
                hint="look in OPENAI_API_KEY for line breaks, and for letters that aren't ASCII",
            )

    @cached_property
    def place(self) -> str:
        """The base URL in one spelling, without user info: part of each call's key."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        default = {"http": 80, "https": 443}[parts.scheme]
        port = ""
        if parts.port and parts.port != default:
            port = f":{parts.port}"

        return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), parts.query, ""))

    @cached_property
    def shown(self) -> str:
        """`place` for messages and files, with keys in its query removed."""
        return redact_secrets(self.place, self.secrets)

    def url(self, path: str) -> str:
        """Address of an operation, for example `chat/completions`; a query in the base URL stays."""
        parts = urlsplit(self.place)
        return urlunsplit((parts.scheme, parts.netloc, f"{parts.path}/{path}", parts.query, ""))

    @cached_property
    def authorization(self) -> str | None:
        """The Authorization header."""
        if self.api_key:
            return f"Bearer {self.api_key}"
        if userinfo := self._userinfo:
            return f"Basic {base64.b64encode(':'.join(userinfo).encode()).decode()}"
        return None

    @property
    def keyless(self) -> bool:
        """Whether calls carry no credentials."""
        return self.authorization is None and not self.secrets

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown, the longest first."""
        secrets = {self.api_key} | find_secrets_in_address(self.base_url)
        secrets |= find_secrets_in_address(self.proxy) if self.proxy else set()
        secrets |= {value for name, value in self.headers.items() if is_secret_field_name(name)}
        if not self.api_key and self.authorization:
            secrets.add(self.authorization.removeprefix("Basic "))

        return tuple(
            sorted(
                (secret for secret in secrets if secret),
                key=len,
                reverse=True,
            )
        )

    @cached_property
    def exposed(self) -> bool:
        """Whether conversations and key would cross a network unencrypted."""
        parts = urlsplit(self.base_url)
        return parts.scheme == "http" and parts.hostname not in _LOOPBACK_HOSTS

    def request(self, call: Call) -> Request:
        """Prepare `call` for this endpoint."""
        return make_model_request(self.place, self.model, call, self.extra)

    @cached_property
    def _userinfo(self) -> tuple[str, ...]:
        parts = urlsplit(self.base_url)
        if parts.username is None:
            return ()
        return (unquote(parts.username), unquote(parts.password or ""))


def warn_of_exposure(endpoint: object) -> None:
    """Say that what is sent can be read on the way, where it can: before the first call, which has the key."""
    if isinstance(endpoint, Endpoint) and endpoint.exposed:
        LOG.warning(
            "Note: %s: conversations and the key go over the network unencrypted (http)",
            escape_controls(endpoint.shown),
        )


def require_http_address(
    url: str,
    what: str = "the base URL",
    option: str = "base_url",
    hint: str = "give one like http://localhost:8000/v1, or leave it out",
) -> None:
    """Refuse what is no http(s) address: empty, without its scheme, with a host that can't be looked up.

    Args:
        what: What has it, for people.
        option: The argument that gave it; empty for a variable of the environment.

    Raises:
        WrongUse: It is none.
    """
    if not _is_http_address(url):
        raise WrongUse(
            f"{what} is not an http(s) address",
            hint=hint,
            option=option,
        )


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        whole = url.isprintable() and " " not in url and parts.scheme in {"http", "https"}
        return (
            whole
            and bool(host)
            and parts.port != 0
            and (_is_plain_host_name(host) or _is_international_address(url))
        )
    except ValueError:  # brackets or a port that are none
        return False


def _is_plain_host_name(host: str) -> bool:
    return host.isascii() and "xn--" not in host


def _is_international_address(url: str) -> bool:
    import httpx2  # takes a quarter of a second, and few addresses need it

    try:
        return bool(httpx2.URL(url).host)
    except (httpx2.InvalidURL, ValueError):
        return False
