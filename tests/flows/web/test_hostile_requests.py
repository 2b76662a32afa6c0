"""Some hundred requests of somebody who has the token and means harm: none ends in an error, none writes elsewhere."""

import json
from pathlib import Path

import pytest
from hostile_requests import Target, hostile_requests
from web_site import BASE, TOKEN, client_of, made_app

from pollex.services.bring import AllowedRoots, keep_place_as_log
from pollex.services.readings import LOGS_FOLDER_NAME
from pollex.store.seal import Seal
from pollex.store.store import Store

N = 100
ROW = {"messages": [{"role": "user", "content": "Hi there"}], "thumbs": "up"}


def files_outside(folder: Path) -> set[Path]:
    """Files that no request to these pages may write."""
    return {
        path
        for path in folder.rglob("*")
        if path.is_file() and f"/.pollex/{LOGS_FOLDER_NAME}/" not in str(path)
    }


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_hostile_request_ends_in_an_error_or_leaves_anything_outside_of_the_logs(
    tmp_path: Path, seed: int
) -> None:
    (tmp_path / "roots").mkdir()
    with Store.open(tmp_path / ".pollex") as store:
        (tmp_path / "roots" / "a.jsonl").write_text(f"{json.dumps(ROW)}\n" * 2, "utf-8")
        roots = AllowedRoots((str(tmp_path / "roots"),))
        reading = keep_place_as_log(store.folder, "a.jsonl", roots, 100_000)
        app = made_app(store, roots=roots, max_upload=100_000)
        target = Target(BASE.partition("://")[2], TOKEN, (reading.id,))
        Seal.of(store.folder)  # a server makes its token of it at its start
        before = files_outside(tmp_path)
        answers: dict[int, int] = {}
        async with client_of(app) as client:
            for request in hostile_requests(target, N, seed):
                answer = await client.request(
                    request.method,
                    request.path,
                    headers=[(name, value.encode("utf-8")) for name, value in request.headers],
                    content=request.body,
                )
                assert answer.status_code < 500, (request, answer.text)
                assert "root:x:0:" not in answer.text
                answers[answer.status_code] = answers.get(answer.status_code, 0) + 1
            # and the server is as it was
            (log,) = [
                log
                for log in (await client.get("/api/logs")).json()["logs"]
                if log["id"] == reading.id
            ]
            assert log["titles"] == ["a.jsonl"]
        assert files_outside(tmp_path) == before
    assert {200, 400, 403, 404} <= answers.keys()
