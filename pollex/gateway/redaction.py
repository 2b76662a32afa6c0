"""Keeps keys out of every text that is stored, logged or shown."""

import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import unquote, unquote_plus, urlsplit

REDACTED = "[redacted]"

_SHORTEST_SECRET = 4
"""Nobody's secret is shorter, and three letters stand in too many words."""

_SHORTEST_ALONE = 6
"""Shorter secrets are blanked where no letter or digit touches them, so that no other word is cut."""

_SHORTEST_RANDOM = 16
"""A value in a query of this length is taken for a secret, whatever its name is."""

_RANDOM = re.compile(r"(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w{6}|\w{20}")
"""Six letters and digits side by side, or twenty of either."""

_NAMES_SECRET = re.compile(
    r"key|token|secret|sig|auth|cookie|code|pass|pwd|cred|jwt",
    re.IGNORECASE,
)
_JSON_WORDS = {"true", "false", "null", "none"}

_LOOKS_SECRET = re.compile(
    r"\bsk-[\w-]{8,}"  # provider keys
    r"|(?<=://)[^/\s]+(?=@)"  # user info in a URL
    # in a URL's query
    r"|(?<=[?&])[^\s=&#]*(?i:key|token|secret|sig|auth|code|pass|pwd|cred|jwt)[^\s=&#]*=[^\s&#\"']+"
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"  # Authorization header
)

_RUN_BEGINS = r"(?<!\\)"
"""A run of backslashes is looked at from its first alone: from each of them, it would take its length squared."""


def names_secret(name: str) -> bool:
    """Return whether a header or query field has a name for secrets."""
    return bool(_NAMES_SECRET.search(name))


def find_secrets_in_address(url: str) -> set[str]:
    """Collect the secrets in a URL, decoded: user, password, and what looks like one in path and query."""
    try:
        parts = urlsplit(url)
        user = unquote(parts.username or "")
        password = unquote(parts.password or "")
    except ValueError:  # no address at all
        return set()

    secrets = {f"{user}:{password}", password} if password else {user}
    # a user's name alone may be a key; a word of letters has to be longer to be taken for one
    shortest = _SHORTEST_RANDOM if user.isalpha() else _SHORTEST_ALONE
    if len(user) >= shortest:
        secrets.add(user)

    # parts of the path that are named or look like a secret
    for part in map(unquote, parts.path.split("/")):
        if _NAMES_SECRET.search(part) or _looks_random(part):
            secrets.add(part)
    # values of the query, by their names or their length
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    values = set()
    for name, _, value in pairs:
        if names_secret(name) or len(value) >= _SHORTEST_RANDOM:
            values.add(value)

    for value in values:
        secrets |= {unquote(value), unquote_plus(value)}

    return secrets - {""}


def _looks_random(text: str) -> bool:
    """Return whether a part of an address is a secret, and no word, version or name of a model."""
    return len(text) >= _SHORTEST_RANDOM and bool(_RANDOM.search(text))


def strip_secrets(secrets: Collection[str], text: str) -> str:
    """Remove known `secrets` from `text`, without any other change: for stored bodies.

    In JSON a secret may have escaped characters, as some servers write slashes, plus signs and
    ampersands: it is the same secret once the body is parsed. So it is with any of its characters
    quoted as in an address, once or twice.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret.lower() not in _JSON_WORDS:
            plainly, escaped = _compile_spellings(secret, quoted="%" in text)
            text = plainly.sub(REDACTED, text)
            # The slower of the two, and hardly ever needed.
            if "%" in text or f"u{ord(secret[0]):04x}" in text.lower():
                text = escaped.sub(REDACTED, text)

    return text


@lru_cache(maxsize=128)
def _compile_spellings(secret: str, *, quoted: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns that find `secret` with any characters escaped; as in addresses, too, if `quoted`.

    One is for a plain first character, one for an escaped one.
    """
    # the first character apart: a search for it is much quicker
    escaped = _match_escaped_or_quoted if quoted else _match_escaped
    begin = secret[0]
    patterns = []
    for character in secret[1:]:
        patterns.append(f"(?:{_match_plain(character)}|{escaped(character)})")
    rest = "".join(patterns)
    if begin.isalnum():
        plainly = _match_plain(begin)
    else:
        plainly = _RUN_BEGINS + _match_plain(begin)

    before, after = ("(?<![^\\W_])", "(?![^\\W_])") if len(secret) < _SHORTEST_ALONE else ("", "")
    return re.compile(before + plainly + rest + after), re.compile(
        _RUN_BEGINS + escaped(begin) + rest + after
    )


def _match_plain(character: str) -> str:
    """Match a character, or a punctuation character behind backslashes."""
    if character.isalnum():
        return re.escape(character)
    return rf"\\*{re.escape(character)}"


def _match_escaped(character: str) -> str:
    return rf"\\+u(?i:{ord(character):04x})"


def _match_escaped_or_quoted(character: str) -> str:
    quoted = "".join(rf"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "replace"))
    plus = r"|\+" if character == " " else ""
    return rf"(?:{_match_escaped(character)}|(?i:{quoted}){plus})"


def redact_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Remove known secrets, and anything that looks like one, for messages and logs."""
    return _LOOKS_SECRET.sub(REDACTED, strip_secrets(secrets, text))
