"""Pages whose figures are worked out while one waits, of rubrics that were really learned."""

from __future__ import annotations

import signal
from collections.abc import Callable

from small_runs import Learnt, learnt
from visitors import Served, Visitor

__all__ = ["learnt"]


def test_the_labels_that_move_a_calibrator_come_by_themselves_and_lead_to_their_conversations(
    learnt: Learnt, serve: Callable[..., Served], visit: Callable[..., Visitor]
) -> None:
    visitor = visit(serve(learnt.store, "--rubrics", str(learnt.rubrics), "--read-only"))
    visitor.go("/calibration")
    visitor.page.get_by_role("link", name="Its calibrator").click()
    visitor.page.get_by_role("heading", name="Labels that move it most").wait_for()
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visitor.findings() == [], scheme
    visitor.page.locator("#leverage ~ .wide th a").first.click()
    assert visitor.page.url.startswith(f"{visitor.served.base}/conversation?run=learn-1")


def test_a_search_in_every_turn_shows_hits_and_ends_in_its_list(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    page.get_by_label("Words").fill("track(parcel)")
    page.get_by_role("checkbox", name="in every turn").check()
    page.get_by_label("Words").press("Enter")
    page.wait_for_url("**/conversations?*words=all*")
    assert page.locator("#total").inner_text().startswith("250 of 250")


def test_a_search_can_be_stopped_while_the_server_is_still_at_it(visitor: Visitor) -> None:
    page, server = visitor.page, visitor.served.process
    visitor.go("/conversations?run=learn-1")
    page.get_by_label("Words").fill("parcel")
    page.get_by_role("checkbox", name="in every turn").check()
    server.send_signal(signal.SIGSTOP)
    try:
        page.get_by_label("Words").press("Enter")
        page.get_by_text("Looking in every turn", exact=True).wait_for()
        assert visitor.findings() == []
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped. 0 found").first.wait_for()
    finally:
        server.send_signal(signal.SIGCONT)
    assert page.get_by_label("Words").input_value() == "parcel"
