"""A set's calibrator: its page, its file, and whose labels figures are of."""

import io
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from small_runs import Learnt
from web_site import client_of, made_app

from pollex.rubrics.rubric_set import RubricSet
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store
from pollex.store.tables import LabelRow, dump_json
from pollex.web.calibrated import select_label_source
from pollex.web.lens import read_run_columns
from pollex.web.site import read_sets


async def test_the_calibrator_of_a_set_whose_run_is_elsewhere_is_shown_and_nobodys_is_not_there(
    learnt: Learnt, tmp_path: Path
) -> None:
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
            page = (await client.get(f"/calibration/{found[1]}")).text
            assert "How well it does" in page
            assert (await client.get("/calibration/nobody")).status_code == 404


async def test_a_set_that_only_the_store_has_is_whole_there_and_shows_its_own_figures(
    learnt: Learnt,
) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        async with client_of(made_app(store, read_only=True)) as client:
            shown = (await client.get(f"/calibration/{list_stored_runs(store)[0].id}")).text
    assert 'class="error"' not in shown
    assert "What it was compared with" in shown


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


@pytest.mark.parametrize("own", [60], indirect=True)
async def test_labels_of_people_count_where_they_were_drawn_at_random_and_never_with_the_logs(
    own: Store,
) -> None:
    score = list_stored_runs(own)[1]
    lens = read_run_columns(own, score)
    for row, (who, value, drawn) in enumerate(
        [
            ("ann", "up", "random"),
            ("ann", "down", "unsure"),
            ("ann", "up", "random"),
            ("bob", "up", "random"),
        ]
    ):
        text = lens.hashes[min(row, 2)]
        own.put(
            [LabelRow(who, text, lens.ids[row], score.id, "thumb", dump_json(value), drawn=drawn)]
        )
    own.put(
        [
            LabelRow(
                "cy", lens.hashes[2], "", score.id, "thumb", dump_json("down"), source="adjudicated"
            )
        ]
    )
    own.flush()
    people, decided = (
        select_label_source(lens, own, source).label for source in ("person", "adjudicated")
    )
    assert people[:3].tolist() == [1, -1, 1]
    assert decided[:3].tolist() == [-1, -1, 0]
    assert select_label_source(lens, own, "log") is lens
    assert (people[3:] == -1).all()
