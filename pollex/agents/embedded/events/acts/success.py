"""The assistant reports that something is done."""

from pollex.agents.embedded.events.acts.act import Act, rule

THING = (
    r"booking|reservation|order|payment|purchase|transfer|appointment|request|transaction|ticket|table|room|ride|taxi"
    r"|cab|car|refund|subscription|account|visit|flight|train|event|song|movie|alarm|reminder|delivery|meeting|message"
)
DID = (
    r"booked|reserved|scheduled|added|ordered|made|sent|transferred|arranged|completed|paid|bought|purchased|placed"
    r"|secured|changed|updated|canceled|cancelled|refunded|created|submitted|enabled|disabled|removed"
    r"|set up|started|rented|confirmed"
)
NOT = (
    r"\bnot\b|n't\b|unsuccess|\bfail|\bno\b|\bonce\b|\bif\b|\bbefore\b|\bwould\b|\bshould (?:be|i)\b|\bplease confirm\b"
    r"|\bcan be\b|\bmust be\b|\bcould be\b|\bneeds? to\b|\bwill be able\b|\bensure\b|\bconfirm that\b|\bmake sure\b"
    r"|unable|\bunless\b|\bfees?\b|\bfully booked|sorry|unfortunately|\bunavailable|\balready (?:full"
    r"|booked)|\bneed\b|\bconfirming\b|\byou said\b"
)

ACTS = [
    Act(
        "done",
        "assistant",
        "reports that what was asked for is done",
        (
            rule(
                "i've i have we've we",
                rf"\b(?:i've|i have|we've|we have|i|we) (?:now |just |gone ahead and |also |already "
                rf"|successfully |went ahead and )*(?:been able to (?:book|reserve|make|get|buy"
                rf"|schedule) |(?:{DID})\b)",
                0.9,
                unless=NOT + r"|made (?:a mistake|an error|it sound|you)|\bi (?:made|changed) (?:my|a mis)",
                mood="statement",
            ),
            rule(
                "successful successfully confirmed booked reserved scheduled purchased completed "
                "secured arranged placed transferred added ordered"
                " made paid sent success refunded updated canceled cancelled rented able bought "
                "started created submitted",
                rf"\b(?:{THING}|your [a-z]+(?: [a-z]+)?|everything|it|that|this|they)s? (?:was|were|is"
                rf"|are|has been|have been|'s)(?: now| all| also| been| already)* "
                rf"(?:a success|success|successful(?:ly)?(?: [a-z]+ed| made| sent)?|{DID})\b|\bsuccessfully (?:{DID})\b"
                rf"|\b(?:was|were) able to (?:book|reserve|schedule|make|get|buy|purchase|order|add"
                rf"|transfer|secure|arrange|complete|place|change)\b"
                rf"|^(?:great|ok|okay|alright|perfect|sure)?[,.! ]*(?:booking|reservation|order|payment"
                rf"|transfer|appointment)s? (?:was |is )?(?:successful|confirmed|completed|made|placed)",
                0.9,
                unless=NOT,
                mood="statement",
            ),
            rule(
                "reference confirmation",
                r"\b(?:reference|confirmation|order|booking) (?:number|code|id|#)(?: is| for)?(?: that)?[: ]",
                0.85,
                unless=NOT
                + r"|\bdo you have\b|\bplease (?:give|provide|tell)|\byour reference number\?|\bwill (?:get|receive)",
                mood="statement",
            ),
            rule(
                "set done booked through",
                r"\byou(?:'re| are) (?:all |now )?(?:booked|set)\b(?! (?:up|out))|^(?:(?:ok|okay|great"
                r"|alright|perfect|and)[,.! ]+)?(?:it's |it is |that's |all )?(?:done|booked|all "
                r"set)\b[!. ,]"
                r"|\b(?:went|has gone|did go) through\b",
                0.85,
                unless=NOT,
                mood="statement",
            ),
        ),
    ),
]
