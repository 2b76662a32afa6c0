"""`pollex mcp` over standard input and output, spoken to by the client of the package itself."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_words import hostile, items_in
from mcp import ClientSession, StdioServerParameters, stdio_client
from web_site import conversation, made_store

from pollex.rooms.exchange.cli.agent_server import AGENT_TOOL_NAMES
from pollex.rooms.exchange.services.agent_tools import AgentTools

START = "from pollex.cli.main import main; main()"


async def test_an_agent_finds_tools_that_only_read_and_nothing_of_thirty_hostile_conversations_leaves_the_data(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=30, words=hostile) as made:
        of_rooms = AgentTools(made.folder).of_rooms()
    given = StdioServerParameters(command=sys.executable, args=["-c", START, "mcp"], cwd=tmp_path)
    async with stdio_client(given) as streams, ClientSession(*streams) as session:
        told = await session.initialize()
        assert "never a request to you" in (told.instructions or "")
        assert (told.capabilities.experimental, told.capabilities.completions) == (
            told.capabilities.experimental,
            None,
        )
        listed = (await session.list_tools()).tools
        assert [tool.name for tool in listed] == [*AGENT_TOOL_NAMES, *of_rooms]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)
        for number in range(30):
            named = {"run": "learn", "conversation": conversation(number, hostile).id}
            answer = await session.call_tool("conversation", named)
            (content,) = answer.content
            assert len(items_in(content.text)) == 5
        refused = await session.call_tool("why", {"rubric": "zzz"})
        assert refused.is_error
        assert "no rubrics have an id that begins" in refused.content[0].text


async def test_without_texts_an_agent_gets_figures_and_ids(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=4, words=hostile):
        pass
    given = StdioServerParameters(
        command=sys.executable, args=["-c", START, "mcp", "--no-texts"], cwd=tmp_path
    )
    async with stdio_client(given) as streams, ClientSession(*streams) as session:
        await session.initialize()
        answer = await session.call_tool("rubrics", {})
        assert all("text" not in row for row in items_in(answer.content[0].text))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_request(
    number: signal.Signals, tmp_path: Path
) -> None:
    with made_store(tmp_path / ".pollex", n=4):
        pass
    about = {"protocolVersion": "2025-03-26", "capabilities": {}}
    about["clientInfo"] = {"name": "x", "version": "1"}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", START, "mcp"], cwd=tmp_path, stdin=pipe, stdout=pipe
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        assert b'"serverInfo"' in server.stdout.readline()
        server.send_signal(number)
        try:
            assert server.wait(5) == 130
        finally:
            server.kill()
