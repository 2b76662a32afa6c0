"""Agents on LangGraph and LangChain know the score of their own conversation."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph
from small_log import small_log
from small_runs import Learnt

import pollex
from pollex.examples.route_to_a_person import graph_of
from pollex.langchain import ScoreMiddleware
from pollex.langgraph import LiveScore, score_node
from pollex.services.scorer import parse_conversation


class State(MessagesState):
    pollex: dict[str, Any]


@pytest.fixture(scope="module")
def scorer(learnt: Learnt) -> Iterator[pollex.Scorer]:
    with pollex.Scorer.load(learnt.rubrics) as loaded:
        yield loaded


def messages() -> list[HumanMessage | AIMessage]:
    turns = small_log(4, seed=3)[0]["messages"]
    return [(HumanMessage if t["role"] == "user" else AIMessage)(t["content"]) for t in turns]


def test_a_node_writes_the_scorers_figures_into_the_state_in_both_worlds_or_says_what_it_has(
    scorer: pollex.Scorer,
) -> None:
    graph = StateGraph(State)
    graph.add_node("score", score_node(scorer))
    graph.add_edge(START, "score")
    compiled = graph.compile()
    given = {"messages": messages()}
    expected = scorer.score(given)
    found = compiled.invoke(given)["pollex"]
    assert (found["netsat"], found["probability"]) == (expected.netsat, expected.probability)
    assert asyncio.run(compiled.ainvoke(given))["pollex"] == found
    node = score_node(scorer, messages="chat")
    for state in (node.invoke({"messages": []}), asyncio.run(node.ainvoke({"messages": []}))):
        assert state["pollex"]["error"].startswith("the state has no 'chat' (it has: messages)")


def test_a_failure_is_a_result_and_an_interrupt_is_not(scorer: pollex.Scorer) -> None:
    live = LiveScore(scorer)
    assert "WrongUse" in live.of([{"what": 1}], "1")["error"]

    class Interrupting(pollex.Scorer):
        def score(self, *_: Any) -> Any:
            raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        LiveScore(Interrupting(scorer.rubrics)).of(messages(), "1")
    assert (
        "no score within"
        in asyncio.run(LiveScore(scorer, deadline=0).aof(messages(), "1"))["error"]
    )


def test_an_agent_has_the_score_after_its_turn_and_streams_it(scorer: pollex.Scorer) -> None:
    model = GenericFakeChatModel(
        messages=iter([AIMessage("Please restart."), AIMessage("Please restart.")])
    )
    agent = create_agent(model, [], middleware=[ScoreMiddleware(scorer)])
    given = {"messages": [HumanMessage("My printer is broken.")]}
    state = agent.invoke(given)
    assert (
        state["pollex"]["probability"] == scorer.score({"messages": state["messages"]}).probability
    )
    (streamed,) = agent.stream(given, stream_mode="custom")
    assert streamed["pollex"] == state["pollex"]


def test_scores_are_events_of_the_span_that_is_current(scorer: pollex.Scorer) -> None:
    from opentelemetry import _logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider

    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    _logs.set_logger_provider(provider)
    with TracerProvider().get_tracer("test").start_as_current_span("turn") as span:
        found = LiveScore(scorer, events=True).of(messages(), "thread-7")
    records = [one.log_record for one in exporter.get_finished_logs()]
    assert {one.event_name for one in records} == {"gen_ai.evaluation.result"}
    assert {one.trace_id for one in records} == {span.get_span_context().trace_id}
    values = {
        one.attributes["gen_ai.evaluation.name"]: one.attributes["gen_ai.evaluation.score.value"]
        for one in records
    }
    assert values == {"pollex.netsat": found["netsat"], "pollex.probability": found["probability"]}
    assert {one.attributes["gen_ai.conversation.id"] for one in records} == {"thread-7"}


def test_the_example_hands_over_where_a_thumb_up_is_unlikely(
    learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for below, last in (
        (0.0, "Please restart the app."),
        (1.0, "I am handing you over to a colleague."),
    ):
        monkeypatch.setattr("pollex.examples.route_to_a_person.BELOW", below)
        state = graph_of(learnt.rubrics).invoke(
            {"messages": [("user", "It is broken.")]}, {"configurable": {"thread_id": "1"}}
        )
        assert state["messages"][-1].content == last


MESSAGES: list[AnyMessage] = [
    HumanMessage("Where is A-17?"),
    AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "1"}]),
    ToolMessage("shipped", tool_call_id="1"),
    AIMessage("It was shipped."),
]
TURNS = [
    ("user", "Where is A-17?"),
    *(("assistant", "[tool call: look_up]"), ("tool", "shipped"), ("assistant", "It was shipped.")),
]


def said(conversation: pollex.Conversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in conversation.turns]


def graph_that(answer: Any) -> Any:
    """A graph of one node."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=InMemorySaver())


def test_messages_are_read_as_a_log_and_are_a_conversation_to_score() -> None:
    one: list[Any] = [MESSAGES, {"messages": MESSAGES}]
    for given in (*one, [MESSAGES], [{"messages": MESSAGES, "id": "a"}]):
        assert [said(conversation) for conversation in pollex.read_logs(given)] == [TURNS]
    for given in (*one, {"values": {"messages": MESSAGES}}):
        assert said(parse_conversation(given)) == TURNS


def test_a_states_thumb_and_its_failure_are_read() -> None:
    graph = graph_that(lambda _: {"messages": MESSAGES[1:]})
    thread: Any = {"configurable": {"thread_id": "t"}, "metadata": {"feedback": "up"}}
    graph.invoke({"messages": MESSAGES[:1]}, thread)
    state = graph.get_state(thread)
    assert said(parse_conversation(state)) == TURNS
    (conversation,) = pollex.read_logs([state])
    assert (conversation.id, conversation.label.value, said(conversation)) == (
        "t",
        "positive",
        TURNS,
    )

    def fail(_: MessagesState) -> Any:
        raise ValueError("overloaded")

    graph = graph_that(fail)
    with pytest.raises(ValueError, match="overloaded"):
        graph.invoke({"messages": MESSAGES[:1]}, thread)
    (failed,) = pollex.read_logs([graph.get_state(thread)])
    assert said(failed) == [TURNS[0], ("assistant", "[error]")]
