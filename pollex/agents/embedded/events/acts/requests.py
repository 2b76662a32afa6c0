"""The user requests, asks, changes the request, or asks for something else."""

from pollex.agents.embedded.events.acts.act import Act, rule
from pollex.agents.embedded.events.sentences import word_set

OPENING = (
    r"^(?:(?:and|ok|okay|also|so|great|thanks|thank you|yes|yeah|perfect|sure|alright|good|but|well"
    r"|cool|nice|hey|hi|hello|awesome|please|oh|hmm|sorry|excellent|wonderful|no|um|one more thing"
    r"|just)[,.!:) ]+)*"
)

CHANGEABLE = word_set(
    """offers offers_other proposes confirms fails unavailable none_found done says_no asks_back anything_else"""
)

ACTS = [
    Act(
        "requests",
        "user",
        "asks for something to be done or found",
        (
            rule(
                "want need like love looking wish searching interested trying hoping mood search thinking planning",
                r"\b(?:i|we)(?:'m|'d| am|'re| are| would| also| still| just| really| will| do)*(?: "
                r"also| still| just| really| now| then)* (?:want|need|like|love|looking (?:for|to|at)"
                r"|wish|searching for|interested in|trying to|hoping|in (?:the )?(?:need|mood|search) "
                r"(?:of|for)|thinking of|planning)\b(?! (?:that|it|this|them)\b(?: one)?[.! ]|$)",
                0.85,
                unless=(
                    r"\b(?:don't|do not|didn't|did not|not) (?:really )?(?:want|need|like)\b|\bi like "
                    r"(?:it|that|this|the)\b|all i need|that's what i|\bno longer\b|\bi need (?:is"
                    r"|was)\b|\bwanted was\b"
                ),
            ),
            rule(
                "can could would will please",
                r"\b(?:can|could|would|will) you (?:please |also |kindly |just |maybe |possibly "
                r")*(?:help|find|book|get|make|reserve|recommend|suggest|show|search|look|check|tell"
                r"|give|provide|assist|play|schedule|add|try|buy|purchase|send|set|transfer|see|do"
                r"|explain|cancel|change|write|fix|order|rent|locate|arrange|confirm|list|pick|call"
                r"|look up|run|create)\b"
                r"|\bplease (?:find|book|get|make|reserve|recommend|show|search|look|check|tell|give"
                r"|provide|play|schedule|add|try|buy|purchase|send|set|transfer|explain|cancel|change"
                r"|write|fix|order|help|rent|locate|list|advise|do)\b",
                0.9,
            ),
            rule(
                "find book get make reserve search look show play schedule buy check give recommend "
                "tell rent help order set",
                rf"{OPENING}(?:find|book|get|make|reserve|search|look|show|play|schedule|buy|check|give"
                rf"|recommend|tell|rent|help|order|set up|cancel|transfer|look up|list) (?!that out|it "
                rf"out)",
                0.85,
                unless=r"^(?:good|great) (?:find|look)|\bmake[s]? sense\b",
            ),
        ),
    ),
    Act(
        "asks",
        "user",
        "asks a question",
        (
            rule(
                "? what's where's any what which when where who how is are do does did can could will "
                "would has have was why should",
                rf"{OPENING}(?:what(?:'s)?|which|when|where(?:'s)?|who|how|why|is|are|do|does|did|can"
                rf"|could|will|would|has|have|was|were|should|may|any idea)\b",
                0.85,
                unless=(
                    r"^(?:\w+[,.! ]+)*(?:can|could|would|will) you (?:please |also |kindly |just "
                    r")*(?:book|reserve|make|schedule|buy|purchase|order|play|add|transfer|find|search"
                    r"|help|cancel|set|send|try)\b|^what a\b|^how (?:nice|great|about)\b|^what about\b"
                    r"|^(?:will|would) do\b|^do (?:it|that|so)\b"
                ),
            ),
            rule(
                "tell know give need get have provide",
                r"\b(?:tell me|let me know|give me|i need to know|need|get|have|know|provide)(?: with| "
                r"about)? (?:the|its|their|his|her|what|which|how|where|when|who|if|whether) (?:\w+ "
                r"){0,3}(?:phone|address|price|number|postcode|post code|rating|name|time|fare|cost"
                r"|fee|contact|director|genre|code|is|are|it|they|hours|id|location)\b",
                0.8,
                unless=r"\bneed the \w+ (?:to|for) (?:be|arrive)|\bnumber of (?:people|guests|tickets)",
                mood="statement",
            ),
        ),
    ),
    Act(
        "asks_other",
        "user",
        "asks for something else of the kind",
        (
            rule(
                "else other different another more alternatives alternative options option",
                r"\b(?:something|anything|any ?one|somewhere|someone|some|one|anywhere|somebody|anybody|who"
                r"|what|where) (?:else|other|different)\b(?! (?:to|i|you|that you)\b)|\banother (?:one"
                r"|option|\w+)\b|\bother (?:options?|ones?|choices?|\w+s)\b|\bdifferent (?:one|option"
                r"|\w+)\b|\bmore options\b|\balternatives?\b",
                0.9,
                unless=(
                    r"\bnothing else\b|\b(?:don't|do not|not|didn't) (?:need|want|require|have)\b|\bno "
                    r"other\b|\banother (?:question|thing|request|time|day|order)\b|\bi also\b"
                    r"|\banything else (?:i|you)|\bon the other hand\b|\beach other\b|\bevery other\b"
                    r"|\bother than\b|\bsome other time\b|\bdifferent (?:from|than|time|day)\b|\bin "
                    r"other words\b"
                ),
            ),
        ),
        after=frozenset({"offers", "offers_other", "none_found", "proposes", "unavailable", "says_no"}),
    ),
    Act(
        "changes",
        "user",
        "changes what was asked for",
        (
            rule(
                "instead change try make rather switch actually about prefer",
                r"\binstead\b|\bchange (?:it|that|the|my) \b|\b(?:how|what) about (?!the (?:address"
                r"|phone|price|rating|number|cost)|its|their|you|your)|\btry (?:for|again|another|a "
                r"different|it for|at|on) |\bmake (?:it|that) (?:for |on |at |a )?(?:\d|the|on|at|for"
                r"|a|two|three|four|one|five|six)|\bi(?:'d| would) (?:rather|prefer)\b|\bswitch (?:it "
                r"|that )?to\b|\brather make it\b|\bactually,? (?:i|make|can|could|let's|no)\b",
                0.85,
                unless=r"\bchange (?:my mind about you|rooms are)|\binstead of (?:me|you)|\btry again later\b",
            ),
        ),
        after=CHANGEABLE,
    ),
]
