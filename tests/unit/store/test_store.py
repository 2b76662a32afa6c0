"""The store: what is written is read back by whom it may, and what can't be opened or kept is refused or made anew."""

import hashlib
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Feedback, ToolCall, ToolResult, Turn
from pollex.errors import PollexError, ResumeRefused, StoreBusy, StoreDamaged, WrongUse
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.store.columns import list_parts_of_pile
from pollex.store.ledger import StoreCallLedger
from pollex.store.repair import rebuild_store
from pollex.store.resume import (
    StoredAnswerMemory,
    find_last_unfinished_run,
    find_resumable_run,
    find_run,
    iterate_conversations,
    list_stored_runs,
    read_answers,
    read_extractions,
    read_facts_by_id,
    read_step_result,
)
from pollex.store.rows import (
    AnswerRows,
    make_conversation_rows,
    make_fact_row,
    make_rubric_rows,
    read_conversation_row,
)
from pollex.store.runs import Run, is_run_worked_on
from pollex.store.soundness import check_whole_store
from pollex.store.store import Store
from pollex.store.tables import FactRow, LabelRow, ScoreRow, SpanRow
from pollex.store.traces import build_span_tree, find_rubric_provenance

MAKE_AND_REMOVE_FILES = """
import sys
from pathlib import Path

files = [Path(sys.argv[1], f"{number}.sqlite-wal") for number in range(9)]
while True:
    for file in files:
        file.touch()
        file.unlink()
"""
"""A process that makes and removes files, as SQLite does beside a database when it is opened and closed."""


def begin(store: Store, command: str = "learn", **fingerprint: str) -> Run:
    return store.begin(
        command, arguments={"out": "r.json"}, fingerprint=fingerprint, versions={"pollex": "0"}
    )


class TestRefusals:
    def test_a_file_in_the_folders_place_is_refused_and_a_missing_store_is_not_made_by_a_reader(
        self, folder: Path
    ) -> None:
        with pytest.raises(WrongUse, match="there is no store here"):
            Store.open(folder, read_only=True)
        assert not folder.exists()
        folder.write_text("")
        with pytest.raises(WrongUse, match="store="):
            Store.open(folder)

    def test_a_store_that_was_removed_takes_nothing_more_and_says_so(self, folder: Path) -> None:
        with Store.open(folder) as store:
            shutil.rmtree(folder)
            with pytest.raises(PollexError, match="removed while it was in use → put it back"):
                begin(store)

    def test_files_that_another_process_takes_away_meanwhile_are_no_fault_of_the_store(
        self, folder: Path
    ) -> None:
        Store.open(folder).close()
        with subprocess.Popen([sys.executable, "-c", MAKE_AND_REMOVE_FILES, folder]) as other:
            try:
                for _ in range(300):
                    Store.open(folder).close()
            finally:
                other.kill()

    def test_a_file_that_is_no_store_is_refused_and_left_alone(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "store.sqlite").write_bytes(b"garbage" * 3000)
        with pytest.raises(StoreDamaged, match=r"not a database.* → `pollex doctor --rebuild`"):
            Store.open(folder)
        assert (folder / "store.sqlite").read_bytes() == b"garbage" * 3000

    @pytest.mark.parametrize(
        ("made", "advice"), [(9, "`pollex doctor --rebuild` brings it over"), (99, "the newer")]
    )
    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_store_of_another_pollex_is_refused_and_the_command_is_named(
        self, folder: Path, made: int, advice: str, read_only: bool
    ) -> None:
        Store.open(folder).close()
        with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
            connection.execute(f"PRAGMA user_version = {made}")
        with pytest.raises(
            WrongUse, match=rf"the store has schema {made}, and pollex .* → .*{advice}"
        ):
            Store.open(folder, read_only=read_only)

    def test_a_store_whose_database_is_gone_is_not_begun_anew_beside_its_backup(
        self, folder: Path
    ) -> None:
        with Store.open(folder) as store:
            store.finish(begin(store).id, "done")
        (folder / "store.sqlite").unlink()
        with pytest.raises(StoreDamaged, match=r"it is gone.* → `pollex doctor --rebuild`"):
            Store.open(folder)
        rebuild_store(folder)
        with Store.open(folder) as store:
            assert [run.status for run in list_stored_runs(store)] == ["done"]

    @pytest.mark.parametrize(
        "left", [b"", pytest.param(None, id="a database that lost its tables")]
    )
    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_database_without_tables_beside_what_a_store_left_is_damaged_and_comes_from_its_backup(
        self, folder: Path, left: bytes | None, read_only: bool
    ) -> None:
        with Store.open(folder) as store:
            store.finish(begin(store).id, "done")

        database = folder / "store.sqlite"
        database.unlink()
        if left is None:
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA journal_mode = WAL")
        else:
            database.write_bytes(left)

        backup = (folder / "backup.sqlite").read_bytes()
        with pytest.raises(StoreDamaged, match=r"→ `pollex doctor --rebuild`"):
            Store.open(folder, read_only=read_only)
        assert (folder / "backup.sqlite").read_bytes() == backup

        assert rebuild_store(folder)[0] == "store.sqlite is kept as store.sqlite.damaged.1"
        with Store.open(folder) as store:
            assert [run.status for run in list_stored_runs(store)] == ["done"]

    @pytest.mark.parametrize("remains", ["checkpoints.sqlite", "runs/learn-1/texts-1.parquet"])
    def test_an_empty_database_beside_states_or_parts_of_runs_is_damaged(
        self, folder: Path, remains: str
    ) -> None:
        (folder / remains).parent.mkdir(parents=True)
        (folder / remains).write_bytes(b"of a run")
        (folder / "store.sqlite").touch()
        with pytest.raises(StoreDamaged, match="it is empty"):
            Store.open(folder)

    def test_a_backup_that_has_more_than_the_database_stays(
        self, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with Store.open(folder) as store:
            store.flush()
        earlier = (folder / "store.sqlite").read_bytes()
        with Store.open(folder) as store:
            store.finish(begin(store).id, "done")
        backup = (folder / "backup.sqlite").read_bytes()

        # somebody put a database from before the run in its place
        (folder / "store.sqlite").write_bytes(earlier)
        with Store.open(folder) as store:
            store.finish(begin(store).id, "done")
        assert (folder / "backup.sqlite").read_bytes() == backup
        assert "the last one stays" in caplog.text
        assert "its backup has more runs" in caplog.text

    def test_a_reader_has_what_was_put_before_closing_and_can_not_write(
        self, folder: Path, conversation: Conversation
    ) -> None:
        with Store.open(folder) as store:
            store.put(make_conversation_rows("run", [conversation]))
        with Store.open(folder, read_only=True) as store:
            assert list(iterate_conversations(store, "run")) == [conversation]
            with pytest.raises(WrongUse, match="for reading only"):
                store.put(make_conversation_rows("run", [conversation]))

    def test_a_row_with_a_number_that_is_none_is_the_callers_error_and_stops_nothing(
        self, store: Store
    ) -> None:
        with pytest.raises(ValueError, match="can't keep"):
            store.put([ScoreRow("run", "c", float("nan"), None, None, None)])
        begin(store)

    def test_nothing_in_a_query_reaches_other_files(
        self, folder: Path, conversation: Conversation
    ) -> None:
        with Store.open(folder) as store:
            store.put(make_conversation_rows("run", [conversation]))
            store.flush()
            with pytest.raises(PollexError, match="attached"):
                store.rows(f"ATTACH '{folder}/other.sqlite' AS other")
            for sql in (
                "SELECT * FROM read_text('/etc/hostname'), conversations",
                "SELECT * FROM read_csv('/etc/*'), conversations",
            ):
                with pytest.raises(duckdb.Error, match=r"disabled|Cannot access"):
                    store.ask("run", sql)
        assert not (folder / "other.sqlite").exists()


class TestRights:
    def test_files_and_folders_are_their_owners_alone_wherever_they_were_before(
        self, folder: Path, conversation: Conversation
    ) -> None:
        with Store.open(folder) as store:
            store.backup()
        folder.chmod(0o755)
        (folder / "backup.sqlite").chmod(0o644)
        (folder / "store.sqlite").chmod(0o644)
        with Store.open(folder) as store:
            assert store.secret
            run = begin(store).id
            store.put(make_conversation_rows(run, [conversation]))
            store.put([LabelRow("ann", "h", "c", run, "q", '"yes"')])
            store.finish(run, "done")
            assert_private(folder)
        rebuild_store(folder)
        assert_private(folder)


def assert_private(folder: Path) -> None:
    rights = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    assert {
        path.name: oct(mode)
        for path, mode in rights.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    } == {}


class TestReadingBack:
    async def test_conversations_come_back_as_they_were_in_their_order(
        self, folder: Path, conversation: Conversation
    ) -> None:
        flags = ("bidi", "too_large")
        others = [conversation.model_copy(update={"id": name, "flags": flags}) for name in "zayb"]
        with Store.open(folder) as store:
            store.put(make_conversation_rows("run", [*others, conversation], side="train"))
            await store.write(make_conversation_rows("run", [others[2]], side="train"))
            assert list(iterate_conversations(store, "run")) == [*others, conversation]
            assert list(
                iterate_conversations(store, "run", ids=["b", conversation.id, "none"])
            ) == [
                others[3],
                conversation,
            ]
            assert list(iterate_conversations(store, "another")) == []
            assert store.ask("run", "SELECT count(*) AS n FROM texts") == [{"n": 1}]

    async def test_calls_of_tools_and_what_people_wrote_come_back_and_texts_kept_before_them_too(
        self, folder: Path
    ) -> None:
        call = ToolCall(name="book", arguments='{"day": "Friday"}', id="1")
        said = Turn(role="assistant", content=call.mark, calls=(call,))
        failed = Turn(role="tool", content="full", result=ToolResult(id="1", error="no room"))
        note = Feedback(comment="Wrong date.", tags=("date",), author="ann", time=1.5, turn=1)
        one = Conversation(
            id="a", turns=(Turn(role="user", content="Book it."), said, failed), feedback=(note,)
        )
        before = '[["user","Book it."],["assistant","[tool call: book]"]]'
        with Store.open(folder) as store:
            await store.write(make_conversation_rows("run", [one]))
            assert list(iterate_conversations(store, "run")) == [one]
            row = store.ask("run", "SELECT * EXCLUDE (feedback), '' AS turns FROM conversations")[
                0
            ] | {"turns": before}
        earlier = read_conversation_row(row)
        assert ([turn.content for turn in earlier.turns], earlier.feedback) == (
            ["Book it.", "[tool call: book]"],
            (),
        )

    async def test_extractions_come_back_also_the_failed_ones(
        self, folder: Path, conversation: Conversation, extraction: Extraction
    ) -> None:
        failed = Unanswered(question_id="", outcome="refused", detail="no", judge="gpt")
        with Store.open(folder) as store:
            store.put([make_fact_row("run", "extraction", conversation.id, failed)])
            store.put([make_fact_row("run", "extraction", "c2", failed)])
            await store.write([make_fact_row("run", "extraction", conversation.id, extraction)])
            assert read_extractions(store, "run") == {conversation.id: extraction, "c2": failed}

    async def test_the_last_answer_stands_and_a_missing_one_stays_missing(
        self, folder: Path, conversation: Conversation, question: Question, answer: Answer
    ) -> None:
        other = question.model_copy(update={"id": "r2"})
        missing = Unanswered(question_id="r2", outcome="error", detail="timeout: late", judge="gpt")
        with Store.open(folder) as store:
            first = missing.model_copy(update={"question_id": "r1"})
            store.put(AnswerRows("run").of(conversation, [question], [first], "f"))
            await store.write(
                AnswerRows("run").of(conversation, [question, other], [answer, missing], "f")
            )
            assert read_answers(store, "run") == {conversation.id: {"r1": answer, "r2": missing}}
            assert StoredAnswerMemory(store).find("g", [conversation.text_hash]) == {}
            known = StoredAnswerMemory(store).find("f", [conversation.text_hash])
            expected = answer.model_copy(update={"asked_in": "run"})
            assert known == {conversation.text_hash: {question.digest: expected}}

    async def test_rubrics_keep_their_provenance_and_their_last_words(
        self, folder: Path, rubric: Rubric
    ) -> None:
        worded = rubric.model_copy(
            update={"text": "The user is polite.", "reason_ids": ("e1", "e2")}
        )
        with Store.open(folder) as store:
            store.put(make_rubric_rows("run", [rubric, rubric.model_copy(update={"id": "r0"})]))
            await store.write(make_rubric_rows("run", [worded]))
            assert find_rubric_provenance(store, "run", rubric.id).rubric == worded
            assert find_rubric_provenance(store, "run", "r0").rubric == rubric.model_copy(
                update={"id": "r0"}
            )

    async def test_a_step_is_none_until_it_is_done(self, store: Store) -> None:
        assert read_step_result(store, "run", "summarise") is None
        await store.write_step("run", "summarise", {"ids": ["r1", "\ud800"]})
        assert read_step_result(store, "run", "summarise") == {"ids": ["r1", "\ud800"]}
        assert read_step_result(store, "another", "summarise") is None

    def test_a_store_whose_tables_another_process_makes_just_now_is_waited_for(
        self, tmp_path: Path
    ) -> None:
        with Store.open(tmp_path / "made") as made:
            version = made.value("PRAGMA user_version")
            tables = made.rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        folder = tmp_path / "new"
        folder.mkdir()
        with (
            closing(
                sqlite3.connect(
                    folder / "store.sqlite", isolation_level=None, check_same_thread=False
                )
            ) as other,
            ThreadPoolExecutor(1) as pool,
        ):
            # its log has something already, and its tables aren't committed yet
            other.execute("PRAGMA journal_mode = WAL")
            other.execute("PRAGMA application_id = 1")
            other.execute("BEGIN IMMEDIATE")
            opening = pool.submit(Store.open, folder)
            time.sleep(0.3)
            for table in tables:
                other.execute(str(table["sql"]))
            other.execute(f"PRAGMA user_version = {version}")
            other.execute("COMMIT")
            with opening.result(20) as store:
                assert list_stored_runs(store) == []

    def test_threads_that_read_and_write_at_once_get_their_own_rows(self, folder: Path) -> None:
        def work(thread: int) -> list[str]:
            for number in range(10):
                store.put([ScoreRow(str(thread), str(number), None, None, None, None)])
                store.flush()
                rows = store.ask(str(thread), "SELECT run, conversation FROM scores ORDER BY seq")
                assert [row["conversation"] for row in rows] == [
                    str(one) for one in range(number + 1)
                ]
            return [row["run"] for row in rows]

        with Store.open(folder) as store, ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [[str(thread)] * 10 for thread in range(8)]


class TestRuns:
    def test_runs_of_one_second_keep_their_order_and_are_found_by_number_even_where_others_begin_alike(
        self, store: Store
    ) -> None:
        begun = [begin(store) for _ in range(11)]
        assert list_stored_runs(store) == begun
        assert len({run.id for run in begun}) == 11
        assert find_run(store, "last") == begun[10]
        assert find_run(store, "learn-1") == begun[0]
        assert find_run(store, begun[10].id) == begun[10]
        with pytest.raises(WrongUse, match="several runs"):
            find_run(store, "learn")
        with pytest.raises(WrongUse, match="there is no run"):
            find_run(store, "score-1")

    def test_a_resume_finds_the_last_run_that_did_not_end(self, store: Store) -> None:
        first, second, third = (begin(store, data="d") for _ in range(3))
        begin(store, "score", data="d")
        store.finish(second.id, "interrupted")
        store.finish(third.id, "partial")
        assert find_last_unfinished_run(store, "learn") is not None
        assert find_resumable_run(store, "learn", {"data": "d"}).id == second.id
        store.finish(second.id, "done")
        assert find_resumable_run(store, "learn", {"data": "d"}) == first

    def test_a_resume_with_something_else_is_refused_and_shows_what(self, store: Store) -> None:
        with pytest.raises(WrongUse, match="no learn run is unfinished"):
            find_resumable_run(store, "learn", {})
        run = begin(store, data="d1", model="m")
        told = rf"{run.id} .*\(data: other conversations, or .*; prompts: not set, and now p\)"
        with pytest.raises(ResumeRefused, match=told):
            find_resumable_run(store, "learn", {"data": "d2", "model": "m", "prompts": "p"})

    def test_a_run_is_worked_on_by_one_and_given_free_when_it_ends(self, folder: Path) -> None:
        with Store.open(folder) as store, Store.open(folder) as other:
            run = begin(store)
            with pytest.raises(StoreBusy, match=rf"process \d+ works on {run.id} → wait"):
                other.take_up(run.id)
            assert begin(other).number == 2
            assert is_run_worked_on(folder / "runs", run.id)
            store.finish(run.id, "interrupted")
            assert not is_run_worked_on(folder / "runs", run.id)
            other.take_up(run.id, roles=["built-in (no LLM)"])
            found = find_run(store, run.id)
            assert (found.status, found.roles, found.finished) == (
                "unfinished",
                ("built-in (no LLM)",),
                None,
            )


def test_texts_of_more_bytes_than_most_lines_have_are_kept_whole(
    folder: Path, conversation: Conversation
) -> None:
    long = conversation.model_copy(
        update={"turns": (Turn(role="user", content='ü\n"' * 400_000), *conversation.turns)}
    )
    with Store.open(folder) as store:
        run = begin(store)
        store.put(
            make_conversation_rows(run.id, [long, conversation.model_copy(update={"id": "short"})])
        )
        store.flush()
        found = {one.id: one for one in iterate_conversations(store, run.id)}
    assert found[long.id].turns[0] == long.turns[0]
    assert len(found) == 2
    assert not list(folder.rglob(".*.draft"))


EARLIER = Path(__file__).with_name("earlier.tar.gz")
"""A store of schema 9: killed when a reply stood in its file and not yet in the database."""
LINES = ("replies.jsonl", "labels.jsonl", "facts.jsonl")


@pytest.fixture
def earlier(folder: Path) -> Path:
    with tarfile.open(EARLIER) as packed:
        packed.extractall(folder, filter="data")
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file()
    }


async def filled(folder: Path, calls: int) -> None:
    """Make a store whose last run ended, and that has one reply and one label since."""
    with Store.open(folder) as store:
        ledger = StoreCallLedger(store)
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
        for number in range(calls):
            await ledger.record(f"k{number}", 1, {}, f"answer to {number} " + "x" * 500)
        store.put([LabelRow("ann", "h", "c", run.id, "q", '"yes"')])
        store.finish(run.id, "done")


async def replies(folder: Path, keys: list[str]) -> list[str | None]:
    with Store.open(folder) as store:
        found = [await StoreCallLedger(store).lookup(key) for key in keys]
    return [None if call is None else call.raw for call in found]


async def test_a_store_of_an_earlier_pollex_is_brought_over_once_and_its_files_are_kept(
    earlier: Path,
) -> None:
    before = digests(earlier)
    with pytest.raises(
        WrongUse, match="`pollex doctor --rebuild` brings it over once, and keeps the files"
    ):
        Store.open(earlier)
    told = rebuild_store(earlier)
    assert told == [
        "store.sqlite is kept as store.sqlite.earlier.1",
        "replies.jsonl is kept as replies.jsonl.earlier.1",
        "labels.jsonl is kept as labels.jsonl.earlier.1",
        "facts.jsonl is kept as facts.jsonl.earlier.1",
        "the new database has 5 paid answers, 1 labels and 1 runs",
    ]
    after = digests(earlier)
    assert [after[f"{name}.earlier.1"] for name in LINES] == [before[name] for name in LINES]
    with closing(sqlite3.connect(earlier / "store.sqlite.earlier.1")) as kept:
        assert kept.execute("SELECT count(*) FROM calls WHERE reply IS NOT NULL").fetchone() == (4,)
    keys = [*(f"key{number}" for number in range(4)), "late", "sent"]
    assert await replies(earlier, keys) == [
        *(f"answer to {n}" for n in range(4)),
        "written before the kill",
        None,
    ]
    with Store.open(earlier) as store:
        check_whole_store(store)
        (run,) = list_stored_runs(store)
        assert (run.status, run.roles, run.result) == ("done", ("m",), {"scored": 4})
        assert read_step_result(store, run.id, "select") == {"kept": ["r1", "r2"]}
        assert store.rows("SELECT annotator, value FROM labels") == [
            {"annotator": "ann", "value": '"Agree"'}
        ]
        assert store.rows("SELECT * FROM batched") == [{"digest": "d", "key": "sent", "attempt": 1}]
        assert len(build_span_tree(store, run.id)) > 0
        assert (
            len(read_answers(store, run.id)) == len(list(iterate_conversations(store, run.id))) == 4
        )


async def test_an_earlier_database_that_can_not_be_read_is_made_of_the_files_beside_it(
    earlier: Path,
) -> None:
    (earlier / "store.sqlite-wal").unlink()
    (earlier / "store.sqlite").write_bytes(b"garbage" * 2000)
    assert "the new database has 5 paid answers, 1 labels and 1 runs" in rebuild_store(earlier)
    with Store.open(earlier) as store:
        (run,) = list_stored_runs(store)
        assert read_step_result(store, run.id, "select") == {"kept": ["r1", "r2"]}


async def test_a_reply_that_was_changed_comes_from_the_backup(folder: Path) -> None:
    await filled(folder, 3)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("UPDATE calls SET reply = replace(reply, 'to 1', 'to 7')")
        connection.execute("UPDATE labels SET value = '\"no\"'")
        connection.commit()
    with (
        Store.open(folder, read_only=True) as store,
        pytest.raises(StoreDamaged, match="calls were changed"),
    ):
        check_whole_store(store)
    assert not [line for line in rebuild_store(folder) if "lost" in line]
    assert [(said or "")[:11] for said in await replies(folder, ["k0", "k1", "k2"])] == [
        f"answer to {n}" for n in range(3)
    ]
    with Store.open(folder) as store:
        assert store.value("SELECT value FROM labels") == '"yes"'


async def test_what_is_neither_readable_nor_in_the_backup_is_said_to_be_lost_and_nothing_else_is(
    folder: Path,
) -> None:
    await filled(folder, 40)
    with Store.open(folder) as store:
        for number in range(40, 80):
            await StoreCallLedger(store).record(
                f"k{number}", 1, {}, f"answer to {number} " + "x" * 500
            )
        (folder / "backup.sqlite").rename(folder / "kept")
    (folder / "kept").replace(folder / "backup.sqlite")
    content = bytearray((folder / "store.sqlite").read_bytes())
    place = content.index(b"answer to 60") // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    (folder / "store.sqlite").write_bytes(content)
    (lost,) = [line for line in rebuild_store(folder) if "lost" in line]
    found = await replies(folder, [f"k{number}" for number in range(80)])
    missing = [number for number, said in enumerate(found) if said is None]
    assert 60 in missing
    assert 1 <= len(missing) <= 15
    assert min(missing) >= 40
    assert lost.startswith(f"calls: {len(missing)} were lost at most")


async def test_a_database_that_is_garbage_is_replaced_by_its_backup_and_is_kept(
    folder: Path,
) -> None:
    await filled(folder, 3)
    (folder / "store.sqlite").write_bytes(b"garbage" * 3000)
    told = rebuild_store(folder)
    assert told[:2] == [
        "store.sqlite is kept as store.sqlite.damaged.1",
        "the new database has 3 paid answers, 1 labels and 1 runs",
    ]
    assert "calls: what the end of the file had is lost, but for the backup of the last run" in told
    assert (folder / "store.sqlite.damaged.1").read_bytes() == b"garbage" * 3000


async def test_a_rebuild_that_was_killed_before_it_gave_the_new_database_its_name_is_ended_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(folder, 3)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pollex.store.repair._set_old_files_aside", killed)
        with pytest.raises(KeyboardInterrupt):
            rebuild_store(folder)
    assert (folder / "store.sqlite").exists()
    rebuild_store(folder)
    assert not (folder / "store.sqlite.new").exists()
    assert await replies(folder, ["k2", "k3"]) == [f"answer to 2 {'x' * 500}", None]


def score(conversation: str, run: str = "r") -> ScoreRow:
    return ScoreRow(run, conversation, 1.0, "positive", True, None)


def span(item: str) -> SpanRow:
    return SpanRow("r", f"s-{item}", None, "judge", "role", item, (), (), "t", 1.0, "")


def begun_id(store: Store) -> str:
    return store.begin("score", arguments={}, fingerprint={}, versions={}).id


async def test_what_write_returns_from_is_read_by_other_processes_in_the_order_of_writing(
    store: Store,
) -> None:
    store.put([FactRow("r", "step", "a", "1"), score("c1"), span("c1")])
    await store.write([FactRow("r", "step", "a", "2"), score("c2"), span("c2")])
    with Store.open(store.folder, read_only=True) as reader:
        assert read_facts_by_id(reader, "r", "step") == {"a": 2}
        assert reader.ask("r", "SELECT conversation FROM scores ORDER BY seq") == [
            {"conversation": "c1"},
            {"conversation": "c2"},
        ]
        assert list(reader.each("SELECT item FROM spans ORDER BY rowid")) == [("c1",), ("c2",)]
        assert reader.value("SELECT count(*) FROM spans") == 2
        assert reader.value("SELECT item FROM spans WHERE item = ?", ["none"]) is None


def test_a_finished_run_has_one_part_of_each_kind_and_one_last_pulse(store: Store) -> None:
    run = begun_id(store)
    for number in range(40):
        store.put([score(str(number), run)])
        store.flush()
    store.finish(run, "done")
    assert len(list_parts_of_pile(store.folder / "runs" / run / "scores")) == 1
    found = store.ask(run, "SELECT conversation FROM scores ORDER BY seq")
    assert [row["conversation"] for row in found] == [str(number) for number in range(40)]
    for table in ("conversations", "texts", "answers", "scores"):
        assert store.ask("none", f"SELECT * FROM {table}") == []
    for done in (1, 2):
        store.pulse("r", {"done": done})
    store.flush()
    assert store.rows("SELECT run, payload FROM progress") == [
        {"run": "r", "payload": '{"done":2}'}
    ]


def test_work_in_a_transaction_happens_whole_or_not_at_all(store: Store) -> None:
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("DELETE FROM labels")
        raise ValueError("no")

    store.put([LabelRow("ann", "h", "c", "r", "q", '"yes"')])
    with pytest.raises(ValueError, match="no"):
        store.transact(work)
    assert store.value("SELECT count(*) FROM labels") == 1
    assert store.transact(lambda connection: connection.execute("DELETE FROM labels").rowcount) == 1


def test_without_texts_nothing_that_was_said_is_kept(
    store: Store, conversation: Conversation
) -> None:
    store.texts = False
    store.put(make_conversation_rows("r", [conversation]))
    store.flush()
    (found,) = iterate_conversations(store, "r")
    assert (found.id, found.turns) == (conversation.id, ())
    assert store.ask("r", "SELECT opening FROM conversations") == [{"opening": ""}]


def test_a_write_that_failed_is_told_and_the_store_takes_no_more(folder: Path) -> None:
    store = Store.open(folder)
    store.transact(lambda connection: connection.execute("DROP TABLE spans"))
    store.put([span("c1")])
    with pytest.raises(PollexError, match="damaged"):
        store.flush()
    with pytest.raises(PollexError, match="damaged"):
        store.put([score("c2")])
    with pytest.raises(PollexError, match="damaged"):
        store.close()
    store.close()


async def test_where_it_goes_on_a_failed_write_costs_its_writer_alone(folder: Path) -> None:
    with Store.open(folder, goes_on=True) as store:
        store.transact(lambda connection: connection.execute("DROP TABLE spans"))
        with pytest.raises(PollexError, match="damaged"):
            await store.write([span("c1")])
        await store.write([score("c2")])
        assert len(store.ask("r", "SELECT * FROM scores")) == 1


def test_a_closed_store_takes_nothing_and_lets_go_of_its_runs(folder: Path) -> None:
    store = Store.open(folder)
    run = begun_id(store)
    store.close()
    with pytest.raises(RuntimeError, match="closed"):
        store.put([score("c")])
    with Store.open(folder) as other:
        other.take_up(run)
        assert [one.id for one in list_stored_runs(other)] == [run]


async def test_what_pollex_never_writes_is_left_in_the_old_file_and_named(folder: Path) -> None:
    await filled(folder, 3)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        for changed in (
            "INSERT INTO labels (id, annotator, value, time) VALUES ('odd', 'ann', '1', 'yesterday')",
            "INSERT INTO progress (run, payload) VALUES ('score-1', '[1]')",
            "INSERT INTO facts (run, kind, payload) VALUES ('score-1', 'steps', '{}')",
            "INSERT INTO runs (id, number, command, status) VALUES ('odd', 9, 'score', 'flying')",
        ):
            connection.execute(changed)
        connection.commit()
    told = rebuild_store(folder)
    left = "with values that pollex doesn't write stand in the old file alone"
    assert [line for line in told if line.endswith(left)] == [
        f"{name}: 1 {left}" for name in ("labels", "progress", "runs")
    ]
    assert any(line.startswith("results of runs: 1 were lost") for line in told)
    with Store.open(folder) as store:
        check_whole_store(store)
        assert store.value("SELECT count(*) FROM runs") == 1


async def test_rows_of_a_room_that_is_not_installed_are_taken_over(folder: Path) -> None:
    await filled(folder, 1)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("CREATE TABLE visits (id TEXT, number INTEGER, PRIMARY KEY (id))")
        connection.execute("CREATE INDEX numbers_of_visits ON visits (number)")
        connection.execute("INSERT INTO visits VALUES ('v1', 7), ('v2', 'many')")
        connection.commit()
    told = rebuild_store(folder)
    assert "visits: taken over for a room that isn't installed here" in told
    assert "visits: 1 with values that pollex doesn't write stand in the old file alone" in told
    with Store.open(folder) as store:
        assert store.rows("SELECT * FROM visits") == [{"id": "v1", "number": 7}]
