"""What to do next with a change of the prompt, as one link on its page and in the list of changes."""

from __future__ import annotations

from dataclasses import dataclass

from pollex.rooms.remedy.measures.advice import VERDICT_PEOPLE_CAN_TELL, advise_on_record
from pollex.store.runs import Run
from pollex.text import JsonObject
from pollex.web import links

PROOF_FORM = "remedy-run"
USUAL_PAIRS_FOR_PEOPLE = 60
"""Pairs that the form of a proof with people is filled in with."""


@dataclass(frozen=True)
class NextStep:
    """What to do next.

    Attributes:
        words: Of the button.
        why: What comes of it, in a sentence.
    """

    words: str
    address: str
    why: str


def suggest_next_step(run: Run, record: JsonObject) -> NextStep:
    """Return what to do next, given the record of a proof."""
    advice = advise_on_record(record)[0]
    again = links.link_to_form(PROOF_FORM, like=run.id)
    edit = record["edits"][0] if record["edits"] else None
    were_people_asked = bool(edit and edit["people"])
    if advice == "Release":
        return NextStep(
            "Bring the log of what comes of it",
            links.LOGS_PATH,
            "Put the new prompt live, then compare the days before with the days after.",
        )
    # nobody compared: what people say decides
    is_judged_better = advice.startswith("Try") or record["verdict"] == VERDICT_PEOPLE_CAN_TELL
    if is_judged_better and not were_people_asked:
        return NextStep(
            "Have people compare",
            links.link_to_form(PROOF_FORM, like=run.id, pairs=USUAL_PAIRS_FOR_PEOPLE),
            f"Somebody reads {USUAL_PAIRS_FOR_PEOPLE} pairs of replies here, blind. "
            "If they prefer the new ones, it can be released.",
        )
    if advice.startswith("Try"):
        return NextStep(
            "Bring the log of what comes of it",
            links.LOGS_PATH,
            "Give some of your users the new prompt, then compare their log with that of the others.",
        )
    if advice == "Don't" or edit is None:
        return NextStep(
            "Write another change",
            again,
            "The form opens as it was filled in for this one.",
        )
    return NextStep(
        "Prove it with more conversations",
        again,
        "The form opens as it was filled in for this one: add a log, or ask more people.",
    )
