"""The graphs of the room in LangGraph Studio."""

from pollex.rooms.grade.graphs import answer as answering
from pollex.rooms.grade.graphs import graph as grading
from pollex.rooms.grade.usecases.answer import AnswerQuestions
from pollex.rooms.grade.usecases.grade import GradeAnswers
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out_use_case, collect_filled_fields


def start_grade(form: grading.GradeContext) -> None:
    """Grade answers against references."""
    carry_out_use_case(GradeAnswers, collect_filled_fields(form))


def start_answer(form: answering.AnswerContext) -> None:
    """Ask the system under test questions."""
    carry_out_use_case(AnswerQuestions, collect_filled_fields(form))


HOOKS = (
    StudioGraph("grade", grading.build, start_grade),
    StudioGraph("answer", answering.build, start_answer),
)
