"""The graphs of the room in LangGraph Studio."""

from pollex.rooms.grade.graphs import answer as answering
from pollex.rooms.grade.graphs import graph as grading
from pollex.rooms.grade.usecases.answer import AnswerQuestions
from pollex.rooms.grade.usecases.grade import GradeAnswers
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out, filled_in


def grade(form: grading.GradeContext) -> None:
    """Grade answers against references."""
    carry_out(GradeAnswers, filled_in(form))


def answer(form: answering.AnswerContext) -> None:
    """Ask the system under test questions."""
    carry_out(AnswerQuestions, filled_in(form))


HOOKS = (
    StudioGraph("grade", grading.build, grade),
    StudioGraph("answer", answering.build, answer),
)
