"""autorubric: a YAML file of criteria with weights."""

from __future__ import annotations

import json

from pollex.formats.peers.target import VOID, Sheet, Target, comment

ABOUT = (
    "autorubric: CriterionGrader(normalize=False, auto_na_option=False); the score is NetSAT. "
    "Normalized it is cut to 0 to 1."
)
LEFT_OUT = (
    "autorubric leaves a rubric without an answer out of the sum, as if it were 0: take no score of a report whose "
    "cannot_assess_count isn't 0."
)


def _files(sheet: Sheet) -> dict[str, str]:
    """JSON's quoting of texts is YAML's, too."""
    asked = "Judge how far each statement is true of the conversation. Neutral if not applicable."
    guidelines = f"{sheet.context}\n{asked}".strip()
    sheet = sheet._replace(notes=tuple(LEFT_OUT if note == VOID else note for note in sheet.notes))
    lines = [comment(sheet, ABOUT), f"guidelines: {json.dumps(guidelines, ensure_ascii=False)}\n", "criteria:\n"]
    top = max(value for _, value in sheet.options)
    for item in sheet.items:
        lines.append(f"  - name: {item.name}\n    weight: {item.sign * top:g}\n")
        lines.append(
            f"    requirement: {json.dumps(item.text, ensure_ascii=False)}\n    scale_type: ordinal\n    options:\n"
        )
        lines += [f"      - {{label: {json.dumps(word)}, value: {value / top:g}}}\n" for word, value in sheet.options]
    return {"rubric.yaml": "".join(lines)}


TARGET = Target(
    name="autorubric",
    version="1.6.1",
    files=_files,
    netsat="exact: the score with normalize=False and auto_na_option=False, where cannot_assess_count is 0; else void",
)
