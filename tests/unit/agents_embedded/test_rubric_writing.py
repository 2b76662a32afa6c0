"""Where rubrics come from without a model: reasons and quotes, a person's new wording, and lists written by hand."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from pollex.agents.checks import explain_rubric_refusal
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import find_evidence_for_own_words, is_sentence_negated
from pollex.agents.embedded.roles import EmbeddedDeduplicator, EmbeddedSummarizer
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.agents.roles import Deduplication, Summary
from pollex.errors import BadRubrics
from pollex.reports.learning import describe_scoring_cost
from pollex.rubrics.edits import list_bundled_rubric_set_names, read_rubrics
from pollex.rubrics.rubric import MAX_QUOTES_PER_RUBRIC, Quote, Reason, Rubric


def reason(number: int, source: str = "signal:thanks", said: str = "thanks") -> Reason:
    quote = Quote(conversation_id=str(number), turn=2, text=said)
    statement = (
        "The user thanks the assistant."
        if source == "signal:thanks"
        else f"The user says “{source}”."
    )
    return Reason(
        id=f"r{number}{source}",
        conversation_id=str(number),
        polarity="sat",
        text=statement,
        quotes=(quote,),
        source=source,
    )


def summarized(
    reasons: Sequence[Reason], known: Sequence[Rubric] = (), words: Sequence[str] = ()
) -> Summary:
    found = asyncio.run(EmbeddedSummarizer(words).summarize(reasons, known, "sat"))
    assert isinstance(found, Summary)
    return found


def rubric(
    text: str, id_: str, polarity: str = "sat", source: str = "llm", support: int = 1
) -> Rubric:
    reasons = tuple(f"{id_}-{number}" for number in range(support))
    quotes = tuple(Quote(conversation_id=name, turn=0, text=name) for name in reasons)
    return Rubric(
        id=id_, text=text, polarity=polarity, source=source, reason_ids=reasons, quotes=quotes
    )


def deduplicated(embedder: Embedder, *rubrics: Rubric) -> Deduplication:
    return asyncio.run(EmbeddedDeduplicator(embedder).deduplicate(rubrics))


def test_a_rubric_a_source_with_all_its_reasons_also_those_of_a_later_batch() -> None:
    assert summarized([]).rubrics == ()
    found = summarized([reason(1), reason(2, "other"), reason(3)])
    assert [r.source for r in found.rubrics] == ["signal:thanks", "other"]
    assert found.rubrics[0].reason_ids == ("r1signal:thanks", "r3signal:thanks")
    later = summarized([reason(4), reason(5, "third")], found.rubrics)
    assert later.supported == {found.rubrics[0].id: (reason(4),)}
    assert [r.source for r in later.rubrics] == ["third"]


def test_domain_words_enter_where_the_quotes_use_them() -> None:
    reasons = [reason(n, said="thanks, the exception is gone") for n in range(4)] + [
        reason(9, said="thanks, breakpoint")
    ]
    (found,) = summarized(reasons, words=("breakpoint", "exception", "stack")).rubrics
    assert found.text == "The user thanks the assistant, mostly about exception."
    (plain,) = summarized(reasons).rubrics
    assert plain.text == "The user thanks the assistant."


def test_near_rubrics_become_one_and_no_reason_is_lost(embedder: Embedder) -> None:
    less = rubric("The user thanks the assistant for its help.", "a", support=1)
    more = rubric("The user thanks the assistant for the help.", "b", support=20)
    other = rubric("The assistant shows runnable code.", "c")
    found = deduplicated(embedder, less, other, more)
    assert found.merged == {"a": "b"}
    assert [r.id for r in found.kept] == ["c", "b"]
    assert set(found.kept[1].reason_ids) == {*less.reason_ids, *more.reason_ids}
    assert len(found.kept[1].quotes) == MAX_QUOTES_PER_RUBRIC


def test_different_signals_and_sides_are_never_merged_whatever_words_they_share(
    embedder: Embedder,
) -> None:
    topic = ", mostly about code and exception."
    pool = [
        rubric(s.statement.removesuffix(".") + topic, name, source=f"signal:{name}")
        for name, s in SIGNALS_BY_NAME.items()
    ]
    assert deduplicated(embedder, *pool).merged == {}
    same = "The assistant answers briefly."
    assert (
        deduplicated(embedder, rubric(same, "a"), rubric(same, "b", polarity="dsat")).merged == {}
    )
    assert deduplicated(embedder).kept == ()


LONG = rubric("The assistant answers at length.", "l", source="signal:long_answers", support=3)


def test_evidence_is_sought_for_a_persons_words_only(embedder: Embedder) -> None:
    own = LONG.model_copy(update={"source": "person", "quotes": ()})
    for text, source in {
        "The assistant gives lengthy answers.": "signal:long_answers",
        "The assistant answers briefly.": "signal:short_answers",
        "The user repeats a request.": "signal:user_repeats",
        "The user uses the same words again.": "signal:user_repeats",
        "The assistant does not answer at length.": "person",
        "The user mentions the weather.": "person",
        "The user says “oh well”.": "phrase:user:oh well",
    }.items():
        found = find_evidence_for_own_words(own.model_copy(update={"text": text}), embedder)
        assert (found.source, found.text, found.reason_ids) == (source, text, LONG.reason_ids)
        kept = LONG.model_copy(update={"text": text})
        assert find_evidence_for_own_words(kept, embedder) == kept, (
            "a detector stays, whatever its words are"
        )
    denials = [
        is_sentence_negated(text)
        for text in ("It works.", "It doesn't work.", "It is not never so.", "Nota")
    ]
    assert denials == [False, True, False, False]


def of_source(source: str, text: str = "The user is happy.") -> Rubric:
    return Rubric(id=source, text=text, polarity="sat", source=source)


def test_a_set_without_vectors_says_so_and_one_by_likeness_costs_its_embedding() -> None:
    plain = [of_source("signal:thanks"), of_source("phrase:user:thank you")]
    assert (
        describe_scoring_cost(plain) == "about 1 ms of CPU a conversation of 25 turns, no embedding"
    )
    assert describe_scoring_cost([*plain, of_source("person")]).endswith(
        "a conversation of 25 turns, its turns embedded"
    )


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("rubrics = ", "not valid TOML.* → correct it"),
        ("rubrics = " + "[" * 100_000, "not valid TOML.* → correct it"),
        ("rubrics = " + "9" * 5000, "not valid TOML.* → correct it"),
        ("purpose = 'none'", "rubrics: Field required"),
        ("rubrics = []", "rubrics: List should have at least 1"),
        ('[[rubrics]]\ntext = "The user laughs."', "rubrics.0.polarity: Field required"),
        ('[[rubrics]]\ntext = " "\npolarity = "sat"', "rubrics.0.text"),
        ('[[rubrics]]\ntext = "The user laughs."\npolarity = "good"', "rubrics.0.polarity"),
        (
            '[[rubrics]]\ntext = "The user laughs."\npolarity = "sat"\nweight = 2',
            "rubrics.0.weight",
        ),
    ],
)
def test_a_list_with_a_fault_is_refused_with_its_place(
    tmp_path: Path, text: str, clause: str
) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRubrics, match=clause) as refused:
        read_rubrics(path)
    assert refused.value.where == str(path)


def test_a_mark_of_byte_order_is_no_part_of_a_list_and_what_can_not_be_read_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[[rubrics]]\ntext = "It helps."\npolarity = "sat"\n', encoding="utf-8-sig")
    assert [rubric.text for rubric in read_rubrics(path)] == ["It helps."]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRubrics, match=r"can't be read: .* → check the path"):
        read_rubrics(path)
    with pytest.raises(BadRubrics, match="generic, generic_debugging"):
        read_rubrics("nowhere.toml")


def test_bundled_sets_have_ten_rubrics_a_kind_that_learnt_ones_could_be() -> None:
    for name in list_bundled_rubric_set_names():
        rubrics = read_rubrics(name)
        assert [sum(rubric.polarity == kind for rubric in rubrics) for kind in ("sat", "dsat")] == [
            10,
            10,
        ]
        assert [explain_rubric_refusal(rubric.text) for rubric in rubrics] == [""] * 20
        assert all(len(rubric.text.split()) <= 15 for rubric in rubrics)
        assert {rubric.source for rubric in rubrics} == {"person"}
    generic, adapted = (
        {rubric.text for rubric in read_rubrics(name)} for name in ("generic", "generic_debugging")
    )
    assert generic & adapted == {"The assistant gives a concise answer."}, (
        "all else is of its domain"
    )
