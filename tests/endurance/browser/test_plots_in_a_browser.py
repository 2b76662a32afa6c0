"""Pages whose figures are worked out while one waits, of rubrics that were really learned."""

import signal
from collections.abc import Callable
from pathlib import Path

from rubric_set_by_hand import plain
from small_runs import Learnt, learnt
from visitors import Served, Visitor
from web_site import judged, made_store

from pollex.rubrics.rubric_set import RubricSet
from pollex.store.resume import list_stored_runs, read_facts_by_id
from pollex.store.rubric_sets import compute_rubric_set_digest

__all__ = ["learnt"]


def test_the_page_of_a_sets_calibrator_says_what_it_was_compared_with(
    learnt: Learnt, serve: Callable[..., Served], visit: Callable[..., Visitor]
) -> None:
    visitor = visit(serve(learnt.store, "--rubrics", str(learnt.rubrics), "--read-only"))
    visitor.go("/calibration")
    visitor.page.get_by_role("link", name="Its calibrator").click()
    visitor.page.get_by_role("heading", name="What it was compared with").wait_for()
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visitor.findings() == [], scheme


def test_a_search_in_every_turn_shows_hits_and_ends_in_its_list(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    page.get_by_label("Words").fill("track(parcel)")
    page.get_by_role("checkbox", name="in all turns, not the beginning alone").check()
    page.get_by_label("Words").press("Enter")
    page.wait_for_url("**/conversations?*words=all*")
    assert page.locator("#total").inner_text().startswith("250 of 250")


def test_a_search_can_be_stopped_while_the_server_is_still_at_it(visitor: Visitor) -> None:
    page = visitor.page
    server = visitor.served.process
    visitor.go("/conversations?run=learn-1")
    page.get_by_label("Words").fill("parcel")
    page.get_by_role("checkbox", name="in all turns, not the beginning alone").check()
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


def test_a_check_of_two_runs_is_filled_in_and_read(
    tmp_path: Path, serve: Callable[..., Served], visit: Callable[..., Visitor]
) -> None:
    folder = tmp_path / ".pollex"
    with made_store(folder, n=60) as store:
        learn = list_stored_runs(store)[0].id
        found = RubricSet.parse(read_facts_by_id(store, learn, "rubric_set")["set"])
        run = store.begin(
            "score",
            fingerprint={"rubrics": compute_rubric_set_digest(found)},
            versions={},
            arguments={},
        )
        judged(store, run.id, found, range(60), plain, "")
        store.finish(run.id, "done")
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go(f"/runs/{run.id}")
    page.get_by_role("link", name="Check against another run").click()
    page.get_by_label("against the baseline").select_option(learn)
    page.get_by_label("fails if").select_option("drift(p) above")
    page.get_by_role("button", name="Check").click()
    page.get_by_role("heading", name="The gate is open").wait_for()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visitor.findings() == [], scheme
