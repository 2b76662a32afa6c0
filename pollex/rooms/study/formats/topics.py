"""Topics, personas and documents of simulated dialogues, as files."""

import re
from pathlib import Path
from typing import Any

from pollex.errors import UNREADABLE_FILE_HINT, BadInput
from pollex.rooms.study.agents.llm.simulator import SimulatedPersona, SimulatedTopic
from pollex.text import parse_toml, read_file_text

DEFAULT_PERSONA = SimulatedPersona("anybody", "An ordinary person.")
DOCUMENT_FILE_ENDINGS = (".md", ".txt", ".rst")
_ID_PATTERN = re.compile(r"[\w.-]+")


def read_topics(path: Path) -> tuple[list[SimulatedTopic], list[SimulatedPersona]]:
    """Read the topics and personas of a TOML file; without personas, one of anybody.

    Raises:
        BadInput: The file can't be read, has no topic, or has one without `id` or `text`, or an id
            twice.
    """
    try:
        document = parse_toml(read_file_text(path))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"the topics can't be read: {error}",
            where=str(path),
            hint=UNREADABLE_FILE_HINT,
        ) from error

    topics = []
    # documents of a topic are for systems that are given what topics name
    for row in _get_rows_of_kind(document, "topics"):
        topics.append(
            SimulatedTopic(
                *_read_id_and_text(path, "topics", row),
                tuple(map(str, row.get("documents", []))),
            )
        )

    personas = [
        SimulatedPersona(*_read_id_and_text(path, "personas", row))
        for row in _get_rows_of_kind(document, "personas")
    ] or [DEFAULT_PERSONA]
    # ids occur once
    for kind, ids in (
        ("topics", [topic.id for topic in topics]),
        ("personas", [persona.id for persona in personas]),
    ):
        if not ids or len(set(ids)) < len(ids):
            what = f"two {kind} have one id" if ids else f"no {kind}"
            raise BadInput(
                what,
                where=str(path),
                hint=f"give each of [[{kind}]] an `id` of its own and a `text`",
            )

    return topics, personas


def read_documents(folder: Path | None) -> dict[str, str]:
    """Read the text files of a folder, by name; nothing without a folder.

    Raises:
        BadInput: A file can't be read, or there is none.
    """
    if folder is None:
        return {}

    # sorted, so that passages have the same order on every machine
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in DOCUMENT_FILE_ENDINGS and file.is_file()
    )
    if not files:
        raise BadInput(
            "no documents",
            where=str(folder),
            hint=f"put files that end in {', '.join(DOCUMENT_FILE_ENDINGS)} there",
        )

    try:
        documents: dict[str, str] = {}
        for file in files:
            documents[file.relative_to(folder).as_posix()] = read_file_text(file)
        return documents
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"a document can't be read: {error}",
            where=str(folder),
            hint=UNREADABLE_FILE_HINT,
        ) from error


def _get_rows_of_kind(document: dict[str, Any], kind: str) -> list[Any]:
    rows = document.get(kind, [])
    return rows if isinstance(rows, list) else [rows]


def _read_id_and_text(path: Path, kind: str, row: Any) -> tuple[str, str]:
    # anything may stand there in place of a table
    id_, text = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
    # ids become parts of names of dialogues, so only some characters are allowed
    if (
        isinstance(id_, str)
        and _ID_PATTERN.fullmatch(id_)
        and isinstance(text, str)
        and text.strip()
    ):
        return id_, text.strip()

    hint = (
        "an `id` has letters, digits, dots and hyphens; a `text` says what is wanted, or who it is"
    )
    raise BadInput(
        f"one of [[{kind}]] has no `id` or no `text`",
        where=str(path),
        hint=hint,
    )
