"""What took somebody's place or time: files of people, backups, endless files, replies that nobody sees."""

import io
import json
import os
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

from fault_cases import ROOT, case
from fault_cases.commands import bikes, learned, run, written
from fault_cases.machine import LAUGHS
from pollex.errors import BadInput, StoreDamaged
from pollex.formats.read_logs import read_logs
from pollex.rooms.remedy.agents.assistant import NoReply, convert_reply
from pollex.services.readings import keep_reading, make_reading
from pollex.store.database import BACKUP_FILE_NAME, DATABASE_FILE_NAME
from pollex.store.store import Store


@case("42.5.1", "an output within a folder that is read doesn't take the log's place")
def output_in_a_log_folder(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    (folder / "logs").mkdir()
    log = written(folder / "logs" / "few.jsonl", bikes(3))
    before = log.read_bytes()
    run(folder, "score", "logs", "--rubrics", "r.json", "--out", log, "--store", "s", code=2)
    run(folder, "label", "next", "logs", "--out", log, "--store", "s", code=2)
    assert log.read_bytes() == before
    return "2 of 2 refused"


@case("42.5.2", "a page that isn't pollex's stays where a command writes one of its own")
def page_of_a_person(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    (folder / "s.html").write_text("MINE")
    written(folder / "few.jsonl", bikes(3))
    run(folder, "score", "few.jsonl", "--rubrics", "r.json", "--out", "s.jsonl", "--store", "s")
    assert (folder / "s.html").read_text() == "MINE"
    return "1 of 1 stays"


@case("42.5.3", "thumbs that people filled in stay where the same command is run again")
def filled_in_thumbs(folder: Path) -> str:
    """See `case`."""
    unlabeled = [{"id": row["id"], "messages": row["messages"]} for row in bikes(10)]
    written(folder / "log.jsonl", unlabeled)
    words = ("label", "next", "log.jsonl", "--out", "next.jsonl", "--store", "s")
    run(folder, *words)
    sheet = folder / "next.jsonl"
    rows = [json.loads(line) for line in sheet.read_text(encoding="utf-8").splitlines()]
    filled = "".join(json.dumps(row | {"thumb": "up"}) + "\n" for row in rows)
    sheet.write_text(filled, encoding="utf-8")
    run(folder, *words, code=2)
    assert sheet.read_text(encoding="utf-8") == filled
    return f"{len(rows)} of {len(rows)} thumbs stay"


@case("42.5.5", "an empty database beside its backup is damaged, and the backup stays")
def empty_database(folder: Path) -> str:
    """See `case`."""
    with Store.open(folder / "s") as store:
        run_id = store.begin("learn", arguments={}, fingerprint={}, versions={}).id
        store.finish(run_id, "done")
    backup = (folder / "s" / BACKUP_FILE_NAME).read_bytes()
    (folder / "s" / DATABASE_FILE_NAME).write_bytes(b"")
    try:
        Store.open(folder / "s").close()
    except StoreDamaged:
        pass
    else:
        raise AssertionError("it was opened")
    assert (folder / "s" / BACKUP_FILE_NAME).read_bytes() == backup
    run(folder, "doctor", "--rebuild", "--store", "s")
    with Store.open(folder / "s") as store:
        assert store.value("SELECT count(*) FROM runs") == 1
    return "1 run of 1 is back"


@case("42.5.12", "YAML whose aliases multiply is refused at once")
def multiplying_aliases(folder: Path) -> str:
    """See `case`."""
    (folder / "log.yaml").write_text(f"a: &a [hello]\n{LAUGHS}")
    begun = time.monotonic()
    try:
        read_logs(folder / "log.yaml")
        words = ""
    except BadInput as error:
        words = str(error)
    seconds = time.monotonic() - begun
    assert "aliases" in words, words
    assert seconds < 5
    return f"{seconds:.1f} s"


@case("42.5.13", "logs in a tar archive are read, packed or not")
def archives_of_tar(folder: Path) -> str:
    """See `case`."""
    content = written(folder / "few.jsonl", bikes(3)).read_bytes()
    for mode in ("", "gz", "bz2", "xz"):
        path = folder / f"few-{mode}.tar"
        with tarfile.open(path, f"w:{mode}") as archive:
            info = tarfile.TarInfo("few.jsonl")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        assert len(read_logs(path).conversations) == 3, mode
    return "4 of 4 read"


@case("42.5.14", "serve refuses ports, intervals, folders and addresses that are none")
def serve_of_nonsense(folder: Path) -> str:
    """See `case`."""
    refused = (
        ("--port", 70_000),
        ("--watch-every", 0),
        ("--root", "missing"),
        ("--behind", "nonsense"),
        ("--webhook", "javascript:x"),
    )
    for typed in refused:
        run(folder, "serve", *typed, "--store", "new", code=2)
    assert not (folder / "new").exists()
    return f"{len(refused)} of {len(refused)} refused"


@case("42.5.16", "a reply without a visible character is none")
def unseen_replies(_folder: Path) -> str:
    """See `case`."""
    unseen = (
        "",
        "\u200b\u200b \u00a0",
        "\u2060\ufeff",
        "<think>The user wants",
        "<think>x</think>",
    )
    for text in unseen:
        assert isinstance(convert_reply(text), NoReply), ascii(text)
    return f"{len(unseen)} of {len(unseen)}"


@case("42.6.1", "a log outside the store that a stranger's store names is told, and not read")
def place_of_a_stranger(folder: Path) -> str:
    """See `case`."""
    far = written(folder / "private.jsonl", bikes(3))
    brought = keep_reading(
        replace(make_reading(folder / "s", "far"), places=(str(far),), titles=("far",))
    )
    note = brought.folder / "reading.json"
    # as a stranger writes it: nothing of this machine seals it
    content = json.loads(note.read_text()) | {"sealed": "0" * 64}
    note.write_text(json.dumps(content))
    run(folder, "inspect", "log:far", "--store", "s", code=2)
    run(folder, "share", "log:far", "--store", "s", code=2)
    return "2 of 2 refused"


@case("42.6.2", "a set with probabilities of beginnings takes no log's place, and no store's")
def set_in_place_of_a_log(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    log = written(folder / "few.jsonl", bikes(3))
    before = log.read_bytes()
    for out in (log, Path("s") / DATABASE_FILE_NAME):
        run(folder, "turns", "few.jsonl", "--rubrics", "r.json", "--out", out, code=2)
    words = ("turns", "few.jsonl", "--rubrics", "r.json")
    run(folder, *words, "--out", "x.jsonl", "--scores", "x.jsonl", code=2)
    assert log.read_bytes() == before
    return "3 of 3 refused"


@case("42.6.3", "a pipe where a page belongs is not waited for, and stays")
def pipe_in_place_of_a_page(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    written(folder / "few.jsonl", bikes(3))
    os.mkfifo(folder / "s.html")
    run(folder, "score", "few.jsonl", "--rubrics", "r.json", "--out", "s.jsonl", "--store", "s")
    assert (folder / "s.html").is_fifo()
    return "1 of 1 stays"


@case("42.6.4", "a difference to plan for that is none is refused before the work")
def difference_of_nothing(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    written(folder / "few.jsonl", bikes(3))
    for see in ("0", "-0.1", "1"):
        words = ("compare", "few.jsonl", "few.jsonl", "--rubrics", "r.json", "--see", see)
        run(folder, *words, "--store", "s", code=2)
    return "3 of 3 refused"


@case("42.7.1", "a set that is fitted again, or gets turns, takes no place of a file of the user's")
def sets_over_files_of_people(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    (folder / "mine.toml").write_text("mine = 1\n")
    for verb in ("refit", "turns"):
        run(folder, verb, "log.jsonl", "--rubrics", "r.json", "--out", "mine.toml", code=2)
    assert (folder / "mine.toml").read_text() == "mine = 1\n"
    return "2 of 2 refused"


@case("42.7.2", "an empty name forgets no conversation, and is no log")
def empty_names(folder: Path) -> str:
    """See `case`."""
    learned(folder)
    for words in (("--conversation", ""), ("--user", " ")):
        run(folder, "forget", *words, "--store", "s", code=2)
    run(folder, "score", "", "--rubrics", "r.json", "--out", "s.jsonl", "--store", "s", code=2)
    return "3 of 3 refused"


@case("42.7.3", "a spreadsheet with a cell far away is refused in words, within a gigabyte")
def far_cell(folder: Path) -> str:
    """See `case`."""
    sheet = ROOT / "tests" / "unit" / "formats" / "sheets" / "log.xlsx"
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    with ZipFile(sheet) as whole, ZipFile(folder / "log.xlsx", "w") as spoilt:
        for name in whole.namelist():
            spoilt.writestr(name, whole.read(name).replace(b"</sheetData>", far))
    ended = run(folder, "inspect", "log.xlsx", code=1)
    assert "it takes more than 1 GB of memory" in ended.err
    return "refused"
