"""Documents that an assistant was shown, in a row's fields: as lists of texts, or of objects with a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from pollex.conversations.conversation import Source
from pollex.text import JsonDict, JsonObject, parse_json

SOURCE_FIELD_NAMES = (
    *(
        "sources",
        "retrieved_documents",
        "retrieved_contexts",
        "retrieval_context",
        "retrieval_contexts",
    ),
    *("contexts", "documents"),
)
"""Fields that may hold them; of text alone only the first, which `--columns sources=NAME` means."""
_SOURCE_FIELD_NAME_SET = frozenset(SOURCE_FIELD_NAMES)
SOURCE_TEXT_NAMES = (
    "text",
    "page_content",
    "content",
    "snippet",
    "chunk",
    "body",
    "document.content",
    "node.text",
    "document",
)
SOURCE_TITLE_NAMES = (
    *("name", "title", "file", "url", "source", "document_name", "metadata.title"),
    *("metadata.source", "document.id", "id"),
)


def split_sources_from_row_fields(fields: JsonObject) -> tuple[tuple[Source, ...], JsonDict]:
    """Return the documents that a row's fields hold, each once, and the fields without them."""
    if _SOURCE_FIELD_NAME_SET.isdisjoint(fields):  # as in most rows
        return (), dict(fields)

    for name in SOURCE_FIELD_NAMES:
        value = _parse_if_json(fields.get(name))
        if isinstance(value, str) and name != SOURCE_FIELD_NAMES[0]:
            continue
        if documents := dict.fromkeys(_iterate_sources(value)):
            return tuple(documents), {key: field for key, field in fields.items() if key != name}

    return (), dict(fields)


def _parse_if_json(value: object) -> object:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return parse_json(value)
    return value


def _iterate_sources(value: object) -> Iterator[Source]:
    """Yield documents of a text, an object, or a list of either; a list of lists is one of several retrievals."""
    if isinstance(value, str) and value.strip():
        yield Source(text=value)
    elif isinstance(value, list):
        for entry in value:
            yield from _iterate_sources(entry)
    elif isinstance(value, Mapping) and (text := _find_first_text(value, SOURCE_TEXT_NAMES)):
        turn = value.get("turn")
        shown = None
        if isinstance(turn, int) and not isinstance(turn, bool) and turn >= 0:
            shown = turn
        yield Source(text=text, name=_find_first_text(value, SOURCE_TITLE_NAMES), turn=shown)


def _find_first_text(value: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        inner: object = value
        # a name with dots is a path, unless the object has a field of that name
        for part in (name,) if name in value else name.split("."):
            if isinstance(inner, Mapping):
                inner = inner.get(part)
            else:
                inner = None

        if isinstance(inner, str) and inner.strip():
            return inner

    return ""
