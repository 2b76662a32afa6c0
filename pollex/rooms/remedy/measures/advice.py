"""What to do with a change of a prompt, by what its proof found."""

from pollex.text import JsonObject

LEAST_GAIN_WORTH_RELEASING = 0.08
"""Of the scale: a gain whose interval ends below this is none that is worth a release."""
SIZE_NAMES = ("length", "cost")
"""Guardrails that are sizes of replies: their effect is −ln(new / old), and growth is a price, no harm."""
VERDICT_PEOPLE_CAN_TELL = "only people can tell"
"""A gain that nothing else speaks against than doubts about who judged it, which people don't share."""
ADVICE_RULES = {
    "Release": "people who compared blind prefer the new replies, and nothing fell",
    "Try on part of the traffic": "a judge finds the new replies better, and nothing fell; that they are longer, or "
    "cost more, is said beside it",
    "Don't": "something fell, harm is likely, people prefer the old replies, what speaks against the gain isn't "
    f"cleared, or the gain is under {LEAST_GAIN_WORTH_RELEASING} at most",
    "Not enough seen": "all else: replies are missing, or the judge may see a gain that people don't see, and nobody "
    "compared",
}
"""What to do, and when."""
VERDICTS_AGAINST_RELEASE = (
    "worse",
    "no gain, likely harm",
    "not cleared",
    "people prefer the old one",
)


def advise_on_change(edit: JsonObject) -> tuple[str, str]:
    """Return what to do with a change, and why, by the rules of `ADVICE_RULES`."""
    # the first objection is the gravest, and the only one that is told here
    verdict = edit["verdict"]
    effect = edit["primary"]["effect"]
    if edit["against"]:
        why = f"{verdict}; {edit['against'][0]}"
    else:
        why = verdict

    if verdict in VERDICTS_AGAINST_RELEASE:
        return "Don't", why
    if verdict == "better, people agree":
        return "Release", why
    if verdict.startswith("judged better"):
        return "Try on part of the traffic", why
    # a gain that would be worth it is ruled out by the interval's upper end
    if (
        verdict == "no difference found"
        and effect["n"]
        and effect["high"] < LEAST_GAIN_WORTH_RELEASING
    ):
        return "Don't", f"{verdict}; a gain of {LEAST_GAIN_WORTH_RELEASING} or more is ruled out"
    return "Not enough seen", why


def advise_on_record(record: JsonObject) -> tuple[str, str]:
    """Return what to do with the best change, or with none that came to a proof."""
    if record["edits"]:
        return advise_on_change(record["edits"][0])

    has_headroom = record.get("headroom") is not None
    return ("Don't" if has_headroom else "Not enough seen"), str(
        record["ended"] or record["verdict"]
    )
