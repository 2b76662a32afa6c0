"""A file of 100,000 spans is read in less than a minute of processor time and a gigabyte."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SPANS = 100_000
PER_TRACE = 5
PER_SESSION = 4
MEASURED = """
import resource, sys
from pollex.formats.read_logs import read_logs
logs = read_logs(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF)
print(len(logs.conversations), len(logs.positives), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def attributes(**given: str) -> list[dict[str, object]]:
    return [
        {"key": name.replace("__", "."), "value": {"stringValue": value}}
        for name, value in given.items()
    ]


def spans_of(trace: int) -> list[dict[str, object]]:
    """One turn: a root that names the session, a model's call with all history, a tool and two further steps."""
    session, turn = divmod(trace, PER_SESSION)
    said = [
        {
            "role": ("user", "assistant")[n % 2],
            "parts": [{"type": "text", "content": f"words {session} {n} " * 20}],
        }
        for n in range(2 * turn + 2)
    ]
    call = attributes(
        gen_ai__input__messages=json.dumps(said[:-1]),
        gen_ai__output__messages=json.dumps(said[-1:]),
    )
    named = attributes(gen_ai__conversation__id=f"s{session}")
    kinds = [
        named,
        call,
        *(attributes(gen_ai__operation__name="execute_tool") for _ in range(PER_TRACE - 2)),
    ]
    common = {"traceId": f"{trace:032x}", "endTimeUnixNano": "0"}
    return [
        {
            **common,
            "spanId": f"{trace * PER_TRACE + n:016x}",
            "parentSpanId": f"{trace * PER_TRACE:016x}" if n else "",
            "startTimeUnixNano": str((1_795_345_000_000 + trace * 1000 + n) * 1_000_000),
            "attributes": kind,
        }
        for n, kind in enumerate(kinds)
    ]


def thumb(session: int) -> dict[str, object]:
    score = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": session % 2}}
    given = [
        *attributes(
            gen_ai__evaluation__name="user_feedback", gen_ai__conversation__id=f"s{session}"
        ),
        score,
    ]
    record = {
        "eventName": "gen_ai.evaluation.result",
        "timeUnixNano": "1795345000000000000",
        "attributes": given,
    }
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_hundred_thousand_spans_are_read_in_less_than_a_minute_and_a_gigabyte(
    tmp_path: Path,
) -> None:
    path = tmp_path / "spans.jsonl"
    traces = SPANS // PER_TRACE
    with path.open("w", encoding="utf-8") as file:
        for trace in range(traces):
            resource = {"resourceSpans": [{"scopeSpans": [{"spans": spans_of(trace)}]}]}
            file.write(json.dumps(resource) + "\n")
        file.writelines(
            json.dumps(thumb(session)) + "\n" for session in range(traces // PER_SESSION)
        )
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    conversations, up, seconds, kilobytes = map(float, done.stdout.split())
    told = f"{SPANS:,} spans, {path.stat().st_size / 1e6:.0f} MB: {seconds:.1f} s CPU, {kilobytes / 1e6:.2f} GB\n"
    sys.stdout.write(told)
    assert (conversations, up) == (traces / PER_SESSION, traces / PER_SESSION / 2)
    assert seconds < 60
    assert kilobytes < 1e6
