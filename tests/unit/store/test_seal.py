"""What this machine sealed in a store holds here, and in no copy of the store."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pollex.errors import StoreDamaged
from pollex.store.folder import SEAL_KEY_FILE_NAME
from pollex.store.seal import SEAL_FIELD, Seal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    return tmp_path / "s"


def test_a_store_that_is_moved_keeps_its_seal_and_a_copy_with_all_times_has_another(
    folder: Path,
) -> None:
    seal = Seal.of(folder)
    assert seal == Seal.of(folder)
    assert seal == Seal.of(folder.rename(folder.with_name("moved")))
    copy = shutil.copytree(folder.with_name("moved"), folder, copy_function=shutil.copy2)
    assert Seal.of(copy).sign("token", "") != seal.sign("token", "")
    assert Seal.of(copy).name != seal.name


def test_a_file_is_believed_as_it_was_sealed_and_for_what_it_was_sealed(folder: Path) -> None:
    seal = Seal.of(folder)
    path = folder / "x.json"
    fields = {"words": "\ud800", "at": path, "figures": (1.5, None), "pid": "   7"}
    path.write_text(json.dumps(seal.sign_fields("x", fields), default=str))
    read = seal.read_fields("x", path)
    assert read == fields | {"at": str(path), "figures": [1.5, None]}
    assert seal.read_fields("y", path) is None
    assert Seal(b"another").read_fields("x", path) is None
    whole = json.loads(path.read_text())
    for odd in (whole | {"pid": 7}, whole | {"more": 1}, whole | {SEAL_FIELD: 5}, [], 5, {}):
        path.write_text(json.dumps(odd))
        assert seal.read_fields("x", path) is None, odd
    for content in (b"", b"\xff", b"[" * 100_000, b'{"a":NaN'):
        path.write_bytes(content)
        assert seal.read_fields("x", path) is None, content
    assert seal.read_fields("x", folder) is None


def test_a_seal_that_was_cut_is_a_new_one_and_a_link_is_not_followed(folder: Path) -> None:
    seal = Seal.of(folder)
    assert (folder / SEAL_KEY_FILE_NAME).stat().st_mode & 0o077 == 0
    os.truncate(folder / SEAL_KEY_FILE_NAME, 5)
    assert Seal.of(folder) not in (seal, Seal())
    (folder / SEAL_KEY_FILE_NAME).unlink()
    (folder / SEAL_KEY_FILE_NAME).symlink_to(folder.with_name("elsewhere"))
    with pytest.raises(StoreDamaged, match="it is a link"):
        Seal.of(folder)


def test_a_store_that_cannot_be_written_has_a_seal_until_the_process_ends(tmp_path: Path) -> None:
    assert Seal.of(tmp_path / "nowhere") == Seal() == Seal.of(tmp_path / "nowhere")
