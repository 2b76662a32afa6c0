"""Calibration in the browser: bands and tails of labels that nothing was learned from, by hand."""

import numpy as np
import pytest
from rubric_set_by_hand import rubric_set
from web_site import client_of, conversation, made_app, scored

from pollex.measures.drift import is_drift_significant
from pollex.rubrics.records import SpreadRecord
from pollex.store.resume import list_stored_runs
from pollex.store.rows import make_conversation_rows, make_fact_row
from pollex.store.store import Store
from pollex.web.calibrated import (
    draw_reliability_of_run,
    find_sure_predictions,
    make_bands,
    make_score_bands,
    mask_usable_rows,
    measure_subgroups_of_run,
)
from pollex.web.lens import read_run_columns
from pollex.web.likeness import measure_drift_of_set
from pollex.web.pages.calibration import find_time_fields, list_fields, make_weeks, parse_moment
from pollex.web.site import Site


@pytest.mark.parametrize("own", [120], indirect=True)
async def test_bands_hold_what_was_predicted_and_seen(own: Store) -> None:
    learn, score = list_stored_runs(own)
    assert not mask_usable_rows(read_run_columns(own, learn)).any(), (
        "labels that were learned from say nothing"
    )
    lens = read_run_columns(own, score)
    found = make_bands(lens)
    rows = mask_usable_rows(lens)
    known_elsewhere = frozenset(lens.hashes[place][:16] for place in np.flatnonzero(rows)[:7])
    assert (
        mask_usable_rows(read_run_columns(own, score, known_elsewhere)).sum() == rows.sum() - 7
    ), "nor what another set learned from"
    assert sum(band.seen.n for band in found) == rows.sum()
    for band in found:
        mine = rows & (lens.probability >= band.low) & (lens.probability < band.high)
        assert band.predicted == pytest.approx(lens.probability[mine].mean())
        assert band.seen.value == pytest.approx((lens.label[mine] == 1).mean())
    scored = make_score_bands(lens)
    assert sum(band.seen.n for band in scored) == rows.sum()
    for band in scored:
        mine = rows & (lens.netsat >= band.low) & (lens.netsat <= band.high)
        assert band.seen.n == mine.sum()
        assert band.seen.value == pytest.approx((lens.label[mine] == 1).mean())
    diagram = draw_reliability_of_run(lens)
    assert diagram
    assert sum(each.share.n for each in diagram.bins) == rows.sum()
    for tail in find_sure_predictions(lens):
        assert len(tail.worst) == min(10, round((tail.wrong.value or 0) * tail.wrong.n))
    async with client_of(made_app(own)) as client:
        page = (await client.get("/calibration")).text
        assert "Bands of probability" in page
        assert "Share of thumbs up against predicted probability" in page
        assert (
            "Not calibrated" in (await client.get("/calibration", params={"run": "learn-1"})).text
        )
    assert np.isfinite([band.predicted for band in found]).all()


@pytest.mark.parametrize("own", [120], indirect=True)
async def test_conversations_unlike_those_of_the_set_are_marked(own: Store) -> None:
    learn = list_stored_runs(own)[0]
    lens = read_run_columns(own, learn)
    known = lens.netsat[~np.isnan(lens.netsat)]
    for edges, marked in (
        (np.quantile(known, (0.25, 0.5, 0.75)), False),
        (np.array([8.0, 9.0, 10.0]), True),
    ):
        spread = SpreadRecord(edges=tuple(edges.tolist()), counts=(30, 30, 30, 30))
        found = rubric_set(run=learn.id).model_copy(update={"spread": spread})
        assert is_drift_significant(measure_drift_of_set(known, found)) is marked
        own.put([make_fact_row(learn.id, "rubric_set", "set", found)])
        score = scored(own, found, range(120))
        own.flush()
        async with client_of(made_app(own)) as client:
            # what a set was learned from is like itself
            for run, is_told in ((score, marked), (learn.id, False)):
                page = (await client.get("/conversations", params={"run": run})).text
                assert ("not known to be calibrated here" in page) is is_told
                page = (await client.get(f"/runs/{run}")).text
                assert ("not known to be calibrated here" in page) is is_told


def test_times_are_read_however_logs_write_them() -> None:
    days = {"2026-10-01T10:00:00Z": 1, "2026-10-02": 2, "1790935200": 2, "1790935200000": 2}
    for written, day in (days | dict.fromkeys(("u154", "17", "nan"))).items():
        found = parse_moment(written)
        assert (found and found.day) == day


@pytest.mark.parametrize("own", [120], indirect=True)
async def test_weeks_and_groups_are_those_of_a_field_of_the_log(own: Store) -> None:
    score = list_stored_runs(own)[1]
    days = {number: f"2026-09-{1 + number // 12:02}T10:00:00Z" for number in range(120)}
    told = [
        conversation(number).model_copy(
            update={
                "metadata": {"about": {"at": days[number], "side": "ab"[number % 2]}, "tags": ["x"]}
            }
        )
        for number in range(120)
    ]
    own.put(make_conversation_rows(score.id, told))
    own.flush()
    lens = read_run_columns(own, score)
    fields = list_fields(Site(own, {}), score, lens)
    assert sorted(fields) == ["about.at", "about.side"]
    assert [*find_time_fields(fields)] == ["about.at"]
    learned = np.quantile(lens.netsat[~np.isnan(lens.netsat)], (0.1, 0.9))
    found = make_weeks(lens, fields["about.at"], None, learned)
    assert [week.begins.isoformat() for week in found] == ["2026-08-31", "2026-09-07"]
    first = np.array([int(id_.split()[-1]) < 72 for id_ in lens.ids])
    known = first & ~np.isnan(lens.probability)
    assert found[0].n == known.sum()
    assert found[0].mean == pytest.approx(lens.probability[known].mean())
    assert found[0].seen.n == (mask_usable_rows(lens) & first).sum()
    mine = lens.netsat[first & ~np.isnan(lens.netsat)]
    assert found[0].outside is not None
    assert found[0].outside.value == pytest.approx(
        ((mine < learned[0]) | (mine > learned[1])).mean()
    )
    sides = measure_subgroups_of_run(lens, fields["about.side"])
    assert sorted(one.name for one in sides) == ["a", "b"]
    asked = {"run": score.id, "by": "about.side", "time": "about.at"}
    async with client_of(made_app(own)) as client:
        page = (await client.get("/calibration", params=asked)).text
    assert "2026-09-07" in page
