"""Pages whose figures are worked out while one waits, of rubrics that were really learned."""

from __future__ import annotations

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
