"""`pollex ask`: a questionnaire about each text by a model, whose answers are a table as `calibrate` reads it."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from protocol_server import ProtocolServer
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

import pollex as api
from pollex.errors import BadInput
from pollex.formats.questionnaires import load_questionnaire, parse_questions
from pollex.rooms.questionnaire.formats.read_tables import read_answers
from pollex.rooms.questionnaire.services.ask import PAPER_QUESTIONNAIRE

TEXTS = 8
QUESTIONS = 9
ABOUT_SOURCES = 4
ONE = '[[question]]\nid = "Q1"\ntext = "Good?"\noptions = [[0, "no"], [1, "yes"]]\n'


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


def test_a_run_that_stopped_goes_on_and_what_the_model_answered_is_a_table(
    pollex: Pollex, server: ProtocolServer
) -> None:
    write_log(Path("log.jsonl"), small_log()[:TEXTS])
    asked = (
        "ask",
        "log.jsonl",
        "--model",
        "m",
        "--base-url",
        server.url,
        "--store",
        "store",
        "--json",
    )
    assert pollex(*asked, "--dry-run").last["plan"]["judge"]["calls"] == TEXTS * (
        QUESTIONS - ABOUT_SOURCES
    )
    assert server.counts()["received"] == 0
    stopped = pollex(*asked, "--max-calls", "30")
    assert stopped.code == 1, stopped.err
    ended = pollex(*asked, "--resume")
    assert ended.code == 0, ended.err
    assert ended.last["sources"] == {
        "logprobs": TEXTS * (QUESTIONS - ABOUT_SOURCES),
        "rule": TEXTS * ABOUT_SOURCES,
    }
    assert server.counts()["repeated"] <= 4  # of the probe alone
    table = read_answers("answers.parquet")
    assert table.X.shape == (TEXTS, 35)
    assert [scale.question for scale in table.scales if not scale.ordinal] == ["Q8"]
    sums = table.X[:, :4].sum(axis=1)
    # the server leaves 3 % to no option: nothing is renormalised
    assert sums == pytest.approx(0.97, abs=1e-6)
    rows = duckdb.sql(
        "SELECT question, sum(probability) AS z FROM 'answers.parquet' GROUP BY question"
    ).fetchall()
    # the rest says: doesn't apply
    assert {name for name, z in rows if z < 0.96 * TEXTS} == {"Q2", "Q3", "Q4", "Q5"}


def test_an_endpoint_without_log_probabilities_gives_points_and_they_are_told(
    pollex: Pollex, server: ProtocolServer
) -> None:
    server.script([{"do": "ignore", "what": ["logprobs"]}])
    write_log(Path("log.jsonl"), small_log()[:2])
    Path("q.toml").write_text(ONE)
    asked = (
        "ask",
        "log.jsonl",
        "--questionnaire",
        "q.toml",
        "--model",
        "m",
        "--base-url",
        server.url,
    )
    ended = pollex(*asked)
    assert ended.code == 0, ended.err
    assert "1 question about 2 texts: 2 points" in ended.out + ended.err
    counted = pollex(*asked, "--samples", "3", "--json")
    assert counted.last["sources"] == {"sampled": 2}
    refused = pollex(*asked, "--set", "require=logprobs")
    assert refused.code == 1
    assert (
        "the endpoint gives no log-probabilities → choose another endpoint, or leave it out"
        in refused.err
    )


def test_python_asks_the_papers_questions_which_are_shipped(
    server: ProtocolServer, tmp_path: Path
) -> None:
    shipped = load_questionnaire(PAPER_QUESTIONNAIRE)
    assert [one.id for one in shipped] == [*(f"Q{n}" for n in range(1, 9)), "Q0"]
    assert [len(one.options) for one in shipped] == [4] * 7 + [3, 4]
    found = api.ask(
        small_log()[:2], PAPER_QUESTIONNAIRE, model="m", base_url=server.url, store=tmp_path
    )
    assert (found.texts, found.sources, len(found.rows)) == (2, {"logprobs": 10, "rule": 8}, 70)
    with_sources = [
        {"id": "s", "messages": small_log()[0]["messages"], "sources": ["Trams run until one."]}
    ]
    (tmp_path / "s.jsonl").write_text(json.dumps(with_sources[0]))
    found = api.ask(
        tmp_path / "s.jsonl", PAPER_QUESTIONNAIRE, model="m", base_url=server.url, store=tmp_path
    )
    assert found.sources == {"logprobs": 9}, (
        "questions about sources are asked where there are some"
    )


def test_bad_questionnaires_are_refused_with_line_and_remedy() -> None:
    many = ", ".join(f'[{n}, "{n}"]' for n in range(10))
    for text, words in [
        (
            ONE + ONE,
            r"q\.toml:5: a second question is called 'Q1' → give each question an id of its own",
        ),
        (ONE.replace('[0, "no"], [1, "yes"]', ""), r"q\.toml:1: options: give two to nine options"),
        (
            ONE.replace('[0, "no"], [1, "yes"]', many),
            r"q\.toml:1: options: give two to nine options",
        ),
        (
            ONE.replace("[1,", "[0,"),
            r"q\.toml:1: two options of 'Q1' are alike → give each option a number",
        ),
        (
            "main = 'Q0'\n" + ONE,
            r"q\.toml: its main question 'Q0' is none of its questions → name one of them",
        ),
        ("main = 'Q0'", r"q\.toml: it has no question → \[\[question\]\]"),
        ("[[question]", "not a questionnaire as TOML"),
    ]:
        with pytest.raises(BadInput, match=words):
            parse_questions(text, "q.toml")


def test_what_score_and_judge_wrote_is_a_table_of_answers(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    log = write_log(Path("log.jsonl"), small_log()[:8])
    kept = ("--store", store)
    for ending in ("parquet", "jsonl"):
        assert (
            pollex("score", log, "--rubrics", learnt.rubrics, "--out", f"s.{ending}", *kept).code
            == 0
        )
        table = read_answers(f"s.{ending}")
        assert len(table.scales) == len(json.loads(learnt.rubrics.read_text())["rubrics"])
        assert {scale.values for scale in table.scales} == {(0.0, 2.5, 5.0, 7.5, 10.0)}
        judged = pollex(
            "judge", log, "--question", "Was the task completed?", "--out", f"v.{ending}", *kept
        )
        assert judged.code in (0, 3), judged.err
        table = read_answers(f"v.{ending}")
        assert [scale.values for scale in table.scales] == [(0.0, 1.0)]
        assert table.X.sum(axis=1) == pytest.approx(1)
