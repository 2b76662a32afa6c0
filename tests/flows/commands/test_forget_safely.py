"""`pollex forget` among files of the user's and of strangers: it writes nothing that nobody confirmed."""

import gzip
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
import zstandard
from small_runs import Pollex

from pollex.conversations.conversation import Conversation, Turn
from pollex.outputs import write_text
from pollex.services import forgetting_bounds
from pollex.store.outputs import compute_file_digest, note_written_outputs
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.store.tables import FactRow

SECRET = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."
FORGET = ("forget", "--conversation", "anna-1", "--store", "made/s")


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A store with a conversation, and what pollex wrote of it."""
    turns = (Turn(role="user", content=SECRET), Turn(role="assistant", content="I see."))
    store_folder = tmp_path / "made" / "s"
    with Store.open(store_folder) as store:
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
        await store.write(make_conversation_rows(run.id, [Conversation(id="anna-1", turns=turns)]))
        store.finish(run.id, "done")
    (tmp_path / "out").mkdir()
    with note_written_outputs(store_folder):
        for name in ("s.csv", "s.jsonl"):
            write_text(tmp_path / "out" / name, f"id,quote\nb,{SECRET}\n")
    return tmp_path


def name_file(folder: Path, path: Path, digest: str = "0" * 64) -> None:
    """Have the store say that pollex wrote a file."""
    told = {"beside": "", "digest": digest, "size": path.stat().st_size, "run": ""}
    with Store.open(folder / "made" / "s") as store:
        store.put([FactRow("", "output", str(path), json.dumps(told))])


def test_hidden_files_of_the_user_stay_and_a_dry_run_removes_nothing(
    folder: Path, pollex: Pollex
) -> None:
    theirs = [folder / "out" / name for name in (".s.csv.swp", ".s.csv.mine", ".s.csv.0a1b2c3")]
    left = folder / "out" / ".s.csv.0a1b2c3d"
    for path in (*theirs, left):
        path.write_text("x")
    pollex(*FORGET, "--dry-run")
    assert all(path.exists() for path in (*theirs, left))
    pollex(*FORGET)
    assert all(path.exists() for path in theirs)
    assert not left.exists()


def test_a_path_that_a_store_names_is_written_only_once_the_user_names_it(
    folder: Path, pollex: Pollex
) -> None:
    notes = folder / "home" / "notes.py"
    notes.parent.mkdir()
    notes.write_text(f"# {SECRET}\n")
    (folder / "home" / ".notes.py.swp").write_text("x")
    name_file(folder, notes)
    told = pollex(*FORGET, "--dry-run").out.replace("\n", " ")
    assert f"Would not be rewritten: {notes}: the store alone names it" in told
    ended = pollex(*FORGET, "--rewrite")
    assert ended.code == 3
    assert SECRET in notes.read_text()
    assert "[forgotten]" in (folder / "out" / "s.csv").read_text()
    assert (folder / "home" / ".notes.py.swp").exists()


def test_a_digest_that_a_stranger_put_into_a_store_proves_nothing(
    folder: Path, pollex: Pollex
) -> None:
    public = folder / "public.jsonl"
    public.write_text(f"{SECRET}\n")
    name_file(folder, public, compute_file_digest(public))
    ended = pollex(*FORGET, "--rewrite")
    assert ended.code == 3
    assert SECRET in public.read_text()
    assert str(public) in ended.out.replace("\n", "")


def test_in_a_copy_of_a_folder_its_own_files_are_rewritten_and_not_those_of_the_original(
    folder: Path, pollex: Pollex
) -> None:
    original = folder / "made"
    (original / "sub").mkdir()
    with note_written_outputs(original / "s"):
        write_text(original / "a.csv", f"id,quote\nb,{SECRET}\n")
    copy = folder / "copy"
    shutil.copytree(original, copy)
    (copy / "a.csv").rename(copy / "sub" / "renamed.csv")
    pollex("forget", "--conversation", "anna-1", "--store", "copy/s", "--rewrite")
    assert SECRET in (original / "a.csv").read_text()
    assert "[forgotten]" in (copy / "sub" / "renamed.csv").read_text()


def test_a_file_that_the_user_names_is_rewritten(folder: Path, pollex: Pollex) -> None:
    (folder / "out" / "s.csv").write_text(f"id,quote\nchanged,{SECRET}\n")
    assert pollex(*FORGET, "--rewrite", folder / "out" / "s.csv").code == 0
    assert "alpacas" not in (folder / "out" / "s.csv").read_text()


def test_links_that_nobody_named_are_not_written_through(folder: Path, pollex: Pollex) -> None:
    diary = folder / "diary.csv"
    diary.write_text(f"day,said\n1,{SECRET}\n")
    (folder / "out" / "s.csv").unlink()
    (folder / "out" / "s.csv").symlink_to(diary)
    (folder / "reports").mkdir()
    (folder / "reports" / "x.html").symlink_to(diary)
    ended = pollex(*FORGET, "--rewrite", folder / "reports")
    assert ended.code == 3
    assert "it is a link" in ended.out
    assert SECRET in diary.read_text()


def test_a_table_is_looked_into_without_a_work_file(folder: Path, pollex: Pollex) -> None:
    reports = folder / "reports"
    reports.mkdir()
    (folder / "mine").write_text("mine")
    duckdb.sql(f"COPY (SELECT 1 AS n, '{SECRET}' AS said) TO '{reports}/x.parquet'")
    (reports / ".x.parquet.lines").symlink_to(folder / "mine")
    assert pollex(*FORGET, "--dry-run", reports).code == 3
    assert pollex(*FORGET, "--rewrite", reports).code == 0
    assert (folder / "mine").read_text() == "mine"
    assert duckdb.sql(f"SELECT said, n FROM '{reports}/x.parquet'").fetchall() == [
        ("[forgotten]", 1)
    ]


def test_a_store_in_a_folder_of_the_users_leaves_their_files(folder: Path, pollex: Pollex) -> None:
    store = folder / "made" / "s"
    theirs = [
        store / name for name in ("drafts/novel.txt", "embeddings/mine.npy", "src/.letter.draft")
    ]
    copy = store / "drafts" / "0a1b2c3d-1-0a1b" / "log.jsonl"
    for path in (*theirs, copy):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    pollex(*FORGET, "--rewrite")
    assert all(path.exists() for path in theirs)
    assert not copy.exists()


TOML = f"""# {SECRET}
level = 3
[tool."anna-1"]
note = '{SECRET}'
more = '''
two lines
{SECRET}'''
anna-1 = {{ of = "them" }}
"""


def test_toml_stays_toml_and_keeps_all_else(folder: Path, pollex: Pollex) -> None:
    path = folder / "made" / "tool.toml"
    path.write_text(TOML)
    assert pollex(*FORGET, "--rewrite").code == 0
    text = path.read_text()
    value = tomllib.loads(text)
    assert value["level"] == 3
    assert value["tool"]["[forgotten]"]["note"] == "[forgotten]"
    assert "alpacas" not in text
    assert "anna" not in text


def bomb(path: Path) -> None:
    """Write a small file that has much in it."""
    path.write_bytes(gzip.compress(b"x" * 3_000_000))


def nested(path: Path) -> None:
    """Write a file that is nested deeply."""
    path.write_text("[" * 300_000)


def nested_line(path: Path) -> None:
    """Write a sound line that is nested more deeply than functions may call each other."""
    path.write_text("[" * 980 + "]" * 980)


def damaged(content: bytes) -> Callable[[Path], object]:
    """Return what writes a damaged file."""
    return lambda path: path.write_bytes(content)


ODD: dict[str, Callable[[Path], object]] = {
    "bomb.html.gz": bomb,
    "deep.json": nested,
    "deep.jsonl": nested_line,
    "p.parquet": damaged(b"PAR1 nothing"),
    "z.jsonl.gz": damaged(gzip.compress(b"words " * 99)[:-9]),
    "z.csv.gz": damaged(b"\x1f\x8b nothing"),
    "z.jsonl.zst": damaged(b"\x28\xb5\x2f\xfd nothing"),
    "twice.jsonl.gz": damaged(gzip.compress(gzip.compress(b"x"))),
    "number.html": damaged(b"&#" + b"9" * 5000 + b";"),
}


def test_what_cannot_be_looked_into_is_named_and_the_rest_is_forgotten(
    folder: Path, pollex: Pollex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting_bounds, "MAX_WHOLE_FILE_BYTES", 2_000_000)
    (folder / "reports").mkdir()
    for name, write in ODD.items():
        write(folder / "reports" / name)
    (folder / "reports" / "two.jsonl.zst").write_bytes(
        b"".join(zstandard.compress(text) for text in (b'"x"\n', json.dumps(SECRET).encode()))
    )
    ended = pollex(*FORGET, "--rewrite", "--json", folder / "reports")
    assert ended.code == 3, ended.err
    told = json.loads(ended.out)
    assert {Path(path).name for path in told["left"]} == set(ODD)
    assert not any("unexpected" in why for why in told["left"].values())
    assert {Path(path).name for path in told["rewritten"]} == {"s.csv", "s.jsonl", "two.jsonl.zst"}


@pytest.mark.parametrize(
    "begins", ["<script ", "<", "<tr ", "<div ", "<!--", '="', "<li>", "<style>x", "&"]
)
def test_pages_are_looked_into_in_time_that_grows_with_their_length(
    folder: Path, pollex: Pollex, begins: str
) -> None:
    (folder / "made" / "x.html").write_text(begins * 40_000 + f"</script><p>{SECRET}</p><" + begins)
    assert pollex(*FORGET, "--dry-run").code == 3


AS_THEY_STAND = {
    "mine.csv": (
        f'\ufeffid;x,"quote"\r\n\'b,"plain"\r\nc,"said: {SECRET}"\r\nd, 1.10\n',
        '\ufeffid;x,"quote"\r\n\'b,"plain"\r\nc,[forgotten]\r\nd, 1.10\n',
    ),
    "mine.jsonl": (
        f'{{"id": "b",  "x": 1.00000000000000000001}}\n{{"id": "anna-1"}}\r\n{{"quote": "{SECRET}"}}\r\n',
        '{"id": "b",  "x": 1.00000000000000000001}\n{"quote": "[forgotten]"}\r\n',
    ),
}


@pytest.mark.parametrize("name", AS_THEY_STAND)
def test_rows_of_others_stand_in_a_rewritten_file_as_they_stood(
    name: str, folder: Path, pollex: Pollex
) -> None:
    before, after = AS_THEY_STAND[name]
    (path := folder / name).write_bytes(before.encode())
    ended = pollex(*FORGET, name, "--rewrite")
    assert ended.code == 0, ended.err
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latin.csv", b"id,quote\nb,caf\xe9\nc," + SECRET.encode() + b"\n"),
        ("long.json", f'[1.00000000000000000001, "{SECRET}"]'.encode()),
        ("twice.jsonl", f'{{"a": 1, "a": 2, "quote": "{SECRET}"}}\n'.encode()),
    ],
)
def test_a_file_that_would_lose_something_of_others_is_named_and_left(
    name: str, content: bytes, folder: Path, pollex: Pollex
) -> None:
    (path := folder / name).write_bytes(content)
    ended = pollex(*FORGET, name, "--rewrite")
    assert (ended.code, path.read_bytes()) == (3, content)
    assert name in ended.out + ended.err


TYPES = (
    "'\\x00\\xff'::BLOB AS a, 1.1::DECIMAL(38, 20) AS b, 'nan'::DOUBLE AS c, INTERVAL 1 MONTH AS d, [1.5, NULL] AS e",
    "TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS f, MAP {'k': 1} AS g, uuid() AS h, 0.1::FLOAT AS i",
)


def test_a_table_of_any_types_keeps_the_rows_of_others_as_they_are(
    folder: Path, pollex: Pollex
) -> None:
    path = folder / "mine.parquet"
    rows = [("b", "plain"), ("anna-1", "x"), ("c", f"said: {SECRET}"), ("d", "plain")]
    with duckdb.connect() as database:
        database.execute("CREATE TABLE rows (id VARCHAR, quote VARCHAR)")
        database.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        database.execute(f"COPY (SELECT *, {', '.join(TYPES)} FROM rows) TO '{path}'")
        everything = f"SELECT COLUMNS(*)::VARCHAR FROM '{path}'"
        before = database.execute(everything).fetchall()
        ended = pollex(*FORGET, path, "--rewrite")
        assert ended.code == 0, ended.out
        after = database.execute(everything).fetchall()
    assert [row[:2] for row in after] == [("b", "plain"), ("c", "[forgotten]"), ("d", "plain")]
    assert [row[2:] for row in after] == [before[place][2:] for place in (0, 2, 3)]


def test_a_table_that_quotes_where_json_is_not_exact_is_named_and_left(
    folder: Path, pollex: Pollex
) -> None:
    path = folder / "mine.parquet"
    duckdb.execute(f"COPY (SELECT 'b' AS id, '{SECRET}'::BLOB AS quote) TO '{path}'")
    before = path.read_bytes()
    ended = pollex(*FORGET, path, "--rewrite")
    assert (ended.code, path.read_bytes()) == (3, before)
    assert "a column of BLOB quotes them" in ended.out + ended.err
