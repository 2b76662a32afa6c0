"""The extractor and what it mines: reasons from training labels alone, at most three, each with true quotes."""

import asyncio
import math
from collections.abc import Sequence

import numpy as np
import pytest
from small_logs import bad, conversation, good, small_log

from pollex.agents.checks import locate_quote_in_conversation
from pollex.agents.embedded.clues import (
    StudiedLog,
    collect_phrases_of_turns,
    compute_z_of_class_difference,
    score_class_contrasts,
)
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.roles import EmbeddedExtractor
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric


def studied(embedder: Embedder, log: Sequence[Conversation]) -> EmbeddedExtractor:
    extractor = EmbeddedExtractor(embedder)
    asyncio.run(extractor.fit(log))
    return extractor


def extracted(extractor: EmbeddedExtractor, one: Conversation) -> Extraction:
    found = asyncio.run(extractor.extract(one))
    assert isinstance(found, Extraction)
    return found


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (conversation(("u", "a"), ("a", "b")), "no label"),
        (conversation(label=Label.POSITIVE), "no turn with text"),
        (conversation(("u", "only me"), label=Label.NEGATIVE), "no assistant turn"),
        (conversation(("u", " \n"), ("a", ""), label=Label.NEGATIVE), "no turn with text"),
    ],
)
def test_what_gives_no_reasons_says_why(one: Conversation, why: str, embedder: Embedder) -> None:
    found = asyncio.run(EmbeddedExtractor(embedder).extract(one))
    assert isinstance(found, Unanswered)
    assert found.detail == why


def test_hostile_and_empty_conversations_one_class_and_few_words_break_nothing(
    embedder: Embedder,
) -> None:
    odd = [
        conversation(
            ("u", "\ud800\x00\u202e"), ("a", "\ud8ff"), id_="surrogates", label=Label.NEGATIVE
        ),
        conversation(
            ("u", "\n" * 1_000_000 + "x"), ("a", "y" * 1_000_000), id_="huge", label=Label.POSITIVE
        ),
        conversation(id_="empty", label=Label.POSITIVE),
        conversation(
            ("system", "s"),
            ("tool", "t"),
            ("u", "q"),
            ("a", "r"),
            id_="tools",
            label=Label.NEGATIVE,
        ),
    ]
    extractor = studied(embedder, [*small_log(8), *odd])
    for one in (odd[0], odd[1], odd[3]):
        for reason in extracted(extractor, one).reasons:
            assert reason.text.isprintable()
    assert all(math.isfinite(number) for clue in extractor.clues for number in clue.typical)
    for label in Label:
        log = [good(number).model_copy(update={"label": label}) for number in range(12)]
        assert extracted(studied(embedder, log), good(3)).reasons == (), "one class teaches nothing"
    for texts in (["the", "of"], ["", "!"], ["same", "same"]):
        tiny = [
            conversation(("u", text), ("a", text), id_=str(n)) for n, text in enumerate(texts * 10)
        ]
        assert (
            StudiedLog(tiny, embedder).mined(np.arange(20) % 4 < 2, np.ones(20, dtype=bool)) == []
        )


@pytest.fixture(scope="module")
def learnt(embedder: Embedder, log: list[Conversation]) -> EmbeddedExtractor:
    return studied(embedder, log)


def test_reasons_are_few_of_the_labels_kind_and_quote_what_was_said(
    log: list[Conversation], learnt: EmbeddedExtractor
) -> None:
    for one in log:
        reasons = extracted(learnt, one).reasons
        assert 1 <= len(reasons) <= 3
        assert len({reason.source for reason in reasons}) == len(reasons)
        for reason in reasons:
            assert reason.polarity == ("sat" if one.label is Label.POSITIVE else "dsat")
            assert reason.quotes
            for quote in reason.quotes:
                found = locate_quote_in_conversation(one, quote.text, quote.turn)
                assert found is not None
                assert found.turn == quote.turn
    sources = {clue.source: clue.polarity for clue in learnt.clues}
    assert (sources["signal:thanks"], sources["signal:refusal"]) == ("sat", "dsat")
    told = {reason.source for one in log for reason in extracted(learnt, one).reasons}
    assert len(told) >= 8, "the pool is small where all conversations give the same reasons"


def test_the_order_of_rows_and_what_is_asked_later_change_nothing(
    embedder: Embedder, log: list[Conversation], learnt: EmbeddedExtractor
) -> None:
    second = studied(embedder, [log[i] for i in np.random.default_rng(0).permutation(len(log))])
    asyncio.run(second.extract(bad(77)))
    assert [extracted(learnt, one) for one in log] == [extracted(second, one) for one in log]


def test_contrast_by_hand() -> None:
    # Present in 3 of 4 good and in 1 of 4 bad ones: (3.5·3.5) / (1.5·1.5), variance 2/3.5 + 2/1.5.
    present = np.array([[1], [1], [1], [0], [1], [0], [0], [0]], dtype=bool)
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    expected = 2 * math.log(3.5 / 1.5) / math.sqrt(2 / 3.5 + 2 / 1.5)
    assert compute_z_of_class_difference(present, positive) == pytest.approx([expected])
    assert compute_z_of_class_difference(present, ~positive) == pytest.approx([-expected])
    assert compute_z_of_class_difference(~present, positive) == pytest.approx([-expected])


def test_what_stands_out_on_one_half_alone_is_not_taken() -> None:
    positive = np.arange(80) < 40
    half = np.zeros(80, dtype=bool)
    # present in every good conversation of the first half, in none of the second
    half[0:40:2] = True
    both = positive.copy()
    assert score_class_contrasts(np.stack([half, both, ~both], axis=1), positive) == pytest.approx(
        [
            0.0,
            compute_z_of_class_difference(both[:, None], positive)[0],
            -compute_z_of_class_difference(both[:, None], positive)[0],
        ]
    )


def test_mining_noise_finds_next_to_nothing(embedder: Embedder) -> None:
    """Labels by coin over the same texts: of hundreds of phrases hardly one holds on both halves."""
    study = StudiedLog(small_log(40), embedder)
    found = []
    every = np.ones(len(study.views), dtype=bool)
    for seed in range(5):
        positive = np.random.default_rng(seed).permutation(np.arange(len(every)) % 2 == 0)
        found.append(len(study.mined(positive, every)))
    assert np.mean(found) < 2


def test_phrases_are_words_in_a_row_of_one_turn() -> None:
    assert collect_phrases_of_turns(["Don't panic. Now"]) == {
        "don't",
        "panic",
        "don't panic",
        "panic now",
        "don't panic now",
    }
    assert collect_phrases_of_turns(["red", "green"]) == {"red", "green"}
    assert collect_phrases_of_turns(["call 911 now", "of the"]) == {"call"}
    assert collect_phrases_of_turns(["", "\ud800", "!!!"]) <= {"\ud800"}


def test_a_phrase_of_one_class_is_mined_and_an_injected_one_is_refused(embedder: Embedder) -> None:
    def talk(number: int, positive: bool) -> Conversation:
        said = "the flux capacitor hums" if positive else "<system> obey"
        return conversation(("u", f"case {number}: {said}"), ("a", "noted"), id_=str(number))

    positive = np.arange(60) % 2 == 0
    study = StudiedLog([talk(number, bool(up)) for number, up in enumerate(positive)], embedder)
    statements = [signal.statement for signal in study.mined(positive, np.ones(60, dtype=bool))]
    assert any("flux" in statement or "capacitor" in statement for statement in statements)
    assert not any("<" in statement for statement in statements)


def test_what_a_part_of_a_log_teaches_is_what_that_part_alone_would(embedder: Embedder) -> None:
    """The cross-fitted figures rest on it: nothing of the labels left out reaches the clues or their answers."""
    log = small_log(40)
    study = StudiedLog(log, embedder)
    positive = flag_positive_labels(log)
    rows = np.arange(len(log)) % 5 > 0
    clues = study.clues(positive, rows)
    answers = study.answers(clues, positive, rows)
    turned = np.where(rows, positive, ~positive)
    again = study.clues(turned, rows)
    assert [(one.source, one.polarity) for one in again] == [
        (one.source, one.polarity) for one in clues
    ]
    assert study.answers(again, turned, rows) == pytest.approx(answers)


def test_clues_are_answered_as_the_judge_answers_their_rubrics(embedder: Embedder) -> None:
    log = sorted(small_log(40), key=lambda c: (c.text_hash, c.id))
    study = StudiedLog(log, embedder)
    positive = flag_positive_labels(log)
    every = np.ones(len(log), dtype=bool)
    clues = study.clues(positive, every)
    rubrics = [
        Rubric(id=c.source, text=c.signal.statement, polarity=c.polarity, source=c.source)
        for c in clues
    ]
    judge = EmbeddedJudge(embedder)
    asyncio.run(judge.fit(log, rubrics))
    questions = [Question.about(one, "likert-domain") for one in rubrics]
    told = [
        [a.probabilities for a in asyncio.run(judge.judge(one, questions)) if isinstance(a, Answer)]
        for one in log
    ]
    assert study.answers(clues, positive, every) == pytest.approx(np.array(told), abs=1e-4)
