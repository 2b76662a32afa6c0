"""The assistant offers something concrete, another way, or to act."""

from pollex.agents.embedded.events.acts.act import Act, rule

MODAL = (
    r"(?:would you like(?: for)?(?: me)?|do you want(?: me)?|do you wish(?: me)?|should i|shall (?:i"
    r"|we)|can i|may i|could i|want me|would you care"
    r"|do you need me|would you prefer(?: that)?(?: i)?|how about i|do you need(?: me)?|are you ready"
    r"|would it help if i|is it (?:ok|okay) if i)"
)
OTHER = (
    r"another|different|other|else|instead|alternative|later|earlier|change|similar|alternate|expand"
    r"|broaden|adjust|widen"
)
ACTING = (
    r"book|reserve|schedule|make|buy|purchase|order|add|play|set|place|transfer|send|call|arrange|get"
    r"|rent|cancel|proceed|go ahead|submit|create|start|open|confirm"
    r"|apply|enable|refund|register|sign|subscribe|pay|watch|stream|visit|finalize|hold|secure"
)

ACTS = [
    Act(
        "offers_other",
        "assistant",
        "offers another time, or something else in place of what was wanted",
        (
            rule(
                "another different other else instead alternative later earlier change similar "
                "alternate expand broaden adjust widen",
                rf"\b(?:would you (?:like|prefer|consider|mind|be)|do you want|should i|shall (?:i|we)"
                rf"|can i|could i|how about|what about|want me|maybe|perhaps|may i|would|can we|"
                rf"do you (?:have|need)|is there|are you|will|could we|i can|we could|i could|you could"
                rf"|why not|let me know if)\b.{{0,90}}\b(?:{OTHER})\b",
                0.9,
                unless=r"\b(?:any(?:thing)?|some(?:thing)?|what|nothing)\s*(?:else|more|other)\b|\bany "
                r"other\b|\bother (?:questions?|requests?|ways?|help|services?|info)|how (?:else"
                r"|may i)"
                r"|\belse i can\b|\bwhat else\b|further\b|(?:change|make) (?:any|the) (?:details"
                r"|booking|reservation)\b|\bwould you like to change anything|\b(?:another|different) "
                r"(?:task|way|thing|search|question|request)\b|\bor something else\b",
            ),
            rule(
                "how what",
                r"\b(?:how|what) about (?:at )?(?:\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m|o'clock|in the)|noon"
                r"|midday|half past|quarter)",
                0.9,
            ),
        ),
    ),
    Act(
        "proposes",
        "assistant",
        "proposes to do something for the user",
        (
            rule(
                "would do should shall can may could want are",
                rf"\b{MODAL}(?: to| like| please| also| go ahead and| now| still| for you| try(?: and)? "
                rf"to| help you)* (?P<detail>{ACTING})\b",
                0.9,
                unless=(
                    rf"\b(?:any(?:thing)?|something|what)\s*(?:else|more)\b|\b(?:{OTHER})\b|^(?:what"
                    rf"|which|when|where|how many|how long|at what|for what|who)\b|\b(?:what|which) "
                    rf"(?:time|date|day|city|kind|type)\b"
                ),
                mood="question",
            ),
        ),
    ),
    Act(
        "offers",
        "assistant",
        "names something concrete to choose",
        (
            rule(
                "how what",
                r"\b(?:how|what) about\b(?! (?:\w+ing\b|pre\b|an appointment|a reservation|some "
                r"tickets|you|i|that\?|at |\d|price|the (?:price|time|date|area"
                r"|location|number)|your|any|some other|another|a different|a time|changing))",
                0.85,
                mood="question",
            ),
            rule(
                "found find recommend suggest see discovered located have got showing",
                r"\b(?:i|we)(?:'ve|'d| have| would| can| do| could)?(?: also| just| only| really| "
                r"highly| strongly| was able to| definitely)*"
                r" (?:found|find|recommend|suggest|discovered|located|see|got)\b(?: you)?(?: that)?(?: "
                r"you)? (?:try |the |a |an |one |\d|two|three|four|five|several|many|it |this |for you"
                r"|some )"
                r"|\b(?:i|we) (?:also |do |only |currently )*have (?:found )?(?:the |a |an |one |\d+"
                r"|two|three|four|five|six|seven|several|many|some|both) ?(?!question|problem|few "
                r"questions|moment)",
                0.85,
                unless=(
                    r"\b(?:not|n't|no|unable|nothing|unfortunately|none)\b|\b(?:error|bug|cause"
                    r"|problem|issue|mistake|typo)\b|\bsuggest (?:you|that you) (?:call|contact)|i "
                    r"have (?:that|it|your|all)\b|booked"
                ),
            ),
            rule(
                "there there's",
                r"\bthere(?:'s| is| are)(?: also| only| currently| about| actually)* (?:a |an |one\b"
                r"|the |\d+|two|three|four|five|six|seven|eight|nine|ten|several|many|some|plenty|lots"
                r"|multiple|various|both )"
                r"(?!.{0,12}\b(?:way|problem|issue|error|chance|fee|charge|percent|%|cost|limit|reason"
                r"|difference|bug|exception|moment)\b)",
                0.8,
                unless=(
                    r"\b(?:not|n't|no|unfortunately|none)\b|percent|\bchance\b|\bfee\b|\bcharge\b"
                    r"|humidity|\berror\b|\bparking\b|\bwifi\b|internet"
                ),
            ),
            rule(
                "is good great nice popular option choice",
                r"\b(?:is|are|would be|might be|sounds like) (?:also )?(?:a |an |one )?(?:really |very "
                r"|pretty )?(?:\w+ )?(?:good|great|nice|lovely|excellent|popular|wonderful|fantastic"
                r"|perfect)"
                r"(?: \w+)? (?:option|choice|place|spot|one|pick|restaurant|hotel|\w+) (?:in|at|for"
                r"|located|on|near|to|that|with)\b",
                0.75,
                unless=r"\b(?:not|n't|no)\b|\bday\b|\bquestion\b",
                mood="statement",
            ),
        ),
    ),
]
