"""Logs packed by tar, bzip2 and XZ are read as those of zip and gzip are."""

import bz2
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pollex.errors import BadInput
from pollex.formats.content import detect_file_ending
from pollex.formats.files import count_unpacked_bytes
from pollex.formats.read_logs import read_logs

ROWS = [
    {
        "id": id_,
        "messages": [
            {"role": "user", "content": "Is it open?"},
            {"role": "assistant", "content": "Yes."},
        ],
    }
    for id_ in "ab"
]
LOG = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def make_tar(mode: str, members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{mode}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))

        link = tarfile.TarInfo("outside.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


@pytest.mark.parametrize(
    "name", ["log.tar", "log.tgz", "log.tar.bz2", "log.tar.xz", "named-wrongly.csv"]
)
def test_regular_files_of_a_tar_archive_are_read(tmp_path: Path, name: str) -> None:
    mode = {"log.tar": "", "log.tgz": "gz", "log.tar.bz2": "bz2", "log.tar.xz": "xz"}.get(name, "")
    (path := tmp_path / name).write_bytes(make_tar(mode, {"../few.jsonl": LOG, "image.png": b"x"}))
    assert [conversation.id for conversation in read_logs(path).conversations] == ["a", "b"]
    assert not (tmp_path.parent / "few.jsonl").exists()


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
@pytest.mark.parametrize("streams", [1, 2])
def test_bzip2_and_xz_are_read_and_counted(
    tmp_path: Path, pack: Callable[[bytes], bytes], streams: int
) -> None:
    half = LOG.index(b"\n") + 1
    parts = [LOG] if streams == 1 else [LOG[:half], LOG[half:]]
    (path := tmp_path / "log.jsonl.packed").write_bytes(b"".join(map(pack, parts)))
    assert [conversation.id for conversation in read_logs(path).conversations] == ["a", "b"]
    assert count_unpacked_bytes("log", path, 1 << 20) == len(LOG)
    assert detect_file_ending("log.jsonl.packed", path).startswith(".jsonl.")


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_what_is_cut_or_unpacks_to_nothing_but_blanks_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    (path := tmp_path / "log").write_bytes(pack(LOG)[:-8])
    with pytest.raises(BadInput, match="can't be unpacked"):
        read_logs(path)
    path.write_bytes(pack(b"\n" * (5 << 20)))
    with pytest.raises(BadInput, match="4 MB"):
        read_logs(path)


def test_an_archive_that_is_cut_or_has_no_log_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "log.tar").write_bytes(make_tar("", {"few.jsonl": LOG * 40})[:1500])
    with pytest.raises(BadInput, match="can't be unpacked"):
        read_logs(path)
    path.write_bytes(make_tar("", {"image.png": b"x"}))
    with pytest.raises(BadInput, match="no table and no JSON"):
        read_logs(path)
