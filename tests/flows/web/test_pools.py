"""A run's page tells what each node changed, takes the pool that a run waits at, and forks a run with another pool."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any

import httpx2
import pytest
from small_runs import Learnt, run_here
from web_site import client_of, made_app

from pollex.rubrics.rubric_set import RubricSet
from pollex.store.resume import find_run
from pollex.store.store import Store


@pytest.fixture(scope="module")
def waiting(learnt: Learnt, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that has ended, and one that waits at its pool."""
    folder = tmp_path_factory.mktemp("pools")
    shutil.copytree(learnt.store, folder / "store")
    about = ("--out", folder / "a.json", "--store", folder / "store", "--seed", "1", "--review", "pool")
    assert run_here("learn", learnt.log, *about).code == 130
    return folder


def rows_in(page: str) -> dict[str, str]:
    """The fields of the first pool of a page, as a browser sends them."""
    form = page[page.index("/pool") :].partition("</form>")[0]
    fields = dict(re.findall(r'name="(text-\d+|was-\d+|node)" value="([^"]*)"', form))
    return fields | {f"polarity-{n}": "sat" for n in range(1, form.count("<select") + 1)}


async def posted(client: httpx2.AsyncClient, run: str, fields: dict[str, str]) -> Any:
    return await client.post(f"/api/runs/{run}/pool", data={name: value for name, value in fields.items() if value})


async def test_a_node_tells_what_it_changed_and_its_whole_state(waiting: Path) -> None:
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-1").id
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{run}")).text
            state = (await client.get(f"/api/runs/{run}/state", params={"node": "deduplicate"})).json()
            none = await client.get(f"/api/runs/{run}/state", params={"node": "nowhere"})
    for node, told in (("deduplicate", "kept "), ("select", "chosen "), ("assess", "figures ")):
        assert f'href="#state-{node}"' in page, "the drawing leads to it"
        assert re.search(rf"<strong>{node}</strong> <span[^>]*>[^<]*{told}\d", page)
    assert "pool" in state
    assert "chosen" not in state, "that comes later"
    assert none.status_code == 404


def test_a_wrong_pool_is_refused_while_the_run_waits_on_and_a_right_one_is_gone_on_with(
    learnt: Learnt, waiting: Path
) -> None:
    dropped, own = asyncio.run(edited(waiting))
    about = ("--out", waiting / "a.json", "--store", waiting / "store", "--seed", "1", "--review", "pool", "--resume")
    assert run_here("learn", learnt.log, *about).code in (0, 3)
    found = RubricSet.load(waiting / "a.json")
    known = {one.text for one in (*found.rubrics, *found.dropped)}
    assert dropped not in known
    assert own in known


async def edited(waiting: Path) -> tuple[str, str]:
    """Edit the pool on the run's page; return the words of the rubric that was taken out, and of the one's own."""
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-2").id
        async with client_of(made_app(store)) as client:
            fields = rows_in((await client.get(f"/runs/{run}")).text)
            own = "The assistant says when it will be back."
            last = {f"text-{len(fields)}": own, f"polarity-{len(fields)}": "sat"}
            twice = fields | {"text-2": fields["text-1"]}
            for wrong, why in ((twice, "stands there twice"), (fields | {"text-1": ""}, "without text")):
                refused = await posted(client, run, wrong)
                assert refused.status_code == 400
                assert why in refused.text
                assert "The pool waits for you" in (await client.get(f"/runs/{run}")).text
            assert (await posted(client, run, fields | {"out-1": "1"} | last)).status_code == 303
            page = (await client.get(f"/runs/{run}")).text
    assert "The pool waits for you" not in page
    assert "--resume" in page
    return fields["text-1"], own


async def test_a_fork_is_a_run_of_its_own_that_names_its_parent(waiting: Path) -> None:
    with Store.open(waiting / "store") as store:
        run = find_run(store, "learn-1").id
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{run}")).text
            fields = rows_in(page[page.index('id="state-deduplicate"') :])
            refused = await posted(client, run, fields | {"text-1": fields["text-2"]})
            assert refused.status_code == 400
            taken = await posted(client, run, fields | {"out-1": "1"})
            page = (await client.get(taken.headers["location"])).text
            made = find_run(store, "last").id
    assert taken.headers["location"] == f"/runs/{made}"
    assert made != run
    assert f"{run}:deduplicate" in page
    assert "--resume" in page, "the command that goes on with it"
