"""Changes of prompts that were looked for and proven, and pairs of replies that people compare for them, blind."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pollex.services.remedy.result import COMMAND, COMPARED, SHEET, RemedyResult, chosen_of, people_for
from pollex.store.resume import step
from pollex.store.runs import Run
from pollex.store.tables import LabelRow, SheetRow, packed
from pollex.web import links
from pollex.web.faults import NotThere
from pollex.web.forms import Form
from pollex.web.pages.runs import costs_of
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post


class WhoForm(Form):
    """Who compares; the page asks for a name first."""

    who: str = Field(default="", max_length=80)


class PairForm(Form):
    """Which reply helps more: the left or the right one, neither, or none that this person can tell."""

    key: str
    who: str = Field(min_length=1, max_length=80)
    choice: Literal["1", "2", "0", "S"]
    comment: str = Field(default="", max_length=2000)


@page(links.REMEDIES, "remedy_list.html", here="Runs")
def remedies(site: Site, as_json: bool) -> Data:
    """List what runs of `remedy` came to, the last one first."""
    rows = [_row(site, run) for run in site.runs() if run.command == COMMAND]
    return {"remedies": rows if as_json else [(site.run(str(one["run"])), one) for one in rows]}


def _row(site: Site, run: Run) -> dict[str, Any]:
    kept, sheet = step(site.store, run.id, COMMAND), step(site.store, run.id, SHEET)
    about: dict[str, Any] = {"run": run.id, "verdict": "", "waiting": 0 if kept or not sheet else len(sheet)}
    if kept:
        found = RemedyResult.of_kept(kept, run.id)
        diffs = [line[1:] for one in found.edits[:1] for line in one.diff.splitlines()[2:] if line[:1] in "+-"]
        about |= {"target": found.record["target"]["text"], "edit": " · ".join(diffs), "verdict": found.verdict}
        about |= {"level": kept["level"], "cost": costs_of(site).get(run.id)}
    return about


@page(f"{links.REMEDIES}/{{run}}", "remedy_pairs.html", WhoForm, here="Label")
def pairs(site: Site, run: Run, form: WhoForm) -> Data:
    """Show a person the next pair of replies that they haven't compared: no prompt, arm, rubric or judge."""
    sheet, said = _sheet(site, run), chosen_of(site.store, run.id)
    left = [
        one for one in sheet.values()
        if form.who not in (by := said.get(one["key"], {})) and len(by) < people_for(one["key"])
    ]  # fmt: skip
    about = {"run": run, "who": form.who, "left": len(left), "of": len(sheet), "read_only": site.read_only}
    return about | {"pair": left[0] if left and form.who else None}


@post("/api/remedies/{run}", PairForm)
async def compare(site: Site, run: Run, form: PairForm) -> Done:
    """Keep what a person chose; a comment stands beside it."""
    pair = _sheet(site, run).get(form.key)
    if pair is None:
        raise NotThere("there is no such pair", remedy="load the page again")
    about = {"annotator": form.who, "text_hash": form.key, "conversation": pair["conversation"], "run": run.id}
    label = LabelRow(**about, question=f"{COMPARED} {run.id}", value=packed(form.choice), drawn="random")
    await site.store.write([label, SheetRow(label.id, comment=form.comment)])
    return links.address(f"{links.REMEDIES}/{run.id}", who=form.who), {"label": label.id}


def _sheet(site: Site, run: Run) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in step(site.store, run.id, SHEET) or ()}
