"""Exports loaded by the tools themselves, where their packages are installed (the extra `peers`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from rubric_set_by_hand import rubric_set

from pollex.formats.peers import TARGETS
from pollex.formats.peers.target import sheet_of

MODULES = {
    "deepeval": ("deepeval", "NetSAT"),
    "inspect": ("inspect_ai", "pollex_netsat"),
    "langsmith": ("openevals", "pollex_rubrics"),
    "mlflow": ("mlflow", "pollex_netsat"),
    "openevals": ("openevals", "netsat"),
    "phoenix": ("phoenix.evals", "netsat"),
    "ragas": ("ragas", "netsat"),
}


@pytest.mark.parametrize("tool", MODULES)
def test_an_exported_file_is_loaded_by_the_tool_itself(tool: str, tmp_path: Path) -> None:
    package, name = MODULES[tool]
    pytest.importorskip(package)
    ((file, text),) = TARGETS[tool].files(sheet_of(rubric_set())).items()
    (tmp_path / file).write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"exported_{tool}", tmp_path / file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert callable(getattr(module, name))


def test_autorubric_reads_the_criteria_with_their_signs(tmp_path: Path) -> None:
    autorubric = pytest.importorskip("autorubric")
    (text,) = TARGETS["autorubric"].files(sheet_of(rubric_set())).values()
    (tmp_path / "rubric.yaml").write_text(text, encoding="utf-8")
    read = autorubric.Rubric.from_file(str(tmp_path / "rubric.yaml"))
    assert [one.weight for one in getattr(read, "criteria", None) or read.rubric] == [10, -10]
