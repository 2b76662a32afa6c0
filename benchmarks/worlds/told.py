"""What is plainly there is told: failed calls, words and languages, code, in logs of few thumbs, too."""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from choosing import chosen_on
from small_form import ROOT
from tool_failures import FRENCH, GERMAN, ITALIAN, PORTUGUESE, SPANISH, Talk, World, write_log
from tool_failures import WORLDS as TOOL_LOGS

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.there import write_rubrics_of_frequent_deeds
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import flag_positive_labels
from pollex.formats.read_logs import read_logs
from pollex.rubrics.records import LIKELY_LEVEL
from worlds import Outcome, world

TOOLS_NAMED, BOTH_NAMED = 11, 10
"""Of the twelve logs of tools: those in which the hidden failure is named, and both plants."""


def told_by(conversations: Sequence[Conversation]) -> list[str]:
    """Return what leads or is told as words against a log's conversations: sources, proven or likely."""
    study = StudiedLog(sorted(conversations, key=lambda c: c.id), Embedder())
    up = flag_positive_labels(study.conversations)
    chosen = chosen_on(study, up, np.ones(len(up), dtype=bool), 0)
    pool = chosen.weighed.pool.rubrics
    borne_out = [
        one
        for one in chosen.order.tolist()
        if chosen.p[one] <= LIKELY_LEVEL and not chosen.weighed.sat[one]
    ]
    told = [
        pool[one].source
        for one in borne_out
        if chosen.leads[one] or pool[one].source.startswith("phrase:")
    ]
    return [source.partition(" {")[0] for source in told]


REFUSED = ("event:refused", "signal:refusal")


def names_refusal(source: str, log: World) -> bool:
    """Tell whether a source names the planted refusals: as such, or by words that only they have."""
    if source.startswith(REFUSED):
        return True
    kind, _, words = source.partition("phrase:assistant:")
    if kind or not words:
        return False
    others = " ".join(text for what in ("good", "hidden", "told") for text in log.talk[what])
    planted = " ".join(log.talk["refused"])
    return words.lower() in planted.lower() and words.lower() not in others.lower()


@world("failed calls")
def failed_calls(quick: bool) -> Outcome:
    """Look for hidden failures, and refusals, in twelve logs of tools."""
    rows = list[tuple[str, str]]()
    failures = 0
    both = 0
    logs = TOOL_LOGS[:1] if quick else TOOL_LOGS
    with tempfile.TemporaryDirectory() as folder:
        for log in logs:
            told = told_by(read_logs(str(write_log(log, Path(folder)))).learnable)
            hidden = any(source.startswith("event:tool_fails") for source in told)
            refused = any(names_refusal(source, log) for source in told)
            failures = failures + hidden
            both = both + (hidden and refused)
            rows.append(
                (
                    f"{log.name}: 45 of 300 calls fail unsaid, 33 refusals",
                    ", ".join(told) or "nothing",
                )
            )
    share = len(logs) / len(TOOL_LOGS)
    figures = {"logs": len(logs), "hidden failures named": failures, "both named": both}
    bars = {
        "hidden failures are named in 11 of 12 logs": failures >= TOOLS_NAMED * share,
        "both plants are named in 10 of 12 logs": both >= BOTH_NAMED * share,
    }
    return Outcome(rows, figures, bars)


POLISH: Talk = {
    "ask": (
        "Dzień dobry, proszę załatwić {thing} dla mnie.",
        "Potrzebuję {thing}, mój numer to {n}.",
    ),
    "good": ("Gotowe: {thing}, numer {code}.", "Już załatwione, numer to {code}."),
    "chat": ("Dobrze.", "Dziękuję.", "W porządku."),
    "names": ("Anna", "Piotr", "Ewa"),
    "days": ("poniedziałek", "wtorek", "piątek"),
}
SENT_ON = {
    "German": (GERMAN, "einen Tarif", "Bitte rufen Sie dazu unsere Hotline an."),
    "French": (FRENCH, "un contrat", "Veuillez appeler notre standard pour cela."),
    "Spanish": (SPANISH, "un contrato", "Llame por favor a nuestra centralita para eso."),
    "Italian": (ITALIAN, "un contratto", "Chiami per favore il nostro centralino per questo."),
    "Portuguese": (PORTUGUESE, "um contrato", "Ligue por favor para a nossa central sobre isso."),
    "Polish": (POLISH, "umowę", "Proszę w tej sprawie zadzwonić na naszą infolinię."),
}
"""By language: how people talk, the thing, and the sentence that was planted."""
IN_ENGLISH = (
    "Of course, I will gladly take care of that for you today.",
    "Please tell me the number of your contract.",
)


def log_in(language: str, count: int = 240) -> list[Conversation]:
    """Make a log: 25 % are sent to a number (90 % down), 20 % answered in English (85 % down), the others 24 % down."""
    talk, thing, planted = SENT_ON[language]
    rng = random.Random(language)
    out = []
    for number in range(count):
        kind = rng.choices(("sent", "english", "fine"), (0.25, 0.2, 0.55))[0]
        words = {
            "thing": thing,
            "n": rng.randint(1000, 9999),
            "code": f"K{rng.randint(10_000, 99_999)}",
            "verb": "",
        }
        words |= {"name": rng.choice(talk["names"]), "day": rng.choice(talk["days"])}
        ask, good, chat = (
            rng.choice(talk[part]).format(**words) for part in ("ask", "good", "chat")
        )
        reply = {
            "sent": f"{planted} ({words['n']})",
            "english": rng.choice(IN_ENGLISH),
            "fine": good,
        }[kind]
        down = rng.random() < {"sent": 0.9, "english": 0.85, "fine": 0.24}[kind]
        said = (("user", ask), ("assistant", reply), ("user", f"{chat} {number}"))
        turns = tuple(Turn(role=role, content=text) for role, text in said)  # type: ignore[arg-type]
        out.append(
            Conversation(
                id=f"{number:03}", turns=turns, label=Label.NEGATIVE if down else Label.POSITIVE
            )
        )
    return out


@world("languages")
def languages(quick: bool) -> Outcome:
    """Look for planted words, and for replies in English, in logs of six languages."""
    rows = list[tuple[str, str]]()
    words = 0
    replies = 0
    names = list(SENT_ON)[:1] if quick else list(SENT_ON)
    for name in names:
        told = told_by(log_in(name))
        said = (
            source.removeprefix("phrase:assistant:")
            for source in told
            if source.startswith("phrase:assistant:")
        )
        words += any(phrase in SENT_ON[name][2].lower() for phrase in said)
        replies += "signal:other_language" in told
        rows.append(
            (f"{name}: sent to a number, answered in English", ", ".join(told) or "nothing")
        )
    figures = {"logs": len(names), "words named": words, "replies in English named": replies}
    bars = {
        "planted words are named in all six languages": words == len(names),
        "replies in another language are named in five of six": 6 * replies >= 5 * len(names),
    }
    return Outcome(rows, figures, bars)


ELIDED = (
    "# ... rest of the code stays the same",
    "// ... existing code ...",
    "# other lines unchanged",
)
ASKS = (
    "Please fix the {} parser.",
    "The {} page is slow, can you change it?",
    "Add a check to the {} form.",
)
AREAS = ("invoice", "login", "report", "search", "basket", "profile")


def coding_log(count: int = 250) -> list[Conversation]:
    """Make a log: in 26 % code is left out (76 % down), in 21 % the cause is explained (10 % down), else 33 % down."""
    rng = random.Random(5)
    out = []
    for number in range(count):
        kind = rng.choices(("elided", "cause", "plain"), (0.26, 0.21, 0.53))[0]
        code = [f"x{number} = load({number})", f"y = x{number}.clean()", "save(y)"]
        if kind == "elided":
            code[rng.randint(1, 2)] = rng.choice(ELIDED)
        cause = "It fails because the list is empty at first. " if kind == "cause" else ""
        reply = f"{cause}Change it to this:\n```\n" + "\n".join(code) + "\n```"
        said = (
            ("user", f"{rng.choice(ASKS).format(rng.choice(AREAS))} It is number {number}."),
            ("assistant", reply),
            ("user", rng.choice(("Okay.", "I see.", "Let me look.", "Right."))),
        )
        down = rng.random() < {"elided": 0.76, "cause": 0.1, "plain": 0.33}[kind]
        turns = tuple(Turn(role=role, content=text) for role, text in said)  # type: ignore[arg-type]
        out.append(
            Conversation(
                id=f"{number:03}", turns=turns, label=Label.NEGATIVE if down else Label.POSITIVE
            )
        )
    return out


@world("code that is left out")
def code_left_out(_quick: bool) -> Outcome:
    """Look for code that is left out, in a coding log."""
    told = told_by(coding_log())
    row = ("code is left out in 26 % of 250", ", ".join(told) or "nothing")
    return Outcome(
        [row], {"told": told}, {"code that is left out is named": "event:code_elided" in told}
    )


@world("few thumbs")
def few_thumbs(_quick: bool) -> Outcome:
    """Look for hints of what is there in small logs, whatever their thumbs."""
    counts = {}
    for name in ("bikes", "debugging"):
        some = list(read_logs(str(ROOT / "examples" / f"{name}.jsonl")).conversations)[:40]
        counts[name] = len(write_rubrics_of_frequent_deeds(some))
    rows = [(f"40 conversations of {name}", f"{number} hints") for name, number in counts.items()]
    return Outcome(rows, counts, {"small logs have hints of both kinds": min(counts.values()) >= 3})
