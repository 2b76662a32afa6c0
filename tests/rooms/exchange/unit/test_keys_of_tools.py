"""Keys that tools are sent: every one is known, and none of the server goes to an address that a visitor typed."""

from typing import Any

import pytest

from pollex.rooms.exchange.formats.peers.interfaces import PEER_INTERFACES
from pollex.web.faults import RequestError
from pollex.web.pages.logs import make_pull_environment

KEYS = {"langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")}
KEYS |= {"langsmith": ("LANGSMITH_API_KEY",), "open-webui": ("OPEN_WEBUI_API_KEY",)}
KEYS |= {"phoenix": ("PHOENIX_API_KEY",), "mlflow": ("MLFLOW_TRACKING_TOKEN",)}
KEYS |= {"opik": ("OPIK_API_KEY",)}


class Everything(dict[str, str]):
    """An environment that has every variable."""

    def __getitem__(self, name: str) -> str:
        return "canary"

    def get(self, name: str, default: Any = None) -> Any:
        return "canary"


def test_every_key_that_a_tool_is_sent_is_known() -> None:
    for interface in PEER_INTERFACES.values():
        secrets_of_tool = (*interface.keys, *interface.optional)
        assert secrets_of_tool == KEYS.get(interface.name, ())
        sent = str(interface.headers(dict.fromkeys(secrets_of_tool, "canary")))
        assert sent == str(interface.headers(Everything()))


@pytest.mark.parametrize("tool", [tool for tool in KEYS if PEER_INTERFACES[tool].streams])
def test_no_key_of_the_server_goes_to_an_address_that_a_visitor_typed(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interface = PEER_INTERFACES[tool]
    for name in KEYS[tool]:
        monkeypatch.setenv(name, "canary")
    typed = {f"key-{name}": "typed" for name in interface.keys}
    if typed:
        with pytest.raises(RequestError, match="go only to addresses that its owner named"):
            make_pull_environment(interface, {}, "http://example.org")
    environment = make_pull_environment(interface, typed, "http://example.org")
    assert {environment[name] for name in KEYS[tool]} == {"typed" if typed else ""}

    # the owner's own address, and the tool's usual one
    monkeypatch.setenv(interface.url[0][0], "http://example.org/")
    for url in ("http://example.org", interface.url[1]):
        assert not make_pull_environment(interface, {}, url).keys() & set(KEYS[tool])
