"""Langfuse: an evaluator a rubric, and score configurations for scores from outside."""

from __future__ import annotations

from typing import Any

from pollex.formats.peers.target import Item, Sheet, Target, json_text, statement_prompt, unbraced

CANNOT = (
    "Langfuse's evaluators give one score each and no sum, and see one observation, so the whole talk must be in its "
    "input. NetSAT comes by scores from outside: pollex score ... --as langfuse"
)


def _files(sheet: Sheet) -> dict[str, str]:
    about = " ".join([*sheet.header, CANNOT])
    evaluators = [_evaluator(sheet, item) for item in sheet.items]
    return {
        "evaluators.json": json_text({"about": about, "evaluators": evaluators}),
        "score-configs.json": json_text(_configs(sheet)),
    }


def _evaluator(sheet: Sheet, item: Item) -> dict[str, Any]:
    """Make the body of one request to POST /api/public/evaluators."""
    kind = "satisfying" if item.sign > 0 else "dissatisfying"
    prompt = statement_prompt(sheet, "{{conversation}}\n{{answer}}", unbraced(item.text))
    return {
        "type": "llm_as_judge",
        "name": f"pollex_{item.name}",
        "description": f"{item.text} ({kind}, {item.stands}; rubrics {sheet.digest})",
        "prompt": [{"role": "user", "content": prompt}],
        "variableMapping": [
            {"variable": "conversation", "source": "input", "jsonPath": "$.messages"},
            {"variable": "answer", "source": "output"},
        ],
        "outputDefinition": {
            "dataType": "CATEGORICAL",
            "categories": [word for word, _ in sheet.options],
            "shouldAllowMultipleMatches": False,
            "scoreReasoningInstructions": "One sentence, quote the turn.",
            "scoreValueInstructions": "How far the statement holds.",
        },
    }


def _configs(sheet: Sheet) -> list[dict[str, Any]]:
    """Make bodies of requests to POST /api/public/score-configs."""
    ups, downs = (10 * sum(item.sign == sign for item in sheet.items) for sign in (1, -1))
    theta = "" if sheet.theta is None else f", θ {sheet.theta:g}"
    netsat = {
        "name": "pollex_netsat",
        "dataType": "NUMERIC",
        "minValue": -downs,
        "maxValue": ups,
        "description": f"NetSAT of rubrics {sheet.digest}{theta}",
    }
    categories = [{"label": word, "value": value} for word, value in sheet.options]
    return [
        netsat,
        *(
            {
                "name": f"pollex_{item.name}",
                "dataType": "CATEGORICAL",
                "categories": categories,
                "description": f"{item.text} ({item.stands})",
            }
            for item in sheet.items
        ),
    ]


TARGET = Target(name="langfuse", version="5.0.4", files=_files, netsat=f"CANNOT: {CANNOT}", exact=False)
