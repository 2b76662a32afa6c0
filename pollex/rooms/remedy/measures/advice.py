"""What to do with a change of a prompt, by what its proof found."""

from pollex.text import JsonObject

LEAST_GAIN_WORTH_RELEASING = 0.08
"""Of the scale: a gain whose interval ends below this is none that is worth a release."""
SIZE_NAMES = ("length", "cost")
"""Guardrails that are sizes of replies: their effect is −ln(new / old), and growth is a price, no harm."""
VERDICT_WITH_CAVEAT = "judged better, with a caveat"
"""A gain that nothing else speaks against than its length, which can't be told from it, or its price."""
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


REASONS_BY_VERDICT = {
    "better, people agree": "people who compared blind prefer the new replies, and nothing fell",
    "judged better": "the judge finds the new replies better, and nothing fell",
    "judged better, by its own family": "the judge finds the new replies better, and it is of the "
    "assistant's own model family",
    "judged better, with a caveat": "the judge finds the new replies better, but {objection}",
    VERDICT_PEOPLE_CAN_TELL: "the judge finds the new replies better, but {objection}",
    "not cleared": "the new replies look better, but {objection}",
    "no difference found": "no gain was seen, and none is ruled out",
    "not proven": "too many replies are missing",
    "people prefer the old one": "people who compared blind prefer the old replies",
    "no gain, likely harm": "no gain was seen, and harm is likely",
    "worse": "something got worse",
}
"""Why a verdict leads to what is advised; `{objection}` is the gravest one."""
VERDICTS_TOLD_WITH_OBJECTION = (
    "no difference found",
    "not proven",
    "no gain, likely harm",
    "worse",
)
"""Verdicts whose reason is followed by the gravest objection."""
OBJECTIONS_IN_WORDS = {
    "worse: ": "this fell: ",
    "may be worse: ": "this may have got worse: ",
    "unknown: ": "of this nothing is known: ",
}
"""How objections begin, and what is said instead."""


def advise_on_change(edit: JsonObject) -> tuple[str, str]:
    """Return what to do with a change, and why, by the rules of `ADVICE_RULES`."""
    verdict = edit["verdict"]
    effect = edit["primary"]["effect"]
    why = explain_verdict(edit)
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
        least = f"{100 * LEAST_GAIN_WORTH_RELEASING:.0f} points of 100"
        return "Don't", f"a gain of {least} or more is ruled out"
    return "Not enough seen", why


def explain_verdict(edit: JsonObject) -> str:
    """Say in plain words why a verdict is what it is, with the gravest objection where there is one."""
    verdict: str = edit["verdict"]
    # the first objection is the gravest, and the only one that is told here
    objection: str = edit["against"][0] if edit["against"] else ""
    for beginning, words in OBJECTIONS_IN_WORDS.items():
        if objection.startswith(beginning):
            objection = words + objection.removeprefix(beginning)

    reason = REASONS_BY_VERDICT.get(verdict, verdict)
    if "{objection}" in reason:
        return reason.format(objection=objection or "that isn't certain")
    if objection and verdict in VERDICTS_TOLD_WITH_OBJECTION:
        return f"{reason}; {objection}"
    return reason


def advise_on_record(record: JsonObject) -> tuple[str, str]:
    """Return what to do with the best change, or with none that came to a proof."""
    if record["edits"]:
        return advise_on_change(record["edits"][0])

    has_headroom = record.get("headroom") is not None
    return ("Don't" if has_headroom else "Not enough seen"), str(
        record["ended"] or record["verdict"]
    )
