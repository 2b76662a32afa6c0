"""What a remedy would cost, and the smallest effect that it can find, before a cent is spent."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pollex.agents.llm.judge import LlmJudge
from pollex.prompts.domain import DomainProfile
from pollex.rooms.remedy.agents.assistant import AssistantReply, EndpointAssistant
from pollex.rooms.remedy.agents.llm.proposer import propose_hunks
from pollex.rooms.remedy.agents.llm.second_reader import SecondReader, build_reply_judge
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.graphs.trial import Trial, compute_question_value, make_reply_request
from pollex.rooms.remedy.measures.looks import compute_equal_step_bounds
from pollex.rooms.remedy.measures.proofs import (
    ANY_STRATUM,
    FAILING_STRATUM,
    compute_smallest_detectable_effect,
)
from pollex.rooms.remedy.services.assistants import AssistantOptions
from pollex.rooms.remedy.services.prompt_text import append_line, write_naive_sentence
from pollex.rooms.remedy.services.proposals import (
    MAX_SHOWN_EXCHANGES,
    build_proposer_items,
    count_proposals_to_ask,
)
from pollex.rooms.remedy.services.trials import GatheredContexts
from pollex.rubrics.answers import Question
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.plan import PlannedRun
from pollex.runs.roles import get_judge_seed, restore_model_options
from pollex.runs.usage import ModelUsage
from pollex.services.dry_run import CallPlan, make_call_plan

ASSUMED_EFFECT_SPREAD = 0.32
"""Standard deviation of a user's difference with two replies an arm, for plans; as in the benchmark's world."""


def count_calls(
    gathered: GatheredContexts,
    assistant: AssistantOptions,
    run: RunOptions,
    model: ModelOptions,
) -> CallPlan:
    """Count the calls of a remedy: exactly up to the proposals, and at most after them."""
    # rehearsed with planners in place of models
    calls = _CallCounter(gathered, assistant, run, model)
    asyncio.run(calls.rehearse())
    # the smallest effect at the last look's bound
    smallest = compute_smallest_detectable_effect(
        ASSUMED_EFFECT_SPREAD,
        gathered.users,
        compute_equal_step_bounds()[-1],
    )
    proof = [stratum for _, stratum in gathered.proof]
    notes = [
        f"{calls.replies} replies at most: a proof asks {len(proof)} contexts, {proof.count(FAILING_STRATUM)} "
        f"failing, of {gathered.users} users, {gathered.replies('prove')} an arm; a look after each quarter may end it "
        "sooner.",
        f"Replies are judged from 0 (bad throughout) to 1 (good throughout). A difference of {smallest:.2f} or more is "
        "found in 80 of 100 proofs. Where half of these replies fail again, an edit that mends half of that is worth "
        "about .10.",
        *gathered.notes,
    ]
    # roles that would ask something
    tables = [(role, plan) for role, plan in calls.plans.items() if plan.planner.table.stages]
    if "assistant" not in assistant.models:
        notes.append(
            "The assistant is a function or files of yours: what it asks is its own affair."
        )

    # nobody is asked: there are notes and no calls
    if not tables:
        return CallPlan(models=(), notes=tuple(notes))

    # the first role leads the plan, others are told beside it
    (first, plan), *others = tables
    panel = []
    for role, role_plan in others:
        panel.append((role, ModelUsage(role_plan.planner.table, calls.models[role].limits.price)))

    probed = first == "judge" and calls.known
    counted = make_call_plan(
        calls.models[first],
        plan.planner.table,
        probed=probed,
        panel=panel,
    )
    return replace(counted, notes=(*counted.notes, *notes))


class _CallCounter:
    def __init__(
        self,
        gathered: GatheredContexts,
        assistant_options: AssistantOptions,
        run: RunOptions,
        model: ModelOptions,
    ) -> None:
        self.found = gathered
        self.replies = 0
        self.known = False
        self.judge = None
        record = gathered.rubric_set.judge
        # roles other than the judge know nothing of the domain
        neutral = DomainProfile.neutral()
        self.models = {**assistant_options.models}
        self.plans = {
            role: PlannedRun.of(model, neutral, run, gathered.options.seed)
            for role, model in assistant_options.models.items()
        }
        # the judge of a model's set, as it was asked before
        if not record.built_in:
            judging = restore_model_options(model, record)
            capabilities = record.options.capabilities
            self.known, self.models["judge"] = capabilities is not None, judging
            self.plans["judge"] = PlannedRun.of(
                judging,
                gathered.rubric_set.domain,
                run,
                get_judge_seed(record),
                capabilities,
            )
            self.judge = build_reply_judge(LlmJudge(self.plans["judge"].asker))

        # only an assistant on a model has calls that can be counted
        if "assistant" in assistant_options.models:
            self.speaker = EndpointAssistant(
                self.plans["assistant"].asker,
                assistant_options.temperature,
            )

    @contextmanager
    def at_most(self) -> Iterator[None]:
        with ExitStack() as stack:
            for plan in self.plans.values():
                stack.enter_context(plan.planner.estimating())
            yield

    async def rehearse(self) -> None:
        """Ask everything that a run would ask, of planners, which count and send nothing."""
        gathered = self.found
        has_edits = bool(self.found.edits)
        reader = None
        if second := self.plans.get("second"):
            reader = await SecondReader.of(
                second.asker,
                gathered.target,
                gathered.rubric_set.judge.scale,
            )
            # other words aren't known before they are asked for: two stand in their place
            reader = replace(reader, wordings=gathered.questions[:1] * 2)

        # the agreement of the judge comes first in a run, too
        for context, stratum in gathered.proof:
            if stratum != ANY_STRATUM:
                await self.of_judging(context, gathered.questions[:1])

        # the user's changes, or as many plain sentences as proposals are wanted
        edits = [edit.new.text for edit in gathered.edits]
        if not has_edits:
            await self.of_trial(tried := gathered.make("headroom"))
            edits = [
                append_line(gathered.prompt, write_naive_sentence(gathered.target)).text
            ] * gathered.most
            shown = build_proposer_items(
                gathered,
                [context for context, _ in gathered.taken(("propose",), MAX_SHOWN_EXCHANGES)],
                tried,
            )
            for number in range(
                count_proposals_to_ask(gathered.most) if "proposer" in self.plans else 0
            ):
                await propose_hunks(self.plans["proposer"].asker, shown, number)

        # from here on the number depends on what comes out
        with self.at_most():
            prompt_facts = f"{gathered.prompt.text}\n{gathered.rubric_set.domain.model_dump_json()}"
            for edit in () if has_edits else edits:
                # facts are checked for proposals, not for the user's own changes
                if reader:
                    await reader.new_facts(prompt_facts, edit)
            if not has_edits and len(edits) > 1:
                await self.of_trial(gathered.make("select", edits))
            await self.of_trial(gathered.make("flatter"))
            proof = gathered.make(
                "prove",
                edits if has_edits else edits[: gathered.options.finalists],
            )
            await self.of_trial(proof)
            if reader:
                await self.of_second(proof, reader)

    async def of_trial(self, trial: Trial) -> None:
        """Count the replies of a trial, and their judging, with the logged reply in the place of each."""
        # the logged reply stands for each that would come
        for place in trial.places():
            self.replies += 1
            trial.texts[place] = AssistantReply(trial.contexts[place[0]].reply.content)
            if "assistant" in self.plans:
                await self.speaker.reply(
                    make_reply_request(
                        trial,
                        place,
                        b"",
                        self.found.options.seed,
                    )
                )

            await self.of_judging(trial.contexts[place[0]], trial.questions)

    async def of_judging(self, context: ReplyContext, questions: Sequence[Question]) -> None:
        if self.judge is not None:
            await self.judge.judge(
                context.cut,
                [
                    question
                    for question in questions
                    if question.rubric and not question.rubric.answered_by
                ],
            )

    async def of_second(self, proof: Trial, reader: SecondReader) -> None:
        """Count the pairs, and the judging by other words."""
        for _ in range(len(proof.systems) - 1):
            for context, stratum in zip(proof.contexts, proof.arrays.stratum, strict=True):
                reply = context.reply.content
                for pair in ((reply, f"{reply} "), (f"{reply} ", reply)):
                    await reader.wins(context, *pair)  # the first order alone: nobody answers
                for _side in range(2 * (stratum == FAILING_STRATUM)):
                    await reader.reworded(context.cut, compute_question_value)
