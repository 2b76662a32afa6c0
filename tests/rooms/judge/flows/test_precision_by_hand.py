"""How right ratings are on either side of τ, on a small labelled log: counted by hand."""

import re
from math import log
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import Recorded
from web_site import client_of, made_app

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.measures.intervals import compute_clopper_pearson_interval
from pollex.rooms.judge.agents.votes import JudgeEnsemble, RatingRule, RatingTask, make_question
from pollex.rooms.judge.formats.verdicts import iterate_vote_rows
from pollex.rooms.judge.selection.consensus import get_interval_ends
from pollex.rooms.judge.services.judge_runs import ask_and_rate
from pollex.rooms.judge.services.verdicts import RatingPrecision, measure_precision
from pollex.runs.run import RunSettings
from pollex.store.rows import make_label_row
from pollex.store.store import Store

UP = Label.POSITIVE
DOWN = Label.NEGATIVE
VOTES = {  # votes of five runs, and the thumb
    "a": ("yyyyy", UP),
    "b": ("yyyyn", UP),
    "c": ("nnnnn", UP),
    "d": ("nynnn", DOWN),
    "e": ("yynnn", DOWN),
    "f": ("yyynn", DOWN),
    "g": ("nnnyy", UP),
    "h": ("yyyyy", Label.NONE),
}
"""Of seven with a thumb a to d pass, of which c is wrong; of e, f and g only e is right."""
QUESTION = make_question("Was it done?", ["yes", "no"])


def talk(id_: str, label: Label, judge: str | None = None, text: str = "") -> Conversation:
    said = Turn(role="user", content=f"Do {text or id_}."), Turn(role="assistant", content="Done.")
    return Conversation(id=id_, turns=said, label=label, judge=judge)


LOG = [talk(id_, label) for id_, (_, label) in VOTES.items()]


async def judged(
    store: Store, conversations: list[Conversation], rule: RatingRule, **options: Any
) -> tuple[str, RatingTask]:
    runs = {
        one.id: [{"y": "yes", "n": "no"}[vote] for vote in VOTES[one.id[0]][0]]
        for one in conversations
    }
    task = RatingTask(QUESTION, rule)
    ensemble = JudgeEnsemble(Recorded(runs), rule=rule, **options)
    setting = RunSettings.of(store)
    found = await ask_and_rate(
        conversations, ensemble, task, data_fingerprint="d" * 64, setting=setting
    )
    rows = list(iterate_vote_rows(store, found, conversations, "v2"))
    assert len(rows) == sum(tally.asked for tally in found.tallies.values())
    told = [rows[0][name] for name in ("conversation", "run", "answer", "variant", "outcome")]
    assert told == [conversations[0].id, 1, "yes", "v2", "answered"]
    return found.run, task


async def precision(
    store: Store, conversations: list[Conversation], **options: Any
) -> RatingPrecision:
    rule = RatingRule.of(5)
    run, task = await judged(store, conversations, rule, **options)
    found = measure_precision(store, run, task, rule, conversations)
    assert found is not None
    return found


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "store") as opened:
        yield opened


async def test_precision_and_its_curves_over_runs_and_tau_are_those_counted_by_hand(
    store: Store,
) -> None:
    """One run rates all, d by its first, so that e and g are wrong, too; with three all agree or one differs."""
    found = await precision(store, LOG)
    passed = found.chosen.passed
    left = found.chosen.left
    assert (passed.n, passed.right, left.n, left.right) == (4, 3, 3, 1)
    assert (passed.precision.value, left.precision.value, found.chosen.coverage.value) == (
        3 / 4,
        1 / 3,
        4 / 7,
    )
    assert get_interval_ends(passed.precision) == pytest.approx(
        compute_clopper_pearson_interval(3, 4)
    )
    assert found.people[0].texts == found.people[1].texts == 0
    by_runs = {point.n: point.sides for point in found.by_runs}
    assert list(by_runs) == [1, 2, 3, 4, 5]
    assert (by_runs[1].coverage.value, by_runs[1].passed.right) == (1.0, 3)  # a, b and d
    assert (by_runs[2].passed.n, by_runs[2].left.tied) == (6, 1)  # d is yes and no
    assert by_runs[3].coverage.value == 1.0  # of three any two agree
    assert by_runs[5] == found.chosen
    last = [point for point in found.by_tau if point.n == 5]
    entropies = [0.0, -0.8 * log(0.8) - 0.2 * log(0.2), -0.6 * log(0.6) - 0.4 * log(0.4)]
    assert [point.tau for point in last] == pytest.approx(entropies)
    assert [(point.sides.passed.n, point.sides.passed.right) for point in last] == [
        (2, 1),
        (4, 3),
        (7, 4),
    ]


async def test_runs_that_were_spared_give_no_curves_and_the_same_verdicts(store: Store) -> None:
    found = await precision(store, LOG, stop_early=True)
    assert (found.by_runs, found.by_tau) == ((), ())
    assert (found.chosen.passed.n, found.chosen.passed.right) == (4, 3)


async def test_people_stand_beside_on_the_side_where_the_runs_put_their_conversation(
    store: Store,
) -> None:
    """Ann and Bo agree about a, which passes, and not about e, which doesn't; about g Bo's label is in the store."""
    log = [
        *(talk(f"a{who}", UP, who, "a") for who in ("Ann", "Bo")),
        *(talk(f"e{who}", label, who, "e") for who, label in (("Ann", DOWN), ("Bo", UP))),
        talk("g", UP, "Ann"),
    ]
    store.put([make_label_row("elsewhere", log[-1], "thumb", "up", drawn="random", annotator="Bo")])
    await store.settle()
    found = await precision(store, log)
    passed, left = found.people
    assert (passed.texts, passed.agreed, left.texts, left.agreed) == (1, 1, 2, 1)
    assert left.as_json["share"] == 0.5


async def test_the_page_of_the_run_has_ratings_entropies_and_both_figures_where_thumbs_can_tell_them(
    store: Store,
) -> None:
    run, task = await judged(store, LOG, RatingRule.of(5))
    unlabelled = [one.model_copy(update={"label": Label.NONE}) for one in LOG]
    three = RatingTask(make_question("How?", ["a", "b", "c"]), task.rule)
    assert measure_precision(store, run, task, task.rule, unlabelled) is None
    assert measure_precision(store, run, three, task.rule, LOG) is None
    async with client_of(made_app(store)) as client:
        page = (await client.get(f"/runs/{run}")).text
    shown = page.partition('id="ratings"')[2].partition('id="graph"')[0]
    assert "0.750" in shown
    assert "0.333" in shown
    assert shown.count("<svg") == 2
    rows = [
        " ".join(re.findall(r">([^<>\n]+)<", row)) for row in shown.split("<tr>") if "<td" in row
    ]
    assert rows[0] == "yes 5 0 0.000 2"
    assert any(row.startswith("none 3 2 0.673 1") for row in rows)
