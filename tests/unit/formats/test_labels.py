"""What a log's thumbs mean, and what stands beside them: words of people and further signals, never summed."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pollex.conversations.conversation import Conversation, Feedback, Label, Turn
from pollex.conversations.logs import Logs
from pollex.conversations.splits import require_enough_labels
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import read_label_file
from pollex.formats.labels import LabelRules, infer_thumb_side
from pollex.formats.read_logs import read_logs, read_logs_from_rows
from pollex.rubrics.worth import describe_signal_share, measure_signal_share

USUAL = LabelRules.of(None, None)
RATED = LabelRules.of(">=4", "<=2")
TURNS = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]


NO_NUMBERS = [float("inf"), -float("inf"), "1e999", 10**400]


@pytest.mark.parametrize(
    ("verdicts", "values", "says"),
    [
        (USUAL, NO_NUMBERS, "no number"),
        (RATED, NO_NUMBERS, "no number"),
        (USUAL, ["maybe", 2, 0.5, "5 stars"], r"unknown label .* → known are up/down"),
        (USUAL, [3], "positive='>=4', negative='<=2'"),
        (USUAL, [{"score": 1}, [{"score": 1}]], "the label is"),
        (RATED, ["up"], "isn't a number"),
    ],
)
def test_a_value_that_is_no_label_is_refused_and_says_what_would_be(
    verdicts: LabelRules, values: list[Any], says: str
) -> None:
    for value in values:
        with pytest.raises(BadInput, match=says):
            verdicts.label(value)


def test_contradicting_options_and_ratings_of_both_sides_are_refused() -> None:
    for positive, negative in ((">=4", None), (None, "<=2"), (">=x", "<2"), ("up,x", "x,down")):
        with pytest.raises(WrongUse):
            LabelRules.of(positive, negative)
    with pytest.raises(WrongUse, match="matches positive and negative"):
        LabelRules.of(">=3", "<=3").label(3)


def test_usual_spellings_of_thumbs_are_known_and_missing_labels_are_none() -> None:
    up = [
        "up",
        "Thumbs Up",
        "thumbs-up",
        "👍",
        "👍🏽",
        "👍️",
        ":+1:",
        1,
        1.0,
        "1",
        "+1",
        "1.0",
        True,
        "TRUE",
        " yes ",
    ]
    down = [
        "down",
        "thumbs_down",
        "👎",
        "👎🏿",
        ":-1:",
        0,
        -1,
        "-1",
        "0",
        False,
        "No",
        "bad",
        "Dislike",
    ]
    assert [value for value in up if USUAL.label(value) is not Label.POSITIVE] == []
    assert [value for value in down if USUAL.label(value) is not Label.NEGATIVE] == []
    for value in (
        *(
            None,
            "",
            "  ",
            "None",
            "null",
            "NA",
            "n/a",
            [],
            float("nan"),
            "nan",
            "NaN",
            "--",
            "undefined",
        ),
        *(
            "not rated",
            "Not-Rated",
            "no feedback",
            "no rating",
            "skipped",
            "Neutral",
            "mixed",
            "unrated",
        ),
    ):
        assert USUAL.label(value) is RATED.label(value) is Label.NONE


@pytest.mark.parametrize(
    ("bounds", "values", "labels"),
    [
        ((">=4", "<=2"), (5, "4", 4.0, 3, "2.5", 2, "1"), "+++  --"),
        (("> 4", "< 2"), (4, 4.1, 2, 1.9), " + -"),
        (("=5", "==1"), (5, 4, 1), "+ -"),
        # Means 3.67 and 2.67; a missing rating is left out, and does not count as 0.
        ((">=3.5", "<=2.67"), ([4, 3, 4], [2, 3, 3], [3, 3, 3], [4, None, 3], [None]), "+- + "),
    ],
)
def test_ratings_or_their_means_are_compared_with_bounds_and_the_middle_has_no_label(
    bounds: tuple[str, str], values: tuple[Any, ...], labels: str
) -> None:
    found = [LabelRules.of(*bounds).label(value) for value in values]
    assert found == [
        {"+": Label.POSITIVE, "-": Label.NEGATIVE, " ": Label.NONE}[one] for one in labels
    ]


def test_spellings_of_ones_own_replace_the_usual_ones_on_that_side_only() -> None:
    verdicts = LabelRules.of("Solved it, no", None)
    assert [verdicts.label(value) for value in ("solved it", "NO", "down")] == [
        "positive",
        "positive",
        "negative",
    ]
    with pytest.raises(BadInput, match="known are no, solved_it, solved_it, no and -1, 0, "):
        verdicts.label("up")


def logs_from(folder: Path, *rows: dict[str, Any], **options: Any) -> Logs:
    path = folder / "log.jsonl"
    lines = (
        json.dumps({"id": str(number), "messages": TURNS, **row}) for number, row in enumerate(rows)
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_logs([path], options=ReadOptions(**options))


MIXED = ["up", "👍", 1, "1", True, "thumbs_up", "down", "👎", -1, 0, False]
SEEN: list[tuple[list[Any], tuple[int, int], str]] = [
    (MIXED, (6, 4), "rating: 0 (1) is neither .* if it is one, say so"),
    ([1, -1], (1, 1), ""),
    ([1, 0, None, "unknown", ""], (1, 1), ""),
    ([1, 0, -1], (1, 1), "rating: 0 (1) is neither .* if it is one, say so"),
    (
        ["up", "down", 1, 3, 5],
        (1, 1),
        "1 (1), 3 (1), 5 (1) are .* positive='up,5', negative='down,1'",
    ),
    ([1, 1], (0, 0), "1 (2) is .* positive='1'"),
    ([-2, 0, 2], (0, 0), "are .* positive='>=2', negative='<=-2'"),
    ([1, 8, 10], (0, 0), "are .* positive='>=7', negative='<=4'"),
    ([0, 1, 3, 4], (0, 0), "are .* positive='>=3', negative='<=1'"),
    ([0, 7, 10], (0, 0), "are .* positive='>=9', negative='<=6'"),
    (["4/5", "1/5", "3/5"], (0, 0), "are .* positive='>=4', negative='<=2'"),
    (["⭐⭐⭐⭐⭐", "★★☆☆☆", "3 stars", "4,5"], (0, 0), "are .* positive='>=4', negative='<=2'"),
    (["80 %", "20%", "100%"], (0, 0), "are .* positive='>=70', negative='<=40'"),
    (["up", {"level": 1}], (1, 0), "an object (1) is .* label_field='rating.NAME'"),
]
"""Values of a field of ratings, how many are up and down, and what is said of the others."""


@pytest.mark.parametrize(("values", "counts", "note"), SEEN)
def test_values_are_taken_together_where_they_are_told_apart_without_doubt(
    values: list[Any], counts: tuple[int, int], note: str, tmp_path: Path
) -> None:
    logs = logs_from(tmp_path, *({"rating": value} for value in values))
    assert (logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE]) == counts
    assert [one.label for one in logs].count(Label.NONE) == len(values) - sum(counts)
    told = [one for one in logs.notes if "neither" in one]
    assert len(told) == bool(note)
    assert all(re.search(note.replace("(", r"\(").replace(")", r"\)"), one) for one in told)
    assert sum(logs.account.spellings.values()) == len(values)


def test_a_rating_that_is_no_thumb_makes_no_two_conversations_of_one_id(tmp_path: Path) -> None:
    rows = [{"id": "a", "rating": 1}, {"id": "a", "rating": 5}, {"id": "b", "rating": 0}]
    assert logs_from(tmp_path, *rows).duplicates == 1
    with pytest.raises(BadInput, match="different conversations"):
        logs_from(tmp_path, {"id": "a", "rating": 1}, {"id": "a", "rating": -1})


def test_a_file_of_labels_tells_which_ratings_are_none(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "a", "rating": 1}\n{"id": "b", "rating": -1}')
    assert [one.label for one in read_label_file(path, ReadOptions())[0]] == [
        "positive",
        "negative",
    ]
    path.write_text('{"id": "a", "rating": 1}\n{"id": "b", "rating": 3}')
    with pytest.raises(BadInput, match="2 rows can't be read"):
        read_label_file(path, ReadOptions())


def labelled(label: Label, count: int, content: str = "x") -> list[Conversation]:
    turns = (Turn(role="user", content=content), Turn(role="assistant", content=content))
    return [Conversation(id=f"{label}{n}", turns=turns, label=label) for n in range(count)]


def test_conversations_without_words_do_not_count_as_labelled() -> None:
    require_enough_labels(labelled(Label.POSITIVE, 10) + labelled(Label.NEGATIVE, 10))
    require_enough_labels(labelled(Label.POSITIVE, 2) + labelled(Label.NEGATIVE, 3), minimum=2)
    empty = labelled(Label.NEGATIVE, 10, content=" ")
    said = r"of conversations that can be scored are positive: 10 .* 10 that can't be scored \(10 with a label\)"
    with pytest.raises(BadLabels, match=said):
        require_enough_labels([*labelled(Label.POSITIVE, 10), *empty])
    with pytest.raises(
        BadLabels, match=r"no conversation with a label can be scored.*words of a user"
    ) as refused:
        require_enough_labels([*labelled(Label.POSITIVE, 10, content=""), *empty])
    assert "label_field" not in str(refused.value)


BOOKED = [
    {"role": "user", "content": "Friday, please."},
    {"role": "assistant", "content": "Booked for Saturday."},
]


def only(row: dict[str, Any], **options: Any) -> Conversation:
    return next(
        iter(read_logs_from_rows([{"messages": BOOKED, **row}], options=ReadOptions(**options)))
    )


@pytest.mark.parametrize(
    ("row", "comment", "tags"),
    [
        ({"thumbs": "down", "comment": " Wrong date. "}, "Wrong date.", ()),
        ({"thumbs": "down", "comments": ["Wrong date.", "Slow."]}, "Wrong date.\nSlow.", ()),
        ({"thumbs": "down", "comment": {"text": "Wrong date."}}, "Wrong date.", ()),
        ({"thumbs": "down", "comment": 7}, "7", ()),
        ({"thumbs": "down", "feedback_tags": ["date", {"label": "slow"}]}, "", ("date", "slow")),
        ({"thumbs": "down", "feedback_tags": "date, slow"}, "", ("date", "slow")),
        (
            {"feedback": {"rating": "down", "comment": "Wrong date.", "tags": ["date"]}},
            "Wrong date.",
            ("date",),
        ),
        ({"feedback": {"thumb": "down", "reason": "It took too long."}}, "It took too long.", ()),
        ({"feedback": {"thumb": "down", "reason": "too slow, date"}}, "", ("too slow", "date")),
    ],
)
def test_comments_and_tags_are_read_from_their_usual_places(
    row: dict[str, Any], comment: str, tags: tuple[str, ...]
) -> None:
    read = only(row)
    assert read.feedback == (Feedback(comment=comment, tags=tags),)
    assert read.label == "negative"


def test_the_user_names_the_field_or_leaves_comments_out() -> None:
    row = {"thumbs": "down", "survey": {"heard": "Wrong date."}}
    assert only(row, comment_field="survey.heard").feedback == (Feedback(comment="Wrong date."),)
    assert only(row).feedback == ()
    assert only({"thumbs": "down", "comment": "Wrong date."}, comments=False).feedback == ()
    with pytest.raises(BadInput, match="no row has the field of comment_field='survay'"):
        only(row, comment_field="survay")


def test_a_comment_on_a_row_of_a_table_is_of_its_turn() -> None:
    rows = [
        {"conversation_id": "a", "turn": n, "role": one["role"], "text": one["content"]}
        for n, one in enumerate(BOOKED)
    ]
    rows[1] |= {"thumbs": "down", "comment": "Wrong date."}
    assert next(iter(read_logs_from_rows(rows))).feedback == (
        Feedback(comment="Wrong date.", turn=1),
    )


def test_the_label_is_one_and_others_are_kept_apart() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "thumb": "up", "retried": True, "stars": 2},
        {"id": "b", "thumb": "down", "retried": 0, "stars": 5, "used": {"copied": "yes"}},
        {"id": "c", "thumb": "up", "retried": 3, "stars": None},
    ]
    signals = ("retried:down", "stars", "used.copied:up")
    options = ReadOptions(label_field="thumb", signals=signals)
    found = list(
        read_logs_from_rows([{"messages": BOOKED, **row} for row in rows], options=options)
    )
    assert [one.label.value for one in found] == ["positive", "negative", "positive"]
    assert [one.signals for one in found] == [
        {"retried:down": True, "stars": True},
        {"retried:down": False, "stars": False, "used.copied:up": True},
        {"retried:down": True},
    ]


def test_a_signal_is_told_as_a_ratio_with_its_shares() -> None:
    held = np.arange(50) < 20
    happened = np.isin(np.arange(50), [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 24, 25])
    told = describe_signal_share(
        measure_signal_share("retried:down", held, happened, np.arange(len(held)))
    )
    assert told == "also 2.0 times as many “retried”: 40 % of 20, 20 % of 30 elsewhere"
    assert (
        describe_signal_share(
            measure_signal_share("stars", ~held & held, happened, np.arange(len(held)))
        )
        == ""
    )


def test_two_columns_of_thumbs_are_one_label(tmp_path: Path) -> None:
    for up, down in (
        ("thumbs_up", "thumbs_down"),
        ("isLiked", "isDisliked"),
        ("赞同反馈", "反对反馈"),
    ):
        given = [(1, 0), (0, 1), (0, 0), (None, None), (True, False), ("", "1"), (3, 0), (1, 1)]
        logs = logs_from(tmp_path, *({up: one, down: other} for one, other in given))
        signs = {Label.POSITIVE: "+", Label.NEGATIVE: "-", Label.NONE: " "}
        assert "".join(signs[one.label] for one in logs) == "+-  +-+ ", up
        assert logs.notes == (
            f"labels come from {up!r} and {down!r} together",
            "1 row has a thumb up and one down, which is taken as not rated",
        )
        assert not any(name in one.metadata for one in logs for name in (up, down))
    worst = logs_from(tmp_path, {"up": 1, "down": 1}, thumbs="worst")
    assert [one.label for one in worst] == [Label.NEGATIVE]
    written = logs_from(tmp_path, {"userGoodFeedback": "yes"} | {"userBadFeedback": None})
    assert [one.label for one in written] == [Label.POSITIVE]
    alone = logs_from(
        tmp_path, {"userGoodFeedback": "yes"}, {"userBadFeedback": "too slow"}, {"x": 1}
    )
    assert [one.label for one in alone] == [Label.POSITIVE, Label.NEGATIVE, Label.NONE]
    assert [said.comment for one in alone for said in one.feedback] == ["too slow"]
    scores = logs_from(tmp_path, {"positive": 0.93, "negative": 0.07})
    assert [one.label for one in scores] == [Label.NONE], "shares are no thumbs"


def test_values_may_have_commas_a_skin_tone_or_be_named_as_no_rating() -> None:
    zendesk = LabelRules.of("Good, I'm satisfied", "Bad, I'm unsatisfied")
    assert zendesk.label("Good, I'm satisfied") is Label.POSITIVE
    assert zendesk.label("bad, I'm unsatisfied") is Label.NEGATIVE
    thanks = LabelRules.of("yes, thanks", "no, thanks")
    assert [thanks.label(value) for value in ("yes, thanks", "no, thanks")] == [
        "positive",
        "negative",
    ]
    quoted = LabelRules.of('"Good, quick",great', "slow")
    assert [quoted.label(value) for value in ("Good, quick", "great", "slow")] == [
        "positive"
    ] * 2 + ["negative"]
    for tone in (
        ":+1::skin-tone-3:",
        "+1::skin-tone-6",
        "thumbsup_tone2",
        ":thumbs_up_medium_dark_skin_tone:",
    ):
        assert USUAL.label(tone) is Label.POSITIVE, tone
    rest = LabelRules.of("positive", "*", unrated="later,not now")
    assert [
        rest.label(value) for value in ("positive", "rude", "later", "Not now", "--", None)
    ] == [*("positive", "negative", *["none"] * 4)]


def test_the_majority_of_several_words_counts_and_the_mean_of_several_numbers() -> None:
    assert USUAL.label(["up", "down", "up"]) is Label.POSITIVE
    assert USUAL.label(["down", None, "👎", "up"]) is Label.NEGATIVE
    assert USUAL.label(["up", "down"]) is Label.NONE
    assert RATED.label([5, 4, 3]) is Label.POSITIVE


@pytest.mark.parametrize(
    ("word", "side"),
    [
        ("nada satisfecho", Label.NEGATIVE),
        ("poco útil", Label.NEGATIVE),
        ("peu satisfait", Label.NEGATIVE),
        ("wenig hilfreich", Label.NEGATIVE),
        ("weinig tevreden", Label.NEGATIVE),
        ("hardly helpful", Label.NEGATIVE),
        ("a little helpful", Label.POSITIVE),
        ("un peu satisfait", Label.POSITIVE),
        ("Super!", Label.POSITIVE),
        ("Enttäuscht.", Label.NEGATIVE),
        ("geen mening", Label.NONE),
        ("keine Meinung", Label.NONE),
        ("sin opinión", Label.NONE),
        ("neutre", Label.NONE),
        ("Mittelmäßig", Label.NONE),
        ("ni oui ni non", Label.NONE),
        ("no contestó", Label.NONE),
        ("nicht beantwortet", Label.NONE),
        ("pas répondu", Label.NONE),
        ("indiferente", Label.NONE),
        ("k. A.", Label.NONE),
        ("no contento", Label.NEGATIVE),
        ("per niente soddisfatto", Label.NEGATIVE),
        ("moins satisfait", Label.NEGATIVE),
        ("weniger gut", Label.NEGATIVE),
        ("Nein, danke", Label.NEGATIVE),
        ("no sé", Label.NONE),
        ("ne se prononce pas", Label.NONE),
        ("weiß nicht", Label.NONE),
        ("no thanks", None),
    ],
)
def test_words_of_little_and_of_neither_are_told(word: str, side: Label | None) -> None:
    assert infer_thumb_side(word) is side


def test_a_score_inside_feedback_is_a_thumb_where_all_are_0_or_1() -> None:
    def rows_with(scores: Sequence[object]) -> list[dict[str, Any]]:
        rows = []
        for n, score in enumerate(scores):
            said = [("user", f"Where is parcel {n}?"), ("assistant", f"Parcel {n} is late.")]
            messages = [{"role": role, "content": words} for role, words in said]
            feedback = {"score": score, "at": "2026-05-04"}
            rows.append({"id": str(n), "messages": messages, "feedback": feedback})
        return rows

    logs = read_logs_from_rows(rows_with([1, 0, None, 1]))
    sides = [conversation.label.value for conversation in logs]
    assert sides == ["positive", "negative", "none", "positive"]
    with pytest.raises(BadInput, match=r"feedback\.score"):
        read_logs_from_rows(rows_with([1, 5, None, 3]))
