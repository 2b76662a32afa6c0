"""General rubrics in the terms of a domain, by a model: each is kept, reworded, or left out as not applicable.

Source: Biyani et al. 2024, "RUBICON", whose baseline was adapted to its domain by hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.agents.checks import collapse_white_space, explain_rubric_refusal
from pollex.agents.llm.asker import PromptAsker, name_prompt_version
from pollex.prompts.prompt import Prompt, load_prompt
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.records import AdaptedRubric
from pollex.rubrics.rubric import Polarity, Rubric, make_content_id

RUBRICS_PER_CALL = 20
"""Rubrics that one call adapts."""

FEELING_BY_POLARITY: Mapping[Polarity, str] = {"sat": "satisfied", "dsat": "dissatisfied"}


async def adapt_rubrics_to_domain(
    asker: PromptAsker, rubrics: Sequence[Rubric]
) -> tuple[list[Rubric], list[AdaptedRubric]]:
    """Return rubrics in the terms of the asker's domain, and what became of each; what is unclear stays as it is."""
    adapted: list[Rubric] = []
    changes: list[AdaptedRubric] = []
    for start in range(0, len(rubrics), RUBRICS_PER_CALL):
        batch = rubrics[start : start + RUBRICS_PER_CALL]
        prompt = load_prompt("adapt")
        value = await _ask_for_adaptations(asker, prompt, batch)
        for number, rubric in enumerate(batch, 1):
            change = _read_adaptation(
                rubric,
                value if isinstance(value, Unanswered) else value[str(number)],
            )
            changes.append(change)
            if change.does != "left out":
                adapted.append(_reword_as_adapted(change, rubric, name_prompt_version(prompt)))

    return adapted, changes


async def _ask_for_adaptations(
    asker: PromptAsker,
    prompt: Prompt,
    rubrics: Sequence[Rubric],
) -> dict[str, Any] | Unanswered:
    """Ask about a batch; an answer is a property of its number, so none can be left out."""
    numbers = [str(number) for number in range(1, len(rubrics) + 1)]
    schema = {
        **prompt.schema,
        "properties": {number: {"$ref": "#/$defs/a"} for number in numbers},
        "required": numbers,
    }
    items = []
    for number, rubric in enumerate(rubrics, 1):
        items.append(
            {
                "i": number,
                "rubric": rubric.text,
                "side": FEELING_BY_POLARITY[rubric.polarity],
            }
        )

    fields = dict.fromkeys(numbers, dict)
    return await asker.value(
        prompt,
        items,
        {},
        fields,
        schema=schema,
        item=rubrics[0].id,
    )


def _read_adaptation(rubric: Rubric, answer: Mapping[str, object] | Unanswered) -> AdaptedRubric:
    """Return what became of a rubric; what may not become a rubric is not taken, see `agents.checks`."""
    about: dict[str, object] = {"before": rubric.text, "polarity": rubric.polarity}
    if isinstance(answer, Unanswered):
        return AdaptedRubric(
            **about,
            does="kept",
            why=f"the model gave no answer: {answer.outcome} {answer.detail}",
        )

    does = answer.get("does")
    why = collapse_white_space(str(answer.get("why") or ""))
    if does == "leave out":
        return AdaptedRubric(**about, does="left out", why=why)

    text = collapse_white_space(str(answer.get("text") or ""))
    # no words, or the same ones, change nothing
    if does != "reword" or text in ("", rubric.text):
        return AdaptedRubric(**about, does="kept", why=why)
    if refused := explain_rubric_refusal(text):
        return AdaptedRubric(
            **about,
            does="kept",
            why=f"the model's words can't be a rubric: {refused}",
        )

    return AdaptedRubric(**about, does="reworded", text=text, why=why)


def _reword_as_adapted(change: AdaptedRubric, rubric: Rubric, source: str) -> Rubric:
    if change.does != "reworded":
        return rubric

    id_ = make_content_id(rubric.polarity, change.text)
    return rubric.model_copy(update={"id": id_, "text": change.text, "source": source})
