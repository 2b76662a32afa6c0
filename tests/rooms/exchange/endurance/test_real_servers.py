"""Logs from the real servers of Phoenix and MLflow, and scores to them, where their packages are installed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rubric_set_by_hand import rubric_set

from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.graphs.context import NullProgress
from pollex.rooms.exchange.services.exchange import write_requests
from pollex.rooms.exchange.services.transfer import pull_logs, push_scores
from pollex.rubrics.answers import Answer
from pollex.rubrics.score import Score

pytestmark = pytest.mark.timeout(600)
TURNS = (
    ("My brake squeaks.", "Are the pads glazed?"),
    ("Yes.", "Sand them lightly."),
    ("And now?", "Clean the rim."),
)
FIRST = 2
"""Turns that are there when the logs are fetched first."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(
    command: list[str], folder: Path, url: str, **environment: str
) -> Iterator[httpx2.Client]:
    """A server that is up, and gone at the end."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
        try:
            with httpx2.Client(base_url=url, timeout=30) as client:
                wait_for(client, process, folder)
                yield client
        finally:
            process.terminate()
            process.wait(30)


def wait_for(client: httpx2.Client, process: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(480):  # a first start makes a database
        try:
            if client.get("/").status_code < 500:
                return
        except httpx2.HTTPError:
            assert process.poll() is None, (folder / "server.log").read_text()[-2000:]
        time.sleep(0.5)
    pytest.fail("the server didn't come up")


def scored(logs: Logs, netsat: float) -> list[Score]:
    answers = tuple(
        Answer(
            question_id=one.id,
            probabilities=(0.05, 0.1, 0.2, 0.4, 0.25),
            chosen=3,
            source="logprobs",
            turns=(1,),
        )
        for one in rubric_set().rubrics
    )
    figures = {
        "label": "positive",
        "confident": True,
        "probability": 0.6,
        "entropy": 0.7,
        "answers": answers,
    }
    return [Score(conversation_id=one.id, netsat=netsat, **figures) for one in logs]  # type: ignore[arg-type]


def pushed(logs: Logs, tool: str, folder: Path, environment: dict[str, str], netsat: float) -> None:
    """Write scores as the tool's requests, and send them."""
    file = folder / f"{tool}.json"
    write_requests(file, tool, scored(logs, netsat), rubric_set(), logs.conversations)
    push_scores(file, to=tool, progress=NullProgress(), environment=environment)


def test_phoenix_gives_spans_and_thumbs_and_takes_scores_once(tmp_path: Path) -> None:
    if (
        importlib.util.find_spec("phoenix") is None
        or importlib.util.find_spec("phoenix.server") is None
    ):
        pytest.skip("arize-phoenix, whose server is wanted, isn't installed")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    environment = {"PHOENIX_BASE_URL": url}
    with served(["-m", "phoenix.server.main", "serve"], tmp_path, url, **settings) as client:
        client.post("/v1/projects", json={"name": "shop"})
        sent = client.post(
            "/v1/projects/shop/spans", json={"data": [phoenix_span(n) for n in range(FIRST)]}
        )
        assert sent.status_code < 300, sent.text
        thumb = {
            "name": "user_feedback",
            "annotator_kind": "HUMAN",
            "result": {"label": "thumbs-up", "score": 1},
        }
        until(lambda: len(client.get("/v1/projects/shop/spans").json()["data"]) == FIRST)
        asked = {"data": [{"session_id": "s", "identifier": "ada", **thumb}]}
        assert client.post("/v1/session_annotations?sync=true", json=asked).status_code < 300
        logs = fetched("phoenix", tmp_path / "first.jsonl", environment)
        for netsat in (2.5, 4.5):
            pushed(logs, "phoenix", tmp_path, environment, netsat)
        again = client.get(
            "/v1/projects/shop/session_annotations", params={"session_ids": "s"}
        ).json()["data"]
        ours = [one["result"]["score"] for one in again if one["name"] == "pollex_netsat"]
        assert ours == [4.5]
        fetched("phoenix", tmp_path / "second.jsonl", environment)
        client.post("/v1/projects/shop/spans", json={"data": [phoenix_span(FIRST)]})
        until(lambda: len(client.get("/v1/projects/shop/spans").json()["data"]) == len(TURNS))
        fetched("phoenix", tmp_path / "second.jsonl", environment, turns=len(TURNS))


def phoenix_span(number: int) -> dict[str, Any]:
    question, answer = TURNS[number]
    said = {"input.value": question, "output.value": answer, "session.id": "s", "user.id": "ada"}
    when = f"2026-01-01T00:0{number}:00Z"
    return {
        "name": "turn",
        "span_kind": "CHAIN",
        "status_code": "OK",
        "start_time": when,
        "end_time": when,
        "context": {"trace_id": f"{number + 1:032x}", "span_id": f"{number + 1:016x}"},
        "attributes": {"openinference.span.kind": "CHAIN", **said},
    }


def until(done: Any) -> None:
    for _ in range(60):
        if done():
            return
        time.sleep(0.5)
    pytest.fail("what was sent never came back")


def fetched(tool: str, out: Path, environment: dict[str, str], turns: int = FIRST) -> Logs:
    """The logs of the project, which have one conversation with a thumb up, whatever pollex wrote back.

    Fetched again into the same file, they go on with what is new.
    """
    pull_logs(tool, out=out, project="shop", progress=NullProgress(), environment=environment)
    logs = read_logs(out)
    (conversation,) = logs
    assert [turn.content for turn in conversation.turns] == [
        line for turn in TURNS[:turns] for line in turn
    ]
    assert (conversation.label.value, conversation.judge) == ("positive", "ada")
    return logs


def test_mlflow_gives_traces_and_thumbs_and_takes_scores_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    entities = pytest.importorskip("mlflow.entities")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    environment = {"MLFLOW_TRACKING_URI": url}
    stored = ["--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}", "--workers", "1"]
    command = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), *stored]
    # Without a network, litellm, which the server's jobs import, waits in a thread for the import
    # that waits for it.
    alone = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
    with served(command, tmp_path, url, **alone):
        mlflow.set_tracking_uri(url)
        experiment = mlflow.set_experiment("shop").experiment_id
        trace_turns(mlflow, *TURNS[:FIRST])
        found = mlflow.search_traces(locations=[experiment], return_type="list")
        person = entities.AssessmentSource(source_type="HUMAN", source_id="ada")
        mlflow.log_feedback(
            trace_id=found[0].info.trace_id, name="user_feedback", value=True, source=person
        )
        logs = fetched("mlflow", tmp_path / "first.jsonl", environment)
        for netsat in (2.5, 4.5):
            pushed(logs, "mlflow", tmp_path, environment, netsat)
        found = mlflow.search_traces(locations=[experiment], return_type="list")
        told = [
            one for trace in found for one in trace.info.assessments if one.name == "pollex_netsat"
        ]
        assert [one.feedback.value for one in told] == [4.5]
        fetched("mlflow", tmp_path / "second.jsonl", environment)
        trace_turns(mlflow, *TURNS[FIRST:])
        fetched("mlflow", tmp_path / "second.jsonl", environment, turns=len(TURNS))
        assert json.loads((tmp_path / "mlflow.json").read_text())


def trace_turns(mlflow: Any, *turns: tuple[str, str]) -> None:
    """Record each turn as a trace of the session."""
    for question, answer in turns:
        with mlflow.start_span("turn") as span:
            mlflow.update_current_trace(
                metadata={"mlflow.trace.session": "s", "mlflow.trace.user": "ada"}
            )
            span.set_inputs({"question": question})
            span.set_outputs(answer)
    mlflow.flush_trace_async_logging()
