"""Every program that a page names starts in a plain interpreter, without what pytest puts on the path."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"\bpython ((?:benchmarks|docs|examples)/[\w/]+\.py)")
STARTS = """
import json, os, runpy, sys, traceback
import numpy, scipy.stats, sklearn.linear_model, pollex.services.learn  # once: each program would load them anew

failed = {}
for path in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv, sys.path[0] = [path, "--help"], os.path.dirname(path)
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            os._exit(end.code or 0)
        except BaseException:
            traceback.print_exc(limit=-2)
            os._exit(1)
        os._exit(0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        failed[path] = code
print(json.dumps(failed))
"""


def programs() -> list[str]:
    """The programs that pages and the benchmarks' own words name, and all benchmarks that are no module of another."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    texts = [page.read_text("utf-8") for page in (*pages, *ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/*.py"))]
    return sorted({name for text in texts for name in NAMED.findall(text)})


def test_every_program_that_a_page_names_starts_in_a_plain_interpreter(tmp_path: Path) -> None:
    assert len(programs()) > 20
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    paths = json.dumps([str(ROOT / name) for name in programs()])
    ended = subprocess.run(
        [sys.executable, "-c", STARTS, paths], cwd=tmp_path, env=plain, capture_output=True, text=True, check=False
    )
    assert json.loads(ended.stdout) == {}, ended.stderr


def test_a_page_names_no_program_that_is_not_there() -> None:
    assert [name for name in programs() if not (ROOT / name).is_file()] == []
