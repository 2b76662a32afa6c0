"""Estimates of a text's number of tokens, without tokenizer or network.

`floor` counts runs of letters and groups of three digits: the tokenizers of GPT, Llama 3, Qwen and Mistral never join
two of these into one token, so the true count is not lower but for the odd word of an older tokenizer. `estimate` is a
rule of thumb: within a factor of 1.5 for prose and code in Latin script and of 2 elsewhere, rather too high than too
low, as a check before sending should be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_WORD = re.compile(r"(?<!['’])[^\W\d_]+|\d{1,3}")
_PIECE = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]+|_+")
_SIX_LETTERS = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|[^\w\s]{1,6}|_{1,6}")
_LETTERS_A_TOKEN = 6
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 4


def floor(text: str) -> int:
    """Return a lower bound of the tokens in `text`."""
    return len(_WORD.findall(text))


def estimate(text: str) -> int:
    """Estimate the tokens in `text`: six letters each, or three bytes beyond ASCII."""
    if text.isascii():
        return len(_SIX_LETTERS.findall(text))
    return sum(_piece_tokens(piece) for piece in _PIECE.findall(text))


def prompt_floor(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return `floor` of all messages, without their wrapping."""
    return sum(floor(content) for content in _contents(messages))


def prompt_ceiling(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return an upper bound of `prompt_estimate`, from lengths alone."""
    return sum(_TOKENS_A_MESSAGE + len(content) * (1 if content.isascii() else 2) for content in _contents(messages))


def prompt_estimate(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return `estimate` of all messages with their wrapping."""
    return sum(_TOKENS_A_MESSAGE + estimate(content) for content in _contents(messages))


def _piece_tokens(piece: str) -> int:
    if piece.isascii():
        return 1 + (len(piece) - 1) // _LETTERS_A_TOKEN
    return 1 + (len(piece.encode("utf-8", "replace")) - 1) // _BYTES_A_TOKEN


def _contents(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [content for message in messages if isinstance(content := message.get("content"), str)]
