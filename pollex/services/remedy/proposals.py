"""Proposals of a model as changes of a prompt, vetted by code before anybody tries them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pollex.agents.assistant import AssistantReply
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.llm.asker import Asker
from pollex.agents.llm.proposer import Hunk, proposed
from pollex.agents.llm.second_reader import SecondReader
from pollex.conversations.conversation import Conversation
from pollex.conversations.redaction import found_in
from pollex.conversations.reply_context import ReplyContext
from pollex.measures.proofs import FAILING
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.inspect import language_of_text
from pollex.services.remedy.edits import PromptEdit, naive_sentence, refusal_of, with_line
from pollex.services.remedy.prompt_text import PromptText
from pollex.services.remedy.sample import RemedySample
from pollex.text import printable

SHOWN, ROW, WORDS, GROWTH, TWIN = 12, 6, 80, 0.15, 0.9
"""Exchanges a proposer sees, words in a row that are copied, words added, growth, and likeness of near twins."""
SPEAKS = re.compile(
    r"\b(judg\w*|rubric\w*|scor\w*|thumbs?|rating\w*|rated|evaluat\w*|graded?|grader\w*)\b", re.IGNORECASE
)
"""A prompt that speaks of how it is measured aims at the measure."""
CALLED = re.compile(r"`([^`]+)`|\b(\w+_\w+)\b|\b(\w+)\(\)")
_WORD = re.compile(r"\w+")


def with_hint(prompt: PromptText, rubric: Rubric, context: ReplyContext) -> PromptText:
    """Return a prompt with the remedy of one conversation: the most that any prompt could do there."""
    told = " ".join(context.reply.content.split())[:600]
    return with_line(prompt, f"{naive_sentence(rubric)} Here above all. This reply failed: {braceless(told)}")


def flattering(prompt: PromptText, rubric: Rubric) -> PromptText:
    """Return a prompt that changes no deed, and only has replies claim to do well."""
    claimed = "true" if rubric.polarity == "sat" else "not true"
    said = rubric.text.strip().rstrip(".")
    return with_line(
        prompt, f"Change nothing in what you do, but end each reply by stating that this is {claimed}: {said}."
    )


def braceless(text: str) -> str:
    """Return a text in which nothing is a place for a value."""
    return text.replace("{", "(").replace("}", ")")


def with_hunks(prompt: PromptText, hunks: Sequence[Hunk]) -> PromptText | None:
    """Return a prompt with some hunks applied; None where a line isn't there."""
    lines = list(prompt.lines)
    for hunk in sorted(hunks, key=lambda one: -one.line):
        insert = hunk.kind == "insert"
        if not (0 if insert else 1) <= hunk.line <= len(lines):
            return None
        lines[hunk.line if insert else hunk.line - 1 : hunk.line] = [hunk.text]
    return replace(prompt, text="\n".join([*lines, ""]))


@dataclass(frozen=True)
class Vetting:
    """What refuses a proposal.

    Attributes:
        said: All conversations' words, for copies.
        tools: Names of tools that the log has.
    """

    said: Sequence[str]
    tools: frozenset[str]

    @classmethod
    def of(cls, conversations: Sequence[Conversation]) -> Vetting:
        """Return what refuses copies of some conversations."""
        said = [words_of(turn.content) for one in conversations for turn in one.turns if turn.role != "system"]
        names = {call.name for one in conversations for turn in one.turns for call in turn.calls}
        return cls(said, frozenset(names))

    def refusal(self, edit: PromptEdit, earlier: Sequence[PromptEdit]) -> str:
        """Return why a proposal isn't tried; empty if it is."""
        added, old = edit.added, edit.old.text
        grown = len(edit.new.text.split()) - len(old.split())
        called = {name for found in CALLED.findall(added) for name in found if name}
        language = language_of_text()
        reasons: dict[str, Callable[[], Any]] = {
            "it holds invisible characters": lambda: printable(added, keep_lines=True) != added,
            "it takes text away": lambda: grown < 0 or not added.strip(),
            f"it adds more than {WORDS} words": lambda: len(added.split()) > WORDS,
            f"the prompt grows by over {GROWTH:.0%}": lambda: grown > max(GROWTH * len(old.split()), WORDS / 2),
            "it copies words of a conversation": lambda: self.copied(added, old),
            "it holds a name, number, address, link or key": lambda: found_in(added),
            "it speaks of how replies are judged": lambda: SPEAKS.search(added),
            "it names a tool that isn't there": lambda: [x for x in called if x not in old and x not in self.tools],
            "it is in another language than the prompt": lambda: len({language(old), language(added)} - {"unsure"}) > 1,
            "it is nearly an earlier one": lambda: any(alike(added, one.added) >= TWIN for one in earlier),
        }
        return refusal_of(edit) or next((why for why, found in reasons.items() if found()), "")

    def copied(self, added: str, old: str) -> bool:
        """Tell whether six words in a row stand in any conversation, and not in the prompt."""
        words, known = words_of(added).split(), words_of(old)
        rows = {f" {' '.join(words[n : n + ROW])} " for n in range(len(words) - ROW + 1)}
        return any(row in text for row in rows if row not in known for text in self.said)


def words_of(text: str) -> str:
    """Return the words of a text in one form, each between spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def alike(one: str, other: str) -> float:
    """Return the share of words that two texts have in common."""
    a, b = set(words_of(one).split()), set(words_of(other).split())
    return len(a & b) / max(len(a | b), 1)


@dataclass(frozen=True)
class Proposals:
    """Asks the proposer, who sees the part that proposes, and vets what comes."""

    asker: Asker
    second: SecondReader | None
    prompt: PromptText
    rubric_set: RubricSet
    sample: RemedySample
    shown: frozenset[str]
    vetting: Vetting
    embedder: Embedder
    most: int

    async def of(self, replies: Mapping[str, Sequence[tuple[str, bool]]]) -> list[PromptEdit]:
        """Return proposals, the naive one first; refused ones bear the reason.

        Args:
            replies: By context, what the old prompt said now, and whether it failed.
        """
        target = self.sample.target.rubric
        found = [PromptEdit("naive", self.prompt, with_line(self.prompt, naive_sentence(target)), "the plain opposite")]
        found = [] if self.most == 1 else found
        hunks: list[list[Hunk]] = []
        for number, contexts in enumerate(self.clusters(asked_for(self.most))):
            asked = await proposed(self.asker, self.items(contexts, replies), number)
            name = f"proposal {number + 1}"
            if isinstance(asked, str):
                found.append(PromptEdit(name, self.prompt, self.prompt, refused=asked))
                continue
            hunks.append(asked)
            found.append(self.edit_of(name, asked))
        if self.most > 3 and len(hunks) > 1:
            found.append(self.edit_of("merged", [one[0] for one in hunks[:2]]))
        vetted: list[PromptEdit] = []
        for edit in found:
            good = [one for one in vetted if not one.refused]
            why = edit.refused or self.vetting.refusal(edit, good) or await self.facts_in(edit)
            vetted.append(replace(edit, refused=why))
        return vetted

    def edit_of(self, name: str, hunks: Sequence[Hunk]) -> PromptEdit:
        """Return hunks as a change."""
        purpose = " · ".join(one.purpose for one in hunks)[:300]
        changed = with_hunks(self.prompt, hunks)
        return PromptEdit(name, self.prompt, changed or self.prompt, purpose, "" if changed else "a line isn't there")

    async def facts_in(self, edit: PromptEdit) -> str:
        """Return which facts an edit brings in that stand nowhere; empty for none, or where nobody reads it."""
        if self.second is None or edit.name == "naive":
            return ""
        known = f"{edit.old.text}\n{self.rubric_set.domain.model_dump_json()}"
        facts = await self.second.new_facts(known, edit.added)
        return f"it states what nobody said: {facts[0][:120]}" if facts else ""

    def clusters(self, number: int) -> list[list[ReplyContext]]:
        """Part the failing contexts that propose by what they are about."""
        contexts = [one for one, _ in self.sample.taken(("propose",), 200)]
        number = max(1, min(number, len(contexts) // 2))
        if number == 1:
            return [contexts]
        from sklearn.cluster import KMeans  # it takes a second to import

        vectors = self.embedder.embed([one.before[-1].content for one in contexts])
        labels = KMeans(number, random_state=0, n_init=3).fit_predict(vectors)
        return [[one for one, label in zip(contexts, labels, strict=True) if label == n] for n in range(number)]

    def items(
        self, contexts: Sequence[ReplyContext], replies: Mapping[str, Sequence[tuple[str, bool]]]
    ) -> list[dict[str, Any]]:
        """Return what the proposer sees: nothing of judges, scales, scores, other parts or sealed rubrics."""
        target, mine = self.sample.target.rubric, {one.conversation.id for one in contexts}
        protected = set(self.prompt.protected)
        items: list[dict[str, Any]] = [
            {"line": n, "text": line, "protected": line in protected} for n, line in enumerate(self.prompt.lines, 1)
        ]
        items.append({"goes_wrong": target.text} if target.polarity == "dsat" else {"is_missing": target.text})
        reasons = {one.text for one in self.rubric_set.reasons if one.conversation_id in mine}
        items += [{"why": text} for text in sorted(reasons)[:SHOWN]]
        for number, one in enumerate(contexts[:SHOWN], 1):
            said = [f"{turn.role}: {turn.content}" for turn in one.before[-4:]]
            items.append({"exchange": number, "said": said, "failed": one.reply.content})
            items += [{"exchange": number, "reply_now": text, "failed": bad} for text, bad in replies.get(one.id, ())]
        well = [one.text for one in self.rubric_set.rubrics if one.polarity == "sat" and one.id in self.shown]
        return items + [{"goes_well": text} for text in well[:SHOWN]]


def asked_for(most: int) -> int:
    """Return how many a model is asked for: beside the plain one, and one that is merged where there are many."""
    return most - (most > 1) - (most > 3)


def replies_now(trial: Any) -> dict[str, list[tuple[str, bool]]]:
    """Return by context what the old prompt said now where it had failed, and whether it failed again."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for (n, arm, k), one in sorted(trial.texts.items()):
        if arm == 0 and trial.arrays.stratum[n] == FAILING and isinstance(one, AssistantReply):
            bad = bool(trial.arrays.values[n, 0, k, 0] < 0.5)
            found.setdefault(trial.contexts[n].id, []).append((one.text, bad))
    return found
