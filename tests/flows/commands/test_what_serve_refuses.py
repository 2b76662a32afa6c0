"""What `pollex serve` refuses in words before it opens anything."""

from pathlib import Path

import pytest
from small_runs import Pollex

REFUSED = {
    ("--port", "70000"): "port",
    ("--port", "-1"): "port",
    ("--watch-every", "0"): "watch-every",
    ("--watch-every", "nan"): "watch-every",
    ("--queue", "-1"): "queue",
    ("--behind", "nonsense"): "not an http(s) address",
    ("--webhook", "javascript:alert(1)"): "not an http(s) address",
    ("--events", "ftp://collector"): "not an http(s) address",
    ("--root", "missing"): "is no folder",
    ("--root", "a-file"): "is no folder",
    ("--watch", "missing"): "is no folder",
}


@pytest.mark.parametrize("typed", REFUSED, ids=" ".join)
def test_an_option_that_can_not_be_is_refused_before_a_store_is_made(
    pollex: Pollex, typed: tuple[str, str]
) -> None:
    Path("a-file").touch()
    ended = pollex("serve", *typed, "--store", "new")
    assert ended.code == 2
    assert REFUSED[typed] in ended.err.replace("_", "-")
    assert "unexpected" not in ended.err
    assert not Path("new").exists()
