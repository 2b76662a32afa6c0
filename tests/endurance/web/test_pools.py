"""A run's page tells what each node changed, takes the pool that a run waits at, and forks a run with another pool."""

import asyncio
import contextlib
import re
import shutil
import sqlite3
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from protocol_server import ProtocolServer
from small_runs import Learnt, run_here
from web_site import client_of, made_app

from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.pool_review import RunFork, begin_forked_run
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.resume import find_run, read_facts_by_id
from pollex.store.store import Store
from pollex.web.kept_commands import go_on_with_run


@pytest.fixture(scope="module")
def waiting(learnt: Learnt, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that has ended, whose file is here, too, and one that waits at its pool."""
    folder = tmp_path_factory.mktemp("pools")
    shutil.copytree(learnt.store, folder / "store")
    shutil.copy(learnt.rubrics, folder)
    with contextlib.closing(sqlite3.connect(folder / "store" / DATABASE_FILE_NAME)) as database:
        moved = [str(learnt.rubrics), str(folder / learnt.rubrics.name)]
        database.execute("UPDATE runs SET arguments = replace(arguments, ?, ?)", moved)
        database.commit()
    about = (
        "--out",
        folder / "a.json",
        "--store",
        folder / "store",
        "--seed",
        "1",
        "--review",
        "pool",
    )
    assert run_here("learn", learnt.log, *about).code == 75
    return folder


def rows_in(page: str) -> dict[str, str]:
    """The fields of the first pool of a page, as a browser sends them."""
    form = page[page.index("/pool") :].partition("</form>")[0]
    fields = dict(re.findall(r'name="(was-\d+|node|confirmed)" value="([^"]*)"', form))
    fields |= {
        name: unescape(text)
        for name, text in re.findall(r'<textarea name="(text-\d+)"[^>]*>([^<]*)<', form)
    }
    return fields | {f"polarity-{n}": "sat" for n in range(1, form.count("<select") + 1)}


async def posted(client: httpx2.AsyncClient, run: str, fields: dict[str, str]) -> Any:
    return await client.post(
        f"/api/runs/{run}/pool", data={name: value for name, value in fields.items() if value}
    )


async def test_a_node_tells_what_it_changed_and_its_whole_state(waiting: Path) -> None:
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-1").id
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{run}")).text
            state = (
                await client.get(f"/api/runs/{run}/state", params={"node": "deduplicate"})
            ).json()
            none = await client.get(f"/api/runs/{run}/state", params={"node": "nowhere"})
    for node, words, told in (
        ("deduplicate", "Merging what says the same", "kept "),
        ("select", "Selecting rubrics", "chosen "),
        ("assess", "Assessing", "figures "),
    ):
        assert f'href="#state-{node}"' in page, "the drawing leads to it"
        assert re.search(rf"<strong>{words}</strong> <span[^>]*>[^<]*{told}\d", page)
    assert "pool" in state
    assert "chosen" not in state, "that comes later"
    assert none.status_code == 404


async def carried_on(client: httpx2.AsyncClient, run: str) -> Any:
    """The run as JSON once the command that the server started for it has ended; its page, meanwhile, says so."""
    page = (await client.get(f"/runs/{run}")).text
    assert f'data-live="/runs/{run}/live"' in page, "the page shows how far it is"
    child = re.findall(r"/children/([0-9a-f]{8})", page)[0]
    for _ in range(600):
        told = (await client.get(f"/api/children/{child}")).json()
        if told["state"] not in ("waiting", "running"):
            break
        await asyncio.sleep(0.1)
    return (await client.get(f"/api/runs/{run}")).json() | {"child": told}


def rubrics_of(store: Store, run: str) -> tuple[RubricSet, set[str]]:
    """The set that a run made, and the words of all that it chose from."""
    (found,) = read_facts_by_id(store, run, "rubric_set").values()
    made = RubricSet.parse(found)
    return made, {one.text for one in (*made.rubrics, *made.dropped)}


async def test_a_wrong_pool_is_refused_while_the_run_waits_on_and_with_a_right_one_it_goes_on_by_itself(
    waiting: Path,
) -> None:
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-2").id
        async with client_of(made_app(store)) as client:
            fields = rows_in((await client.get(f"/runs/{run}")).text)
            own = "The assistant says when it will be back."
            last = {f"text-{len(fields)}": own, f"polarity-{len(fields)}": "sat"}
            twice = fields | {"text-2": fields["text-1"]}
            for wrong, why in (
                (twice, "stands there twice"),
                (fields | {"text-1": ""}, "without text"),
            ):
                refused = await posted(client, run, wrong)
                assert refused.status_code == 400
                assert why in refused.text
                page = (await client.get(f"/runs/{run}")).text
                assert "The pool waits for you" in page
                assert "It was interrupted" not in page, "it waits, and nothing went wrong"
            assert (await posted(client, run, fields | {"out-1": "1"} | last)).status_code == 303
            assert "The pool waits for you" not in (await client.get(f"/runs/{run}")).text
            ended = await carried_on(client, run)
            assert ended["status"] in ("done", "partial"), ended["child"]
        made, known = rubrics_of(store, run)
    assert fields["text-1"] not in known
    assert own in known
    assert RubricSet.load(waiting / "a.json").rubrics_digest == made.rubrics_digest, (
        "where the command wanted it"
    )


async def test_a_fork_at_select_goes_on_by_itself_and_is_paid_for_nowhere_before(
    waiting: Path,
) -> None:
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-1").id
        written = RubricSet.load(waiting / "rubrics.json", arrays=False)
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{run}")).text
            fields = rows_in(page[page.index('id="state-select"') :])
            refused = await posted(client, run, fields | {"text-1": fields["text-2"]})
            assert refused.status_code == 400
            taken = await posted(client, run, fields | {"out-1": "1"})
            made = find_run(store, "last").id
            assert taken.headers["location"] == f"/runs/{made}"
            assert f"{run}:select" in (await client.get(f"/runs/{made}")).text
            ended = await carried_on(client, made)
            assert ended["status"] in ("done", "partial"), ended["child"]
        spans = {
            row["name"]
            for row in store.rows("SELECT DISTINCT name FROM spans WHERE run = ?", [made])
        }
        known = rubrics_of(store, made)[1]
    assert not spans & {
        "extract",
        "fit_extractor",
        "summarize_sat",
        "summarize_dsat",
        "deduplicate",
    }
    assert "select" in spans, "what was edited is chosen from anew"
    assert fields["text-1"] not in known
    assert RubricSet.load(waiting / "rubrics.json", arrays=False) == written, (
        "the fork writes beside its parent's file"
    )


async def test_what_keeps_a_run_from_going_on_stands_on_its_page_with_the_command(
    waiting: Path,
) -> None:
    with ProtocolServer() as server, Store.open(waiting / "store") as store:
        parent = find_run(store, "learn-1")
        server.script([{"do": "status", "code": 401}])
        command = f"{parent.arguments['command']} --model mini --base-url {server.url}"
        arguments = {**parent.arguments, "command": command, "model": "mini"}
        fork = await begin_forked_run(
            store, RunFork(parent.id, "select"), arguments, parent.fingerprint
        )
        app = made_app(store)
        async with client_of(app) as client:
            go_on_with_run(app.app.state.site, fork)  # type: ignore[attr-defined]
            ended = await carried_on(client, fork.id)
            page = (await client.get(f"/runs/{fork.id}")).text
    assert ended["status"] == "interrupted"
    assert "no key was sent: set OPENAI_API_KEY" in page
    assert f"--resume --from {fork.id}" in page
