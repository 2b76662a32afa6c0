"""Proposals of a model as changes of a prompt, vetted by code before anybody tries them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import Conversation
from pollex.conversations.redaction import find_identifiers
from pollex.rooms.remedy.agents.assistant import AssistantReply
from pollex.rooms.remedy.agents.llm.proposer import PromptHunk, propose_hunks
from pollex.rooms.remedy.agents.llm.second_reader import SecondReader
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.graphs.trial import Trial
from pollex.rooms.remedy.measures.proofs import FAILING_STRATUM, OLD_ARM
from pollex.rooms.remedy.services.advice import NEVER_PLAIN_EVENTS, find_advice
from pollex.rooms.remedy.services.prompt_text import (
    PromptEdit,
    PromptText,
    append_line,
    write_naive_sentence,
)
from pollex.rooms.remedy.services.trials import GatheredContexts
from pollex.services.inspect import make_language_detector
from pollex.text import escape_controls

(
    MAX_SHOWN_EXCHANGES,
    MAX_COPIED_WORDS_IN_A_ROW,
    MAX_ADDED_WORDS,
    MAX_PROMPT_GROWTH,
    TWIN_WORD_SHARE,
) = 12, 6, 80, 0.15, 0.9
"""Exchanges a proposer sees, words in a row that are copied, words added, growth, and likeness of near twins."""
SPEAKS_OF_JUDGING_PATTERN = re.compile(
    r"\b(judg\w*|rubric\w*|scor\w*|thumbs?|rating\w*|rated|evaluat\w*|graded?|grader\w*)\b",
    re.IGNORECASE,
)
"""A prompt that speaks of how it is measured aims at the measure."""
TOOL_NAME_PATTERN = re.compile(r"`([^`]+)`|\b(\w+_\w+)\b|\b(\w+)\(\)")
_WORD_PATTERN = re.compile(r"\w+")


@dataclass(frozen=True)
class ProposalVetting:
    """What refuses a proposal.

    Attributes:
        said: All conversations' words, for copies.
        tools: Names of tools that the log has.
    """

    said: Sequence[str]
    tools: frozenset[str]

    @classmethod
    def of(cls, conversations: Sequence[Conversation]) -> "ProposalVetting":
        """Return what refuses copies of some conversations."""
        # words of all turns but the prompt itself
        texts = []
        for conversation in conversations:
            for turn in conversation.turns:
                if turn.role != "system":
                    texts.append(normalize_words(turn.content))

        # tools that the log has calls of may be named
        names = set()
        for conversation in conversations:
            for turn in conversation.turns:
                for call in turn.calls:
                    names.add(call.name)

        return cls(texts, frozenset(names))

    def refusal(self, edit: PromptEdit, earlier: Sequence[PromptEdit]) -> str:
        """Return why a proposal isn't tried; empty if it is."""
        added = edit.added
        old = edit.old.text
        grown = len(edit.new.text.split()) - len(old.split())
        called = set()
        for names in TOOL_NAME_PATTERN.findall(added):
            for name in names:
                if name:
                    called.add(name)

        language = make_language_detector()
        # each reason is a function, called only until one holds
        reasons: dict[str, Callable[[], Any]] = {
            "it holds invisible characters": lambda: (
                escape_controls(added, keep_lines=True) != added
            ),
            "it takes text away": lambda: grown < 0 or not added.strip(),
            f"it adds more than {MAX_ADDED_WORDS} words": lambda: (
                len(added.split()) > MAX_ADDED_WORDS
            ),
            f"the prompt grows by over {MAX_PROMPT_GROWTH:.0%}": lambda: (
                grown > max(MAX_PROMPT_GROWTH * len(old.split()), MAX_ADDED_WORDS / 2)
            ),
            "it copies words of a conversation": lambda: self.copied(added, old),
            "it holds a name, number, address, link or key": lambda: find_identifiers(added),
            "it speaks of how replies are judged": lambda: SPEAKS_OF_JUDGING_PATTERN.search(added),
            "it names a tool that isn't there": lambda: [
                x for x in called if x not in old and x not in self.tools
            ],
            "it is in another language than the prompt": lambda: (
                len({language(old), language(added)} - {"unsure"}) > 1
            ),
            "it is nearly an earlier one": lambda: any(
                compute_word_overlap(added, proposal.added) >= TWIN_WORD_SHARE
                for proposal in earlier
            ),
        }

        # a fault of the change itself comes first
        return edit.fault or next((why for why, reason in reasons.items() if reason()), "")

    def copied(self, added: str, old: str) -> bool:
        """Tell whether six words in a row stand in any conversation, and not in the prompt."""
        words = normalize_words(added).split()
        prompt_words = normalize_words(old)
        rows = set()
        for n in range(len(words) - MAX_COPIED_WORDS_IN_A_ROW + 1):
            rows.add(f" {' '.join(words[n : n + MAX_COPIED_WORDS_IN_A_ROW])} ")

        return any(row in text for row in rows if row not in prompt_words for text in self.said)


def normalize_words(text: str) -> str:
    """Return the words of a text in one form, each between spaces."""
    return f" {' '.join(_WORD_PATTERN.findall(text.casefold()))} "


def compute_word_overlap(text: str, other: str) -> float:
    """Return the share of words that two texts have in common."""
    a = set(normalize_words(text).split())
    b = set(normalize_words(other).split())
    return len(a & b) / max(len(a | b), 1)


async def propose_and_vet(
    gathered: GatheredContexts,
    trial: Trial,
    asker: PromptAsker,
    second: SecondReader | None,
    embedder: Embedder,
) -> list[PromptEdit]:
    """Ask the proposer, who sees the part that proposes; return what came, the naive one first, with why it's refused.

    Args:
        trial: What the old prompt said now, and whether it failed.
        second: Looks for facts that stand nowhere; None: nobody does.
    """
    prompt = gathered.prompt
    most = gathered.most
    hunks = list[list[PromptHunk]]()
    # the plain sentence is a proposal, too, unless its kind needs more than words
    plain = append_line(prompt, write_naive_sentence(gathered.target))
    safe = find_advice(gathered.target).kind not in NEVER_PLAIN_EVENTS
    if most > 1 and safe:
        edits = [PromptEdit("naive", prompt, plain, "the plain opposite")]
    else:
        edits = []

    # one proposal for each topic of what fails
    for number, contexts in enumerate(
        cluster_failures(gathered, count_proposals_to_ask(most), embedder)
    ):
        proposal = await propose_hunks(
            asker,
            build_proposer_items(gathered, contexts, trial),
            number,
        )
        # proposals that failed keep their place, with the reason
        name = f"proposal {number + 1}"
        if isinstance(proposal, str):
            edits.append(PromptEdit(name, prompt, prompt, refused=proposal))
        else:
            hunks.append(proposal)
            edits.append(make_edit_of_hunks(name, prompt, proposal))

    # the first hunks of two proposals together, where there are enough
    if most > 3 and len(hunks) > 1:
        edits.append(make_edit_of_hunks("merged", prompt, [hunk[0] for hunk in hunks[:2]]))

    # vetted in order: each against those before it that passed
    vetting = ProposalVetting.of(gathered.logs.conversations)
    prompt_facts = f"{prompt.text}\n{gathered.rubric_set.domain.model_dump_json()}"
    done = list[PromptEdit]()
    for edit in edits:
        why = edit.refused or vetting.refusal(
            edit, [vetted for vetted in done if not vetted.refused]
        )
        # facts that stand nowhere would be false in other conversations
        if not why and second is not None and edit.name != "naive":
            facts = await second.new_facts(prompt_facts, edit.added)
            why = ""
            if facts:
                why = f"it states what nobody said: {facts[0][:120]}"

        done.append(replace(edit, refused=why))

    return done


def make_edit_of_hunks(name: str, prompt: PromptText, hunks: Sequence[PromptHunk]) -> PromptEdit:
    """Return hunks as a change."""
    purpose = escape_controls(" · ".join(hunk.purpose for hunk in hunks), 300)
    lines = list(prompt.lines)
    # from the last line on, so that earlier numbers stay right
    for hunk in sorted(hunks, key=lambda proposed: -proposed.line):
        insert = hunk.kind == "insert"
        if not (0 if insert else 1) <= hunk.line <= len(lines):
            return PromptEdit(
                name,
                prompt,
                prompt,
                purpose,
                "a line isn't there",
            )

        lines[hunk.line if insert else hunk.line - 1 : hunk.line] = [hunk.text]

    return PromptEdit(
        name,
        prompt,
        replace(prompt, text="\n".join([*lines, ""])),
        purpose,
    )


def cluster_failures(
    gathered: GatheredContexts, number: int, embedder: Embedder
) -> list[list[ReplyContext]]:
    """Part the failing contexts that propose by what they are about."""
    contexts = [context for context, _ in gathered.taken(("propose",), 200)]
    # no more parts than half of the contexts
    number = max(1, min(number, len(contexts) // 2))
    if number == 1:
        return [contexts]

    from sklearn.cluster import KMeans  # it takes a second to import

    # what the user said last tells what a reply is about
    vectors = embedder.embed([context.before[-1].content for context in contexts])
    labels = KMeans(number, random_state=0, n_init=3).fit_predict(vectors)

    return [
        [context for context, label in zip(contexts, labels, strict=True) if label == n]
        for n in range(number)
    ]


def build_proposer_items(
    gathered: GatheredContexts,
    contexts: Sequence[ReplyContext],
    trial: Trial,
) -> list[dict[str, object]]:
    """Return what the proposer sees: nothing of judges, scales, scores, other parts or sealed rubrics."""
    target = gathered.target
    conversation_ids = {context.conversation.id for context in contexts}
    # the prompt by lines, with what may not be touched
    protected = set(gathered.prompt.protected)
    items: list[dict[str, object]] = []
    for n, line in enumerate(gathered.prompt.lines, 1):
        items.append(
            {
                "line": n,
                "text": line,
                "protected": line in protected,
            }
        )

    items.append(
        {"goes_wrong": target.text} if target.polarity == "dsat" else {"is_missing": target.text}
    )
    # why thumbs were given in these conversations
    reasons = set()
    for reason in gathered.rubric_set.reasons:
        if reason.conversation_id in conversation_ids:
            reasons.add(reason.text)

    items += [{"why": text} for text in sorted(reasons)[:MAX_SHOWN_EXCHANGES]]
    # the trial's own contexts: there the old prompt was asked again
    failing = {}
    for n, context in enumerate(trial.contexts):
        if trial.arrays.stratum[n] == FAILING_STRATUM:
            failing[context.id] = n

    # an exchange: the last turns, the reply, and what the prompt says there now
    for number, context in enumerate(contexts[:MAX_SHOWN_EXCHANGES], 1):
        turns = []
        for turn in context.before[-4:]:
            turns.append(f"{turn.role}: {turn.content}")

        items.append(
            {
                "exchange": number,
                "said": turns,
                "failed": context.reply.content,
            }
        )
        for place in trial.places(
            [failing[context.id]] if context.id in failing else [], [OLD_ARM]
        ):
            if isinstance(reply := trial.texts.get(place), AssistantReply):
                bad = bool(trial.arrays.values[(*place, 0)] < 0.5)
                items.append(
                    {
                        "exchange": number,
                        "reply_now": reply.text,
                        "failed": bad,
                    }
                )

    # what goes well must stay; sealed guardrails aren't shown
    shown = {guard.id for guard in gathered.guards} - gathered.sealed
    well = []
    for rubric in gathered.rubric_set.rubrics:
        if rubric.polarity == "sat" and rubric.id in shown:
            well.append(rubric.text)

    return items + [{"goes_well": text} for text in well[:MAX_SHOWN_EXCHANGES]]


def count_proposals_to_ask(most: int) -> int:
    """Return how many a model is asked for: beside the plain one, and one that is merged where there are many."""
    return most - (most > 1) - (most > 3)
