"""A log in German: thumbs depend on whether a booking that fails is recovered, and on nothing else."""

import random

from pollex.conversations.conversation import Conversation, Label, Turn

DINGE = ("ein Kajak", "eine Hütte", "ein Tandem")


def german_log(each: int = 50, seed: int = 0) -> list[Conversation]:
    rng = random.Random(seed)
    return [planted(rng, row, row % 2 == 0) for row in range(2 * each)]


def planted(rng: random.Random, row: int, up: bool) -> Conversation:
    thing = rng.choice(DINGE)
    hour = rng.randint(1, 11)
    said = [
        f"Guten Tag, ich möchte {thing} für {hour} Uhr mieten, Nummer {row}.",
        "Für wie lange brauchen Sie es denn?",
    ]
    said += [f"Das wären dann {rng.randint(2, 9)} Stunden bei mir."]
    if up or rng.random() < 0.1:
        said += [
            f"Alles klar, das ist für {hour} Uhr reserviert und ist gebucht.",
            "Vielen Dank, auf Wiedersehen.",
        ]
    else:
        said += [
            "Ich kann das für diese Zeit leider nicht buchen. Kann ich sonst noch etwas für Sie tun?"
        ]
        said += ["Dann eben nicht, ich rufe woanders an."]
    turns = tuple(
        Turn(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(said)
    )
    return Conversation(
        id=f"g{row:03}", turns=turns, label=Label.POSITIVE if up else Label.NEGATIVE
    )
