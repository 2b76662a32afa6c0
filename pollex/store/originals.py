"""What placeholders stand for, sealed with the store's secret: nobody reads it who has only the database."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping

from pollex.store.store import Store
from pollex.store.tables import OriginalRow, damaged


def keep_originals(store: Store, originals: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
    """Keep what placeholders stand for, by conversation and text hash; what is kept already is not kept twice."""
    from cryptography.fernet import Fernet  # only stores with placeholders need it

    if not originals:
        return
    seal, known = Fernet(_key(store)), set(store.each("SELECT conversation, text_hash FROM originals"))
    store.put(
        OriginalRow(id_, text_hash, seal.encrypt(json.dumps(dict(found)).encode()).decode())
        for (id_, text_hash), found in originals.items()
        if (id_, text_hash) not in known
    )


def originals_of(store: Store, conversation: str) -> dict[str, str]:
    """Return what the placeholders of a conversation stand for.

    Raises:
        StoreDamaged: The store's secret is another one than when it was kept.
    """
    from cryptography.fernet import Fernet, InvalidToken  # as above

    found: dict[str, str] = {}
    for row in store.rows("SELECT sealed FROM originals WHERE conversation = ? ORDER BY rowid", [conversation]):
        try:
            found |= json.loads(Fernet(_key(store)).decrypt(row["sealed"].encode()))
        except InvalidToken:
            raise damaged(str(store.folder), "what placeholders stand for was sealed with another secret") from None
    return found


def _key(store: Store) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"pollex originals\0" + store.secret).digest())
