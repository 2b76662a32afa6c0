"""Record the run of a large language model on the sample log, for `pollex demo --recorded`.

    python docs/record.py FOLDER      (`make record FOLDER=…`)
    python docs/record.py FOLDER --remedy      the remedy of `pollex demo --remedy`, on the rubrics
    of that recording

Prompts that the recording lacks are written to FOLDER/pending/KEY.json, with `key`, `messages` and
the JSON schema of the reply; whoever can answer them writes FOLDER/replies/KEY.txt, the JSON object
alone, and the run goes on. It may be stopped and started again at any time. When the last reply is
there, replies, rubric set, scores and pages are put into examples/recorded.
"""

import argparse
import asyncio
import gzip
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pollex.agents.roles import ask_both_sides
from pollex.cli.demo import learn_and_score
from pollex.conversations.conversation import Label
from pollex.formats.read_logs import read_logs
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Reply, Request
from pollex.gateway.recorded import (
    PromptNotRecorded,
    RecordedEndpoint,
    make_reply_body,
    split_recorded_request,
)
from pollex.prompts.domain import DomainProfile
from pollex.rooms.remedy.cli.demo import propose_and_prove_changes
from pollex.rubrics.answers import Question
from pollex.rubrics.rubric import Rubric
from pollex.runs.options import ModelOptions
from pollex.runs.recorded import (
    MANIFEST_FILE_NAME,
    PACKED_SCORES_FILE_NAME,
    REMEDY_FILE_NAMES,
    REMEDY_REPLIES_FILE_NAME,
    REPLIES_FILE_NAME,
    SCORES_FILE_NAME,
    Recording,
    list_result_files,
    make_replay_options,
)
from pollex.runs.roles import build_run_roles, list_prompt_versions
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME
from pollex.store.folder import SECRET_BYTES
from pollex.store.resume import find_run, read_step_result
from pollex.store.store import Store

HERE = Path(__file__).parents[1] / "examples" / "recorded"
LOG = HERE.parent / "bikes.jsonl"
MODEL = "recorded-llm"
PATIENT = Limits(concurrency=1000, deadline=1e6)


@dataclass(frozen=True)
class AskedEndpoint(RecordedEndpoint):
    """A recording that waits for the replies that it lacks, which somebody writes, and remembers which it gave."""

    folder: Path = field(kw_only=True)
    given: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, kw_only=True)

    async def send(self, request: Request, seconds: float) -> Reply:
        try:
            reply = await super().send(request, seconds)
        except PromptNotRecorded:
            reply = Reply(status=200, body=await self._written(request))
        if request.key not in self.composed:
            line = {
                "key": request.key,
                "stage": request.call.stage,
                "item": request.call.item,
                "body": reply.body,
            }
            if request.call.stage == "judge":
                form, statements = split_recorded_request(request)
                line |= {"form": form, "statements": statements}
                self._remember(form, statements, reply.body)
            self.given[request.key] = line
        return reply

    def _remember(self, form: str, statements: Sequence[str], body: str) -> None:
        """Keep the answers of a reply, so that nobody is asked twice about the same statement and conversation."""
        said = json.loads(json.loads(body)["choices"][0]["message"]["content"])
        for number, statement in enumerate(statements, 1):
            if str(number) in said:
                self.answers.setdefault((form, statement), said[str(number)])

    async def _written(self, request: Request) -> str:
        """Return the body of a reply that somebody wrote."""
        pending = self.folder / "pending" / f"{request.key}.json"
        reply = self.folder / "replies" / f"{request.key}.txt"
        if not reply.exists():
            asked = {
                "key": request.key,
                "messages": list(request.call.messages),
                "schema": request.call.schema or {},
            }
            put(pending, asked)
        while (said := read_reply(reply)) is None:  # noqa: ASYNC110 - people write it
            await asyncio.sleep(0.5)
        pending.unlink(missing_ok=True)
        text = (
            said
            if isinstance(said, str)
            else json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        )
        return make_reply_body(MODEL, text, request)


def read_reply(path: Path) -> Any:
    """Return what somebody wrote; None while it isn't there, or not whole."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def put(path: Path, values: object) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")
    draft.rename(path)


def begun(folder: Path) -> Recording:
    """Return the recording to go on with, or a new one with a secret of its own."""
    if not (HERE / MANIFEST_FILE_NAME).exists():
        about = {
            "model": MODEL,
            "made": f"{date.today()}",
            "secret": secrets.token_hex(SECRET_BYTES),
        }
        about |= {"policy": DEFAULT_SELECTION_POLICY_NAME, "prompts": {}}
        put(HERE / MANIFEST_FILE_NAME, about)
    (folder / "replies").mkdir(parents=True, exist_ok=True)
    return Recording.at(HERE)


def record(folder: Path) -> None:
    """Run learning and scoring until every reply is there, and keep them with the result."""
    folder = folder.absolute()
    recording = begun(folder)
    out = Path("pollex-demo")
    os.chdir(folder)  # what is shown names no place of this machine
    shutil.rmtree(out, ignore_errors=True)
    endpoint = AskedEndpoint(MODEL, file=HERE / REPLIES_FILE_NAME, folder=folder)
    recording.prepare(out / ".pollex")
    learn_and_score(
        out, ModelOptions(chat=endpoint, limits=PATIENT), as_json=False, beside=recording
    )
    asyncio.run(judge_the_rest(out / ".pollex", endpoint))
    lines = kept({**endpoint.lines, **endpoint.given}, HERE / REPLIES_FILE_NAME)
    for old in list_result_files(HERE):
        old.unlink()
    for file in list_result_files(out):
        shutil.copyfile(file, HERE / file.name)
    (HERE / PACKED_SCORES_FILE_NAME).write_bytes(
        gzip.compress((out / SCORES_FILE_NAME).read_bytes(), mtime=0)
    )
    about = json.loads((HERE / MANIFEST_FILE_NAME).read_text(encoding="utf-8"))
    put(
        HERE / MANIFEST_FILE_NAME,
        about
        | {"prompts": list_prompt_versions()}
        | usage(json.loads(line["body"]) for line in lines),
    )


async def judge_the_rest(folder: Path, endpoint: AskedEndpoint) -> None:
    """Ask about the whole pool where only chosen rubrics were asked, so that another choice can be replayed, too."""
    with Store.open(folder) as store:
        run = find_run(store, "last", "learn")
        pool = map(Rubric.model_validate, read_step_result(store, run.id, "reword")["kept"])
        questions = [
            Question.about(rubric, "occasion") for rubric in pool if not rubric.answered_by
        ]
        options = ModelOptions(chat=endpoint, limits=PATIENT)
        profile = DomainProfile.load(LOG.with_suffix(".toml"))
        unlabeled = [one for one in read_logs(LOG) if one.label is Label.NONE]
        async with await build_run_roles(options, profile, store) as staff:
            judge = staff.roles.judge
            await asyncio.gather(*(ask_both_sides(judge, one, questions) for one in unlabeled))


def record_remedy(folder: Path, here: Path = HERE) -> None:
    """Run the remedy on the rubrics recorded in `here` until every reply is there, and keep them with the result."""
    folder = folder.absolute()
    recording = Recording.at(here)
    out = Path("pollex-demo")
    (folder / "replies").mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    shutil.rmtree(out, ignore_errors=True)
    recording.prepare(out / ".pollex")
    learn_and_score(out, make_replay_options(recording.endpoint()), as_json=False, beside=recording)
    endpoint = AskedEndpoint(MODEL, file=here / REMEDY_REPLIES_FILE_NAME, folder=folder)
    propose_and_prove_changes(out, ModelOptions(chat=endpoint, limits=PATIENT), as_json=False)
    lines = kept(endpoint.given, here / REMEDY_REPLIES_FILE_NAME)
    for name in REMEDY_FILE_NAMES:
        shutil.copyfile(out / name, here / name)
    about = json.loads((here / MANIFEST_FILE_NAME).read_text(encoding="utf-8"))
    about["prompts"] = dict(sorted((list_prompt_versions() | about["prompts"]).items()))
    used = usage(json.loads(line["body"]) for line in lines)
    put(here / MANIFEST_FILE_NAME, about | {"remedy": {"made": f"{date.today()}"} | used})


def kept(given: Mapping[str, dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Write replies to a file in one order; return them."""
    lines = sorted(given.values(), key=lambda line: (line["stage"], line["item"], line["key"]))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return lines


def usage(bodies: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Count calls and tokens."""
    used = [body["usage"] for body in bodies]
    names = ("prompt_tokens", "completion_tokens")
    return {"calls": len(used)} | {name: sum(one[name] for one in used) for name in names}


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    wanted.add_argument("folder", type=Path, metavar="FOLDER")
    wanted.add_argument("--remedy", action="store_true")
    given = wanted.parse_args()
    (record_remedy if given.remedy else record)(given.folder)
