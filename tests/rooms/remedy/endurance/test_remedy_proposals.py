"""`pollex remedy run` without a change of one's own: headroom, proposals, a person who accepts, selection and proof."""

import asyncio
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from remedy_log import FAILS, TARGET, read_table_log, table_rubrics
from small_log import Ended
from small_runs import Pollex
from web_site import client_of, made_app

from pollex.rooms.remedy.services.result import count_people_for_pair
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store

PROMPT = "You book tables for guests of restaurants.\nBe short.\nAsk for what is missing.\n"
SHOP = """
import json
import random

FAILED = {row["messages"][0]["content"] for row in map(json.loads, open("log.jsonl")) if row["thumbs"] == "down"}
FAILS = "I'm sorry, I wasn't able to book a table for Friday at 6 pm."
WORKS = "I've booked a table for Friday at 6 pm. It costs $40."
MENDS = ["another time", "Here above all"]
FAILING = 0.7


def answer(messages, system):
    rng = random.Random(f"inn {messages}{system}")  # in whatever order replies are asked for
    mended = any(words in system for words in MENDS)
    failing = FAILING if messages[-1]["content"] in FAILED else 0.05
    fails = rng.random() < (min(0.1, failing) if mended else failing)
    ends = " Is there anything else that I can do?" * rng.randint(0, 2)
    return (FAILS if fails else WORKS) + ends
"""
KEY = re.compile(r'name="key" value="(\w+)"')
Run = Callable[..., Ended]


def hunk(text: str) -> dict[str, Any]:
    return {
        "kind": "insert",
        "line": 2,
        "text": text,
        "purpose": "offers\x1b[2J more",
        "examples": [1],
    }


def says(match: str, **value: Any) -> dict[str, Any]:
    return {"do": "message", "match": match, "content": json.dumps(value)}


PROPOSALS = (
    "Offer another time where a wish can't be met.",
    "Write to me@example.org when a wish can't be met.",
    "Make sure that the judge is pleased with the reply.",
    "Offer another time where a wish can't be met, please.",
)
OTHERS = [
    says("Which reply helps", why="alike", better="neither"),
    says("statements of fact", facts=[]),
    says(
        "You word rubrics",
        better=[{"i": 1, "texts": ["The assistant fails and leaves the user with nothing."]}],
    ),
    says(
        "Judge the last reply",
        **{str(n): {"why": "so", "turns": [], "answer": "Neutral"} for n in (1, 2, 3)},
    ),
]


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as found:
        each = [
            says("You edit the system prompt", hunks=[hunk(text)]) | {"count": 1}
            for text in PROPOSALS
        ]
        found.script([*each, *OTHERS])
        yield found


@pytest.fixture
def remedying(pollex: Pollex, tmp_path: Path, server: ProtocolServer) -> Run:
    """Runs the command on a log of 260 conversations, with a proposer and a second judge at a server."""
    table_rubrics(read_table_log(tmp_path / "log.jsonl", 260)).save(tmp_path / "rubrics.json")
    profiles = "".join(
        f'[{role}]\nmodel = "m"\nbase_url = "{server.url}"\n' for role in ("proposer", "second")
    )
    for name, text in {"system.md": PROMPT, "shop.py": SHOP, "profiles.toml": profiles}.items():
        (tmp_path / name).write_text(text)
    sys.modules.pop("shop", None)
    known = (
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--prompt",
        "system.md",
        "--json",
    )
    named = ("--target", TARGET, "--assistant", "shop:answer", "--profiles", "profiles.toml")
    return lambda *more: pollex("remedy", "run", *known, *named, *more)


def test_nothing_is_proposed_where_it_no_longer_fails(
    remedying: Run, tmp_path: Path, server: ProtocolServer
) -> None:
    (tmp_path / "shop.py").write_text(SHOP.replace("FAILING = 0.7", "FAILING = 0.0"))
    ended = remedying("--accept", "all")
    assert ended.code == 0, ended.err
    assert (
        ended.last["verdict"]
        == "it no longer fails more there than elsewhere, with this model and prompt"
    )
    assert ended.last["edits"] == ended.last["candidates"] == []


def test_nothing_is_proposed_where_no_prompt_mends_it(remedying: Run, tmp_path: Path) -> None:
    hard = SHOP.replace('MENDS = ["another time", "Here above all"]', "MENDS = []").replace(
        "= 0.7", "= 0.95"
    )
    (tmp_path / "shop.py").write_text(hard)
    ended = remedying("--accept", "all")
    assert ended.last["verdict"] == "no prompt mends this here: it lacks knowledge or tools"
    assert ended.last["headroom"]["room"] > 0.2
    assert ended.last["candidates"] == []


def test_nothing_is_proposed_where_no_reply_came_under_a_prompt(
    remedying: Run, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(
        SHOP.replace("    rng =", "    assert 'Here above all' not in system\n    rng =")
    )
    ended = remedying("--accept", "all")
    assert (
        "too few replies came to tell whether a prompt mends it; missing: ceiling 180 error"
        in ended.last["verdict"]
    )
    assert ended.last["headroom"] is None


def test_proposals_are_vetted_wait_for_a_person_and_the_one_that_helps_is_proven(
    remedying: Run, pollex: Pollex, tmp_path: Path, server: ProtocolServer
) -> None:
    waits = remedying()
    assert waits.code == 75, waits.err
    assert "proposals wait to be accepted" in waits.err
    assert "\\x1b[2J more\n\n--- old" in (tmp_path / "remedy-edits" / "proposal-1.diff").read_text()
    before = server.counts()["received"]
    misread = remedying("--resume", "--accept", "naive,proposal1")
    assert (misread.code, "no proposal is called 'proposal1'" in misread.err) == (2, True)
    ended = remedying("--resume", "--accept", "naive, proposal 1")
    assert ended.code in (0, 4), ended.err
    found = ended.last
    refused = {one["name"]: one["refused"] for one in found["candidates"]}
    assert refused["naive"] == refused["proposal 1"] == ""
    assert "address" in refused["proposal 2"]
    assert "judged" in refused["proposal 3"]
    assert "nearly an earlier one" in refused["proposal 4"]
    assert [one["name"] for one in found["candidates"] if one["proven"]] == ["proposal 1"]
    assert found["edits"][0]["primary"]["effect"]["low"] > 0
    assert found["edits"][0]["pair"]["value"] == 0.5
    # the second judge sees no difference in other words
    assert found["edits"][0]["verdict"] == "only people can tell"
    assert "it depends on the wording of the target" in found["edits"][0]["against"]
    assert server.counts()["received"] > before
    states_are_told(pollex, found["run"], found)
    bodies = (
        sqlite3.connect(tmp_path / ".pollex" / "store.sqlite")
        .execute("SELECT body FROM requests")
        .fetchall()
    )
    judging = [
        str(body)
        for (body,) in bodies
        if "Which reply helps" in str(body) or "Judge the last" in str(body)
    ]
    assert judging
    assert not [
        body
        for body in judging
        if "Be short" in body or "Offer another" in body or "Never reply" in body
    ]
    proposing = [str(body) for (body,) in bodies if "You edit the system prompt" in str(body)]
    assert proposing
    assert not [body for body in proposing if "Strongly" in body or "Judge" in body]
    assert FAILS.split(",")[0] in proposing[0]


def states_are_told(pollex: Pollex, run: str, found: dict[str, Any]) -> None:
    """Each node's state holds what it found, with the first pairs of replies."""
    names = ("gather", "reproduce", "propose", "select", "flatter", "look", "compare", "finish")
    states = {name: pollex("trace", run, "--state", name, "--json").last for name in names}
    assert states["gather"]["split"]["prove"]["failing"] >= 30
    assert states["gather"]["headroom"] is None
    assert states["reproduce"]["headroom"] == found["headroom"]
    told = [
        {name: one[name] for name in ("name", "diff", "refused")}
        for one in states["propose"]["candidates"]
    ]
    assert told == [
        {name: one[name] for name in ("name", "diff", "refused")} for one in found["candidates"]
    ]
    (first, last), (chosen,) = states["select"]["scores"], states["select"]["edits"]
    assert (max(last, key=last.__getitem__), chosen in first) == (chosen, True)
    assert states["flatter"]["flatterer"] == found["flatterer"]
    look = states["look"]["looks"][-1][chosen]
    effect = found["edits"][0]["primary"]["effect"]
    assert {name: look[name] for name in ("value", "low", "high", "n")} == {
        name: effect[name] for name in ("value", "low", "high", "n")
    }
    assert states["compare"]["pairs"][chosen] == found["edits"][0]["pair"]
    assert [one["verdict"] for one in states["finish"]["verdicts"]] == [found["verdict"]]
    assert states["compare"]["first"][0]["replies"].keys() == {"old", chosen}
    assert all(len(json.dumps(state)) < 200_000 for state in states.values())


def test_people_decide_blind_and_a_judge_alone_never_says_better(
    remedying: Run, tmp_path: Path
) -> None:
    (tmp_path / "new.md").write_text(PROMPT + "Offer another time.\n")
    (tmp_path / "profiles.toml").write_text("")
    asked = ("--edit", "new.md", "--set", "people=60")
    waits = remedying(*asked)
    assert waits.code == 75, waits.err
    assert "pairs wait for people" in waits.err
    rows = [
        json.loads(line)
        for line in (tmp_path / "remedy-people" / "pairs.jsonl").read_text().splitlines()
    ]
    assert all(set(row) == {"key", "said", "1", "2"} for row in rows)
    assert "another time" not in json.dumps(rows)
    lefts = sum("wasn't able" in row["1"] and "wasn't able" not in row["2"] for row in rows)
    rights = sum("wasn't able" in row["2"] and "wasn't able" not in row["1"] for row in rows)
    assert min(lefts, rights) > 3  # sides are drawn
    for chosen, verdict, code in (
        ("works", "better, people agree", 0),
        ("fails", "people prefer the old one", 4),
    ):
        lines = [json.dumps({"key": row["key"], "choice": choice(row, chosen)}) for row in rows]
        (tmp_path / "remedy-people" / "choices.jsonl").write_text("\n".join(lines))
        ended = remedying(*asked, "--resume")
        assert ended.last["verdict"] == verdict, ended.last["edits"][0]
        assert ended.last["level"] == "P"
        assert ended.code == code
    (tmp_path / "remedy-people" / "choices.jsonl").write_text('{"key": "a", "choice": "3"}\n')
    assert "choices.jsonl:1" in remedying(*asked, "--resume").err


def test_choices_count_for_the_replies_that_people_saw_and_for_no_other_change_or_run(
    remedying: Run, tmp_path: Path
) -> None:
    (tmp_path / "profiles.toml").write_text("")
    says = {
        "good": "Offer another time.",
        "idle": "Be kind.",
        "also": "Say another time.",
        "new": "Name another time.",
    }
    for name, line in says.items():
        (tmp_path / f"{name}.md").write_text(f"{PROMPT}{line}\n")
    asked = ("--edit", "good.md", "--edit", "idle.md", "--edit", "also.md", "--set", "people=60")
    assert remedying(*asked).code == 75
    rows = [
        json.loads(line)
        for line in (tmp_path / "remedy-people" / "pairs.jsonl").read_text().splitlines()
    ]
    lines = [json.dumps({"key": row["key"], "choice": choice(row, "works")}) for row in rows]
    (tmp_path / "remedy-people" / "choices.jsonl").write_text("\n".join(lines))
    edits = {one["name"]: one for one in remedying(*asked, "--resume").last["edits"]}
    assert sorted(one["level"] for one in edits.values()) == ["P", "R", "R"]
    assert edits["idle"]["people"] is None
    assert "pairs wait for people" in remedying("--edit", "new.md", "--set", "people=60").err


def test_people_compare_pairs_in_the_browser_and_see_no_prompt_or_arm(
    remedying: Run, tmp_path: Path
) -> None:
    (tmp_path / "new.md").write_text(PROMPT + "Offer another time.\n")
    (tmp_path / "profiles.toml").write_text("")
    asked = ("--edit", "new.md", "--set", "people=60")
    assert remedying(*asked).code == 75
    rows = [
        json.loads(line)
        for line in (tmp_path / "remedy-people" / "pairs.jsonl").read_text().splitlines()
    ]
    done = asyncio.run(
        compared(tmp_path / ".pollex", {row["key"]: choice(row, "works") for row in rows})
    )
    assert done == sum(map(count_people_for_pair, (row["key"] for row in rows)))
    ended = remedying(*asked, "--resume")
    assert (ended.last["verdict"], ended.last["level"]) == ("better, people agree", "P")
    assert ">Release<" in asyncio.run(page_of(tmp_path / ".pollex", "/remedies"))


async def compared(folder: Path, choices: dict[str, str]) -> int:
    """Have two people compare all that they are shown; return how many pairs that was."""
    done = 0
    with Store.open(folder) as store:
        stored = list_stored_runs(store)[-1]
        run = stored.id
        assert stored.arguments["people"] == 60
        async with client_of(made_app(store)) as client:
            assert "waiting for people" in (await client.get("/remedies")).text
            for who in ("Ann", "Bo"):
                while found := KEY.search(
                    page := (await client.get(f"/remedies/{run}/compare?who={who}")).text
                ):
                    assert not [
                        word
                        for word in ("another time", "rubric", "prompt", "judge")
                        if word in page
                    ]
                    told = {"key": found[1], "who": who, "choice": choices[found[1]]}
                    assert (await client.post(f"/api/remedies/{run}", json=told)).status_code == 200
                    done += 1
            assert (
                await client.post(f"/api/remedies/{run}", json=told | {"key": "none"})
            ).status_code == 404
    return done


async def page_of(folder: Path, path: str) -> str:
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            return (await client.get(path)).text


def choice(row: dict[str, Any], chosen: str) -> str:
    left, right = ("wasn't able" in row[side] for side in ("1", "2"))
    if left == right:
        return "0"
    return "1" if left == (chosen == "fails") else "2"


def test_several_changes_are_proven_at_once_the_best_first(remedying: Run, tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text("")
    (tmp_path / "good.md").write_text(PROMPT + "Offer another time.\n")
    (tmp_path / "idle.md").write_text(PROMPT + "Be kind.\n")
    ended = remedying("--edit", "idle.md", "--edit", "good.md", "--set", "back=0")
    assert [one["name"] for one in ended.last["edits"]] == ["good", "idle"]
    assert ended.last["edits"][0]["verdict"] == "judged better"
    assert ended.last["edits"][1]["verdict"] == "no difference found"
    assert ended.code == 0


def test_a_plan_counts_headroom_exactly_and_the_rest_at_most(
    remedying: Run, pollex: Pollex, server: ProtocolServer, tmp_path: Path
) -> None:
    with (tmp_path / "profiles.toml").open("a") as file:
        file.write("price_in = 100.0\nprice_out = 500.0\n")  # of the last table
    ended = remedying("--dry-run")
    known = (
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--prompt",
        "system.md",
        "--json",
    )
    named = ("--target", TARGET, "--assistant", "shop:answer", "--profiles", "profiles.toml")
    again = pollex("remedy", "plan", *known, *named).last["plan"]
    assert again["all"]["calls"] == ended.last["plan"]["all"]["calls"]
    assert ended.code == 0, ended.err
    assert server.counts()["received"] == 0
    assert any("80 of 100 proofs" in note for note in ended.last["notes"])
    plan = ended.last["plan"]
    assert plan["propose"]["calls"] == 4
    assert set(plan["propose"]["outcomes"]) == {"planned"}
    second = ended.last["panel"]["second"]
    assert set(second["compare"]["outcomes"]) == {"at most"}
    assert second["reword"]["calls"] == 1
    assert all(one["completion_tokens"] for one in (plan["propose"], *second.values()))
    assert plan["propose"]["prompt_tokens"] > 4 * 300  # with exchanges
    # each at its own price
    assert ended.last["costs"]["at_once"] == pytest.approx(second["all"]["cost"])
    assert any("without that of m, which has no price" in note for note in ended.last["notes"])
