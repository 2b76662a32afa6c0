"""The way of people through a proof: they are asked for, compare by keys, and go on without a terminal."""

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

from web_site import client_of, made_app, made_store

from pollex.rooms.remedy.services.result import read_browser_choices
from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.web.begun import store_text
from pollex.web.site import Site

HTML = {"accept": "text/html"}
SHEET = [
    {"key": f"{n:016x}", "conversation": f"talk {n}", "said": [], "1": "a", "2": "b"}
    for n in (1, 2)
]


def words_of(page: str) -> str:
    """The words of a page, without its marks."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page))).replace("\u202f", " ")


def run_with_pairs(store: Store, site: Site, *words: str) -> Run:
    """A proof that has stopped, and waits for people."""
    command = ["pollex", "remedy", "run", "talks.jsonl", "--target=r1", "--set", "people=3", *words]
    command += [f"--prompt={store_text(site, 'prompt.md', 'You book.')}"]
    command += [f"--edit={store_text(site, 'edit.md', 'You book, and offer.')}"]
    about: dict[str, Any] = {"command": shlex.join(command), "people": 3}
    run = store.begin("remedy", arguments=about, fingerprint={}, versions={})
    run_coroutine_to_end(store.write_step(run.id, "pairs", SHEET))
    store.finish(run.id, "interrupted")
    return run


async def test_a_proof_that_waits_says_how_many_are_compared_and_goes_on_by_a_button(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        app = made_app(store)
        site: Site = app.app.state.site  # type: ignore[attr-defined]
        run = run_with_pairs(store, site)
        here = f"/remedies/{run.id}"
        async with client_of(app) as client:
            first = words_of((await client.get(here, headers=HTML)).text)
            of_run = (await client.get(f"/runs/{run.id}", headers=HTML)).text
            at_work = words_of((await client.get("/at-work", headers=HTML)).text)
            at_home = words_of((await client.get("/", headers=HTML)).text)
            pair = (await client.get(f"{here}/compare?who=Ann", headers=HTML)).text
            for n, row in enumerate(SHEET, 1):
                told = {"key": row["key"], "who": "Ann", "choice": "1"}
                await client.post(f"/api{here}", json=told)
                after = words_of((await client.get(here, headers=HTML)).text)
                assert f"{n} of 2" in after.replace("\N{NO-BREAK SPACE}", " ")
                assert "Go on by this command" in after
            last = (await client.get(f"{here}/compare?who=Ann", headers=HTML)).text
            listed = words_of((await client.get("/remedies", headers=HTML)).text)
            later = words_of((await client.get(f"/runs/{run.id}", headers=HTML)).text)
    assert "0 of 2" in first.replace("\N{NO-BREAK SPACE}", " ")
    assert "3 pairs were asked for" in first.replace("\N{NO-BREAK SPACE}", " ")
    assert "the same reply" in first
    assert "Go on by this command" not in first, "nobody has compared anything"
    assert "was interrupted" not in of_run
    assert "2 pairs to compare" in words_of(of_run)
    assert f'href="{here}"' in of_run
    assert "2 pairs to compare" in at_home
    assert "It waits for you: 2 pairs to compare" in at_work
    assert re.findall(r"<kbd>(\w)</kbd></button>", pair)[:4] == ["1", "2", "0", "S"]
    assert "--resume" not in last
    assert re.search(rf'<a class="button main" href="{here}">Go on</a>', last)
    assert "are compared: go on" in listed
    assert "2 compared pairs, to go on with" in later


async def test_a_proof_without_people_leads_to_its_form_with_the_same_choices_and_people(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        app = made_app(store)
        site: Site = app.app.state.site  # type: ignore[attr-defined]
        models = '[assistant]\nmodel = "gpt"\nbase_url = "https://a.example/v1"\n'
        models += "price_in = 1.0\nprice_out = 2.0\n"
        secret = tmp_path / "elsewhere.md"
        secret.write_text("not of a form")
        run = run_with_pairs(store, site, f"--profiles={store_text(site, 'models.toml', models)}")
        other = store.begin(
            "remedy",
            arguments={"command": f"pollex remedy run talks.jsonl --prompt={secret}"},
            fingerprint={},
            versions={},
        )
        async with client_of(app) as client:
            address = "/begin/remedy-run"
            form = (await client.get(address, params={"like": run.id, "pairs": 60})).text
            strange = (await client.get(address, params={"like": other.id})).text
    fields = dict(re.findall(r'<input[^>]* name="([^"]+)" value="([^"]*)"', form))
    assert fields["o-people"] == "60"
    assert fields["assistant-model"] == "gpt"
    assert fields["assistant-price"] == "1.0:2.0"
    assert ">You book.</textarea>" in form
    assert ">You book, and offer.</textarea>" in form
    assert form.index('name="o-people"') < form.rindex("<summary>More</summary>")
    assert "not of a form" not in strange


async def test_a_proof_that_goes_on_says_so(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        app = made_app(store)
        run = store.begin("remedy", arguments={}, fingerprint={}, versions={})
        async with client_of(app) as client:
            answer = await client.get(f"/remedies/{run.id}", headers=HTML)
    assert answer.status_code == 404
    assert "is at work: it has no verdict yet" in answer.text


async def test_a_skipped_pair_is_not_compared_and_others_are_asked(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        app = made_app(store)
        run = run_with_pairs(store, app.app.state.site)  # type: ignore[attr-defined]
        here = f"/remedies/{run.id}"
        first, second = (row["key"] for row in SHEET)
        async with client_of(app) as client:
            await client.post(f"/api{here}", json={"key": first, "who": "Ann", "choice": "S"})
            skipped = words_of((await client.get(here, headers=HTML)).text)
            of_bo = (await client.get(f"{here}/compare?who=Bo", headers=HTML)).text
            await client.post(f"/api{here}", json={"key": second, "who": "Ann", "choice": "1"})
            end = (await client.get(f"{here}/compare?who=Ann", headers=HTML)).text
            listed = words_of((await client.get("/remedies", headers=HTML)).text)
            # who skipped it may still answer, and then nothing is skipped
            again = (await client.get(f"{here}/compare?who=Ann&key={first}", headers=HTML)).text
            await client.post(f"/api{here}", json={"key": first, "who": "Ann", "choice": "2"})
            after = words_of((await client.get(here, headers=HTML)).text)
    assert "0 of 2 pairs of replies are compared, 1 skipped" in skipped.replace("\xa0", " ")
    assert f'value="{first}"' in of_bo
    assert "1 of 2 pairs is compared, 1 skipped" in words_of(end).replace("\xa0", " ")
    assert f"who=Ann&amp;key={first}" in end
    assert "1 of 2 pairs compared, 1 skipped: go on" in listed.replace("\xa0", " ")
    assert "You said: skipped" in again
    assert "2 of 2 pairs of replies are compared." in after.replace("\xa0", " ")


async def test_an_answered_pair_is_found_again_and_its_answer_changed(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        app = made_app(store)
        run = run_with_pairs(store, app.app.state.site)  # type: ignore[attr-defined]
        here = f"/remedies/{run.id}"
        first, second = (row["key"] for row in SHEET)
        async with client_of(app) as client:
            unseen = await client.get(f"{here}/compare?who=Ann&key={second}", headers=HTML)
            await client.post(f"/api{here}", json={"key": first, "who": "Ann", "choice": "1"})
            now = (await client.get(f"{here}/compare?who=Ann", headers=HTML)).text
            back = (await client.get(f"{here}/compare?who=Ann&key={first}", headers=HTML)).text
            await client.post(f"/api{here}", json={"key": first, "who": "Ann", "choice": "0"})
        choices = read_browser_choices(store, run.id)
    assert unseen.status_code == 404
    assert re.search(rf'href="{here}/compare\?who=Ann&amp;key={first}" data-key="z"', now)
    assert "You said: reply 1" in back
    assert re.search(rf'href="{here}/compare\?who=Ann" data-key="n"', back)
    assert choices[first] == {"Ann": "0"}
