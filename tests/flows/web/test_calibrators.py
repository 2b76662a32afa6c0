"""A calibrator's page: what its labels do, by hand, and whose labels figures are of."""

import asyncio
import io
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from httpx2 import AsyncClient
from small_runs import Learnt, run_here
from web_site import client_of, made_app

from pollex.calibration.thumbs import fit_candidate, predict_thumb_up
from pollex.errors import BadCalibrator, WrongUse
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import AnswerColumns
from pollex.services.label_figures import label_figures
from pollex.store.resume import answers_of, runs
from pollex.store.store import Store
from pollex.store.tables import LabelRow, pack
from pollex.web import links
from pollex.web.calibrated import select_label_source
from pollex.web.lens import lens_of
from pollex.web.pages.calibration import opens_of
from pollex.web.site import Site, calibrators_in, read_sets


@pytest.mark.nightly
def test_a_label_moves_the_probabilities_as_much_as_leaving_it_out_by_hand(
    learnt: Learnt, tmp_path: Path
) -> None:
    kept = ("--out", tmp_path / "half.json", "--store", tmp_path / "half")
    assert run_here("learn", learnt.log, *kept, "--test-fraction", "0.5").code == 0
    found = RubricSet.load(tmp_path / "half.json")
    model = found.thumb_model
    record = found.calibrator
    assert model is not None
    assert record is not None
    with Store.open(tmp_path / "half", read_only=True) as store:
        figures = label_figures(store, found, np.random.default_rng(0))
        rows = store.ask(found.run, "SELECT id, side, label FROM conversations ORDER BY seq")
        answers = answers_of(store, found.run)
    assert figures is not None
    assert figures.same, "fitted to the same labels it is the kept one"
    assert (figures.training, figures.held_out) == (record.labels, found.data.held_out)
    assert figures.curve[-1].point.labels == found.data.training
    assert figures.curve[-1].behind.value == 0.0
    top = figures.pulls[0]
    given = model.rows(
        AnswerColumns.of(model.rubrics, [[*answers[row["id"]].values()] for row in rows])
    )
    known = [n for n, row in enumerate(rows) if row["label"] != "none"]
    left = [n for n in known if rows[n]["id"] != top.id]
    kinds = {rubric.id: rubric.polarity for rubric in found.rubrics}
    signs = [1.0 if kinds[one] == "sat" else -1.0 for one in record.rubrics]
    positive = np.array([row["label"] == "positive" for row in rows])
    without, whole = (
        predict_thumb_up(
            fit_candidate(
                record.beginning, given[part], signs, positive[part], None, record.rubrics
            ),
            given,
        )
        for part in (left, known)
    )
    others = [n for n, row in enumerate(rows) if row["id"] != top.id]
    assert top.moved.value == pytest.approx(np.abs(without - whole)[others].mean())
    assert top.moved.n == len(others)
    moved = [one.moved.value for one in figures.pulls]
    assert moved == sorted(moved, reverse=True)


async def worked_out(client: AsyncClient, address: str) -> str:
    """The page, once its figures have come."""
    for _ in range(9000):
        if (await client.get(f"{address}/live")).headers["x-pollex-ended"]:
            return re.sub(r"\s+", " ", (await client.get(address)).text)
        await asyncio.sleep(0.02)
    raise AssertionError("no figures came")


async def test_a_set_whose_run_is_elsewhere_says_so(learnt: Learnt, tmp_path: Path) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        async with client_of(
            made_app(store, files={"a.json": RubricSet.load(learnt.rubrics)})
        ) as client:
            sets = (await client.get("/sets")).text
            found = re.search(r"/sets/([0-9a-f]{12})", sets)
            assert found is not None
            whole = await client.get(f"/sets/{found[1]}/file")
            with zipfile.ZipFile(io.BytesIO(whole.content)) as archive:
                archive.extractall(tmp_path / "whole")
            assert RubricSet.load(tmp_path / "whole" / "rubrics.json").thumb_model is not None
            page = await worked_out(client, f"/calibration/{found[1]}")
            assert "The run that learned it is not in this store" in page
            assert (await client.get("/calibration/nobody")).status_code == 404


async def test_a_set_that_only_the_store_has_is_whole_there_and_shows_its_own_figures(
    learnt: Learnt,
) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        async with client_of(made_app(store, read_only=True)) as client:
            shown = await worked_out(client, f"/calibration/{runs(store)[0].id}")
    assert 'class="error"' not in shown
    assert "Labels that move it most" in shown
    assert "the store has no arrays of it" not in shown


async def test_the_file_of_a_set_that_only_the_store_has_is_whole_with_its_arrays(
    learnt: Learnt, tmp_path: Path
) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        async with client_of(made_app(store, read_only=True)) as client:
            (digest,) = set(re.findall(r"/sets/([0-9a-f]{12})", (await client.get("/sets")).text))
            whole = await client.get(f"/sets/{digest}/file")
    with zipfile.ZipFile(io.BytesIO(whole.content)) as archive:
        archive.extractall(tmp_path)
    found = RubricSet.load(tmp_path / "rubrics.json")
    learned = RubricSet.load(learnt.rubrics)
    assert found.rubrics == learned.rubrics
    assert found.thumb_model is not None
    assert found.thumb_model.weights() == learned.thumb_model.weights()  # type: ignore[union-attr]  # it has one
    assert (tmp_path / "rubrics.rubrics.toml").exists()


def test_two_files_of_one_name_are_two_sets(learnt: Learnt, tmp_path: Path) -> None:
    paths = tuple(tmp_path / folder / learnt.rubrics.name for folder in ("a", "b"))
    for path in paths:
        shutil.copytree(
            learnt.rubrics.parent, path.parent, ignore=shutil.ignore_patterns("*.jsonl", ".*")
        )
    assert list(read_sets(paths, tmp_path)) == list(map(str, paths))
    assert list(read_sets(paths[:1], tmp_path)) == [paths[0].name]


async def test_a_calibrator_whose_tables_are_gone_says_which_and_texts_open_in_a_run(
    own: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with pytest.raises(BadCalibrator):
        calibrators_in([folder])
    (folder / "calibrator.json").write_text('{"arrays_sha256": "a"}')
    with pytest.raises(WrongUse):
        calibrators_in([folder, folder])
    (folder / "training.json").write_text(
        '{"arrays_sha256": "a", "files": ["gone.csv", "judgments.csv"]}'
    )
    async with client_of(made_app(own, calibrators=calibrators_in([folder]))) as client:
        assert "/calibration/kept" in (await client.get("/calibration")).text
        assert "gone.csv" in await worked_out(client, "/calibration/kept")
    with Store.open(tmp_path / "new") as fresh:
        async with client_of(made_app(fresh, calibrators=calibrators_in([folder]))) as client:
            assert "/calibration/kept" in (await client.get("/calibration")).text, (
                "before any run has scored"
            )
    found = opens_of(Site(own, {}), {"conversation 0", "elsewhere"})
    assert found == {"conversation 0": links.conversation(runs(own)[-1].id, "conversation 0")}, (
        "of the latest run"
    )


@pytest.mark.nightly
async def test_the_page_of_a_calibrator_shows_its_densities_in_the_end(
    own: Store, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0)
    tables = [tmp_path / name for name in ("answers.csv", "judgments.csv")]
    chances = draw.dirichlet(np.ones(3), 24)
    options = [
        f"conversation {text},Q0,{at + 1},{p}\n"
        for text, row in enumerate(chances)
        for at, p in enumerate(row)
    ]
    tables[0].write_text("text_id,question,option,probability\n" + "".join(options))
    chosen = [(text, 1 + row.argmax()) for text, row in enumerate(chances)]
    judged = [
        f"conversation {text},Q0,{who},{place}\n"
        for text, place in chosen
        for who in ("ann", "bob")
    ]
    tables[1].write_text("text_id,question,judge,answer\n" + "".join(judged))
    fitted = run_here(
        "calibrate",
        "fit",
        *tables,
        "--out",
        tmp_path / "kept",
        "--main",
        "Q0",
        "--model",
        "judge_mean",
    )
    assert fitted.code == 0, fitted.err
    async with client_of(made_app(own, calibrators=calibrators_in([tmp_path / "kept"]))) as client:
        page = await worked_out(client, "/calibration/kept")
    assert "its 95 % interval over texts and judges" in page
    assert page.count("The lowest:") == 1
    assert re.search(r'href="[^"]*conversation(\+|%20)\d', page), (
        "the lowest that a run has open there"
    )


@pytest.mark.parametrize("own", [60], indirect=True)
async def test_labels_of_people_count_where_they_were_drawn_at_random_and_never_with_the_logs(
    own: Store,
) -> None:
    score = runs(own)[1]
    lens = lens_of(own, score)
    for row, (who, value, drawn) in enumerate(
        [
            ("ann", "up", "random"),
            ("ann", "down", "unsure"),
            ("ann", "up", "random"),
            ("bob", "up", "random"),
        ]
    ):
        text = lens.hashes[min(row, 2)]
        own.put([LabelRow(who, text, lens.ids[row], score.id, "thumb", pack(value), drawn=drawn)])
    own.put(
        [LabelRow("cy", lens.hashes[2], "", score.id, "thumb", pack("down"), source="adjudicated")]
    )
    own.flush()
    people, decided = (
        select_label_source(lens, own, source).label for source in ("person", "adjudicated")
    )
    assert people[:3].tolist() == [1, -1, 1]
    assert decided[:3].tolist() == [-1, -1, 0]
    assert select_label_source(lens, own, "log") is lens
    assert (people[3:] == -1).all()
