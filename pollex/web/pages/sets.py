"""Rubric sets: their rubrics, the origin of each, and differences of two sets."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollex.errors import BadCalibrator
from pollex.rubrics.headlines import headlines, in_order
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity, Quote, Reason
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.set_differences import diff_sets
from pollex.web import drawings, frame, links
from pollex.web.by_class import answers_by_class
from pollex.web.faults import NotThere
from pollex.web.forms import Form, Nothing, query, site_of
from pollex.web.listing import run_that_asked
from pollex.web.site import Site

KINDS: tuple[tuple[Polarity, str], ...] = (("dsat", "What goes wrong"), ("sat", "What goes well"))


class RubricForm(Form):
    """The form of a rubric's page."""

    id: str


class DiffForm(Form):
    """The form of a comparison of two sets."""

    a: str
    b: str


@dataclass(frozen=True)
class Support:
    """A rubric with its evidence.

    Attributes:
        conversations: How many conversations its reasons are from.
        quotes: Quotes of the rubric and its reasons, each once.
    """

    rubric: ChosenRubric
    conversations: int
    quotes: tuple[Quote, ...]

    @property
    def examples(self) -> tuple[str, ...]:
        """Ids of three conversations that it quotes."""
        return tuple(dict.fromkeys(quote.conversation_id for quote in self.quotes))[:3]


def sets(request: Request) -> Response:
    """List the rubric sets of the store and of files."""
    site = site_of(request)
    query(request, Nothing)
    found = list(site.sets().values())
    return frame.page("sets.html", site=site.id, here="Rubric sets", sets=found, unreadable=site.unreadable)


def one_set(request: Request) -> Response:
    """Show a rubric set: what it says first, how well it does after."""
    site = site_of(request)
    query(request, Nothing)
    named = site.set(request.path_params["set"])
    kinds = {(kind, title): supported(named.rubric_set, kind) for kind, title in KINDS}
    others = [other for other in site.sets().values() if other.id != named.id]
    in_store = {run.id for run in site.runs()}
    run = run_that_asked(site, named)
    return frame.page(
        "set.html",
        answered=answers_by_class(site, named, run) if run else None,
        draw=drawings.by_class,
        read_only=site.read_only,
        drafts=drafts_of(site, named.id),
        site=site.id,
        here="Rubric sets",
        named=named,
        kinds=kinds,
        others=others,
        in_store=in_store,
    )


def drafts_of(site: Site, set_id: str) -> list[dict[str, Any]]:
    """Return the drafts that began with a set, the last one first."""
    sql = "SELECT id, max(version) AS version, max(time) AS time FROM drafts WHERE base = ? GROUP BY id"
    return site.store.rows(f"{sql} ORDER BY time DESC", [set_id])


def supported(found: RubricSet, kind: Polarity) -> list[Support]:
    """Return a set's rubrics of one kind, with evidence: headlines in their order, then all others."""
    reasons = {reason.id: reason for reason in found.reasons}
    groups = [(one.rubric, *one.also) for one in headlines(found.rubrics, kind)]
    leading = [rubric for group in groups for rubric in group]
    rest = [one for one in in_order(found.rubrics) if one.polarity == kind and one not in leading]
    return [_support(one, [reasons[id_] for id_ in one.reason_ids if id_ in reasons]) for one in (*leading, *rest)]


def _support(rubric: ChosenRubric, reasons: Sequence[Reason]) -> Support:
    quotes = dict.fromkeys((*rubric.quotes, *(quote for reason in reasons for quote in reason.quotes)))
    return Support(rubric, len({reason.conversation_id for reason in reasons}), tuple(quotes))


def one_rubric(request: Request) -> Response:
    """Show where a rubric came from: reasons, quotes, turns, and what was merged into it."""
    site = site_of(request)
    named, form = site.set(request.path_params["set"]), query(request, RubricForm)
    found = named.rubric_set
    rubric = rubric_of(found, form.id)
    reasons = [reason for reason in found.reasons if reason.id in rubric.reason_ids]
    return frame.page(
        "rubric.html",
        site=site.id,
        here="Rubric sets",
        named=named,
        rubric=rubric,
        reasons=reasons,
        merged=[one for one in found.dropped if one.duplicate_of == rubric.id],
        run=named.run if named.run in {run.id for run in site.runs()} else "",
    )


def rubric_of(found: RubricSet, id_: str) -> ChosenRubric:
    """Return a rubric of a set by its id. Raises NotThere where there is none."""
    rubric = next((one for one in found.rubrics if one.id == id_), None)
    if rubric is None:
        raise NotThere(f"the set has no rubric {id_!r}", remedy="its page has those there are")
    return rubric


def download(request: Request) -> Response:
    """Send a set with its arrays and the file for edits, packed together."""
    query(request, Nothing)
    named = site_of(request).set(request.path_params["set"])
    try:
        body = _packed(named.rubric_set)
    except BadCalibrator as error:
        raise NotThere(error.what, remedy="the folder that it was learned into has it whole") from None
    headers = {"Content-Disposition": 'attachment; filename="rubrics.zip"'}
    return Response(body, media_type="application/zip", headers=headers)


def _packed(found: RubricSet) -> bytes:
    with tempfile.TemporaryDirectory() as folder, io.BytesIO() as whole:
        found.save(Path(folder) / "rubrics.json")
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)
        return whole.getvalue()


def diff(request: Request) -> Response:
    """Show what two sets differ in: words, order, figures."""
    site, form = site_of(request), query(request, DiffForm)
    a, b = site.set(form.a), site.set(form.b)
    found = diff_sets(a.rubric_set, b.rubric_set)
    return frame.page("set_diff.html", site=site.id, here="Rubric sets", a=a, b=b, changes=found.changes)


ROUTES = [
    Route(links.SETS, sets),
    Route(links.SET_DIFF, diff),
    Route(f"{links.SETS}/{{set}}", one_set),
    Route(f"{links.SETS}/{{set}}/rubric", one_rubric),
    Route(f"{links.SETS}/{{set}}/file", download),
]
