"""Runs of `learn` and `score`: failures that stay where they are, batches, states of ids, spans."""

import asyncio
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from plain_judges import Answers, Held, PlainJudge, by_length, except_for, likert, neutral, raises
from small_log import small_log, with_embeddings
from small_runs import Learnt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.roles import (
    Deduplication,
    Deduplicator,
    Extraction,
    Extractor,
    Judge,
    Roles,
    Summarizer,
    Summary,
)
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.conversations.splits import split_conversations
from pollex.errors import BadRubrics, Interrupted, ModelRefused, PollexError, WrongUse
from pollex.formats.peers.rubrics_in import load_rubrics_of_any_tool
from pollex.formats.read_logs import make_logs_of_conversations, read_logs
from pollex.graphs.context import SERVED_RUN_ID, NullProgress, Resources, hold_resources_of_thread
from pollex.graphs.learn.graph import build
from pollex.graphs.run import (
    RUN_ON_SERVER,
    compile_graph_with_checkpoints,
    get_last_state_after_node,
    make_run_config,
)
from pollex.graphs.score import ScoreContext
from pollex.graphs.score import build as build_score
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs import learn_runs as runs
from pollex.runs.pool_review import RunFork, make_pool_rows
from pollex.runs.roles import RunRoles, build_embedded_roles, make_embedded_judge_record
from pollex.runs.run import RunSettings
from pollex.runs.score_runs import ScoringResult, run_scoring
from pollex.store.resume import (
    count_conversations_by_outcome,
    find_run,
    iterate_scores,
    list_scored_ids,
)
from pollex.store.rows import AnswerRows, make_score_block
from pollex.store.store import Store
from pollex.store.traces import build_span_tree, collect_conversation_trace

QUICK = LearnSettings(stability=False)
SECRET = "a-key-that-nobody-must-see"


@pytest.fixture(scope="module")
def logs(learnt: Learnt) -> Logs:
    """Two conversations a user."""
    return make_logs_of_conversations(
        [c.model_copy(update={"group": f"u{n // 2}"}) for n, c in enumerate(read_logs(learnt.log))]
    )


@pytest.fixture
def rubrics(learnt: Learnt) -> RubricSet:
    return RubricSet.load(learnt.rubrics)


@pytest.fixture
def embedder(store: Path) -> Embedder:
    return Embedder(cache=store / "embeddings")


@pytest.fixture
def kept(store: Path) -> Iterator[Store]:
    with Store.open(store) as opened:
        yield opened


class OddExtractor:
    """The built-in extractor, but for some conversations."""

    name = "odd"
    fingerprint = "odd-1"

    def __init__(self, inner: Extractor, odd: Sequence[str], stopping: Sequence[str] = ()) -> None:
        self.inner = inner
        self.odd = odd
        self.stopping = stopping

    async def fit(self, training: Sequence[Conversation]) -> None:
        await self.inner.fit(training)

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        if conversation.id in self.stopping:
            raise ModelRefused("the key is wrong")
        if conversation.id in self.odd:
            raise ZeroDivisionError(f"{SECRET} in {conversation.id}")
        return await self.inner.extract(conversation)


def odd(embedder: Embedder, *ids: str, stopping: Sequence[str] = ()) -> OddExtractor:
    return OddExtractor(
        build_embedded_roles(DomainProfile.neutral(), embedder).extractor, ids, stopping
    )


def staff(
    embedder: Embedder, judge: Judge | None = None, extractor: Extractor | None = None
) -> Roles:
    """The built-in roles with another judge or extractor."""
    roles = build_embedded_roles(DomainProfile.neutral(), embedder)
    return Roles(
        extractor or roles.extractor, roles.summarizer, roles.deduplicator, judge or roles.judge
    )


async def learn(
    logs: Logs, roles: Roles, kept: Store, record: JudgeRecord, **setting: Any
) -> Learned:
    about = {"settings": setting.pop("settings", QUICK), "fork": setting.pop("fork", None)}
    asked = runs.LearningInput(logs=logs, profile=DomainProfile.neutral(), **about)
    workers = RunRoles(roles=roles, record=record, embedder=Embedder())
    run = runs.prepare_learning(asked, workers, RunSettings.of(kept, secrets=(SECRET,), **setting))
    return await run.carry_out()


async def score(
    logs: Logs, rubrics: RubricSet, judge: Judge, kept: Store, **setting: Any
) -> ScoringResult:
    return await run_scoring(
        logs.conversations,
        rubrics,
        judge=judge,
        data_fingerprint=logs.fingerprint,
        setting=RunSettings.of(kept, secrets=(SECRET,), **setting),
    )


class Whole(NamedTuple):
    """A store of one's own with a run of `learn` that nothing stopped, and what came of it."""

    kept: Store
    learned: Learned

    @property
    def run(self) -> str:
        return self.learned.run


@pytest.fixture(scope="module")
def first(
    learnt: Learnt, logs: Logs, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Learned]:
    folder = with_embeddings(tmp_path_factory.mktemp("first") / "kept", learnt.store / "embeddings")
    embedder = Embedder(cache=folder / "embeddings")
    with Store.open(folder) as kept:
        found = learn(
            logs,
            staff(embedder, PlainJudge(), odd(embedder)),
            kept,
            make_embedded_judge_record(embedder),
            batch=7,
        )
        return folder, asyncio.run(found)


@pytest.fixture
def whole(first: tuple[Path, Learned], store: Path) -> Iterator[Whole]:
    folder, learned = first
    with Store.open(shutil.copytree(folder, store, dirs_exist_ok=True)) as opened:
        yield Whole(opened, learned)


def same(learned: Learned) -> RubricSet:
    """What two runs that learned the same have in common."""
    return learned.rubric_set.model_copy(update={"created": "", "run": ""})


async def test_a_judge_that_fails_on_one_conversation_leaves_all_others_their_scores(
    logs: Logs, rubrics: RubricSet, kept: Store
) -> None:
    whole = await score(logs, rubrics, PlainJudge(), kept)
    broken = await score(
        logs, rubrics, PlainJudge(except_for("c007", raises(ValueError(SECRET)))), kept
    )
    assert (whole.counts, broken.counts) == ({"scored": 48}, {"error": 1, "scored": 47})
    before, after = (
        {
            found.conversation_id: found
            for some in iterate_scores(kept, one.run, rubrics, logs.conversations)
            for found in some
        }
        for one in (whole, broken)
    )
    assert {id_ for id_ in before if before[id_] != after[id_]} == {"c007"}
    assert (after["c007"].netsat, after["c007"].outcome) == (None, "error")
    trace = collect_conversation_trace(kept, broken.run, "c007")
    assert {step.name: step.error.split(":")[0] for step in trace.steps} == {
        f"judge_{side}": f"{len([r for r in rubrics.all_rubrics if r.polarity == side])} unanswered, the first"
        for side in ("sat", "dsat")
    }
    assert find_run(kept, broken.run).status == "partial"
    assert SECRET not in str(kept.rows("SELECT * FROM spans"))
    assert SECRET not in str(kept.ask(broken.run, "SELECT * FROM answers"))
    (graph,) = build_span_tree(kept, whole.run)
    assert {branch.name for branch in graph.branches} == set(build_score().nodes) - {"finish"}


async def test_what_fails_or_is_not_answered_in_learning_is_told_and_left_out_and_learning_goes_on(
    logs: Logs, kept: Store, embedder: Embedder
) -> None:
    sides = split_conversations(logs.learnable, 0.5, 0)
    odd_one = sides.train[3].id
    unjudged = sides.train[5].id
    training = {one.id for one in sides.train}
    shy = {one.id for one in sides.test[:3]}

    def choosy(conversation: Conversation, questions: Sequence[Question]) -> Answers:
        if conversation.id == unjudged:
            raise OSError("gone")
        answers, seldom = (
            by_length(conversation, questions),
            min(question.id for question in questions),
        )
        silent = conversation.id in shy or (
            conversation.id in training and int(conversation.id[1:]) % 3
        )
        return [
            Unanswered(question_id=seldom, outcome="refused")
            if silent and one.question_id == seldom
            else one
            for one in answers
        ]

    roles = staff(embedder, PlainJudge(choosy), odd(embedder, odd_one))
    learned = await learn(logs, roles, kept, make_embedded_judge_record(embedder))
    found = learned.rubric_set
    held_out = [one for one in learned.scores if one.side == "held_out"]
    assert list(learned.unextracted) == [odd_one]
    assert learned.unextracted[odd_one].detail.startswith("ZeroDivisionError: ")
    assert SECRET not in learned.unextracted[odd_one].detail
    assert {one.conversation_id for one in learned.scores if one.netsat is None} == {unjudged, *shy}
    for note in (
        "1 training conversation gave no reasons",
        "lack an answer; `pollex trace` of this run says why",
    ):
        assert any(note in one for one in found.notes), note
    assert any(note.startswith("Left out of all figures: 3 of 24 held-out") for note in found.notes)
    assert found.data.training == 23
    assert found.learned_from == {one.text_hash[:16] for one in sides.train}, (
        "the unjudged one gave reasons"
    )
    reasons = [dropped.reason for dropped in found.dropped if "answered on only" in dropped.reason]
    assert len(reasons) == 2, "one a kind"
    assert all(int(reason.split("only ")[1].split("%")[0]) < 50 for reason in reasons)
    assert found.held_out is not None
    assert found.calibrator is not None
    assert found.calibrator.held_out is not None
    scored = sum(one.netsat is not None for one in held_out)
    assert (found.held_out.n, found.calibrator.held_out.n, found.data.held_out, scored) == (21,) * 4
    assert find_run(kept, learned.run).status == "partial"
    tree = {branch.name: branch for branch in build_span_tree(kept, learned.run)[0].branches}
    assert (tree["extract"].count, tree["extract"].failed) == (24, 1)
    assert tree["judge_pool"].count == 48


@pytest.mark.nightly
@pytest.mark.parametrize("stopped_in", ["extract", "judge"])
async def test_what_failed_in_extraction_is_asked_again_by_a_resume_until_reasons_are_rubrics(
    logs: Logs, kept: Store, embedder: Embedder, stopped_in: str
) -> None:
    train = [one.id for one in split_conversations(logs.learnable, 0.5, 0).train]
    broken = PlainJudge(except_for(train[9], raises(ModelRefused("the key is wrong"))))
    first = odd(embedder, train[3], stopping=[train[20]] if stopped_in == "extract" else [])
    with pytest.raises(ModelRefused):
        await learn(
            logs,
            staff(embedder, broken, first),
            kept,
            make_embedded_judge_record(embedder),
            batch=8,
        )
    second = staff(embedder, PlainJudge(), odd(embedder))
    learned = await learn(
        logs, second, kept, make_embedded_judge_record(embedder), batch=8, resume=True
    )
    assert list(learned.unextracted) == ([] if stopped_in == "extract" else [train[3]])


@pytest.mark.nightly
@pytest.mark.parametrize("side", ["train", "test"])
async def test_a_resume_leaves_the_answers_that_rubrics_were_chosen_by_and_asks_again_what_failed_beside_them(
    logs: Logs, kept: Store, embedder: Embedder, side: str
) -> None:
    unjudged = getattr(split_conversations(logs.learnable, 0.5, 0), side)[5].id
    broken = PlainJudge(except_for(unjudged, raises(OSError("gone"))))
    record = make_embedded_judge_record(embedder)
    first = await learn(logs, staff(embedder, broken), kept, record)
    mended = PlainJudge()
    again = await learn(logs, staff(embedder, mended), kept, record, resume=True)
    assert {id_ for id_, _ in mended.asked} == ({unjudged} if side == "test" else set())
    assert (first.run, first.rubric_set.rubrics_digest) == (
        again.run,
        again.rubric_set.rubrics_digest,
    )
    assert again.rubric_set.data.training == (24 if side == "test" else 23)


async def test_what_stops_all_work_ends_the_run_as_failed_and_a_resume_asks_only_for_the_rest(
    logs: Logs, rubrics: RubricSet, kept: Store
) -> None:
    first = PlainJudge(except_for("c020", raises(ModelRefused("the key is wrong"))))
    with pytest.raises(ModelRefused):
        await score(logs, rubrics, first, kept, batch=8)
    assert find_run(kept, "last").status == "failed"
    done = list_scored_ids(kept, find_run(kept, "last").id)
    assert len(done) == 16
    second = PlainJudge()
    scored = await score(logs, rubrics, second, kept, batch=8, resume=True)
    assert scored.counts == {"scored": 48}
    assert {id_ for id_, _ in second.asked}.isdisjoint(done)
    assert len(second.asked) == 2 * 32
    with pytest.raises(WrongUse, match="unfinished"):
        await score(make_logs_of_conversations(list(logs)[:3]), rubrics, second, kept, resume=True)


@pytest.mark.nightly
async def test_learning_in_batches_of_one_stays_within_its_recursion_limit_and_learns_the_same(
    logs: Logs, whole: Whole, embedder: Embedder
) -> None:
    roles = staff(embedder, PlainJudge(), odd(embedder))
    assert same(
        await learn(logs, roles, whole.kept, make_embedded_judge_record(embedder), batch=1)
    ) == same(whole.learned)


async def test_a_judge_that_says_the_same_of_all_leaves_no_nan_anywhere(
    logs: Logs, kept: Store, embedder: Embedder, tmp_path: Path
) -> None:
    learned = await learn(
        logs, staff(embedder, PlainJudge(neutral)), kept, make_embedded_judge_record(embedder)
    )
    rubrics = learned.rubric_set
    assert rubrics.held_out is not None
    assert rubrics.held_out.auc.value == 0.5
    assert (rubrics.window.lower, rubrics.window.upper) == (None, None)
    rubrics.save(tmp_path / "rubrics.json")  # refuses NaN
    assert RubricSet.load(tmp_path / "rubrics.json") == rubrics


async def test_a_judge_or_an_extractor_that_finds_nothing_leaves_no_rubric_to_choose(
    logs: Logs, kept: Store, embedder: Embedder
) -> None:
    down = staff(embedder, PlainJudge(raises(RuntimeError("down"))))
    for roles in (down, staff(embedder, extractor=odd(embedder, *(one.id for one in logs)))):
        with pytest.raises(BadRubrics, match="no rubric to choose from"):
            await learn(logs, roles, kept, make_embedded_judge_record(embedder))
        assert find_run(kept, "last").status == "failed"


async def test_where_no_held_out_conversation_has_a_score_that_is_said(
    logs: Logs, kept: Store, embedder: Embedder
) -> None:
    held_out = {c.id for c in split_conversations(logs.learnable, 0.5, 0).test}

    def silent(conversation: Conversation, questions: Sequence[Question]) -> Answers:
        unanswered = Unanswered(question_id=questions[0].id, outcome="refused")
        first, *others = by_length(conversation, questions)
        return [unanswered if conversation.id in held_out else first, *others]

    found = (
        await learn(
            logs, staff(embedder, PlainJudge(silent)), kept, make_embedded_judge_record(embedder)
        )
    ).rubric_set
    assert found.held_out is None
    assert any(
        note.startswith("Left out of all figures: 24 of 24 held-out") for note in found.notes
    )
    assert not any("Nothing was held out" in note for note in found.notes)


async def test_a_run_tells_what_happened_in_spans_and_states_of_json_and_who_goes_together(
    whole: Whole,
) -> None:
    (tree,) = build_span_tree(whole.kept, whole.run)
    assert {branch.name for branch in tree.branches} == set(build().nodes) - {
        "finish",
        "review_pool",
        "reword",
    }
    async with compile_graph_with_checkpoints(build(), whole.kept) as graph:
        history = [
            (one.next, one.values)
            async for one in graph.aget_state_history(make_run_config(whole.run))
        ][::-1]
    assert {node for following, _ in history for node in following} >= set(build().nodes)
    last = history[-1][1]
    assert json.loads(json.dumps(last)) == last
    assert len(json.dumps(last)) < 300_000
    rubrics = whole.learned.rubric_set
    assert [row["id"] for row in last["chosen"]] == [rubric.id for rubric in rubrics.rubrics]
    told = (last["digest"], last["alpha"], last["notes"])
    assert told == (rubrics.rubrics_digest, rubrics.alpha, list(rubrics.notes))
    assert rubrics.held_out is not None
    assert last["figures"]["auc"]["value"] == rubrics.held_out.auc.value
    assert last["split"]["training"] == last["progress"]["extract"]["done"] == 24
    assert last["pooled"].keys() == {row["id"] for row in last["kept"]}
    assert last["reasons"]["dsat"]["first"][0]["quotes"]
    held_out = [one for one in whole.learned.scores if one.side == "held_out"]
    assert (len(held_out), len({one.block for one in held_out})) == (24, 12)
    record = rubrics.guaranteed
    assert record is not None
    assert record.blocks is not None
    assert (record.held_out, record.blocks[0]) == (24, 12)


async def test_a_run_that_is_stopped_again_and_again_goes_on_at_that_node_and_comes_to_the_same(
    logs: Logs, whole: Whole, embedder: Embedder
) -> None:
    sides = split_conversations(logs.learnable, 0.5, 0)
    kept = whole.kept
    runs_seen = set[str]()
    stops = {
        "extract": sides.train[9].id,
        "judge_pool": sides.train[9].id,
        "judge_held_out": sides.test[9].id,
    }
    setting: dict[str, Any] = {"batch": 8}
    for node, stop in stops.items():
        judge = PlainJudge(
            except_for("" if node == "extract" else stop, raises(ModelRefused("the key is wrong")))
        )
        extractor = odd(embedder, stopping=[stop] if node == "extract" else [])
        with pytest.raises(ModelRefused):
            await learn(
                logs,
                staff(embedder, judge, extractor),
                kept,
                make_embedded_judge_record(embedder),
                **setting,
            )
        setting["resume"] = True
        runs_seen.add(find_run(kept, "last").id)
        async with compile_graph_with_checkpoints(build(), kept) as graph:
            assert (await graph.aget_state(make_run_config(max(runs_seen)))).next == (node,)
    judge = PlainJudge()
    again = await learn(
        logs,
        staff(embedder, judge, odd(embedder)),
        kept,
        make_embedded_judge_record(embedder),
        **setting,
    )
    assert runs_seen == {again.run}
    assert again.run != whole.run
    assert same(again) == same(whole.learned)
    assert not {id_ for id_, _ in judge.asked} & {one.id for one in sides.train}


async def test_a_fork_goes_on_with_another_pool_and_neither_extracts_nor_summarizes_again(
    logs: Logs, whole: Whole, embedder: Embedder, tmp_path: Path
) -> None:
    record = make_embedded_judge_record(embedder)
    kept = whole.kept
    state = await get_last_state_after_node(kept, find_run(kept, whole.run), "deduplicate")
    pool = [Rubric(id="", text=row["text"], polarity=row["polarity"]) for row in state["kept"]]
    nobody = staff(embedder, PlainJudge(), odd(embedder, *(one.id for one in logs)))
    own = Rubric(id="", text="The assistant says when it will be back.", polarity="sat")
    forked = await learn(
        logs,
        nobody,
        kept,
        record,
        fork=RunFork(whole.run, "deduplicate", make_pool_rows([*pool[1:], own])),
    )
    after = await get_last_state_after_node(kept, find_run(kept, forked.run), "assess")
    assert after["parent"] == f"{whole.run}:deduplicate"
    assert [row["text"] for row in after["kept"]] == [*(one.text for one in pool[1:]), own.text]
    assert forked.run != whole.run
    assert not forked.unextracted
    both = [*state["kept"], {"id": "", "text": own.text, "polarity": "sat"}]
    handed_out = tmp_path / "state.json"
    handed_out.write_text(json.dumps({**state, "kept": both}))
    assert [(one.text, one.polarity) for one in load_rubrics_of_any_tool(handed_out)] == [
        (row["text"], row["polarity"]) for row in both
    ]
    unedited = await learn(logs, nobody, kept, record, fork=RunFork(whole.run, "deduplicate"))
    assert same(unedited) == same(whole.learned)


class Telling:
    """The built-in deduplicator, which tells what it was shown."""

    name = "telling"
    fingerprint = "telling-1"

    def __init__(self, inner: Deduplicator) -> None:
        self.inner, self.shown = inner, list[Rubric]()

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        self.shown += rubrics
        return await self.inner.deduplicate(rubrics)


class Repeating:
    """The built-in summarizer, which writes each rubric in capitals, too."""

    name = "repeating"
    fingerprint = "repeating-1"

    def __init__(self, inner: Summarizer) -> None:
        self.inner = inner

    async def summarize(self, *given: Any, **more: Any) -> Summary | Unanswered:
        found = await self.inner.summarize(*given, **more)
        assert isinstance(found, Summary)
        loud = [
            one.model_copy(update={"id": f"{one.id}!", "text": one.text.upper()})
            for one in found.rubrics
        ]
        return found.model_copy(update={"rubrics": (*found.rubrics, *loud)})


async def test_rubrics_of_equal_text_are_one_before_anybody_is_asked(
    logs: Logs, whole: Whole, embedder: Embedder
) -> None:
    kept = whole.kept
    record = make_embedded_judge_record(embedder)
    roles = staff(embedder)
    telling = Telling(roles.deduplicator)
    repeating = replace(roles, summarizer=Repeating(roles.summarizer), deduplicator=telling)
    learned = await learn(logs, repeating, kept, record)
    texts = [(one.polarity, one.text.casefold()) for one in telling.shown]
    assert len(texts) == len(set(texts))
    state = await get_last_state_after_node(kept, find_run(kept, learned.run), "deduplicate")
    assert sum(id_.endswith("!") for id_ in state["merged"]) + sum(
        row["id"].endswith("!") for row in state["kept"]
    )
    given = [
        Rubric(id=str(n), text=text, polarity="sat")
        for n, text in enumerate(("The user pays.", "the user pays"))
    ]
    assert [one.id for one in runs.drop_duplicate_rubrics(given, NullProgress())] == ["0"]
    assert [
        one.id for one in runs.drop_duplicate_rubrics([given[0], given[0]], NullProgress())
    ] == ["0"]


NIGHTLY = [
    pytest.param(node, marks=pytest.mark.nightly) for node in ("judge_pool", "select", "calibrate")
]


@pytest.mark.parametrize("node", [*NIGHTLY, "judge_held_out"])
async def test_a_fork_after_the_pool_was_judged_pays_for_no_answer_again(
    logs: Logs, whole: Whole, embedder: Embedder, node: str
) -> None:
    record = make_embedded_judge_record(embedder)
    kept = whole.kept
    judge = PlainJudge()
    roles = staff(embedder, judge, odd(embedder))
    training = {one.id for one in split_conversations(logs.learnable, 0.5, 0).train}
    unedited = await learn(logs, roles, kept, record, fork=RunFork(whole.run, node))
    assert not judge.asked
    assert same(unedited) == same(whole.learned)
    pool = (await get_last_state_after_node(kept, find_run(kept, whole.run), node))["kept"]
    own = {"id": "", "text": "The assistant says when it will be back.", "polarity": "sat"}
    fewer = await learn(logs, roles, kept, record, fork=RunFork(whole.run, node, pool[1:]))
    assert not {id_ for id_, _ in judge.asked} & training
    assert pool[0]["text"] not in {
        one.text for one in (*fewer.rubric_set.rubrics, *fewer.rubric_set.dropped)
    }
    judge.asked.clear()
    await learn(logs, roles, kept, record, fork=RunFork(whole.run, node, [*pool, own]))
    assert {n for id_, n in judge.asked if id_ in training} == {1}, "what is new, alone"


async def test_a_fork_that_cannot_be_is_refused_with_what_is_wrong(
    logs: Logs, whole: Whole, embedder: Embedder
) -> None:
    roles = staff(embedder, PlainJudge(), odd(embedder))
    record = make_embedded_judge_record(embedder)
    refused: list[tuple[str, list[tuple[str, Any]], dict[str, Any], str]] = [
        ("deduplicate", [("a", "sat"), ("a", "sat")], {}, "stands there twice"),
        ("deduplicate", [(" ", "sat")], {}, "without text"),
        ("deduplicate", [("a", "sat"), ("A", "dsat")], {}, "is both sat and dsat"),
        (
            "deduplicate",
            [],
            {"settings": LearnSettings(stability=False, seed=1)},
            "seed: 0, and now 1",
        ),
        ("assess", [], {}, "nothing comes after 'assess'"),
        ("nowhere", [], {}, "has no state after 'nowhere'"),
        ("summarize_sat", [("a", "sat")], {}, "there is no pool after"),
    ]
    for node, pool, changed, words in refused:
        rows = [{"id": "", "text": text, "polarity": side} for text, side in pool]
        with pytest.raises(PollexError, match=words):
            await learn(
                logs, roles, whole.kept, record, fork=RunFork(whole.run, node, rows), **changed
            )
    assert find_run(whole.kept, "last").id == whole.run


async def test_a_servers_thread_goes_on_in_another_process_in_the_middle_of_a_batch(
    logs: Logs, rubrics: RubricSet, kept: Store
) -> None:
    saver = InMemorySaver()
    whole = await score(logs, rubrics, PlainJudge(), kept)
    stops = build_score().compile(checkpointer=saver, interrupt_before=["compute_netsat"])
    graph = build_score().compile(checkpointer=saver)
    stopped = list[str]()

    async def first(live: Resources) -> dict[str, Any]:
        with hold_resources_of_thread("a thread", live):
            await stops.ainvoke({}, make_run_config("a thread"), context=ScoreContext())
        stopped.append(live.run)
        raise Interrupted("the server was ended")

    async def then(live: Resources) -> dict[str, Any]:
        with hold_resources_of_thread("a thread", live):
            return await graph.ainvoke(None, make_run_config("a thread"), context=ScoreContext())

    RUN_ON_SERVER.set(first)
    with pytest.raises(Interrupted):
        await score(logs, rubrics, PlainJudge(), kept, batch=20)
    RUN_ON_SERVER.set(then)
    SERVED_RUN_ID.set(stopped[0])
    found = await score(logs, rubrics, PlainJudge(), kept, batch=20)
    assert (found.run, found.counts) == (stopped[0], whole.counts)
    assert found.run != whole.run
    sql = "SELECT * EXCLUDE (run, seq) FROM scores ORDER BY conversation"
    assert kept.ask(found.run, sql) == kept.ask(whole.run, sql)


async def test_counts_of_outcomes_agree_with_the_scores_and_the_last_answer_stands(
    logs: Logs, rubrics: RubricSet, kept: Store
) -> None:
    rng = random.Random(2)
    questions = rubrics.questions
    netsat = rubrics.scorer_of()
    run = kept.begin("score", arguments={}, fingerprint={}, versions={})
    outcomes = ("refused", "error", "truncated", "")
    for conversation in logs:
        for _ in range(2):  # the second time stands
            weights = rng.choice([(1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 1, 1), (1, 1, 1, 0)])
            drawn = rng.choices(outcomes, weights, k=len(questions))
            answers = [
                Unanswered(question_id=q.id, outcome=outcome) if outcome else likert(q, 3)  # type: ignore[arg-type]
                for q, outcome in zip(questions, drawn, strict=True)
            ]
            pairs = list(zip(questions, answers, strict=True))
            rng.shuffle(pairs)
            kept.put(
                AnswerRows(run.id).of(
                    conversation, [q for q, _ in pairs], [a for _, a in pairs], "f"
                )
            )
            kept.put([make_score_block(run.id, netsat.score_all({conversation.id: answers}))])
    await kept.settle()
    counted = count_conversations_by_outcome(kept, run.id)
    found = [
        one
        for some in iterate_scores(kept, run.id, rubrics, logs.conversations)
        for one in some.column("outcome")
    ]
    assert counted == {outcome: found.count(outcome) for outcome in sorted(set(found))}
    assert len(counted) >= 4
    assert sum(counted.values()) == 48


@pytest.mark.nightly
async def test_no_more_answers_are_held_at_a_time_than_two_batches_have(
    rubrics: RubricSet, kept: Store
) -> None:
    few = rubrics.model_copy(update={"rubrics": rubrics.rubrics[:2]})
    turns = [one["messages"] for one in small_log()]
    logs = make_logs_of_conversations(
        Conversation.model_validate({"id": f"n{n}", "turns": turns[n % len(turns)]})
        for n in range(200)
    )
    held = Held(by_length)
    judge = PlainJudge(held)
    scored = await score(logs, few, judge, kept, batch=32)
    assert scored.counts == {"scored": 200}
    assert judge.peak <= 2 * max(judge.prepared) == 2 * 32
    assert 0 < held.most <= 2 * 2 * 32  # of 2 * 200
