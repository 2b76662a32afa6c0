"""`import pollex`: the same results as the command line, from any thread and inside a running event loop."""

import asyncio
import json
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_log import row, same_but_for_time, small_log
from small_runs import Learnt, Pollex

import pollex
from pollex.conversations.conversation import Conversation
from pollex.errors import BadInput, BadLabels, BadRubrics, ModelUnavailable, WrongUse
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import digest_of


class Agreeable:
    """A judge of the user's own: agrees with all, but for one conversation."""

    name = fingerprint = "agreeable"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    @property
    def learned(self) -> Mapping[str, Any]:
        return {}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Nothing to learn."""

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Nothing to prepare."""

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        if conversation.id == "c001":
            raise LookupError("lost")
        self.calls.append([question.rubric.polarity for question in questions if question.rubric])
        agreed = {"probabilities": (0.0, 0.0, 0.0, 1.0, 0.0), "chosen": 3, "source": "point"}
        return [Answer.model_validate({"question_id": question.id, **agreed}) for question in questions]


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(pollex.__all__) <= set(dir(pollex))
    for name in pollex.__all__:
        assert getattr(pollex, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        pollex.nonsense  # noqa: B018


def test_learning_from_python_gives_what_the_command_gives(learnt: Learnt, store: Path, tmp_path: Path) -> None:
    rubrics = pollex.learn(pollex.read_logs(learnt.log), store=store)
    rubrics.save(tmp_path / "deep" / "rubrics.json")
    assert same_but_for_time(tmp_path / "deep" / "rubrics.json") == same_but_for_time(learnt.rubrics)
    again = pollex.learn(pollex.read_logs(learnt.log), store=store, resume=True)
    assert again.run == rubrics.run
    assert pollex.RubricSet.load(tmp_path / "deep" / "rubrics.json") == rubrics


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"budget": 0}, WrongUse),
        ({"test_fraction": 1.0}, WrongUse),
        ({"domain": "none.toml"}, WrongUse),
        ({"policy": "best"}, WrongUse),
        ({"method": "rubikon"}, WrongUse),
        ({"model": "m", "elicitation": "batches"}, WrongUse),
        ({"model": "m", "require": "logprob"}, WrongUse),
        ({"model": 5}, WrongUse),
        ({"without": frozenset({"ds"})}, WrongUse),
        ({"method": "spur", "model": "m", "rubrics": "generic"}, WrongUse),
        ({"logs": []}, BadLabels),
        ({"logs": "logs.jsonl"}, BadInput),
        ({"logs": Path("logs.jsonl")}, BadInput),
        ({"logs": 5}, WrongUse),
        ({"logs": [5]}, WrongUse),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_learnt_is_refused(
    learnt: Learnt, tmp_path: Path, wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        pollex.learn(**{"logs": pollex.read_logs(learnt.log), "store": tmp_path / "kept"} | wrong)


@pytest.mark.nightly
def test_a_policy_may_be_named(learnt: Learnt, store: Path) -> None:
    found = pollex.learn(pollex.read_logs(learnt.log), policy="correctness", budget=2, store=store)
    assert found.policy == "correctness"


def test_a_scorer_scores_what_the_command_scores(learnt: Learnt, pollex: Pollex, store: Path, tmp_path: Path) -> None:
    from pollex import Scorer, read_logs

    pollex("score", learnt.log, "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store)
    written = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    found = Scorer.load(learnt.rubrics).score_many(read_logs(learnt.log))
    for score, one in zip(found, written, strict=True):
        assert (score.conversation_id, score.netsat, score.label) == (one["id"], one["netsat"], one["label"])
        assert (score.confident, score.probability) == (one["confident"], one["probability"])
        assert score.guaranteed is one["guaranteed"] is False  # so few labels promise no side
        assert [answer.question_id for answer in score.answers] == [answer["rubric"] for answer in one["answers"]]


def test_a_conversation_may_come_in_any_usual_shape(learnt: Learnt) -> None:
    scorer, messages = pollex.Scorer.load(learnt.rubrics), small_log()[0]["messages"]
    speakers = {"user": "human", "assistant": "gpt"}
    shapes = [
        Conversation.model_validate({"id": "x", "turns": messages}),
        {"id": "x", "messages": messages},
        messages,
        tuple(messages),
        {"conversations": [{"from": speakers[turn["role"]], "value": turn["content"]} for turn in messages]},
        [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in messages],
    ]
    scores = scorer.score_many(shapes)
    assert len({score.netsat for score in scores}) == 1
    assert scores[0].netsat is not None
    assert [score.conversation_id for score in scores] == ["x", "x", *["conversation"] * 4]


@pytest.mark.parametrize(
    "given", ["hello", 5, None, ["hello"], [{"role": "ghost", "content": "boo"}], {"text": "a"}, [{"role": "user"}]],
    ids=str,
)  # fmt: skip
def test_what_is_no_conversation_is_refused_with_the_shapes_that_are(learnt: Learnt, given: Any) -> None:
    with pytest.raises(WrongUse, match=r"^(turn 0: )?not a conversation.* → give a Conversation"):
        pollex.Scorer.load(learnt.rubrics).score(given)


def test_what_cannot_be_scored_has_an_outcome_and_stops_none(learnt: Learnt) -> None:
    rows = [row("empty", []), row("alone", ["Hello?"]), row("fine", ["Is it open?", "Yes, it is."])]
    empty, alone, fine = pollex.Scorer.load(learnt.rubrics).score_many(rows)
    assert [empty.outcome, alone.outcome, fine.outcome] == ["not_scorable", "not_scorable", "scored"]
    assert (empty.netsat, empty.label, empty.confident, empty.probability) == (None, None, None, None)
    odd = pollex.Scorer.load(learnt.rubrics).score([{"role": "user", "content": "\ud800\x00"}, *rows[2]["messages"]])
    assert odd.outcome == "scored"


def test_a_judge_of_ones_own_is_asked_a_kind_at_a_time_and_its_exception_is_an_outcome(learnt: Learnt) -> None:
    judge, rubrics = Agreeable(), pollex.RubricSet.load(learnt.rubrics)
    scores = pollex.Scorer(rubrics, judge).score_many(pollex.read_logs(learnt.log))
    kinds = [rubric.polarity for rubric in rubrics.rubrics]
    expected = 7.5 * (kinds.count("sat") - kinds.count("dsat"))
    assert {score.netsat for score in scores if score.conversation_id != "c001"} == {expected}
    (failed,) = [score for score in scores if score.netsat is None]
    assert (failed.conversation_id, failed.outcome) == ("c001", "error")
    assert {len(set(call)) for call in judge.calls} == {1}
    assert len(judge.calls) == 2 * 47


def test_what_is_no_conversation_among_many_is_named_by_its_number(learnt: Learnt) -> None:
    with pytest.raises(WrongUse, match="item 2: not a conversation, but int"):
        pollex.Scorer.load(learnt.rubrics).score_many([small_log()[0], 5])


def test_one_judges_name_is_no_list_of_judges(learnt: Learnt) -> None:
    with pytest.raises(WrongUse, match="one name, 'all', for a set of judges"):
        pollex.Scorer.load(learnt.rubrics).score(small_log()[0], "all")


def test_a_path_is_no_rubric_set(learnt: Learnt) -> None:
    with pytest.raises(WrongUse, match=r"not a rubric set, but PosixPath → .*Scorer.load"):
        pollex.Scorer(learnt.rubrics)  # type: ignore[arg-type]


@pytest.mark.parametrize("named", [{"base_url": "http://localhost:1/v1"}, {"model": 5}], ids=str)
@pytest.mark.parametrize("judge", [None, Agreeable()], ids=["embedded", "given"])
def test_a_model_that_nobody_would_ask_is_refused(learnt: Learnt, judge: Agreeable | None, named: Any) -> None:
    with pytest.raises(WrongUse, match="would not be asked → leave out model and base_url"):
        pollex.Scorer(pollex.RubricSet.load(learnt.rubrics), judge, **named)


def test_an_edited_set_is_refused_with_what_to_do(learnt: Learnt, tmp_path: Path) -> None:
    rubrics = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    rubrics["rubrics"][0]["text"] += " Twice."
    (tmp_path / "rubrics.json").write_text(json.dumps(rubrics), encoding="utf-8")
    with pytest.raises(BadRubrics, match="pollex refit"):
        pollex.Scorer.load(tmp_path / "rubrics.json")


@pytest.mark.parametrize("scale", ["likert-10", ["numeric"], None])
def test_a_set_on_a_scale_that_is_not_known_is_refused_with_those_that_are(
    learnt: Learnt, tmp_path: Path, scale: object
) -> None:
    rubrics = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    rubrics["judge"]["options"]["scale"] = scale
    (tmp_path / "rubrics.json").write_text(json.dumps(rubrics), encoding="utf-8")
    with pytest.raises(BadRubrics, match=r"judge.options.scale: .*'likert-domain', 'likert' or 'numeric'"):
        pollex.Scorer.load(tmp_path / "rubrics.json")


@pytest.mark.nightly
def test_an_embedding_model_that_a_set_names_is_not_loaded_before_the_user_names_it_too(
    learnt: Learnt, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{broken")
    found = pollex.RubricSet.load(learnt.rubrics)
    judge = found.judge.model_copy(update={"options": JudgeSettings(embedding_model=str(tmp_path))})
    first, *others = found.rubrics
    by_likeness = first.model_copy(update={"source": "person"})  # only such a rubric reads vectors
    rubrics = (by_likeness, *others)
    changes = {"judge": judge, "rubrics": rubrics, "rubrics_digest": digest_of(rubrics)}
    theirs = found.model_copy(update=changes)
    with pytest.raises(WrongUse, match="judge embeds with") as caught:
        pollex.Scorer(theirs)
    assert f"embedding_model={str(tmp_path)!r}" in caught.value.advice
    with pytest.raises(ModelUnavailable, match="can't be loaded"):
        pollex.Scorer(theirs, embedding_model=str(tmp_path)).score([{"role": "user", "content": "Hello?"}, ANSWERED])


ANSWERED = {"role": "assistant", "content": "Here it is."}


def test_an_interrupt_ends_what_was_begun_inside_a_running_event_loop(learnt: Learnt) -> None:
    begun, cancelled = threading.Event(), []

    class Slow(Agreeable):
        async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
            begun.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(conversation.id)
                raise
            return []

    async def cell() -> None:
        pollex.Scorer(pollex.RubricSet.load(learnt.rubrics), Slow()).score(small_log()[3])

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    notebook, user = asyncio.new_event_loop(), threading.Thread(target=interrupt)
    user.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            notebook.run_until_complete(cell())
    finally:
        user.join()
        notebook.close()
    assert set(cancelled) == {small_log()[3]["id"]}


async def test_all_of_it_works_inside_a_running_event_loop(learnt: Learnt, store: Path) -> None:
    rubrics = pollex.learn(pollex.read_logs(learnt.log), store=store)
    scorer, messages = pollex.Scorer(rubrics), small_log()[3]["messages"]
    awaited = await scorer.ascore(messages)
    assert awaited.outcome == "scored"
    assert scorer.score(messages) == awaited
    assert scorer.score_many([messages]) == [awaited]


def test_logs_come_as_paths_dicts_and_tables(learnt: Learnt) -> None:
    pandas = pytest.importorskip("pandas")
    rows = small_log()
    read = pollex.read_logs(str(learnt.log))
    for given in (learnt.log, [learnt.log], rows, pandas.DataFrame(rows), list(read)):
        assert pollex.read_logs(given).fingerprint == read.fingerprint
    assert repr(read) == "<Logs: 48 conversations, 24 up, 24 down>"
    assert list(read.to_frame()["label"][:1]) == [str(read.conversations[0].label)]


def test_what_a_notebook_shows_is_escaped_and_short() -> None:
    turns = [{"role": "user", "content": "<script>alert(1)</script>"}, {"role": "assistant", "content": "No."}]
    shown = pollex.read_logs([{"id": "<b>", "messages": turns, "thumbs": "up"}])._repr_html_()
    assert "<script>" not in shown
    assert "&lt;b&gt;" in shown


def test_a_rubric_set_is_refitted_scored_measured_and_reported_in_python(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    rubrics = pollex.RubricSet.load(learnt.rubrics)
    assert repr(rubrics).startswith(f"<RubricSet: {sum(r.polarity == 'sat' for r in rubrics.rubrics)} SAT")
    assert len(rubrics.to_frame()) == len(rubrics.rubrics)
    page = rubrics.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == (learnt.rubrics.with_name("report.html")).read_text(encoding="utf-8") or rubrics.run in page
    scores = pollex.score(small_log(), rubrics, store=store)
    assert scores.outcomes == {"scored": 48}
    assert list(scores.to_frame()["outcome"].unique()) == ["scored"]
    assert pollex.evaluate(small_log(), rubrics, store=store).n == 48
    assert pollex.refit(small_log(), rubrics, store=store).theta == pytest.approx(rubrics.theta)
    assert pollex.RubricSet.load(learnt.rubrics).report(tmp_path / "loaded.html").stat().st_size > 1000


def test_two_logs_are_compared_as_the_signature_says(learnt: Learnt, store: Path) -> None:
    found = pollex.compare(learnt.log, learnt.log, rubrics=learnt.rubrics, store=store)
    assert found.comparisons[0].probability.value == 0.0
    with pytest.raises(WrongUse, match="several logs"):
        pollex.compare(pollex.read_logs(learnt.log), learnt.log, rubrics=learnt.rubrics, store=store)


def test_logs_are_inspected_in_python() -> None:
    found = pollex.inspect([one | {"country": "DK"} for one in small_log()])
    assert repr(found) == "<Inspection: 48 conversations, 0 bad rows>"
    assert found.roles["user"] > 0
    assert "country" in found._repr_html_()
    assert found.to_frame().to_dict("list") == {"field": ["country"], "conversations": [48]}
