"""Better words for rubrics, by a model."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pollex.agents.checks import collapse_white_space, explain_rubric_refusal, split_words
from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.further import FurtherRole
from pollex.agents.roles import Rewording
from pollex.gateway.calls import Call
from pollex.prompts.prompt import Prompt, load_prompt
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.lint import find_lint_in_rubric_sentence
from pollex.rubrics.rubric import PERSON_SOURCE, Rubric, make_content_id

RUBRICS_PER_CALL = 20
"""Rubrics that one call rewords."""


class LlmRewriter(FurtherRole):
    """Asks once for better words for the model's rubrics that are hard to judge.

    Attributes:
        tally: Calls without a usable answer, by outcome: the rubrics then stay as they are.
    """

    role = "rewriter"
    rubrics_a_call = RUBRICS_PER_CALL

    def __init__(self, asker: PromptAsker) -> None:
        super().__init__(asker)
        self.tally: Counter[str] = Counter()

    @classmethod
    def list_prompts(cls) -> Sequence[Prompt]:
        """Return the one prompt."""
        return [load_prompt("reword")]

    @classmethod
    def make_usual_call(cls, asker: PromptAsker, rubrics: Sequence[Rubric]) -> Call:
        """Return a call about rubrics with a mark each."""
        items = []
        for i, rubric in enumerate(rubrics):
            items.append({"i": i, "rubric": rubric.text, "marks": ["two parts"]})

        return asker.call(load_prompt("reword"), items, {})

    async def reword(self, rubrics: Sequence[Rubric]) -> Rewording:
        """Return the rubrics in their order, marked ones in better words; of two parts, each for itself."""
        marks = {}
        for rubric in rubrics:
            if is_model_rubric(rubric):
                marks[rubric.id] = [mark.why for mark in find_lint_in_rubric_sentence(rubric)]

        marked = []
        for rubric in rubrics:
            if marks.get(rubric.id):
                marked.append(rubric)

        if marked:
            better = await ask_for_better_words(self.asker, marked, marks)
        else:
            better = {}

        # without an answer all rubrics stay as they are
        if isinstance(better, Unanswered):
            self.tally[better.outcome] += 1
            better = {}

        # words that another rubric has would make a duplicate
        keys_in_use = set(map(_get_text_key, rubrics))
        stayed: list[Rubric] = []
        reworded: dict[str, str] = {}
        for rubric in rubrics:
            fresh = []
            for candidate in _write_reworded_rubrics(rubric, better.get(rubric.id, ())):
                if _get_text_key(candidate) not in keys_in_use:
                    fresh.append(candidate)

            keys_in_use |= {_get_text_key(candidate) for candidate in fresh}
            stayed += fresh or [rubric]
            # a rubric that became two goes on as the first of them
            reworded |= {rubric.id: fresh[0].id} if fresh else {}

        return Rewording(rubrics=tuple(stayed), reworded=reworded)


FURTHER_ROLE = LlmRewriter


def is_model_rubric(rubric: Rubric) -> bool:
    """Tell whether a rubric is in a model's words, and asked of it: neither built-in nor a person's."""
    return not rubric.answered_by and rubric.source != PERSON_SOURCE


def _get_text_key(rubric: Rubric) -> tuple[str, str]:
    return rubric.polarity, rubric.text.casefold()


def _write_reworded_rubrics(rubric: Rubric, texts: Sequence[str]) -> list[Rubric]:
    """Return a rubric in other words; what may not become a rubric is left out, see `agents.checks`."""
    quoted = [split_words(quote.text) for quote in rubric.quotes]
    accepted = []
    for text in map(collapse_white_space, texts):
        if not explain_rubric_refusal(text, quoted):
            accepted.append(text)

    rubrics: list[Rubric] = []
    for text in dict.fromkeys(accepted):
        rubrics.append(
            rubric.model_copy(update={"id": make_content_id(rubric.polarity, text), "text": text})
        )

    return rubrics


async def ask_for_better_words(
    asker: PromptAsker,
    rubrics: Sequence[Rubric],
    marks: Mapping[str, Sequence[str]],
) -> dict[str, tuple[str, ...]] | Unanswered:
    """Return a model's words for marked rubrics, by id; what would be marked itself is left out.

    Args:
        marks: What makes a rubric hard to judge, by id.
    """
    prompt = load_prompt("reword")
    better_texts = dict[str, tuple[str, ...]]()
    for start in range(0, len(rubrics), RUBRICS_PER_CALL):
        batch = rubrics[start : start + RUBRICS_PER_CALL]
        items = [
            {"i": i, "rubric": rubric.text, "marks": list(marks[rubric.id])}
            for i, rubric in enumerate(batch, 1)
        ]
        value = await asker.value(
            prompt,
            items,
            {},
            {"better": list},
            item=batch[0].id,
        )
        if isinstance(value, Unanswered):
            return value
        for row in value["better"]:
            # rows of another form, and numbers that were not shown, are passed over
            if (
                isinstance(row, dict)
                and isinstance(row.get("i"), int)
                and 1 <= row["i"] <= len(batch)
            ):
                rubric = batch[row["i"] - 1]
                texts = row.get("texts")
                better_texts[rubric.id] = tuple(
                    text
                    for text in (texts if isinstance(texts, list) else ())
                    if _is_better_wording(rubric, text)
                )

    return {id_: texts for id_, texts in better_texts.items() if texts}


def _is_better_wording(rubric: Rubric, text: object) -> bool:
    """Tell whether words are new and bear no mark."""
    if not isinstance(text, str) or not text.strip() or text.strip() == rubric.text.strip():
        return False
    return not find_lint_in_rubric_sentence(rubric.model_copy(update={"text": text}))
