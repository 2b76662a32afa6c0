"""README quotes the rows, and pages show the pictures, of one run of `make screens`."""

import hashlib
import json
import re

from rooms import ROOT

MADE = json.loads((ROOT / "docs" / "screens" / "made.json").read_text("utf-8"))
BETWEEN = re.compile(r"<!-- rows of (\w+) -->\n(.*?)<!-- end of rows -->", re.DOTALL)


def test_the_rows_that_readme_quotes_are_those_of_the_run_that_made_the_pictures() -> None:
    found = dict(BETWEEN.findall((ROOT / "README.md").read_text("utf-8")))
    assert "demo" in found
    for run, table in found.items():
        rows = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in MADE["rows"][run]]
        assert table.splitlines()[2:] == rows, "run `make screens`, and commit all that it writes"


def test_no_picture_is_of_another_run_than_the_rows() -> None:
    now = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in MADE["pictures"]}
    assert [name for name, digest in MADE["pictures"].items() if now[name] != digest] == []
