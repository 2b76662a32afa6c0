"""Record the run of a large language model on the sample log, for `pollex demo --recorded`.

    python docs/record.py FOLDER      (`make record FOLDER=…`)

Prompts that the recording lacks are written to FOLDER/pending/KEY.json, with `key`, `messages` and the JSON schema of
the reply; whoever can answer them writes FOLDER/replies/KEY.txt, the JSON object alone, and the run goes on. It may be
stopped and started again at any time. When the last reply is there, replies, rubric set, scores and pages are put into
examples/recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pollex.cli.demo import learned_and_scored
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Reply, Request
from pollex.gateway.recorded import NotRecorded, RecordedEndpoint, RecordedWire, asked, body_of
from pollex.selection.policies import DEFAULT
from pollex.services.options import ModelOptions
from pollex.services.recorded import MANIFEST, PACKED, REPLIES, SCORES, Recording, result_in
from pollex.services.roles import prompt_versions
from pollex.store.folder import SIZE

HERE = Path(__file__).parents[1] / "examples" / "recorded"
MODEL = "recorded-llm"


@dataclass(frozen=True)
class AskedEndpoint(RecordedEndpoint):
    """A recording that waits for the replies that it lacks, and remembers which it gave."""

    folder: Path = field(kw_only=True)
    given: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, kw_only=True)

    def wire(self) -> RecordedWire:
        return AskingWire(self)


class AskingWire(RecordedWire):
    """Asks whoever reads the folder where the recording has no reply."""

    def __init__(self, endpoint: AskedEndpoint) -> None:
        super().__init__(endpoint)
        self._asked = endpoint

    async def send(self, request: Request, seconds: float) -> Reply:
        try:
            reply = await super().send(request, seconds)
        except NotRecorded:
            reply = Reply(status=200, body=await self._written(request))
        if request.key not in self._asked.composed:
            line = {"key": request.key, "stage": request.call.stage, "item": request.call.item, "body": reply.body}
            if request.call.stage == "judge":
                line |= dict(zip(("form", "statements"), asked(request), strict=True))
            self._asked.given[request.key] = line
        return reply

    async def _written(self, request: Request) -> str:
        """Return the body of a reply that somebody wrote."""
        pending = self._asked.folder / "pending" / f"{request.key}.json"
        reply = self._asked.folder / "replies" / f"{request.key}.txt"
        if not reply.exists():
            put(pending, {"key": request.key, "messages": list(request.call.messages), "schema": request.call.schema})
        while not reply.exists():  # noqa: ASYNC110 - people write it
            await asyncio.sleep(0.5)
        pending.unlink(missing_ok=True)
        text = json.dumps(json.loads(reply.read_text(encoding="utf-8")), ensure_ascii=False, separators=(",", ":"))
        return body_of(MODEL, text, request)


def put(path: Path, values: object) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")
    draft.rename(path)


def begun(folder: Path) -> Recording:
    """Return the recording to go on with, or a new one with a secret of its own."""
    if not (HERE / MANIFEST).exists():
        about = {"model": MODEL, "made": f"{date.today()}", "secret": secrets.token_hex(SIZE)}
        about |= {"policy": DEFAULT, "prompts": {}}
        put(HERE / MANIFEST, about)
    (folder / "replies").mkdir(parents=True, exist_ok=True)
    return Recording.at(HERE)


def record(folder: Path) -> None:
    """Run learning and scoring until every reply is there, and keep them with the result."""
    folder = folder.absolute()
    recording, out = begun(folder), Path("pollex-demo")
    os.chdir(folder)  # what is shown names no place of this machine
    shutil.rmtree(out, ignore_errors=True)
    endpoint = AskedEndpoint(MODEL, file=HERE / REPLIES, folder=folder)
    recording.prepare(out / ".pollex")
    limits = Limits(concurrency=1000, deadline=1e6)
    learned_and_scored(out, ModelOptions(chat=endpoint, limits=limits), as_json=False, beside=recording)
    every = {**endpoint.lines, **endpoint.given}.values()
    lines = sorted(every, key=lambda line: (line["stage"], line["item"], line["key"]))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (HERE / REPLIES).write_bytes(gzip.compress(text.encode(), mtime=0))
    for old in result_in(HERE):
        old.unlink()
    for file in result_in(out):
        shutil.copyfile(file, HERE / file.name)
    (HERE / PACKED).write_bytes(gzip.compress((out / SCORES).read_bytes(), mtime=0))
    about = json.loads((HERE / MANIFEST).read_text(encoding="utf-8"))
    put(HERE / MANIFEST, about | {"prompts": prompt_versions()} | usage(json.loads(line["body"]) for line in lines))


def usage(bodies: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Count calls and tokens."""
    used = [body["usage"] for body in bodies]
    names = ("prompt_tokens", "completion_tokens")
    return {"calls": len(used)} | {name: sum(one[name] for one in used) for name in names}


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("folder", type=Path, metavar="FOLDER")
    record(wanted.parse_args().folder)
