"""Forgetting finds each copy of a file that was renamed."""

from pathlib import Path

from pollex.outputs import write_text
from pollex.services.forget import _find_moved_outputs
from pollex.store.outputs import list_outputs, note_written_outputs
from pollex.store.store import Store


def test_a_renamed_file_and_its_copies_are_all_found_by_their_content(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s"):
        pass
    with note_written_outputs(tmp_path / "s"):
        write_text(tmp_path / "m.csv", "id\nbike-015\n")
    (tmp_path / "m.csv").rename(tmp_path / "moved.csv")
    (tmp_path / "copy.csv").write_bytes((tmp_path / "moved.csv").read_bytes())
    (tmp_path / "other.csv").write_text("id\nbike-016\n")

    with Store.open(tmp_path / "s") as store:
        (output,) = list_outputs(store)
    moved = _find_moved_outputs(output, [tmp_path])
    assert sorted(path.name for path in moved) == ["copy.csv", "moved.csv"]
