"""The field that names whose a conversation is, found by its name and verified by its values.

Conversations of one user depend on each other: their thumbs are the user's habit as well as the
answer's doing. Whoever takes them for independent finds causes that are none.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from pollex.conversations.conversation import Conversation, Label
from pollex.errors import spell_options
from pollex.text import JsonObject, format_count

DO_NOT_GROUP_OPTION_VALUE = "none"
"""Given as the group's field: conversations stand alone, whatever the rows name."""

PERSON_WORDS = (
    *(
        "user",
        "uid",
        "username",
        "customer",
        "enduser",
        "patient",
        "student",
        "learner",
        "employee",
    ),
    *(
        "caller",
        "subscriber",
        "member",
        "visitor",
        "contact",
        "kunde",
        "kunden",
        "nutzer",
        "benutzer",
    ),
    *("anwender", "utilisateur", "usuario", "cliente", "utente", "gebruiker", "klant"),
)
"""Words that name a person by themselves, as the last of a field's name."""
PARTY_WORDS = (
    *("account", "client", "tenant", "sender", "author", "person", "profile", "phone", "device"),
    *("anonymous", "distinct", "external"),
)
"""Words that do so only before an id: by themselves they are channels, plans or roles as often."""
ID_WORDS = (
    *("id", "key", "uuid", "guid", "hash", "number", "nr", "no", "nummer", "email", "name", "ref"),
    *("token", "identifier", "sub"),
)
NOBODY_VALUES = (
    *("anonymous", "anon", "guest", "unknown", "none", "null", "nan", "n/a", "na", "-"),
    *("default", "undefined", "unbekannt", "gast"),
)
"""Values that name nobody, so that these conversations stand alone."""

SHORT_HASH_CHARS = 16
"""Characters of a hash that are kept."""
MAX_NEAR_COPY_SHARE_TO_NOTE_AS_FEW = 0.1
"""Share of conversations up to which near-copies cost too little to be looked at further."""
MIN_Z_SCORE_OF_SIMILAR_LABELS = 1.645

MAX_NESTING_DEPTH = 3
MIN_USERS = 4
"""Different users: three are plans or roles as likely as people."""
_WORD_PATTERN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(slots=True)
class UserFields:
    """Values of the fields that may name users, of each conversation.

    Attributes:
        known: By path to a field, the user of each conversation by its id.
        asked: By id, a hash of what the user said, where that is enough to be told from a
            coincidence.
        at_once: Whether those that name a user, of which the hash is only wanted where no field
            turns out to do so, are hashed as they come, too, since their words will be others
            later.
        ranks: By path, how surely its name says that it is a user's; the lowest goes first.
    """

    known: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, int | None] = field(default_factory=dict)
    at_once: bool = False
    _same: dict[str, str] = field(default_factory=dict)

    def look_at(self, conversation: Conversation) -> None:
        """Take down what the fields of a conversation say."""
        names_user = False
        for path, value in self._fields(conversation.metadata, ""):
            # one text for all of a user's conversations
            user = self._same.setdefault(value, value)
            self.known.setdefault(path, {})[conversation.id] = user
            names_user = True

        # what was asked is needed where no field names users; masking would change it later
        if self.at_once or not names_user:
            self._hash(conversation)

    def _hash(self, conversation: Conversation) -> None:
        if asked_hash := conversation.asked_hash:
            self.asked[conversation.id] = asked_hash[:SHORT_HASH_CHARS]

    def _fields(self, values: JsonObject, before: str) -> Iterator[tuple[str, str]]:
        """Yield the path and the value of each field that may name a user."""
        for name, value in values.items():
            path = f"{before}{name}"
            if isinstance(value, dict):
                if path.count(".") < MAX_NESTING_DEPTH:
                    yield from self._fields(value, f"{path}.")
            elif (
                isinstance(value, str | int)
                and not isinstance(value, bool)
                and self._rank(path) is not None
            ):
                text = str(value).strip()
                if text.casefold() not in NOBODY_VALUES and text:
                    yield path, text

    def near_copies(
        self, labels: Mapping[str, Label], conversations: Iterable[Conversation]
    ) -> dict[str, str]:
        """Return by id a group of conversations in which the user says the same, unless thumbs there are as elsewhere.

        Whoever says the same again is one user or one source; but a log of few questions has many
        users for each, and then thumbs are no more alike among those of one question than among
        all.

        Args:
            labels: Of all conversations, by id.
            conversations: All of them; read again only where some named a user, and no field names
                users.
        """
        # what wasn't hashed as it came is hashed now
        unhashed = self.known and not self.at_once
        for conversation in conversations if unhashed else ():
            if any(conversation.id in users for users in self.known.values()):
                self._hash(conversation)

        sizes = Counter(asked_hash for id_, asked_hash in self.asked.items() if id_ in labels)
        copies = {}
        for id_, asked_hash in self.asked.items():
            if id_ in labels and sizes[asked_hash] > 1:
                copies[id_] = asked_hash

        # all but one conversation of each group would be lost to the figures
        lost = len(copies) - len(set(copies.values()))
        if lost <= MAX_NEAR_COPY_SHARE_TO_NOTE_AS_FEW * len(labels) or _have_similar_labels(
            copies, labels
        ):
            return copies
        return {}

    def _rank(self, path: str) -> int | None:
        if path not in self.ranks:
            self.ranks[path] = rank_user_field(path)
        return self.ranks[path]

    def chosen(self, ids: Set[str]) -> tuple[str, dict[str, str]] | None:
        """Return the field that names the users of conversations with these ids, with each one's; None if none does."""
        order = sorted(
            self.known,
            key=lambda path: (self.ranks[path], path.count("."), path),
        )
        users_by_path = (
            (path, {id_: user for id_, user in self.known[path].items() if id_ in ids})
            for path in order
        )
        return next(
            ((path, users) for path, users in users_by_path if _are_user_values(users)),
            None,
        )


def rank_user_field(path: str) -> int | None:
    """Rank a field by how surely it names a user, 0 the surest; None where it doesn't.

    The last word decides, or the one before an id: `user_id`, `customerId`, or a user inside of
    metadata or a session.
    """
    words = [word.lower() for word in _WORD_PATTERN.findall(path)]
    if words and words[-1] in ID_WORDS:
        named = words[:-1]
    else:
        named = words

    if not named:
        return None

    has_id = len(named) < len(words)
    last = named[-1]
    if last in PERSON_WORDS:
        return 0 if has_id else 1
    # in one word: userid, Kundennummer
    if any(last == f"{person}{id_}" for person in PERSON_WORDS for id_ in ID_WORDS):
        return 0
    if has_id and last in PARTY_WORDS:
        return 2
    return None


def _have_similar_labels(groups: Mapping[str, str], labels: Mapping[str, Label]) -> bool:
    """Tell whether thumbs are more alike within groups than by chance: chi-square, by Wilson and Hilferty's normal."""
    thumbs: defaultdict[str, list[bool]] = defaultdict(list)
    for id_, group in groups.items():
        if labels[id_] is not Label.NONE:
            thumbs[group].append(labels[id_] is Label.POSITIVE)

    several = []
    for group_thumbs in thumbs.values():
        if len(group_thumbs) > 1:
            several.append(group_thumbs)

    every = []
    for group_thumbs in several:
        every.extend(group_thumbs)

    # how far the groups' shares of thumbs up are from the share of all
    share = sum(every) / max(len(every), 1)
    freedom = len(several) - 1
    if freedom < 1 or not 0 < share < 1:
        return False

    spread = sum(
        len(group_thumbs) * (sum(group_thumbs) / len(group_thumbs) - share) ** 2
        for group_thumbs in several
    ) / (share * (1 - share))
    part = 2 / (9 * freedom)
    return (
        float(((spread / freedom) ** (1 / 3) - (1 - part)) / part**0.5)
        > MIN_Z_SCORE_OF_SIMILAR_LABELS
    )


def format_copies_note(copies: Mapping[str, str]) -> str:
    """Say that near-copies count together, and how not to."""
    texts = len(set(copies.values()))
    return (
        f"in {len(copies):,} conversations the user says the same as in another of them "
        f"({format_count(texts, 'text')}): those of one text count as one "
        f"({spell_options(group_field=DO_NOT_GROUP_OPTION_VALUE)}: each alone)"
    )


def _are_user_values(users: Mapping[str, str]) -> bool:
    """Tell whether values are users: some come again, they aren't one a row, and not three in all."""
    return MIN_USERS <= len(set(users.values())) < len(users)


def format_users_note(
    path: str,
    users: Mapping[str, str],
    conversations: int,
) -> str:
    """Say by which field conversations are grouped, and how not to."""
    different = len(set(users.values()))
    most = Counter(users.values()).most_common(1)[0][1]
    alone = conversations - len(users)
    rest = ""
    if alone:
        rest = f"; {format_count(alone, 'conversation names', 'conversations name')} none"

    return (
        f"the field {path!r} names {different:,} users, up to {most:,} conversations each{rest}: "
        f"a user's conversations count together ({spell_options(group_field=DO_NOT_GROUP_OPTION_VALUE)}: each alone)"
    )
