"""`grade`: finds unknown task types, then grades answers with and without references."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.graphs.batches import (
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    ask_judge_and_store_answers,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import Context
from pollex.graphs.findings import (
    MAX_ANSWERS_SHOWN,
    describe_answers_by_question,
    get_first_failure_or_justification,
    shorten_text_to_state_line,
)
from pollex.rooms.grade.agents.llm.reference_judge import list_plain_questions, make_type_question
from pollex.rooms.grade.conversations.references import ReferenceCase
from pollex.rooms.grade.prompts.grading.profile import OVERALL_QUESTION_ID, ReferencingProfile
from pollex.rubrics.answers import Answer, Question, Unanswered

AnswersByQuestion = Mapping[str, Answer | Unanswered]
"""By the ids of their questions."""


@dataclass(frozen=True, kw_only=True)
class GradeContext(Context):
    """What the user chose for `grade`: cases, and a profile by its language.

    Attributes:
        answers: File of answers; empty where the questions have them.
        plain: Whether a judge without references grades, too.
        human: Files of people's grades.
    """

    questions: str | list[str] = ""
    answers: str = ""
    profile: str = ""
    plain: bool = False
    human: list[str] = field(default_factory=list)
    human_field: str = ""
    category_field: str = ""
    id_field: str = ""
    samples: int = 0
    sources: int = 0
    encoding: str = ""
    max_bad: int = 0


@dataclass(frozen=True, kw_only=True)
class GradeWork(BatchWork):
    """The resources of `grade`.

    Attributes:
        cases: By id.
        plain: The judge without a reference; None leaves it out.
        questions_for: Returns the questions about a case whose type is known, given the answers so far.
        outcome: Returns what a case came to, given all of them.
        answers: Answers of cases that are not settled, by case and question.
        untyped: Cases whose type a model is to be asked for.
    """

    profile: ReferencingProfile
    cases: Mapping[str, ReferenceCase]
    classifier: Judge
    judge: Judge
    plain: Judge | None
    questions_for: Callable[[ReferenceCase, AnswersByQuestion], Sequence[Question]]
    outcome: Callable[[ReferenceCase, AnswersByQuestion], str]
    answers: dict[str, dict[str, Answer | Unanswered]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    untyped: set[str] = field(default_factory=set)

    def tell(self, case: ReferenceCase, answers: AnswersByQuestion, outcome: str) -> None:
        """Tell of a case in the state: its grades; the worst are those with the lowest overall grade.

        A case without an overall grade is none of the worst: its outcome tells why it has none.
        """
        # grades by question, without texts and failures
        grades = self.grades_of([*answers.values()])
        overall = grades.get(OVERALL_QUESTION_ID)
        if self.store.texts:
            about = {"question": shorten_text_to_state_line(case.question)}
        else:
            about = {}

        row = {
            "why": get_first_failure_or_justification(
                self.telling(answers), texts=self.store.texts
            ),
            "overall": overall,
            "outcome": outcome,
            "grades": dict(list(grades.items())[:MAX_ANSWERS_SHOWN]),
            **about,
        }
        # the run's figures are means of these
        figures = {id_: float(grade) for id_, grade in grades.items()}
        # the overall grade alone decides which cases are shown as the worst
        rank = None
        if overall is not None:
            rank = float(overall)

        self.findings.take(case.id, lambda: row, rank=rank, figures=figures)

    def telling(self, answers: AnswersByQuestion) -> list[Answer | Unanswered]:
        """Return what tells why a case came to its outcome: its overall grade, else all answers."""
        overall = answers.get(OVERALL_QUESTION_ID)
        if isinstance(overall, Answer):
            return [overall]
        return [*answers.values()]

    def grades_of(self, answers: Sequence[Answer | Unanswered]) -> dict[str, int]:
        """Return the answers that are grades, by question."""
        # a grade has as many options as the scale: that tells it from other answers
        size = len(self.profile.grades)
        grades: dict[str, int] = {}
        for answer in answers:
            if (
                isinstance(answer, Answer)
                and len(answer.probabilities) == size
                and not answer.never_came_up
            ):
                # options count from 0, grades from the lowest one
                grades[answer.question_id] = answer.chosen + self.profile.lowest

        return grades

    async def ask(
        self,
        name: str,
        judge: Judge,
        case: ReferenceCase,
        questions: Sequence[Question],
    ) -> None:
        """Ask about a case, and keep the answers until it is settled."""
        answers = await ask_judge_and_store_answers(self, name, judge, case.conversation, questions)
        # by question, so that an answer that is asked for again replaces the first
        for answer in answers:
            self.answers[case.id][answer.question_id] = answer

        # each node tells what it was answered, in grades or words
        grades = self.grades_of(answers)
        others = []
        for answer in answers:
            if answer.question_id not in grades:
                others.append(answer)

        self.findings.note(
            name,
            case.id,
            lambda: {
                "why": get_first_failure_or_justification(answers, texts=self.store.texts),
                **describe_answers_by_question(questions, others),
                **dict(list(grades.items())[:MAX_ANSWERS_SHOWN]),
            },
        )


@make_graph_node_of_item_function(GradeWork)
async def classify(live: GradeWork, id_: str) -> None:
    """Ask a model for the type of each task that no category tells; it may be unsure."""
    if id_ in live.untyped:
        await live.ask(
            "classify",
            live.classifier,
            live.cases[id_],
            [make_type_question(live.profile)],
        )


@make_graph_node_of_item_function(GradeWork)
async def grade_by_rules(live: GradeWork, id_: str) -> None:
    """Grade each answer against its reference, on each dimension and overall."""
    case = live.cases[id_]
    await live.ask(
        "grade_by_rules",
        live.judge,
        case,
        live.questions_for(case, live.answers[id_]),
    )


@make_graph_node_of_item_function(GradeWork)
async def grade_plainly(live: GradeWork, id_: str) -> None:
    """Grade each answer without reference and rules, where that is wanted."""
    if live.plain is not None:
        await live.ask(
            "grade_plainly",
            live.plain,
            live.cases[id_],
            list_plain_questions(live.profile),
        )


@make_graph_node_of_item_function(GradeWork)
async def count_grades(live: GradeWork, id_: str) -> None:
    """Count what each case came to."""
    case = live.cases[id_]
    answers = live.answers.pop(id_)
    live.tell(case, answers, live.outcome(case, answers))
    live.end(id_, live.outcome(case, answers))


def build() -> StateGraph[BatchState, GradeContext, BatchState, BatchState]:
    """Build the graph, uncompiled."""
    graph = StateGraph(BatchState, context_schema=GradeContext)
    return add_batch_nodes_to_graph(
        graph,
        [classify],
        [grade_by_rules, grade_plainly],
        [count_grades],
    )
