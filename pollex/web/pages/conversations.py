"""The list of a run's conversations: 100,000 of them, in windows, with words in any turn."""

import json
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Literal

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from pollex.formats.write import write_rows
from pollex.store.runs import Run
from pollex.web import drawings, frame, links
from pollex.web.calibrated import LabelSource
from pollex.web.faults import RequestError, VersionConflict
from pollex.web.filters import FACETS, combine_masks
from pollex.web.lens import RunColumns
from pollex.web.likeness import measure_unlikeness
from pollex.web.listing import (
    TITLES_OF_RANGES,
    ListedConversation,
    ListForm,
    Listing,
    add_labels,
    find_holding_ids,
    find_scoring_run,
    find_texts_with_words,
    load_run_columns,
    make_listing,
    make_masks,
    make_row_json,
)
from pollex.web.listing import search_texts as batches_of
from pollex.web.queues import list_queues
from pollex.web.reasons import find_reasons_of_set
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.views import PageData, iterate_csv_lines, page, send_file

LIST_COLUMNS = (
    ("place", "Conversation", False),
    ("probability", "Verdict", False),
    ("", "Why", False),
    ("", "Thumb", False),
    ("turns", "Turns", True),
)
"""Column to sort by, head, and whether it is a number."""


FACET_TITLES = {name: title for name, (title, _, _) in FACETS.items()} | {
    "side": "Part of the split",
    "group": "Group",
    "flag": "Odd about the text",
}


WORDS_BY_LABEL_SOURCE: dict[LabelSource, str] = {
    "log": "in the log",
    "person": "of people",
    "adjudicated": "as adjudicated",
}
THUMBS_OF_PEOPLE_QUERY = "SELECT 1 FROM labels WHERE question = 'thumb' AND annotator <> '' LIMIT 1"


@page(links.CONVERSATIONS_PATH, "conversations.html", here="Conversations")
def show_conversations(
    site: Site,
    form: ListForm,
    request: Request,
    as_json: bool,
) -> PageData | Response:
    """Show a window of the list, or only its rows on request."""
    listing = make_listing(site, form)
    if as_json:
        _require_version(listing)
        rows = [make_row_json(row) for row in listing.rows()]
        return {
            "total": listing.total,
            "version": listing.lens.version,
            "rows": rows,
        }

    # a script that loads more rows reads how many there are, and of which version
    headers = {
        "X-Pollex-Total": str(listing.total),
        "X-Pollex-Version": listing.lens.version,
        "X-Pollex-At": str(listing.at),
    }
    # rows alone, for a list that grows as one scrolls
    if request.headers.get("x-pollex-part") == "rows":
        _require_version(listing)
        return HTMLResponse(
            frame.fill_template(
                "conversation_rows.html",
                listing=listing,
                reasons=find_reasons_of_set(site, listing.run, listing.rows()),
                read_only=site.read_only,
            ),
            headers=headers,
        )

    named_set = site.set_of(listing.run)
    # how NetSAT is spread, with θ marked
    counted = listing.histogram("netsat")
    marks = [("θ", named_set.rubric_set.theta)] if named_set else []

    # a rubric that narrows the list is told by its words
    held = None
    if named_set is not None and form.holds is not None:
        for rubric in named_set.rubric_set.rubrics:
            if rubric.id == form.holds:
                held = rubric.text

    queues_of_run = []
    for queue in list_queues(site.store):
        if queue.run == listing.run.id:
            queues_of_run.append(queue)
    return {
        "headers": headers,
        "listing": listing,
        "held": held,
        "reasons": find_reasons_of_set(site, listing.run, listing.rows()),
        "unlike": measure_unlikeness(site, listing.run),
        "runs": [run for run in site.runs() if run.command in SCORING_COMMANDS],
        "titles": FACET_TITLES | {"thumb": f"Thumb {WORDS_BY_LABEL_SOURCE[form.source]}"},
        "sources": WORDS_BY_LABEL_SOURCE if site.store.value(THUMBS_OF_PEOPLE_QUERY) else {},
        "columns": LIST_COLUMNS,
        "ranges": TITLES_OF_RANGES,
        "queues": queues_of_run,
        "drawing": drawings.draw_histogram("NetSAT", counted, marks) if counted else None,
        "reach": (float(counted.edges[0]), float(counted.edges[-1])) if counted else None,
    }


@page("/api/conversations/file")
def send_list_file(
    site: Site,
    form: ListForm,
    kind: Literal["csv", "jsonl", "parquet"] = "csv",
) -> Response:
    """Send all that a list has, row by row, in its order."""
    listing = make_listing(site, form)
    if kind == "parquet":
        return _send_parquet(listing)
    if kind == "csv":
        return send_file(
            "conversations.csv", "text/csv", iterate_csv_lines(_iterate_table(listing))
        )

    lines = (json.dumps(make_row_json(row), ensure_ascii=False) + "\n" for row in listing.every())
    return send_file("conversations.jsonl", links.NDJSON_CONTENT_TYPE, lines)


def _send_parquet(listing: Listing) -> Response:
    """Send a Parquet file, which is made whole before it is sent; it is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.parquet"
        types = {}
        for field in fields(ListedConversation):
            types[field.name] = DUCKDB_TYPES[str(field.type)]
        write_rows(path, map(make_row_json, listing.every()), types)
        return send_file(
            "conversations.parquet",
            "application/vnd.apache.parquet",
            path.read_bytes(),
        )


def _iterate_table(listing: Listing) -> Iterator[Iterable[object]]:
    for place, row in enumerate(listing.every()):
        row_fields = make_row_json(row)
        # the heads come before the first row
        yield from ([row_fields, row_fields.values()] if not place else [row_fields.values()])


def _require_version(listing: Listing) -> None:
    if listing.form.version not in ("", listing.lens.version):
        raise VersionConflict(
            "more conversations have come since",
            hint="load the list again",
        )


DUCKDB_TYPES = {
    "int": "BIGINT",
    "str": "VARCHAR",
    "float": "DOUBLE",
}
"""DuckDB's types of a row's fields."""


@page("/api/conversations/search")
def send_search_hits(site: Site, form: ListForm, request: Request) -> Response:
    """Send the first `n` hits a line each, and a line of progress a batch, until all is read or nobody listens."""
    if not form.q:
        raise RequestError("there are no words to look for", hint="give q=WORDS")

    run = find_scoring_run(site, form.run)
    lens = add_labels(site, load_run_columns(site, run), form.source)
    return StreamingResponse(
        _iterate_hits(request, site, run, lens, form),
        media_type=links.NDJSON_CONTENT_TYPE,
    )


async def _iterate_hits(
    request: Request,
    site: Site,
    run: Run,
    lens: RunColumns,
    form: ListForm,
) -> AsyncIterator[str]:
    rows = _index_rows(lens, form, find_holding_ids(site.store, run.id, form))
    texts_found = set[str]()
    hits = 0
    batches = batches_of(site.store, run.id, form.q)
    # each batch is read in a thread, so that other requests are answered meanwhile
    while (batch := await run_in_threadpool(next, batches, None)) is not None:
        if await request.is_disconnected():
            return
        texts, done, total = batch
        # an earlier batch may have had the text; several rows may have the same one
        rows_of_texts: list[int] = []
        for text in texts - texts_found:
            rows_of_texts.extend(rows.get(text, ()))
        rows_found = sorted(rows_of_texts)
        texts_found |= texts
        # the first hits are sent, and all are counted
        shown = rows_found[: max(0, form.n - hits)]
        hits += len(rows_found)
        progress = {"done": done, "total": total, "found": hits}
        lines = []
        for row in shown:
            conversation = ListedConversation.of(lens, row, row)
            lines.append(_dump_line({"hit": make_row_json(conversation)}))
        lines.append(_dump_line(progress))
        yield "".join(lines)

    # kept, so that the list for these words needs no search of its own
    find_texts_with_words(site, lens, form.q, lambda: texts_found)
    yield _dump_line({"ended": True, "found": hits})


def _index_rows(
    lens: RunColumns,
    form: ListForm,
    holding: frozenset[str],
) -> dict[str, list[int]]:
    # rows that all other filters leave, by their text
    left = combine_masks(make_masks(form, lens, frozenset(), holding), len(lens), but="q")
    rows: dict[str, list[int]] = defaultdict(list)
    for row in left.nonzero()[0].tolist():
        rows[lens.hashes[row]].append(row)

    return rows


def _dump_line(data: PageData) -> str:
    return json.dumps(data, ensure_ascii=False) + "\n"
