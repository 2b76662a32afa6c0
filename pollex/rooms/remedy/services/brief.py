"""What to change where, from the log alone: no model is named, so nothing is proposed."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pollex.agents.embedded.view import (
    measure_text_likeness,
    weigh_stems_of_text,
    weigh_word_by_rarity,
)
from pollex.conversations.conversation import Label
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import Progress
from pollex.measures.intervals import Figure, compute_clopper_pearson_interval
from pollex.outputs import write_text
from pollex.rooms.remedy.conversations.reply_context import ReplyContext, shuffle_contexts
from pollex.rooms.remedy.services.advice import PromptAdvice, find_advice
from pollex.rooms.remedy.services.contexts import (
    explain_no_target,
    list_failures,
    list_headline_rubrics,
    measure_surviving_share,
    read_rubric_occurrences,
)
from pollex.rooms.remedy.services.prompt_text import PromptText
from pollex.rubrics.headlines import list_rubrics_of_conversation_endings
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import RunOptions
from pollex.services.logs import Sources, list_file_names
from pollex.services.results import TabularResult
from pollex.text import JsonDict, TerminalLine, TerminalLines, escape_controls, format_count

LEAST_LINE_LIKENESS, MAX_NEAREST_LINES = 0.2, 3
"""Likeness in words from which on a line of the prompt speaks of a rubric, and how many are shown."""
MAX_EXAMPLES = 3
MAX_TOPICS = 3
RARE_WORD_SHARE = 0.4
PARTIES_PATTERN = re.compile(r"\bthe (?:assistant|user)\b", re.IGNORECASE)
"""Words that every rubric has, and that say nothing of what it is about."""

NOTHING_PROPOSED_NOTE = "pollex has proposed nothing: no model was named."

HEADING = "# What to change where"
"""First line of a brief, by which one is told from what somebody else wrote."""


@dataclass(frozen=True, kw_only=True)
class BriefedTarget:
    """What the log tells of one rubric that a change of the prompt may aim at.

    Attributes:
        contexts: Where it fails.
        asked: Conversations that were answered.
        lines: Lines of the prompt that are near in words, with their numbers.
        survives: See `contexts.measure_surviving_share`; None where a model would be asked.
    """

    rubric: ChosenRubric
    contexts: tuple[ReplyContext, ...]
    asked: int
    lines: tuple[tuple[int, str], ...]
    survives: float | None

    @property
    def share(self) -> Figure:
        """Of conversations in which it fails."""
        low, high = compute_clopper_pearson_interval(len(self.contexts), self.asked, units=None)
        return Figure(len(self.contexts) / self.asked, low, high, self.asked)

    @property
    def topics(self) -> list[tuple[str, int]]:
        """Words that are rare in English and frequent in what the user had just said, with the number of replies."""
        counts = Counter(
            word
            for context in self.contexts
            for word in {*_list_rare_words(_get_last_user_text(context))}
        )
        enough = max(2, round(0.05 * len(self.contexts)))
        ranked = sorted(counts, key=lambda word: (-counts[word] * weigh_word_by_rarity(word), word))
        return [(word, counts[word]) for word in ranked if counts[word] >= enough][:MAX_TOPICS]

    @property
    def advice(self) -> PromptAdvice:
        """What may be said in the prompt, or why nothing is."""
        return find_advice(self.rubric)

    @property
    def row(self) -> JsonDict:
        """The figures as JSON values."""
        # share with its interval, sentence, and lines of the prompt
        share = self.share
        row = {
            "target": self.rubric.id,
            "text": self.rubric.text,
            "failing": len(self.contexts),
            "share": share.value,
        }
        row |= {
            "low": share.low,
            "high": share.high,
            "kind": self.advice.kind,
        }
        row |= {"sentence": self.advice.sentence, "no_sentence": self.advice.why}
        return row | {"lines": [number for number, _ in self.lines]}


def _get_last_user_text(context: ReplyContext) -> str:
    """Return what the user said last before a reply."""
    return next(turn.content for turn in reversed(context.before) if turn.role == "user")


def _list_rare_words(text: str) -> list[str]:
    words = (word.strip(".,;:!?\"'()").casefold() for word in text.split())
    return [
        word
        for word in words
        if word.isalpha() and len(word) > 2 and weigh_word_by_rarity(word) >= RARE_WORD_SHARE
    ]


@dataclass(frozen=True, kw_only=True, repr=False)
class BriefResult(TabularResult):
    """What to change where.

    Attributes:
        untestable: Rubrics of the headlines, and outcomes, that no reply shows, or of two parts,
            with the reason.
        down: Conversations with a thumb down.
        unexplained: Of these, the ones in which no target fails.
    """

    targets: tuple[BriefedTarget, ...]
    untestable: tuple[tuple[ChosenRubric, str], ...]
    out: Path | None
    judge: str
    n: int
    down: int = 0
    unexplained: int = 0
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def left(self) -> str:
        """How many thumbs down none of the targets reaches; empty where a target was named or nobody gave thumbs."""
        if not self.down:
            return ""

        thumbs = (
            f"{self.unexplained} of {format_count(self.down, 'conversation')} with a thumb down"
        )
        return f"In {thumbs} none of these fails: what went wrong there is not in this brief"

    @property
    def headline(self) -> str:
        return f"{format_count(len(self.targets), 'rubric')} that a prompt may change, in {self.n} conversations"

    def records(self) -> list[dict[str, object]]:
        return [target.row for target in self.targets]

    def told(self) -> TerminalLines:
        """Yield a line a target, what can't be tested, and where the brief stands."""
        # a line for the share, one for the sentence, one for the prompt's nearest line
        for target in self.targets:
            share = f"{target.share.value:.1%} of {target.share.n}"
            yield f"{target.rubric.id}  {share:>14}  {target.rubric.text}"
            yield f"{'':12}  {'':>14}  {describe_advice(target.advice)}"
            for number, line in target.lines[:1]:
                yield f"{'':12}  {'':>14}  line {number} of the prompt: {line}"

        if self.untestable:
            note = f"Note: {len(self.untestable)} headlines can't be tested at a reply; the brief says why"
            yield TerminalLine(note, "yellow")
        if self.left:
            yield f"{self.left}."

        yield NOTHING_PROPOSED_NOTE
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> JsonDict:
        return self.of("out", "judge", "n", "bad_rows") | {
            "proposed": 0,
            "thumbs_down": self.down,
            "thumbs_down_without": self.unexplained,
            "targets": self.records(),
            "untestable": {rubric.id: why for rubric, why in self.untestable},
        }


def write_brief(
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

    Raises:
        BadRubrics: A model judged, and neither its answers nor the quoted conversations are here.
        WrongUse: The target can't be one.
    """
    if out is not None:
        require_writable_output_path(out, *list_file_names(logs, rubrics, prompt))

    # without a prompt the brief tells of replies alone
    text = None
    if prompt is not None:
        text = PromptText.load(prompt)

    rubric_set, read, held, held_targets = read_rubric_occurrences(
        logs,
        rubrics,
        target,
        reading,
        run,
        progress,
    )
    # targets that fail somewhere; the share that survives needs a judge that costs nothing
    briefed = []
    for held_target in held_targets:
        if list_failures(held_target):
            briefed.append(
                BriefedTarget(
                    rubric=held_target.rubric,
                    contexts=list_failures(held_target),
                    asked=held_target.asked,
                    lines=()
                    if text is None
                    else tuple(find_nearest_lines(text, held_target.rubric)),
                    survives=measure_surviving_share(rubric_set, held_target)
                    if rubric_set.judge.built_in
                    else None,
                )
            )

    # What tells how it came out leads no list, but a reader looks for it: it stands here with the
    # reason.
    outcomes = list_rubrics_of_conversation_endings(rubric_set.rubrics)
    # a target that was named is told alone
    if target:
        listed = []
    else:
        listed = [*list_headline_rubrics(rubric_set), *outcomes]

    held_rubrics = []
    for rubric in listed:
        if held[rubric.id].holds:
            held_rubrics.append(held[rubric.id])

    # thumbs down that none of the targets reaches
    down = set()
    for conversation in read.conversations:
        if conversation.label is Label.NEGATIVE:
            down.add(conversation.id)

    reached = set()
    for briefed_target in briefed:
        for context in briefed_target.contexts:
            reached.add(context.conversation.id)

    # thumbs down that no target reaches are told for the whole log only
    result = BriefResult(
        targets=tuple(briefed),
        untestable=tuple(
            (held_rubric.rubric, why)
            for held_rubric in held_rubrics
            if (why := explain_no_target(rubric_set, held_rubric))
        ),
        out=out,
        judge=rubric_set.judge.name,
        n=len(read),
        down=0 if target else len(down),
        unexplained=0 if target else len(down - reached),
        bad_rows=read.bad_rows,
    )
    if out is not None:
        write_text(out, render_markdown(result, prompted=prompt is not None))

    return result


def find_nearest_lines(text: PromptText, rubric: ChosenRubric) -> list[tuple[int, str]]:
    """Return the lines of a prompt that are nearest to a rubric in words, with their numbers from 1."""
    # who does it stands in every rubric, so those words tell no lines apart
    terms = weigh_stems_of_text(PARTIES_PATTERN.sub("", rubric.text))
    near = []
    for n, line in enumerate(text.lines, 1):
        if line.strip():
            near.append((measure_text_likeness(weigh_stems_of_text(line), terms), n, line))

    # the most alike, and only those that are alike enough
    return [
        (n, line)
        for value, n, line in sorted(near, key=lambda ranked_line: -ranked_line[0])[
            :MAX_NEAREST_LINES
        ]
        if value >= LEAST_LINE_LIKENESS
    ]


def render_markdown(result: BriefResult, *, prompted: bool) -> str:
    """Write the brief for people; what was said is a quote in which nothing is Markdown or HTML."""
    # the head says what the brief is: nothing was proposed
    lines = [
        HEADING,
        "",
        f"{NOTHING_PROPOSED_NOTE} {result.n} conversations, judged by {result.judge}.",
        "",
    ]
    for target in result.targets:
        lines += [*_describe_target(target, prompted=prompted), ""]

    if result.left:
        lines += [f"{result.left}.", ""]

    # what can't be tested has its reason beside it
    if result.untestable:
        lines += ["## What can't be tested at a reply", ""]
        for rubric, why in result.untestable:
            lines.append(f"- {_escape_markdown(rubric.text)} ({rubric.id}): {why}")

    return "\n".join([*lines, ""])


def _describe_target(target: BriefedTarget, *, prompted: bool) -> list[str]:
    interval = f"[{target.share.low:.1%}, {target.share.high:.1%}]"
    share = f"{target.share.value:.1%} of {target.share.n} conversations {interval}"
    # a rubric of the good side fails where it doesn't hold
    aim = "do less" if target.rubric.polarity == "dsat" else "do more"
    if target.rubric.polarity == "dsat":
        fails = "holds"
    else:
        fails = "doesn't hold where it might"

    lines = [
        f"## {_escape_markdown(target.rubric.text)}",
        "",
        f"- Target `{target.rubric.id}` ({aim}): {fails} in {share}.",
    ]
    if topics := target.topics:
        lines.append("- Asked about: " + ", ".join(f"{word} ({n})" for word, n in topics) + ".")

    if target.survives is not None:
        sentence = (
            f"- Without what follows the reply, the judge still finds it in {target.survives:.0%}"
        )
        lines.append(f"{sentence}: it can be tested at a reply.")

    # lines of the prompt, or that it says nothing
    if prompted and not target.lines:
        lines.append("- The prompt says nothing of it.")
    elif prompted:
        near = (f"  - line {n}: {_escape_markdown(line)}" for n, line in target.lines)
        lines += ["- Nearest lines of the prompt:", *near]

    # a sentence, or why there is none
    if target.advice.sentence:
        lines.append(f"- A sentence to try: {_escape_markdown(target.advice.sentence)}")
    else:
        lines.append(f"- {_escape_markdown(describe_advice(target.advice))}.")

    lines += ["- Cases for your tests: `pollex remedy cases LOGS --rubrics RUBRICS --to TOOL`", ""]
    # examples in the order of the proof, quoted
    for context in shuffle_contexts(target.contexts, 0)[:MAX_EXAMPLES]:
        words_by_role = {"user": _get_last_user_text(context), "assistant": context.reply.content}
        quotes = (
            f"> {role}: {_escape_markdown(words, 600)}  " for role, words in words_by_role.items()
        )
        lines += [f"Conversation {_escape_markdown(context.id)}:", "", *quotes, ""]

    return lines


def describe_advice(advice: PromptAdvice) -> str:
    """Say what sentence may be tried, or why none is given."""
    if advice.sentence:
        return f"to try: {advice.sentence}"
    return f"no sentence to try: {advice.why}"


MARKDOWN_ESCAPES = {character: f"\\{character}" for character in "\\`*_[]|#~$"}
MARKDOWN_ESCAPES |= {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def _escape_markdown(text: str, limit: int | None = None) -> str:
    """Return a text in one line, with what Markdown or HTML would take for its own escaped.

    Args:
        limit: Characters of the text that are shown.
    """
    return "".join(
        MARKDOWN_ESCAPES.get(character, character) for character in escape_controls(text, limit)
    )
