"""Better words for rubrics, by a model."""

from collections.abc import Mapping, Sequence

from pollex.agents.llm.asker import Asker
from pollex.prompts.prompt import load
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.lint import marks_on_words
from pollex.rubrics.rubric import Rubric

MOST = 20
"""Rubrics that one call rewords."""


async def reword(
    asker: Asker, rubrics: Sequence[Rubric], marks: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]] | Unanswered:
    """Return a model's words for marked rubrics, by id; what would be marked itself is left out.

    Args:
        marks: What makes a rubric hard to judge, by id.
    """
    prompt, found = load("reword"), dict[str, tuple[str, ...]]()
    for start in range(0, len(rubrics), MOST):
        asked = rubrics[start : start + MOST]
        items = [{"i": i, "rubric": one.text, "marks": list(marks[one.id])} for i, one in enumerate(asked, 1)]
        value = await asker.value(prompt, items, {}, {"better": list}, item=asked[0].id)
        if isinstance(value, Unanswered):
            return value
        for row in value["better"]:
            if isinstance(row, dict) and isinstance(row.get("i"), int) and 1 <= row["i"] <= len(asked):
                rubric = asked[row["i"] - 1]
                found[rubric.id] = tuple(text for text in row.get("texts", []) if _good(rubric, text))
    return {id_: texts for id_, texts in found.items() if texts}


def _good(rubric: Rubric, text: object) -> bool:
    """Tell whether words are new and bear no mark."""
    if not isinstance(text, str) or not text.strip() or text.strip() == rubric.text.strip():
        return False
    return not marks_on_words(rubric.model_copy(update={"text": text}))
