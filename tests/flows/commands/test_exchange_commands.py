"""What leaves for other tools and comes from them, on the command line."""

import gzip
import json
from pathlib import Path

from small_log import Ended, write_log
from small_runs import Learnt, run_here

EXPORTS = Path(__file__).parents[2] / "unit" / "formats" / "exchange"


def run(*arguments: object) -> Ended:
    ended = run_here(*arguments)
    assert ended.code == 0, ended.err
    return ended


def test_inspect_tells_formats_conversations_and_scores_with_their_sources() -> None:
    folder = EXPORTS / "langfuse" / "server-62751446"
    told = run("inspect", *sorted(folder.glob("blob-*")), "--json").last
    assert told["labels"] == {"positive": 2, "negative": 3, "none": 1}
    assert told["formats"] == {"Langfuse observations": 26, "Langfuse scores": 6}
    assert {"name": "helpfulness", "source": "EVAL", "scores": 1, "taken": False} in told["scores"]


def test_inspect_tells_what_rows_of_ones_own_hold(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Wo ist meine Rechnung vom letzten Monat geblieben?"}]
    shown = [
        {"type": "text", "text": "Voici."},
        {"type": "image_url", "image_url": {"url": "http://x/y.png"}},
    ]
    answer = {"role": "assistant", "content": shown}
    row = {"id": 1, "messages": [*said, answer], "thumbs": "Up", "plan": "free"}
    rows = [row, row, row | {"id": 2, "thumbs": "bad"}, row | {"id": 3, "thumbs": 1}]
    (tmp_path / "logs").mkdir()
    with gzip.open(tmp_path / "logs" / "log.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)
    told = run("inspect", tmp_path / "logs", "--json").last
    assert told["formats"] == {"messages": 4}
    assert told["spellings"] == {
        "positive": {"Up": 2, "1": 1},
        "negative": {"bad": 1},
        "none": {},
        "neither": {},
    }
    assert (told["roles"], told["attached"]) == ({"user": 3, "assistant": 3}, {"image": 3})
    assert (told["languages"], told["fields"]) == ({"de": 3}, {"plan": 3})
    assert told["duplicates"] == {"identical": 1, "same_text": 2}
    assert [one["label"] for one in told["examples"]] == ["positive", "negative"]
    shown_lines = run("inspect", tmp_path / "logs").out
    assert "The thumb is 'thumbs': 2 up, 1 down, 0 not rated." in shown_lines
    assert "taken for up: Up (2), 1 (1)" in shown_lines
    assert f"pollex label next {tmp_path / 'logs'} --out to-label.jsonl\n" in shown_lines
    assert "user: Wo ist meine Rechnung" in shown_lines


def test_a_learned_set_is_exported_and_scores_are_written_as_requests(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    told = run("export", learnt.rubrics, "--to", "promptfoo", "--out", tmp_path / "evals").out
    assert "exact for each test" in told
    assert "fitted to the built-in judge" in told
    assert (tmp_path / "evals" / "promptfooconfig.yaml").exists()
    requests = tmp_path / "scores.json"
    given = (
        "score",
        learnt.log,
        "--rubrics",
        learnt.rubrics,
        "--store",
        store,
        "--out",
        requests,
        "--as",
    )
    run(*given, "langfuse")
    first = json.loads(requests.read_text(encoding="utf-8"))[0]
    assert (first["name"], first["dataType"]) == ("pollex_netsat", "NUMERIC")
    assert "no form of scores is called 'excel'" in run_here(*given, "excel").err


def test_scoring_goes_on_where_thumbs_can_not_be_read_and_the_option_that_reads_them_is_told_once(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    trace = {
        "id": "t",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z",
        "input": "Hello",
        "output": "Good day",
    }
    named = {
        "bookmarked": False,
        "public": False,
        "comments": [],
        "user-feedback": [1],
        "rating": [0],
    }
    log.write_text(json.dumps(trace | named))
    given = (
        "score",
        log,
        "--rubrics",
        learnt.rubrics,
        "--store",
        store,
        "--out",
        tmp_path / "s.jsonl",
    )
    assert "name the right one: --label-field" in run(*given).out
    assert (
        run_here(*given, "--label-field", "rating").code
        == run_here(*given, "--set", "label_field=rating").code
        == 0
    )
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
    write_log(log, [{"id": str(i), "messages": said, "feedback": {"score": i}} for i in (2, 3, 4)])
    assert "3 labels can't be read, and are not needed here" in run(*given).out
    ended = run_here(*given, "--label-field", "feedback")
    assert (ended.code, "label-field feedback.score" in ended.err) == (1, True)
    assert "--max-bad" not in ended.err  # that of all rows is no remedy
    ended = run_here("inspect", log, "--label-field", "feedback")
    assert ended.err.count("the label is an object") == 1
    assert "--label-field feedback.score" in ended.err
