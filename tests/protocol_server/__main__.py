"""Starts the server: see the package."""

import argparse
import asyncio
import json
from pathlib import Path

from protocol_server.server import State, serve


async def main() -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(prog="protocol_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--script", type=json.loads, default=[])
    options = parser.parse_args()
    server = await serve(State(options.latency, options.script), options.port)
    port = server.sockets[0].getsockname()[1]
    if options.port_file:
        unfinished = options.port_file.with_suffix(".new")
        unfinished.write_text(str(port))
        unfinished.rename(options.port_file)
    await server.serve_forever()


asyncio.run(main())
