"""What commands of the browser write: each has a file of its own, also where several wait in a row."""

import shlex
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from web_site import client_of, made_app

from pollex.store.store import Store
from pollex.web.begun import CommandForm, read_form, start_command
from pollex.web.doors.hooks import UseCaseDoor, get_door, list_doors
from pollex.web.output_names import find_free_path
from pollex.web.site import Site

DOORS = [door for door in list_doors() if door.result]


def name_of(words: tuple[str, ...]) -> str:
    """The name of the file that a command writes."""
    (out,) = [word for word in words if word.startswith("--out=")]
    return Path(out.partition("=")[2]).name


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.slug)
def test_forms_that_were_read_together_write_a_file_each(own: Store, door: UseCaseDoor) -> None:
    site = Site(own, {})
    words = (*door.verb.split(), "no.jsonl", f"--out={find_free_path(site, door.result)}")
    forms = [CommandForm(f"{n}", door, {}, (), words, None) for n in range(3)]
    names = [name_of(start_command(site, form).arguments) for form in forms]
    site.children.close()
    stem, _, ending = door.result.rpartition(".")
    assert names == [door.result, f"{stem}-2.{ending}", f"{stem}-3.{ending}"]


async def test_learns_that_wait_in_a_row_write_a_file_each(own: Store) -> None:
    app = made_app(own)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    async with client_of(app) as client:
        await begin_learn(client)
        await begin_learn(client)
        await begin_learn(client)
    names = {name_of(child.arguments) for child in site.children.by_id.values()}
    site.children.close()
    assert names == {"rubrics.json", "rubrics-2.json", "rubrics-3.json"}


async def begin_learn(client: AsyncClient) -> None:
    answer = await client.post("/api/begin/learn", data={"log": "bundled", "o-budget": "7"})
    assert answer.status_code in (200, 303)


def test_a_run_that_waits_for_people_keeps_the_name_of_its_file(own: Store) -> None:
    site = Site(own, {})
    out = find_free_path(site, "remedy.json")
    command = shlex.join(["pollex", "remedy", "run", "talks.jsonl", f"--out={out}"])
    begun = {"command": command, "folder": str(Path.cwd())}
    run = own.begin("remedy", arguments=begun, fingerprint={}, versions={})
    own.finish(run.id, "interrupted")
    assert find_free_path(site, "remedy.json").name == "remedy-2.json"
    own.finish(run.id, "done")
    assert find_free_path(site, "remedy.json").name == "remedy.json", (
        "a file is there, or was taken"
    )


def test_a_plan_takes_no_name(own: Store) -> None:
    site = Site(own, {})
    form = read_form(site, get_door("learn"), {}, ("bundled",))
    child = start_command(site, form, planned=True)
    assert child.arguments[-1] == "--dry-run"
    assert find_free_path(site, "rubrics.json").name == "rubrics.json"
    site.children.close()
