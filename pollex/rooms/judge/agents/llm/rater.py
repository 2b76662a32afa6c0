"""A rater on a model: one question in a call, in RoboRater's prompt variants.

    v0  the question alone
    v1  plus the instructions for human raters
    v2  plus the instruction to use the conversation alone
    v3  plus the expected end state, described in an earlier call
    v4  plus the actual end state, described in the same way

The descriptions derive from what the conversation says, so they reach the last call as data, in its
envelope.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
    using LLMs", AAAI Spring
Symposium.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self, get_args

from pollex.agents.llm.asker import (
    ModelRole,
    PromptAsker,
    make_judge_id,
    make_unanswered_from_outcome,
)
from pollex.agents.llm.parsing import describe_unknown_option, find_named_option, parse_last_object
from pollex.agents.llm.sampling import make_asker_of_run, make_point_distribution
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.gateway.calls import Call, CompletedReply
from pollex.prompts.data_boundary import DataItem, write_value_as_escaped_json_line
from pollex.prompts.domain import DomainProfile
from pollex.prompts.judging import join_options_in_one_line, make_json_schema_of_one_answer
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Answer, Question, Unanswered

PromptVariant = Literal["v0", "v1", "v2", "v3", "v4"]
PROMPT_VARIANTS: tuple[PromptVariant, ...] = get_args(PromptVariant)
PROMPT_BLOCKS = ("instructions", "grounded", "expected", "actual")
"""The blocks of the prompt that v1, v2, v3 and v4 add, in this order."""
END_STATE_BLOCKS = PROMPT_BLOCKS[2:]
"""Those that show what calls before have described."""


class LlmRater(ModelRole, Judge):
    """A judge for questions of any options; see the module.

    Args:
        instructions: What human raters are told; empty for what the domain profile says.
    """

    def __init__(
        self,
        asker: PromptAsker,
        variant: PromptVariant = "v4",
        instructions: str = "",
    ) -> None:
        if variant not in PROMPT_VARIANTS:
            raise WrongUse(
                f"no prompt variant {variant!r}",
                hint=f"choose from {', '.join(PROMPT_VARIANTS)}",
            )

        self.variant = variant
        self.instructions = instructions.strip() or format_rater_instructions(asker.profile)
        self.prompt = load_prompt("rate")
        self.blocks = list_blocks_of_variant(variant)
        self.states = {
            name: load_prompt(f"end_state_{name}")
            for name in END_STATE_BLOCKS
            if name in self.blocks
        }
        # whatever changes an answer belongs to the facts, by which stored answers are found again
        facts = {
            "variant": variant,
            "temperature": asker.settings.temperature,
            "instructions": self.instructions,
        }
        super().__init__(asker, [self.prompt, *self.states.values()], **facts)

    def again(self, replicate: int) -> Self:
        """Return the same one for another run of an ensemble."""
        return type(self)(
            make_asker_of_run(self.asker, replicate),
            self.variant,
            self.instructions,
        )

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question; the end states are described once for all of them."""
        judge = make_judge_id(self.name, self.prompt)
        if why := conversation.not_scorable:
            return make_unanswered_for_all(questions, "not_scorable", why, judge)

        # without an end state no question can be asked as the variant has it
        described = await self._described(conversation)
        if isinstance(described, Unanswered):
            describeds: list[Answer | Unanswered] = []
            for question in questions:
                describeds.append(described.model_copy(update={"question_id": question.id}))
            return describeds

        return list(
            await asyncio.gather(
                *(self._rate(conversation, q, described, judge) for q in questions)
            )
        )

    async def _described(self, conversation: Conversation) -> list[DataItem] | Unanswered:
        """Describe the end states that the variant uses, as data; a failure if one fails."""
        # an end state comes from the turns alone: documents stay out, and nothing cites their numbers
        turns: list[DataItem] = []
        for part in self.asker.evidence(conversation).items:
            if "i" in part:
                turns.append({name: value for name, value in part.items() if name != "source"})

        item = conversation.id
        # both end states come from the same turns, independently of each other
        values = await asyncio.gather(
            *(
                self.asker.value(prompt, turns, {}, {name: str}, item=item)
                for name, prompt in self.states.items()
            )
        )
        # one end state that failed makes the whole description a failure
        items: list[DataItem] = []
        for name, state in zip(self.states, values, strict=True):
            if isinstance(state, Unanswered):
                return state
            items.append({"end_state": name, "text": state[name]})

        return items

    async def _rate(
        self,
        conversation: Conversation,
        question: Question,
        described: Sequence[DataItem],
        judge: str,
    ) -> Answer | Unanswered:
        """Rate once; ask once more if the answer is none of the options."""
        call = self._call(conversation, question, described)
        # the second attempt is another replicate, so that no stored reply is read again
        for attempt in range(2):
            outcome = await self.asker.ask(
                replace(
                    call,
                    replicate=call.replicate + attempt,
                )
            )
            # the reply must be an object whose answer names an option
            block = None
            if isinstance(outcome, CompletedReply):
                block = parse_last_object(outcome.text)
            option = None
            if block:
                option = find_named_option(block.value.get("answer"), list_option_texts(question))
            if block is not None and option is not None:
                return Answer(
                    question_id=question.id,
                    probabilities=make_point_distribution(option, len(question.options)),
                    chosen=option,
                    source="point",
                    justification=str(block.value.get("why") or ""),
                    judge=judge,
                )
            # refused or failed: a second attempt is for replies that can't be read
            if not isinstance(outcome, CompletedReply):
                return make_unanswered_from_outcome(outcome, judge, question.id)

        # both attempts came back, and neither can be used: the detail says which part was wrong
        if block:
            detail = describe_unknown_option(block.value.get("answer"))
        else:
            detail = f"no JSON object: {outcome.text[:80]!r}"

        return Unanswered(
            question_id=question.id,
            outcome="unparsable",
            detail=detail,
            judge=judge,
        )

    def _call(
        self,
        conversation: Conversation,
        question: Question,
        described: Sequence[DataItem],
    ) -> Call:
        # line breaks in a question must not look like parts of the prompt
        options = list_option_texts(question)
        evidence = self.asker.evidence(conversation)
        values = {
            "question": write_value_as_escaped_json_line(question.text),
            "options": join_options_in_one_line(options),
            "instructions": self.instructions,
        }

        # the descriptions come after the turns, in the same envelope of data
        return self.asker.call(
            self.prompt,
            [*evidence.items, *described],
            values,
            schema=make_json_schema_of_one_answer(self.prompt.schema, options),
            without=evidence.without | (frozenset(PROMPT_BLOCKS) - frozenset(self.blocks)),
            item=conversation.id,
        )


def list_blocks_of_variant(variant: PromptVariant) -> tuple[str, ...]:
    """Return the blocks that a variant's prompt has besides the question."""
    return PROMPT_BLOCKS[: PROMPT_VARIANTS.index(variant)]


def count_calls_of_run(variant: PromptVariant) -> int:
    """Count the calls of one run on a conversation: end states, and the question."""
    return 1 + sum(block in END_STATE_BLOCKS for block in list_blocks_of_variant(variant))


def list_option_texts(question: Question) -> list[str]:
    """Return the texts of the options."""
    return [option.text for option in question.options]


def format_rater_instructions(profile: DomainProfile) -> str:
    """Return the instructions to raters in a domain profile."""
    expected = "\n".join(f"- {expectation}" for expectation in profile.expectations)
    return f"USER wants to {profile.task.removeprefix('to ')}\nRoughly ideal: {profile.ideal_conversation}\n{expected}"
