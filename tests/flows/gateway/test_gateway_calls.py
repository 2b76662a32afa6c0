"""Keys, endpoints, secrets, token counts, the usage table and tracing."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from gateway_asking import KEY, SCHEMA, question
from hypothesis import given
from hypothesis import strategies as st

from pollex.errors import LimitReached, WrongUse
from pollex.gateway.budget import Budget, Limits, Price
from pollex.gateway.calls import Call, compute_lower_token_bound, estimate_tokens
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.redaction import redact_secrets, strip_secrets
from pollex.gateway.responses import read_error_message

HERE = Endpoint("m", "http://localhost:8000/v1", KEY)


ANSWERED_BY: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "Other?"}]},
    {"messages": [{"role": "system", "content": "Question 0: was the user content?"}]},
    {"schema": None},
    {"schema": {**SCHEMA, "required": ["why"]}},
    {"schema": {"type": "object", "properties": dict(reversed(SCHEMA["properties"].items()))}},
    {"schema_name": "other"},
    {"form": "tool"},
    {"max_tokens": 5},
    {"max_tokens": 5, "limit_field": "max_tokens"},
    {"temperature": 0.0},
    {"top_p": 0.5},
    {"seed": 1},
    {"top_logprobs": 0},
    {"replicate": 1},
]


def test_all_that_an_answer_depends_on_is_in_the_key_and_nothing_else_is() -> None:
    for change in (*ANSWERED_BY, {"stage": "other"}, {"item": "other"}):
        same = HERE.request(replace(question(), **change)).key == HERE.request(question()).key
        assert same is (change not in ANSWERED_BY), change
    extra = replace(HERE, extra={"reasoning_effort": "low"})
    assert extra.request(question()).key != HERE.request(question()).key
    assert json.loads(extra.request(question()).body)["reasoning_effort"] == "low"


def test_a_key_names_the_place_without_user_info_in_one_spelling() -> None:
    for base_url, same in (
        ("http://user:secret-word@localhost:8000/v1", True),
        ("HTTP://LOCALHOST:8000/v1/", True),
        ("http://localhost:8001/v1", False),
        ("https://localhost:8000/v1", False),
        ("http://localhost:8000/v2", False),
    ):
        assert (
            Endpoint("m", base_url).request(question()).key == HERE.request(question()).key
        ) is same, base_url
        assert Endpoint("n", base_url, KEY).request(question()).key != HERE.request(question()).key


def test_a_key_stays_what_it_is() -> None:
    call = Call(messages=[{"role": "user", "content": "Hi"}])
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
    assert HERE.request(call).body == body
    # A change of this hash means that stored answers are paid for again.
    assert (
        HERE.request(call).key == "730ee35342b68b5817963afa15c158943d6fccfe84f87f05dbc9ccffe941b411"
    )


@given(st.text(alphabet=st.characters(codec=None)))  # lone surrogates and NUL too
def test_any_text_makes_a_body_that_json_reads(text: str) -> None:
    body = HERE.request(Call(messages=[{"role": "user", "content": text}])).body
    read = json.loads(body)["messages"][0]["content"]
    assert read == "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text
    )


def test_a_base_url_that_is_none_is_refused() -> None:
    for url in (
        "",
        "localhost:8000",
        "ftp://x/v1",
        "http://",
        "http://[::1",
        "http://h:99999",
        "http://h:abc",
    ):
        with pytest.raises(WrongUse, match="base URL"):
            Endpoint("m", url)


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown() -> None:
    for key in ("abcdef123456\n", "abc\x00def123", "sleutel-ключ", "a\u2028bcdef"):
        with pytest.raises(WrongUse, match="OPENAI_API_KEY") as refused:
            Endpoint("m", "http://host/v1", key)
        assert key[:4] not in str(refused.value)


def test_prices_that_are_no_numbers_from_nothing_on_and_limits_that_allow_nothing_are_refused() -> (
    None
):
    for price in ((-1.0, 1.0), (1.0, math.nan), (math.inf, 1.0)):
        with pytest.raises(WrongUse, match="give numbers from 0 on: price="):
            Price(*price)
    priced = {"price": Price(1, 1)}
    limits: list[dict[str, Any]] = [
        *(
            {"concurrency": 0},
            {"deadline": 0},
            {"max_attempts": 0},
            {"max_cost": 1.0},
            {"calls_per_minute": 0},
        ),
        *({"deadline": math.nan}, {"max_wait": -1.0}, {"max_wait": math.nan}, {"max_calls": -1}),
        *({"max_cost": math.nan} | priced, {"max_cost": -1.0} | priced),
    ]
    for one in limits:
        with pytest.raises(WrongUse):
            Limits(**one)


@pytest.mark.parametrize(
    ("limits", "way_on"),
    [
        (Limits(max_calls=0), "give a larger limit"),
        (Limits(max_cost=0.0, price=Price(1.0, 1.0)), "give a larger limit"),
        (Limits(max_calls=1), "resume"),
    ],
)
def test_a_limit_that_lets_nothing_be_sent_offers_no_resuming(limits: Limits, way_on: str) -> None:
    budget = Budget(limits)
    for _ in range(limits.max_calls or 0):
        budget.take()
    with pytest.raises(LimitReached) as reached:
        budget.take()
    assert way_on in str(reached.value.hint)


def test_an_endpoint_shows_no_secret_and_knows_them_all() -> None:
    endpoint = Endpoint(
        "m",
        "http://someone:pass-word-1@host.example:80/v1?api-version=2024&api-key=query-secret",
        headers={"X-Api-Key": "header-secret", "X-Title": "pollex-title"},
        proxy="http://p:proxy-secret@proxy.example",
    )
    shown = repr(endpoint).replace(endpoint.base_url, "")
    for secret in ("pass-word-1", "query-secret", "header-secret", "proxy-secret"):
        assert secret in endpoint.secrets
        assert secret not in shown
    assert "pollex-title" not in endpoint.secrets
    assert endpoint.authorization == "Basic c29tZW9uZTpwYXNzLXdvcmQtMQ=="
    assert (
        endpoint.url("models")
        == "http://host.example/v1/models?api-version=2024&api-key=query-secret"
    )
    assert endpoint.exposed
    assert not HERE.exposed


def test_whatever_looks_like_a_key_is_blanked_out_of_messages() -> None:
    for text in (
        f"key {KEY}.",
        "Incorrect API key provided: sk-proj-abcdef1234567890",
        "Authorization: Bearer abcdef.ghi-jkl",
        "at http://user:abcdef123@host/v1",
        "at https://host/v1?api_key=abcdef123&x=1",
    ):
        shown = redact_secrets(text, [KEY])
        assert "[redacted]" in shown
        assert not any(secret in shown for secret in (KEY, "abcdef"))
    said = "the user wrote sk-notakeybutaword12 and Bearer of bad news"
    assert strip_secrets([KEY, "ab"], f"{said} {KEY} ab") == f"{said} [redacted] ab", (
        "a body loses what is known alone"
    )


AWKWARD = 'k3y/with+slash&amp=="q9'


def test_a_secret_that_json_writes_with_escapes_is_blanked_out_and_the_body_still_reads() -> None:
    for written in (
        json.dumps(AWKWARD)[1:-1],
        json.dumps(AWKWARD)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(AWKWARD)[1:-1])[1:-1],
        AWKWARD.replace("+", "\\u002B").replace("&", "\\u0026").replace('"', "\\u0022"),
        "".join(f"\\u{ord(character):04x}" for character in AWKWARD),
    ):
        kept = strip_secrets([AWKWARD], f'{{"said": "your key is {written}, isn\'t it?\\n"}}')
        assert json.loads(kept) == {"said": "your key is [redacted], isn't it?\n"}
    for key in (AWKWARD, "/begins+with+a+slash"):
        # in the length squared, it would take over ten minutes
        said = "\\" * 1_000_000 + f"\\u{ord(key[0]):04x}"
        assert strip_secrets([key], said + key) == said + "[redacted]"


def test_a_key_in_the_query_of_an_address_is_sent_and_not_shown() -> None:
    endpoint = Endpoint("m", "http://host/v1?api-version=2024&subscription-key=se%2Fcret-in-query")
    assert endpoint.url("models").endswith("subscription-key=se%2Fcret-in-query")
    assert endpoint.shown.startswith("http://host/v1?api-version=2024&")
    assert "cret-in-query" not in endpoint.shown


def test_an_error_is_told_in_one_line() -> None:
    for body, words in (
        ('{"error": {"message": "Too\\nlong", "code": 400}}', "400 Too long"),
        ('{"error": "plain"}', "plain"),
        ('{"detail": [{"msg": "bad"}]}', '[{"msg": "bad"}]'),
        ('{"message": "top"}', "top"),
        ("<html><h1>Bad</h1> gateway</html>", "Bad gateway"),
        ("[" * 9999, "[" * 300),
        ("", ""),
        ("null", "null"),
    ):
        assert read_error_message(body) == words


PROSE = "The user didn't get what they asked for, so they left after 12 minutes; that isn't good."


def test_the_floor_is_not_above_and_the_estimate_not_far_from_the_tokens_counted_by_hand() -> None:
    """With the usual pre-tokenisation: a word with its space, a contraction, a mark are a token each."""
    for text, least, most in (
        (PROSE, 16, 23),
        ("", 0, 0),
        ("\n\n   \t", 0, 0),
        ("x = foo_bar(1234)", 6, 12),
        ("}}}}]]", 0, 2),
        ("1234567", 3, 3),
    ):
        assert compute_lower_token_bound(text) <= most
        assert least <= estimate_tokens(text) <= 1.5 * most
        assert compute_lower_token_bound(text) <= estimate_tokens(text)
    chinese = "用户没有得到他想要的东西"  # 36 bytes, a token for every three
    assert (estimate_tokens(chinese), compute_lower_token_bound(chinese)) == (12, 1)


def test_tracing_is_as_the_user_says_whatever_the_environment_and_whenever_langsmith_is_loaded() -> (
    None
):
    program = """
import os, sys, threading
from pollex.gateway.langsmith import switch_tracing
on = sys.argv[1] == "on"
os.environ["LANGSMITH_TRACING"] = str(not on).lower()
switch_tracing(on=on)
assert "langsmith" not in sys.modules, "it takes a third of a second"
import langsmith.utils as u
assert u.tracing_is_enabled() == on
for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"):
    os.environ[name] = "true"
    u.get_env_var.cache_clear()
    switch_tracing(on=False)
    seen = [u.tracing_is_enabled()]
    other = threading.Thread(target=lambda: seen.append(u.tracing_is_enabled()))
    other.start()
    other.join()
    assert seen == [False, False]
    switch_tracing(on=True)
    assert u.tracing_is_enabled()
"""
    for switch in ("off", "on"):
        subprocess.run([sys.executable, "-c", program, switch], check=True, timeout=60)
