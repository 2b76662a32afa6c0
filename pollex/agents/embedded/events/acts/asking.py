"""The assistant asks: for details, for confirmation, whether there is anything else."""

from pollex.agents.embedded.events.acts.act import Act, rule

ELSE = (
    r"\b(?:any(?:thing)?|some(?:thing)?|what|nothing) ?(?:else|more)\b|\bany (?:other|further|more"
    r"|additional)\b|\bwhat else\b|\b(?:further|additional) (?:assist\w*|help|questions?)\b"
    r"|\bother (?:questions?|requests?|ways?|help|services?|inquiries|concerns)\b|\b(?:can|may|could"
    r"|do) (?:i|we) (?:be of|help|assist|serve)(?: you)?(?: with| in| further)? ?(?:any|some|today"
    r"|further|else|anything|more|\?)"
    r"|\bhow (?:else )?(?:can|may|could) i (?:help|assist)|\bis that (?:all|everything)\b|\bwill "
    r"(?:that|this) be (?:all|everything)\b|\bare you all set\b|\bdoes that cover\b"
    r"|\bwould (?:that|this) be all\b|\bis this everything\b|\bthat be all\b"
)

ACTS = [
    Act(
        "anything_else",
        "assistant",
        "asks whether there is anything else",
        (
            rule(
                "anything something what nothing any else more further other help assist that this "
                "everything all additional help? need",
                rf"(?:{ELSE})",
                0.9,
                unless=r"\b(?:try|see|hear|find|look for|check|search|prefer|consider|like) (?:\w+ "
                r")?(?:something|anything|any) (?:else|other)\b|\bis there (?:any|another) (?:\w+ "
                r")?(?:time|date|day|area|city|price|cuisine|type)"
                r"|\bany other (?:time|date|day|area|city|price|cuisine|type|preference|hotel"
                r"|restaurant|place)|\bwhat (?:else|more) (?:do you (?:know|see)|did|does|have you"
                r"|happens|is in|do you see)",
                mood="question",
            ),
            rule(
                "anything else other further more",
                r"\b(?:let me know|please (?:ask|tell)|feel free|just ask|happy to help|here to "
                r"help)\b.{0,60}\b(?:anything else|further|any other|anything more|more questions"
                r"|other questions|any questions)",
                0.85,
                mood="statement",
            ),
        ),
        longest=24,
    ),
    Act(
        "confirms",
        "assistant",
        "reads details back and asks whether they are right",
        (
            rule(
                "confirm reconfirm verify confirming double-check check reconfirm",
                r"\b(?:please|kindly) (?:re-?)?(?:confirm|verify)\b|\b(?:can|could|would|will) you "
                r"(?:please )?(?:re-?)?(?:confirm|verify)\b|^(?:okay|ok|so|great|alright|sure|perfect"
                r"|just)?[,.! ]*"
                r"(?:just )?(?:to |let me |i(?:'d| would)? (?:just )?(?:like|want) to |i'll |i will "
                r")?(?:just )?(?:quickly )?(?:(?:re-?)?confirm(?! that it)|verify|confirming"
                r"|double[- ]check)\b(?!.{0,30}\b(?:whether the|by running|in the log))",
                0.9,
                unless=(
                    r"\bconfirmed\b|confirm your identity|\bnot\b.{0,10}confirm|email to confirm|call "
                    r".{0,20}to confirm|\bcode to confirm|\bwhether\b"
                ),
            ),
            rule(
                "you you'd so",
                r"^(?:so|okay|ok|great|sure|alright|perfect|and)?[,.! ]*(?:so[, ]+)?(?:you|you'd)(?:'d"
                r"| would| will)? (?:want|like|need|wish|prefer) (?:to|a|an|the|me to|\d)\b",
                0.8,
                unless=r"\belse\b|\binstead\b|\bor\b.*\?$|\bif you\b|\bwhat\b|\bwhich\b|\bwhy\b",
            ),
            rule(
                "correct right accurate okay ok good alright look",
                r"\b(?:is|are|does|do) (?:that|this|it|everything|these|those|all (?:of )?(?:that"
                r"|this)|the following|they)(?: all| information| details| look| sound| seem)* "
                r"(?:correct|right|accurate|ok|okay|good|alright)\b|\bdo (?:these|those|the) \w+ "
                r"(?:look|sound|seem) (?:right|good|correct|ok|okay)\b"
                r"|,? (?:is that )?(?:correct|right|is that right|yes)\?$|\bam i (?:right|correct)\b"
                r"|\bdid i get (?:that|it|everything) right\b",
                0.85,
                unless=r"\bright (?:now|away)\b|\bsound(?:s)? good\b.*\belse\b",
                mood="question",
            ),
        ),
    ),
    Act(
        "asks_back",
        "assistant",
        "asks the user for a detail",
        (
            rule(
                "what which when where who whom how what's where's",
                r"(?:^|\b(?:and|or|so|ok|okay|sure|great|but|please|also|for|at|in|on|from|to|tell me"
                r"|know|alright|yes|perfect|certainly|absolutely)[,.! ]+)(?:(?:at|in|for|on|from|to"
                r"|with|by) )?"
                r"(?:what(?:'s|'re)?|which|when|where(?:'s)?|who|whom|how (?:many|much|long|late|far"
                r"|early|soon|often|old|big)|how would)\b(?! about\b| else\b| can i\b| may i\b| could "
                r"i\b| if\b)",
                0.9,
                unless=rf"{ELSE}|\bhow (?:can|may|could) i\b|\bwhat do you think\b|\bwhy not\b",
                mood="question",
            ),
            rule(
                "do you prefer preference any have would like is are did could can a mind",
                r"\bdo you have (?:a|any|an|some)\b.{0,40}\b(?:preference|preferred|particular"
                r"|specific|in mind|idea|budget|dates?|times?|location|area)\b|\bdo you prefer\b"
                r"|\bwould you prefer\b|\b(?:any|a) (?:particular|specific|preferred|certain)\b"
                r"|\bany preference\b|\bis there (?:a|any|an) (?:\w+ ){0,5}(?:you(?:'d| would| are)?"
                r"|in mind|preference)\b"
                r"|\b(?:can|could|would) you (?:please )?(?:tell|give|provide|share|show|specify"
                r"|clarify|send|post|paste|describe|let me know|be more specific|elaborate|narrow)\b"
                r"|\bdid you (?:mean|want)\b|\bin mind\?",
                0.9,
                unless=rf"{ELSE}|\bconfirm\b",
                mood="question",
            ),
            rule(
                "please need tell let give show post send paste",
                r"\bplease (?:tell|provide|specify|let me know|give|share|indicate|send|enter|post"
                r"|show|paste|describe)\b(?! me if)|\b(?:tell|give|show) me (?:about |more |the |your "
                r"|what|which|where|when|how)|\blet me know (?:what|which|where|when|how|your)\b"
                r"|\bi(?:'ll| will)?(?: just)? need (?:to know|your|you to (?:tell|provide|give"
                r"|specify|share|post)|a (?:little|bit|few) more|more (?:info|details))\b|^(?:post"
                r"|paste|send|show) (?:me )?(?:the|that|your)\b",
                0.85,
                unless=r"\bif you (?:need|have)\b|anything else|\bconfirm\b",
                mood="statement",
            ),
        ),
    ),
]
