"""Pictures of pages and the rubrics that README quotes are of the same run."""

import hashlib
import json

from rooms import ROOT

MADE = json.loads((ROOT / "docs" / "screens" / "made.json").read_text("utf-8"))


def test_the_rubrics_that_readme_quotes_are_those_of_the_run_that_made_the_pictures() -> None:
    for name, rows in MADE["rows"].items():
        quoted = json.loads((ROOT / "docs" / "figures" / f"{name}.json").read_text("utf-8"))[
            "texts"
        ]["rows"]
        assert rows == quoted, "run `make screens`, and commit all that it writes"


def test_no_picture_is_other_than_the_one_that_was_made() -> None:
    now = {
        name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in MADE["pictures"]
    }
    assert [name for name, digest in MADE["pictures"].items() if now[name] != digest] == []
