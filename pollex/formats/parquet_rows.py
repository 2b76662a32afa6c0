"""Parquet, read by DuckDB in a child process, which prints JSON lines.

A crafted Parquet file can crash its reader or exhaust memory, and DuckDB's makers don't count that as a fault. So the
child has limits on memory and on processor time, sees no file but this one, and its death is an error like any other.
The time is processor time because a consumer that is slow, such as a judge, would use up any other.
"""

from __future__ import annotations

import glob
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import Row, json_lines
from pollex.text import is_text

MEMORY = 4 << 30
"""Bytes of address space that the child may take, its libraries included."""
SECONDS = 600
"""Processor time that the child may take."""
BATCH = 64
"""Rows that the child holds at once."""


def parquet_rows(source: str, path: Path, *, memory: int = MEMORY, seconds: int = SECONDS) -> Iterator[Row | BadRow]:
    """One row a Parquet row; dates and decimals arrive as the text and numbers that DuckDB writes in JSON.

    Raises:
        BadInput: The file can't be read as Parquet within the limits.
    """
    if not is_text(path.absolute()):
        what = "no Parquet file can be read whose name or folder is no UTF-8 text"
        raise BadInput(what, where=source, remedy="rename it, or move it")
    # -P: no module of the folder that the user happens to be in may stand in for one of ours.
    command = [sys.executable, "-P", "-m", __name__, str(path.absolute()), str(memory), str(seconds)]
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, stdin=subprocess.DEVNULL)  # noqa: S603
        assert child.stdout is not None
        with child.stdout as printed:
            try:
                yield from json_lines(source, (line.decode("utf-8", "surrogateescape") for line in printed))
                code = child.wait()
            finally:
                child.kill()
                child.wait()
        if code:
            complaints.seek(0)
            raise BadInput(_complaint(code, complaints.read()), where=source, remedy="write the Parquet file again")


def _complaint(code: int, printed: bytes) -> str:
    last = printed.decode("utf-8", "replace").strip().splitlines()[-1:]
    if code < 0 or not last:
        return f"reading the Parquet file ended with code {code}: it took too much memory or time, or is crafted"
    return f"can't be read as Parquet: {last[0][:300]}"


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource  # Only where the system has it: Windows runs with DuckDB's own memory limit alone.
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _print_rows(path: str, memory: int) -> None:
    """Writes each row of the file to standard output as one JSON line."""
    import duckdb  # Only the child reads; the parent must not load the library that a crafted file attacks.

    # A path is a pattern to DuckDB, and folders named like `a=1` would become columns.
    pattern = glob.escape(path)
    connection = duckdb.connect(config={"threads": 1, "memory_limit": f"{memory // 4}B"})
    connection.execute("SET allowed_paths = ?", [[path, pattern]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    source = "read_parquet(?, hive_partitioning = false)"
    names = {column[0] for column in connection.execute(f"SELECT * FROM {source} LIMIT 0", [pattern]).description}  # noqa: S608
    row = next(name for name in (f"row_{n}" for n in range(len(names) + 1)) if name not in names)
    connection.execute(f"SELECT to_json({row})::VARCHAR FROM {source} {row}", [pattern])  # noqa: S608
    while batch := connection.fetchmany(BATCH):
        sys.stdout.buffer.write("".join(f"{line}\n" for (line,) in batch).encode("utf-8"))


def _main() -> int:
    path, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _limit(memory, seconds)
    try:
        _print_rows(path, memory)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        return 0
    except Exception as error:
        said = str(error).partition("\nLINE ")[0]  # after it comes our own SQL
        print(" ".join(said.split()), file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
