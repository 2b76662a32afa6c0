"""`answer`: asks the system under test questions, each at the temperature of its category."""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraph.graph import StateGraph

from pollex.agents.roles import describe_exception
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import PollexError
from pollex.graphs.batches import (
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import Context
from pollex.graphs.findings import MAX_REASON_CHARACTERS, shorten_text_to_state_line
from pollex.rooms.grade.agents.llm.respondent import Respondent
from pollex.rooms.grade.conversations.references import ReferenceCase
from pollex.rooms.grade.prompts.grading.profile import ReferencingProfile
from pollex.rubrics.answers import Unanswered
from pollex.store.rows import make_conversation_rows
from pollex.text import JsonDict, format_count


@dataclass(frozen=True, kw_only=True)
class AnswerContext(Context):
    """What the user chose for `answer`: questions, and a profile by its language."""

    questions: str | list[str] = ""
    profile: str = ""
    system: str = ""
    max_tokens: int = 0
    seed: int = 0
    category_field: str = ""
    id_field: str = ""
    encoding: str = ""
    max_bad: int = 0


@dataclass(frozen=True, kw_only=True)
class AnswerWork(BatchWork):
    """The resources of `answer`.

    Attributes:
        cases: By id.
    """

    profile: ReferencingProfile
    cases: Mapping[str, ReferenceCase]
    respondent: Respondent

    def tell(self, case: ReferenceCase, conversation: Conversation) -> None:
        """Tell of an answer in the state; the worst are those that are missing, then the shortest."""
        # a case without an answer has the question's turn alone
        answer = ""
        if len(conversation.turns) > 1:
            answer = conversation.turns[-1].content

        # question and answer only where the store keeps texts
        at = f"at temperature {conversation.metadata['temperature']:g}, as its category has it"
        why = (
            conversation.metadata["detail"]
            or f"answered in {format_count(len(answer), 'character')} {at}"
        )
        row: JsonDict = {"why": shorten_text_to_state_line(why, MAX_REASON_CHARACTERS)}
        if self.store.texts:
            row |= {
                "answer": shorten_text_to_state_line(answer, MAX_REASON_CHARACTERS),
                "question": shorten_text_to_state_line(case.question),
            }

        row |= {
            "outcome": conversation.metadata["outcome"],
            "characters": len(answer),
            "category": case.category,
            "temperature": conversation.metadata["temperature"],
        }
        # missing answers rank below the shortest
        rank = float(len(answer)) if answer else -1.0
        self.findings.take(
            case.id,
            lambda: row,
            rank=rank,
            figures={"characters": float(len(answer))} if answer else {},
        )


@make_graph_node_of_item_function(AnswerWork)
async def respond(live: AnswerWork, id_: str) -> None:
    """Ask each question of the batch, and store the system's answer or why there is none."""
    case = live.cases[id_]
    # creative tasks are asked at a higher temperature than those with one right answer
    temperature = live.profile.temperature_of(case.category, case.subcategory)
    async with live.semaphore, live.tracer.span("respond", kind="role", item=case.id) as span:
        response = await _ask_for_answer(live, case, temperature)
        if isinstance(response, Unanswered):
            span.failed(f"{response.outcome}: {response.detail}")
        # Inside the span, which is written after it: whoever finds the span of a killed run finds
        # the answer, too.
        stored = make_stored_answer(case, response, live.respondent.name, temperature)
        live.store.put(make_conversation_rows(live.run, [stored]))

    live.tell(case, stored)
    live.end(case.id, stored.metadata["outcome"])


async def _ask_for_answer(
    live: AnswerWork, case: ReferenceCase, temperature: float
) -> str | Unanswered:
    """Ask for the answer; an exception is a failure of that question alone."""
    try:
        return await live.respondent.respond(case.id, case.question, temperature)
    except PollexError:
        raise
    except Exception as error:
        detail = describe_exception(error, live.secrets)
        return Unanswered(
            question_id=case.id,
            outcome="error",
            detail=detail,
            judge=live.respondent.name,
        )


def make_stored_answer(
    case: ReferenceCase,
    response: str | Unanswered,
    model: str,
    temperature: float,
) -> Conversation:
    """Return a question with its answer as stored; without one, the question and the reason."""
    # the question is stored even where no answer came
    turns = [Turn(role="user", content=case.question)]
    about = {"outcome": "answered", "detail": ""}
    if isinstance(response, Unanswered):
        about = {"outcome": response.outcome, "detail": response.detail}
    else:
        turns.append(Turn(role="assistant", content=response))

    return Conversation(
        id=case.id,
        turns=tuple(turns),
        metadata={
            **about,
            "model": model,
            "temperature": temperature,
        },
    )


def build() -> StateGraph[BatchState, AnswerContext, BatchState, BatchState]:
    """Build the graph, uncompiled."""
    return add_batch_nodes_to_graph(
        StateGraph(BatchState, context_schema=AnswerContext),
        [respond],
    )
