"""A remedy that waits in the browser: for proposals to be accepted, or for replies that are brought."""

import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from web_site import client_of, made_app, made_store

from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.web.kept_commands import read_kept_command
from pollex.web.site import Site

PROMPT = "You book tables.\nBe short.\n"
OFFER = "Offer another time where a wish can't be met."
HTML = {"accept": "text/html"}


def waiting_run(store: Store, *words: str) -> Run:
    """A run of `remedy run` that has stopped to wait, begun by a form of the server."""
    command = shlex.join(["pollex", "remedy", "run", "talks.jsonl", *words])
    run = store.begin("remedy", arguments={"command": command}, fingerprint={}, versions={})
    store.finish(run.id, "interrupted")
    return run


def profiles(store: Store, text: str) -> str:
    folder = store.folder / "texts" / "0123"
    folder.mkdir(parents=True)
    path = folder / "models.toml"
    path.write_text(text)
    return f"--profiles={path}"


def proposed(store: Store, run: Run) -> None:
    candidates: list[dict[str, Any]] = [
        {"name": "naive", "purpose": "the plain opposite", "text": f"{PROMPT}{OFFER}\n"},
        {"name": "proposal 1", "purpose": "<b>more</b>", "text": f"Never refuse.\n{PROMPT}"},
        {"name": "proposal 2", "purpose": "", "text": PROMPT},
    ]
    for candidate in candidates:
        candidate |= {"diff": "", "refused": "" if candidate["purpose"] else "it takes text away"}
    step = {"prompt": PROMPT, "candidates": candidates}
    run_coroutine_to_end(store.write_step(run.id, "proposed", step))


async def test_proposals_stand_beside_the_prompt_and_those_that_are_ticked_are_proved(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        word = profiles(store, '[assistant]\nmodel = "m"\nkey_env = "POLLEX_ASSISTANT_KEY"\n')
        run = waiting_run(store, word)
        proposed(store, run)
        app = made_app(store)
        site: Site = app.app.state.site  # type: ignore[attr-defined]
        kept = read_kept_command(site, run)
        assert kept is not None
        async with client_of(app) as client:
            page = unescape((await client.get(f"/remedies/{run.id}", headers=HTML)).text)
            listed = (await client.get("/remedies", headers=HTML)).text
            address = f"/api/remedies/{run.id}/accept"
            none_ticked = await client.post(address, json={"confirmed": kept.digest})
            refused = {"name": ["proposal 2"], "confirmed": kept.digest}
            of_refused = await client.post(address, json=refused)
            unsaid = await client.post(address, json={"name": ["naive"]})
            ticked = {"name": ["naive", "proposal 1"], "confirmed": kept.digest, "key": "sk-1"}
            begun = await client.post(address, json=ticked)
        assert f"<ins>{OFFER}</ins>" in page
        assert "1 were refused" in page
        assert "it takes text away" in page
        assert "to look at and accept" in listed
        assert (none_ticked.status_code, of_refused.status_code) == (400, 404)
        assert unsaid.status_code == 409
        child = site.children.find(begun.json()["child"])
        site.children.close()
    assert child.arguments[-1] == "--accept=naive,proposal 1"
    assert "--resume" in child.arguments
    assert child.environment["POLLEX_ASSISTANT_KEY"] == "sk-1"


@pytest.mark.parametrize(
    "words",
    [
        ('[assistant]\nmodel = "m"\nkey_env = "AWS_SECRET_ACCESS_KEY"\n',),
        ('[assistant]\nmodel = "m"\nbase_url = "https://evil.example/v1"\n',),
        ("not toml",),
        ("",),
    ],
)
def test_a_file_of_models_that_no_form_wrote_is_not_gone_on_with(
    tmp_path: Path, words: tuple[str]
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = waiting_run(store, profiles(store, *words))
        assert read_kept_command(Site(store, {}), run) is None


@pytest.mark.parametrize("word", ["--assistant=shop:answer", "--assistant=/tmp", "--assistant=.."])
def test_an_assistant_that_is_code_or_a_folder_elsewhere_is_not_gone_on_with(
    tmp_path: Path, word: str
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = waiting_run(store, word)
        assert read_kept_command(Site(store, {}), run) is None


def test_the_servers_key_goes_to_no_assistant_at_an_address_that_its_owner_did_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-owner")
    table = '[assistant]\nmodel = "m"\nkey_env = "POLLEX_ASSISTANT_KEY"\n'
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = waiting_run(store, profiles(store, f'{table}base_url = "https://evil.example/v1"\n'))
        kept = read_kept_command(Site(store, {}), run)
    assert kept is not None
    assert kept.environment["POLLEX_ASSISTANT_KEY"] == ""


async def test_replies_are_brought_as_a_file_and_the_run_goes_on(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        folder = store.folder / "asked" / "0123"
        folder.mkdir(parents=True)
        (folder / "todo.jsonl").write_text('{"key": "k1", "messages": []}\n{"key": "k2"}\n')
        run = waiting_run(store, f"--assistant={folder}")
        app = made_app(store)
        site: Site = app.app.state.site  # type: ignore[attr-defined]
        kept = read_kept_command(site, run)
        assert kept is not None
        async with client_of(app) as client:
            page = unescape((await client.get(f"/remedies/{run.id}", headers=HTML)).text)
            asked = await client.get(f"/remedies/{run.id}/todo.jsonl")
            address = f"/api/remedies/{run.id}/replies"
            said = {"confirmed": kept.digest}
            bad = await client.post(address, json=said | {"lines": '{"key": 1}'})
            lines = '{"key": "k1", "reply": "Yes."}\n{"key": "k2", "reply": null}'
            unsaid = await client.post(address, json={"lines": lines})
            assert not (folder / "replies.jsonl").exists()
            begun = await client.post(address, json=said | {"lines": lines})
        site.children.close()
    assert "2 replies wait" in page.replace("\u202f", " ").replace("\xa0", " ")
    assert asked.text.count("\n") == 2
    assert (bad.status_code, unsaid.status_code, begun.status_code) == (400, 409, 200)
    assert (folder / "replies.jsonl").read_text().count("\n") == 2
    assert (folder / "replies.jsonl").stat().st_mode & 0o077 == 0
