"""Forms are made of the use cases' fields, and what is typed in them becomes a command."""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from web_site import client_of, made_app

from pollex.store.store import Store
from pollex.usecases.use_case import iterate_options
from pollex.web.begun import write_set_word
from pollex.web.children import Child, Children
from pollex.web.doors.hooks import UseCaseDoor, list_doors
from pollex.web.site import Site

KEY = "sk-this-is-nobody's-key-0123456789"
HTML = {"accept": "text/html"}


def labels_of(page: str) -> dict[str, str]:
    """The label of each control of a page by its name: of its own, around it, or of its fieldset."""
    by_id = dict(re.findall(r'<label for="([^"]+)">([^<]+)</label>', page))
    around = re.findall(r'<label><input type="checkbox"[^>]* name="([^"]+)"[^>]*>\s*([^<]+)', page)
    boxes = re.findall(r"<legend>([^<]+)</legend>\s*<label><input[^>]* name=\"(log)\"", page)
    return by_id | dict(around) | {name: legend for legend, name in boxes}


@pytest.mark.parametrize("door", list_doors(), ids=lambda door: door.slug)
async def test_each_field_of_a_use_case_has_a_control_with_a_label_or_a_reason_why_not(
    door: UseCaseDoor, client: AsyncClient
) -> None:
    page = (await client.get(f"/begin/{door.slug}")).text
    labels = labels_of(page)
    special = {"logs": "log", "sources": "log", "domain": "domain-assistant"}
    special |= {"profiles": "assistant-model"}
    if door.two_logs:
        special["logs"] = "log-0"
    for option in iterate_options(door.use_case):
        name = special.get(option.name, f"o-{option.name}")
        if option.door == "python":
            assert name not in labels, "only Python has it"
        elif reason := door.reason_against(option.name):
            assert name not in labels, reason
        else:
            assert labels.get(name, "").strip(), f"{option.name} has no control with a label"


def test_what_people_need_can_be_begun() -> None:
    slugs = [door.slug for door in list_doors()]
    assert slugs[:3] == ["learn", "label-queue", "score"]
    assert {"evaluate", "compare", "check", "remedy-brief", "remedy-run"} <= {*slugs}


async def test_a_form_shows_the_command_of_what_is_filled_in(client: AsyncClient) -> None:
    typed = {
        "log": "bundled",
        "o-budget": "7",
        "o-positive": "solved\ngreat",
        "o-comments": "no",
        "o-canary": "yes",
        "do": "look",
    }
    page = (await client.post("/api/begin/learn", data=typed, headers=HTML)).text
    command = unescape(re.findall(r'id="command">([^<]*)<', page)[0])
    words = shlex.split(command)
    assert words[:2] == ["pollex", "learn"]
    assert {"--budget=7", "--positive=solved", "--positive=great"} <= {*words}
    assert "comments=no" in words
    assert "canary=yes" in words
    assert "--group-field=user_id" in words, "the bundled log has users"
    assert 'value="7"' in page, "what was typed stays"
    assert 'value="bundled" checked' in page


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({}, "no log is chosen"),
        ({"log": "/etc/passwd"}, "there is no log"),
        ({"log": "file:../secret.jsonl"}, "there is no log"),
        ({"log": "bundled", "o-budget": "many"}, "is none"),
        ({"log": "bundled", "o-seed": "nan"}, "is none"),
        ({"log": "bundled", "o-thumbs": "all"}, "is none"),
        ({"log": "bundled", "o-concurrency": "0.5"}, "is none"),
        ({"log": "bundled", "o-starter": "/etc/passwd"}, "there is no rubric set"),
        ({"log": "bundled", "o-base_url": "https://8.8.8.8/v1"}, "the model has no name"),
        ({"log": "bundled", "domain-assistant": "x" * 3000}, "too long"),
    ],
)
async def test_a_form_that_is_wrong_comes_back_with_what_was_typed(
    client: AsyncClient, typed: dict[str, str], says: str
) -> None:
    answer = await client.post("/api/begin/learn", data=typed, headers=HTML)
    assert answer.status_code in (400, 403)
    assert says in unescape(answer.text)
    assert 'action="/api/begin/learn"' in answer.text


async def test_no_form_takes_a_field_that_makes_no_sense_in_a_browser(client: AsyncClient) -> None:
    for name in ("out", "store", "engine", "assistant", "batch_files", "events"):
        typed = {"log": "bundled", f"o-{name}": "/tmp/elsewhere", "do": "look"}
        page = (await client.post("/api/begin/learn", data=typed, headers=HTML)).text
        assert "/tmp/elsewhere" not in re.findall(r'id="command">([^<]*)<', page)[0]


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/v1",
        "http://localhost:1/v1",
        "http://[::1]/v1",
        "http://[::ffff:10.0.0.1]/v1",
        "http://[64:ff9b::a00:1]/v1",
        "http://169.254.169.254/latest",
        "http://192.168.0.1/v1",
        "http://0.0.0.0/v1",
        "http://2130706433/v1",
        "http://0x7f.1/v1",
    ],
)
async def test_an_address_of_the_servers_own_network_is_asked_only_for_its_owner(
    store: Store, address: str
) -> None:
    typed = {"log": "bundled", "o-model": "m", "o-base_url": address, "do": "look"}
    async with client_of(made_app(store)) as client:
        refused = await client.post("/api/begin/learn", data=typed, headers=HTML)
        assert "own network" in refused.text or "is not an http(s) address" in refused.text
    async with client_of(made_app(store, local_endpoints=True)) as client:
        page = (await client.post("/api/begin/learn", data=typed, headers=HTML)).text
        assert "own network" not in page


async def test_an_address_with_a_key_is_refused(store: Store) -> None:
    typed = {"log": "bundled", "o-model": "m", "o-base_url": "https://u:secret@example.org/v1"}
    async with client_of(made_app(store, local_endpoints=True)) as client:
        refused = await client.post("/api/begin/learn", data=typed, headers=HTML)
    assert "type it into the field Key" in refused.text


async def test_logs_beside_the_store_can_be_chosen_and_what_pollex_wrote_cannot(
    own: Store, tmp_path: Path
) -> None:
    (tmp_path / "talks.jsonl").write_text("{}\n")
    (tmp_path / ".hidden.jsonl").write_text("{}\n")
    (tmp_path / "-x.jsonl").write_text("{}\n")
    (tmp_path / "notes.md").write_text("x")
    async with client_of(made_app(own, here=tmp_path)) as client:
        page = (await client.get("/begin/learn")).text
        assert re.findall(r'name="log" value="([^"]+)"', page) == ["file:talks.jsonl", "bundled"]
    async with client_of(made_app(own)) as client:
        page = (await client.get("/begin/learn")).text
        assert re.findall(r'name="log" value="([^"]+)"', page) == ["bundled"]


async def test_a_key_that_was_typed_reaches_the_command_by_its_environment_alone(
    own: Store,
) -> None:
    typed = {
        "log": "bundled",
        "o-model": "m",
        "o-base_url": "http://127.0.0.1:9/v1",
        "o-max_cost": "5",
        "key": KEY,
    }
    app = made_app(own, local_endpoints=True)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    async with client_of(app) as client:
        answer = await client.post("/api/begin/learn", data=typed, headers=HTML)
        plan = answer.headers["location"]
        (child,) = site.children.by_id.values()
        page = (await client.get(plan)).text
        form = (await client.get(child.back)).text
        told = (await client.get("/api/at-work")).text
    site.children.close()
    assert child.environment["OPENAI_API_KEY"] == KEY
    assert child.arguments[-1] == "--dry-run"
    assert not any("max-cost" in word for word in child.arguments), "without a price nobody counts"
    for shown in (*child.arguments, page, form, told, repr(child), repr(site)):
        assert KEY not in shown
    kept = [path for path in own.folder.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


async def test_the_servers_key_goes_to_no_address_that_somebody_typed(
    own: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    typed = {"log": "bundled", "o-model": "m", "o-base_url": "http://127.0.0.1:9/v1"}
    app = made_app(own, local_endpoints=True)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    async with client_of(app) as client:
        await client.post("/api/begin/learn", data=typed, headers=HTML)
        await client.post("/api/begin/learn", data={"log": "bundled", "o-model": "m"})
    strange, named = site.children.by_id.values()
    site.children.close()
    assert strange.environment["OPENAI_API_KEY"] == ""
    assert named.environment["OPENAI_API_KEY"] == KEY


async def test_nothing_is_begun_on_a_server_that_only_shows(store: Store) -> None:
    async with client_of(made_app(store, read_only=True)) as client:
        refused = await client.post("/api/begin/learn", data={"log": "bundled"})
        assert refused.status_code == 403
        assert "nothing can be begun" in (await client.get("/begin/learn")).text


def test_a_rubric_set_is_named_by_its_digest_where_the_store_has_it(own: Store) -> None:
    site = Site(own, {})
    named = next(iter(site.sets().values()))
    assert write_set_word(site, named) == named.id


def test_a_record_of_a_strangers_store_removes_nothing_outside_of_it(tmp_path: Path) -> None:
    commands = tmp_path / ".pollex" / "commands"
    commands.mkdir(parents=True)
    outside = tmp_path / "mine.txt"
    outside.write_text("x")
    record = commands / "0123abcd.json"
    kept = {"words": "w", "arguments": [], "back": "/", "began": "", "pid": 1}
    record.write_text(json.dumps(kept | {"remove": [str(outside)]}))
    children = Children(commands)
    children.find_again()
    assert children.by_id == {}
    assert outside.exists()
    assert not record.exists()


async def test_a_proof_asks_the_assistant_that_was_typed_with_its_key_in_the_environment_alone(
    own: Store,
) -> None:
    app = made_app(own, local_endpoints=True)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    named = next(iter(site.sets().values()))
    typed = {
        "log": ["bundled"],
        "o-rubrics": named.id,
        "o-target": named.rubric_set.rubrics[0].id,
        "o-prompt": "You help.",
        "o-edit": "You help, and say when you can't.",
        "assistant-model": "m",
        "assistant-base_url": "http://127.0.0.1:9/v1",
        "assistant-price": "1:2",
        "key_of_assistant": KEY,
    }
    async with client_of(app) as client:
        answer = await client.post("/api/begin/remedy-run", json=typed)
        assert "plan" in answer.json(), "it is planned first"
        refused = await client.post("/api/begin/remedy-run", json=typed | {"assistant-price": "x"})
        assert "is no price" in refused.json()["error"]
    (child,) = site.children.by_id.values()
    site.children.close()
    assert child.environment["POLLEX_ASSISTANT_KEY"] == KEY
    assert child.arguments[-1] == "--dry-run"
    kept = [path for path in own.folder.rglob("*") if path.is_file()]
    assert [path.name for path in kept if b'model = "m"' in path.read_bytes()] == ["models.toml"]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


async def test_a_button_of_the_form_has_the_model_draft_the_profile_and_the_draft_fills_it_in(
    own: Store,
) -> None:
    app = made_app(own, local_endpoints=True)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    typed = {"log": "bundled", "o-budget": "7", "do": "draft", "key": KEY}
    drafted = {"assistant": "the chat of a shop", "expectations": ["book", "say when it can't"]}
    async with client_of(app) as client:
        refused = await client.post("/api/begin/learn", data=typed, headers=HTML)
        assert "no model is named" in refused.text
        assert 'action="/api/begin/learn"' in refused.text, "what was typed stays"
        typed |= {"o-model": "m", "o-base_url": "http://127.0.0.1:9/v1"}
        answer = await client.post("/api/begin/learn", data=typed, headers=HTML)
        (counting,) = site.children.by_id.values()
        assert counting.arguments[:2] == ("domain", "draft")
        assert counting.arguments[-1] == "--dry-run", "cost comes first"
        begun = answer.headers["location"].rpartition("/")[2]
        child = Child(
            "0123abcd",
            "Draft",
            ("domain", "draft"),
            f"/begin/domain-draft?begun={begun}",
            site.children.folder / "0123abcd.json",
            told={"profile": drafted},
            state="done",
        )
        site.children.by_id[child.id] = child
        # with the form that asked, and on a server that has forgotten it
        for before in (begun, "gone"):
            address = f"/begin/learn?begun={before}&drafted={child.id}"
            form = unescape((await client.get(address)).text)
            assert "the chat of a shop</textarea>" in form
            assert "book\nsay when it can't</textarea>" in form
            assert KEY not in form
            assert ('value="7"' in form) == (before == begun)
    site.children.close()


async def test_words_for_the_values_of_one_choice_stand_at_no_other(own: Store) -> None:
    async with client_of(made_app(own)) as client:
        page = (await client.get("/begin/learn")).text
    assert page.count("no: judge them at once") == 1


async def test_logs_to_compare_are_chosen_as_before_and_after(own: Store, tmp_path: Path) -> None:
    (tmp_path / "may.jsonl").write_text("{}\n")
    (tmp_path / "june.jsonl").write_text("{}\n")
    async with client_of(made_app(own, here=tmp_path)) as client:
        page = (await client.get("/begin/compare")).text
        assert len(re.findall(r'<select id="log-\d" name="log">', page)) == 2
        rubrics = re.findall(r'<option value="(\w+)"[^>]*>[^<]*rubric', page)[0]
        typed = {"do": "look", "log": ["file:may.jsonl", "file:june.jsonl"], "o-rubrics": rubrics}
        shown = (await client.post("/api/begin/compare", data=typed)).json()
    assert re.search(r"may\.jsonl \S*june\.jsonl", shown.get("command", "")), shown
