"""Answers, graded against references; see README.md."""

PYTHON_NAMES = {
    "answer": "usecases.answer.AnswerQuestions",
    "grade": "usecases.grade.GradeAnswers",
}
"""What `import pollex` has of the room, and where it is."""
