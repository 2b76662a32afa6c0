"""Every kind of export of every tool, in small, read to what was said and to the thumbs that were given.

Those called `traced-…` hold three conversations after the shapes that interfaces document: words
beside two parallel calls and a thumb up; a system prompt, an image and a thumb down that came after
one up; the score of a model, no thumb.
"""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.spans import make_event_turns
from pollex.formats.read_logs import read_logs

FOLDER = Path(__file__).parent / "kinds"


def write(path: Path, content: Any) -> None:
    """Write a text as it is, rows as the file's name says, anything else as JSON."""
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(dict.fromkeys(key for row in content for key in row)))
            table.writeheader()
            table.writerows(
                {key: json.dumps(v) if isinstance(v, dict | list) else v for key, v in row.items()}
                for row in content
            )
    elif path.suffix == ".parquet":
        write(lines := path.with_suffix(".jsonl"), content)
        duckdb.execute(f"COPY (FROM read_json('{lines}', sample_size = -1)) TO '{path}'")
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
        logs = read_logs(
            [folder / name for name in kind["files"]],
            options=ReadOptions(**kind.get("options", {})),
        )
    except (BadInput, WrongUse) as error:
        return str(error).replace(f"{folder}/", "")
    notes = [note.replace(f"{folder}/", "") for note in logs.notes]
    bad = [f"bad: {row.reason}" for row in logs.bad_rows]
    bad += [
        f"no note: {part}"
        for part in kind.get("notes", ())
        if not any(part in note for note in notes)
    ]
    bad += [
        f"no comment: {comment}"
        for talk, comment in zip(logs, kind.get("comments", ()), strict=False)
        if comment and comment not in str(talk.feedback)
    ]
    beside = {
        "ids": [talk.id for talk in logs],
        "groups": [talk.group for talk in logs],
        "metadata": [dict(talk.metadata) for talk in logs],
        "judges": [talk.judge for talk in logs],
        "calls": [
            [f"{call.name} {call.arguments}".strip() for turn in talk.turns for call in turn.calls]
            for talk in logs
        ],
        "signals": [dict(talk.signals) for talk in logs],
        "feedback": [
            [one.model_dump(mode="json", exclude_defaults=True) for one in talk.feedback]
            for talk in logs
        ],
    }
    bad += [
        f"{name}: {beside[name]}"
        for name, wanted in kind.get("more", {}).items()
        if beside[name] != wanted
    ]
    talks = [
        [talk.label.value, *(f"{turn.role}: {turn.content}" for turn in talk.turns)]
        for talk in logs
    ]
    return [*talks, bad] if bad else talks


@pytest.mark.parametrize("tool", sorted(path.name for path in FOLDER.iterdir()))
def test_every_kind_of_export_is_read_to_what_was_said(tool: str, tmp_path: Path) -> None:
    """`talks` has each conversation as its label and its lines; `refused` has a part of what is said instead,
    `notes` parts of notes, `comments` what the users wrote beside their thumbs, `more` what else is
    known of each."""
    wrong = {}
    content = (FOLDER / tool).read_bytes()
    for number, kind in enumerate(
        json.loads(gzip.decompress(content) if tool.endswith(".gz") else content)
    ):
        found = what_is_read(kind, tmp_path / str(number))
        right = (
            kind["refused"] in found and "→" in found
            if isinstance(found, str) and "refused" in kind
            else None
        )
        if not (right if right is not None else found == kind.get("talks")):
            wrong[kind["kind"]] = found
    assert wrong == {}


def test_a_prompt_in_one_text_is_told_by_the_roles_before_its_messages() -> None:
    said = make_event_turns(
        "gen_ai.content.prompt", {"gen_ai.prompt": "system: Be brief.\nuser: Hello,\nuser 7 here"}
    )
    assert [(turn.role, turn.content) for turn in said] == [
        ("system", "Be brief."),
        ("user", "Hello,\nuser 7 here"),
    ]
