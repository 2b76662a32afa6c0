"""Who works on a remedy, and what its graph asks of them and of people."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pollex.agents.assistant import Assistant, EndpointAssistant, FileAssistant
from pollex.agents.llm.asker import Asker
from pollex.agents.llm.rewording import reworded
from pollex.agents.llm.second_reader import SecondReader, reply_judge_of
from pollex.agents.roles import Judge
from pollex.errors import AnswersPending
from pollex.formats.write import draft_of
from pollex.graphs.remedy.graph import REGISTERED, RemedyContext, build
from pollex.graphs.remedy.trial import REPLY, RemedyWork
from pollex.graphs.run import carry_out
from pollex.measures.looks import alpha_of
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.services.grade import asker_of
from pollex.services.judging import hire_judge
from pollex.services.options import ModelOptions
from pollex.services.remedy.assistants import AssistantOptions
from pollex.services.remedy.people import CHOICES, read_choices, sheet_of, write_sheet
from pollex.services.remedy.proposals import Proposals, Vetting, replies_now
from pollex.services.remedy.result import COMMAND, SHEET
from pollex.services.remedy.sample import Gathered, RemedyOptions
from pollex.services.remedy.trials import Trials
from pollex.services.results import Usage
from pollex.services.roles import Workers, dismissed, hire
from pollex.services.runs import RunSettings, digest, running
from pollex.store.resume import facts_of, runs, step
from pollex.store.store import Store


@dataclass(frozen=True)
class Team:
    """Who works on a remedy.

    Attributes:
        askers, staffs: By role; `judging` is the judge's staff.
    """

    judge: Judge
    assistant: Assistant
    second: SecondReader | None
    askers: Mapping[str, Asker]
    staffs: Mapping[str, Workers]
    tools: Mapping[str, Callable[..., Any]]

    @property
    def paid(self) -> Workers:
        """Whose usage is the run's: the assistant's, or the judge's where only that is a model."""
        return self.staffs.get("assistant", self.staffs["judging"])

    @property
    def usages(self) -> dict[str, Usage]:
        """Of all others, by role."""
        others = {role: Usage.of(one) for role, one in self.staffs.items() if one is not self.paid}
        return {role: one for role, one in others.items() if one}


@asynccontextmanager
async def hired(found: Gathered, asked: AssistantOptions, model: ModelOptions, store: Store) -> AsyncIterator[Team]:
    """Hire the judge and all that the profiles name."""
    async with AsyncExitStack() as stack:
        judging = await hire_judge(model, found.rubric_set, store)
        staffs, askers = {"judging": await stack.enter_async_context(dismissed(judging))}, dict[str, Asker]()
        for role, options in asked.models.items():
            staff = await hire(options, DomainProfile.neutral(), store, found.seed)
            staffs[role] = await stack.enter_async_context(dismissed(staff))
            askers[role] = asker_of(staff, options, store, found.seed)
        second = await second_reader(askers.get("second"), found.sample.target.rubric, found.rubric_set.judge.scale)
        judge = reply_judge_of(judging.roles.judge)
        yield Team(judge, assistant_among(asked, askers), second, askers, staffs, asked.tools)


def assistant_among(asked: AssistantOptions, askers: Mapping[str, Asker]) -> Assistant:
    """Return who answers: an object of Python, a folder of files, or a model."""
    if asked.files is not None:
        return FileAssistant.of(asked.files)
    if asked.given is not None:
        return asked.given
    price = asked.models["assistant"].limits.price
    written = price.written / price.read if price and price.read else 4.0
    return EndpointAssistant(askers["assistant"], asked.temperature, written)


async def second_reader(asker: Asker | None, target: Rubric, scale: Any) -> SecondReader | None:
    """Return the second judge with the target in other words, and its mirror; None where none is named."""
    if asker is None:
        return None
    other = {"sat": "dsat", "dsat": "sat"}[target.polarity]
    said = [target.model_copy(update={"id": "mirror", "text": f"It is not so that: {target.text}", "polarity": other})]
    words = await reworded(asker, [target], {target.id: ["say the same in other words"]})
    if not isinstance(words, Unanswered) and words:
        said.insert(0, target.model_copy(update={"id": "reworded", "text": words[target.id][0]}))
    return SecondReader(asker, [Question.about(one, scale) for one in said])


@dataclass(frozen=True)
class RemedyDesk:
    """Answers what the graph of a remedy asks.

    Attributes:
        out: Where the result is written; what people read or write stands beside it.
    """

    found: Gathered
    options: RemedyOptions
    team: Team
    store: Store
    out: Path | None

    @cached_property
    def trials(self) -> Trials:
        """Makes the trials."""
        return Trials(self.found.sample, self.found.rubric_set, self.found.prompt, self.options)

    @property
    def folder(self) -> Path:
        """Where people find pairs, and write what they choose."""
        return Path(f"{self.out.with_suffix('')}-people" if self.out else "people")

    async def carried_out(self, setting: RunSettings, conclude: Any) -> tuple[RemedyWork, dict[str, Any]]:
        """Carry a run out; return its resources, with replies and answers, and its state.

        Raises:
            AnswersPending: Replies are to be written into a file first, or people are asked.
            ResumeRefused: The run to resume was started with other settings.
        """
        team, options, edits = self.team, self.options, self.found.edits
        begun = asdict(replace(options, render=None)) | {
            "accept": None,
            "prompt": self.found.prompt.text,
            "edit": [e.new.text for e in edits],
        }
        waves = self.trials.make("prove", [one.new.text for one in edits]).arrays.wave.tolist()
        registered = digest([begun, team.assistant.name, waves, team.second and team.second.name])
        fingerprint = {"registered": registered, "judge": team.judge.fingerprint}
        async with running(COMMAND, fingerprint, setting, [team.judge.name]) as run:
            kept = facts_of(setting.store, run.id, "step").items()
            live = RemedyWork(
                **setting.of_run(run.id),
                stage=COMMAND,
                fine=frozenset({"asked"}),
                workers=[team.judge.name],
                kept={name.removeprefix(f"{REPLY} "): dict(one) for name, one in kept if name.startswith(f"{REPLY} ")},
                judge=team.judge,
                assistant=team.assistant,
                second=team.second,
                tools=team.tools,
                make_trial=self.trials.make,
                propose=self.propose,
                edits=[one.kept for one in edits],
                split=self.found.sample.split,
                frozen=self.trials.frozen,
                level=lambda frozen: alpha_of(self.times_proved(frozen)),
                finalists=options.finalists,
                sheet=lambda trial, arm: sheet_of(trial, arm, options.people, options.seed, self.store.secret),
                conclude=conclude,
                seed=options.seed,
            )
            state = await carry_out(
                build(), live, RemedyContext.of(setting.arguments), anew=True, people=partial(self.answers, run.id)
            )
            if asked := state.get("__interrupt__"):
                await self.waits(run.id, asked[0].value)
        return live, state

    async def propose(self, tried: Any) -> list[dict[str, str]]:
        """Have changes proposed and vetted."""
        found, team = self.found, self.team
        shown = frozenset(one.id for one in found.sample.guards) - self.trials.sealed
        vetting, embedder = Vetting.of(found.logs.conversations), team.staffs["judging"].embedder
        known = (team.askers["proposer"], team.second, found.prompt, found.rubric_set, found.sample, shown, vetting)
        return [one.kept for one in await Proposals(*known, embedder, self.trials.most).of(replies_now(tried))]

    def answers(self, run: str, wanted: Mapping[str, Any]) -> Any:
        """Return what people answered to an interrupt; nothing to wait."""
        if "pairs" in wanted:
            return read_choices(self.folder, self.store, run)
        return self.options.accept if self.options.accept in (None, "all") else self.options.accept.split(",")

    async def waits(self, run: str, wanted: Mapping[str, Any]) -> None:
        """Write what people are asked, and wait.

        Raises:
            AnswersPending: Always.
        """
        if "pairs" in wanted:
            path, told = write_sheet(self.folder, wanted["pairs"]), '{"key": …, "choice": "1", "2" or "0"}'
            remedy = f"compare them in `pollex serve` (Remedies), or write {told} a line into {self.folder / CHOICES}"
            await self.store.write_step(run, SHEET, list(wanted["pairs"]))
            raise AnswersPending(f"{len(wanted['pairs'])} pairs wait for people", where=str(path), remedy=remedy)
        names = [one["name"] for one in wanted["edits"]]
        where = write_proposals(wanted["edits"], self.out)
        remedy = f"read them, then go on with --resume --accept all, or {','.join(names)!r}"
        raise AnswersPending(f"{len(names)} proposals wait to be accepted", where=where, remedy=remedy)

    def times_proved(self, frozen: Mapping[str, Any]) -> int:
        """Count the proofs of the target that this one is the next of: earlier ones on any of its conversations."""
        wanted, seen = set(frozen["hashes"]), set[str]()
        for run in runs(self.store):
            known = step(self.store, run.id, REGISTERED) or {} if run.command == COMMAND else {}
            if known.get("target") == frozen["target"] and wanted & set(known.get("hashes", ())):
                seen.add(known.get("proof", ""))
        return 1 + len(seen - {frozen["proof"]})


def write_proposals(edits: Sequence[Mapping[str, Any]], out: Path | None) -> str:
    """Write the diffs that a person is to read; return where."""
    if out is None:
        return "; ".join(f"{one['name']}: {one['diff']!r}" for one in edits)
    folder = out.with_name(f"{out.stem}-edits")
    folder.mkdir(parents=True, exist_ok=True)
    for one in edits:
        with draft_of(folder / f"{one['name'].replace(' ', '-')}.diff") as draft:
            draft.write_text(f"{one['purpose']}\n\n{one['diff']}", encoding="utf-8", errors="replace")
    return str(folder)
