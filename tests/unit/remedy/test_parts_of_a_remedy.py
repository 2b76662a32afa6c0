"""The three parts share no conversation, user or text."""

from __future__ import annotations

import numpy as np

from pollex.conversations.conversation import Conversation, Turn
from pollex.services.remedy.sample import parts_of


def conversation(name: str, text: str, group: str | None) -> Conversation:
    return Conversation(id=name, turns=(Turn(role="user", content=text),), group=group)


def random_log(rng: np.random.Generator) -> list[Conversation]:
    """Users with one to six conversations, some without a user, some of one text."""
    n = int(rng.integers(5, 40))
    users = rng.integers(0, max(2, n // 2), n)
    texts = rng.integers(0, 2 * n, n)
    return [conversation(f"c{i}", f"text {texts[i]}", None if users[i] % 5 == 0 else f"u{users[i]}") for i in range(n)]


def test_no_user_and_no_text_is_in_two_parts_of_random_logs() -> None:
    rng = np.random.default_rng(0)
    for seed in range(300):
        log = random_log(rng)
        parts = parts_of(log, seed=seed)
        assert parts.keys() == {one.id for one in log}
        for key in ("group", "text_hash"):
            seen: dict[str, str] = {}
            for one in log:
                if (value := getattr(one, key)) is not None:
                    assert seen.setdefault(value, parts[one.id]) == parts[one.id]


def test_shares_are_a_fifth_three_tenths_and_a_half_and_the_order_of_rows_counts_nothing() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(1000)]
    parts = parts_of(log, seed=3)
    assert [list(parts.values()).count(part) for part in ("propose", "select", "prove")] == [200, 300, 500]
    assert parts_of(log[::-1], seed=3) == parts
    assert parts_of(log, seed=4) != parts


def test_what_the_rubrics_were_learned_from_proves_only_where_there_is_too_little_else() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(100)]
    learned = {one.text_hash[:16] for one in log[:40]}
    parts = parts_of(log, learned)
    assert all(parts[one.id] != "prove" for one in log[:40])
    parts = parts_of(log, {one.text_hash[:16] for one in log[:80]})
    assert [parts[one.id] for one in log[80:]] == ["prove"] * 20


def test_without_a_selection_its_share_proves() -> None:
    log = [conversation(f"c{i}", f"text {i}", None) for i in range(100)]
    parts = list(parts_of(log, select=False).values())
    assert (parts.count("propose"), parts.count("prove")) == (20, 80)
