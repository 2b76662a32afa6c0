"""The graphs of the room, and what their stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("answer", "pollex.rooms.grade.graphs.answer"),
    RunGraph("grade", "pollex.rooms.grade.graphs.graph"),
    StageNames(
        {
            "answer": "Answering the questions",
            "respond": "Answering the questions",
        },
        command="answer",
    ),
    StageNames(
        {
            "grade": "Grading answers",
            "classify": "Telling the kind of each question",
            "grade_by_rules": "Grading by the reference",
            "grade_plainly": "Grading without a reference",
            "count_grades": "Counting grades",
        },
        command="grade",
    ),
)
