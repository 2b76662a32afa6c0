"""The system under test: a model that is asked questions as its users ask them."""

from pollex.agents.llm.asker import PromptAsker, make_unanswered_from_outcome
from pollex.gateway.calls import Call, CompletedReply
from pollex.gateway.thoughts import remove_thoughts
from pollex.rubrics.answers import Unanswered
from pollex.text import is_visible

ASSUMED_ANSWER_TOKENS = 500
"""Tokens of an answer, about."""


class Respondent:
    """Answers questions, each at its own temperature.

    Attributes:
        system: What the model is told first; empty for nothing.
    """

    def __init__(self, asker: PromptAsker, system: str = "") -> None:
        self.asker = asker
        self.system = system

    @property
    def name(self) -> str:
        """The model's name."""
        return self.asker.name

    @property
    def fingerprint(self) -> str:
        """See `Agent`."""
        return self.asker.fingerprint(system=self.system)

    def call(self, item: str, question: str, temperature: float) -> Call:
        """Build a question that this endpoint supports."""
        if self.system:
            system_messages = [{"role": "system", "content": self.system}]
        else:
            system_messages = []

        # a call with no schema and no rubrics: it is asked as a user would ask
        call = Call(
            messages=[*system_messages, {"role": "user", "content": question}],
            temperature=temperature,
            seed=self.asker.settings.seed,
            max_tokens=self.asker.settings.max_tokens,
            stage="answer",
            written=ASSUMED_ANSWER_TOKENS,
            apart=True,
            item=item,
        )
        return self.asker.capabilities.fit(call)

    async def respond(self, item: str, question: str, temperature: float) -> str | Unanswered:
        """Ask a question and return the text without thoughts; a truncated answer is none."""
        outcome = await self.asker.ask(self.call(item, question, temperature))
        # without a reply there is no answer to grade
        if not isinstance(outcome, CompletedReply):
            return make_unanswered_from_outcome(outcome, self.name, item)

        # thoughts are for the model alone and are not graded
        answer = remove_thoughts(outcome.text)
        if not is_visible(answer):
            return Unanswered(
                question_id=item,
                outcome="empty",
                detail="thoughts and no answer",
                judge=self.name,
            )

        # halves of character pairs can't be written to a file
        return answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
