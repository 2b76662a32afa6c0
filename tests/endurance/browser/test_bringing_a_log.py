"""A log with German columns in a real browser: dropped, its labels corrected by a click, and kept."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from visitors import Served, Visitor

from pollex.services.readings import list_readings
from pollex.store.store import Store

DROP = """
([content, name]) => {
  const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type: "text/csv" }));
  const given = { bubbles: true, cancelable: true, dataTransfer: data };
  for (const kind of ["dragenter", "dragover", "drop"])
    document.querySelector("main").dispatchEvent(new DragEvent(kind, given));
}
"""


def german(n: int) -> bytes:
    """A table of which nobody knows the columns and the words of the label."""
    rows = ["chat_nr;absender;nachricht;zufriedenheit"]
    for number in range(n):
        word = ("fluffig", "schrumpelig", "")[number % 3]
        rows += [
            f"{number};Kunde;Wo ist mein Paket Nummer {number}? Ich warte schon lange darauf.;",
            f"{number};Berater;Das Paket {number} ist unterwegs, bitte haben Sie Geduld.;{word}",
        ]
    return ("\n".join(rows) + "\n").encode()


@pytest.fixture
def empty(serve: Callable[..., Served], tmp_path: Path) -> Served:
    with Store.open(tmp_path / ".pollex"):
        return serve(tmp_path / ".pollex")


def drop(visitor: Visitor, content: bytes, name: str) -> None:
    visitor.page.evaluate(DROP, [base64.b64encode(content).decode(), name])


def test_a_table_is_dropped_corrected_by_clicks_and_kept(
    visit: Callable[..., Visitor], empty: Served
) -> None:
    visitor = visit(empty)
    page = visitor.page
    visitor.go("/logs")
    assert visitor.findings() == []
    drop(visitor, german(60), "Chats März.csv")
    page.wait_for_url("**/logs/*")
    page.get_by_text("Is this what was said?").wait_for()
    assert visitor.findings() == []

    # each change is read again at once, and the focus stays where it was
    page.get_by_label("zufriedenheit is").focus()
    page.get_by_label("zufriedenheit is").select_option(label="the thumb or rating")
    page.get_by_text("Say what each counts as").wait_for()
    assert page.evaluate("document.activeElement.name") == "col-zufriedenheit"
    page.get_by_role("radiogroup", name="fluffig counts as").get_by_label("up", exact=True).check()
    page.locator(".lead", has_text="20 up").wait_for()
    page.get_by_role("radiogroup", name="schrumpelig counts as").get_by_label(
        "down", exact=True
    ).check()
    page.locator(".lead", has_text="20 down").wait_for()
    assert visitor.findings() == []

    page.get_by_label("Name").fill("support")
    page.get_by_role("button", name="Keep this reading").click()
    page.get_by_text("pollex learn log:support").wait_for()
    assert visitor.findings() == []
    (reading,) = list_readings(empty.store)
    assert (reading.name, reading.conversations) == ("support", 60)
    assert (reading.options["positive"], reading.options["negative"]) == ("fluffig", "schrumpelig")


def test_what_is_no_log_is_told_beside_the_files_and_nothing_is_kept(
    visit: Callable[..., Visitor], empty: Served
) -> None:
    visitor = visit(empty)
    visitor.go("/logs")
    drop(visitor, b"%PDF-1.7\n", "report.pdf")
    visitor.page.get_by_role("alert").get_by_text("the file is a PDF").wait_for()
    # a browser says in its console that the server refused
    visitor.faults.clear()
    assert list_readings(empty.store, kept_only=False) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_without_scripts_and_on_a_telephone_a_log_is_brought_and_corrected(
    visit: Callable[..., Visitor], empty: Served, theme: str
) -> None:
    visitor = visit(
        empty,
        java_script_enabled=False,
        color_scheme=theme,
        viewport={"width": 400, "height": 800},
    )
    page = visitor.page
    visitor.go("/logs")
    file = {"name": "a.csv", "mimeType": "text/csv", "buffer": german(12)}
    page.set_input_files("input[name=files]", files=[file])
    page.get_by_role("button", name="Bring them").click()
    page.get_by_text("Is this what was said?").wait_for()
    page.get_by_label("zufriedenheit is").select_option(label="the thumb or rating")
    page.get_by_role("button", name="Read it again so").click()
    page.get_by_text("Say what each counts as").wait_for()
    wide = page.locator("main").bounding_box()
    assert wide is not None
    assert wide["width"] <= 400
