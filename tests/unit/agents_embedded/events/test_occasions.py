"""When built-in events could happen at all."""

from pollex.agents.embedded.events.language import ENGLISH_ACTS
from pollex.agents.embedded.events.occasions import (
    OCCASION_BY_PATTERN,
    OCCASIONS_BY_NAME,
    find_occasions_of_rubrics,
)
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.conversations.conversation import Conversation, Turn
from pollex.rubrics.rubric import Rubric


def talk(number: int, user: str, assistant: str, then: str = "Thanks.") -> Conversation:
    turns = (("user", user), ("assistant", assistant), ("user", then))
    return Conversation(
        id=f"c{number}", turns=tuple(Turn(role=role, content=text) for role, text in turns)
    )


LOG = [
    talk(1, "Book a table for two at 7 pm.", "Sorry, I was unable to book a table."),
    talk(2, "Book a table for two at 7 pm.", "I have booked a table for two at 7 pm."),
    talk(3, "What are your opening hours?", "We are open from 9 am to 6 pm."),
    talk(4, "I want to eat out.", "I suggest the Golden Fork. It is a nice restaurant."),
]


def rows(source: str) -> tuple[str, list[bool]]:
    rubric = Rubric(id="one", text="It happens.", polarity="dsat", source=source)
    words, came_up = find_occasions_of_rubrics([rubric], LOG)["one"]
    return words, came_up.tolist()


def test_every_name_in_the_table_of_occasions_exists_and_no_pattern_has_two() -> None:
    for occasion in OCCASIONS_BY_NAME.values():
        assert {*occasion.of, *occasion.patterns} <= PATTERNS_BY_NAME.keys()
        assert {*occasion.assistant, *occasion.user} <= ENGLISH_ACTS.by_name.keys()
    assert sum(len(occasion.of) for occasion in OCCASIONS_BY_NAME.values()) == len(
        OCCASION_BY_PATTERN
    )


def test_a_failure_to_book_could_happen_where_a_booking_was_tried() -> None:
    assert rows("event:fail_no_way") == (
        "the assistant tries to do something",
        [True, True, False, False],
    )


def test_a_suggestion_can_be_taken_where_one_is_made() -> None:
    assert rows("rate:offer_taken")[1] == [False, False, False, True]


def test_what_may_happen_in_any_conversation_and_what_is_no_event_have_no_occasion() -> None:
    sources = ("event:given_up", "signal:apology", "phrase:user:table", "judge@1")
    rubrics = [
        Rubric(id=str(n), text="It happens.", polarity="dsat", source=source)
        for n, source in enumerate(sources)
    ]
    assert find_occasions_of_rubrics(rubrics, LOG) == {}


def test_an_occasion_of_one_topic_names_it_and_is_no_other_topics() -> None:
    source = (
        'event:fail_no_way {"topic":"table","topics":{"table":{"table":1.0},"bike":{"bike":1.0}}}'
    )
    words, came_up = rows(source)
    assert words == "the assistant tries to do something about a table"
    assert came_up[:3] == [True, True, False]
    other = source.replace('"topic":"table"', '"topic":"bike"')
    assert not any(rows(other)[1])
