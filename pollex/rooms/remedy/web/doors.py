"""What of the room can be begun in the browser."""

from pollex.web.doors import Door

HOOKS = (
    Door(
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
)
