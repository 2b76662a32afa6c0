"""Tables on a telephone: whole words, cells in their rows, heads above figures; one verdict; a draft says it works."""

import signal
from collections.abc import Callable

from visitors import Served, Visitor

PHONE = {"width": 400, "height": 800}
PATHS = ("/runs", "/conversations?run=learn-1", "/compare?a=learn-1&b=score-2", "/calibration")
ASKEW = """() => [...document.querySelectorAll("main table")].flatMap((table) => [
  ...[...table.querySelectorAll("tbody td, tbody th")].filter((cell) =>
    getComputedStyle(cell).overflowWrap === "anywhere" || getComputedStyle(cell).float !== "none"),
  ...[...table.querySelectorAll("thead th")].filter((head, place) => {
    const below = [...table.querySelectorAll("tbody tr")].map((row) => row.cells[place]);
    const figure = below.find((cell) => cell?.matches("td.n"));
    return figure && getComputedStyle(figure).textAlign === "right" && getComputedStyle(head).textAlign !== "right";
  }),
  ...(table.closest(".wide") || table.matches(".sums") ? [] : [table]),
].map((one) => `${table.className}: ${one.textContent.trim().slice(0, 40)}`))"""


def test_tables_scroll_sideways_with_whole_words_and_heads_above_their_figures(
    visit: Callable[..., Visitor], served: Served
) -> None:
    visitor = visit(served, viewport=PHONE)
    visitor.go("/runs")
    judged = visitor.page.locator("a[href^='/runs/judge']").first.get_attribute("href")
    for path in (*PATHS, f"{judged}/calls"):
        visitor.go(path)
        assert visitor.page.evaluate(ASKEW) == [], path
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 400, path


def test_a_conversation_has_one_verdict_and_the_others_behind_it(visitor: Visitor) -> None:
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    card = visitor.page.locator("section[aria-labelledby=score]")
    # a set of few labels says no sureness
    assert card.locator(".figure").inner_text().startswith(("Good", "Bad"))
    assert not card.get_by_text("Window", exact=True).is_visible()
    card.locator("summary").click()
    assert card.get_by_text("Window", exact=True).is_visible()


def test_what_would_flip_says_that_it_is_being_worked_out(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/sets")
    page.locator("main a[href^='/sets/']").first.click()
    page.get_by_role("button", name="draft").first.click()
    page.wait_for_url("**/drafts/*")
    preview = page.locator("#preview")
    server = visitor.served.process
    server.send_signal(signal.SIGSTOP)
    try:
        page.locator("textarea").first.fill("The user says thanks twice.")
        assert preview.get_attribute("aria-busy") == "true"
        said = preview.evaluate("box => getComputedStyle(box, '::before').content")
        assert said == '"Being worked out …"'
    finally:
        server.send_signal(signal.SIGCONT)
    page.locator("#preview:not([aria-busy])").wait_for()
    page.evaluate("document.getElementById('draft').reset()")
    visitor.faults.clear()
