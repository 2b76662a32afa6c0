"""Guests, as whoever runs the server sees them: links for new ones, who has come, links taken back."""

import secrets
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pollex.rooms import list_hooks
from pollex.store.tables import AnnotatorRow, RevocationRow, format_current_time
from pollex.web import frame, links
from pollex.web.faults import NotFound
from pollex.web.forms import ShortText
from pollex.web.guests import hash_token, list_guest_links
from pollex.web.hooks import GuestDoor
from pollex.web.site import Site
from pollex.web.views import NextPage, PageData, page, post

READER_ROOM = "read"
"""What links are made for that open all pages, to read alone."""

GuestCount = Annotated[int, Field(ge=0, le=500)]
GuestNames = Annotated[str, Field(max_length=8000)]


@post("/api/guests")
def invite_guests(
    site: Site,
    request: Request,
    room: ShortText,
    place: str,
    names: GuestNames = "",
    count: GuestCount = 0,
) -> Response:
    """Make links for new guests; they are shown once."""
    shown = _find_page(site, room, place)
    before = len(list_guest_links(site.store, site.seal, shown))
    every = []
    for name in names.splitlines():
        if name.strip():
            every.append(name.strip()[:80])

    # made-up names go on behind the guests that the page has: P1, P2
    every += [f"P{before + len(every) + i + 1}" for i in range(count)]
    # the store keeps digests of tokens alone
    tokens = [(name, secrets.token_hex(16)) for name in every]
    site.store.keep(
        AnnotatorRow(
            secrets.token_hex(6), name, hash_token(site.seal, token), format_current_time(), shown
        )
        for name, token in tokens
    )
    addresses = []
    for name, token in tokens:
        addresses.append((name, links.make_address(links.ENTER_PATH, token=token)))

    if request.headers.get("content-type", "").startswith("application/json"):
        return JSONResponse(
            {
                "ok": True,
                "links": [{"name": name, "link": link} for name, link in addresses],
            }
        )

    base = f"{request.url.scheme}://{request.url.netloc}"
    # links to read are made on the page Share, others on the page that they open
    back = links.SHARING_PATH if room == READER_ROOM else shown
    about: PageData = {"page": back, "reads": room == READER_ROOM}

    return frame.answer_page(
        "invited.html",
        site=site.id,
        here="",
        told=addresses,
        base=base,
        **about,
    )


@page("/api/guests")
def show_guests(site: Site, room: ShortText, place: str) -> PageData:
    """List the guests of a queue or study."""
    return {"guests": list_guest_links(site.store, site.seal, _find_page(site, room, place))}


def _find_page(site: Site, room: str, place: str) -> str:
    """Return the page that a guest's link opens. Raises NotFound where there is none."""
    if room == READER_ROOM:
        return links.HOME_PATH

    for door in list_hooks(GuestDoor):
        if door.name == room:
            door.require(site, place)
            return f"{door.pages}/{place}"

    raise NotFound("there are no such pages", hint="a queue or a study has guests")


@post("/api/guests/{guest}/revocation")
def revoke_link(site: Site, guest_id: str) -> NextPage:
    """Take a guest's link back; what they answered stays."""
    shown = site.store.value("SELECT page FROM annotators WHERE id = ?", [guest_id])
    if shown is None:
        raise NotFound("there is no such link", hint="the page has those there are")
    # taken back twice is no error
    if not site.store.value("SELECT annotator FROM revocations WHERE annotator = ?", [guest_id]):
        site.store.keep([RevocationRow(guest_id, format_current_time())])

    back = links.SHARING_PATH if shown == links.HOME_PATH else shown
    return back or links.LABEL_PATH, {"guest": guest_id}
