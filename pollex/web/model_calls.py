"""Calls of a model as the store keeps them: prompts, replies, tokens, and what they cost."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pollex.gateway.budget import Price
from pollex.gateway.responses import read_token_usage
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.tables import load_json, read_checked_line
from pollex.text import JsonDict, JsonObject
from pollex.web.faults import RequestError

SQL_BY_CALL_ORDER = {
    "sent": "sent",
    "stage": "stage, sent",
    "item": "item, sent",
    "ms": "ms",
    "outcome": "outcome, sent",
    "attempt": "attempt, sent",
}
ORDERS_BY_REPLY = ("in", "out", "cached", "cost")
"""What stands in replies alone: to sort by it, all of a run's are read."""
MAX_CALLS_READ = 20_000
MAX_TOKENS_SHOWN = 40
CALLS_QUERY = """
    SELECT key, attempt, stage, item, sent, ended, outcome, reply,
        (julianday(ended) - julianday(sent)) * 86400000.0 AS ms
    FROM calls WHERE run = ? ORDER BY {order} LIMIT ? OFFSET ?
"""
ASKING_SPANS_QUERY = """
    SELECT c.name, c.item, p.name AS role FROM spans AS c LEFT JOIN spans AS p ON p.run = c.run AND p.id = c.parent
    WHERE c.run = ?1 AND c.item = ?2 AND c.kind = 'call' AND instr(c.inputs, ?3) > 0 LIMIT 20
"""
SEALED_DATA_PATTERN = re.compile(
    r"^DATA ([0-9a-f]{32})\n(.*?)\nDATA \1$",
    re.MULTILINE | re.DOTALL,
)
"""Data between its two boundary lines; see `prompts.data_boundary`."""


@dataclass(frozen=True)
class ReplyToken:
    """A token of a reply, with the alternatives that the model weighed.

    Attributes:
        options: Alternatives, the likeliest first, with their probabilities.
        chosen: The place of the token among them; −1 where it is none.
    """

    text: str
    options: tuple[tuple[str, float], ...]
    chosen: int


@dataclass(frozen=True)
class StoredCall:
    """A model call.

    Attributes:
        usage: Tokens as the endpoint counted them, by `in`, `out` and `cached`; what it didn't
            count isn't there.
        cost: None where the price or a count isn't known.
        text: What the model wrote, or what came in its place.
        raw: The reply as it came.
        finish: Why the model stopped, in its own words.
        tokens: Those with log-probabilities that were not certain.
    """

    key: str
    attempt: int
    stage: str
    item: str
    sent: str
    ms: float | None
    status: int | None
    problem: str
    usage: dict[str, int]
    cost: float | None
    text: str
    raw: str
    finish: str
    tokens: tuple[ReplyToken, ...]

    @property
    def fields(self) -> dict[str, str]:
        """The answer as it is read: the fields of its JSON object; empty for other answers."""
        parsed = _parse_json(self.text)
        pairs = parsed.items() if isinstance(parsed, dict) else ()
        fields: dict[str, str] = {}
        for k, v in pairs:
            fields[k] = v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, indent=1)

        return fields


def find_price(store: Store, run: Run) -> Price | None:
    """Return the price that a run was told; None if it wasn't told any."""
    progress = store.value("SELECT payload FROM progress WHERE run = ?", [run.id])
    price = None
    if progress:
        price = load_json(progress).get("used", {}).get("price")

    return Price(*price) if price else None


def list_calls(
    store: Store,
    run: Run,
    order: str,
    *,
    down: bool,
    at: int,
    n: int,
) -> list[StoredCall]:
    """Return a window of a run's calls."""
    price = find_price(store, run)
    if order in ORDERS_BY_REPLY:
        # one more than may be read shows that there are too many
        rows = store.rows(CALLS_QUERY.format(order="sent"), [run.id, MAX_CALLS_READ + 1, 0])
        if len(rows) > MAX_CALLS_READ:
            raise RequestError(
                f"this run has over {MAX_CALLS_READ:,} calls",
                hint="sort by something else than tokens or cost",
            )

        every = sorted(
            (read_call(row, price) for row in rows),
            key=lambda call: _get_amount(call, order),
            reverse=down,
        )
        return every[at : at + n]

    # names of columns come from `SQL_BY_CALL_ORDER`, never from an address
    sql = CALLS_QUERY.format(
        order=", ".join(
            f"{part} DESC" if down else part for part in SQL_BY_CALL_ORDER[order].split(", ")
        )
    )
    calls: list[StoredCall] = []
    for row in store.rows(sql, [run.id, n, at]):
        calls.append(read_call(row, price))

    return calls


def _get_amount(call: StoredCall, name: str) -> float:
    if name == "cost":
        amount = call.cost
    else:
        amount = call.usage.get(name)

    # an unknown amount counts as the least
    return -math.inf if amount is None else amount


def read_call(row: JsonObject, price: Price | None = None) -> StoredCall:
    """Read a row of calls; one whose reply never came has none."""
    if row["reply"]:
        reply = read_checked_line(row["reply"]) or {}
    else:
        reply = {}

    # what came of the call, and the body as the endpoint sent it
    facts = reply.get("outcome", {})
    body = reply.get("raw", "")
    answer = _parse_json(body)
    usage = _get_usage(answer)
    choice = _get_choice(answer)

    return StoredCall(
        key=row["key"],
        attempt=row["attempt"],
        stage=row["stage"] or "",
        item=row["item"] or "",
        sent=row["sent"] or "",
        ms=row["ms"],
        status=facts.get("status"),
        problem=facts.get("problem", "") or ("" if reply else "no reply came"),
        usage=usage,
        cost=price.cost(usage["in"], usage["out"])
        if price and {"in", "out"} <= usage.keys()
        else None,
        text=_join_words(choice.get("message", {}).get("content") or "") or body,
        raw=body,
        finish=str(choice.get("finish_reason") or ""),
        tokens=_read_tokens(choice),
    )


def list_asking_spans(store: Store, run: Run, call: StoredCall) -> list[dict[str, str | None]]:
    """Return the spans that asked a call, each with the role or node that it belongs to."""
    return store.rows(ASKING_SPANS_QUERY, [run.id, call.item, call.key])


def read_request(store: Store, key: str) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the messages of a call's prompt, and what it asked for beside them; empty if it was not stored."""
    body = _parse_json(store.value("SELECT body FROM requests WHERE key = ?", [key]) or "")
    # a request that wasn't stored has neither messages nor settings
    request = body if isinstance(body, dict) else {}
    settings = {}
    for name, value in request.items():
        if name != "messages":
            settings[name] = json.dumps(value, ensure_ascii=False)

    messages = []
    for message in request.get("messages", []):
        if isinstance(message, dict):
            messages.append(message)

    return [
        (str(message.get("role", "")), _join_words(message.get("content"))) for message in messages
    ], settings


def split_sealed(words: str) -> list[tuple[str, bool]]:
    """Split a message into our words and the data between boundary lines, each with whether it is data."""
    # our words and sealed data by turns, as they stand in the message
    marked = []
    end = 0
    for match in SEALED_DATA_PATTERN.finditer(words):
        marked += [(words[end : match.start()], False), (match[0], True)]
        end = match.end()

    # pieces of nothing but spaces are left out
    pairs: list[tuple[str, bool]] = []
    for text, data in [*marked, (words[end:], False)]:
        if text.strip():
            pairs.append((text, data))

    return pairs


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _join_words(content: object) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False)


def _get_usage(answer: object) -> dict[str, int]:
    """Return the tokens that the endpoint counted, as a run reads them: 0 is a count, too."""
    counted = read_token_usage(answer.get("usage") if isinstance(answer, dict) else None)
    tokens = {"in": counted.prompt, "out": counted.completion, "cached": counted.cached}
    return {name: number for name, number in tokens.items() if number is not None}


def _get_choice(answer: Any) -> JsonDict:
    try:
        choice = answer["choices"][0]
        return choice if isinstance(choice["message"], dict) else {}
    except (KeyError, IndexError, TypeError):
        return {}


def _read_tokens(choice: JsonDict) -> tuple[ReplyToken, ...]:
    """Return the first tokens that were not certain; what no log-probabilities can be read from is left out."""
    logprobs = choice.get("logprobs")
    listed = None
    if isinstance(logprobs, dict):
        listed = logprobs.get("content")

    # log-probabilities of an unknown form leave the rest of the reply readable
    try:
        every = [_read_token(listed_token) for listed_token in listed or ()]
    except (KeyError, TypeError, ValueError, OverflowError):
        return ()

    # an option of 99 % or more was certain
    return tuple(
        token for token in every if token.options and max(p for _, p in token.options) < 0.99
    )[:MAX_TOKENS_SHOWN]


def _read_token(listed: JsonDict) -> ReplyToken:
    options: Sequence[Any] = listed.get("top_logprobs") or ()
    # natural logarithms become probabilities
    weighed = sorted(
        ((str(option["token"]), math.exp(option["logprob"])) for option in options),
        key=lambda pair: -pair[1],
    )
    place = next(
        (i for i, (text, _) in enumerate(weighed) if text == listed["token"]),
        -1,
    )
    return ReplyToken(str(listed["token"]), tuple(weighed), place)
