"""Keeps keys out of every text that is stored, logged or shown."""

import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import unquote, unquote_plus, urlsplit

REDACTED_MARK = "[redacted]"

_MIN_SECRET_CHARS = 4
"""Nobody's secret is shorter, and three letters stand in too many words."""

_MIN_SECRET_CHARS_WITHIN_WORDS = 6
"""Shorter secrets are blanked where no letter or digit touches them, so that no other word is cut."""

_MIN_RANDOM_CHARS = 16
"""A value in a query of this length is taken for a secret, whatever its name is."""

_RANDOM_TEXT_REGEX = re.compile(r"(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w{6}|\w{20}")
"""Six letters and digits side by side, or twenty of either."""

_SECRET_FIELD_NAME_REGEX = re.compile(
    r"key|token|secret|sig|auth|cookie|code|pass|pwd|cred|jwt",
    re.IGNORECASE,
)
_JSON_CONSTANT_WORDS = {"true", "false", "null", "none"}

_LIKELY_SECRET_REGEX = re.compile(
    r"\bsk-[\w-]{8,}"  # provider keys
    r"|(?<=://)[^/\s]+(?=@)"  # user info in a URL
    # in a URL's query
    r"|(?<=[?&])[^\s=&#]*(?i:key|token|secret|sig|auth|code|pass|pwd|cred|jwt)[^\s=&#]*=[^\s&#\"']+"
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"  # Authorization header
)

_NOT_BEHIND_BACKSLASH_REGEX = r"(?<!\\)"
"""A run of backslashes is looked at from its first alone: from each of them, it would take its length squared."""


def is_secret_field_name(name: str) -> bool:
    """Return whether a header or query field has a name for secrets."""
    return bool(_SECRET_FIELD_NAME_REGEX.search(name))


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
    shortest = _MIN_RANDOM_CHARS if user.isalpha() else _MIN_SECRET_CHARS_WITHIN_WORDS
    if len(user) >= shortest:
        secrets.add(user)

    # parts of the path that are named or look like a secret
    for part in map(unquote, parts.path.split("/")):
        if _SECRET_FIELD_NAME_REGEX.search(part) or _looks_random(part):
            secrets.add(part)
    # values of the query, by their names or their length
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    values = set()
    for name, _, value in pairs:
        if is_secret_field_name(name) or len(value) >= _MIN_RANDOM_CHARS:
            values.add(value)

    for value in values:
        secrets |= {unquote(value), unquote_plus(value)}

    return secrets - {""}


def _looks_random(text: str) -> bool:
    """Return whether a part of an address is a secret, and no word, version or name of a model."""
    return len(text) >= _MIN_RANDOM_CHARS and bool(_RANDOM_TEXT_REGEX.search(text))


def strip_secrets(secrets: Collection[str], text: str) -> str:
    """Remove known `secrets` from `text`, without any other change: for stored bodies.

    In JSON a secret may have escaped characters, as some servers write slashes, plus signs and
    ampersands: it is the same secret once the body is parsed. So it is with any of its characters
    quoted as in an address, once or twice.
    """
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_CHARS and secret.lower() not in _JSON_CONSTANT_WORDS:
            plainly, escaped = _compile_secret_regexes(secret, quoted="%" in text)
            text = plainly.sub(REDACTED_MARK, text)
            # The slower of the two, and hardly ever needed.
            if "%" in text or f"u{ord(secret[0]):04x}" in text.lower():
                text = escaped.sub(REDACTED_MARK, text)

    return text


@lru_cache(maxsize=128)
def _compile_secret_regexes(
    secret: str, *, quoted: bool
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns that find `secret` with any characters escaped; as in addresses, too, if `quoted`.

    One is for a plain first character, one for an escaped one.
    """
    # the first character apart: a search for it is much quicker
    escaped = _make_escaped_or_quoted_character_regex if quoted else _make_escaped_character_regex
    begin = secret[0]
    patterns = []
    for character in secret[1:]:
        patterns.append(f"(?:{_make_character_regex(character)}|{escaped(character)})")
    rest = "".join(patterns)
    if begin.isalnum():
        plainly = _make_character_regex(begin)
    else:
        plainly = _NOT_BEHIND_BACKSLASH_REGEX + _make_character_regex(begin)

    before, after = (
        ("(?<![^\\W_])", "(?![^\\W_])")
        if len(secret) < _MIN_SECRET_CHARS_WITHIN_WORDS
        else ("", "")
    )
    return re.compile(before + plainly + rest + after), re.compile(
        _NOT_BEHIND_BACKSLASH_REGEX + escaped(begin) + rest + after
    )


def _make_character_regex(character: str) -> str:
    """Match a character, or a punctuation character behind backslashes."""
    if character.isalnum():
        return re.escape(character)
    return rf"\\*{re.escape(character)}"


def _make_escaped_character_regex(character: str) -> str:
    return rf"\\+u(?i:{ord(character):04x})"


def _make_escaped_or_quoted_character_regex(character: str) -> str:
    quoted = "".join(rf"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "replace"))
    plus = r"|\+" if character == " " else ""
    return rf"(?:{_make_escaped_character_regex(character)}|(?i:{quoted}){plus})"


def redact_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Remove known secrets, and anything that looks like one, for messages and logs."""
    return _LIKELY_SECRET_REGEX.sub(REDACTED_MARK, strip_secrets(secrets, text))
