"""LLM-Rubric whole: a questionnaire asked, fitted to people, predicted for every question, and its dashboard."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from small_log import small_log, write_log
from small_runs import run_here

TEXTS = 12
BOTH = "".join(
    f'[[question]]\nid = "{name}"\ntext = "{text}"\noptions = [[1, "no"], [2, "half"], [3, "yes"]]\n'
    for name, text in (("Q0", "Good?"), ("Q1", "Short?"))
)


def test_what_a_model_answered_becomes_a_dashboard_of_every_question_whose_lowest_texts_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.jsonl", small_log()[:TEXTS])
    (tmp_path / "q.toml").write_text(BOTH)
    with ProtocolServer() as server:
        asked = run_here("ask", "log.jsonl", "--questionnaire", "q.toml", "--model", "m", "--base-url", server.url)
    assert asked.code == 0, asked.err
    texts = [json.loads(line)["id"] for line in Path("log.jsonl").read_text().splitlines()]
    with Path("judged.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text_id", "question", "judge", "answer"))
        writer.writerows(
            (text, question, judge, 1 + (number + place) % 3)
            for number, text in enumerate(texts)
            for place, (question, judge) in enumerate([("Q0", "ann"), ("Q0", "bob"), ("Q1", "ann")])
        )
    fitted = run_here("calibrate", "fit", "answers.parquet", "judged.csv", "--out", "c", "--model", "ordinal")
    assert fitted.code == 0, fitted.err
    predicted = run_here("calibrate", "predict", "c", "answers.parquet", "--out", "p.jsonl", "--question", "all")
    assert predicted.code == 0, predicted.err
    told = Counter(json.loads(line)["question"] for line in Path("p.jsonl").read_text().splitlines())
    assert told == {"Q0": TEXTS, "Q1": TEXTS}
    report = ("calibrate", "report", "c", "answers.parquet", "judged.csv", "--texts", "log.jsonl", "--quick")
    ended = run_here(*report, "--out", "c.html", "--json")
    assert ended.code == 0, ended.err
    assert [one["question"] for one in ended.last["predicted"]] == ["Q0", "Q1"]
    page = Path("c.html").read_text()
    assert page.count("The lowest:") == 2
    assert '<details class="conversation">' in page
