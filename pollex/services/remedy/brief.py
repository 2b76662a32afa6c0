"""What to change where, from the log alone: no model is named, so nothing is proposed."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pollex.agents.embedded.view import likeness, rarity, terms_of
from pollex.conversations.logs import BadRow, Logs
from pollex.conversations.reply_context import ReplyContext, in_order
from pollex.formats.fields import ReadOptions
from pollex.formats.write import draft_of, require_writable
from pollex.graphs.context import Progress
from pollex.measures.intervals import Figure, share_interval
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.logs import Sources, files_of, logs_from
from pollex.services.options import RunOptions
from pollex.services.remedy.contexts import Held, failing, held_in, listed, survives, target_of, targets, why_no_target
from pollex.services.remedy.prompt_text import PromptText, naive_sentence
from pollex.services.results import Shown
from pollex.text import Line, Told, count, printable

NEAR, NEAREST = 0.2, 3
"""Likeness in words from which on a line of the prompt speaks of a rubric, and how many are shown."""
EXAMPLES, TOPICS = 3, 3
RARE = 0.4
PARTIES = re.compile(r"\bthe (?:assistant|user)\b", re.IGNORECASE)
"""Words that every rubric has, and that say nothing of what it is about."""

Matter = Literal["words", "knowledge", "tools"]
MATTERS: dict[Matter, str] = {
    "words": "a matter of words: a sentence of the prompt may mend it",
    "knowledge": "a matter of knowledge: no prompt tells what the assistant doesn't know; add the facts first",
    "tools": "a matter of tools: a call fails; mend the tool first",
}
KNOWLEDGE, TOOLS = "event:answer_unknown", "event:tool_"
NOTHING = "pollex has proposed nothing: no model was named."


@dataclass(frozen=True, kw_only=True)
class BriefedTarget:
    """What the log tells of one rubric that a change of the prompt may aim at.

    Attributes:
        share: Of conversations in which it fails.
        topics: Rare words of what the user had just said, with the number of such replies.
        lines: Lines of the prompt that are near in words, with their numbers.
        survives: See `contexts.survives`; None where a model would be asked.
        naive: A sentence to try.
    """

    rubric: ChosenRubric
    share: Figure
    failing: int
    examples: tuple[ReplyContext, ...]
    topics: tuple[tuple[str, int], ...]
    lines: tuple[tuple[int, str], ...]
    matter: Matter
    survives: float | None
    naive: str

    @property
    def row(self) -> dict[str, Any]:
        """The figures as JSON values."""
        told = {"target": self.rubric.id, "text": self.rubric.text, "failing": self.failing, "share": self.share.value}
        told |= {"low": self.share.low, "high": self.share.high, "matter": self.matter}
        return told | {"lines": [number for number, _ in self.lines]}


@dataclass(frozen=True, kw_only=True, repr=False)
class BriefResult(Shown):
    """What to change where.

    Attributes:
        untestable: Rubrics of the headlines that no reply shows, or of two parts, with the reason.
    """

    targets: tuple[BriefedTarget, ...]
    untestable: tuple[tuple[ChosenRubric, str], ...]
    out: Path | None
    judge: str
    n: int
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{count(len(self.targets), 'rubric')} that a prompt may change, in {self.n} conversations"

    def records(self) -> list[dict[str, Any]]:
        return [one.row for one in self.targets]

    def told(self) -> Told:
        """Yield a line a target, what can't be tested, and where the brief stands."""
        for one in self.targets:
            share = f"{one.share.value:.1%} of {one.share.n}"
            yield f"{one.rubric.id}  {share:>14}  {one.rubric.text}"
            yield f"{'':12}  {'':>14}  {MATTERS[one.matter]}"
            for number, line in one.lines[:1]:
                yield f"{'':12}  {'':>14}  line {number} of the prompt: {line}"
        if self.untestable:
            note = f"Note: {len(self.untestable)} headlines can't be tested at a reply; the brief says why"
            yield Line(note, "yellow")
        yield NOTHING
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> dict[str, Any]:
        return self.of("out", "judge", "n", "bad_rows") | {
            "proposed": 0,
            "targets": self.records(),
            "untestable": {rubric.id: why for rubric, why in self.untestable},
        }


def brief(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    prompt: Path | None = None,
    target: str | None = None,
    out: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> BriefResult:
    """Tell what fails in replies, where, and what the prompt says of it.

    Args:
        prompt: The assistant's system prompt; None leaves out which lines are near.
        target: Id of the one rubric that is told of; None: all headlines.
        out: Where the brief is written, in Markdown.

    Raises:
        BadRubrics: A model judged, and neither its answers nor the quoted conversations are here.
        WrongUse: The target can't be one.
    """
    if out is not None:
        require_writable(out, *files_of(logs, rubrics, prompt))
    rubric_set = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    text = None if prompt is None else PromptText.load(prompt)
    read = logs_from(logs, reading, progress)
    held = held_in(rubric_set, read.conversations, run.store)
    wanted = [target_of(rubric_set, held, target)] if target else targets(rubric_set, held)
    result = BriefResult(
        targets=tuple(briefed(rubric_set, one, text) for one in wanted if failing(one)),
        untestable=() if target else tuple(untestable(rubric_set, held)),
        out=out,
        judge=rubric_set.judge.name,
        n=len(read),
        bad_rows=read.bad_rows,
    )
    if out is not None:
        with draft_of(out) as draft:
            draft.write_text(markdown(result, prompted=prompt is not None), encoding="utf-8", errors="replace")
    return result


def untestable(rubric_set: RubricSet, held: Mapping[str, Held]) -> list[tuple[ChosenRubric, str]]:
    """List the headlines that hold somewhere and are no targets, with the reason."""
    reasons = [(one, why_no_target(rubric_set, held[one.id])) for one in listed(rubric_set) if held[one.id].holds]
    return [(one, why) for one, why in reasons if why]


def briefed(rubric_set: RubricSet, held: Held, text: PromptText | None) -> BriefedTarget:
    """Gather what the log tells of one target."""
    contexts, rubric = failing(held), held.rubric
    low, high = share_interval(len(contexts), held.asked, units=None)
    kept = survives(rubric_set, held) if rubric_set.judge.built_in else None
    return BriefedTarget(
        rubric=rubric,
        share=Figure(len(contexts) / held.asked, low, high, held.asked),
        failing=len(contexts),
        examples=tuple(in_order(contexts, 0)[:EXAMPLES]),
        topics=tuple(topics_of(contexts)),
        lines=() if text is None else tuple(nearest_lines(text, rubric)),
        matter=matter_of(rubric),
        survives=kept,
        naive=naive_sentence(rubric),
    )


def matter_of(rubric: Rubric) -> Matter:
    """Tell by the family of its event what a rubric is a matter of."""
    if rubric.source.startswith(KNOWLEDGE):
        return "knowledge"
    return "tools" if rubric.source.startswith(TOOLS) else "words"


def topics_of(contexts: Sequence[ReplyContext]) -> list[tuple[str, int]]:
    """Return the words that are rare in English and frequent in what the user had just asked for."""
    seen = Counter(word for one in contexts for word in set(asked_words(one)))
    enough = max(2, round(0.05 * len(contexts)))
    ranked = sorted(seen, key=lambda word: (-seen[word] * rarity(word), word))
    return [(word, seen[word]) for word in ranked if seen[word] >= enough][:TOPICS]


def asked_words(context: ReplyContext) -> list[str]:
    """Return the rare words of the user's last turn before a reply."""
    said = next(turn.content for turn in reversed(context.before) if turn.role == "user")
    words = (word.strip(".,;:!?\"'()").casefold() for word in said.split())
    return [word for word in words if word.isalpha() and len(word) > 2 and rarity(word) >= RARE]


def nearest_lines(text: PromptText, rubric: ChosenRubric) -> list[tuple[int, str]]:
    """Return the lines of a prompt that are nearest to a rubric in words, with their numbers from 1."""
    wanted = terms_of(PARTIES.sub("", rubric.text))
    near = [(likeness(terms_of(line), wanted), n, line) for n, line in enumerate(text.lines, 1) if line.strip()]
    return [(n, line) for value, n, line in sorted(near, key=lambda one: -one[0])[:NEAREST] if value >= NEAR]


def markdown(result: BriefResult, *, prompted: bool) -> str:
    """Write the brief for people; what was said stands in indented blocks, which nothing in it can leave."""
    lines = ["# What to change where", "", f"{NOTHING} {result.n} conversations, judged by {result.judge}.", ""]
    for one in result.targets:
        lines += [*_about(one, prompted=prompted), ""]
    if result.untestable:
        lines += ["## What can't be tested at a reply", ""]
        lines += [f"- {_plain(rubric.text)} ({rubric.id}): {why}" for rubric, why in result.untestable]
    return "\n".join([*lines, ""])


def _about(one: BriefedTarget, *, prompted: bool) -> list[str]:
    share = f"{one.share.value:.1%} of {one.share.n} conversations [{one.share.low:.1%}, {one.share.high:.1%}]"
    aim = "do less" if one.rubric.polarity == "dsat" else "do more"
    fails = "holds" if one.rubric.polarity == "dsat" else "doesn't hold where it might"
    lines = [f"## {_plain(one.rubric.text)}", "", f"- Target `{one.rubric.id}` ({aim}): {fails} in {share}."]
    if one.topics:
        lines.append("- Asked about: " + ", ".join(f"{word} ({n})" for word, n in one.topics) + ".")
    if one.survives is not None:
        kept = f"- Without what follows the reply, the judge still finds it in {one.survives:.0%}"
        lines.append(f"{kept}: it can be tested at a reply.")
    lines.append(f"- It looks like {MATTERS[one.matter]}.")
    if prompted:
        lines += _near(one)
    lines += ["- A sentence to try:", "", f"      {_plain(one.naive)}", ""]
    lines += ["- Cases for your tests: `pollex remedy cases LOGS --rubrics RUBRICS --to TOOL`", ""]
    for context in one.examples:
        lines += [f"`{_plain(context.id)}`", "", *_exchange(context), ""]
    return lines


def _near(one: BriefedTarget) -> list[str]:
    if not one.lines:
        return ["- The prompt says nothing of it."]
    return ["- Nearest lines of the prompt:", "", *(f"      {n}: {_plain(line)}" for n, line in one.lines), ""]


def _exchange(context: ReplyContext) -> list[str]:
    asked = next(turn for turn in reversed(context.before) if turn.role == "user")
    said = [("user", asked.content), ("assistant", context.reply.content)]
    return [f"    {role}: {printable(words, 600)}" for role, words in said]


def _plain(text: str) -> str:
    """Return a text in one line, with what Markdown or HTML would take for its own made harmless."""
    return "".join(f"\\{one}" if one in "\\`*_[]<>|#" else one for one in printable(text))
