"""What says who somebody is, in texts: mail addresses, links, numbers and keys, found and replaced by placeholders.

A placeholder (`<MAIL_1>`) stands for the same thing wherever that comes in a conversation. Patterns
find candidates; phone numbers, cards, accounts and national ids are then checked by what their
makers publish (`phonenumbers`, `python-stdnum`), so that prices, times, versions and order numbers
stay.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import phonenumbers
from stdnum import iban, luhn
from stdnum.us import ssn

from pollex.conversations.conversation import Conversation, Feedback
from pollex.errors import WrongUse
from pollex.text import JsonDict


class Identifier(NamedTuple):
    """Characters of a text that say who somebody is."""

    start: int
    end: int
    kind: str


IdentifierFinder = Callable[[str], Iterator[Identifier]]
"""Finds one kind of thing in a text."""

REGIONS_TRIED_FOR_PHONE_NUMBERS = ("US", "GB", "DE", "FR", "IN", "AU")
"""Where numbers without a country code may be from."""
CONTEXT_CHARS_BEFORE_NUMBER = 40
"""Characters before a number in which a word says what it is."""

_MAIL_PATTERN = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_TOP_LEVEL_DOMAINS = (
    "com|org|net|edu|gov|io|co|uk|de|fr|eu|info|app|dev|ai|ch|at|nl|es|it|ca|au|in|us|biz|me|ly"
)
_LINK_PATTERN = re.compile(
    r"\b(?:https?|ftp|wss?)://[^\s<>\"'`]+"
    r"|\bwww\.[^\s<>\"'`]+\.[^\s<>\"'`]+"
    rf"|(?<![\w@./-])(?:[a-z\d](?:[a-z\d-]{{0,61}}[a-z\d])?\.){{1,5}}(?:{_TOP_LEVEL_DOMAINS})(?:/[^\s<>\"'`]*|(?![\w.@-]|\.\w))",
    re.IGNORECASE,
)
_LINK_TRAILING_SIGNS = ".,;:!?)]}'\"*"
_IP_PATTERN = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\d)"
)
_VERSION_WORD_PATTERN = re.compile(
    r"\b(?:v|versions?|release|build|python|upgrad\w+ to|firmware)\W{0,3}$",
    re.IGNORECASE,
)
_IBAN_PATTERN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z\d]{2,4}){3,8}\b", re.IGNORECASE)
_NUMBER_PATTERN = re.compile(
    r"(?<![\w.,$€£#-])(?:\+|\(|00)?\d(?:[ ()./-]{0,2}\d){5,18}(?![\w-]|[.,]\d|%)"
)
_KEY_PATTERN = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[\w-]{12,}"
    r"|\b(?:AKIA|ASIA)[A-Z\d]{16}\b"
    r"|\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\bhf_\w{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END)){0,8000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_NAMED_SECRET_PATTERN = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pwd|pin(?: code| number)?|api[ _-]?key|secret(?:[ _-]key)?"
    r"|access[ _-]?(?:key|token)"
    r"|auth(?:entication)?[ _-]?token|bearer)\b(?:\s+(?:is|was|=)|\s*[:=])?\s*[\"'`“]?(?P<value>[^\s\"'`”,;<>]{4,200})",
    re.IGNORECASE,
)
_PHONE_WORD_PATTERN = re.compile(
    r"\b(?:phone|tel|telephone|call|mobile|cell|fax|whats ?app|sms|text|reach|dial|ring|hotline|line|contact)\w*\b",
    re.IGNORECASE,
)
_ACCOUNT_WORD_PATTERN = re.compile(
    r"\b(?:account|acct|a/c|routing|sort code|iban|customer|member(?:ship)?|client|policy|insurance|loyalty)\b",
    re.IGNORECASE,
)
_ID_WORD_PATTERN = re.compile(
    r"\b(?:ssn|social security|passport|licen[cs]e|national id|tax (?:id|number)|nino|personal id|id card|vat)\b",
    re.IGNORECASE,
)
_CARD_WORD_PATTERN = re.compile(r"\b(?:card|visa|mastercard|amex|credit|debit)\b", re.IGNORECASE)
_NOT_PHONE_PATTERN = re.compile(
    r"\b(?:order|ticket|case|invoice|reference|ref|booking|confirmation|tracking|flight|isbn|version|id|model|serial|sku"
    r"|part|timestamp|commit|error|line|port|pid|rows?|issue|pr)\b\W{0,3}(?:no\.?|number|code|is|:|#|\W)*$",
    re.IGNORECASE,
)
_DATE_PATTERN = re.compile(
    r"(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:0?[1-9]|[12]\d|3[01])(?:[ T]?\d{1,2})?"
    r"|(?:0?[1-9]|[12]\d|3[01])[-./](?:0?[1-9]|[12]\d|3[01])[-./](?:19|20)?\d\d"
    r"|(?:19|20)\d\d ?[-/] ?(?:19|20)?\d\d"
)


def find_mails(text: str) -> Iterator[Identifier]:
    """Find mail addresses."""
    for match in _MAIL_PATTERN.finditer(text):
        if "@" in text:
            yield Identifier(*match.span(), "MAIL")


def find_links(text: str) -> Iterator[Identifier]:
    """Find addresses of the web, and of machines."""
    # a sentence's punctuation doesn't belong to the address
    for match in _LINK_PATTERN.finditer(text):
        yield Identifier(
            match.start(),
            match.start() + len(match.group().rstrip(_LINK_TRAILING_SIGNS)),
            "LINK",
        )

    # what looks like an IP address may be a version
    for match in _IP_PATTERN.finditer(text):
        if not _VERSION_WORD_PATTERN.search(
            text[max(0, match.start() - CONTEXT_CHARS_BEFORE_NUMBER) : match.start()]
        ):
            yield Identifier(*match.span(), "IP")


def find_credentials(text: str) -> Iterator[Identifier]:
    """Find credentials: those that show by their form, and those that are said to be one."""
    # by their form, then by the words before them
    for match in _KEY_PATTERN.finditer(text):
        yield Identifier(*match.span(), "KEY")

    for match in _NAMED_SECRET_PATTERN.finditer(text):
        value = match.group("value").rstrip(".!?)")
        has_digit = any(c.isdigit() for c in value)
        mixed = has_digit and (any(c.isalpha() for c in value) or len(value) <= 8)
        inner = value[1:-1].replace("-", "").replace("/", "")
        has_sign = len(value) >= 6 and any(not c.isalnum() for c in inner)
        if mixed or has_sign:
            start = match.start("value")
            yield Identifier(start, start + len(value), "KEY")


def find_account_numbers(text: str) -> Iterator[Identifier]:
    """Find international bank account numbers whose check digits are right, or that are called so."""
    for match in _IBAN_PATTERN.finditer(text):
        words = match.group().split(" ")
        # the words that follow may look like a part of it
        for count in range(len(words), 0, -1):
            candidate = " ".join(words[:count])
            if iban.is_valid(candidate, check_country=False):
                yield Identifier(
                    match.start(),
                    match.start() + len(candidate),
                    "ACCOUNT",
                )
                break
        else:
            # its check digits are wrong, and it is called an IBAN
            before = text[max(0, match.start() - 12) : match.start()]
            if re.search(r"\bIBAN\W{0,6}(?:is\W)?$", before, re.IGNORECASE):
                yield Identifier(*match.span(), "ACCOUNT")


def find_numbers(text: str) -> Iterator[Identifier]:
    """Find numbers of phones, cards, accounts and people."""
    for match in _NUMBER_PATTERN.finditer(text):
        before = text[max(0, match.start() - CONTEXT_CHARS_BEFORE_NUMBER) : match.start()]
        after = text[match.end() : match.end() + 1]
        if kind := classify_number(match.group(), before, after):
            yield Identifier(*match.span(), kind)


def classify_number(number: str, before: str, after: str = "") -> str:
    """Return what a number is, by its digits and the words before it; empty for one that says nothing of anybody."""
    # dates and times are nobody's
    digits = re.sub(r"\D", "", number)
    if _DATE_PATTERN.fullmatch(number) or (after == ":" and len(digits) < 12):
        return ""
    # numbers that their makers' check digits confirm
    if (
        13 <= len(digits) <= 19
        and digits[0] in "23456"
        and luhn.is_valid(digits)
        and not _NOT_PHONE_PATTERN.search(before)
    ):
        return "CARD"
    if re.fullmatch(r"\d{3}-\d{2}-\d{4}", number) and ssn.is_valid(number):
        return "ID"

    # else the word before it says what it is
    named = find_kind_named_before(before)
    if named and named != "PHONE" and not _NOT_PHONE_PATTERN.search(before):
        return named
    if is_phone_number(number, digits, before, named=named == "PHONE"):
        return "PHONE"
    return ""


_WORD_PATTERN_BY_KIND = {
    "ID": _ID_WORD_PATTERN,
    "CARD": _CARD_WORD_PATTERN,
    "ACCOUNT": _ACCOUNT_WORD_PATTERN,
    "PHONE": _PHONE_WORD_PATTERN,
}


def find_kind_named_before(before: str) -> str:
    """Return the kind that the last telling word before a number names; empty without one."""
    last = {}
    for kind, word in _WORD_PATTERN_BY_KIND.items():
        ends = [match.end() for match in word.finditer(before)]
        last[kind] = max(ends, default=-1)

    best = max(last, key=lambda kind: last[kind])
    return best if last[best] >= 0 else ""


def is_phone_number(
    number: str,
    digits: str,
    before: str,
    *,
    named: bool,
) -> bool:
    """Return whether a number is one of a phone: valid somewhere, and written or named like one."""
    if not 7 <= len(digits) <= 15 or _NOT_PHONE_PATTERN.search(before):
        return False
    if number.startswith(("+", "00")):
        return (
            is_valid_phone_number(number if number[0] == "+" else f"+{number[2:]}", None) or named
        )

    # written in groups, as phone numbers are, and not as thousands are
    in_thousands = re.fullmatch(r"\d+(?: \d{3})*", number)
    written = bool(re.search(r"\d[ )./-]{1,2}\d", number)) and not in_thousands
    if named and (written or len(digits) >= 9):
        return True
    if not (named or written):
        return False

    is_valid_somewhere = any(
        is_valid_phone_number(number, region) for region in REGIONS_TRIED_FOR_PHONE_NUMBERS
    )
    return is_valid_somewhere and (named or len(digits) >= 9)


def is_valid_phone_number(number: str, region: str | None) -> bool:
    """Return whether a phone number may be in use."""
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


IDENTIFIER_FINDERS: tuple[IdentifierFinder, ...] = (
    find_credentials,
    find_mails,
    find_links,
    find_account_numbers,
    find_numbers,
)
"""In the order in which they win where two find the same characters."""


def choose_finders(redact: str) -> tuple[IdentifierFinder, ...]:
    """Return what finds all that is to go: `load_name_finder` finds names and places, too.

    Raises:
        WrongUse: What finds names is not installed.
    """
    if redact != "names":
        return IDENTIFIER_FINDERS
    return (*IDENTIFIER_FINDERS, load_name_finder())


def find_identifiers(
    text: str, finders: Sequence[IdentifierFinder] = IDENTIFIER_FINDERS
) -> list[Identifier]:
    """Return what is found in a text, in order, without overlaps."""
    identifiers: list[Identifier] = []
    for find in finders:
        for identifier in find(text):
            # behind all that begin before its end; none of them overlap
            place = bisect_left(identifiers, (identifier.end,))
            if not place or identifiers[place - 1].end <= identifier.start:
                identifiers.insert(place, identifier)

    return identifiers


class Placeholders:
    """The placeholders of one conversation.

    Attributes:
        originals: What each stands for.
    """

    def __init__(self, finders: Sequence[IdentifierFinder] = IDENTIFIER_FINDERS) -> None:
        self.originals: dict[str, str] = {}
        self._finders = finders
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def redacted(self, text: str) -> str:
        """Return the text with placeholders."""
        parts = []
        end = 0
        for identifier in find_identifiers(text, self._finders):
            placeholder = self._placeholder_of(
                identifier.kind,
                text[identifier.start : identifier.end],
            )
            parts += [text[end : identifier.start], placeholder]
            end = identifier.end

        return "".join([*parts, text[end:]])

    def everywhere(self, value: object) -> object:
        """Return a JSON value with placeholders in all its texts."""
        if isinstance(value, str):
            return self.redacted(value)
        if isinstance(value, dict):
            return {self.redacted(name): self.everywhere(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.everywhere(inner) for inner in value]
        return value

    def _placeholder_of(self, kind: str, original: str) -> str:
        """Return the placeholder of a text; numbers count as the same however they are written."""
        same = original.casefold()
        if kind in ("PHONE", "CARD", "ID"):
            same = re.sub(r"[^\d+]", "", original)

        if (kind, same) not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[kind, same] = name = f"<{kind}_{self._counts[kind]}>"
            self.originals[name] = original

        return self._names[kind, same]


def make_pseudonym(name: str) -> str:
    """Return an id in place of one that says who somebody is; the same for the same."""
    data = name.encode("utf-8", "replace")
    digest = hashlib.blake2b(data, digest_size=8, person=b"pollex").hexdigest()
    return f"person-{digest}"


def mask_conversation(
    conversation: Conversation, finders: Sequence[IdentifierFinder] = IDENTIFIER_FINDERS
) -> tuple[Conversation, dict[str, str]]:
    """Return a conversation without what says who somebody is, and what each placeholder stands for."""
    # texts with placeholders, which mean the same throughout the conversation
    places = Placeholders(finders)
    turns = tuple(turn.mapped(places.redacted) for turn in conversation.turns)
    feedback = tuple(
        _redact_feedback(feedback, places, finders) for feedback in conversation.feedback
    )
    sources = tuple(source.mapped(places.redacted) for source in conversation.sources)
    changes: JsonDict = {
        "turns": turns,
        "feedback": feedback,
        "sources": sources,
    }
    changes["metadata"] = places.everywhere(conversation.metadata)
    # ids that say who somebody is become pseudonyms
    for field in ("id", "judge", "group"):
        value = getattr(conversation, field)
        if value is not None and find_identifiers(value, finders):
            changes[field] = make_pseudonym(value)

    return conversation.model_copy(update=changes), places.originals


def _redact_feedback(
    feedback: Feedback,
    places: Placeholders,
    finders: Sequence[IdentifierFinder],
) -> Feedback:
    named = feedback.author is not None and bool(find_identifiers(feedback.author, finders))
    return feedback.mapped(places.redacted).model_copy(
        update={"author": make_pseudonym(str(feedback.author))} if named else {}
    )


PLACEHOLDER_BY_ENTITY_TYPE = {"PERSON": "PERSON", "LOCATION": "PLACE"}
MIN_SCORE_OF_RECOGNIZED_NAME = 0.5
LANGUAGE_OF_NAME_FINDER = "en"


def load_name_finder() -> Callable[[str], Iterator[Identifier]]:
    """Return what finds names of people and places: Presidio, with an installed model of spaCy.

    Raises:
        WrongUse: Presidio or a model of spaCy's is missing.
    """
    try:  # they take seconds to import
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
        from presidio_analyzer.predefined_recognizers import SpacyRecognizer
    except ImportError:
        raise WrongUse(
            "names and places are found by a package that is not installed",
            hint="install it (`pip install 'pollex[names]'`), or give `--set redact=yes`",
        ) from None

    # the last of the installed models, by name
    installed_models = []
    for model in spacy.util.get_installed_models():
        if model.startswith(f"{LANGUAGE_OF_NAME_FINDER}_"):
            installed_models.append(model)
    models = sorted(installed_models)
    if not models:
        raise WrongUse(
            "names and places are found by a model of spaCy's, and none is installed",
            hint="install one (`python -m spacy download en_core_web_sm`), or give `--set redact=yes`",
        )

    # Only names: its other finders overlap with ours, and the one for mail addresses asks the
    # network.
    registry = RecognizerRegistry(
        recognizers=[SpacyRecognizer(supported_entities=list(PLACEHOLDER_BY_ENTITY_TYPE))]
    )
    engine = SpacyNlpEngine(
        models=[{"lang_code": LANGUAGE_OF_NAME_FINDER, "model_name": models[-1]}]
    )
    analyzer = AnalyzerEngine(
        registry=registry,
        nlp_engine=engine,
        supported_languages=[LANGUAGE_OF_NAME_FINDER],
    )

    def find(text: str) -> Iterator[Identifier]:
        for entity in analyzer.analyze(
            text,
            language=LANGUAGE_OF_NAME_FINDER,
            entities=list(PLACEHOLDER_BY_ENTITY_TYPE),
            score_threshold=MIN_SCORE_OF_RECOGNIZED_NAME,
        ):
            yield Identifier(
                entity.start,
                entity.end,
                PLACEHOLDER_BY_ENTITY_TYPE[entity.entity_type],
            )

    return find
