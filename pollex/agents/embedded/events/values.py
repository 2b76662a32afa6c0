"""Values that sentences give: times, dates, prices, numbers."""

import re

TIME_REGEX = re.compile(
    r"\b\d{1,2}(?::\d\d)?\s*(?:o'?clock\s*)?[ap]\.?m\b|\b\d{1,2}:\d\d\b|\b\d{1,2} o'?clock\b|\b(?:noon"
    r"|midday|midnight)\b"
    r"|\b(?:half past|quarter (?:to|past)) \w+"
)
DATE_REGEX = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|\d{1,2}(?:st|nd|rd|th)"
    r"|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{1,2})\b"
)
PRICE_REGEX = re.compile(
    r"[$£€]\s?\d|\b\d+(?:\.\d+)?\s*(?:gbp|usd|eur|dollars?|pounds?|euros?|bucks)\b|\bfree\b"
)
NUMBER_OF_PEOPLE_REGEX = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight) (?:people|persons?|adults?|guests?|of us"
    r"|tickets?|seats?|passengers?)\b"
)
NUMBER_OF_NIGHTS_REGEX = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven) (?:nights?|days?)\b"
)
PHONE_NUMBER_REGEX = re.compile(r"\(?\+?\d[\d\-() ]{6,}\d|\b\d{7,}\b")
STREET_ADDRESS_REGEX = re.compile(
    r"\b\d+\S* (?:[a-z.']+ ){1,4}(?:street|st|road|rd|avenue|ave|way|lane|drive|dr|boulevard|blvd"
    r"|plaza|square|place|parkway|court)\b"
    r"|\b(?:street|road|avenue|boulevard|lane|located (?:at|on|in)|address is)\b"
)
RATING_REGEX = re.compile(r"\b\d(?:\.\d)?(?: |-)?(?:stars?|out of)?\b")
# a British postcode, letters around digits, or five digits
POSTCODE_REGEX = re.compile(
    r"\b[a-z]{1,2}\d{1,2}[a-z]? ?\d[a-z]{2}\b|\b[a-z]+\d+[a-z]+\b|\b\d{5}\b"
)

WANTED: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = (
    (
        "phone number",
        re.compile(r"\b(?:phone|telephone|contact) ?(?:number)?\b|\bnumber (?:to|i can) call\b"),
        PHONE_NUMBER_REGEX,
    ),
    (
        "address",
        re.compile(
            r"\baddress\b|\bwhere (?:is|are) (?:it|they|this|that)(?: located)?\b|\blocated\b"
        ),
        STREET_ADDRESS_REGEX,
    ),
    ("postcode", re.compile(r"\b(?:post ?code|zip(?: code)?|postal code)\b"), POSTCODE_REGEX),
    # “price range” asks for no price
    ("price", re.compile(r"\b(?:how much|price|cost|fare|fees?|charge)\b(?! range)"), PRICE_REGEX),
    ("rating", re.compile(r"\brating\b"), RATING_REGEX),
)
"""What users ask for by name, how a question says so, and how an answer looks."""

ASKED: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = (
    ("time", re.compile(r"\b(?:what|which) time\b|\bat what time\b"), TIME_REGEX),
    ("day", re.compile(r"\b(?:what|which) (?:day|date)\b"), DATE_REGEX),
    (
        "number of people",
        re.compile(
            r"\bhow many (?:people|persons|guests|tickets|seats|passengers)\b|\bfor how many\b(?! (?:days|nights))"
        ),
        NUMBER_OF_PEOPLE_REGEX,
    ),
    (
        "number of nights",
        re.compile(r"\bhow many (?:nights|days)\b|\bhow long (?:will|would|are) you\b"),
        NUMBER_OF_NIGHTS_REGEX,
    ),
)
"""What assistants ask for, how the question says so, and how a user's message gives it."""


def list_values_asked_for(low: str) -> list[tuple[str, re.Pattern[str]]]:
    """List what a user's question asks for by name, with a pattern of the answer."""
    pairs: list[tuple[str, re.Pattern[str]]] = []
    for name, question, value in WANTED:
        if question.search(low):
            pairs.append((name, value))
    return pairs


def names_time_price_or_number(low: str) -> bool:
    """Return whether a time, day, price, or number of people or nights is named."""
    return any(
        value.search(low)
        for value in (
            TIME_REGEX,
            DATE_REGEX,
            NUMBER_OF_PEOPLE_REGEX,
            NUMBER_OF_NIGHTS_REGEX,
            PRICE_REGEX,
        )
    )
