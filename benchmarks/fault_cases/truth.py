"""Data that vanishes, and sentences that aren't so."""

import asyncio
import json
import re
from collections.abc import Iterable
from html import unescape
from itertools import cycle
from pathlib import Path
from typing import Any

from judged_run import judged_run
from protocol_server import ProtocolServer, replies
from protocol_server.answers import Answer
from web_site import client_of, made_app

from fault_cases import ROOT, case
from fault_cases.commands import Rows, bikes, learned, run, written
from pollex.agents.embedded.events.reading import read_moves_with_acts
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.conversations.conversation import Conversation, Turn
from pollex.store.store import Store

UP = ["up", "👍", 1, "1", True, "thumbs_up"]
DOWN = ["down", "👎", -1, "no", False]  # beside 1 and -1 a 0 takes no side, and is told


def pollex(folder: Path, *words: object, code: int = 0) -> tuple[dict[str, Any], str]:
    """Run a command; return its JSON (where it prints some) and all that it says."""
    ended = run(folder, *words, code=code)
    last = ended.out.strip().splitlines()[-1:]
    return json.loads(last[0]) if last and last[0].startswith("{") else {}, " ".join(
        ended.err.split()
    )


def rated(rows: Rows, up: Iterable[Any], down: Iterable[Any]) -> Rows:
    """Return the rows with thumbs spelled anew, in the field `rating`."""
    ways = {"up": cycle(up), "down": cycle(down)}
    return [
        {**row, "thumbs": None, "rating": next(ways[row["thumbs"]]) if row["thumbs"] else None}
        for row in rows
    ]


@case(
    "1.1",
    "every spelling of a thumb is taken, and every value that isn't is told with the options that take it",
)
def labels_are_not_lost(folder: Path) -> str:
    """Spell the thumbs of a log in eleven ways; then put stars among them."""
    rows = bikes()
    plain, _ = pollex(folder, "inspect", written(folder / "a.jsonl", rows), "--json")
    mixed, _ = pollex(
        folder, "inspect", written(folder / "b.jsonl", rated(rows, UP, DOWN)), "--json"
    )
    assert mixed["labels"] == plain["labels"], f"{mixed['labels']} of {plain['labels']}"
    stars = written(folder / "c.jsonl", rated(rows, ["up", 5], ["down", 1]))
    lost, said = pollex(folder, "inspect", stars, "--json")
    advice = "1 (88) are neither up nor down, and 200 rows count as not rated; to take them: --positive up,5"
    assert advice in said, said
    taken, _ = pollex(
        folder, "inspect", stars, "--json", "--positive", "up,5", "--negative", "down,1"
    )
    assert taken["labels"] == plain["labels"]
    assert lost["spellings"]["neither"] == {"5": 112, "1": 88}
    found = mixed["labels"]["positive"] + mixed["labels"]["negative"]
    return f"{found} of 400 labels in 11 spellings; 200 stars are told"


class Inventing(Answer):
    """A model whose quotes stand nowhere."""

    def _quote(self, path: str) -> str:  # noqa: ARG002 - as the server calls it
        return "nothing of this was ever said"


@case(
    "1.3",
    "a model whose reasons are all left out is named, with how many and why, in terminal, report and --json",
)
def a_model_that_yields_nothing_is_named(folder: Path) -> str:
    """Learn with a model that invents its quotes."""
    lines = (
        (ROOT / "examples" / "debugging.jsonl")
        .read_text(encoding="utf-8")
        .splitlines(keepends=True)[:50]
    )
    (folder / "log.jsonl").write_text("".join(lines), encoding="utf-8")
    honest = replies.Answer
    replies.Answer = Inventing
    try:
        with ProtocolServer() as server:
            asking = ("--model", "m", "--base-url", server.url, "--out", "rubrics.json")
            told, said = pollex(folder, "learn", "log.jsonl", *asking, "--json")
    finally:
        replies.Answer = honest
    note = next(note for note in told["notes"] if "rubrics are the model's" in note)
    assert note.startswith("0 of "), note
    assert note.endswith("left out, because their quotes don't stand in the conversation."), note
    page = " ".join(unescape((folder / "report.html").read_text(encoding="utf-8")).split())
    assert note in said, said
    assert note in page, page[page.find("the model") - 300 :][:600]
    return note


@case(
    "1.4",
    "`score` needs no label that it can't read, every verb that reads logs has the same options for it",
)
def scoring_needs_no_labels(folder: Path) -> str:
    """Score a log whose feedback is an object; then ask for that label."""
    learned(folder)
    rows = [{**row, "thumbs": None, "feedback": {"score": 4, "by": "a"}} for row in bikes(30)]
    given = (
        "score",
        written(folder / "a.jsonl", rows),
        "--rubrics",
        "r.json",
        "--out",
        "s.jsonl",
        "--json",
    )
    told, said = pollex(folder, *given)
    assert told["n"] == 30, told
    assert "30 labels can't be read, and are not needed here" in said, said
    _, said = pollex(folder, *given, "--label-field", "feedback", code=1)
    assert "--label-field feedback.score" in said, said
    assert "--max-bad" not in said, said
    named = (
        "--label-field",
        "feedback.score",
        "--id-field",
        "id",
        "--messages-field",
        "messages",
    )
    # a field that is named is wanted: what its values mean is asked, once
    _, said = pollex(folder, *given, *named, code=1)
    assert "--positive '>=4' --negative '<=2'" in said, said
    pollex(folder, *given, *named, "--positive", ">=4", "--negative", "<=2")
    return "30 of 30 scored, and where the label is asked for, the field inside it is named"


@case(
    "3.8",
    "a conversation that stands a thousand times under other ids counts once in learning, and this is said",
)
def repeated_texts_count_once(folder: Path) -> str:
    """Plan learning from a log, and from the same with its first conversation a thousand times."""
    rows = [row for row in bikes(200) if row["thumbs"]]
    once, _ = pollex(
        folder, "learn", written(folder / "a.jsonl", rows), "--dry-run", "--json", "--model", "m"
    )
    many = rows + [{**rows[0], "id": f"again {number}"} for number in range(999)]
    more, said = pollex(
        folder, "learn", written(folder / "b.jsonl", many), "--dry-run", "--json", "--model", "m"
    )
    assert "999 labeled conversations are left out, having the text of another one" in said, said
    calls = [
        {stage: plan["calls"] for stage, plan in found["plan"].items()} for found in (once, more)
    ]
    assert calls[0] == calls[1], str(calls)
    return f"999 are said to count once, and {calls[1]['all']:,} calls are planned with and without them"


@case(
    "1.8",
    "a log in another language gets events where there is a table of it, else no bare word and the reason why",
)
def other_languages_are_told(folder: Path) -> str:
    """Learn from a log in no known language, whose thumbs down hang on a word; and from one in German, on a deed."""
    fill = ["wasa", "toru", "melin", "osta", "kir", "bendo", "ulmi", "saru", "teppo", "vanka"]
    words = [" ".join(fill[n % 10 :] + fill[: n % 10]) for n in range(160)]
    said = [
        (f"{text} {n}?", f"{text} {'' if n % 3 else 'grumio '}{n * 7}.")
        for n, text in enumerate(words)
    ]
    rubrics, note, page = learned_from(folder, said)
    assert "in none of English, Dutch" in note, note
    assert note in page
    assert "signals of wording read English only" in page
    assert not [one for one in rubrics if one["source"].startswith("phrase:")], page
    assert "grumio" not in "".join(one["text"] for one in rubrics), page
    failed = "Das kann ich leider nicht buchen, Nummer"
    done = "Der Tisch ist gebucht, Nummer"
    asked = "Ich möchte bitte einen Tisch für heute Abend buchen, geht das noch? Es ist Wunsch"
    planted = [(f"{asked} {n}.", f"{failed if n % 3 == 0 else done} {n * 7}.") for n in range(160)]
    rubrics, note, page = learned_from(folder, planted)
    assert "The log is in German" in note, note
    assert note in page
    first = next(one for one in rubrics if one["polarity"] == "dsat")
    assert first["source"].startswith("event:fail"), first
    assert first["standing"]["p"] <= 0.05, first
    return f"no bare word and the reason on the first screen; in German the planted deed is proven: “{first['text']}”"


def learned_from(
    folder: Path, said: list[tuple[str, str]]
) -> tuple[list[dict[str, Any]], str, str]:
    """Learn from requests and answers, every third with a thumb down; return rubrics, note on language and report."""
    rows = [
        {
            "id": str(number),
            "thumbs": "up" if number % 3 else "down",
            "messages": [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": answered},
            ],
        }
        for number, (asked, answered) in enumerate(said)
    ]
    told, _ = pollex(
        folder, "learn", written(folder / "log.jsonl", rows), "--out", "rubrics.json", "--json"
    )
    note = next(note for note in told["notes"] if "the log is in" in note.lower())
    page = " ".join(unescape((folder / "report.html").read_text(encoding="utf-8")).split())
    return json.loads((folder / "rubrics.json").read_text(encoding="utf-8"))["rubrics"], note, page


@case("1.9", "an answer with a reason is a person's; only what somebody decided is adjudicated")
def answers_are_not_decisions(folder: Path) -> str:
    """Answer a case that waits, twice with a reason, and count whose labels are kept."""
    given = (
        {"who": "ann", "option": "yes"},
        {"who": "bob", "option": "no"},
        {"who": "cat", "option": "no"},
    )
    more = (
        {"reason": "I looked twice"},
        {"reason": "so did I"},
        {"reason": "it was not", "decides": True},
    )

    async def answered(store: Store, run: str) -> None:
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/waiting/{run}", params={"who": "ann"})).text
            of = page.partition('name="conversation" value="')[2].partition('"')[0]
            for one, reasoned in zip(given, more, strict=True):
                kept = await client.post(
                    "/api/given", json=one | reasoned | {"run": run, "conversation": of}
                )
                assert kept.status_code == 200, kept.text

    with Store.open(folder) as store:
        asyncio.run(answered(store, judged_run(store)))
        sources = [row["source"] for row in store.rows("SELECT source FROM labels ORDER BY rowid")]
    assert sources == ["person", "person", "adjudicated"], sources
    return "2 answers with a reason, 1 decision"


@case(
    "1.7",
    "a rubric names nouns alone, a closing thanks confirms nothing, and what fails is no refusal to help",
)
def sentences_are_so(folder: Path) -> str:
    """Read what was said falsely of a log: objects of a learned set, a closing and an inability."""
    texts = [one.text for one in learned(folder).rubrics]
    assert not [
        text for text in texts if re.search(r"\ban? (?:correct|still|late|instead)\b", text)
    ], texts
    success = SIGNALS_BY_NAME["success"].pattern
    assert success
    assert not re.search(success, "that's it, thank you")
    turns = (
        Turn(role="user", content="Send it."),
        Turn(role="assistant", content="Sorry, I am not able to send files."),
    )
    acts = read_moves_with_acts(Conversation(id="1", turns=turns))[-1].acts
    assert ("fails" in acts, "refuses" in acts) == (True, False), list(acts)
    return f"{len(texts)} rubrics, 2 sentences"
