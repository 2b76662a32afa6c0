"""Replies in another language than the user's last turn."""

import subprocess
import sys

import pytest

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.agents.embedded.spoken import list_other_language_replies
from pollex.agents.embedded.view import ConversationView
from pollex.conversations.conversation import Conversation, Turn

GERMAN = "Guten Tag, meine Bestellung ist seit zwei Wochen nicht angekommen."
ENGLISH = "I'm sorry to hear that, could you please tell me the number of your order?"


def said(*texts: str) -> list[int]:
    return list_other_language_replies(
        texts, ["assistant" if place % 2 else "user" for place in range(len(texts))]
    )


@pytest.mark.parametrize(
    "user",
    [
        GERMAN,
        "Bonjour, je voudrais savoir pourquoi ma commande n'est pas encore arrivée.",
        "Hola, quiero saber por qué mi pedido todavía no ha llegado.",
        "Buongiorno, vorrei sapere perché il mio ordine non è ancora arrivato.",
        "Dzień dobry, moje zamówienie jeszcze nie dotarło, co mogę zrobić?",
        "我的订单已经两个星期了还没有到，请问是怎么回事？",
    ],
)
def test_an_english_reply_to_another_language_is_told(user: str) -> None:
    assert said(user, ENGLISH) == [1]


def test_the_reply_follows_when_the_user_changes_and_short_turns_count_with_those_before() -> None:
    assert said(GERMAN, "Das tut mir leid, wie lautet denn die Nummer Ihrer Bestellung?") == []
    assert said(GERMAN, "Wie lautet denn die Nummer Ihrer Bestellung, bitte?", "5512", ENGLISH) == [
        3
    ]
    assert (
        said(
            GERMAN, "Wie lautet die Nummer?", "Sorry, let me go on in English, it is 5512.", ENGLISH
        )
        == []
    )


@pytest.mark.parametrize(
    ("user", "reply"),
    [
        (
            "Wie heißt der Fehler?",
            "`TypeError: cannot read properties of undefined (reading 'length')`",
        ),
        (
            "Necesito una factura de mi compra, por favor.",
            "Precisa de uma fatura da sua compra, com certeza.",
        ),
        (GERMAN, "OK, 5512."),
        (
            "What does the word Weltanschauung mean in English?",
            "It is a way of looking at the world as a whole.",
        ),
    ],
)
def test_look_alikes_are_left_alone(user: str, reply: str) -> None:
    assert said(user, reply) == []


def test_the_signal_marks_the_reply_and_nothing_is_loaded_for_english_alone() -> None:
    turns = (Turn(role="user", content=GERMAN), Turn(role="assistant", content=ENGLISH))
    marks = SIGNALS_BY_NAME["other_language"].marks(
        ConversationView(Conversation(id="1", turns=turns), Embedder())
    )
    assert marks.tolist() == [0.0, 1.0]
    code = (
        "import sys; from pollex.agents.embedded.spoken import list_other_language_replies as told;"
        f"told([{ENGLISH!r}, {ENGLISH!r}], ['user', 'assistant']); print('py3langid' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
