"""Whom a server lets in by the way it is started."""

from pathlib import Path

import pytest

from pollex.errors import WrongUse
from pollex.usecases.serve import ServeStore
from pollex.web.guard import Door
from pollex.web.server import address_of, found_store, free_port, listen, require_safe
from pollex.web.site import kept_token


def test_what_lets_others_in_is_refused_and_what_lets_nobody_else_in_is_served() -> None:
    for serving in (
        ServeStore(host="0.0.0.0"),
        ServeStore(host="::"),
        ServeStore(host="10.0.0.7"),
        ServeStore(host="0.0.0.0", allow_host=("box",), no_token=True),
        ServeStore(no_token=True, behind="https://pollex.example"),
    ):
        with pytest.raises(WrongUse):
            require_safe(serving)
    for serving in (ServeStore(), ServeStore(no_token=True), ServeStore(host="0.0.0.0", allow_host=("box",))):
        require_safe(serving)


def test_a_proxy_sets_name_and_origin() -> None:
    door = Door.at(("127.0.0.1", "::1"), 80, "t", "s", "https://pollex.example/")
    assert door.hosts == {"127.0.0.1:80", "[::1]:80", "pollex.example"}
    assert "https://pollex.example" in door.origins
    assert address_of(ServeStore(behind="https://pollex.example/"), 80) == "https://pollex.example"


def test_the_token_stays_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    token = kept_token(tmp_path)
    assert len(token) == 64
    assert kept_token(tmp_path) == token
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0


def test_a_port_in_use_is_told_with_a_free_one() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WrongUse, match=r"in use .*--port \d+"):
            listen("127.0.0.1", port)
        assert free_port("127.0.0.1", port) != port


def test_the_only_store_below_is_found_unless_the_usual_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "demo" / ".pollex").mkdir(parents=True)
    (tmp_path / "demo" / ".pollex" / "store.sqlite").touch()
    assert found_store(tmp_path) == tmp_path / "demo" / ".pollex"
    (tmp_path / ".pollex").mkdir()
    (tmp_path / ".pollex" / "store.sqlite").touch()
    assert found_store(tmp_path) == tmp_path / ".pollex"
