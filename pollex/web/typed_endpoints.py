"""Addresses of models that people type in the browser: which of them this server may ask."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from pollex.errors import WrongUse
from pollex.gateway.endpoint import require_http_address
from pollex.gateway.redaction import find_secrets_in_address
from pollex.web.faults import Forbidden, RequestError
from pollex.web.kept_commands import list_named_addresses
from pollex.web.site import Site

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def require_endpoint(site: Site, base_url: str) -> None:
    """Refuse an address that a person typed and that this server may not ask.

    Raises:
        RequestError: It is no address, holds a key, or can't be looked up.
        Forbidden: It is one of this machine, its network or a metadata service, and others reach this server.
    """
    try:
        require_http_address(base_url)
    except WrongUse:
        raise RequestError(
            "the address is not an http(s) address",
            hint="give one that begins with https:// or http://",
        ) from None
    if base_url in list_named_addresses(site):
        return
    if find_secrets_in_address(base_url):
        raise RequestError(
            "the address holds a key or a password",
            hint="type it into the field Key",
        )
    # a server for its owner alone may ask addresses of its own network
    if site.local_endpoints:
        return

    host = urlsplit(base_url).hostname or ""
    # one inner address among several is enough to refuse
    inner = []
    for address in resolve_host(host):
        if not is_public(address):
            inner.append(address)

    if inner:
        raise Forbidden(
            f"{host} is an address of this server's own network",
            hint="the server's owner can allow it at the start: allow_local_endpoints",
        )


def resolve_host(host: str) -> list[IpAddress]:
    """Return the addresses of a host.

    Raises:
        RequestError: There are none.
    """
    with suppress(ValueError):
        return [ipaddress.ip_address(host)]

    with suppress(OSError, UnicodeError):  # other spellings of one: 2130706433, 0x7f.1
        return [ipaddress.ip_address(socket.inet_aton(host))]

    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RequestError(f"there is no host {host[:80]!r}", hint="look at the address") from None

    addresses: list[IpAddress] = []
    # a zone behind a percent sign is no part of the address
    for entry in entries:
        addresses.append(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]))

    return addresses


def is_public(address: IpAddress) -> bool:
    """Return whether an address is one of the internet, also where it is written as another kind's."""
    # an IPv4 address within one of IPv6 counts as what it leads to
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is not None:
            return is_public(inner)
        if address in TRANSLATED_NETWORK:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))

    return address.is_global and not address.is_multicast


TRANSLATED_NETWORK = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses behind a translator (RFC 6052)."""
