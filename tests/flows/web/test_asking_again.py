"""Asking again: a rubric in other words, another judge, and that nothing is paid twice."""

import asyncio
import re
from html import unescape
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from protocol_server import ProtocolServer
from web_site import client_of, made_app, made_store

from pollex.errors import BadInput
from pollex.store.store import Store
from pollex.web.profiles import read_profiles

ABOUT = {"run": "learn-1", "id": "conversation 1"}


async def came(client: AsyncClient, replay: str) -> str:
    """The page of an asking, once its answer has come."""
    for _ in range(1500):
        live = await client.get("/replay/live", params=ABOUT | {"replay": replay})
        if live.headers["x-pollex-ended"]:
            return re.sub(
                r"\s+", " ", (await client.get("/replay", params=ABOUT | {"replay": replay})).text
            )
        await asyncio.sleep(0.02)
    raise AssertionError("no answer came")


@pytest.mark.parametrize("own", [24], indirect=True)
async def test_other_words_are_answered_beside_the_old_and_kept(
    own: Store, web: AsyncClient
) -> None:
    page = (await web.get("/replay", params=ABOUT)).text
    assert "The user says thanks 1." in page
    same = await web.post(
        "/api/replays", json=ABOUT | {"rubric": "rubric1", "text": " The user says thanks 1."}
    )
    assert same.status_code == 400
    free = {"rubric": "rubric1", "text": "The user asks where a parcel is."}
    begun = await web.post("/api/replays", json=ABOUT | free)
    assert "can't tell this" in unescape(await came(web, begun.json()["replay"])), (
        "likeness answers no question"
    )
    assert own.value("SELECT count(*) FROM replays") == 0
    words = "The user says “<b>parcel</b>”."
    begun = await web.post("/api/replays", json=ABOUT | {"rubric": "rubric1", "text": words})
    shown = await came(web, begun.json()["replay"])
    assert "&lt;b&gt;parcel&lt;/b&gt;”.</ins>" in shown
    assert "The decision" in shown
    again = (await web.get("/replay", params=ABOUT)).text
    assert "Asked before" in again
    assert own.value("SELECT count(*) FROM replays") == 1
    assert own.value("SELECT count(*) FROM runs") == 2, "it is part of no run"


async def test_another_judge_is_asked_once_and_known_the_second_time(tmp_path: Path) -> None:
    with ProtocolServer() as server, made_store(tmp_path / ".pollex", n=6) as store:
        file = tmp_path / "profiles.toml"
        file.write_text(
            f'[mini]\nmodel = "m"\nbase_url = "{server.url}"\nprice_in = 1\nprice_out = 2\nkey_env = "NO_KEY"\n'
        )
        async with client_of(made_app(store, profiles=read_profiles(file))) as client:
            page = (await client.get("/replay", params=ABOUT)).text
            assert "about 2\xa0calls" in page
            assert server.url not in page
            unknown = await client.post(
                "/api/replays", json=ABOUT | {"judge": "http://evil.example"}
            )
            assert unknown.status_code == 400
            shown = []
            paid = []
            for _ in range(2):
                begun = await client.post("/api/replays", json=ABOUT | {"judge": "mini"})
                shown.append(await came(client, begun.json()["replay"]))
                paid.append(server.counts()["paid"])
            calls = store.value("SELECT count(*) FROM calls WHERE reply IS NOT NULL")
        assert "0 calls were sent" in shown[1]
        assert paid[0] == paid[1], "what the endpoint can do is known, too"
        assert calls == store.value("SELECT count(DISTINCT key) FROM calls")


def test_profiles_that_are_wrong_are_refused_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    for text in ("[mini]\nmodell = 'm'\n", "[mini\n", "[mini]\nmodel = 3\n"):
        file.write_text(text)
        with pytest.raises(BadInput, match=r"profiles.toml"):
            read_profiles(file)
