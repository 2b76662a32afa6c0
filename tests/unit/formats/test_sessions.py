"""Sessions put together from the histories that their traces tell."""

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.log_parts import ModelCall
from pollex.formats.assembly.sessions import from_calls

EXAMPLES = ("Is 2 + 2 four?", "yes", "Is 2 + 2 five?", "no")
CALLED = (Turn(role="assistant", content="[tool call: look_up]"), Turn(role="tool", content="shipped"))


def turns(*lines: str) -> tuple[Turn, ...]:
    return tuple(Turn(role="assistant" if n % 2 else "user", content=line) for n, line in enumerate(lines))


def trace(number: int, asked: tuple[Turn, ...], answer: str) -> ModelCall:
    answered = (Turn(role="assistant", content=answer),)
    name = f"t{number}"
    return ModelCall(name, name, None, "s", number, before=asked, after=answered, model=True, history=True)


def words(*calls: ModelCall) -> list[str]:
    return [turn.content for turn in from_calls(calls, {}).turns]


def test_examples_before_every_prompt_are_told_once_and_no_question_is_taken_for_an_edit() -> None:
    asked = [turns(*EXAMPLES, f"Is {n} odd?") for n in (1, 2, 3)]
    told = words(*(trace(n, before, f"answer {n}") for n, before in enumerate(asked, start=1)))
    assert told == [*EXAMPLES, "Is 1 odd?", "answer 1", "Is 2 odd?", "answer 2", "Is 3 odd?", "answer 3"]


def test_tries_of_an_edited_turn_are_no_examples() -> None:
    first = trace(1, turns("Hello"), "Good day")
    tries = [trace(n, turns("Hello", "Good day", f"try {n}"), f"answer {n}") for n in (2, 3, 4)]
    assert words(first, *tries) == ["Hello", "Good day", "try 4", "answer 4"]


def test_tool_calls_that_later_histories_leave_out_are_kept() -> None:
    asked, answer = turns("Where is A-17?"), "It was shipped."
    root = trace(1, asked, answer)._replace(model=False)
    inner = trace(1, (*asked, *CALLED), answer)._replace(span="inner", parent="t1")
    later = trace(2, turns("Where is A-17?", answer, "Thanks"), "You're welcome.")
    called = [turn.content for turn in CALLED]
    assert words(root, inner, later) == ["Where is A-17?", *called, answer, "Thanks", "You're welcome."]
    edited = trace(3, turns("Where is A-17?", answer, "And A-18?"), "At home.")
    assert words(root, inner, later, edited) == ["Where is A-17?", *called, answer, "And A-18?", "At home."]
