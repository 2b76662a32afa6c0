"""What people do, in a real browser: reading, moving by keys, long lists, small and dark screens, no script."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from protocol_server import ProtocolServer
from visitors import Served, Visitor
from web_site import made_store, of_a_model

PAGES = [
    "/",
    "/conversations",
    "/conversations?run=learn-1&differs=yes",
    "/conversations?q=nothing+like+this",
    "/conversation?run=learn-1&id=conversation+1",
    "/conversation?run=score-2&id=conversation+9",
    "/runs",
    "/runs/learn-1",
    "/runs/learn-1/calls",
    "/runs/score-2",
    "/sets",
    "/label",
    "/label/agreement",
    "/label/adjudicate",
    "/replay?run=learn-1&id=conversation+1",
    "/compare?a=learn-1&b=score-2",
    "/compare",
    "/check",
    "/calibration",
    "/calibration?source=person",
    "/calibration/learn-1",
    "/waiting",
    "/waiting/judge-3",
    "/waiting/judge-3?who=ann",
    "/talk",
    "/nowhere",
]
HOSTILE = "<img src=x onerror=alert(1)></table><script>alert(2)</script><base href=//evil.example>\u202e\x1b[31m"


@pytest.mark.scenario(1, 22)
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_on_any_page_light_or_dark_and_telephones_scroll_none_sideways(
    visitor: Visitor, path: str
) -> None:
    page = visitor.page
    visitor.go(path)
    for scheme in ("light", "dark"):
        # else colors change on their way
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visitor.findings() == [], scheme
    assert page.evaluate("document.querySelectorAll('*').length") <= 2500
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.scenario(1)
def test_axe_finds_nothing_on_pages_that_others_lead_to(visitor: Visitor) -> None:
    """One of each kind, found by its address without ids: those above are looked at already."""

    def kind(path: str) -> str:
        return re.sub(r"(?<=^/)(\w+)/[^/?]+", r"\1/*", path.partition("?")[0])

    page = visitor.page
    looked = set[str]()
    kinds = {kind(path) for path in PAGES}
    waiting = [
        "/",
        "/sets",
        "/runs/learn-1",
        "/label",
        "/calibration",
        "/conversation?run=learn-1&id=conversation+1",
    ]
    for path in waiting:
        visitor.go(path)
        if (found := kind(path)) not in kinds:
            kinds.add(found)
            looked.add(found)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                assert visitor.findings() == [], f"{path} {scheme}"
        links = page.locator("main a").evaluate_all(
            "all => all.map(one => one.getAttribute('href').split('#')[0])"
        )
        new = {
            kind(link): link
            for link in links
            if link[:1] == "/" and not re.search("^/api/|/file$", link)
        }
        waiting += [
            link for found, link in new.items() if found not in kinds and link not in waiting
        ]
    assert {"/sets/*", "/sets/*/rubric", "/share"} <= looked


def test_a_long_list_shows_its_end_its_middle_and_its_beginning(visitor: Visitor) -> None:
    visitor.go("/conversations?run=learn-1")
    page = visitor.page
    for share, row in ((1, 251), (0.5, 120), (0, 2)):
        page.locator("#window").evaluate(
            "(box, share) => { box.scrollTop = share * box.scrollHeight }", share
        )
        page.locator(f"#rows tr[aria-rowindex='{row}']").wait_for()
        shown = page.locator(f"#rows tr[aria-rowindex='{row}'] a").get_attribute("title")
        assert shown == f"conversation {row - 2}"


@pytest.mark.scenario(5)
def test_place_filters_and_sort_survive_reload_and_back(visitor: Visitor) -> None:
    visitor.go("/conversations?run=learn-1&predicted=up&sort=netsat")
    page = visitor.page
    page.locator("#window").evaluate("box => { box.scrollTop = 50 * 34 }")
    page.wait_for_url("**at=*")
    before = parse_qs(urlsplit(page.url).query)
    page.reload()
    assert parse_qs(urlsplit(page.url).query) == before
    page.locator("#rows a").first.click()
    page.wait_for_url("**/conversation?*")
    page.go_back()
    assert parse_qs(urlsplit(page.url).query)["sort"] == ["netsat"]


def test_a_range_that_is_dragged_on_the_histogram_narrows_the_list(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    box = page.locator("[data-range] svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"], box["y"] + 20, steps=3)
    page.mouse.up()
    page.wait_for_url("**netsat_from=*")
    least = float(parse_qs(urlsplit(page.url).query)["netsat_from"][0])
    shown = page.request.get(
        f"{visitor.served.base}/api/conversations?{urlsplit(page.url).query}"
    ).json()
    assert 0 < shown["total"] < 250
    assert all(row["netsat"] >= least for row in shown["rows"])


def test_keys_alone_lead_from_home_into_a_conversation_and_back(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/")
    visitor.press("g", "c")
    page.wait_for_url("**/conversations")
    visitor.press("j", "j", "Enter")
    page.wait_for_url("**/conversation?*")
    first = page.locator("h1").inner_text()
    visitor.press("n")
    page.locator("h1", has_text="conversation 2").wait_for()
    assert page.locator("h1").inner_text() != first
    visitor.press("Backspace")
    page.wait_for_url("**/conversations?*")


def test_no_key_acts_while_a_field_has_focus_or_a_dialog_is_open(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversations")
    page.keyboard.press("/")
    page.keyboard.type("gh?")
    assert page.locator("input[type=search]").input_value() == "gh?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.type("gh")
    assert page.url.endswith("/conversations")


def test_the_cheatsheet_lists_the_keys_of_the_page_and_no_others(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    keys = set(page.locator("[data-key]").evaluate_all("all => all.map(one => one.dataset.key)"))
    page.keyboard.press("?")
    assert set(page.locator("dialog kbd").all_inner_texts()) == keys


@pytest.mark.scenario(8)
def test_a_rubric_lights_the_turns_that_its_answer_rests_on(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    page.locator(".part").first.focus()
    assert page.locator(".turn.lit").evaluate_all("all => all.map(one => one.id)") == ["turn-3"]
    page.keyboard.press("]")
    assert page.locator(".part.lit").count() == 2, "both rubrics rest on the turn that is quoted"


@pytest.mark.scenario(9)
def test_the_sums_of_a_conversation_give_its_netsat_to_the_eye(visitor: Visitor) -> None:
    def figure(text: str) -> float:
        return float(text.replace("−", "-").replace("+", ""))

    page = visitor.page
    for number in (1, 4, 6):
        visitor.go(f"/conversation?run=learn-1&id=conversation+{number}")
        good, bad, *_ = [figure(cell) for cell in page.locator(".sums td").all_text_contents()]
        netsat = figure(page.locator("#netsat").text_content() or "")
        netsat_said = page.locator("section[aria-labelledby=score] summary").inner_text()
        assert f"NetSAT {page.locator('#netsat').text_content()}," in netsat_said
        assert good + bad == pytest.approx(netsat, abs=0.11), "each is rounded to a tenth"


@pytest.mark.scenario(7)
def test_hostile_texts_run_load_and_hide_nothing(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=4, words=lambda text: f"{text} {HOSTILE}").close()
    visitor = visit(serve(folder))
    for path in ("/", "/conversations?run=learn-1"):
        visitor.go(path)
    visitor.page.locator("#rows a").first.click()
    visitor.page.wait_for_url("**/conversation?*")
    assert "onerror=alert(1)" in visitor.page.locator(".turns").inner_text()
    assert visitor.page.evaluate("document.scripts.length") == 3


@pytest.mark.scenario(6)
def test_a_link_opens_in_a_tab_of_its_own(visitor: Visitor) -> None:
    visitor.go("/conversations")
    with visitor.page.context.expect_page() as opened:
        visitor.page.locator("#rows a").first.click(modifiers=["Control"])
    opened.value.wait_for_load_state()
    assert "/conversation?" in opened.value.url


@pytest.mark.scenario(12)
@pytest.mark.nightly  # test_to_a_proof.py labels by keys, test_states.py presses them too early
def test_labels_are_given_by_keys_alone_and_a_key_too_early_labels_nothing(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/label")
    page.get_by_label("Name").fill("thumbs")
    page.get_by_label("Share at random").fill("0")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    visitor.press("Control+Enter")
    page.wait_for_url("**lease=*")
    for key in "ud":
        before = page.url
        visitor.press(key)
        page.wait_for_url(lambda url, before=before: url != before)
    assert visitor.findings() == []
    with sqlite3.connect(folder / "store.sqlite") as kept:
        assert [value for (value,) in kept.execute("SELECT value FROM labels ORDER BY rowid")] == [
            '"up"',
            '"down"',
        ]


@pytest.mark.nightly
def test_a_conversation_is_asked_about_again_with_other_words_by_keys_alone(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=24).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    visitor.press("a")
    page.wait_for_url("**/replay?*")
    visitor.press("e", "Control+A")
    page.keyboard.type("The user asks where a parcel is.")
    visitor.press("Control+Enter")
    page.wait_for_url("**replay=*")
    came = page.locator("#came")
    ended = page.get_by_role("link", name="It has ended")
    came.or_(ended).first.wait_for()
    # the answer may have come before the page
    if not came.count():
        ended.click()
    came.wait_for()
    page.wait_for_load_state()
    assert "The decision" in page.locator("main").inner_text()
    assert "asks where a parcel is." in page.locator("ins").first.inner_text()
    assert visitor.findings() == []
    visitor.press("Backspace")
    page.wait_for_url("**/conversation?*")


@pytest.mark.scenario(16)
@pytest.mark.nightly
def test_a_draft_shows_what_flips_while_one_types_and_is_fitted_again(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=60).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/sets")
    page.locator(".card a").first.click()
    page.get_by_role("button", name="Edit a draft").click()
    page.wait_for_url("**/drafts/*")
    page.get_by_label("Rubric 1").fill("The user asks where a parcel is.")
    page.locator("#preview table").wait_for()
    assert "would flip" in page.locator("#preview").inner_text()
    assert visitor.findings() == []
    visitor.press("Control+Enter")
    page.get_by_role("heading", name="version 2").wait_for()
    page.get_by_role("button", name="Fit version 2 again").click()
    page.locator(".state.done").wait_for()
    visitor.go("/runs?command=refit")
    assert "refit-3" in page.locator("table").inner_text()
    visitor.go("/sets")
    assert page.locator(".card").count() == 2
    page.locator(".card a").first.click()
    page.get_by_label("What changed since").locator("xpath=following::button[1]").click()
    assert "asks where a parcel is." in page.locator("ins").first.inner_text()
    assert visitor.findings() == []
    assert not any((folder / "drafts").iterdir()), "what the command read is gone"


@pytest.mark.nightly
def test_a_models_set_is_fitted_again_from_its_answers_and_asks_only_about_new_words(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    profiles = tmp_path / "profiles.toml"
    with made_store(folder, n=60) as store:
        of_a_model(store)
    with ProtocolServer() as server:
        profiles.write_text(
            f'[mini]\nmodel = "m"\nbase_url = "{server.url}"\nprice_in = 1\nprice_out = 2\n'
        )
        visitor = visit(serve(folder, "--profiles", str(profiles)))
        page = visitor.page
        visitor.go("/sets")
        page.locator(".card a").first.click()
        page.get_by_role("button", name="Edit a draft").click()
        page.get_by_text("Fitting asks for nothing").wait_for()
        page.get_by_role("button", name="Fit version 1 again").click()
        page.locator(".state.done").wait_for()
        assert server.counts()["received"] == 0
        visitor.go("/sets")
        page.locator(".card a").last.click()
        page.get_by_role("button", name="Edit a draft").click()
        page.get_by_label("Rubric 1").fill("The user asks where a parcel is.")
        page.get_by_role("button", name="Preview by mini").click()
        page.locator("#preview table").wait_for()
        assert visitor.findings() == []
        page.get_by_role("button", name="Keep this version").click()
        page.get_by_role("heading", name="version 2").wait_for()
        page.get_by_role("button", name="Fit version 2 again").click()
        page.locator(".state.done").wait_for()
    visitor.go("/runs?command=refit")
    assert page.locator("main table tbody tr").count() == 2


@pytest.mark.nightly
def test_rubrics_are_answered_by_digits_each_for_the_question_at_hand(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/label")
    page.get_by_label("Name").fill("sheets")
    page.get_by_label("Of run").select_option(index=1)
    page.get_by_label("Ask").select_option("rubrics")
    page.get_by_label("Share at random").fill("0")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    visitor.press("Control+Enter")
    page.wait_for_url("**lease=*")
    assert visitor.findings() == []
    before = page.url
    visitor.press("2", "0")
    assert page.url == before, "two keys answer two questions of one conversation"
    with page.expect_event("dialog") as asked:
        page.get_by_role("link", name="Runs").first.click(no_wait_after=True)
    assert asked.value.type == "beforeunload", (
        "what was answered and not kept is not left without a word"
    )
    assert page.url == before
    visitor.faults.clear()
    visitor.press("Control+Enter")
    page.wait_for_url(lambda url: url != before)
    with sqlite3.connect(folder / "store.sqlite") as kept:
        values = dict(kept.execute("SELECT question, value FROM labels").fetchall())
    assert values["rubric2"] == "null"
    assert values["rubric1"] != "null"
