"""Exports with keys renamed, values dropped or replaced, and orders shuffled, written as they were packed."""

import csv
import gzip
import io
import json
import random
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from pollex.formats.files import unpack_files
from pollex.formats.json_rows import LogRow
from pollex.formats.queries import iterate_parquet_rows

ODD = (
    None,
    "",
    0,
    -1,
    1e400,
    10**400,
    True,
    [],
    {},
    [[]],
    "x",
    "--5",
    "²",
    '{"a": [',
    "[null]",
    {"a": {"b": None}},
)
RATES = (0.01, 0.05, 0.2)


def damaged(value: Any, rng: random.Random, rate: float) -> Any:
    """The value with some keys renamed, values dropped, replaced or nested wrongly, and lists shuffled."""
    if isinstance(value, dict):
        found = {}
        for key, inner in value.items():
            chance = rng.random()
            if chance < rate / 4:
                continue
            name = f"{key}_x" if chance < rate / 2 else key
            found[name] = damaged(inner, rng, rate)
        return found
    if isinstance(value, list):
        items = [damaged(item, rng, rate) for item in value if rng.random() > rate / 4]
        if rng.random() < rate:
            rng.shuffle(items)
        return items
    return rng.choice(ODD) if rng.random() < rate / 3 else value


def damaged_file(path: Path, folder: Path, rng: random.Random, rate: float) -> Path:
    """A damaged copy of an export; tables of Parquet become JSON lines."""
    out = folder / path.name.removesuffix(".gz").replace(".parquet", ".jsonl")
    if path.suffix == ".eval":
        with zipfile.ZipFile(out, "w") as archive:
            for name, sample in members_of(path, folder).items():
                archive.writestr(name, json.dumps(damaged(sample, rng, rate)))
    elif path.suffix == ".csv":
        out.write_text(table(rows_of(path), rng, rate), encoding="utf-8", newline="")
    else:
        found = damaged(rows_of(path), rng, rate)
        rows = found if out.suffix == ".jsonl" and isinstance(found, list) else [found]
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return out


@cache
def members_of(path: Path, folder: Path) -> dict[str, Any]:
    with unpack_files(path.name, path, folder) as found:
        return {name.partition("!")[2]: json.loads(inner.read_bytes()) for name, inner in found}


@cache
def rows_of(path: Path) -> Any:
    """The rows of an export, which nobody may change."""
    if path.suffix == ".parquet":
        return [
            row.fields for row in iterate_parquet_rows(path.name, path) if isinstance(row, LogRow)
        ]
    text = (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode("utf-8-sig")
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(text)))
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def table(rows: list[dict[str, str]], rng: random.Random, rate: float) -> str:
    """Rows as a damaged table: columns renamed and dropped, cells replaced, rows shuffled."""
    written = io.StringIO()
    columns = {
        name: f"{name}_x" if rng.random() < rate / 4 else name
        for name in rows[0]
        if rng.random() > rate / 4
    }
    out = csv.writer(written)
    out.writerow(columns.values())
    out.writerows(
        [damaged(row[name], rng, rate) for name in columns]
        for row in damaged_order(rows, rng, rate)
    )
    return written.getvalue()


def damaged_order(
    rows: list[dict[str, str]], rng: random.Random, rate: float
) -> list[dict[str, str]]:
    kept = [row for row in rows if rng.random() > rate / 4]
    return rng.sample(kept, len(kept)) if rng.random() < rate else kept
