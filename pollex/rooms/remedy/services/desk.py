"""Who works on a remedy, and what its graph asks of them and of people."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.roles import Judge
from pollex.errors import AnswersPending, WrongUse
from pollex.formats.write import write_json_lines
from pollex.gateway.batches.desk import BatchSubmissionRound
from pollex.gateway.budget import Budget
from pollex.graphs.run import carry_out_run
from pollex.measures.correlations import estimate_weighted_kappa
from pollex.measures.intervals import Figure
from pollex.outputs import make_folder, write_text
from pollex.prompts.domain import DomainProfile
from pollex.rooms.remedy.agents.assistant import (
    Assistant,
    EndpointAssistant,
    FileAssistant,
    NoReply,
)
from pollex.rooms.remedy.agents.llm.second_reader import (
    LastExchangeJudge,
    SecondReader,
    build_reply_judge,
)
from pollex.rooms.remedy.graphs.graph import (
    CUT_RECORD_NAME,
    REGISTERED_RECORD_NAME,
    RemedyContext,
    build,
)
from pollex.rooms.remedy.graphs.state import RemedyState
from pollex.rooms.remedy.graphs.trial import RemedyWork, Trial
from pollex.rooms.remedy.measures.looks import compute_alpha_of_proof
from pollex.rooms.remedy.measures.proofs import ANY_STRATUM, FAILING_STRATUM, FINE_STRATUM
from pollex.rooms.remedy.services.assistants import AssistantOptions
from pollex.rooms.remedy.services.conclude import (
    build_edit_verdicts,
    build_run_record,
    get_model_family,
    list_arm_names,
)
from pollex.rooms.remedy.services.people import (
    CHOICES_FILE_NAME,
    PAIRS_FILE_NAME,
    build_pair_sheet,
    get_people_folder,
    read_choices,
)
from pollex.rooms.remedy.services.proposals import propose_and_vet
from pollex.rooms.remedy.services.result import (
    COMPARED_FACT_KIND,
    PROPOSED_RECORD_NAME,
    REMEDY_COMMAND,
    RESULT_FORMAT_VERSION,
    SHEET_RECORD_NAME,
    RemedyResult,
    build_proof_pairs,
    build_reply_rows,
)
from pollex.rooms.remedy.services.trials import GatheredContexts, require_enough_failures
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer
from pollex.runs.by_model import make_prompt_asker
from pollex.runs.options import ModelOptions
from pollex.runs.roles import RunRoles, build_run_roles, restore_judge
from pollex.runs.run import compute_json_digest
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace
from pollex.store.resume import list_stored_runs, read_step_result
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json
from pollex.text import JsonDict, JsonObject, make_json_values, replace_nan_by_none

LEAST_INTERVAL_WIDTH = 1e-4
LEDGER_KEYS = frozenset({"cut", "prompt", "log", "target", "proof", "said", "number", "hashes"})
MAX_RESULT_FILE_BYTES = 1 << 25
"""Bytes of a result that is looked through for an earlier proof."""
LEAST_AGREEMENT_KAPPA, FEWEST_JUDGED_FOR_KAPPA = 0.6, 30
"""A model must know a target in the reply alone as it does in whole conversations, measured on so many replies."""


@dataclass(frozen=True, kw_only=True)
class RemedyDesk:
    """Who works on a remedy, and answers what its graph asks.

    Attributes:
        askers, staffs: By role; `judging` is the judge's staff.
        out: Where the result is written; what people read or write stands beside it.
    """

    found: GatheredContexts
    store: Store
    out: Path | None
    judge: Judge
    assistant: Assistant
    second: SecondReader | None
    askers: Mapping[str, PromptAsker]
    staffs: Mapping[str, RunRoles]

    @property
    def paid(self) -> RunRoles:
        """Whose usage is the run's: the assistant's, or the judge's where only that is a model."""
        return self.staffs.get("assistant", self.staffs["judging"])

    @property
    def own(self) -> bool:
        """Whether the judge is of the assistant's family, or of the second judge's."""
        kin = set()
        for role in (self.assistant, self.second):
            if role:
                kin.add(get_model_family(role.name))
        return (
            not isinstance(self.judge, LastExchangeJudge)
            and get_model_family(self.judge.name) in kin
        )

    @property
    def folder(self) -> Path:
        """Where people find pairs, and write what they choose."""
        return get_people_folder(self.out)

    async def propose(self, trial: Trial) -> list[dict[str, str]]:
        """Have changes proposed and vetted."""
        proposer = self.askers["proposer"]
        embedder = self.staffs["judging"].embedder
        return [
            edit.kept
            for edit in await propose_and_vet(self.found, trial, proposer, self.second, embedder)
        ]

    async def register(self, run: str, trial: Trial, changed: Sequence[str]) -> int:
        """Keep what may not change once the first reply of a proof is asked for, then what came first, and its number.

        Returns:
            Which proof of the target it is on any of its conversations, from 1; 0 before its first
            replies. The same replies judged once more are no other proof, unless a cap had ended
            it.
        """
        # what may not change, as it was registered first
        registration = read_step_result(
            self.store, run, REGISTERED_RECORD_NAME
        ) or self.found.frozen(trial, changed)
        # the number is given once, after the first replies
        if trial.texts and "number" not in registration:
            # places and replies, in an order that is the same for every run
            replies = []
            for place, text in trial.texts.items():
                replies.append((place, text.kind if isinstance(text, NoReply) else text.text))
            fingerprint = compute_json_digest([self.judge.fingerprint, sorted(replies)])
            # The same replies judged once more are no other proof, unless a cap had ended the
            # first.
            others = {}
            # earlier proofs of the target on any of these conversations, from store and folder
            for proof in [
                *iterate_proofs_in_store(self.store, run),
                *iterate_proofs_beside(self.out),
            ]:
                if proof["target"] == registration["target"] and {*registration["hashes"]} & {
                    *proof["hashes"]
                }:
                    others[proof["proof"], proof["said"], proof["cut"]] = int(proof["number"])

            registration |= {
                "said": fingerprint,
                "number": others.get((registration["proof"], fingerprint, ""), 1 + len(others)),
            }

        # stored before its number is used
        await self.store.write_step(run, REGISTERED_RECORD_NAME, registration)
        return int(registration.get("number", 0))

    def answers(self, run: str, question: JsonObject) -> Any:
        """Return what people answered to an interrupt; nothing to wait.

        Raises:
            BadInput: A line is no choice.
            WrongUse: No proposal has a name that is accepted.
        """
        # choices of people, only for pairs of this run
        if "pairs" in question:
            keys = {pair["key"] for pair in question["pairs"]}  # the file may be of an earlier run
            answers = {}
            for key, choice in read_choices(self.folder, self.store, run).items():
                if key in keys:
                    answers[key] = choice
            return answers
        # None waits, `all` takes every proposal
        if (accept := self.found.options.accept) in (None, "all"):
            return accept

        names = [name.strip() for name in accept.split(",")]
        there = [edit["name"] for edit in question["edits"]]
        if unknown := [name for name in names if name not in there]:
            hint = f"one or several of {', '.join(there)}"
            raise WrongUse(
                f"no proposal is called {unknown[0]!r:.60}",
                hint=hint,
                option="accept",
            )

        return names

    async def waits(
        self,
        run: str,
        question: JsonObject,
        proposed: JsonObject,
    ) -> None:
        """Write what people are asked, and wait.

        Args:
            proposed: The prompt and all that was proposed, for those who look at it in the browser.

        Raises:
            AnswersPending: Always.
        """
        # pairs are written without arms, and kept in the store for the browser
        if "pairs" in question:
            path = self.folder / PAIRS_FILE_NAME
            choice_line = '{"key": …, "choice": "1", "2" or "0"}'
            shown = (
                {name: pair[name] for name in ("key", "said", "1", "2")}
                for pair in question["pairs"]
            )
            make_folder(self.folder, named=False)
            write_json_lines(path, shown, named=False)
            hint = (
                "compare them in `pollex serve` (Remedies), or write "
                f"{choice_line} a line into {self.folder / CHOICES_FILE_NAME}"
            )
            await self.store.write_step(run, SHEET_RECORD_NAME, list(question["pairs"]))
            raise AnswersPending(
                f"{len(question['pairs'])} pairs wait for people",
                where=str(path),
                hint=hint,
            )

        # proposals are kept for the browser, and written as diffs beside the result
        await self.store.write_step(run, PROPOSED_RECORD_NAME, make_json_values(proposed))
        names = [edit["name"] for edit in question["edits"]]
        where = "; ".join(f"{edit['name']}: {edit['diff']!r}" for edit in question["edits"])
        if self.out is not None:
            folder = self.out.with_name(f"{self.out.stem}-edits")
            make_folder(folder, named=False)
            for edit in question["edits"]:
                diff = folder / f"{edit['name'].replace(' ', '-')}.diff"
                write_text(
                    diff,
                    f"{edit['purpose']}\n\n{edit['diff']}",
                    named=False,
                )

            where = str(folder)

        hint = f"read them, then go on with --resume --accept all, or {','.join(names)!r}"
        raise AnswersPending(
            f"{len(names)} proposals wait to be accepted",
            where=where,
            hint=hint,
        )


def iterate_proofs_in_store(store: Store, this: str) -> Iterator[JsonDict]:
    """Yield what a store knows of earlier proofs than that of a run, as `make_ledger_entry` writes it."""
    for run in list_stored_runs(store):
        if run.command == REMEDY_COMMAND and run.id != this:
            frozen = read_step_result(store, run.id, REGISTERED_RECORD_NAME) or {}
        else:
            frozen = {}

        if "number" in frozen:
            yield make_ledger_entry(
                frozen, run.id if read_step_result(store, run.id, CUT_RECORD_NAME) else ""
            )


def make_ledger_entry(frozen: JsonObject, cut: str = "") -> dict[str, object]:
    """Return what a later proof has to know of one: its prompt's and its log's digests, in whatever store it is.

    Args:
        cut: The run, where a cap ended it: the same replies once more are another proof then.
    """
    # digests in place of texts: prompt and conversations need not be kept
    prompt, *_ = frozen["prompts"]
    names = ("target", "proof", "said", "number", "hashes")
    about = {
        "cut": cut,
        "prompt": compute_json_digest(prompt),
        "log": compute_json_digest(frozen["hashes"]),
    }
    return about | {name: frozen[name] for name in names}


def iterate_proofs_beside(out: Path | None) -> Iterator[JsonDict]:
    """Yield the proofs of results that stand where this one is to stand, of whatever store."""
    for path in sorted(out.absolute().parent.glob("*.json")) if out else ():
        if path.is_file() and path.stat().st_size < MAX_RESULT_FILE_BYTES:
            try:
                ledger = json.loads(path.read_text("utf-8")).get("ledger")
            except (ValueError, OSError, AttributeError, RecursionError):
                continue  # any other file of that folder

            if isinstance(ledger, dict) and ledger.keys() >= LEDGER_KEYS:
                yield ledger


@asynccontextmanager
async def open_desk(
    gathered: GatheredContexts,
    assistant_options: AssistantOptions,
    model: ModelOptions,
    store: Store,
    out: Path | None,
) -> AsyncIterator[RemedyDesk]:
    """Hire the judge and all that the profiles name."""
    seed = gathered.options.seed
    second = None
    # of the whole command
    whole = Budget(model.limits)
    # one budget and one round for all roles of the command
    together = BatchSubmissionRound()
    async with AsyncExitStack() as stack:
        judge = await restore_judge(
            model,
            gathered.rubric_set,
            store,
            whole,
            together,
        )
        judging = await stack.enter_async_context(judge)
        staffs = {"judging": judging}
        askers = dict[str, PromptAsker]()
        # each role with limits of its own, within those of the command
        for role, options in assistant_options.models.items():
            budget = Budget(options.limits, whole)
            staff = await build_run_roles(
                options,
                DomainProfile.neutral(),
                store,
                seed,
                budget,
                together,
            )
            staffs[role] = await stack.enter_async_context(staff)
            askers[role] = make_prompt_asker(staff, options, store, seed)

        # the second reader asks for other words of the target at once
        if "second" in askers:
            second = await SecondReader.of(
                askers["second"],
                gathered.target,
                gathered.rubric_set.judge.scale,
            )

        yield RemedyDesk(
            found=gathered,
            store=store,
            out=out,
            judge=build_reply_judge(judging.roles.judge),
            assistant=choose_assistant(assistant_options, askers),
            second=second,
            askers=askers,
            staffs=staffs,
        )


def choose_assistant(
    assistant_options: AssistantOptions, askers: Mapping[str, PromptAsker]
) -> Assistant:
    """Return who answers: an object of Python, a folder of files, or a model."""
    if assistant_options.files is not None:
        return FileAssistant.of(assistant_options.files)
    if assistant_options.given is not None:
        return assistant_options.given

    # how many times the price of a read token a written one costs
    price = assistant_options.models["assistant"].limits.price
    if price and price.read:
        written = price.written / price.read
    else:
        written = 4.0

    return EndpointAssistant(
        askers["assistant"],
        assistant_options.temperature,
        written,
    )


async def carry_out_remedy(
    opened: Workspace,
    gathered: GatheredContexts,
    assistant_options: AssistantOptions,
    model: ModelOptions,
    arguments: dict[str, Any],
    out: Path | None,
) -> RemedyResult:
    """Carry a run out, and keep what it comes to.

    Raises:
        AnswersPending: Replies are to be written into a file first, or people are asked.
        BadLabels: There are too few failing contexts for a proof.
        ResumeRefused: The run to resume was started with other settings.
        WrongUse: The judge doesn't know the target in the reply alone.
    """
    store = opened.store
    options = gathered.options
    async with open_desk(gathered, assistant_options, model, store, out) as desk:
        opened.announce(desk.paid)
        # whether the judge sees the target in replies, before any reply is bought
        kappa, without = await measure_judge_agreement(desk.judge, gathered)
        gathered = replace(gathered, without=without)
        require_enough_failures(gathered)
        desk = replace(desk, found=gathered)
        # what may not change between a start and a resume
        prompts = [edit.new.text for edit in gathered.edits]
        # callables and what was accepted don't count, texts of the prompts do
        begun = asdict(replace(options, render=None))
        begun |= {
            "accept": None,
            "prompt": gathered.prompt.text,
            "edit": prompts,
        }
        candidates = [edit.kept for edit in gathered.edits]
        # waves depend on the contexts, so another log is another run
        waves = gathered.make("prove", prompts).arrays.wave.tolist()
        registered = compute_json_digest(
            [begun, desk.assistant.name, waves, desk.second and desk.second.name]
        )
        fingerprint = {"registered": registered, "judge": desk.judge.fingerprint}
        setting = opened.setting(arguments, desk.paid)
        async with setting.begin_or_resume(REMEDY_COMMAND, fingerprint, [desk.judge.name]) as run:
            # all that the graph's nodes use; the graph itself holds no objects
            live = RemedyWork(
                **setting.of_run(run.id),
                stage=REMEDY_COMMAND,
                fine=frozenset({"asked"}),
                workers=[desk.judge.name],
                judge=desk.judge,
                assistant=desk.assistant,
                second=desk.second,
                tools=assistant_options.tools,
                make=gathered.make,
                propose=desk.propose,
                begun={
                    "split": gathered.split,
                    "candidates": candidates,
                    "edits": [candidate["name"] for candidate in candidates],
                },
                register=desk.register,
                finalists=options.finalists,
                sheet=lambda trial, arm: build_pair_sheet(trial, arm, options, live.salt),
                conclude=partial(build_edit_verdicts, gathered, same_family=desk.own),
                seed=options.seed,
                # texts of replies stay hidden while people are to compare blind
                blind=options.people > 0,
            )
            answers = partial(desk.answers, run.id)
            values = await carry_out_run(
                build(),
                live,
                RemedyContext.of(arguments),
                # begun anew: its answers are in the store, its state isn't kept
                anew=True,
                people=answers,
            )
            # the graph stands at a question: it is written down, and the command ends
            state = cast(RemedyState, values)
            if waited := values.get("__interrupt__"):
                proposed = {"prompt": gathered.prompt.text, "candidates": state["candidates"]}
                await desk.waits(run.id, waited[0].value, proposed)

        # what each role used, beside the judge
        usage = ModelUsage.of(desk.paid)
        usages = {}
        for role, staff in desk.staffs.items():
            if staff is not desk.paid and (used := ModelUsage.of(staff)):
                usages[role] = used

    # the record that pages and files are made of
    frozen = None
    # what was registered belongs to the record only with a verdict
    if state["verdicts"]:
        frozen = read_step_result(store, live.run, REGISTERED_RECORD_NAME)

    # the best change speaks for the run
    first = next(iter(state["verdicts"]), None)
    record: JsonDict = {
        "format": RESULT_FORMAT_VERSION,
        "verdict": first["verdict"] if first else state["why"],
        "level": first["level"] if first else None,
        "registered": frozen and frozen["proof"],
        # known in a later proof by this, in whatever store
        "ledger": make_ledger_entry(frozen, live.run if state["cut"] else "")
        if frozen and "number" in frozen
        else None,
        "proof": state["proof"],
        "ended": state["why"],
        "assistant": desk.assistant.name,
        "judge": desk.judge.name,
        "second": desk.second and desk.second.name,
        "notes": [*list_notes(desk, state, kappa), *gathered.notes],
        "bad_rows": make_json_values(gathered.logs.bad_rows),
    }
    # NaN has no form in JSON
    record = replace_nan_by_none(
        record | build_run_record(live, state, gathered) | {"edits": state["verdicts"]}
    )
    # rows of replies and pairs, as files have them
    replies = []
    for trial in live.trials.values():
        replies.extend(build_reply_rows(trial, list_arm_names(state, trial.name)))

    if "prove" in live.trials:
        pairs = build_proof_pairs(live.trials["prove"], list_arm_names(state, "prove"))
    else:
        pairs = []

    # the record first: pages read it
    await store.write_step(live.run, REMEDY_COMMAND, record)
    pairs_by_id = enumerate(
        {pair["conversation"]: pair} for pair in pairs
    )  # so each can be forgotten
    await store.write(
        [FactRow(live.run, COMPARED_FACT_KIND, str(n), dump_json(pair)) for n, pair in pairs_by_id]
    )
    return RemedyResult(
        record=record,
        replies=replies,
        compared=pairs,
        run=live.run,
        out=out,
        usage=usage,
        usages=usages,
    )


async def measure_judge_agreement(
    judge: Judge, gathered: GatheredContexts
) -> tuple[Figure | None, frozenset[str]]:
    """Measure whether a model answers of the logged reply alone as of the whole conversation; no reply is bought yet.

    A built-in judge answered both where the target was chosen; see `contexts.measure_surviving_share`.

    Returns:
        The agreement, and ids of contexts where the occasion never came up.

    Raises:
        WrongUse: It doesn't: what the rubric tells of isn't in the reply, or the judge can't see it
            there.
    """
    if isinstance(judge, LastExchangeJudge):
        return None, frozenset()

    # without "any": there the target neither failed nor went well
    question = gathered.questions[0]
    dsat = gathered.target.polarity == "dsat"
    placed = []
    for context, stratum in gathered.proof:
        if stratum != ANY_STRATUM:
            placed.append((context, stratum))

    # the reply alone, without what follows
    judged = await asyncio.gather(*(judge.judge(context.cut, [question]) for context, _ in placed))
    answered = []
    for placed_context, (a,) in zip(placed, judged, strict=True):
        if isinstance(a, Answer):
            answered.append((*placed_context, a))

    # contexts without the target's occasion are left out of the proof
    without = frozenset(context.id for context, _, answer in answered if answer.never_came_up)
    # too few to tell: the proof goes on, and the notes say so
    if len(answered) < FEWEST_JUDGED_FOR_KAPPA or not any(
        stratum == FINE_STRATUM for _, stratum in placed
    ):
        too_few = f"{len(answered)} replies, {FEWEST_JUDGED_FOR_KAPPA} of both kinds are needed"
        return Figure(None, n=len(answered), undefined=too_few), without

    # whether the target holds: as the whole conversation had it, and by the reply alone
    whole = np.array([float((stratum == FAILING_STRATUM) == dsat) for _, stratum, _ in answered])
    alone = []
    for *_, answer in answered:
        alone.append(
            float(not answer.never_came_up and answer.value(question.options) > MIDDLE_OPTION_VALUE)
        )

    kappa = estimate_weighted_kappa(
        whole,
        np.array(alone),
        np.arange(len(answered)),
        np.random.default_rng(0),
    )
    # a judge that can't see the target in replies would measure something else
    if kappa.value is None or kappa.value < LEAST_AGREEMENT_KAPPA:
        what = (
            f"shown the reply alone, {judge.name} answers otherwise than of whole conversations: "
            f"{describe_kappa(kappa)}, "
        )
        hint = "take another target, or reword it (`pollex rubrics reword`)"
        raise WrongUse(f"{what}n {kappa.n}", where=question.id, hint=hint)
    return kappa, without


def describe_kappa(kappa: Figure) -> str:
    """Return an agreement, or why there is none."""
    if kappa.value is None:
        return kappa.undefined
    return f"agreement beyond chance (κ) {kappa.value:.2f}"


def list_notes(
    desk: RemedyDesk,
    state: RemedyState,
    kappa: Figure | None,
) -> list[str]:
    """Return what a reader must know."""
    judge = desk.judge.name
    assistant = desk.assistant.name
    second = desk.second
    # the models of the assistant and the second reader, each once
    kin = " and ".join(dict.fromkeys([assistant, *([second.name] if second else [])]))
    if desk.own:
        notes = [f"the judge {judge} is of the model family of {kin}, and may favor it"]
    else:
        notes = []

    notes.append(
        "“judged better” is what a judge says: only people who compare blind, or thumbs after a release, tell"
    )
    # notes that say what the figures can't
    if second is None or (state["cut"] and not state["pairs"]):
        notes.append(
            f"no second reader compared the replies{'' if second else ' ([second] in the profiles)'}"
        )

    if kappa is not None:
        measure = "how far the judge answers of the reply alone as of the whole conversation"
        notes.append(
            f"{measure}: {describe_kappa(kappa)}{'' if kappa.value is None else f', n {kappa.n}'}"
        )

    if (times := state["proof"]) > 1:
        notes.append(
            f"proof {times} on conversations that proved before: its level is {compute_alpha_of_proof(times):.4g}"
        )

    notes.append(
        "earlier proofs are known from this store and from results in the same folder; what was proven in another "
        "store, or a copy of this one, can't be known, and would make this level stricter"
    )
    if cut := state["cut"]:
        notes.append(
            f"a cap of calls or cost ended the proof at {cut:.0%} of the users; no more is asked"
        )

    notes.append("how long replies take is not compared")
    if desk.found.options.live_tools != "no":
        notes.append("tools of the assistant acted for real")

    # an interval without width looks like certainty
    unsure = (
        explain_zero_width(verdict["name"], **verdict["primary"]["effect"])
        for verdict in state["verdicts"]
    )
    return [*notes, *filter(None, unsure)]


def explain_zero_width(
    name: str,
    low: float,
    high: float,
    users: int,
    **_: float,
) -> str:
    """Say what an interval without width means: nobody differed, among so many; empty for any other."""
    if high - low > LEAST_INTERVAL_WIDTH:
        return ""

    # the share of users that may differ, though none of those seen did
    others = f"for up to {1 - 0.05 ** (1 / users):.0%} of other users it may be different (one-sided 95 % bound)"
    return f"{name}: the effect was the same for all {users} users, but that is not certainty: {others}"
