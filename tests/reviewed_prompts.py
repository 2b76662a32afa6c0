"""Prompts as they were reviewed, word by word, in the snapshots of their room."""

import os
from pathlib import Path

from pollex.rooms import CORE_PACKAGE, list_rooms

TESTS = Path(__file__).parent


def snapshots_of(room: str) -> Path:
    """Where the reviewed prompts of a room's package are."""
    if room == CORE_PACKAGE:
        return TESTS / "unit" / "prompts" / "snapshots"
    return TESTS / "rooms" / room.rpartition(".")[2] / "unit" / "snapshots"


def room_of_prompt(name: str) -> str:
    """The package of the room that has a prompt."""
    rooms = list_rooms().items()
    return next(room for room, folder in rooms if (folder / "prompts" / f"{name}.md").is_file())


def require_reviewed(sent: list[dict[str, str]], file: Path) -> None:
    """Compare what is sent with a snapshot; WRITE_SNAPSHOTS=1 takes a change over, the diff is to be read."""
    text = "\n".join(f"--- {message['role']}\n{message['content']}" for message in sent) + "\n"
    if os.environ.get("WRITE_SNAPSHOTS"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
