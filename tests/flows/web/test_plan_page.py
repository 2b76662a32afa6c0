"""The page of a plan: what would be sent and paid, and nothing said twice or for nothing."""

import re
from html import unescape
from typing import Any

from web_site import client_of, made_app

from pollex.store.store import Store
from pollex.web import links
from pollex.web.begun import CommandForm
from pollex.web.children import Child
from pollex.web.doors.hooks import get_door
from pollex.web.site import Site


def stage(sent: int, known: int, tokens: int) -> dict[str, Any]:
    calls = {"calls": sent + known, "sent": sent, "known": known, "cost": None}
    return calls | {"prompt_tokens": tokens, "completion_tokens": tokens}


async def read_plan(store: Store, told: dict[str, Any]) -> str:
    """The page of a plan, as words."""
    app = made_app(store)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    form = CommandForm("f1", get_door("learn"), {}, (), ("learn", "no.jsonl"), None)
    site.begun[form.id] = form
    record = site.children.folder / "c1.json"
    back = f"{links.PLAN_PATH}/{form.id}"
    child = Child("c1", "Plan", ("learn",), back, record, state="done", told=told)
    site.children.by_id[child.id] = child
    async with client_of(app) as client:
        page = (await client.get(back)).text
    site.children.close()
    return re.sub(r"[\s\u202f\xa0]+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


async def test_where_all_is_known_nothing_is_asked_again_and_nothing_is_to_pay(own: Store) -> None:
    plan = {"plan": {"all": stage(0, 760, 0)}, "notes": []}
    page = await read_plan(own, plan)
    assert "Nothing is asked again" in page
    assert "Nothing is to pay" in page
    assert "0 tokens read" not in page
    assert "At most" not in page


async def test_only_calls_that_are_sent_count_and_likely_stands_only_where_it_is_less(
    own: Store,
) -> None:
    same = {"plan": {"all": stage(10, 5, 70)}, "likely": {"all": stage(10, 5, 70)}, "notes": []}
    page = await read_plan(own, same)
    assert "10 calls, 70 tokens read" in page
    assert "5 more calls would bring is known" in page
    assert "Likely" not in page
    less = same | {"likely": {"all": stage(7, 5, 50)}}
    page = await read_plan(own, less)
    assert "Likely 7 calls, 50 tokens read" in page
    assert "At most 10 calls" in page
