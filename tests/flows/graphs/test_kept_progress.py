"""How far a run is can be read from its store while it runs."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollex.errors import Interrupted
from pollex.graphs.context import NullProgress
from pollex.runs.run import SECONDS_BETWEEN_PROGRESS_NOTES, RunSettings
from pollex.store.store import Store


def seen(folder: Path, run: str) -> Any:
    """What another process reads of a run."""
    with Store.open(folder, read_only=True) as reader:
        return json.loads(reader.value("SELECT payload FROM progress WHERE run = ?", [run]))


async def comes(store: Store, run: str, look: Callable[[Any], object], wanted: object) -> Any:
    """What is read once it has what is wanted."""
    for _ in range(200):
        await asyncio.sleep(SECONDS_BETWEEN_PROGRESS_NOTES / 5)
        store.flush()
        if look(found := seen(store.folder, run)) == wanted:
            break
    assert look(found) == wanted
    return found


def nodes_of(found: Any) -> dict[str, tuple[int, int, int]]:
    return {
        name: (one["n"], one["active"], one["errors"])
        for name, one in found.get("nodes", {}).items()
    }


async def test_stages_and_calls_are_kept_while_a_run_goes_on(tmp_path: Path) -> None:
    used = {"calls": 0}
    with Store.open(tmp_path) as store:
        setting = RunSettings.of(store, used=lambda: used)
        async with setting.begin_or_resume("score", {}, ["judge"]) as run:
            setting.progress.start("score", 40, done=10)
            setting.progress.advance("score", 5)
            used["calls"] = 7
            found = await comes(store, run.id, lambda found: found["used"], {"calls": 7})
            assert found == {"stages": {"score": {"done": 15, "total": 40}}, "used": {"calls": 7}}
            tracer = setting.tracer(run.id)
            with (
                tracer.span("judge", kind="role", item="c1") as span,
                tracer.span("judge", kind="role"),
            ):
                span.failed("refused")
            open_ = tracer.span("assess", kind="node").__enter__()
            setting.progress.advance("score", 25)
            nodes = {"judge": (2, 0, 1), "assess": (0, 1, 0)}
            found = await comes(store, run.id, nodes_of, nodes)
            assert found["errors"] == [{"node": "judge", "item": "c1", "text": "refused"}]
            open_.__exit__(None, None, None)
        store.flush()
        assert seen(tmp_path, run.id)["stages"]["score"] == {"done": 40, "total": 40}


async def test_progress_that_interrupts_a_run_is_kept_up_to_there(tmp_path: Path) -> None:
    class Stopping(NullProgress):
        def advance(self, stage: str, by: int = 1) -> None:
            raise Interrupted("stopped")

    with Store.open(tmp_path) as store:
        setting = RunSettings.of(store, progress=Stopping())
        with pytest.raises(Interrupted):  # noqa: PT012 - it is the run that is ended
            async with setting.begin_or_resume("score", {}, ["judge"]):
                setting.progress.start("score", 2)
                setting.progress.advance("score")
        store.flush()
        run = store.value("SELECT id FROM runs")
        assert seen(tmp_path, run)["stages"] == {"score": {"done": 1, "total": 2}}
        assert store.value("SELECT status FROM runs") == "interrupted"
