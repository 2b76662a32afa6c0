"""The store's folder: the secret that paid answers are found by, and how commands that are told to people find it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from pollex.errors import StoreDamaged, WrongUse
from pollex.store.folder import (
    SECRET_BYTES,
    SECRET_FILE_NAME,
    STORE_ENVIRONMENT_VARIABLE,
    format_store_option,
    read_secret,
)
from pollex.store.ledger import StoreCallLedger
from pollex.store.store import Store


def test_one_flipped_bit_is_mended_and_told_and_more_or_a_cut_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Store.open(tmp_path / "kept") as store:
        secret = store.secret
        file = store.folder / SECRET_FILE_NAME
        content = file.read_bytes()
        for place in (0, 100, 8 * len(content) - 1):
            file.write_bytes((int.from_bytes(content) ^ 1 << place).to_bytes(len(content)))
            assert store.secret == secret
            assert file.read_bytes() == content
        assert len(caplog.messages) == 3
        for cut in (slice(0), slice(SECRET_BYTES - 1), slice(SECRET_BYTES + 1), slice(1, None)):
            file.write_bytes(content[cut])
            with pytest.raises(
                StoreDamaged, match=r"the store's secret was changed.* → put back the file"
            ):
                _ = store.secret
        file.write_bytes((int.from_bytes(content) ^ 0b101).to_bytes(len(content)))
        with pytest.raises(StoreDamaged, match="was changed"):
            _ = store.secret
        file.write_bytes(secret)  # as an earlier store has it
        assert store.secret == secret
        assert file.read_bytes() == content


def test_a_secret_is_made_once_and_for_its_owner_alone_or_handed_in_and_another_is_refused(
    tmp_path: Path,
) -> None:
    assert read_secret(tmp_path / "one") is None
    with (
        Store.open(tmp_path / "one") as one,
        Store.open(tmp_path / "two", secret=one.secret) as two,
    ):
        assert len(one.secret) == SECRET_BYTES
        assert one.secret == two.secret == read_secret(two.folder)
        assert (one.folder / SECRET_FILE_NAME).stat().st_mode & 0o777 == 0o600
    with (
        Store.open(tmp_path / "two", secret=bytes(SECRET_BYTES)) as two,
        pytest.raises(WrongUse, match="another secret"),
    ):
        _ = two.secret
    with (
        Store.open(tmp_path / "three", secret=b"short") as three,
        pytest.raises(WrongUse, match="32 bytes"),
    ):
        _ = three.secret


def test_threads_that_make_a_store_at_once_have_one_secret_and_one_backup(tmp_path: Path) -> None:
    together = Barrier(8)

    def make_store(folder: Path) -> bytes:
        together.wait()
        with Store.open(folder) as store:
            secret = store.secret
            store.database.backup()
            return secret

    with ThreadPoolExecutor(8) as pool:
        for number in range(10):
            folder = tmp_path / str(number)
            secrets = set(pool.map(make_store, [folder] * 8))
            assert secrets == {read_secret(folder)}
            assert not list(folder.glob(".*")), "no draft stays"


async def test_a_secret_that_is_gone_is_missed_where_answers_were_paid(tmp_path: Path) -> None:
    with Store.open(tmp_path / "kept") as store:
        await StoreCallLedger(store).record("k", 1, {}, "paid")
        assert store.paid == 1
        with pytest.raises(StoreDamaged, match="its 1 paid answers"):
            _ = store.secret


def test_the_store_is_named_where_a_command_would_look_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for environment, folder, words in (
        ("", ".pollex", ""),
        ("", "elsewhere", " --store elsewhere"),
        ("", "two words", " --store 'two words'"),
        ("elsewhere", "elsewhere", ""),
        ("elsewhere", ".pollex", " --store .pollex"),
    ):
        monkeypatch.setenv(STORE_ENVIRONMENT_VARIABLE, environment)
        assert format_store_option(folder) == words
