"""Logs in other languages: events by tables of their words, and what needs English where there is no table."""

import re

import numpy as np
import pytest
from planted_german import german_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.language import ACTS, ENGLISH, acts_for, language_of, needs_english, stopwords_of
from pollex.agents.embedded.events.reading import marked
from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import positives

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
    turns = tuple(Turn(role="assistant" if n % 2 else "user", content=text) for n, text in enumerate(said))
    return Conversation(id="1", turns=turns)


@pytest.mark.parametrize("language", SAID)
def test_failures_apologies_requests_and_thanks_are_found_in_a_language_by_its_table(language: str) -> None:
    talk = chat(*SAID[language])
    assert language_of([talk] * 5) == language
    asked, failed, thanked = marked(talk)
    assert "requests" in asked.acts
    assert {"fails", "apologizes"} <= failed.acts.keys()
    assert "thanks" in thanked.acts


def test_what_is_denied_is_not_done() -> None:
    talk = chat(
        SAID["German"][0], "Wir haben um acht Uhr noch einen Tisch für Sie frei.", "Das ist gar nicht schlecht."
    )
    assert "complains" not in marked(talk)[2].acts
    assert "complains" in marked(chat(*[turn.content for turn in talk.turns[:2]], "Das ist schlecht."))[2].acts


def test_english_and_short_texts_are_read_by_the_rules_of_english() -> None:
    english = chat("I would like to book a table for two at seven this evening, please.", "Sorry, I can't book it.")
    assert acts_for(marked(english)) is ACTS
    assert acts_for(marked(chat("Tisch?", "Nein."))) is ACTS
    assert language_of([english] * 5) == ENGLISH
    assert needs_english([english] * 5) == ""


def test_a_german_log_gets_events_with_german_quotes_and_no_bare_words(embedder: Embedder) -> None:
    log = german_log()
    study, positive, every = StudiedLog(log, embedder), positives(log), np.ones(len(log), dtype=bool)
    found = {one.event.pattern: one for one in study.events(positive, every)}
    assert {"fail_else", "fail_left", "fail_no_way", "failed"} & found.keys()
    assert {"dsat"} == {one.polarity for name, one in found.items() if name.startswith("fail")}
    assert any("leider nicht buchen" in quote.text for one in found.values() for quote in one.quotes)
    said = [re.findall("“(.*)”", one.statement)[0] for one in study.mined(positive, every)]
    assert not [words for words in said if words in stopwords_of("German")]
    assert needs_english(log).startswith("The log is in German")


def test_a_log_in_a_language_without_a_table_is_told_what_needs_one_and_gets_no_bare_words(embedder: Embedder) -> None:
    log = [chat(POLISH, "Niestety nie mogę tego zrobić.", "Szkoda.") for _ in range(20)]
    assert language_of(log) == ""
    assert "bare words are left out" in needs_english(log)
    assert not StudiedLog(log, embedder).mined(np.arange(20) < 10, np.ones(20, dtype=bool))
