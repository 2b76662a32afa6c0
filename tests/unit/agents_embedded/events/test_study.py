"""What is learnt from a log: events with their side, words and quotes."""

import numpy as np
import pytest
from planted_bookings import booking_log
from planted_tools import tool_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.learning import last_within, segments_of, stratified_half, support
from pollex.agents.embedded.events.nouns import key_nouns
from pollex.agents.embedded.events.reading import ANYWHERE, Event, EventRubric, marked, read
from pollex.agents.embedded.events.signal import sentence, told_of
from pollex.agents.embedded.events.topics import LogTopic, Topics, told_together
from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import positives


@pytest.fixture(scope="module")
def log() -> list[Conversation]:
    return booking_log()


@pytest.fixture(scope="module")
def model(log: list[Conversation]) -> list[EventRubric]:
    return learned(log)


def learned(log: list[Conversation], seed: int = 0) -> list[EventRubric]:
    every = np.ones(len(log), dtype=bool)
    return StudiedLog(log, Embedder(), seed).events(positives(log), every)


def test_a_failure_that_is_recovered_speaks_for_a_conversation_and_any_other_against_it(
    model: list[EventRubric], log: list[Conversation]
) -> None:
    found = {rubric.event.pattern: rubric for rubric in model}
    assert found["fail_other_taken"].polarity == "sat"
    assert found["fail_other_taken"].text.startswith("When the assistant can't rent a ")
    assert found["fail_other_taken"].text.endswith("it offers another time, and the user takes it.")
    bad = {rubric.event.pattern for rubric in model if rubric.polarity == "dsat"}
    assert bad & {"fail_else", "fail_left", "fail_no_way"}
    assert learned(log) == model, "the same seed learns the same"
    assert {topic.name for topic in StudiedLog(log, Embedder()).topics.topics} >= {"kayak", "cabin", "tandem"}


def test_calls_made_twice_and_calls_with_what_nobody_said_are_found_and_quoted_with_their_arguments() -> None:
    log = tool_log()
    found = {rubric.event.pattern: rubric for rubric in learned(log)}
    assert found["tool_again"].text == "The assistant calls the tool `trains` again with the same arguments."
    assert found["tool_unsaid"].text == "The assistant calls the tool `trains` with a value that nobody gave."
    assert {found[name].polarity for name in ("tool_again", "tool_unsaid")} == {"dsat"}
    quote = found["tool_again"].quotes[0]
    turn = next(one for one in log if one.id == quote.conversation_id).turns[quote.turn]
    assert quote.text == turn.shown == f"[tool call: trains] {turn.calls[0].arguments}"


def test_a_sentence_names_an_object_only_where_most_hits_tell_of_it() -> None:
    topics, done = Topics([LogTopic("refund", "refund", {"refund": 2.0}, "pay a refund", 1.0)]), Event("done")
    told = []
    for answer in ("I've added a voucher.", "I've made the refund.", "I've sent it."):
        turns = ("user", "I want a refund."), ("assistant", answer), ("user", "Ok.")
        chat = Conversation(id="1", turns=tuple(Turn(role=role, content=text) for role, text in turns))
        reading = read(chat, topics)
        told += [told_of(reading, firing, topics) for firing in reading.seen[done]]
    assert told == [ANYWHERE, 0, 0], "a voucher is no refund"
    assert sentence(done, topics, [0, 0, ANYWHERE]) == "The assistant manages to pay a refund."
    assert sentence(done, topics, [0, ANYWHERE]) == "The assistant manages to do something."
    assert sentence(Event("complained"), topics, []) == "After the assistant's reply, the user complains about it."


def test_objects_are_nouns_and_what_is_said_as_one_of_them_is_one() -> None:
    said = (("Rent a tandem. Is that correct?", "Pay the deposit."), ("Book a hotel room.", "The hotel room is yours."))
    log = [marked(spoken(*turns)) for turns in said for _ in range(9)]
    assert {"tandem", "room"} <= key_nouns(log).key.keys()
    assert "correct" not in key_nouns(log).key
    assert told_together(log, "hotel", "room")
    assert not told_together(log, "deposit", "tandem")


def spoken(user: str, assistant: str) -> Conversation:
    turns = (Turn(role="user", content=user), Turn(role="assistant", content=assistant))
    return Conversation(id="1", turns=turns)


def test_quotes_and_marks_stand_in_the_turns_that_they_name(model: list[EventRubric], log: list[Conversation]) -> None:
    by_id = {conversation.id: conversation for conversation in log}
    quotes = [quote for rubric in model for quote in rubric.quotes]
    assert quotes
    for quote in quotes:
        turns = by_id[quote.conversation_id].turns
        assert quote.text in turns[quote.turn].content
        assert quote.marks
        assert all(quote.text[start:end].strip() for start, end in quote.marks)


def test_topics_are_segments_with_examples(log: list[Conversation]) -> None:
    found = segments_of(log, log)
    assert {segment.topic for segment in found} >= {"kayaks", "cabins"}
    assert all(len(segment.examples) == 3 and segment.down.n >= 5 for segment in found)


def test_the_false_discovery_rate_is_bounded_as_benjamini_and_hochberg_have_it() -> None:
    # .2 · k / 4 is .05, .1, .15, .2: the third stands within its bound, and takes the second with it
    assert last_within(np.array([0.01, 0.12, 0.14, 0.5])) == 3
    assert last_within(np.array([0.3, 0.4])) == 0
    assert last_within(np.array([])) == 0


def test_a_half_has_half_of_each_class_and_support_grows_with_the_log() -> None:
    up = np.array([True] * 20 + [False] * 10)
    half = stratified_half(up, np.random.default_rng(0))
    assert (up[half].sum(), (~up[half]).sum()) == (10, 5)
    assert [support(n) for n in (10, 150, 1000)] == [3, 4, 6]
