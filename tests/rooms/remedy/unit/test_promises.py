"""A promise in place of a deed is found in replies, in seven languages."""

import pytest

from pollex.rooms.remedy.services.promises import makes_promise


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, I'll pass it on to the kitchen.",
        "We will forward your request to support.",
        "I will let our manager know.",
        "A colleague will get back to you within a day.",
        "Our support team will contact you.",
        "Ich leite Ihr Anliegen an die Werkstatt weiter.",
        "Eine Kollegin wird sich bei Ihnen melden.",
        "Je transmets votre demande à l'équipe.",
        "Un conseiller vous contactera.",
        "Transmitiré su solicitud al equipo.",
        "Un collega la contatterà domani.",
        "Ik geef het door aan de winkel.",
        "Vou encaminhar o seu pedido.",
    ],
)
def test_a_promise_is_found(reply: str) -> None:
    assert makes_promise(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "I've booked a table for Monday at 7 pm.",
        "I couldn't book it. Monday at 7 pm is free, shall I take that?",
        "You can call the shop at noon.",
        "Will you come with the bike?",
        "It will be ready on Friday.",
        "I will book it if you like.",
        "Die Werkstatt hat am Montag frei. Soll ich buchen?",
        "Je l'ai réservé pour lundi.",
    ],
)
def test_a_deed_a_question_or_an_offer_is_no_promise(reply: str) -> None:
    assert not makes_promise(reply)
