"""Scores as OpenTelemetry events, sent by the SDK's own exporter to the collector that is named, and to nobody else."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from small_runs import Learnt, Pollex

from pollex.errors import WrongUse
from pollex.services.telemetry import open_event_exporter

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason='pip install "pollex[otel]"')


class Collector(ThreadingHTTPServer):
    """Keeps the paths and bodies that it is sent."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_each_score_reaches_the_collector(
    pollex: Pollex, learnt: Learnt, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    monkeypatch.setenv("http_proxy", "http://127.9.9.9:9")
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        address = f"events=http://127.0.0.1:{collector.server_port}"
        given = (
            "--rubrics",
            learnt.rubrics,
            "--out",
            "s.jsonl",
            "--store",
            store,
            "--set",
            address,
            "--json",
        )
        ended = pollex("score", learnt.log, *given)
        collector.shutdown()
    assert ended.code == 0, ended.err
    assert {path for path, _ in collector.got} == {"/v1/logs"}
    records = [
        record
        for _, body in collector.got
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert len(records) == 2 * ended.last["n"]  # NetSAT and probability


def test_an_address_that_is_none_is_refused_before_anything_is_scored() -> None:
    for place in ("localhost:4318", "collector", "ftp://collector"):
        with (
            pytest.raises(WrongUse, match=r"not an http\(s\) address"),
            open_event_exporter(place, "0"),
        ):
            pass
