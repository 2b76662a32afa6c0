"""Help is there at once: what works is loaded when it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WORKERS = {"duckdb", "langchain_core", "langgraph", "openai", "openvino", "scipy", "sklearn", "torch"}


@pytest.mark.parametrize("arguments", [[], ["learn"], ["score"], ["judge"]])
def test_help_loads_nothing_that_works(arguments: list[str]) -> None:
    code = (
        "import json, sys\nfrom pollex.cli.main import pollex\n"
        f"pollex.main({[*arguments, '--help']!r}, standalone_mode=False)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert "Usage" in shown.stdout
    assert WORKERS & set(json.loads(shown.stdout.splitlines()[-1])) == set()
