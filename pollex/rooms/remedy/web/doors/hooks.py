"""What of the room can be begun in the browser."""

from collections.abc import Mapping
from typing import Any

from pollex.measures.intervals import Figure
from pollex.web.doors.hooks import DEFAULT_LIMITS, ResultView, UseCaseDoor


def show_brief(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the targets of a brief, each with its share as a figure."""
    targets = []
    for target in result["targets"]:
        targets.append(
            (target, Figure(target["share"], target["low"], target["high"], n=result["n"]))
        )

    return {"targets": targets}


HOOKS = (
    UseCaseDoor(
        "remedy brief",
        "What to change in the prompt",
        "Says what fails in replies, how often, what the assistant's prompt says of it, and a "
        "sentence to try, where there is one. No model is asked.",
        "Write the brief",
        first=("logs", "rubrics", "prompt", "target"),
        result="brief.md",
        helps={
            "prompt": "The assistant's system prompt, or its template. Without it the brief says "
            "nothing of the prompt.",
            "target": "One of the rubric set that is chosen above.",
        },
    ),
    UseCaseDoor(
        "remedy run",
        "Prove a change of the prompt",
        "Asks the assistant under the old prompt and under yours, at replies that failed, on users "
        "who took no part in finding it, and says: release, try, don't, or not enough seen.",
        "Prove it",
        first=("logs", "rubrics", "target", "prompt", "edit", "people", "profiles"),
        usual=DEFAULT_LIMITS,
        result="remedy.json",
        helps={
            "prompt": "The system prompt that it has now.",
            "edit": "The whole prompt as you would have it. Empty: the same model proposes changes, "
            "and the run waits until you accept one.",
            "people": "Blind, in this browser, before the verdict: only people or thumbs can say that a "
            "change is better. 60 is a good number; 0: nobody is asked.",
            "target": "What goes wrong: one rubric of the set that is chosen above.",
        },
    ),
    ResultView("remedy brief", "web/result_brief.html", show_brief),
)
