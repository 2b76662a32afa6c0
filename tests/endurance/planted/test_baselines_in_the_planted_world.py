"""SPUR and rubrics written by hand, on a model: the same pipeline, other rubrics."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from protocol_server import SubprocessServer
from small_runs import Pollex

from planted.chat import PlantedChat
from planted.world import World
from pollex import learn
from pollex.rubrics.edits import read_rubrics
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.store import Store

pytestmark = pytest.mark.nightly  # a minute; the planted world itself is tried each time

DEBUGGING = Path(__file__).parents[3] / "examples" / "debugging.toml"


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    with SubprocessServer(script=[{"do": "planted"}]) as served:
        yield served


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return World(0).write_log(tmp_path_factory.mktemp("planted") / "log.jsonl", 48)


def asking(server: SubprocessServer) -> list[str]:
    return [
        "--domain",
        str(DEBUGGING),
        "--model",
        "planted",
        "--base-url",
        server.url,
        "--set",
        "alpha=1",
        "--json",
    ]


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ("--method spur", 2, "--model"),
        ("--method spur --rubrics-from generic --model m", 2, "--rubrics-from"),
        ("--rubrics-from bing", 1, "generic, generic_debugging"),
        ("--set scale=numeric", 2, "numeric takes a model"),
        ("--set without=ds,cdp", 2, "--model"),
    ],
)
def test_what_takes_a_model_or_is_not_there_is_refused(
    pollex: Pollex, log: Path, options: str, code: int, told: str
) -> None:
    ended = pollex("learn", log, *options.split())
    assert (ended.code, told in ended.err) == (code, True), ended.err


def test_spur_learns_a_set_no_larger_than_the_budget_with_all_its_provenance(
    pollex: Pollex, log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    planned = pollex("learn", log, "--method", "spur", "--budget", 4, "--dry-run", *asking(server))
    ended = pollex("learn", log, "--method", "spur", "--budget", 4, *asking(server))
    assert ended.code == 0, ended.err
    told = json.loads(ended.out.splitlines()[-1])
    plan = json.loads(planned.out.splitlines()[-1])["plan"]
    rubrics = RubricSet.load(tmp_path / "rubrics.json")
    assert (told["sat"], told["dsat"]) == (4, 4)
    assert set(rubrics.roles) == {"extractor", "updater", "judge"}
    assert rubrics.dropped == ()
    assert all(rubric.reason_ids for rubric in rubrics.rubrics)
    assert {id_ for rubric in rubrics.rubrics for id_ in rubric.reason_ids} == {
        r.id for r in rubrics.reasons
    }
    used = told["usage"]
    assert "summarize" not in used
    assert plan["extract"]["calls"] == used["extract"]["calls"]
    assert all(plan[stage]["calls"] >= used[stage]["calls"] for stage in ("update", "judge"))


def test_spur_taken_up_again_asks_nothing_twice(
    pollex: Pollex, log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    arguments = ["learn", log, "--method", "spur", "--budget", 3, *asking(server)]
    server.reset()
    stopped = pollex(*arguments, "--max-calls", 30)
    assert stopped.code != 0
    ended = pollex(*arguments, "--resume")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out.splitlines()[-1])
    assert server.counts()["repeated"] == told["probe_calls"]
    assert (
        told["usage"]["all"]["sent"] == server.counts()["received"] - 2 * told["probe_calls"] - 30
    )
    whole = pollex(*arguments, "--store", tmp_path / "other", "--out", tmp_path / "other.json")
    assert whole.code == 0, whole.err
    texts = [
        {r.text for r in RubricSet.load(tmp_path / f).rubrics}
        for f in ("rubrics.json", "other.json")
    ]
    assert texts[0] == texts[1]


def test_rubrics_of_a_file_are_all_fitted_and_none_is_learnt(
    pollex: Pollex, log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    arguments = ["learn", log, "--rubrics-from", "generic_debugging", *asking(server)]
    planned = json.loads(pollex(*arguments, "--dry-run").out.splitlines()[-1])["plan"]
    ended = pollex(*arguments)
    assert ended.code == 0, ended.err
    rubrics = RubricSet.load(tmp_path / "rubrics.json")
    told = json.loads(ended.out.splitlines()[-1])
    assert {r.text for r in rubrics.rubrics} == {r.text for r in read_rubrics("generic_debugging")}
    assert set(told["usage"]) == {"judge", "all"}
    assert planned["judge"]["calls"] == told["usage"]["judge"]["calls"]
    with Store.open(tmp_path / ".pollex", read_only=True) as store:
        assert store.rows("SELECT count(*) AS n FROM facts WHERE kind = 'extraction'")[0]["n"] == 0


def test_grades_from_1_to_10_are_kept_and_asked_again_by_score_and_refit(
    pollex: Pollex, log: Path, server: SubprocessServer, tmp_path: Path
) -> None:
    arguments = [
        "learn",
        log,
        "--rubrics-from",
        "generic",
        "--set",
        "scale=numeric",
        *asking(server),
    ]
    ended = pollex(*arguments)
    assert ended.code == 0, ended.err
    rubrics = RubricSet.load(tmp_path / "rubrics.json")
    assert rubrics.judge.options.scale == "numeric"
    assert [len(question.options) for question in rubrics.questions] == [10] * 20
    again = ["--rubrics", "rubrics.json", "--base-url", server.url, "--json"]
    scored = pollex("score", log, "--out", "scores.jsonl", *again)
    assert scored.code == 0, scored.err
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    answers = [answer for row in rows for answer in row["answers"]]
    assert {answer["option"] for answer in answers} <= {str(grade) for grade in range(1, 11)}
    assert all(
        answer["value"] == pytest.approx((int(answer["option"]) - 1) / 9 * 10) for answer in answers
    )
    signed = [
        sum(a["value"] * (1 if a["polarity"] == "sat" else -1) for a in row["answers"])
        for row in rows
    ]
    assert [row["netsat"] for row in rows] == pytest.approx(signed)
    assert all(0 < row["probability"] < 1 for row in rows)
    refitting = [
        "refit",
        log,
        "--rubrics",
        "rubrics.json",
        "--base-url",
        server.url,
        "--model",
        "planted",
        "--json",
    ]
    # The answers are there already, by rubric: where they were paid for, `refit` asks nothing.
    paid_for = pollex(*refitting)
    assert (paid_for.code, paid_for.last["usage"]["all"]["sent"]) == (0, 0), paid_for.err
    elsewhere = [*refitting, "--store", tmp_path / "elsewhere"]
    planned = pollex(*elsewhere, "--dry-run").last["plan"]
    ended = pollex(*elsewhere)
    assert ended.code == 0, ended.err
    refitted = RubricSet.load(tmp_path / "rubrics.json")
    assert refitted.judge.scale == "numeric"
    assert [len(question.options) for question in refitted.questions] == [10] * 20
    assert planned["judge"]["calls"] == ended.last["usage"]["judge"]["calls"]


@pytest.mark.parametrize(("scale", "told"), [("likert", False), ("likert-domain", True)])
def test_only_with_the_domain_the_judge_is_told_of_it(
    tmp_path: Path, scale: str, told: bool
) -> None:
    chat = PlantedChat()
    found = learn(
        World(0).conversations(24), model=chat, rubrics="generic", scale=scale, store=tmp_path
    )
    judging = [prompt for prompt in chat.heard if "judging a finished conversation" in prompt]
    assert {"Roughly ideal:" in prompt for prompt in judging} == {told}
    assert found.judge.scale == scale


@pytest.mark.parametrize(
    ("without", "ds", "cdp"),
    [(("ds",), False, True), (("cdp",), True, False)],
)
def test_an_ablation_reaches_extraction_and_summary_and_is_recorded(
    tmp_path: Path, without: tuple[str, ...], ds: bool, cdp: bool
) -> None:
    chat = PlantedChat()
    off = frozenset(without)
    found = learn(World(0).conversations(24), model=chat, budget=2, without=off, store=tmp_path)
    for task in ("1. `summary`:", "1. `covered`:"):
        prompts = [prompt for prompt in chat.heard if task in prompt]
        assert prompts
        assert {"\nThe domain\n" in prompt for prompt in prompts} == {ds}
        assert {"Both parties answer for the progress" in prompt for prompt in prompts} == {cdp}
    judging = [prompt for prompt in chat.heard if "You judge a finished conversation" in prompt]
    assert {"Roughly ideal:" in prompt for prompt in judging} == {True}
    assert found.judge.options.without == set(without)
