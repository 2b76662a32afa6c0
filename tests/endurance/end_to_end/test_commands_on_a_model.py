"""learn, score, evaluate, refit, why, trace, doctor and --dry-run with a model: the same kinds of output as without."""

import json
from pathlib import Path

import duckdb
import pytest
from benches import ATTENTIVE, MODEL, PROBE, Bench, Ended, sums
from judged import write_log
from protocol_server import SubprocessServer

from pollex.prompts.prompt import list_prompt_names, load_prompt
from pollex.rubrics.rubric_set import RubricSet

COUNT = 48
NEW = 12
"""Conversations of a longer log that nobody has judged yet."""


class Learnt:
    """A run of `learn`, and where."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.log(COUNT)
        self.planned = bench.run(bench.learning("--dry-run", "--price", "1:4"))
        self.asked_by_plan = bench.server.counts()["received"]
        bench.started = 0
        self.ended = bench.run(bench.learning("--price", "1:4"))
        self.calls = bench.judged
        self.rubrics = RubricSet.load(bench.folder / "learnt.json")

    def score(self, out: str, *options: object, log: str = "log.jsonl") -> Ended:
        """Scores a log with what was learnt."""
        return self.bench.run(
            self.bench.command("score", log, "--rubrics", "learnt.json", "--out", out, *options)
        )

    def longer_log(self, name: str, new: int = NEW) -> str:
        """Writes the log that was learnt from, and new conversations after it."""
        return write_log(self.bench.folder / name, COUNT + new).name


@pytest.fixture(scope="module")
def learnt(shared_server: SubprocessServer, tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    shared_server.script([ATTENTIVE])
    shared_server.reset()
    return Learnt(Bench(tmp_path_factory.mktemp("learnt"), shared_server))


def test_learning_with_a_model_writes_rubrics_report_and_figures(learnt: Learnt) -> None:
    told = learnt.ended.json
    rubrics = learnt.rubrics
    assert learnt.ended.code == 0, learnt.ended.err
    assert set(rubrics.roles.values()) == {MODEL}
    assert (told["sat"], told["dsat"]) == tuple(
        sum(r.polarity == kind for r in rubrics.rubrics) for kind in ("sat", "dsat")
    )
    assert told["held_out"]["auc"] > 0.9  # the server's moods follow the thumbs
    assert told["sat"] + told["dsat"] == len(rubrics.rubrics) <= 15
    # So few labels all teach: what is told of held-out conversations is cross-fitted.
    assert told["held_out"]["n"] == rubrics.data.training == COUNT
    assert rubrics.data.folds > 1
    assert all(rubric.reason_ids for rubric in rubrics.rubrics)
    report = (learnt.bench.folder / "report.html").read_text(encoding="utf-8")
    assert all(rubric.text in report for rubric in rubrics.rubrics)


def test_a_rubric_set_remembers_prompts_model_and_what_the_endpoint_could_do(
    learnt: Learnt,
) -> None:
    rubrics = learnt.rubrics
    assert rubrics.prompts == {name: load_prompt(name).version for name in list_prompt_names()}
    assert (rubrics.judge.kind, rubrics.judge.name) == ("llm", MODEL)
    assert rubrics.judge.options.place == learnt.bench.server.url
    assert rubrics.judge.options.capabilities is not None
    assert rubrics.judge.options.capabilities.logprobs == 20


def test_quotes_of_reasons_are_words_of_their_conversations(learnt: Learnt) -> None:
    rows = [
        json.loads(line) for line in (learnt.bench.folder / "log.jsonl").read_text().splitlines()
    ]
    turns = {
        row["id"]: [" ".join(turn["content"].split()) for turn in row["messages"]] for row in rows
    }
    quotes = [quote for reason in learnt.rubrics.reasons for quote in reason.quotes]
    assert quotes
    assert all(quote.text in turns[quote.conversation_id][quote.turn] for quote in quotes)


def test_the_table_after_a_run_counts_what_the_server_counted(learnt: Learnt) -> None:
    told = learnt.ended.json
    usage = told["usage"]
    assert sums(usage)
    assert usage["all"]["sent"] == learnt.calls
    assert told["probe_calls"] == PROBE
    assert usage["extract"]["calls"] == COUNT
    assert usage["all"]["cost"] == pytest.approx(
        (usage["all"]["prompt_tokens"] + 4 * usage["all"]["completion_tokens"]) / 1e6
    )


def test_a_dry_run_asks_nobody_and_says_at_least_what_is_then_used(learnt: Learnt) -> None:
    plan = learnt.planned.json["plan"]
    used = learnt.ended.json["usage"]
    assert learnt.asked_by_plan == 0
    # Where no two rubrics are near and none is hard to judge, nobody is asked.
    assert plan.keys() - used.keys() <= {"deduplicate", "reword"}
    assert used.keys() <= plan.keys()
    assert plan["extract"]["calls"] == used["extract"]["calls"]
    assert plan["extract"]["outcomes"] == {"planned": COUNT}
    for stage in used.keys() & {"summarize", "deduplicate", "reword", "judge"}:
        assert plan[stage]["calls"] >= used[stage]["calls"]
        assert plan[stage]["outcomes"] == {"at most": plan[stage]["calls"]}
    assert plan["all"]["cost"] > 0
    assert "at most" in "".join(learnt.planned.json["notes"])


def test_a_plan_of_scoring_is_exact_and_knows_what_is_paid(learnt: Learnt) -> None:
    received = learnt.bench.server.counts()["received"]
    log = learnt.longer_log("longer.jsonl")
    plan = learnt.score("longer-scores.jsonl", "--dry-run", log=log).json["plan"]["judge"]
    assert learnt.bench.server.counts()["received"] == received

    # The new conversations are asked, and none that `learn` has judged.
    scored = learnt.score("longer-scores.jsonl", log=log).json
    used = scored["usage"]["judge"]
    assert (plan["calls"], plan["known"], plan["sent"]) == (
        used["calls"],
        used["known"],
        used["sent"],
    )
    assert NEW <= used["sent"] <= 2 * NEW
    assert scored["known_answers"] == COUNT * len(learnt.rubrics.rubrics)
    assert (
        learnt.score("longer-scores.jsonl", "--dry-run", log=log).json["plan"]["all"]["sent"] == 0
    )


@pytest.mark.nightly
def test_all_three_formats_hold_the_same_scores(learnt: Learnt) -> None:
    for name in ("scores.jsonl", "scores.csv", "scores.parquet"):
        assert learnt.score(name).code == 0
    folder = learnt.bench.folder
    rows = learnt.bench.scores()
    found = {row["id"]: (row["netsat"], row["label"], row["probability"]) for row in rows}
    assert len(found) == COUNT
    assert all(len(row["answers"]) == len(learnt.rubrics.rubrics) for row in rows)
    for reader, name in (("read_csv", "scores.csv"), ("read_parquet", "scores.parquet")):
        query = f"SELECT id, netsat, label, probability FROM {reader}('{folder / name}')"
        assert {row[0]: row[1:] for row in duckdb.sql(query).fetchall()} == found


def test_evaluate_measures_what_score_wrote(learnt: Learnt) -> None:
    bench = learnt.bench
    ended = bench.run(bench.command("evaluate", "log.jsonl", "--rubrics", "learnt.json"))
    told = ended.json
    assert ended.code == 0
    assert (told["n"], told["positives"], told["outcomes"]) == (
        COUNT,
        COUNT // 2,
        {"scored": COUNT},
    )
    assert told["judge"] == MODEL
    assert told["auc"] > 0.9


@pytest.mark.nightly  # test_refit_command.py shows it of built-in answers
def test_refit_takes_a_rubric_that_a_person_wrote(learnt: Learnt) -> None:
    folder = learnt.bench.folder
    bench = learnt.bench
    edited = json.loads((folder / "learnt.json").read_text())
    edited["rubrics"].append({"text": "The user is glad about the tone.", "polarity": "sat"})
    (folder / "edited.json").write_text(json.dumps(edited))
    refused = bench.run(bench.command("score", "log.jsonl", "--rubrics", "edited.json"))
    assert (refused.code, "pollex refit" in refused.err) == (1, True)
    ended = bench.run(
        bench.command("refit", "log.jsonl", "--rubrics", "edited.json", "--out", "refitted.json")
    )
    assert ended.code == 0, ended.err
    fitted = RubricSet.load(folder / "refitted.json")
    assert not fitted.edited
    assert len(fitted.rubrics) == len(learnt.rubrics.rubrics) + 1


def test_a_trace_has_model_calls_under_the_roles_that_made_them(learnt: Learnt) -> None:
    ended = looked(learnt.bench, "trace", learnt.ended.json["run"])
    (graph,) = ended.json["tree"]
    roles = {branch["name"]: branch for branch in graph["branches"] if branch["kind"] == "role"}
    used = learnt.ended.json["usage"]
    calls = {
        name: [b for b in role["branches"] if b["kind"] == "call"] for name, role in roles.items()
    }
    assert sum(branch["count"] for branch in calls["extract"]) == used["extract"]["sent"]
    assert sum(branch["count"] for branch in calls["judge_pool"]) == used["judge"]["sent"]


def test_why_tells_reasons_and_quotes_of_a_rubric(learnt: Learnt) -> None:
    rubric = learnt.rubrics.rubrics[0]
    told = looked(learnt.bench, "why", "learnt.json", rubric.id).json
    assert told["rubric"]["text"] == rubric.text
    assert {reason["id"] for reason in told["reasons"]} == set(rubric.reason_ids)
    assert told["conversations"].keys() == {reason["conversation_id"] for reason in told["reasons"]}


def test_a_set_learnt_elsewhere_asks_no_address_that_the_user_did_not_name(learnt: Learnt) -> None:
    bench = learnt.bench
    before = learnt.bench.server.counts()["received"]
    ended = looked(
        bench, "score", learnt.longer_log("elsewhere.jsonl", 2 * NEW), "--rubrics", "learnt.json"
    )
    assert ended.code == 2
    assert f"confirm it: --base-url {bench.server.url}" in ended.err
    # Where all answers are in the store, nobody is asked, and no address needs to be confirmed.
    assert looked(bench, "score", "log.jsonl", "--rubrics", "learnt.json").code == 0
    assert bench.server.counts()["received"] == before


def test_doctor_shows_what_an_endpoint_can_and_cant_do(bench: Bench) -> None:
    bench.server.script([{"do": "refuse", "what": ["seed", "logprobs"]}])
    ended = bench.run(bench.command("doctor", "--model", MODEL))
    endpoint = ended.json["endpoint"]
    assert ended.code == 0, ended.err
    assert (endpoint["capabilities"]["seed"], endpoint["capabilities"]["logprobs"]) == (False, 0)
    assert endpoint["capabilities"]["json_schema"]
    assert endpoint["capabilities"]["window"] == 32768
    assert len(endpoint["switched_off"]) == 2
    assert "no seed" in ended.out
    assert endpoint["capabilities"]["calls"] == bench.server.counts()["received"]


def test_doctor_says_what_is_wrong_with_an_endpoint(bench: Bench) -> None:
    bench.server.script([{"do": "status", "code": 401}])
    ended = bench.run(bench.command("doctor", "--model", MODEL))
    assert ended.code == 1
    assert ended.json["endpoint"]["capabilities"] is None
    (bad,) = [finding for finding in ended.json["findings"] if not finding["well"]]
    assert (bad["what"], "check the API key" in bad["remedy"]) == ("model", True)


def test_a_dry_run_without_a_model_says_that_nothing_is_asked(tmp_path: Path, bench: Bench) -> None:
    bench.log(24)
    ended = looked(bench, "learn", "log.jsonl", "--dry-run")
    assert (ended.code, ended.json["plan"]) == (0, {})
    assert not (tmp_path / ".pollex").exists()


def looked(bench: Bench, *arguments: object) -> Ended:
    """A command that names no endpoint."""
    from benches import Running

    bench.started += 1
    return Running(
        [*map(str, arguments), "--store", ".pollex", "--json"], bench.folder, {}, bench.started
    ).end()
