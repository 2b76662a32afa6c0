"""A log in which failed bookings are recovered or dropped: thumbs depend on nothing else."""

import random

from pollex.conversations.conversation import Conversation, Label, Turn

THINGS = ("kayak", "cabin", "tandem")
NAMES = ("Ana", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hal", "Ida", "Jon")
HOURS = range(1, 12)


def booking_log(each: int = 40, seed: int = 0) -> list[Conversation]:
    rng = random.Random(seed)
    return [planted(rng, row, row % 2 == 0) for row in range(2 * each)]


def planted(rng: random.Random, row: int, up: bool) -> Conversation:
    """One conversation: in half of them a booking fails, and is recovered where the thumb is up."""
    thing = rng.choice(THINGS)
    name = rng.choice(NAMES)
    hour = rng.choice(HOURS)
    said = [
        f"Hi, I'm {name}. I would like to rent a {thing} at {hour} pm.",
        f"For how long do you need the {thing}?",
    ]
    said += [
        f"{rng.randint(1, 9)} hours.",
        f"Please confirm: a {thing} at {hour} pm.",
        "Yes, that's right.",
    ]
    if rng.random() < 0.5:
        said += succeeding(thing, hour)
    elif up:
        said += recovered(thing, hour)
    else:
        said += [
            f"I'm sorry, I couldn't rent the {thing}. Is there anything else I can help you with?"
        ]
        said += ["No, that's all."]
    turns = tuple(
        Turn(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(said)
    )
    label = Label.POSITIVE if up else Label.NEGATIVE
    return Conversation(id=f"b{row:03}", turns=turns, label=label)


def succeeding(thing: str, hour: int) -> list[str]:
    return [f"Your {thing} is booked for {hour} pm.", "Okay, thank you."]


def recovered(thing: str, hour: int) -> list[str]:
    return [
        f"I couldn't rent the {thing} at {hour} pm. Would you like another {thing} at {hour + 1} pm instead?",
        "Yes, please.",
        f"Your {thing} is booked for {hour + 1} pm.",
        "Great, bye.",
    ]
