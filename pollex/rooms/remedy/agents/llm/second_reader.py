"""The second judge: compares replies without rubrics, judges by other words, and looks for new statements of fact."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.evidence import make_prompt_items_of_turns
from pollex.agents.llm.judge import BatchedElicitation, LlmJudge
from pollex.agents.llm.rewording import ask_for_better_words
from pollex.agents.mixed import MixedJudge
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.prompts.prompt import load_prompt
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rubrics.answers import Answer, Question, ScaleName, Unanswered
from pollex.rubrics.rubric import Polarity, Rubric


class ReplyJudge(BatchedElicitation):
    """Rubrics asked of the last reply alone, with the prompt `judge_reply`."""

    _prompt = "judge_reply"

    def _side(self, question: Question) -> str:  # noqa: ARG002
        """Ask of both sides in one call: a reply is read once."""
        return ""


@dataclass(frozen=True)
class LastExchangeJudge(Judge):
    """A built-in judge that is shown the turns from the user's last one on: it reads events wherever they stand."""

    judged_by: Judge

    @property
    def name(self) -> str:
        return self.judged_by.name

    @property
    def fingerprint(self) -> str:
        return f"last exchange, {self.judged_by.fingerprint}"

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Judge the last exchange."""
        users = []
        for place, turn in enumerate(conversation.turns):
            if turn.role == "user":
                users.append(place)

        alone = Conversation(
            id=conversation.id,
            turns=conversation.turns[users[-1] :],
        )
        return await self.judged_by.judge(alone, questions)


def build_reply_judge(judge: Judge) -> Judge:
    """Return the judge of the last reply of conversations that goes with a set's judge."""
    if isinstance(judge, LlmJudge):
        return LlmJudge(judge.asker, ReplyJudge(judge.asker))
    if isinstance(judge, MixedJudge):
        return MixedJudge(build_reply_judge(judge.model), build_reply_judge(judge.built_in))
    return LastExchangeJudge(judge)


@dataclass(frozen=True)
class SecondReader:
    """A model that isn't the rubrics' judge.

    Attributes:
        wordings: The target in other words, and its mirror.
    """

    asker: PromptAsker
    wordings: Sequence[Question] = ()

    @classmethod
    async def of(cls, asker: PromptAsker, target: Rubric, scale: ScaleName) -> Self:
        """Ask for the target in other words."""
        # the mirror says the opposite, so its polarity is the other one
        other: Polarity = "dsat" if target.polarity == "sat" else "sat"
        mirror = {
            "id": "mirror",
            "text": f"It is not so that: {target.text}",
            "polarity": other,
        }
        wordings = [target.model_copy(update=mirror)]
        # without other words the mirror alone is asked
        words = await ask_for_better_words(
            asker,
            [target],
            {target.id: ["say the same in other words"]},
        )
        if not isinstance(words, Unanswered) and words:
            wordings.insert(
                0,
                target.model_copy(update={"id": "reworded", "text": words[target.id][0]}),
            )

        return cls(asker, [Question.about(wording, scale) for wording in wordings])

    @property
    def name(self) -> str:
        """The model's name."""
        return self.asker.name

    async def wins(self, context: ReplyContext, old: str, new: str) -> float:
        """Return 1 where the new reply helps more in both orders, 0 where the old one does, else ½; NaN: no answer."""
        # equal replies need no reader
        if old == new:
            return 0.5

        wins = []
        # the conversation up to the reply, whose place is left open
        turn_items = make_prompt_items_of_turns(context.with_reply("…"))
        # both orders, since readers prefer a place; only agreement counts
        for pair, better in (((old, new), "second"), ((new, old), "first")):
            items = [*turn_items, {"reply": 1, "text": pair[0]}, {"reply": 2, "text": pair[1]}]
            call_settings = {"stage": "compare", "item": context.conversation.id}
            value = await self.asker.value(
                load_prompt("compare_replies"),
                items,
                {},
                {"better": str},
                **call_settings,
            )
            # one order without an answer leaves the pair without one
            if isinstance(value, Unanswered) or value["better"] not in (
                "first",
                "second",
                "neither",
            ):
                return float("nan")

            wins.append(0.5 if value["better"] == "neither" else float(value["better"] == better))

        return wins[0] if wins[0] == wins[1] else 0.5

    async def reworded(
        self, conversation: Conversation, value_of: Callable[[Question, Answer | Unanswered], float]
    ) -> list[float]:
        """Return what the last reply is worth by the target in other words, and by its mirror."""
        if not self.wordings:
            return []

        judge = build_reply_judge(LlmJudge(replace(self.asker)))
        answers = await judge.judge(conversation, self.wordings)
        return [
            value_of(question, answer)
            for question, answer in zip(self.wordings, answers, strict=True)
        ]

    async def new_facts(self, prompt_facts: str, added: str) -> list[str]:
        """Return statements of fact about the domain that stand in a change and not in what is known."""
        # what is known: the prompt and the domain's facts
        items = [{"known": prompt_facts}, {"added": added}]
        call_settings = {"stage": "check_edit", "item": ""}
        value = await self.asker.value(
            load_prompt("new_facts"),
            items,
            {},
            {"facts": list},
            **call_settings,
        )
        # a change that can't be checked counts as one that states something new
        if isinstance(value, Unanswered):
            return ["it could not be checked"]
        return [str(fact) for fact in value["facts"]]
