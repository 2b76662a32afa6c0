"""autorubric: a YAML file of criteria with weights."""

from __future__ import annotations

import json

from pollex.formats.peers.target import Sheet, Target, comment

ABOUT = "autorubric: grade with normalize=False; the raw score is NetSAT. Normalized it is cut to 0 to 1."


def _files(sheet: Sheet) -> dict[str, str]:
    """JSON's quoting of texts is YAML's, too."""
    guidelines = f"{sheet.context}\nJudge how far each statement is true of the conversation.".strip()
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
    netsat="exact: the raw score with normalize=False",
)
