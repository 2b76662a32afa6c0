"""What an honest model answers: anything that fits the schema, chosen by a hash of the messages."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from protocol_server.reader import opinions, rubric

JsonObject = dict[str, Any]

_SPILT = 0.03
"""Probability that falls on no option."""

_PIECE = re.compile(r"\s?[A-Za-z]{1,6}|\d{1,3}|\s+|[^\sA-Za-z\d]")
_LETTER = re.compile(r"^([A-Z])\. ", re.MULTILINE)
_TEXT_FIELD = re.compile(r'"text":\s*"((?:[^"\\]|\\.)*)"')

NEVER = "Never came up"
"""An answer that the server never gives: its moods are about how far it agrees."""

_DRAWN = re.compile(
    r"(?<=DATA )[0-9a-f]{32}"
    r'|^\d+\. "The user uses the word .* in their first message\."$\n?'
    r'|^\d+\. (?=")',
    re.MULTILINE,
)
"""What each store draws anew: the code around a conversation, and canaries with their places."""


def _digest_of(messages: Sequence[Mapping[str, Any]], salt: str) -> str:
    """Return a hash of what is asked: the same for the same questions, whichever store asks."""
    contents = [_DRAWN.sub("", str(message.get("content"))) for message in messages]
    return hashlib.sha256((json.dumps(contents) + salt).encode("utf-8", "replace")).hexdigest()


class Answer:
    """One answer with its tokens.

    Attributes:
        text: What is written.
        tokens: Text, log-probability and alternatives of each.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        schema: JsonObject | None,
        salt: str = "",
        *,
        tokens: bool = True,
        attentive: bool = False,
        seed: str = "",
    ) -> None:
        self._messages = messages
        self._attentive = attentive
        self._opinions = opinions(messages) if attentive else {}
        self._seed = seed or _digest_of(messages, salt)
        self._wants_tokens = tokens
        self._quotes: list[str] | None = None
        self._definitions: JsonObject = (schema or {}).get("$defs", {})
        self.tokens: list[tuple[str, float, list[tuple[str, float]]]] = []
        if schema is None:
            letters = _LETTER.findall(
                "\n".join(str(message.get("content")) for message in messages)
            )
            self._choose(letters or ["1", "2", "3", "4", "5"], "answer", quoted=False)
        else:
            self._write(schema, "")
        self.text = "".join(text for text, _, _ in self.tokens)

    def logprobs(self, top: int) -> JsonObject:
        """The `logprobs` of the choice, with at most `top` alternatives a token."""
        return {
            "content": [_entry(text, logprob, best[:top]) for text, logprob, best in self.tokens],
            "refusal": None,
        }

    def _hash(self, path: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{path}\0{self._seed}".encode()).digest()[:8], "big")

    def _put(self, text: str) -> None:
        for piece in pieces(text) if self._wants_tokens else [text]:
            self.tokens.append((piece, -0.001, [(piece, -0.001)]))

    def _write(self, schema: JsonObject, path: str) -> None:
        schema = self._resolve(schema)
        if "enum" in schema:
            self._choose(
                [option for option in schema["enum"] if not str(option).endswith(NEVER)],
                path,
                quoted=True,
            )
        elif "const" in schema:
            self._put(json.dumps(schema["const"]))
        elif schema.get("type") == "object" or "properties" in schema:
            self._write_object(schema.get("properties", {}), path)
        elif schema.get("type") == "array":
            self._write_array(schema, path)
        else:
            self._put(json.dumps(self._scalar(schema, path), ensure_ascii=False))

    def _resolve(self, schema: JsonObject) -> JsonObject:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        for joined in ("anyOf", "oneOf", "allOf"):
            if joined in schema:
                return self._resolve(schema[joined][0])
        return schema

    def _write_object(self, properties: JsonObject, path: str) -> None:
        self._put("{")
        for number, (name, schema) in enumerate(properties.items()):
            self._put(("," if number else "") + json.dumps(name) + ":")
            self._write(schema, f"{path}.{name}")
        self._put("}")

    def _write_array(self, schema: JsonObject, path: str) -> None:
        least = schema.get("minItems", 1)
        size = min(schema.get("maxItems", least + 2), max(least, self._hash(path) % 3 + 1))
        self._put("[")
        for number in range(size):
            self._put("," if number else "")
            prefix = schema.get("prefixItems", [])
            self._write(
                prefix[number] if number < len(prefix) else schema.get("items", {}),
                f"{path}[{number}]",
            )
        self._put("]")

    def _scalar(self, schema: JsonObject, path: str) -> Any:
        kind = schema.get("type", "string")
        if kind in {"integer", "number"}:
            least = schema.get("minimum", 1)
            most = schema.get("maximum", schema.get("minimum", 1) + 4)
            return least + self._hash(path) % (int(most - least) + 1)
        if kind == "boolean":
            return bool(self._hash(path) % 2)
        if kind == "null":
            return None
        if re.search(r"\.quotes?(\[\d+\])?$", path):
            return self._quote(path)
        if self._attentive and re.fullmatch(r"\.rubrics\[\d+\]\.text", path):
            return rubric(self._messages, self._hash(path) % 1000)
        return f"Because of {self._hash(path) % 1000:03d} in {path.rpartition('.')[2]}."

    def _quote(self, path: str) -> str:
        if self._quotes is None:
            found = _TEXT_FIELD.findall(
                "\n".join(str(message.get("content")) for message in self._messages)
            )
            self._quotes = [
                text for text in (json.loads(f'"{text}"') for text in found) if text.strip()
            ]
        if not self._quotes:
            return "nothing to quote"
        return " ".join(self._quotes[self._hash(path) % len(self._quotes)].split()[:12])

    def _choose(self, options: Sequence[Any], path: str, *, quoted: bool) -> None:
        """Writes the likeliest option; each of its tokens has the alternatives that other options would need there."""
        labels = [option if isinstance(option, str) else json.dumps(option) for option in options]
        quoted = quoted and all(isinstance(option, str) for option in options)
        chances = self._chances(labels, path)
        chosen = max(labels, key=chances.__getitem__)
        if not self._wants_tokens:
            self._put(json.dumps(chosen, ensure_ascii=False) if quoted else chosen)
            return
        self._put('"' if quoted else "")
        written = ""
        for piece in pieces(chosen):
            reach = {label: p for label, p in chances.items() if label.startswith(written)}
            total = sum(reach.values()) + (_SPILT if not written else 0.0)
            best: dict[str, float] = {}
            for label, chance in reach.items():
                following = next(pieces(label[len(written) :]), '"' if quoted else "\n")
                best[following] = best.get(following, 0.0) + chance / total
            ranked = sorted(
                ((text, math.log(p)) for text, p in best.items()), key=lambda pair: -pair[1]
            )
            self.tokens.append((piece, math.log(best[piece]), ranked))
            written += piece
        self._put('"' if quoted else "")

    def _chances(self, labels: Sequence[str], path: str) -> dict[str, float]:
        weights = {label: 1 + self._hash(f"{path}={_plain(label)}") % 97 for label in labels}
        if path in self._opinions:
            weights[labels[self._opinions[path]]] += 200
        scale = (1 - _SPILT) / sum(weights.values())
        return {label: scale * weight for label, weight in weights.items()}


def _plain(label: str) -> str:
    """An option without the letter or the zero that it has where log-probabilities are read."""
    return re.sub(r"^[A-Z]\. |^0(?=\d$)", "", label)


def truth(
    messages: Sequence[Mapping[str, Any]], options: Sequence[str], path: str
) -> dict[str, float]:
    """The probability of each option of the enum at `path`, for example `.answers[0].option`, in the honest answer."""
    return Answer(messages, {"enum": list(options)})._chances(options, path)


def pieces(text: str) -> Iterator[str]:
    """`text` cut into tokens: up to six letters with a space before them, up to three digits, single marks."""
    return (match.group() for match in _PIECE.finditer(text))


def _entry(text: str, logprob: float, best: Sequence[tuple[str, float]]) -> JsonObject:
    top = [
        {"token": other, "logprob": p, "bytes": list(other.encode("utf-8", "replace"))}
        for other, p in best
    ]
    return {
        "token": text,
        "logprob": logprob,
        "bytes": list(text.encode("utf-8", "replace")),
        "top_logprobs": top,
    }
