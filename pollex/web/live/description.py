"""The OpenAPI description of the scoring service."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

TURN = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"type": "string", "enum": ["user", "assistant"]}, "content": {"type": "string"}},
}
CONVERSATION = {
    "type": "object",
    "required": ["messages"],
    "properties": {"id": {"type": "string"}, "messages": {"type": "array", "items": TURN}},
}
SCORE = {
    "type": "object",
    "required": ["id", "outcome"],
    "properties": {
        "id": {"type": "string"},
        "outcome": {"type": "string", "description": "`scored`, or why not"},
        "netsat": {"type": ["number", "null"]},
        "probability": {"type": ["number", "null"], "description": "P(thumb up)"},
        "decision": {"type": ["string", "null"]},
        "confident": {"type": ["boolean", "null"]},
        "answers": {"type": "array", "items": {"type": "object"}, "description": "with `?answers=true`"},
        "after_turns": {
            "type": "array",
            "items": {"type": "object"},
            "description": "of one conversation, with `?turns=true`: the score after each of the user's first 50 turns",
        },
        "after_turns_left_out": {"type": "integer", "description": "turns of the user after the 50th, if any"},
        "error": {"type": "string", "description": "where it could not be read or scored"},
    },
}
ERROR = {"type": "object", "properties": {"error": {"type": "string"}}}


def description() -> dict[str, Any]:
    """Return the description as JSON values."""
    many = {"type": "object", "properties": {"conversations": {"type": "array", "items": _ref("Conversation")}}}
    scores = {"type": "object", "properties": {"scores": {"type": "array", "items": _ref("Score")}}}
    score = {
        "summary": "Score one conversation, many, or a stream of lines",
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "boolean", "default": False}}
            for name in ("answers", "turns")
        ],
        "requestBody": {
            "required": True,
            "content": _either(_ref("Conversation"), many) | {"application/x-ndjson": {"schema": _ref("Conversation")}},
        },
        "responses": {
            "200": {
                "description": "Scores, in the order of the request",
                "content": _either(_ref("Score"), scores) | {"application/x-ndjson": {"schema": _ref("Score")}},
            },
            **{str(code): _failure(words) for code, words in FAILURES.items()},
        },
    }
    paths = {"/v1/score": {"post": score}}
    for path, words in {"/health": "The process lives", "/ready": "Conversations are taken"}.items():
        paths[path] = {"get": {"summary": words, "security": [], "responses": {"200": {"description": words}}}}
    figures = {"summary": "Figures for Prometheus", "responses": {"200": {"description": "Text format 0.0.4"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "pollex: scores of conversations", "version": version("pollex")},
        "security": [{"token": []}],
        "paths": paths | {"/metrics": {"get": figures}},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Conversation": CONVERSATION, "Score": SCORE, "Error": ERROR},
        },
    }


FAILURES = {
    400: "Not valid JSON",
    401: "The token is missing or wrong",
    413: "Over 16 MB",
    415: "Neither JSON nor lines of JSON",
    422: "Not a conversation",
    429: "Too many conversations wait; Retry-After says how many seconds to wait",
    503: "The service is stopping",
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": {"anyOf": list(schemas)}}}


def _failure(words: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": _ref("Error")}}}
