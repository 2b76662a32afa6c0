"""Every kind of export of every tool, in small, read to what was said and to the thumbs that were given."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs

FOLDER = Path(__file__).parent / "kinds"


def write(path: Path, content: Any) -> None:
    """Write a text as it is, rows as JSON lines where the name says so, anything else as JSON."""
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    else:
        path.write_text(json.dumps(content), encoding="utf-8")


def what_is_read(kind: dict[str, Any], folder: Path) -> list[list[str]] | str:
    """Return each conversation as its label and its lines, or the error."""
    folder.mkdir()
    for name, content in kind["files"].items():
        write(folder / name, content)
    try:
        logs = read_logs([folder / name for name in kind["files"]], options=ReadOptions(**kind.get("options", {})))
    except (BadInput, WrongUse) as error:
        return str(error)
    bad = [f"bad: {row.reason}" for row in logs.bad_rows]
    bad += [f"no note: {part}" for part in kind.get("notes", ()) if not any(part in note for note in logs.notes)]
    talks = [[talk.label.value, *(f"{turn.role}: {turn.content}" for turn in talk.turns)] for talk in logs]
    return [*talks, bad] if bad else talks


@pytest.mark.parametrize("tool", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_every_kind_of_export_is_read_to_what_was_said(tool: str, tmp_path: Path) -> None:
    """`talks` has each conversation as its label and its lines; `refused` has a part of what is said instead,
    `notes` parts of notes."""
    wrong = {}
    for number, kind in enumerate(json.loads((FOLDER / f"{tool}.json").read_text(encoding="utf-8"))):
        found = what_is_read(kind, tmp_path / str(number))
        right = kind["refused"] in found and "→" in found if isinstance(found, str) and "refused" in kind else None
        if not (right if right is not None else found == kind.get("talks")):
            wrong[kind["kind"]] = found
    assert wrong == {}
