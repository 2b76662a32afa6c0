"""The secret that paid answers are found by."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollex.errors import StoreDamaged
from pollex.store.secret import SALT, SIZE, kept_salt, salt_of
from pollex.store.store import Store


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    assert kept_salt(tmp_path) is None
    with Store.open(tmp_path / "kept") as store:
        made = salt_of(store)
        assert len(made) == SIZE
        assert salt_of(store) == kept_salt(store.folder) == made
        assert (store.folder / SALT).stat().st_mode & 0o777 == 0o600


def test_the_secret_of_a_store_of_before_has_no_hash_behind_it(tmp_path: Path) -> None:
    (tmp_path / SALT).write_bytes(bytes(range(SIZE)))
    assert kept_salt(tmp_path) == bytes(range(SIZE))


@pytest.mark.parametrize("cut", [slice(0), slice(20), slice(SIZE - 1), slice(SIZE + 3), slice(1, None)], ids=str)
def test_a_secret_that_was_cut_is_refused(tmp_path: Path, cut: slice) -> None:
    with Store.open(tmp_path / "kept") as store:
        salt_of(store)
        file = store.folder / SALT
        file.write_bytes(file.read_bytes()[cut])
        with pytest.raises(StoreDamaged, match=r"the store's secret was changed.* → put back the file"):
            salt_of(store)


@pytest.mark.parametrize("place", [0, SIZE - 1, SIZE, -1])
def test_a_secret_with_another_byte_or_one_more_is_refused(tmp_path: Path, place: int) -> None:
    with Store.open(tmp_path / "kept") as store:
        salt_of(store)
        file = store.folder / SALT
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        for damaged in (bytes(content), file.read_bytes() + b"\n"):
            file.write_bytes(damaged)
            with pytest.raises(StoreDamaged):
                kept_salt(store.folder)
