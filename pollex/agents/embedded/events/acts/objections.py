"""The user corrects, complains, knows already, or reports that advice didn't help."""

from pollex.agents.embedded.events.acts.act import Act, rule

ASSERTED = frozenset(
    {
        "gives_code",
        "offers",
        "offers_other",
        "proposes",
        "confirms",
        "done",
        "instructs",
        "explains",
        "says_no",
        "none_found",
        "asks_back",
        "fails",
        "doesnt_know",
        "anything_else",
        "takes_back",
        "refers",
        "refuses",
    }
)

ACTS = [
    Act(
        "corrects",
        "user",
        "says that something the assistant said is wrong",
        (
            rule(
                "no not wrong incorrect mistake isn't wasn't meant didn't said actually",
                r"^(?:no|nope|sorry|wait|hmm|um|oh|actually|but)?[,.! ]*(?:no[,.! ]+)?(?:that's|that "
                r"is|this is|it's|it is|that was|it was|thats|you're|you are) (?:still )?(?:not "
                r"(?:right|correct|true|what i|it|the)|wrong|incorrect|a mistake|the wrong|mistaken)\b"
                r"|\b(?:isn't|is not|wasn't) (?:right|correct|true|what i)\b|^no[,.! ]+(?:i|it|it's"
                r"|the|my|we|you|not|that's|make|rather|for|on|at|in|one|two|three|four|five|six|just "
                r"one|only)\b(?! (?:don't need|do not need|am good|am fine|think that|think i|'m good"
                r"|thank|am all|just|think))"
                r"|\bi (?:meant|said|asked for|wanted)\b(?=.{0,60}\bnot\b)|\bnot .{2,30}, (?:but|i "
                r"said|i meant)\b|\byou (?:got|have) (?:it|that|the \w+) wrong\b|\bi meant\b|\byou "
                r"(?:messed|mixed) (?:it |that )?up\b",
                0.85,
                unless=(
                    r"^no[,. ]+(?:i (?:don't|do not) (?:have|care|mind|want|think|need)|thank"
                    r"|that(?:'s| is) (?:all|it|everything|fine|ok)|i(?:'m| am) (?:good|fine|all|ok)"
                    r"|not (?:now|yet|right now|at|really|today))|\bsomething wrong with\b|\bwhat(?:'s"
                    r"| is) wrong\b|^no[,. ]+(?:i'll|i will|i can|maybe|it's (?:ok|fine|alright)|it is "
                    r"(?:ok|fine)|i just|i think|we're good)"
                ),
            ),
        ),
        after=frozenset(
            {"confirms", "done", "instructs", "explains", "says_no", "none_found", "takes_back", "gives_code"}
        ),
    ),
    Act(
        "complains",
        "user",
        "complains about the assistant or its reply",
        (
            rule(
                "mentioned wrote confusing disappointing unhelpful sure don't already just told said "
                "asked ignored keep kept you read listen answer understand unacceptable ridiculous "
                "frustrating annoying useless disappointed helpful confused waste why not "
                "inconvenient bad terrible",
                r"\b(?:as |like )?i (?:just |already |have already |had already )(?:said|told you"
                r"|wrote|mentioned|stated|asked|specified|posted|explained|gave)\b|\bas i (?:said"
                r"|mentioned|wrote|told)\b|\bi (?:told you|asked you)\b|(?<!what )\bi (?:said"
                r"|mentioned)\b(?! (?:yes|thanks|ok))|^read (?:what|my|it|the)\b"
                r"|\byou (?:already (?:asked|said|told)|kept|keep (?:\w+ing|on)|did not (?:answer|read"
                r"|listen|give|tell|understand)|didn't (?:answer|read|listen|give|tell|understand"
                r"|even)|have not (?:answered|given|told)|haven't (?:answered|given|told|even)|ignored"
                r"|misunderstood|are not (?:listening|helping)|aren't (?:listening|helping)|don't "
                r"(?:understand|listen|seem to))"
                r"|\bnot what i (?:asked|want|wanted|said|meant|need|needed)\b|\b(?:does not|doesn't"
                r"|didn't) answer (?:my|the)\b|\b(?:that's|this is|that is|you're|you are|how) (?:just "
                r"|really |very |so |not |completely |pretty )*(?:unacceptable|ridiculous|frustrating"
                r"|annoying|useless|disappoint\w+|unhelpful|helpful at all|a waste|terrible"
                r"|inconvenient|absurd|confusing)"
                r"|\bi(?:'m| am) (?:\w+ )?(?:confused|frustrated|annoyed|disappointed|upset|angry)\b"
                r"|\bwaste of (?:my )?time\b|\bare you (?:even |really )?(?:listening|reading|making"
                r"|sure)\b|\bwhy (?:can't you|won't you|are you not|aren't you|did you|would you"
                r"|didn't you) \b",
                0.85,
                unless=(
                    r"\bif (?:you|i) (?:already|said)|\byou already (?:helped|gave me everything|have)"
                    r"|\bnot (?:confused|disappointed|frustrated)\b|\bi said (?:thanks|thank)"
                ),
            ),
        ),
        after=ASSERTED,
    ),
    Act(
        "knows_already",
        "user",
        "says that what the assistant suggests is known, or was tried",
        (
            rule(
                "already seen tried know checked had watched heard read did been",
                r"\bi(?:'ve| have|'d)? already (?:seen|watched|tried|read|been|visited|did|done|own"
                r"|know|checked|heard|have|had|got|set|disabled|installed|run|ran|looked|restarted"
                r"|cleared|added|removed|updated|eaten|stayed|verified|set|reinstalled)\b|\balready "
                r"(?:tried|did|done|checked|seen|have (?:that|it|one)|know that)\b"
                r"|\bi(?:'ve| have) (?:seen|watched|tried|read|been (?:there|to)|heard) (?:it|that"
                r"|this|them|those|all|both|there)\b|\bi (?:know|knew) (?:that|this|about that|about "
                r"it)\b|\b(?:tried|checked|did) (?:that|it|this|both|all of (?:that|these))(?: already"
                r"| before|,| and| twice|\b)|\bseen it\b|\bbeen there\b",
                0.85,
                unless=(
                    r"\b(?:haven't|have not|never|not|hasn't|didn't|don't)\b|\bif i\b|\bhave you\b"
                    r"|\bdid you\b|\bi know that .{0,20}\b(?:is|are|will|you)\b"
                ),
                mood="statement",
            ),
        ),
        after=frozenset({"offers", "offers_other", "instructs", "explains", "proposes", "asks_back", "refers"}),
    ),
    Act(
        "still_fails",
        "user",
        "reports that the advice didn't help",
        (
            rule(
                "didn't doesn't did does isn't still same no nothing not n't now",
                r"\b(?:it|that|this|they|which|none of (?:it|them|that)|either)? ?(?:did|does|do|is"
                r"|has|have)(?: not|n't|nt) (?:work|help|chang|fix|solve|make (?:any|a) diff|do "
                r"anything|matter)\w*|\bstill (?:the same|fail|happen|not|no |get|crash|hang|there|see"
                r"|throw|broken|null|empty|slow|doesn't|isn't|can't|wrong|corrupt|leak|grow|shows?"
                r"|returns?|blocked|blinking|dripping|climbing|nothing|offline|dead|red)\w*"
                r"|\bsame (?:error|result|problem|thing|exception|issue|message|crash|behaviou?r"
                r"|output|as before|again)\b|\bno (?:effect|change|difference|luck|improvement|joy"
                r"|dice)\b|\bnothing (?:changed|happens|happened)\b|\b(?:makes|made) no difference\b",
                0.9,
                unless=(
                    r"^if\b|\bstill (?:not sure|no rush)|why (?:does|did) (?:it|that) not|\bif (?:it"
                    r"|that|this) (?:doesn't|does not|still)|same (?:time|day|area|price|place|group"
                    r"|thing for)|\bit does not matter\b|doesn't matter|\bdoes not matter\b"
                ),
                mood="statement",
            ),
        ),
        after=frozenset(
            {
                "instructs",
                "explains",
                "takes_back",
                "asks_back",
                "offers_other",
                "proposes",
                "doesnt_know",
                "gives_code",
            }
        ),
    ),
]
