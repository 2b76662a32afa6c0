"""Logs from tools' interfaces, and scores to them, on a loopback server that answers as theirs do."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pollex.errors import BadInput, WrongUse
from pollex.formats.read_logs import read_logs
from pollex.graphs.context import NullProgress
from pollex.rooms.exchange.services.transfer import TransferResult, pull_logs, push_scores

EXPORTS = Path(__file__).parents[3] / "unit" / "formats" / "exchange"
PROJECT = "1e0a6012-8763-57cc-996d-f7578ec627c8"
SPAN = {"parentObservationId": None, "type": "SPAN", "input": "Hello", "output": "Good day"}


SCORES = "/api/public/v3/scores"
THUMB = {"id": "x", "name": "user-feedback", "source": "API", "dataType": "BOOLEAN", "value": True}
THUMB |= {"timestamp": "2026-01-01", "subject": {"kind": "session", "id": "s1"}}


class Tool:
    """A server that remembers what it was asked.

    Attributes:
        fixed: Answers by address.
        broken: Errors that come first, by the beginning of an address.
        cycle: Cursors that scores name one after another.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, list[str]], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.broken: dict[str, list[int]] = {}
        self.cycle: list[str] = []
        self.fixed: dict[str, Any] = {SCORES: {"data": [THUMB], "meta": {}}}
        self.rows: list[dict[str, Any]] = [
            {
                **SPAN,
                "id": f"o{n}",
                "traceId": f"t{n}",
                "sessionId": f"s{n}",
                "startTime": f"2026-01-0{n}T00:00:00Z",
            }
            for n in range(1, 6)
        ]

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        self.asked.append((method, path, query, body))
        if self.cycle and path == SCORES:
            return {"data": [THUMB], "meta": {"cursor": self.cycle.pop(0)}}
        if path in self.fixed:
            return self.fixed[path]
        if path == "/api/public/v2/observations":
            since = query.get("fromStartTime", [""])[0]
            rows = [row for row in self.rows if row["startTime"] >= since]
            begin = int(query.get("cursor", ["0"])[0])
            following = str(begin + 2) if begin + 2 < len(rows) else None
            return {"data": rows[begin : begin + 2], "meta": {"cursor": following}}
        return {"data": []}


@pytest.fixture
def tool() -> Iterator[tuple[Tool, str]]:
    known = Tool()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _handle(self) -> None:
            address = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            known.headers.append(dict(self.headers))
            failing = next(
                (codes for begin, codes in known.broken.items() if self.path.startswith(begin)), []
            )
            code = failing.pop(0) if failing else 200
            answer = (
                known.answer(self.command, address.path, parse_qs(address.query), body)
                if code == 200
                else {}
            )
            data = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - the library's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield known, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def keys(url: str) -> dict[str, str]:
    return {
        "LANGFUSE_PUBLIC_KEY": "pk",
        "LANGFUSE_SECRET_KEY": "sk",
        "LANGFUSE_BASE_URL": url,
        "PHOENIX_BASE_URL": url,
    }


def fetched(what: str, out: Path, environment: dict[str, str], **given: Any) -> TransferResult:
    return pull_logs(what, out=out, **{"progress": NullProgress()} | given, environment=environment)


def test_all_pages_and_scores_of_a_busy_interface_become_a_log_with_thumbs_and_each_page_is_told(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    told: list[tuple[str, int]] = []

    class Counting(NullProgress):
        def advance(self, stage: str, by: int = 1) -> None:
            told.append((stage, by))

    known, url = tool
    known.broken["/api/public/v2/observations"] = [503, 429]
    out = tmp_path / "log.jsonl"
    made = fetched("langfuse", out, keys(url), progress=Counting())
    assert made.rows == {"observations": 5, "scores": 1}
    assert told == [("Fetching observations", n) for n in (2, 2, 1)] + [("Fetching scores", 1)]
    logs = read_logs(out)
    assert (len(logs), len(logs.positives)) == (5, 1)
    assert known.headers[0]["Authorization"].startswith("Basic ")
    assert "sk" not in out.with_name("log.jsonl.state").read_text()


def test_a_fetch_that_was_stopped_goes_on_and_a_later_one_asks_for_what_is_new(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    out = tmp_path / "log.jsonl"
    known.broken["/api/public/v2/observations?limit=100&cursor=2"] = [403]
    with pytest.raises(BadInput, match="HTTP 403"):
        fetched("langfuse", out, keys(url))
    with out.open("ab") as file:
        file.write(b'{"half a li')
    before = len(known.asked)
    fetched("langfuse", out, keys(url))
    assert known.asked[before][2]["cursor"] == ["2"]
    assert len(read_logs(out)) == 5
    new = {"id": "o9", "traceId": "t9", "sessionId": "s9", "startTime": "2026-01-09T00:00:00Z"}
    known.rows.append(known.rows[0] | new)
    before = len(known.asked)
    fetched("langfuse", out, keys(url))
    assert known.asked[before][2]["fromStartTime"] == ["2026-01-05T00:00:00Z"]
    assert len(read_logs(out)) == 6


def test_spans_are_fetched_with_the_annotations_of_their_sessions(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    words = {"session.id": "a", "input.value": "Hello", "output.value": "Good day"}
    span = {"context": {"trace_id": "t", "span_id": "x"}, "span_kind": "CHAIN", "attributes": words}
    thumb = {
        "annotator_kind": "HUMAN",
        "name": "thumbs",
        "result": {"label": "up"},
        "session_id": "a",
    }
    for what, row in {"spans": span, "session_annotations": thumb}.items():
        known.fixed[f"/v1/projects/p/{what}"] = {"data": [row], "next_cursor": None}
    out = tmp_path / "spans.jsonl"
    assert fetched("phoenix", out, keys(url), project="p").rows["session_annotations"] == 1
    assert {tuple(query.get("session_ids", ())) for _, _, query, _ in known.asked} == {(), ("a",)}
    assert len(read_logs(out).positives) == 1


def langsmith_run(number: int) -> dict[str, Any]:
    """A run as LangSmith answers it."""
    words = {"inputs": {"question": f"Question {number}"}, "outputs": {"answer": "Good day"}}
    name = f"00000000-0000-0000-0000-{number:012}"
    thread = {"metadata": {"thread_id": f"thread {number}"}}
    when = f"2026-01-{number // 10 + 1:02}T00:00:00.{number:06}"
    return {
        "id": name,
        "trace_id": name,
        "run_type": "chain",
        "start_time": when,
        "extra": thread,
        **words,
    }


def answer_as_langsmith(known: Tool, runs: list[dict[str, Any]]) -> None:
    """Projects by name, runs by cursor, and feedback by offset, 100 at a time."""

    def answer(method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        known.asked.append((method, path, query, body))
        if path == "/api/v1/sessions":
            return [{"id": PROJECT}] if query["name"] == ["shop"] else []
        if path == "/api/v1/runs/query":
            assert body["session"] == [PROJECT]
            assert {"inputs", "outputs", "extra"} <= set(body["select"])
            since = body.get("start_time", "")
            begin = int(body.get("cursor") or 0)
            rows = [run for run in runs if run["start_time"] >= since]
            following = str(begin + 60) if begin + 60 < len(rows) else None
            return {"runs": rows[begin : begin + 60], "cursors": {"next": following}}
        assert path == "/api/v1/feedback"
        begin = int(query.get("offset", ["0"])[0])
        asked = [{"run_id": id_, "key": key, "score": 1, "feedback_source": {"type": kind}} for id_ in query["run"]
                 for key, kind in (("user_score", "api"), ("judged", "model"))]  # fmt: skip
        return asked[begin : begin + 100]

    known.answer = answer  # type: ignore[method-assign]


def test_langsmiths_runs_are_fetched_by_the_projects_name_with_all_pages_of_their_feedback(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    runs = [langsmith_run(number) for number in range(150)]
    answer_as_langsmith(known, runs)
    environment = {"LANGSMITH_API_KEY": "very secret", "LANGSMITH_ENDPOINT": url}
    out = tmp_path / "runs.jsonl"
    known.broken["/api/v1/feedback"] = [403]
    with pytest.raises(BadInput, match="HTTP 403"):
        fetched("langsmith", out, environment, project="shop")
    made = fetched("langsmith", out, environment, project="shop")
    assert made.rows == {"feedback": 300}
    assert len([one for one in known.asked if one[1] == "/api/v1/runs/query"]) == 3
    logs = read_logs(out)
    assert (len(logs), len(logs.positives)) == (150, 150)
    assert known.headers[0]["x-api-key"] == "very secret"
    assert not [file for file in tmp_path.iterdir() if "secret" in file.read_text()]
    runs.append(langsmith_run(300))
    made = fetched("langsmith", out, environment, project="shop")
    # the newest of the last time comes again
    assert (made.rows["runs"], len(read_logs(out))) == (2, 151)
    with pytest.raises(WrongUse, match="no project is called 'other'"):
        fetched("langsmith", tmp_path / "o.jsonl", environment, project="other")


def test_open_webuis_thumbs_come_with_their_chats_and_later_only_those_that_are_new(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    rows = json.loads(
        gzip.decompress(
            (EXPORTS / "open-webui/0.12.4/feedback-history-export.json.gz").read_bytes()
        )
    )
    for number, row in enumerate(rows):
        row["updated_at"] = 1795345000 + number
    known.fixed = {"/api/v1/evaluations/feedbacks/all/export": rows[:3]}
    environment = {"OPEN_WEBUI_API_KEY": "sk", "OPEN_WEBUI_URL": url}
    out = tmp_path / "feedback.jsonl"
    made = fetched("open-webui", out, environment)
    assert (made.rows["feedback"], len(read_logs(out))) == (3, 3)
    assert known.headers[0]["Authorization"] == "Bearer sk"
    known.fixed = {"/api/v1/evaluations/feedbacks/all/export": rows}
    made = fetched("open-webui", out, environment)
    assert made.rows["feedback"] == 3  # the newest of the last time comes again
    logs = read_logs(out)
    assert (len(logs), len(logs.positives), len(logs.negatives)) == (5, 2, 3)
    made = fetched("open-webui", tmp_path / "late.jsonl", environment, since="2026-11-22T10:56:43Z")
    assert made.rows["feedback"] == 2


def test_a_missing_key_a_missing_project_and_a_foreign_file_are_told_before_anything_is_asked(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    mine = tmp_path / "mine.jsonl"
    new = tmp_path / "a.jsonl"
    mine.write_text("{}\n")
    for what, out, environment, said in (
        ("langfuse", new, {}, "LANGFUSE_PUBLIC_KEY is not set → set it in the environment"),
        ("phoenix", new, keys(url), "phoenix has projects → name one: project="),
        ("langfuse", mine, keys(url), "the file exists, and `pollex pull` did not write it"),
        (
            "langfuse",
            new,
            keys("langfuse.mine:3000"),
            r"LANGFUSE_BASE_URL is not an http\(s\) address",
        ),
        ("excel", new, {}, r"can.t be used for this → one of: langfuse"),
    ):
        with pytest.raises(WrongUse, match=said):
            fetched(what, out, environment)
    assert known.asked == []


def test_scores_are_sent_as_the_tool_takes_them(tool: tuple[Tool, str], tmp_path: Path) -> None:
    known, url = tool
    file = tmp_path / "scores.json"
    file.write_text(
        json.dumps([{"id": "pollex-1", "sessionId": "s1", "name": "pollex_netsat", "value": 2.5}])
    )
    push_scores(file, to="langfuse", progress=NullProgress(), environment=keys(url))
    assert known.asked[-1] == ("POST", "/api/public/scores", {}, json.loads(file.read_text()))
    file.write_text(
        '{"data": [{"session_id": "s1", "name": "pollex_netsat"}, {"trace_id": "t", "name": "x"}]}'
    )
    push_scores(file, to="phoenix", progress=NullProgress(), environment=keys(url))
    assert [one[1] for one in known.asked[-2:]] == [
        "/v1/session_annotations",
        "/v1/trace_annotations",
    ]
    file.write_text('{"half')
    with pytest.raises(BadInput, match="not JSON"):
        push_scores(file, to="langfuse", progress=NullProgress(), environment=keys(url))


def test_mlflows_traces_are_fetched_whole_and_a_repeated_score_takes_the_place_of_the_older(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool
    environment = {"MLFLOW_TRACKING_URI": url}
    words = {"kvlist_value": {"values": [{"key": "question", "value": {"string_value": "Hello"}}]}}
    said = {"mlflow.spanInputs": words, "mlflow.spanOutputs": {"string_value": "Good day"}}
    attributes = [{"key": key, "value": value} for key, value in said.items()]
    span = {
        "trace_id": "UfgI74R11/T/wfq3wwOr1Q==",
        "span_id": "UElZWTprad8=",
        "attributes": attributes,
    }
    ours = {
        "assessment_id": "a-1",
        "assessment_name": "pollex_netsat",
        "metadata": {"id": "pollex-x"},
    }
    theirs = {"assessment_id": "a-2", "assessment_name": "thumbs", "feedback": {"value": True}}
    info = {
        "trace_id": "tr-1",
        "request_time": "2026-01-01T00:00:00Z",
        "trace_metadata": {"mlflow.trace.session": "s"},
        "assessments": [ours, theirs | {"source": {"source_type": "HUMAN"}}],
    }
    known.fixed = {
        "/api/3.0/mlflow/traces/search": {"traces": [info]},
        "/api/3.0/mlflow/traces/batchGet": {"traces": [{"trace_info": info, "spans": [span]}]},
    }
    out = tmp_path / "traces.jsonl"
    made = fetched("mlflow", out, environment, project="1")
    assert made.rows["traces"] == 1
    assert [turn.content for turn in read_logs(out).positives[0].turns] == ["Hello", "Good day"]
    request = {
        "trace_id": "tr-1",
        "assessment_name": "pollex_netsat",
        "metadata": {"id": "pollex-x"},
    }
    (tmp_path / "a.json").write_text(json.dumps([request]))
    push_scores(tmp_path / "a.json", to="mlflow", progress=NullProgress(), environment=environment)
    place = "/api/3.0/mlflow/traces/tr-1/assessments"
    assert [asked[:2] for asked in known.asked[-2:]] == [
        ("DELETE", f"{place}/a-1"),
        ("POST", place),
    ]


def test_a_thumb_that_was_changed_counts_as_it_is_now_and_one_of_another_person_beside_it(
    tool: tuple[Tool, str], tmp_path: Path
) -> None:
    known, url = tool

    def log(second: str) -> Path:
        out = tmp_path / f"{second}.jsonl"
        for thumb in (THUMB, THUMB | {"timestamp": "2026-01-02", "value": False, "id": second}):
            known.fixed[SCORES] = {"data": [thumb], "meta": {}}
            fetched("langfuse", out, keys(url))
        return out

    assert [one.label.value for one in read_logs(log("x")) if one.id == "s1"] == ["negative"]
    with pytest.raises(BadInput, match="2 thumbs that differ: 1 up, 1 down"):
        read_logs(log("y"))


@pytest.mark.parametrize("to", ["langfuse", "langsmith", "phoenix", "mlflow", "opik", "otel"])
@pytest.mark.parametrize(
    "content",
    [
        "5",
        "null",
        '"x"',
        "[1]",
        '{"a": 1}',
        '{"data": 5}',
        '[{"trace_id": "t", "value": NaN}]',
        '[{"trace_id": "t", "name": "x", "id": "i", "value": 1e999}]',
        '[{"trace_id": "\\ud800"}]',
        "[" * 100_000,
        '{"id": "c", "netsat": 1.5, "rubrics": {}}',
    ],
)
def test_what_a_tool_does_not_take_is_told_before_anything_is_sent(
    tool: tuple[Tool, str], tmp_path: Path, to: str, content: str
) -> None:
    known, _ = tool
    (tmp_path / "scores.json").write_text(content)
    with pytest.raises(BadInput, match=r"entry 1 |not JSON"):
        push_scores(tmp_path / "scores.json", to=to, progress=NullProgress(), environment={})
    assert known.asked == []


def test_ids_stay_below_their_addresses(tool: tuple[Tool, str], tmp_path: Path) -> None:
    known, url = tool
    environment = {"MLFLOW_TRACKING_URI": url}
    entry = {"trace_id": "../../admin", "assessment_name": "x", "metadata": {"id": "i"}}
    stale = [{"metadata": {"id": "i"}, "assessment_id": "../../danger"}, {"metadata": {"id": "i"}}]
    known.fixed = {
        "/api/3.0/mlflow/traces/batchGet": {"traces": [{"trace_info": {"assessments": stale}}]}
    }
    (tmp_path / "a.json").write_text(json.dumps([entry]))
    push_scores(tmp_path / "a.json", to="mlflow", progress=NullProgress(), environment=environment)
    place = "/api/3.0/mlflow/traces/..%2F..%2Fadmin/assessments"
    assert [path for method, path, *_ in known.asked if method != "GET"] == [
        f"{place}/..%2F..%2Fdanger",
        place,
    ]


def test_cursors_that_come_back_end_a_fetch_and_no_proxy_of_the_environment_is_used(
    tool: tuple[Tool, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, url = tool
    # nobody listens there: a request through it would fail
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    known.cycle = ["a", "b", "a", "b", "a", "b"]
    made = fetched("langfuse", tmp_path / "log.jsonl", keys(url))
    assert made.rows["scores"] == 3


@pytest.mark.parametrize("number", ["..", "."])
def test_an_id_of_dots_is_refused(tool: tuple[Tool, str], tmp_path: Path, number: str) -> None:
    known, url = tool
    entry = {"trace_id": "t", "assessment_name": "x", "metadata": {"id": "i"}}
    stale = [{"metadata": {"id": "i"}, "assessment_id": number}]
    known.fixed = {
        "/api/3.0/mlflow/traces/batchGet": {"traces": [{"trace_info": {"assessments": stale}}]}
    }
    (tmp_path / "a.json").write_text(json.dumps([entry]))
    environment = {"MLFLOW_TRACKING_URI": url}
    with pytest.raises(WrongUse, match="can't stand in an address"):
        push_scores(
            tmp_path / "a.json", to="mlflow", progress=NullProgress(), environment=environment
        )
    assert not [method for method, *_ in known.asked if method == "DELETE"]


@pytest.mark.parametrize(
    "damage",
    [{"size": -5}, {"size": "x"}, {"size": 1e400}, {"cursors": []}, {"since": [1]}],
)
def test_a_damaged_state_of_a_fetch_is_told(
    tool: tuple[Tool, str], tmp_path: Path, damage: dict[str, Any]
) -> None:
    _, url = tool
    out = tmp_path / "log.jsonl"
    fetched("langfuse", out, keys(url))
    state = out.with_name("log.jsonl.state")
    state.write_text(json.dumps(json.loads(state.read_text()) | damage))
    with pytest.raises(BadInput, match="state can't be read"):
        fetched("langfuse", out, keys(url))
