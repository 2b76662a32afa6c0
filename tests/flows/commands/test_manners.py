"""Every manner of an endpoint comes to one result, by as many calls, and `doctor` says what is lost without what.

By default each manner is tried with one verb in turn, `learn` with two manners, `remedy run` with
three; all with all at night. A proof takes thirty users with a failing context each, so that is
what a remedy has here.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from protocol_server import ProtocolServer
from protocol_server.manners import manners
from remedy_log import TARGET, read_table_log, table_rubrics
from small_log import read_rows, small_log, write_log
from small_runs import run_here

from pollex.runs.options import ModelOptions
from pollex.services.doctor import ExaminedEndpoint

ALL = manners()
IDEAL = "openai_chat"
LEARNED_BY_DEFAULT = (IDEAL, "dashscope_thinking")
MENDED_BY_DEFAULT = (IDEAL, "magistral", "lm_studio_thinking")
DOCS = Path(__file__).parents[3] / "docs" / "models.md"
CASE = {
    "question_id": 1,
    "question": "Why?",
    "reference": "Because.",
    "category": "advice",
    "answer": "So.",
}
QUESTION = '[[question]]\nid = "Q1"\ntext = "Good?"\noptions = [[0, "no"], [1, "yes"]]\n'
PROMPT = "You book tables.\nBe short.\n"
EDIT = "@@ -2,1 +2,2 @@\n Be short.\n+Offer another time where one fails.\n"
VOLATILE = ("run", "judge", "source", "variant", "model", "justification", "turns")
"""The last two differ with the place of an attention check, which each store draws for itself."""


class Came(NamedTuple):
    """What a verb came to, and the calls that it took beside the probe's."""

    result: Any
    calls: int


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, server: ProtocolServer) -> Iterator[Path]:
    """A folder with the logs, and a set that was learned from the model behind all manners."""
    folder = tmp_path_factory.mktemp("manners")
    before = Path.cwd()
    os.chdir(folder)
    write_log(folder / "log.jsonl", small_log(10))
    write_log(folder / "few.jsonl", small_log(3)[:4])
    write_log(folder / "cases.jsonl", [CASE])
    (folder / "q.toml").write_text(QUESTION)
    table_rubrics(read_table_log(folder / "tables.jsonl", 60)).save(folder / "tables.json")
    (folder / "system.md").write_text(PROMPT)
    (folder / "edit.diff").write_text(EDIT)
    yield folder
    os.chdir(before)


def came_of(server: ProtocolServer, manner: str, verb: str, *arguments: str, out: str) -> Came:
    """Runs a command with a store of its own on a manner, and reads the rows that it wrote."""
    server.behave(ALL[manner])
    base = (
        "--base-url",
        server.url,
        "--store",
        f"{verb}-{manner}",
        "--json",
        "--out",
        f"{manner}-{out}",
    )
    model = () if verb == "score" else ("--model", "m")
    ended = run_here(verb, *arguments, *model, *base)
    assert ended.code == 0, ended.err
    counts = server.counts()
    probed = ended.last["probe_calls"]
    refused = sum(number for status, number in counts["statuses"].items() if status != "200")
    assert refused < probed, "only the probe is refused"
    return Came(rows_of(Path(f"{manner}-{out}")), counts["received"] - probed)


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        found = duckdb.sql(f"SELECT * FROM '{path}'")
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    elif path.suffix == ".json":
        rows = json.loads(path.read_text())["rubrics"]
        rows = [{name: row[name] for name in ("text", "polarity")} for row in rows]
    else:
        rows = read_rows(path)
    return [steady(row) for row in rows]


def steady(value: Any) -> Any:
    """A value without what names the run or the way in which was asked."""
    if isinstance(value, dict):
        return {name: steady(inner) for name, inner in value.items() if name not in VOLATILE}
    return [steady(inner) for inner in value] if isinstance(value, list) else value


def learned(server: ProtocolServer, manner: str) -> Came:
    own = ("--set", "without=built-in")  # else a set may have no rubric that the model answers
    return came_of(server, manner, "learn", "log.jsonl", *own, out="set.json")


def scored(server: ProtocolServer, manner: str) -> Came:
    ideal_of(server, "learn")
    return came_of(
        server, manner, "score", "few.jsonl", "--rubrics", f"{IDEAL}-set.json", out="scores.jsonl"
    )


def judged(server: ProtocolServer, manner: str) -> Came:
    asked = ("--question", "Was the task completed?", "--ensemble", "3", "--set", "variant=v0")
    return came_of(server, manner, "judge", "few.jsonl", *asked, out="verdicts.jsonl")


def asked(server: ProtocolServer, manner: str) -> Came:
    return came_of(
        server, manner, "ask", "few.jsonl", "--questionnaire", "q.toml", out="answers.parquet"
    )


def graded(server: ProtocolServer, manner: str) -> Came:
    return came_of(server, manner, "grade", "cases.jsonl", out="grades.jsonl")


def mended(server: ProtocolServer, manner: str) -> Came:
    """What a remedy comes to whose assistant and second judge are the model: its verdict, and what was asked."""
    server.behave(ALL[manner])
    asked = f'model = "m"\nbase_url = "{server.url}"\n'
    Path("profiles.toml").write_text(f"[assistant]\n{asked}\n[second]\n{asked}")
    target = (
        "--target",
        TARGET,
        "--prompt",
        "system.md",
        "--edit",
        "edit.diff",
        "--group-field",
        "user",
    )
    out = (
        "--profiles",
        "profiles.toml",
        "--store",
        f"remedy-{manner}",
        "--out",
        f"{manner}-remedy.json",
        "--json",
    )
    ended = run_here("remedy", "run", "tables.jsonl", "--rubrics", "tables.json", *target, *out)
    assert ended.code == 0, ended.err
    (edit,) = ended.last["edits"]
    found = {name: ended.last[name] for name in ("verdict", "contexts", "missing")} | {
        "primary": edit["primary"]
    }
    replies = duckdb.sql(
        f"SELECT arm, reply, count(*) FROM '{manner}-remedy-pairs.parquet' GROUP BY ALL ORDER BY ALL"
    )
    found["replies"] = replies.fetchall()
    calls = ended.last["usage"]["all"]["calls"] + ended.last["second"]["all"]["calls"]
    asked = server.counts()["received"] - 2 * ended.last["probe_calls"]
    assert asked == calls, "the probe asks of each role, and nothing is asked that isn't counted"
    return Came(found, calls)


VERBS: dict[str, Callable[[ProtocolServer, str], Came]] = {
    "score": scored,
    "judge": judged,
    "ask": asked,
    "grade": graded,
    "remedy": mended,
    "learn": learned,
}
IN_TURN = [name for name in VERBS if name not in ("learn", "remedy")]
_IDEALS: dict[str, Came] = {}


def ideal_of(server: ProtocolServer, verb: str) -> Came:
    """What a verb comes to where everything works; once for all manners."""
    if verb not in _IDEALS:
        _IDEALS[verb] = VERBS[verb](server, IDEAL)
    return _IDEALS[verb]


def in_turn() -> Iterator[Any]:
    """Manner and verb; those that are tried at night alone are marked."""
    for number, manner in enumerate(ALL):
        usual = {IN_TURN[number % len(IN_TURN)]}
        usual |= {"learn"} if manner in LEARNED_BY_DEFAULT else set()
        usual |= {"remedy"} if manner in MENDED_BY_DEFAULT else set()
        for verb in VERBS:
            marks = () if verb in usual or manner == IDEAL else pytest.mark.nightly
            yield pytest.param(manner, verb, marks=marks, id=f"{manner}-{verb}")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("manner", "verb"), list(in_turn()))
def test_every_manner_comes_to_the_same_result_without_a_wasted_call(
    server: ProtocolServer, manner: str, verb: str
) -> None:
    ideal = ideal_of(server, verb)
    assert ideal.calls > 0
    if manner != IDEAL:
        assert VERBS[verb](server, manner) == ideal


LOST = {"logprobs": "no log-probabilities", "seed": "no seed", "temperature": "no temperature"}
FORMS = {
    "tool": "a forced tool call",
    "json_object": "JSON mode",
    "text": "text, with the schema in the prompt",
}


@pytest.mark.parametrize("manner", ALL)
def test_doctor_says_what_each_endpoint_can_do_and_what_is_lost_without_the_rest(
    server: ProtocolServer, manner: str
) -> None:
    known = ALL[manner]
    server.behave(known)
    endpoint = ExaminedEndpoint(ModelOptions(model="m", base_url=server.url))
    able = endpoint.look()
    notes = " ".join(endpoint.notes)
    found = endpoint.capabilities
    assert found is not None
    assert (found.form, found.logprobs > 0, found.seed, found.temperature) == tuple(
        known[name] for name in ("form", "logprobs", "seed", "temperature")
    )
    assert found.calls == server.counts()["received"] <= 8
    for name, words in LOST.items():
        assert (words in notes) == (not known[name])
    assert all((words in notes) == (known["form"] == form) for form, words in FORMS.items())
    assert ("JSON schema" in able) == (known["form"] == "json_schema")


def test_facts_of_manners_have_sources_and_stand_in_the_documentation() -> None:
    assert len(ALL) >= 20
    for manner in ALL.values():
        assert all(re.fullmatch(r"https://\S+", source) for source in manner["sources"])
    page = DOCS.read_text(encoding="utf-8")
    begin = "<!-- manners -->\n"
    end = "<!-- end of manners -->"
    first = page.index(begin) + len(begin)
    last = page.index(end)
    if os.environ.get("WRITE_SNAPSHOTS"):
        page = page[:first] + table() + page[last:]
        DOCS.write_text(page, encoding="utf-8")
    assert begin + table() + end in page, "WRITE_SNAPSHOTS=1 writes it anew"


def table() -> str:
    """What each endpoint can do, as rows of the page."""
    asked = {
        "json_schema": "JSON schema",
        "tool": "a forced tool call",
        "json_object": "JSON mode",
        "text": "text",
    }
    lines = ["| endpoint | asked by | lost | sources |", "|---|---|---|---|"]
    for manner in ALL.values():
        lost = [words.removeprefix("no ") for name, words in LOST.items() if not manner[name]]
        links = [f"[{number}]({source})" for number, source in enumerate(manner["sources"], 1)]
        lines.append(
            f"| {manner['name']} | {asked[manner['form']]} | {', '.join(lost)} | {' '.join(links)} |"
        )
    return "\n".join(lines) + "\n"
