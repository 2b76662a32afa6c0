"""The report: hostile text is inert, undefined figures are words, every state of a rubric set has a page."""

import base64
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages_read import HOSTILE, Reader, loud
from rubric_set_by_hand import (
    UNKNOWN,
    figure,
    figures,
    page,
    plain,
    rubric,
    rubric_set,
    scores,
    unknown_figures,
)

from pollex.measures.intervals import Figure
from pollex.reports.learning import SkippedItem, describe_authors, render_learning_page
from pollex.reports.numbers import NO_BREAK_SPACE
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.records import Baseline, ChosenRubric, JudgeRecord
from pollex.rubrics.rubric import Quote, Reason
from pollex.rubrics.worth import CurvePoint, Reach
from pollex.selection.losses import AlphaScore
from pollex.selection.threshold import GuaranteedWindow, Window, WindowSide


@pytest.fixture(scope="module")
def harmless() -> Reader:
    return Reader(page())


def test_hostile_text_in_every_field_makes_no_element_and_no_attribute(harmless: Reader) -> None:
    for text in HOSTILE:
        read = Reader(page(lambda words, text=text: text + words))
        assert (read.elements, read.links) == (harmless.elements, harmless.links), text[:80]


@settings(max_examples=10, deadline=None)
@given(text=st.text(alphabet=st.characters(codec=None), max_size=60))
def test_any_text_makes_no_element_and_no_attribute(text: str, harmless: Reader) -> None:
    assert Reader(page(lambda words: words + text)).elements == harmless.elements


def test_elements_are_quiet_ones_links_stay_on_the_page_and_headings_go_down_one_step_at_a_time(
    harmless: Reader,
) -> None:
    assert loud(harmless) == set()
    assert harmless.links
    assert all(re.fullmatch("#[a-z]+", link) for link in harmless.links)
    for text in (
        page(),
        render_learning_page(
            rubric_set(rubrics=(rubric(1, "sat"),), dropped=(), reasons=()), scores()
        ),
    ):
        assert {f'id="{link[1:]}"' in text for link in Reader(text).links} == {True}
        drawings = re.findall("<svg [^>]*>(.{7})", text)
        assert len(drawings) > 10
        assert set(drawings) == {"<title>"}
    assert harmless.headings[0] == 1
    assert harmless.headings.count(1) == 1
    assert all(
        after - before <= 1
        for before, after in zip(harmless.headings, harmless.headings[1:], strict=False)
    )
    assert page() == page()


def test_text_is_shown_as_it_was_written_controls_made_visible_and_no_address_can_be_followed() -> (
    None
):
    text = page(
        lambda words: (
            "\x1b\u202e\ud800<b>&amp; “quoted” $body " + words + " see https://example.org/a"
        )
    )
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
    )
    assert text.encode("utf-8")
    assert "//" not in text
    words = Reader(text).words
    assert (
        "\\x1b\\u202e\\ud800<b>&amp; “quoted” $body The user says thanks 1. see https://example.org/a"
        in words
    )
    assert "<b>&amp; “quoted” $body it works now, thanks" in words


def test_only_the_styles_of_the_page_itself_are_allowed() -> None:
    text = page()
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)


def test_a_hostile_path_and_an_unusual_store_stay_one_word_of_a_command() -> None:
    words = Reader(render_learning_page(rubric_set(), scores(), path="it's; reboot.json")).words
    assert """pollex score LOGS --rubrics 'it'"'"'s; reboot.json' --out""" in words
    assert "--store" not in page()
    words = Reader(render_learning_page(rubric_set(), scores(), store="my store")).words
    assert "pollex trace learn-1 --store 'my store'" in words
    assert "pollex why rubrics.json rubric1 --store 'my store'" in words


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_undefined_figures_are_words(value: float | None) -> None:
    unknown = Figure(
        value=value, n=3, undefined="only positive conversations" if value is None else ""
    )
    names = (
        "accuracy",
        "precision",
        "recall",
        "f1",
        "delta_netsat",
        "yield_rate",
        "confident_accuracy",
    )
    side = figures(unknown, **dict.fromkeys(names, unknown))
    words = Reader(
        page(training=side, held_out=side, baselines=(Baseline(name="TF-IDF", advantage=unknown),))
    ).words
    assert not re.search(r"\b(nan|None|inf|null)\b", words, re.IGNORECASE)
    assert words.count("only positive conversations" if value is None else "undefined") > 10


def test_nothing_held_out_or_one_class_is_said_and_leaves_no_column_and_no_curves() -> None:
    trained = [score for score in scores() if score.side == "training"]
    baseline = Baseline(name="TF-IDF", training=figures(figure(0.8)))
    words = Reader(
        render_learning_page(rubric_set(held_out=None, baselines=(baseline,)), trained)
    ).words
    assert "because nothing was held out, nobody knows by how much" in words
    assert "Nothing was held out, so there are only training figures" in words
    assert "Optimism is" not in words
    only = [score for score in scores() if score.side == "training" or score.positive]
    words = Reader(render_learning_page(rubric_set(held_out=unknown_figures()), only)).words
    assert "could not be measured: only positive conversations" in words
    assert "Precision curves need conversations of both labels." in words
    assert not re.search(r"\bnan\b", words, re.IGNORECASE)


def test_the_verdict_gives_the_interval_chance_and_optimism() -> None:
    text = page(
        training=figures(figure(0.91)),
        held_out=figures(Figure(value=0.68, low=0.54, high=0.8, n=60), n=60),
    )
    words = Reader(text).words
    assert (
        "held-out conversations, the rubrics rank a positive conversation above a negative one 68 % of the time "
        "(95 % interval 54–80 %); chance is 50 %." in words.replace("\N{NO-BREAK SPACE}", " ")
    )
    assert "includes chance" not in words
    assert '<td class="n" data-column="Optimism">+0.23</td>' in text
    words = Reader(page(held_out=figures(Figure(value=0.6, low=0.48, high=0.7, n=20)))).words
    assert "The interval includes chance" in words
    words = Reader(page(held_out=figures(Figure(value=0.7, n=2), n=2))).words
    assert "too few for an interval" in words
    assert "fewer than 5 conversations, in total or of one class, support the figure" in words


@pytest.mark.parametrize(
    ("advantage", "said"),
    [
        (
            Figure(value=0.1, low=0.02, high=0.2, n=20),
            "The rubrics rank better than TF-IDF: a difference of +10",
        ),
        (
            Figure(value=-0.1, low=-0.2, high=-0.02, n=20),
            "TF-IDF ranks better than the rubrics: a difference of −10",
        ),
        (
            Figure(value=0.1, low=-0.2, high=0.3, n=20),
            "It is not clear whether the rubrics rank better than TF-IDF",
        ),
    ],
)
def test_a_baseline_is_beaten_only_where_the_whole_interval_says_so(
    advantage: Figure, said: str
) -> None:
    assert said in Reader(page(baselines=(Baseline(name="TF-IDF", advantage=advantage),))).words


def test_it_says_who_did_the_work_and_by_whom_the_rubrics_were_written() -> None:
    assert "Built-in (no LLM)" in Reader(page()).words
    judge = JudgeRecord(kind="llm", name="big-model", fingerprint="f")
    words = Reader(
        page(judge=judge, roles={"extractor": "big-model", "deduplicator": "built-in (no LLM)"})
    ).words
    assert "Built-in (no LLM)" not in words
    assert "big-model (extractor) and built-in (no LLM) (deduplicator)" in words
    ours, theirs = (
        rubric(n, kind).model_copy(update={"source": of})
        for n, kind, of in ((1, "sat", "event:fails"), (2, "dsat", "summarize_dsat@43c5d8"))
    )
    fitted = theirs.model_copy(update={"written": theirs.text})
    reworded = theirs.model_copy(update={"written": "Other words."})
    assert "A program wrote them, no LLM." in describe_authors(rubric_set(rubrics=(ours,)))
    both = rubric_set(
        rubrics=(ours, theirs), roles={"summarizer": "big-model and built-in (no LLM)"}
    )
    assert (
        describe_authors(both)
        == "The model big-model wrote 1, a program without an LLM the other 1. "
    )
    assert describe_authors(
        rubric_set(rubrics=(ours, fitted), roles=both.roles)
    ) == describe_authors(both)
    assert describe_authors(rubric_set(rubrics=(ours, reworded), roles=both.roles)) == ""
    assert (
        "Rubrics were edited after θ was fitted: run pollex refit"
        in Reader(page(rubrics_digest="other")).words
    )


def test_only_an_alpha_among_several_was_chosen_by_cross_validation() -> None:
    alphas = tuple(
        AlphaScore(alpha=alpha, mean_auc=0.7, deviation=0.1, folds=5) for alpha in (0.1, 1.0, 10.0)
    )
    for rows in (0, 1, 3):
        words = Reader(page(alphas=alphas[:rows])).words
        assert ("It was chosen by cross-validation" in words) == (rows > 1)
        assert ("α was given, or there was nothing to cross-validate on." in words) == (rows == 0)
    one = render_learning_page(
        rubric_set(rubrics=(rubric(1, "sat"),), dropped=(), reasons=(), alphas=()), scores()
    )
    assert "1\N{NO-BREAK SPACE}rubric: 1 on how conversations end." in Reader(one).words
    assert "There is no rubric of this kind." in Reader(one).words
    assert "None: every rubric of the pool was chosen." in Reader(one).words


def test_a_rubric_that_a_person_added_comes_last_and_says_so() -> None:
    added = ChosenRubric.model_validate({"text": "The user smiles.", "polarity": "sat"})
    page_words = Reader(
        render_learning_page(rubric_set(rubrics=(added, rubric(1, "sat"))), scores())
    ).words
    words = page_words[page_words.index("How each rubric was chosen") :]
    assert words.index("The user says thanks 1.") < words.index("The user smiles.")
    assert "by a person" in words
    assert "no reason from the log" in words


def test_a_rubric_shows_loss_stability_support_and_of_how_many_its_quotes_are() -> None:
    words = Reader(page()).words
    assert "−0.125" in words
    assert "chosen in 64\N{NO-BREAK SPACE}%" in words
    assert "1\N{NO-BREAK SPACE}reason in 1\N{NO-BREAK SPACE}conversation" in words
    assert ", turn 3" in words
    assert "6.5" in words
    shown = rubric(1, "sat")
    more = (*shown.quotes, Quote(conversation_id="conversation 1", turn=5, text="so it does"))
    reason = Reason(
        id="reason1", conversation_id="conversation 1", polarity="sat", text="so", quotes=more
    )
    words = Reader(page(rubrics=(shown, rubric(2, "dsat")), reasons=(reason,))).words
    assert "1 of 2\N{NO-BREAK SPACE}quotes" in words
    assert " 1\N{NO-BREAK SPACE}quote " in words


def test_what_is_skipped_is_listed_once_and_the_most_frequent_reason_first() -> None:
    lost = LabelledScore("lost", "training", True, float("nan"), "refused")
    silent = LabelledScore("silent", "training", True, None, "truncated")
    words = Reader(
        render_learning_page(
            rubric_set(), [*scores(), lost, silent], [SkippedItem("lost", "unanswered: refused")]
        )
    ).words
    assert words.count(" lost ") == 1
    skipped = [
        SkippedItem("a", "rare"),
        SkippedItem("b", "often", "correct it"),
        SkippedItem("c", "often", "correct it"),
    ]
    told = Reader(render_learning_page(rubric_set(), scores(), skipped)).words
    assert told.index("often") < told.index("rare")
    assert told.count("correct it") == 1
    assert "no score: truncated" in words
    assert (
        "No conversation of this side has a score."
        in Reader(render_learning_page(rubric_set())).words
    )


def test_all_labeled_conversations_are_not_said_where_some_were_left_out() -> None:
    data = rubric_set().data.model_copy(update={"folds": 5, "held_out": 191})
    assert rubric_set(data=data).measured_on.startswith("all 191 labeled conversations, each")
    some = data.model_copy(update={"not_scorable": 89})
    assert rubric_set(data=some).measured_on.startswith(
        "all 191 labeled conversations that were kept (89 others were left out), each"
    )


def test_a_window_is_told_with_what_held_out_labels_showed() -> None:
    assert "labels outside it are right; on held-out conversations 60" in Reader(page()).words
    assert "labels outside it are right." in Reader(page(held_out=None)).words


def test_windows_are_put_in_words() -> None:
    for ends, said in (
        ((None, None), "every score is uncertain"),
        ((None, 3.0), "No threshold tells negative ones that often"),
        ((None, 3.0), "there are right; on held-out conversations 60"),
        ((-2.0, None), "No threshold tells positive ones that often"),
    ):
        assert said in Reader(page(window=Window(*ends, precision=0.9))).words
    side = WindowSide(threshold=None, confident=0, wrong=0, needed=46)
    record = GuaranteedWindow(lower=side, upper=side, precision=0.9, delta=0.1, n=24)
    words = Reader(page(guaranteed=record)).words
    assert (
        f"With a guarantee: labels on each side are right at least 90{NO_BREAK_SPACE}% of the time"
        in words
    )
    assert (
        "A second window, which promises how often the labels on each side of it are right" in words
    )
    same = [
        LabelledScore(f"{side}{i}", side, i % 2 == 0, 2.0)
        for side in ("training", "held_out")
        for i in range(4)
    ]
    text = render_learning_page(
        rubric_set(theta=2.0, window=Window(lower=2.0, upper=2.0, precision=0.9)), same
    )
    assert "nan" not in re.sub("<style>.*?</style>", "", text, flags=re.DOTALL).lower()


def test_thousands_of_scores_and_skipped_rows_stay_a_small_page() -> None:
    many = scores(plain, n=10_000)
    skipped = [SkippedItem(f"row {i}", "no label") for i in range(10_000)]
    means = {"rubric1": (None, None)}
    text = render_learning_page(rubric_set(held_out=figures(UNKNOWN)), many, skipped, means=means)
    assert len(text) < 400_000
    assert "and 9,800 more" in Reader(text).words


REACH = Reach(
    coverage=figure(0.3, n=56),
    false_alarms=figure(0.15, n=149),
    recall_up=figure(0.9, 0.05, n=149),
    recall_down=figure(0.5, n=56),
    beside="TF-IDF",
    recovered=figure(0.97, n=205),
    correlation={"sat": figure(0.13, n=205), "dsat": UNKNOWN},
    curve=(CurvePoint(labels=100, auc=figure(0.8)), CurvePoint(labels=200, auc=figure(0.82))),
    more=figure(0.004, 0.003, n=205),
)


def test_how_far_a_set_reaches_is_told_with_intervals_and_n() -> None:
    words = " ".join(Reader(page(reach=REACH)).words.replace(NO_BREAK_SPACE, " ").split())
    assert "decided to be bad 50 % 95 % interval 40–60 % 56" in words
    assert (
        "20 more labels would put about +0.4 more of 100 pairs in the right order (95 % interval +0.1 to +0.7, n = 205)"
        in words
    )
    assert "Dissatisfaction only positive conversations" in words
    paid = Figure(None, n=205, undefined="a model would have to be paid for it")
    without = REACH.model_copy(update={"curve": (), "more": paid})
    assert (
        "Not measured: a model would have to be paid for it." in Reader(page(reach=without)).words
    )
    assert "Not known: nothing was held out" in Reader(page(reach=None)).words


def test_few_cases_outside_the_window_say_nothing_of_how_often_these_are_right() -> None:
    few = figures(figure(0.7), confident_accuracy=Figure(0.0, 0.0, 0.975, 1))
    words = Reader(page(held_out=few)).words
    assert "too few clear cases to say" in words
    assert "0.97" not in words
    enough = figures(figure(0.7), confident_accuracy=Figure(0.9, 0.8, 0.97, 20))
    assert "too few clear cases" not in Reader(page(held_out=enough)).words


def test_how_sure_words_are_is_explained_once() -> None:
    words = Reader(page()).words
    assert words.count("at most 5 of 100 logs") == 1


@pytest.mark.parametrize("source", ["summarize_dsat@1", "event:fails"])
def test_figures_of_a_models_rubrics_are_not_of_what_was_learned_without_each(source: str) -> None:
    data = rubric_set().data.model_copy(update={"folds": 5})
    by_model = rubric(1, "dsat").model_copy(update={"source": source})
    words = Reader(page(data=data, rubrics=(by_model, rubric(2, "sat")))).words
    assert ("each by rubrics learned without it" in words) == (source == "event:fails")
    assert ("model wrote them from all of these" in words) == (source != "event:fails")
