"""A planted assistant of the bicycle shop: rules and chance in place of a model, so what its prompt does is known.

pollex remedy run … --assistant pollex.rooms.remedy.examples.planted_assistant:answer_messages
"""

import random
from collections.abc import Mapping, Sequence

SYSTEM_PROMPT = "You are the assistant of a bicycle shop.\nBe short and friendly.\n"
OFFER_LINE = "Where a wish can't be met, offer another day.\n"
REPLY_ENDINGS = ("", " Is there anything else?", " Can I help you with anything else today?")


def answer_messages(messages: Sequence[Mapping[str, object]], system: str) -> str:
    """Fail in seven of ten replies; with the offer in the prompt, most of these have a way on."""
    rng = random.Random(f"{messages[-1]['content']} {len(messages)} {system}")
    day = rng.choice(("Tuesday", "Friday"))
    hour = rng.randint(1, 6)
    fails = rng.random()
    offers = rng.random()
    if fails > 0.7:
        return f"I've booked it for {day} at {hour} pm. It costs ${10 * hour}.{rng.choice(REPLY_ENDINGS)}"
    if OFFER_LINE.strip() in system and offers < 0.8:
        return f"Sorry, I couldn't book it for {day} at {hour} pm. Should I book it for Monday at {hour} pm instead?"
    return f"Sorry, I couldn't book it for {day} at {hour} pm.{rng.choice(REPLY_ENDINGS)}"
