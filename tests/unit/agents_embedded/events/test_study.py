"""What is learnt from a log: events with their side, words and quotes, in English and by tables of other languages."""

import re

import numpy as np
import pytest
from planted_bookings import booking_log
from planted_failures import failing_log
from planted_german import german_log
from planted_tools import tool_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import (
    ENGLISH_ACTS,
    ENGLISH_LANGUAGE_NAME,
    choose_acts_by_language,
    detect_log_language,
    explain_rubrics_lacking_by_language,
    list_stopwords,
)
from pollex.agents.embedded.events.learning import (
    compute_topic_segments,
    count_conversations_needed_of_event,
    count_within_false_discovery_rate,
    draw_stratified_half,
)
from pollex.agents.embedded.events.nouns import learn_key_nouns
from pollex.agents.embedded.events.reading import (
    ANY_TOPIC,
    Event,
    EventRubric,
    read_events_of_conversation,
    read_moves_with_acts,
)
from pollex.agents.embedded.events.signal import find_topic_named_in_exchange, write_event_sentence
from pollex.agents.embedded.events.topics import (
    LogTopic,
    LogTopics,
    form_one_noun_phrase,
    name_topics_for_readers,
)
from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import flag_positive_labels


@pytest.fixture(scope="module")
def log() -> list[Conversation]:
    return booking_log()


@pytest.fixture(scope="module")
def model(log: list[Conversation]) -> list[EventRubric]:
    return learned(log)


def learned(log: list[Conversation], seed: int = 0) -> list[EventRubric]:
    every = np.ones(len(log), dtype=bool)
    return StudiedLog(log, Embedder(), seed).events(flag_positive_labels(log), every)


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
    assert {topic.name for topic in StudiedLog(log, Embedder()).topics.topics} >= {
        "kayak",
        "cabin",
        "tandem",
    }


def test_failures_of_several_tools_are_one_rubric_that_names_them_behind() -> None:
    found = {rubric.event.pattern: rubric for rubric in learned(failing_log())}
    assert not {"tool_fails", "tool_fails_told"} & found.keys(), (
        "all of these failures are hidden, which says more"
    )
    (rubric,) = [one for name, one in found.items() if name == "tool_fails_hidden"]
    assert rubric.text.startswith(
        "A call of a tool fails, and the assistant's reply doesn't say so (`"
    )
    assert rubric.text.endswith(", others).")
    assert rubric.polarity == "dsat"
    assert rubric.headline


def test_calls_made_twice_and_calls_with_what_nobody_said_are_found_and_quoted_with_their_arguments() -> (
    None
):
    log = tool_log()
    found = {rubric.event.pattern: rubric for rubric in learned(log)}
    assert (
        found["tool_again"].text
        == "The assistant calls the tool `trains` again with the same arguments."
    )
    assert (
        found["tool_unsaid"].text
        == "The assistant calls the tool `trains` with a value that nobody gave."
    )
    assert {found[name].polarity for name in ("tool_again", "tool_unsaid")} == {"dsat"}
    quote = found["tool_again"].quotes[0]
    turn = next(one for one in log if one.id == quote.conversation_id).turns[quote.turn]
    assert quote.text == turn.shown == f"[tool call: trains] {turn.calls[0].arguments}"


def test_a_sentence_names_an_object_only_where_most_hits_tell_of_it() -> None:
    topics = LogTopics([LogTopic("refund", "refund", {"refund": 2.0}, "pay a refund", 1.0)])
    done = Event("done")
    told = []
    for answer in ("I've added a voucher.", "I've made the refund.", "I've sent it."):
        turns = ("user", "I want a refund."), ("assistant", answer), ("user", "Ok.")
        chat = Conversation(
            id="1", turns=tuple(Turn(role=role, content=text) for role, text in turns)
        )
        reading = read_events_of_conversation(chat, topics)
        told += [
            find_topic_named_in_exchange(reading, firing, topics)
            for firing in reading.firings[done]
        ]
    assert told == [ANY_TOPIC, 0, 0], "a voucher is no refund"
    assert write_event_sentence(done, topics, [0, 0, 0]) == "The assistant manages to pay a refund."
    mostly = "The assistant manages to do something (mostly pay a refund)."
    assert write_event_sentence(done, topics, [0, 0, ANY_TOPIC]) == mostly, (
        "it holds of others, too"
    )
    assert (
        write_event_sentence(done, topics, [0, ANY_TOPIC])
        == "The assistant manages to do something."
    )
    assert (
        write_event_sentence(Event("complained"), topics, [])
        == "After the assistant's reply, the user complains about it."
    )


def test_objects_are_nouns_and_what_is_said_as_one_of_them_is_one() -> None:
    said = (
        ("Rent a tandem. Is that correct?", "Pay the deposit."),
        ("Book a hotel room.", "The hotel room is yours."),
    )
    log = [read_moves_with_acts(spoken(*turns)) for turns in said for _ in range(9)]
    assert {"tandem", "room"} <= learn_key_nouns(log).key.keys()
    assert "correct" not in learn_key_nouns(log).key
    assert form_one_noun_phrase(log, "hotel", "room")
    assert not form_one_noun_phrase(log, "deposit", "tandem")


def spoken(user: str, assistant: str) -> Conversation:
    turns = (Turn(role="user", content=user), Turn(role="assistant", content=assistant))
    return Conversation(id="1", turns=turns)


def test_quotes_and_marks_stand_in_the_turns_that_they_name(
    model: list[EventRubric], log: list[Conversation]
) -> None:
    by_id = {conversation.id: conversation for conversation in log}
    quotes = [quote for rubric in model for quote in rubric.quotes]
    assert quotes
    for quote in quotes:
        turns = by_id[quote.conversation_id].turns
        assert quote.text in turns[quote.turn].content
        assert quote.marks
        assert all(quote.text[start:end].strip() for start, end in quote.marks)


def test_topics_are_segments_with_examples(log: list[Conversation]) -> None:
    found, _ = compute_topic_segments(log, log)
    assert {segment.topic for segment in found} >= {"kayak", "cabin"}
    assert all(len(segment.examples) == 3 and segment.down.n >= 5 for segment in found)


def test_a_topic_has_a_plural_only_where_people_write_it() -> None:
    nouns = ("kayak", "abgebucht")
    topics = LogTopics([LogTopic(name, name, {name: 1.0}, "", 0.5) for name in nouns])
    moves = read_moves_with_acts(spoken("I rent kayaks. It was abgebucht.", "Fine."))
    assert name_topics_for_readers(topics, [moves]) == ["kayaks", "abgebucht"]


def test_the_false_discovery_rate_is_bounded_as_benjamini_and_hochberg_have_it() -> None:
    # .2 · k / 4 is .05, .1, .15, .2: the third stands within its bound, and takes the second with
    # it
    assert count_within_false_discovery_rate(np.array([0.01, 0.12, 0.14, 0.5])) == 3
    assert count_within_false_discovery_rate(np.array([0.3, 0.4])) == 0
    assert count_within_false_discovery_rate(np.array([])) == 0


def test_a_half_has_half_of_each_class_and_support_grows_with_the_log() -> None:
    up = np.array([True] * 20 + [False] * 10)
    half = draw_stratified_half(up, np.random.default_rng(0))
    assert (up[half].sum(), (~up[half]).sum()) == (10, 5)
    assert [count_conversations_needed_of_event(n) for n in (10, 150, 1000)] == [3, 4, 6]


SAID = {
    "German": (
        "Ich möchte bitte einen Tisch für heute Abend bei Ihnen buchen, geht das noch?",
        "Es tut mir leid, ich kann den Tisch leider nicht buchen.",
        "Vielen Dank trotzdem.",
    ),
    "French": (
        "Bonjour, je voudrais réserver une table pour ce soir dans votre restaurant, est-ce que c'est possible ?",
        "Désolé, je ne peux pas réserver cette table.",
        "Merci quand même.",
    ),
    "Spanish": (
        "Hola, quiero reservar una mesa para esta noche en el restaurante, por favor, si se puede.",
        "Lo siento, no he podido reservar la mesa.",
        "Gracias de todos modos.",
    ),
    "Italian": (
        "Buongiorno, vorrei prenotare un tavolo per questa sera con mio fratello, non so se si può.",
        "Mi dispiace, non riesco a prenotare il tavolo.",
        "Grazie lo stesso.",
    ),
    "Portuguese": (
        "Olá, quero reservar uma mesa para esta noite no restaurante, se não for um problema para você.",
        "Desculpe, não consegui reservar a mesa.",
        "Obrigado mesmo assim.",
    ),
    "Dutch": (
        "Ik wil graag een tafel voor vanavond reserveren bij het restaurant, kan dat nog met u?",
        "Het spijt me, ik kan de tafel helaas niet reserveren.",
        "Toch bedankt.",
    ),
}
POLISH = "Chciałbym zarezerwować stolik na dzisiejszy wieczór dla czterech osób, czy to jeszcze możliwe u państwa?"


def chat(*said: str) -> Conversation:
    turns = tuple(
        Turn(role="assistant" if n % 2 else "user", content=text) for n, text in enumerate(said)
    )
    return Conversation(id="1", turns=turns)


@pytest.mark.parametrize("language", SAID)
def test_failures_apologies_requests_and_thanks_are_found_in_a_language_by_its_table(
    language: str,
) -> None:
    talk = chat(*SAID[language])
    assert detect_log_language([talk] * 5) == language
    asked, failed, thanked = read_moves_with_acts(talk)
    assert "requests" in asked.acts
    assert {"fails", "apologizes"} <= failed.acts.keys()
    assert "thanks" in thanked.acts


def test_what_is_denied_is_not_done() -> None:
    talk = chat(
        SAID["German"][0],
        "Wir haben um acht Uhr noch einen Tisch für Sie frei.",
        "Das ist gar nicht schlecht.",
    )
    assert "complains" not in read_moves_with_acts(talk)[2].acts
    assert (
        "complains"
        in read_moves_with_acts(
            chat(*[turn.content for turn in talk.turns[:2]], "Das ist schlecht.")
        )[2].acts
    )


def test_english_and_short_texts_are_read_by_the_rules_of_english() -> None:
    english = chat(
        "I would like to book a table for two at seven this evening, please.",
        "Sorry, I can't book it.",
    )
    assert choose_acts_by_language(read_moves_with_acts(english)) is ENGLISH_ACTS
    assert choose_acts_by_language(read_moves_with_acts(chat("Tisch?", "Nein."))) is ENGLISH_ACTS
    assert detect_log_language([english] * 5) == ENGLISH_LANGUAGE_NAME
    assert explain_rubrics_lacking_by_language([english] * 5) == ""


def test_a_german_log_gets_events_with_german_quotes_and_no_bare_words(embedder: Embedder) -> None:
    log = german_log()
    study = StudiedLog(log, embedder)
    positive = flag_positive_labels(log)
    every = np.ones(len(log), dtype=bool)
    found = {one.event.pattern: one for one in study.events(positive, every)}
    assert {"fail_else", "fail_left", "fail_no_way", "failed"} & found.keys()
    assert {"dsat"} == {one.polarity for name, one in found.items() if name.startswith("fail")}
    assert any(
        "leider nicht buchen" in quote.text for one in found.values() for quote in one.quotes
    )
    said = [re.findall("“(.*)”", one.statement)[0] for one in study.mined(positive, every)]
    assert not [words for words in said if words in list_stopwords("German")]
    assert explain_rubrics_lacking_by_language(log).startswith("The log is in German")


def test_a_log_in_a_language_without_a_table_is_told_what_needs_one_and_gets_no_bare_words(
    embedder: Embedder,
) -> None:
    log = [chat(POLISH, "Niestety nie mogę tego zrobić.", "Szkoda.") for _ in range(20)]
    assert detect_log_language(log) == ""
    assert "bare words are left out" in explain_rubrics_lacking_by_language(log)
    assert not StudiedLog(log, embedder).mined(np.arange(20) < 10, np.ones(20, dtype=bool))
