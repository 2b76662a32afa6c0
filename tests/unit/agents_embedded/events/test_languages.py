"""Acts in languages other than English: their phrases, and what rules them out."""

import pytest

from pollex.agents.embedded.events.reading import read_moves_with_acts
from pollex.conversations.conversation import Conversation, Turn


@pytest.mark.parametrize(
    ("reply", "offers"),
    [
        ("Ich kann Ihnen Samstag um 18 Uhr anbieten.", True),
        ("Wir können Ihnen aber auch den Dienstag anbieten.", True),
        ("Um 18 Uhr wäre noch frei.", True),
        ("Ich kann Ihnen leider nichts anbieten.", False),
        ("Wir können Ihnen keine Massage anbieten.", False),
    ],
)
def test_what_is_offered_in_german_is_an_offer_and_what_is_denied_within_the_phrase_is_none(
    reply: str, offers: bool
) -> None:
    request = "Ich möchte bitte die Sauna reservieren, und zwar am Montag um 9 Uhr, wenn das geht."
    talk = Conversation(
        id="t",
        turns=(
            Turn(role="user", content=request),
            Turn(role="assistant", content=f"Das konnte ich leider nicht reservieren. {reply}"),
        ),
    )
    sentences = read_moves_with_acts(talk)[-1].sentences
    acts = {act for sentence in sentences for act in sentence.hits}
    assert ("offers_other" in acts) is offers
