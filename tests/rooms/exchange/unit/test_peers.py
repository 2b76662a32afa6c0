"""Rubric sets and scores in the forms of other tools."""

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from rubric_set_by_hand import rubric, rubric_set

import pollex
from pollex.errors import BadRubrics, WrongUse
from pollex.formats.peers.rubrics_in import load_rubrics_of_any_tool
from pollex.formats.read_logs import read_logs
from pollex.formats.scores import make_answer_row
from pollex.graphs.context import NullProgress
from pollex.rooms.exchange.formats.peer_scores import (
    FORMS_THAT_NEED_TRACE,
    REQUEST_FORMS,
    PeerIds,
    iterate_file_lines,
    make_requests,
)
from pollex.rooms.exchange.formats.peers.targets import EXPORT_TARGETS, ExportTarget, make_sheet
from pollex.rooms.exchange.services.exchange import export_rubrics, export_texts, find_target
from pollex.rubrics.answers import NEVER_CAME_UP_OPTION, Answer
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.score import Score
from pollex.services.score_result import ScoreResult

ODD = 'He said "{x}", {{y}} {% z %} \\ and: it\'s # 100 %\nover two lines «é» 🔑'
SAVED = Path(__file__).parent / "peers"


def asked_a_model(words: str = "The user says thanks.") -> RubricSet:
    rubrics = tuple(
        rubric(n, side).model_copy(update={"id": f"{n}0e878080f41", "text": text})
        for n, (side, text) in enumerate(
            [("sat", words), ("dsat", "The user corrects the assistant.")], start=1
        )
    )
    judge = JudgeRecord(
        kind="llm",
        name="gpt-5-mini",
        fingerprint="f00",
        options=JudgeSettings(scale="likert-domain"),
    )
    return rubric_set(rubrics=rubrics, judge=judge, rubrics_digest=hash_rubrics(rubrics))


@pytest.mark.parametrize("target", EXPORT_TARGETS.values(), ids=lambda target: target.name)
def test_every_file_can_be_parsed_whatever_the_rubrics_say(
    target: ExportTarget, tmp_path: Path
) -> None:
    for name, text in target.files(make_sheet(asked_a_model(ODD))).items():
        if name.endswith(".py"):
            names = {
                node.targets[0].id: node.value
                for node in ast.parse(text).body
                if isinstance(node, ast.Assign)
            }  # type: ignore[attr-defined]
            assert ast.literal_eval(names["RUBRICS"])[0][2] == ODD
        elif name.endswith(".yaml"):
            assert ODD in json.dumps(yaml.safe_load(text), ensure_ascii=False) or _raw(
                yaml.safe_load(text)
            )
        elif name.endswith(".json"):
            json.loads(text)
        else:
            (tmp_path / name).write_text(text, encoding="utf-8")


def _raw(config: Any) -> bool:
    if "criteria" in config:
        return bool(config["criteria"][0]["requirement"] == ODD)
    return str(config["defaultTest"]["assert"][0]["value"]) == f"{{% raw %}}{ODD}{{% endraw %}}"


def test_an_export_is_what_was_saved_has_every_rubric_in_order_and_no_theta_of_the_built_in_judge() -> (
    None
):
    for target in EXPORT_TARGETS.values():
        files = target.files(make_sheet(asked_a_model()))
        for name, text in files.items():
            # no module of ours
            saved = SAVED / target.name / (f"{name}.txt" if name.endswith(".py") else name)
            if not saved.exists():  # the diff is for people to read
                saved.parent.mkdir(parents=True, exist_ok=True)
                saved.write_text(text, encoding="utf-8")
            assert saved.read_text(encoding="utf-8") == text
        texts = "\n".join(files.values())
        places = [texts.index(name) for name in ("sat_10e878080f41", "dsat_20e878080f41")]
        assert places == sorted(places)
        for told in ("learn-1", "pollex 0.1.0", "figures differ", "Strongly Disagree"):
            assert told in texts, target.name
        embedded = "\n".join(target.files(make_sheet(rubric_set())).values())
        assert "θ is left out" in embedded, target.name
        assert "THETA = None" in embedded or "THETA" not in embedded
        assert "threshold: 0.5" not in embedded


def test_an_edited_set_is_not_exported(tmp_path: Path) -> None:
    edited = asked_a_model().model_copy(update={"rubrics_digest": "other"})
    with pytest.raises(Exception, match="edited"):
        export_texts(edited, "promptfoo")
    with pytest.raises(WrongUse, match="no tool is called 'excel' → one of: autorubric, deepeval"):
        find_target("excel")
    made = export_rubrics(
        asked_a_model(), to="ragas", out=tmp_path / "new" / "folder", progress=NullProgress()
    )
    assert [path.name for path in made.files] == ["metrics.py"]


def test_the_sum_of_promptfoo_is_netsat_and_void_where_an_answer_is_missing(tmp_path: Path) -> None:
    files = EXPORT_TARGETS["promptfoo"].files(make_sheet(asked_a_model()))
    (tmp_path / "netsat.cjs").write_text(files["netsat.cjs"], encoding="utf-8")
    ask = (
        "const f = require('./netsat.cjs'); const n = ['sat_10e878080f41', 'dsat_20e878080f41'];"
        "console.log(JSON.stringify([f({[n[0]]: 0.75, [n[1]]: 0.25}, {threshold: 0.5}), f({[n[0]]: 0.75}, {}),"
        "f({[n[0]]: 1, [n[1]]: 0}, {componentResults: [{metadata: {graderError: true}, assertion: {metric: n[1]}}]}),"
        "f({[n[0]]: 1, [n[1]]: 0}, {componentResults: [{reason: 'no error', assertion: {metric: n[1]}}]})]))"
    )
    try:
        printed = subprocess.run(
            ["node", "-e", ask], cwd=tmp_path, capture_output=True, check=True, text=True
        ).stdout
    except FileNotFoundError:
        pytest.skip("node isn't there")
    whole, missing, failed, disagreed = json.loads(printed)
    assert (whole["score"], whole["pass"], disagreed["score"]) == (5, True, 10)
    assert not missing["pass"]
    assert "no NetSAT" in missing["reason"]
    assert "no NetSAT" in failed["reason"]
    assert failed["namedScores"] == {"sat_10e878080f41": 1, "pollex_netsat": 0, "pollex_scored": 0}


def scored(rubrics: RubricSet, id_: str = "shop-001") -> Score:
    answers = tuple(
        Answer(
            question_id=one.id,
            probabilities=(0.05, 0.1, 0.2, 0.4, 0.25),
            chosen=3,
            source="logprobs",
            turns=(1, 3),
        )
        for one in rubrics.rubrics
    )
    return Score(
        conversation_id=id_,
        netsat=2.5,
        label="positive",
        confident=True,
        probability=0.59,
        entropy=0.67,
        answers=answers,
    )


AIMS = {"shop-001": PeerIds("shop-001", "t2", "s2", "t1")}


@pytest.mark.parametrize("form", REQUEST_FORMS)
def test_scores_are_requests_with_ids_that_make_a_repeat_an_update_and_nothing_is_written_without_figures(
    form: str,
) -> None:
    rubrics = asked_a_model()
    score = scored(asked_a_model())
    made = make_requests(form, [score], rubrics, AIMS)
    assert len(made.requests) == 4
    assert made.requests == make_requests(form, [score], rubrics, AIMS).requests
    text = "".join(iterate_file_lines(form, made.requests))
    assert "pollex" in text
    assert "NetSAT 2.50" in text
    made = make_requests(form, [Score(conversation_id="x", outcome="refused")], rubrics)
    assert (made.requests, made.left_out) == ([], [("x", "refused")])
    if form in FORMS_THAT_NEED_TRACE:
        assert make_requests(form, [score], rubrics).left_out == [
            ("shop-001", "no trace of it is known")
        ]
    never = score.answers[0].model_copy(update={"chosen": 5})
    unasked = score.model_copy(update={"answers": (never, score.answers[1])})
    assert len(make_requests(form, [unasked], rubrics, AIMS).requests) == 3, (
        "an occasion that never came up has none"
    )
    row = make_answer_row(
        never, "sat", rubrics.model_copy(update={"never": {never.question_id: 3.25}})
    )
    assert (row["option"], row["value"], row["outcome"]) == (NEVER_CAME_UP_OPTION, 3.25, "answered")
    assert make_answer_row(never, "sat", rubrics)["value"] == 5.0


def test_an_event_has_its_time_and_how_sure_the_score_is() -> None:
    record = json.loads(
        "".join(
            iterate_file_lines(
                "otel", make_requests("otel", [scored(asked_a_model())], asked_a_model()).requests
            )
        )
    )
    event = record["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    told = {one["key"]: one["value"] for one in event["attributes"]}
    assert (told["pollex.probability"], told["pollex.confident"]) == (
        {"stringValue": "0.59"},
        {"stringValue": "true"},
    )
    assert int(event["observedTimeUnixNano"]) > 0


def test_what_pollex_wrote_back_is_never_read_as_a_thumb(tmp_path: Path) -> None:
    rubrics = asked_a_model()
    span = {
        "id": "o",
        "traceId": "t",
        "parentObservationId": None,
        "type": "SPAN",
        "sessionId": "shop-001",
    }
    row = {**span, "startTime": "2026-01-01T00:00:00Z", "input": "Hello", "output": "Good day"}
    made = make_requests("langfuse", [scored(rubrics)], rubrics)
    back = [{"source": "API", "traceId": None, **request} for request in made.requests]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [row, *back]))
    logs = read_logs(tmp_path / "log.jsonl")
    assert logs.conversations[0].label.value == "none"
    record = json.loads(
        "".join(
            iterate_file_lines("otel", make_requests("otel", [scored(rubrics)], rubrics).requests)
        )
    )
    (tmp_path / "otel.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(record) + "\n")
    assert read_logs(tmp_path / "otel.jsonl").conversations[0].label.value == "none"


@pytest.mark.parametrize(
    ("tool", "name"), [("autorubric", "rubric.yaml"), ("promptfoo", "promptfooconfig.yaml")]
)
@pytest.mark.parametrize("words", ["The user says thanks.", ODD])
def test_what_was_exported_is_read_back(tool: str, name: str, words: str, tmp_path: Path) -> None:
    rubrics = asked_a_model(words)
    (tmp_path / name).write_text(
        EXPORT_TARGETS[tool].files(make_sheet(rubrics))[name], encoding="utf-8"
    )
    found = load_rubrics_of_any_tool(tmp_path / name)
    assert [(one.text, one.polarity) for one in found] == [
        (one.text, one.polarity) for one in rubrics.rubrics
    ]


def read_from(path: Path, content: Any) -> list[tuple[str, str]]:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return [(one.text, one.polarity) for one in load_rubrics_of_any_tool(path)]


def test_criteria_in_sections_assertions_in_sets_and_questions_by_their_names_are_read(
    tmp_path: Path,
) -> None:
    criterion = {"name": "tone", "weight": -2, "requirement": "The assistant is rude."}
    both = {
        "type": "assert-set",
        "assert": [{"type": "llm-rubric", "value": "Is polite"}, {"type": "contains"}],
    }
    negated = {"type": "not-llm-rubric", "value": ["Is curt", "Is long"]}
    natural = {
        "PromptDesc": "How natural is it?",
        "Options": ["Unnatural.", "Stiff.", "Fairly.", "Natural."],
    }
    for content, read in (
        (
            {"rubric": {"sections": [{"criteria": [criterion]}]}},
            [("The assistant is rude.", "dsat")],
        ),
        (
            {"scenarios": [{"tests": [{"assert": [both, negated]}]}]},
            [("Is polite", "sat"), ("Is curt", "dsat"), ("Is long", "dsat")],
        ),
        (
            {"Q1": "Is it so?", "Q2": {"question": "Is it right?"}, "n": 3},
            [("Is it so?", "sat"), ("Is it right?", "sat")],
        ),
        (
            {"rubric": {"Q0": natural, "Q1": {**natural, "Options": []}}},
            [("How natural is it? Answer: Natural.", "sat"), ("How natural is it?", "sat")],
        ),
    ):
        assert read_from(tmp_path / "rubrics.yaml", content) == read
    for text in ("[]", "{a: [", "just words"):
        with pytest.raises(BadRubrics):
            read_from(tmp_path / "bad.yaml", text)


def test_python_exports_what_the_command_line_does() -> None:
    rubrics = asked_a_model()
    assert pollex.export_rubrics(rubrics, to="ragas") == EXPORT_TARGETS["ragas"].files(
        make_sheet(rubrics)
    )
    assert len(pollex.export_scores([scored(rubrics)], rubrics, as_="phoenix")) == 4
    mine = pollex.RubricSet.parse(rubrics.model_dump(mode="json"))
    assert mine.export(to="ragas") == pollex.export_rubrics(rubrics, to="ragas")
    scores = (scored(rubrics),)
    result = ScoreResult(
        run="score-1", rubrics=rubrics, out=None, scores=scores, outcomes={"scored": 1}, n=1
    )
    assert result.export(as_="phoenix") == pollex.export_scores(scores, rubrics, as_="phoenix")
    with pytest.raises(WrongUse, match="no form of scores is called"):
        pollex.export_scores([], rubrics, as_="excel")
