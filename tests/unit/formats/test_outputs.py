"""Where files are written: whole or not at all, through links that the user named, and never over a device."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pollex.errors import WrongUse
from pollex.formats.write import (
    require_writable_output_path,
    write_json_lines,
    write_rows,
    write_text_files_into_folder,
)
from pollex.outputs import make_folder, open_draft, require_output, write_file, write_text
from pollex.services.learn_result import choose_report_path
from pollex.services.score import page_of

ROWS = [{"a": "1"}, {"a": "2"}]
COLUMNS = {"a": "VARCHAR"}
WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_text(path, "new"),
    "bytes": lambda path: write_file(path, b"new"),
    "lines": lambda path: write_json_lines(path, [1, 2]),
    "jsonl": lambda path: write_rows(path.with_suffix(".jsonl"), ROWS, COLUMNS),
    "csv": lambda path: write_rows(path.with_suffix(".csv"), ROWS, COLUMNS),
    "parquet": lambda path: write_rows(path.with_suffix(".parquet"), ROWS, COLUMNS),
}
ENDINGS = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet"}


@pytest.fixture(params=WRITERS)
def writing(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Path, Callable[[], object]]]:
    """A path to write to, and what writes there; nothing else is left behind in its folder."""
    path = tmp_path / f"out{ENDINGS.get(request.param, '')}"
    yield path, lambda: WRITERS[request.param](path)
    assert not [left.name for left in tmp_path.iterdir() if left.name.startswith(".")]


Writing = tuple[Path, Callable[[], object]]


def test_what_a_link_leads_to_is_written_and_the_link_stays(
    writing: Writing, tmp_path: Path
) -> None:
    path, write = writing
    (tmp_path / "other").mkdir()
    (target := tmp_path / "other" / "target").write_text("old")
    path.symlink_to(target)
    write()
    assert path.is_symlink()
    assert target.read_bytes() not in (b"old", b"")
    assert [left.name for left in target.parent.iterdir()] == ["target"]


def test_a_file_that_is_written_anew_has_the_rights_and_the_owner_that_it_had(
    writing: Writing,
) -> None:
    path, write = writing
    write()
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    before = path.stat()
    write()
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino, "it was written anew"


def test_nobody_reads_in_the_draft_of_a_private_file(tmp_path: Path) -> None:
    (path := tmp_path / "out").write_text("before")
    path.chmod(0o600)
    with open_draft(path) as draft:
        draft.write_text("after")
        assert draft.stat().st_mode & 0o077 == 0


def test_a_link_that_leads_nowhere_yet_makes_its_target(writing: Writing, tmp_path: Path) -> None:
    path, write = writing
    path.symlink_to(tmp_path / "later")
    write()
    assert path.is_symlink()
    assert (tmp_path / "later").stat().st_size


def test_a_pipe_is_written_into_and_stays_one(writing: Writing) -> None:
    path, write = writing
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write()
    assert os.read(reader, 1 << 16)
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_pipe_that_nobody_reads_is_told_and_does_not_hang(writing: Writing) -> None:
    path, write = writing
    os.mkfifo(path)
    with pytest.raises(WrongUse, match="nobody reads from this pipe"):
        write()


def test_dev_null_swallows_everything_and_stays_a_device(tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    for path in (Path("/dev/null"), null):
        require_writable_output_path(path)
        write_text(path, "words")
        write_json_lines(path, [1])
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("name", ["block", "socket", "random"])
def test_other_devices_and_sockets_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    else:
        made = (
            (stat.S_IFBLK, os.makedev(7, 200))
            if name == "block"
            else (stat.S_IFCHR, os.makedev(1, 8))
        )
        try:
            os.mknod(path, made[0] | 0o600, made[1])
        except PermissionError:
            pytest.skip("only root makes devices")
    for refused in (lambda: require_output(path), lambda: write_text(path, "words")):
        with pytest.raises(WrongUse, match="it is a device or a socket"):
            refused()


def test_what_the_user_did_not_name_is_not_written_through_a_link(tmp_path: Path) -> None:
    (target := tmp_path / "target").write_text("mine")
    (path := tmp_path / "todo.jsonl").symlink_to(target)
    for refused in (
        lambda: write_text(path, "words", named=False),
        lambda: write_json_lines(path, [1], named=False),
        lambda: write_rows(path, ROWS, COLUMNS, named=False),
        lambda: require_writable_output_path(path, named=False),
    ):
        with pytest.raises(WrongUse, match="it is a link, and is not followed"):
            refused()
    assert target.read_text() == "mine"


def test_files_that_others_stand_beside_are_files(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(WrongUse, match="it is no file"):
            require_output(path, regular=True)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (one := tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(one)
    with pytest.raises(WrongUse, match="Too many levels"):
        require_writable_output_path(one)


def test_a_link_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "o.parquet").symlink_to(tmp_path / "none" / "x.parquet")
    with pytest.raises(WrongUse, match="a link into a folder that isn't there"):
        require_writable_output_path(tmp_path / "o.parquet")


def test_no_folder_is_made_where_something_else_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("file", "file/inner", "nowhere", "loop"):
        with pytest.raises(WrongUse, match=r"leads nowhere|no folder|a folder of this name"):
            make_folder(tmp_path / name)
    make_folder(tmp_path / "new" / "folder")
    make_folder(tmp_path / "new" / "folder")


def test_nobody_can_guess_the_name_of_a_draft(tmp_path: Path) -> None:
    with open_draft(tmp_path / "a") as first, open_draft(tmp_path / "a") as second:
        assert first != second
        first.write_text("1")
        second.write_text("2")
    assert (tmp_path / "a").read_text() == "1", "the one that ended last"


THEIRS = {"promptfooconfig.yaml": "mine: 1\n", "cases.jsonl": '{"mine": 1}\n', "chat.txt": "mine\n"}
MADE = {"promptfooconfig.yaml": "# pollex cases\n", "cases.jsonl": '{"id": 1}\n', "chat.txt": "z\n"}


@pytest.mark.parametrize("name", THEIRS)
def test_no_file_of_the_users_is_written_over_in_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(THEIRS[name])
    with pytest.raises(WrongUse, match="a file is there already that pollex did not write"):
        write_text_files_into_folder(tmp_path, MADE)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: THEIRS[name]}


def test_what_pollex_made_in_a_folder_is_made_anew(tmp_path: Path) -> None:
    write_text_files_into_folder(tmp_path / "new", MADE)
    again = {name: text.replace("z", "y").replace("1", "2") for name, text in MADE.items()}
    write_text_files_into_folder(tmp_path / "new", again)
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == again
    rows = {"cases.jsonl": '{"id": 3}\n'}
    write_text_files_into_folder(tmp_path / "new", rows)
    assert (tmp_path / "new" / "cases.jsonl").read_text() == '{"id": 3}\n'


def test_a_page_that_somebody_else_wrote_is_replaced_only_where_the_user_named_it(
    tmp_path: Path,
) -> None:
    page = tmp_path / "report.html"
    page.write_text("<h1>My own page</h1>", encoding="utf-8")
    with pytest.raises(WrongUse, match="pollex didn't write"):
        require_writable_output_path(page, named=False)
    assert "My own page" in page.read_text("utf-8")
    require_writable_output_path(page)


def test_a_report_and_a_page_of_scores_leave_pages_of_others_in_their_place(tmp_path: Path) -> None:
    assert choose_report_path(tmp_path / "a.json").name == "report.html"
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    assert choose_report_path(tmp_path / "a.json").name == "a-report.html"
    assert page_of(tmp_path / "s.jsonl").name == "s.html"
    (tmp_path / "s.html").write_text("mine", encoding="utf-8")
    assert page_of(tmp_path / "s.jsonl").name == "s-scores.html"
