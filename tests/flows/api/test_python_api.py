"""`import pollex`: the same results as the command line, from any thread and inside a running event loop."""

import asyncio
import json
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from small_log import read_rows, row, same_but_for_time, small_log, write_log
from small_runs import Learnt, Pollex

import pollex
from pollex.cli.main import pollex as pollex_command
from pollex.cli.settings import spell_options_of_command
from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Conversation
from pollex.errors import BadInput, BadLabels, BadRubrics, PollexError, WrongUse
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric


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

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        if conversation.id == "c001":
            raise LookupError("lost")
        self.calls.append([question.rubric.polarity for question in questions if question.rubric])
        agreed = {"probabilities": (0.0, 0.0, 0.0, 1.0, 0.0), "chosen": 3, "source": "point"}
        return [
            Answer.model_validate({"question_id": question.id, **agreed}) for question in questions
        ]


def test_what_holds_no_log_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}\n")
    with (
        (tmp_path / "log.jsonl").open() as file,
        pytest.raises(WrongUse, match="not a log, but TextIOWrapper → give the path of the file"),
    ):
        pollex.read_logs(file)
    endless: dict[str, Any] = {"role": "user"}
    endless["content"] = endless
    with pytest.raises(WrongUse, match="it holds itself, or nests too deeply"):
        pollex.read_logs([{"messages": [endless]}])
    with pytest.raises(WrongUse, match="the name of a log is empty"):
        pollex.read_logs("")
    with pytest.raises(WrongUse, match=r"\(1,\) are no two prices"):
        pollex.learn(small_log(), price=(1,))  # type: ignore[arg-type]


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(pollex.__all__) <= set(dir(pollex))
    for name in pollex.__all__:
        assert getattr(pollex, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        pollex.nonsense  # noqa: B018


def test_a_verb_with_the_name_of_a_folder_is_a_function_all_the_same(learnt: Learnt) -> None:
    assert import_module("pollex.runs.options"), "which makes `pollex.runs` the folder"
    assert [run["command"] for run in pollex.runs(store=learnt.store).as_json()["runs"]][:1] == [
        "learn"
    ]


async def test_learning_from_python_gives_what_the_command_gives_also_inside_a_running_event_loop(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    rubrics = pollex.learn(pollex.read_logs(learnt.log), store=store)
    file = tmp_path / "deep" / "rubrics.json"
    rubrics.save(file)
    assert same_but_for_time(file) == same_but_for_time(learnt.rubrics)
    assert pollex.learn(pollex.read_logs(learnt.log), store=store, resume=True).run == rubrics.run
    assert pollex.RubricSet.load(file) == rubrics
    scorer = pollex.Scorer(rubrics)
    messages = small_log()[3]["messages"]
    awaited = await scorer.ascore(messages)
    assert awaited.outcome == "scored"
    assert scorer.score(messages) == awaited
    assert scorer.score_many([messages]) == [awaited]


def test_what_cannot_be_learnt_is_refused(learnt: Learnt, tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"budget": 0},
        {"test_fraction": 1.0},
        {"domain": "none.toml"},
        {"policy": "best"},
        {"method": "rubikon"},
        {"model": "m", "elicitation": "batches"},
        {"model": "m", "require": "logprob"},
        {"model": 5},
        {"without": frozenset({"ds"})},
        {"method": "spur", "model": "m", "rubrics": "generic"},
        {"logs": 5},
        {"logs": [5]},
    ]
    nothing: list[tuple[Any, type[Exception]]] = [
        ([], BadLabels),
        ("l.jsonl", BadInput),
        (Path("l.jsonl"), BadInput),
    ]
    logs = pollex.read_logs(learnt.log)
    for given, error in (
        *((one, WrongUse) for one in wrong),
        *(({"logs": one}, error) for one, error in nothing),
    ):
        with pytest.raises(PollexError) as found:
            pollex.learn(**{"logs": logs, "store": tmp_path / "kept"} | given)
        assert isinstance(found.value, error), given


def test_a_scorer_scores_what_the_command_scores(
    learnt: Learnt, pollex: Pollex, store: Path, tmp_path: Path
) -> None:
    from pollex import Scorer, read_logs

    pollex("score", learnt.log, "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store)
    written = read_rows(tmp_path / "s.jsonl")
    found = Scorer.load(learnt.rubrics).score_many(read_logs(learnt.log))
    for score, one in zip(found, written, strict=True):
        assert (score.conversation_id, score.netsat, score.label) == (
            one["id"],
            one["netsat"],
            one["label"],
        )
        assert (score.confident, score.probability) == (one["confident"], one["probability"])
        assert score.guaranteed is one["guaranteed"] is False  # so few labels promise no side
        assert [answer.question_id for answer in score.answers] == [
            answer["rubric"] for answer in one["answers"]
        ]


def test_a_conversation_may_come_in_any_usual_shape(learnt: Learnt) -> None:
    scorer = pollex.Scorer.load(learnt.rubrics)
    messages = small_log()[0]["messages"]
    speakers = {"user": "human", "assistant": "gpt"}
    shapes = [
        Conversation.model_validate({"id": "x", "turns": messages}),
        {"id": "x", "messages": messages},
        messages,
        tuple(messages),
        {
            "conversations": [
                {"from": speakers[turn["role"]], "value": turn["content"]} for turn in messages
            ]
        },
        [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in messages],
    ]
    scores = scorer.score_many(shapes)
    assert len({score.netsat for score in scores}) == 1
    assert scores[0].netsat is not None
    assert [score.conversation_id for score in scores] == ["x", "x", *["conversation"] * 4]


def test_what_is_no_conversation_is_refused_with_the_shapes_that_are(learnt: Learnt) -> None:
    scorer = pollex.Scorer.load(learnt.rubrics)
    shapeless: list[Any] = ["hello", 5, None, ["hello"], {"text": "a"}, [{"role": "user"}]]
    for given in (*shapeless, [{"role": "ghost", "content": "boo"}]):
        with pytest.raises(
            WrongUse, match=r"^(turn 0: )?not a conversation.* → give a Conversation"
        ):
            scorer.score(given)
    with pytest.raises(WrongUse, match="item 2: not a conversation, but int"):
        scorer.score_many([small_log()[0], 5])


def test_what_cannot_be_scored_has_an_outcome_and_stops_none(learnt: Learnt) -> None:
    rows = [row("empty", []), row("alone", ["Hello?"]), row("fine", ["Is it open?", "Yes, it is."])]
    empty, alone, fine = pollex.Scorer.load(learnt.rubrics).score_many(rows)
    assert [empty.outcome, alone.outcome, fine.outcome] == [
        "not_scorable",
        "not_scorable",
        "scored",
    ]
    assert (empty.netsat, empty.label, empty.confident, empty.probability) == (
        None,
        None,
        None,
        None,
    )
    odd = pollex.Scorer.load(learnt.rubrics).score(
        [{"role": "user", "content": "\ud800\x00"}, *rows[2]["messages"]]
    )
    assert odd.outcome == "scored"


def test_a_judge_of_ones_own_is_asked_a_kind_at_a_time_and_its_exception_is_an_outcome(
    learnt: Learnt,
) -> None:
    judge = Agreeable()
    rubrics = pollex.RubricSet.load(learnt.rubrics)
    scores = pollex.Scorer(rubrics, judge).score_many(pollex.read_logs(learnt.log))
    kinds = [rubric.polarity for rubric in rubrics.rubrics]
    expected = 7.5 * (kinds.count("sat") - kinds.count("dsat"))
    assert {score.netsat for score in scores if score.conversation_id != "c001"} == {expected}
    (failed,) = [score for score in scores if score.netsat is None]
    assert (failed.conversation_id, failed.outcome) == ("c001", "error")
    assert {len(set(call)) for call in judge.calls} == {1}
    assert len(judge.calls) == 2 * 47


def test_a_scorer_refuses_what_is_no_set_no_judge_and_no_model_that_would_be_asked(
    learnt: Learnt,
) -> None:
    rubrics = pollex.RubricSet.load(learnt.rubrics)
    with pytest.raises(WrongUse, match="one name, 'all', for a set of judges"):
        pollex.Scorer(rubrics).score(small_log()[0], "all")
    with pytest.raises(WrongUse, match=r"not a rubric set, but PosixPath → .*Scorer.load"):
        pollex.Scorer(learnt.rubrics)  # type: ignore[arg-type]
    for judge in (None, Agreeable()):
        for named in ({"base_url": "http://localhost:1/v1"}, {"model": 5}):
            with pytest.raises(WrongUse, match="would not be asked → leave out model and base_url"):
                pollex.Scorer(rubrics, judge, **named)  # type: ignore[arg-type]


def test_a_set_that_was_edited_or_is_on_a_scale_that_is_not_known_is_refused_with_what_to_do(
    learnt: Learnt, tmp_path: Path
) -> None:
    text = learnt.rubrics.read_text(encoding="utf-8")

    def loaded(says: str) -> None:
        (tmp_path / "rubrics.json").write_text(json.dumps(rubrics), encoding="utf-8")
        with pytest.raises(BadRubrics, match=says):
            pollex.Scorer.load(tmp_path / "rubrics.json")

    rubrics = json.loads(text)
    rubrics["rubrics"][0]["text"] += " Twice."
    loaded("pollex refit")
    rubrics = json.loads(text)
    for scale in ("likert-10", ["numeric"], None):
        rubrics["judge"]["options"]["scale"] = scale
        loaded(r"judge.options.scale: .*'likert-domain', 'likert' or 'numeric'")


def test_an_interrupt_ends_what_was_begun_inside_a_running_event_loop(learnt: Learnt) -> None:
    begun = threading.Event()
    cancelled = []

    class Slow(Agreeable):
        async def judge(
            self, conversation: Conversation, questions: Sequence[Question]
        ) -> list[Answer | Unanswered]:
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

    notebook = asyncio.new_event_loop()
    user = threading.Thread(target=interrupt)
    user.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            notebook.run_until_complete(cell())
    finally:
        user.join()
        notebook.close()
    assert set(cancelled) == {small_log()[3]["id"]}


def test_logs_come_as_paths_dicts_and_tables_and_a_notebook_shows_them_escaped(
    learnt: Learnt,
) -> None:
    pandas = pytest.importorskip("pandas")
    rows = small_log()
    read = pollex.read_logs(str(learnt.log))
    for given in (learnt.log, [learnt.log], rows, pandas.DataFrame(rows), list(read)):
        assert pollex.read_logs(given).fingerprint == read.fingerprint
    assert repr(read) == "<Logs: 48 conversations, 24 up, 24 down>"
    assert list(read.to_frame()["label"][:1]) == [str(read.conversations[0].label)]
    turns = [
        {"role": "user", "content": "<script>alert(1)</script>"},
        {"role": "assistant", "content": "No."},
    ]
    shown = pollex.read_logs([{"id": "<b>", "messages": turns, "thumbs": "up"}])._repr_html_()
    assert ("<script>" in shown, "&lt;b&gt;" in shown) == (False, True)


def test_a_rubric_set_is_refitted_scored_measured_and_reported_in_python(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    rubrics = pollex.RubricSet.load(learnt.rubrics)
    assert repr(rubrics).startswith(
        f"<RubricSet: {sum(r.polarity == 'sat' for r in rubrics.rubrics)} SAT"
    )
    assert len(rubrics.to_frame()) == len(rubrics.rubrics)
    page = rubrics.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        page == (learnt.rubrics.with_name("report.html")).read_text(encoding="utf-8")
        or rubrics.run in page
    )
    scores = pollex.score(small_log(), rubrics, store=store)
    assert scores.outcomes == {"scored": 48}
    assert list(scores.to_frame()["outcome"].unique()) == ["scored"]
    measured = pollex.evaluate(small_log(), rubrics, store=store)
    assert measured.n == 48
    assert measured.at_chance == "", "these thumbs are told apart"
    luck = replace(measured, figures=replace(measured.figures, auc=Figure(0.53, 0.41, 0.65, 48)))
    assert "not known to be better than chance" in " ".join(map(str, luck.told()))
    assert pollex.refit(small_log(), rubrics, store=store).theta == pytest.approx(rubrics.theta)


def test_a_scorer_of_a_set_at_chance_says_so_when_it_is_made(
    learnt: Learnt, caplog: pytest.LogCaptureFixture
) -> None:
    rubrics = pollex.RubricSet.load(learnt.rubrics)
    pollex.Scorer(rubrics)
    assert not caplog.records
    figures = replace(rubrics.held_out or rubrics.training, auc=Figure(0.53, 0.41, 0.65, 48))
    pollex.Scorer(rubrics.model_copy(update={"held_out": figures}))
    assert "not known to be better than chance" in caplog.text


def test_two_logs_are_compared_as_the_signature_says(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log()[:20])
    found = pollex.compare(log, log, rubrics=learnt.rubrics, store=store)
    (itself,) = found.comparisons
    assert (itself.paired, itself.probability.value, itself.probability.low) == (20, 0.0, 0.0)
    assert not any(one.moved for one in itself.rubrics)
    with pytest.raises(WrongUse, match="several logs"):
        pollex.compare(
            pollex.read_logs(learnt.log), learnt.log, rubrics=learnt.rubrics, store=store
        )


def test_logs_are_inspected_in_python() -> None:
    found = pollex.inspect([one | {"country": "DK"} for one in small_log()])
    assert repr(found) == "<Inspection: 48 conversations, 0 bad rows>"
    assert found.roles["user"] > 0
    assert "country" in found._repr_html_()
    assert found.to_frame().to_dict("list") == {"field": ["country"], "conversations": [48]}


def test_a_terminal_spells_options_and_settings_as_the_verb_takes_them() -> None:
    learn, judge = (
        pollex_command.get_command(click.Context(pollex_command), verb)
        for verb in ("learn", "judge")
    )
    assert learn is not None
    assert judge is not None
    said = {"label_field": "feedback.score", "thumbs": "last", "samples": 5, "messages_field": None}
    assert (
        spell_options_of_command(learn, said)
        == "--label-field feedback.score --set thumbs=last --samples 5 --messages-field"
    )
    assert (
        spell_options_of_command(judge, DEFAULT_RATING_BOUNDS)
        == "--positive '>=4' --negative '<=2'"
    )


def test_an_error_of_the_api_names_arguments_in_all_that_it_tells() -> None:
    assert (
        str(BadInput("both", hint="say which", option={"pairs": None}))
        == "both → say which: pairs="
    )
    log = [row("1", ["Hello.", "Hello!"])]
    with pytest.raises(PollexError) as found:
        pollex.read_logs(log, on_duplicate="best")
    assert (
        str(found.value)
        == "on_duplicate is 'best' → use one of error, first, last: on_duplicate='error'"
    )
    with pytest.raises(PollexError) as found:
        pollex.learn(log)
    assert "label_field=" in found.value.hint
    assert "--" not in str(found.value)
