"""The page of a calibrator that was fitted to tables."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
from httpx2 import AsyncClient
from small_runs import run_here
from web_site import client_of, made_app

from pollex.errors import BadCalibrator, WrongUse
from pollex.rooms.questionnaire.web.calibrators import name_calibrators
from pollex.rooms.questionnaire.web.pages.calibrators import link_texts
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store
from pollex.web import links
from pollex.web.site import Site


async def worked_out(client: AsyncClient, address: str) -> str:
    """The page, once its figures have come."""
    for _ in range(9000):
        if (await client.get(f"{address}/live")).headers["x-pollex-ended"]:
            return re.sub(r"\s+", " ", (await client.get(address)).text)
        await asyncio.sleep(0.02)
    raise AssertionError("no figures came")


async def test_a_calibrator_whose_tables_are_gone_says_which_and_texts_open_in_a_run(
    own: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with pytest.raises(BadCalibrator):
        name_calibrators([folder])
    (folder / "calibrator.json").write_text('{"arrays_sha256": "a"}')
    with pytest.raises(WrongUse):
        name_calibrators([folder, folder])
    (folder / "training.json").write_text(
        '{"arrays_sha256": "a", "files": ["gone.csv", "judgments.csv"]}'
    )
    async with client_of(made_app(own, named={"calibrators": [folder]})) as client:
        assert "/calibration/kept" in (await client.get("/calibration")).text
        assert "gone.csv" in await worked_out(client, "/calibration/kept")
    with Store.open(tmp_path / "new") as fresh:
        async with client_of(made_app(fresh, named={"calibrators": [folder]})) as client:
            assert "/calibration/kept" in (await client.get("/calibration")).text, (
                "before any run has scored"
            )
    found = link_texts(Site(own, {}), {"conversation 0", "elsewhere"})
    assert found == {
        "conversation 0": links.link_to_conversation(list_stored_runs(own)[-1].id, "conversation 0")
    }, "of the latest run"


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
    async with client_of(made_app(own, named={"calibrators": [tmp_path / "kept"]})) as client:
        page = await worked_out(client, "/calibration/kept")
    assert "its 95 % interval over texts and judges" in page
    assert page.count("The lowest:") == 1
    assert re.search(r'href="[^"]*conversation(\+|%20)\d', page), (
        "the lowest that a run has open there"
    )
