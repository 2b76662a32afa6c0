"""Nothing that pollex stands on sends anything, or writes outside the store and the outputs that the user named."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from protocol_server import ProtocolServer

WATCHED = Path(__file__).parent / "watched"
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "debugging.jsonl"
NOWHERE = "http://127.9.9.9:9"
ADDRESSES = (
    *(
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "OPENAI_PROXY",
    ),
    *(
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "LANGSMITH_ENDPOINT",
        "LANGCHAIN_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
)
SWITCHES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGSMITH_OTEL_ENABLED",
)
NAMES = (
    "LANGSMITH_API_KEY",
    "LANGCHAIN_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT_ID",
)
LURES = (
    dict.fromkeys(ADDRESSES, NOWHERE)
    | dict.fromkeys(SWITCHES, "true")
    | dict.fromkeys(NAMES, "lure")
)
"""Settings of the environment that lead libraries elsewhere, where they are heeded."""

SWALLOWED = "ip link set lo up; ip route add default dev lo"
COUNTED = """awk '$1 == "lo:" { print "packets: " $11 }' /proc/net/dev >&2"""
ALONE = [
    *("unshare", "--user", "--map-root-user", "--net", "sh", "-ec"),
    f'{SWALLOWED}; "$0" "$@"; {COUNTED}',
]
"""Begins a command that has a network of its own, whose only way out swallows what is sent and counts it."""

COMMANDS = {
    "demo": ["demo", "--out", "demo"],
    "learn": ["learn", "log.jsonl", "--out", "rubrics.json", "--store", "store"],
    "score": ["score", "log.jsonl", "--rubrics", "rubrics.json", "--out", "scores.parquet", "--store", "store"],
    "evaluate": ["evaluate", "log.jsonl", "--rubrics", "rubrics.json", "--store", "store"],
    "fit": ["calibrate", "fit", "answers.csv", "judgments.csv", "--out", "calibrator", "--model", "ordinal"],
    "report": [
        "calibrate", "report", "calibrator", "answers.csv", "judgments.csv", "--out", "calibration.html", "--quick",
    ],
    "doctor": ["doctor", "--store", "store"],
}  # fmt: skip
OUTPUTS = (
    "demo",
    "rubrics",
    "report.html",
    "scores.parquet",
    "scores.html",
    "calibrator",
    "calibration.html",
    "store",
)
GIVEN = ("answers.csv", "judgments.csv", "log.jsonl")
SLOWEST = 240.0
"""Seconds of a command on a busy machine, none of which goes on waiting for a reply."""


class Quarantine:
    """A home, a temporary folder and a working folder of their own, and a log of who was asked for."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.home = folder / "home"
        self.temporary = folder / "temporary"
        self.work = folder / "work"
        for made in (self.home, self.temporary, self.work):
            made.mkdir()
        write_tables(self.work)
        lines = EXAMPLE.read_text("utf-8").splitlines(keepends=True)
        (self.work / "log.jsonl").write_text("".join(lines[:60]), "utf-8")
        self.log = folder / "attempts"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XDG_", "HF_", "CI", "MPL"))
        }
        places = {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "WATCHED_LOG": str(self.log),
        }
        paths = {
            "PYTHONPATH": os.pathsep.join([str(WATCHED), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.environment = kept | places | paths | settings

    def run(
        self, arguments: Sequence[str], *, within: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """A command, which is to end well."""
        command = [*within, sys.executable, "-m", "pollex", *arguments]
        ended = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SLOWEST,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended

    @property
    def attempts(self) -> str:
        """Lines of the log."""
        return self.log.read_text() if self.log.exists() else ""

    @property
    def strays(self) -> list[Path]:
        """What was written where nobody said."""
        outside = [path for folder in (self.home, self.temporary) for path in folder.rglob("*")]
        return outside + [
            path for path in self.work.iterdir() if not path.name.startswith(OUTPUTS + GIVEN)
        ]


def write_tables(folder: Path) -> None:
    """A judge's answers to one question over twenty texts, and what two people said."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.7, 0.7, 0.7], size=20)
    answers = [
        f"t{text},overall,{option + 1},{share}"
        for text, row in enumerate(shares)
        for option, share in enumerate(row)
    ]
    judged = [
        f"t{text},overall,{who},{rng.choice(3, p=row) + 1}"
        for text, row in enumerate(shares)
        for who in ("ann", "bob")
    ]
    (folder / "answers.csv").write_text(
        "\n".join(["text_id,question,option,probability", *answers]) + "\n"
    )
    (folder / "judgments.csv").write_text(
        "\n".join(["text_id,question,judge,answer", *judged]) + "\n"
    )


@pytest.mark.timeout(1200)
def test_no_command_asks_for_a_host_or_writes_into_the_home_folder(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, **LURES)
    for name, arguments in COMMANDS.items():
        if name in ("demo", "evaluate"):  # as learn and score, which are among the others
            continue
        quarantine.run(arguments)
        assert not quarantine.attempts, arguments
        assert not quarantine.strays, arguments


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_where_packets_are_dropped_commands_take_their_usual_time(tmp_path: Path) -> None:
    """In a network of its own, whose only way out swallows all packets and counts them: C++ is watched, too."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    quarantine = Quarantine(tmp_path)
    for name in ("demo", "doctor"):
        ended = quarantine.run(COMMANDS[name], within=ALONE)
        assert ended.stderr.splitlines()[-1] == "packets: 0"
    times = []
    for within in (ALONE, []):
        began = time.monotonic()
        quarantine.run(COMMANDS["doctor"], within=within)
        times.append(time.monotonic() - began)
    assert times[0] < 3 * times[1] + 15


def test_the_network_that_swallows_packets_counts_them() -> None:
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('203.0.113.1', 9))"
    ended = subprocess.run(
        [*ALONE, sys.executable, "-c", send], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1] == "packets: 1"


def test_settings_of_the_environment_lead_no_model_elsewhere(tmp_path: Path) -> None:
    with ProtocolServer() as server:
        quarantine = Quarantine(
            tmp_path, **LURES, WATCHED_ALLOWED="127.0.0.1", OPENAI_API_KEY="sk-test-123456789"
        )
        quarantine.run(["doctor", "--model", "m", "--base-url", server.url])
        assert not quarantine.attempts
        assert not quarantine.strays
        assert server.counts()["received"]
        assert "lure" not in server.headers
