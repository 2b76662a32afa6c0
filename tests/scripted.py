"""A gateway whose model is a script: it answers what is asked of it and keeps what it was asked."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sealed import unseal

from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.gateway.calls import Call, Capabilities, CompletedReply, Outcome
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Question
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric import Polarity, Rubric

T = TypeVar("T")
Reply = Callable[[Call], Outcome] | Outcome | str
SALT = b"the store's secret"
ABLE = Capabilities(
    model="scripted",
    json_schema=True,
    tools=True,
    json_object=True,
    logprobs=0,
    seed=True,
    temperature=True,
    limit_field="max_completion_tokens",
    window=None,
    calls=0,
)
LISTING = replace(ABLE, logprobs=20)
TALK = Conversation(
    id="secret-id",
    turns=(
        Turn(role="user", content="The deadlock is back, see List<int>."),
        Turn(role="assistant", content="Replace .Result by await in the constructor."),
        Turn(role="user", content="That fixed it, thanks!"),
    ),
    label=Label.POSITIVE,
    judge="secret-judge",
    metadata={"note": "secret-metadata"},
)
_ITEM = re.compile(r"^(\d+)\. (\".*\")$", re.MULTILINE)
_CANARY = re.compile(r'The user uses the word "(.*)" in their first message\.')


@dataclass
class Scripted:
    """Answers from `queue` as long as there is something in it, then from `otherwise`."""

    queue: list[Reply] = field(default_factory=list)
    otherwise: Reply = "{}"
    history: list[Call] = field(default_factory=list)

    async def ask(self, call: Call) -> Outcome:
        self.history.append(call)
        reply = self.queue.pop(0) if self.queue else self.otherwise
        if isinstance(reply, str):
            return CompletedReply(text=reply)
        return reply if isinstance(reply, Outcome) else reply(call)


def asker(door: Scripted, capabilities: Capabilities = ABLE, **options: Any) -> PromptAsker:
    return PromptAsker(door, capabilities, DomainProfile.neutral(), JudgeSettings(**options), SALT)


def rubric(text: str, polarity: Polarity = "sat") -> Rubric:
    return Rubric(id=f"{polarity}-{text}", text=text, polarity=polarity)


def questions(*texts: str, polarity: Polarity = "sat") -> list[Question]:
    return [Question.about(rubric(text, polarity)) for text in texts]


def items_of(call: Call) -> dict[str, str]:
    """What is asked in a batch: number to text."""
    return {
        number: json.loads(text) for number, text in _ITEM.findall(call.messages[-1]["content"])
    }


def is_canary(text: str) -> bool:
    return bool(_CANARY.fullmatch(text))


def truth(call: Call, text: str) -> bool:
    """Whether a canary is true of the conversation that goes with it."""
    found = _CANARY.fullmatch(text)
    assert found
    opening = next(
        item["text"] for item in unseal(call.messages[1]["content"]) if item["role"] == "user"
    )
    return found[1] in opening


def sheet(call: Call, opinions: Mapping[str, Any], otherwise: Any = "Neutral") -> dict[str, Any]:
    """What a judge with `opinions` writes, by number. Canaries are answered right; None passes a question over."""
    said = {}
    for number, text in items_of(call).items():
        answer = opinions.get(text, otherwise)
        if is_canary(text) and text not in opinions:
            answer = "Agree" if truth(call, text) else "Disagree"
        if answer is not None:
            said[number] = {"why": f"Because of {text}", "turns": [0], "answer": answer}
    return said


def honest(opinions: Mapping[str, Any], otherwise: Any = "Neutral") -> Callable[[Call], Outcome]:
    return lambda call: CompletedReply(text=json.dumps(sheet(call, opinions, otherwise)))


def tokens(pieces: Sequence[tuple[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Log-probabilities as the protocol gives them: each token with its alternatives' log-probabilities."""
    return [
        {
            "token": token,
            "logprob": listed.get(token, 0.0),
            "top_logprobs": [{"token": other, "logprob": value} for other, value in listed.items()],
        }
        for token, listed in pieces
    ]


def of(kind: type[T], found: object) -> T:
    """What was found, which is to be of a kind."""
    assert isinstance(found, kind), found
    return found
