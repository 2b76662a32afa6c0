"""Drafts of rubric sets: versions, what flips, and the file that people edit."""

import tomllib
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from protocol_server import ProtocolServer
from web_site import client_of, made_app, made_store, of_a_model

from pollex.store.store import Store
from pollex.web.profiles import read_profiles


async def begun(client: AsyncClient, store: Store) -> str:
    sets = (await client.get("/sets")).text
    set_id = sets.partition('href="/sets/')[2].partition('"')[0]
    answer = await client.post("/api/drafts", json={"set": set_id})
    assert store.value("SELECT count(*) FROM drafts") == 1
    return str(answer.json()["draft"])


FIELDS = {"version": "1", "on-rubric1": "1", "on-rubric2": "1"}


async def test_a_draft_is_kept_in_versions_of_which_an_earlier_one_is_taken_again(
    own: Store, web: AsyncClient
) -> None:
    draft = await begun(web, own)
    here = f"/api/drafts/{draft}"
    changed = {
        "text-rubric1": "The user is <b>glad</b>.",
        "text-new": "It is short.",
        "polarity-new": "dsat",
    }
    assert (await web.post(here, data=FIELDS | changed)).status_code == 303
    assert (await web.post(here, data=FIELDS | changed)).status_code == 409, (
        "an older page overwrites nothing"
    )
    page = (await web.get(f"/drafts/{draft}")).text
    assert "version 2" in page
    assert "The user is &lt;b&gt;glad" in page
    entries = tomllib.loads((await web.get(f"/drafts/{draft}/file")).text)["rubrics"]
    assert [entry["text"] for entry in entries][-1] == "It is short."
    assert (await web.post(here, data={"version": "2"})).status_code == 400, (
        "without any rubric it scores nothing"
    )
    assert (await web.post(f"{here}/again", json={"version": 7})).status_code == 404
    assert (await web.post(f"{here}/again", json={"version": 1})).json()["version"] == 3
    assert (
        await web.post(here, data=FIELDS | {"version": "3", "remove-rubric2": "1"})
    ).status_code == 303
    every = FIELDS | {"version": "4", "remove-rubric1": "1"}
    assert (await web.post(here, data=every)).status_code == 400, "nothing would be left"
    assert [entry["id"] for entry in (await web.get(here)).json()["entries"]] == ["rubric1"]
    assert "version 3, " in (await web.get(f"/drafts/{draft}")).text
    assert (await web.post(f"{here}/again", json={"version": 3})).json()["version"] == 5
    assert [entry["id"] for entry in (await web.get(here)).json()["entries"]] == [
        "rubric1",
        "rubric2",
    ]


async def test_what_was_typed_over_an_older_version_comes_back_beside_the_newer_one(
    own: Store, web: AsyncClient
) -> None:
    draft = await begun(web, own)
    theirs = FIELDS | {"text-rubric1": "Their words.", "text-new": "It is short."}
    assert (await web.post(f"/api/drafts/{draft}", data=theirs)).status_code == 303
    mine = FIELDS | {
        "text-rubric1": "My <b>words</b>.",
        "text-rubric2": "Two.",
        "text-new": "It is long.",
    }
    mine.pop("on-rubric2")
    page = await web.post(f"/api/drafts/{draft}", data=mine, headers={"Accept": "text/html"})
    assert page.status_code == 409
    assert "My &lt;b&gt;words&lt;/b&gt;.</textarea>" in page.text
    assert "It is long.</textarea>" in page.text
    assert "It is short.</textarea>" in page.text, (
        "what came meanwhile isn't lost by keeping one's own"
    )
    assert "Version 2: on, good: Their words." in page.text
    assert 'name="version" value="2"' in page.text
    assert 'name="on-rubric2" value="1">' in page.text
    assert own.value("SELECT max(version) FROM drafts") == 2


@pytest.mark.parametrize("own", [24], indirect=True)
async def test_the_preview_counts_what_flips_by_the_old_model_and_keeps_nothing(
    own: Store, web: AsyncClient
) -> None:
    draft = await begun(web, own)
    same = (await web.post(f"/api/drafts/{draft}/preview", data=FIELDS)).text
    assert "0\xa0decisions would flip" in same
    one_side = {"version": "1", "on-rubric1": "1"}
    shown = (await web.post(f"/api/drafts/{draft}/preview", data=one_side)).text
    rows = own.ask(own.value("SELECT id FROM runs WHERE command = 'learn'"), "SELECT * FROM scores")
    bad = sum(row["probability"] is not None and row["probability"] < 0.5 for row in rows)
    assert f"{bad}\xa0decisions" in shown, "values of a satisfied rubric alone are all good"
    reworded = FIELDS | {"text-rubric1": "The user asks where a parcel is."}
    shown = (await web.post(f"/api/drafts/{draft}/preview", data=reworded)).text
    assert "AUC alone" in shown
    assert own.value("SELECT count(*) FROM drafts") == 1


async def test_a_models_set_is_fitted_again_from_its_answers_and_only_new_words_take_calls(
    tmp_path: Path,
) -> None:
    with ProtocolServer() as server, made_store(tmp_path / ".pollex", n=30) as store:
        of_a_model(store)
        file = tmp_path / "profiles.toml"
        file.write_text(
            f'[mini]\nmodel = "m"\nbase_url = "{server.url}"\nprice_in = 1\nprice_out = 2\n[big]\nmodel = "n"\n'
        )
        async with client_of(made_app(store, profiles=read_profiles(file))) as client:
            draft = await begun(client, store)
            page = (await client.get(f"/drafts/{draft}")).text
            assert "Fitting asks for nothing" in page
            reworded = FIELDS | {"text-rubric1": "The user asks where a parcel is."}
            told = (await client.post(f"/api/drafts/{draft}/preview", data=reworded)).text
            assert "20\xa0calls" in told
            assert "Preview by mini" in told
            assert "big" not in told, "another model's answers don't mix with these"
            assert server.counts()["received"] == 0, "the price comes first"
            shown = (
                await client.post(f"/api/drafts/{draft}/preview", data=reworded | {"judge": "mini"})
            ).text
            assert "AUC alone" in shown
            await client.post(f"/api/drafts/{draft}", data=reworded)
            page = (await client.get(f"/drafts/{draft}")).text
            assert "20\xa0calls" in page, "two of three have a label"
            assert '<option value="mini">mini, about' in page
            refused = await client.post(f"/api/drafts/{draft}/refit", data={})
            assert refused.status_code == 400
            assert server.url not in page + shown + told
