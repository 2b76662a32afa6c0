"""The assistant fails at something, finds nothing, doesn't know, refuses: what it says it can't."""

from pollex.agents.embedded.events.acts.act import Act, rule

SEEK = r"find|locate[d]?|see any|spot|come up with|get any|show any"
TELL = (
    r"tell|say|answer|confirm|determine|verify|check|provide|give|share|know|comment|advise|speak|recommend"
    r"|guarantee|look up|access|see whether|see if"
)
HELP = r"help|assist|do that|do this|do so|discuss|comply|support|continue|handle|offer|process requests"
UNTOLD = (
    r"see|understand|reproduce|think|imagine|believe|wait|stress|be of|be|have|recall|remember|thank|promise|read|hear"
)
CUES = "couldn't couldnt could can't cant cannot can unable able failed manage managed"
SUBJECT = (
    r"(?:^|\b(?:i|we|i'm|i am|i was|we were|we are|we're|unfortunately|sorry|but|and|though|apologies"
    r"|afraid|system|so)\b[ ,.:;!-]*(?:\w+ly |still |also |just |again )?)"
)
INABLE = (
    SUBJECT + r"(?:was |am |were |are |have been |i'm |seem to be )?(?:still |also |again |\w+ly )?"
    r"(?:could ?n'?t|could not|couldnt|can ?not|can'?t|unable to|(?:not|wasn't|weren't) able to|failed "
    r"to|(?:did not|didn't) manage to)"
    r"(?: be able to| seem to| currently| actually| successfully| even| quite)*"
)
IF = r"^(?:if|once|when|in case|unless|should|let me know if)\b"
THING = (
    r"booking|reservation|attempt|request|transaction|payment|purchase|order|transfer|transport|appointment"
    r"|refund|upload|update|installation|delivery|change|cancellation|upgrade|return|deployment|call"
)
NOUNS_FREE = r"tables?|rooms?|seats?|openings?|slots?|times?|spots?|tickets?|places?|appointments?|dates?|cars?"

ACTS = [
    Act(
        "fails",
        "assistant",
        "reports that something that was asked for couldn't be done",
        (
            rule(
                CUES + " wasn't weren't am",
                rf"{INABLE} (?!(?:{SEEK}|{TELL}|{HELP}|{UNTOLD})\b)(?P<detail>[a-z]+)",
                0.95,
                unless=rf"{IF}|\b(?:can't|cannot|can not) (?:go wrong|complain|beat|miss|be (?:sure|certain))",
            ),
            rule(
                "deployment booking reservation attempt request transaction payment purchase order "
                "transfer appointment refund"
                " upload update installation delivery change cancellation upgrade return it that this",
                rf"\b(?:{THING})s?\b[^.?!,]{{0,30}}?\b(?:(?:was|is|were|has been) (?:unsuccessful|declined"
                r"|rejected|denied|not (?:been )?(?:successful|possible|completed?|made|booked"
                r"|accepted))\b|wasn't (?:successful"
                r"|possible|completed|made|accepted)|(?:could not|couldn't|cannot|can't) be (?:made|completed|booked"
                r"|processed|placed|confirmed)|(?:did not|didn't|has not|hasn't) (?:go|gone) through"
                r"|(?:has |have )?failed)",
                0.95,
                unless=IF + r"|if\b",
            ),
            rule(
                "didn't did not wrong error unsuccessful failed work",
                r"\b(?:it|that|this)(?: booking)? (?:did not|didn't|has not|hasn't) (?:work(?:ed)?(?: "
                r"out)?|go through|succeed)\b"
                r"|\bsomething went wrong\b|\b(?:i|we) (?:got|ran into|hit|encountered) an error\b"
                r"|\bthere (?:was|seems to be) an error\b"
                r"|\b(?:was|were|is) unsuccessful\b|^(?:sorry|unfortunately),? (?:it|that|this) failed\b",
                0.85,
                unless=IF + r"|\bif (?:it|that|this)\b",
                mood="statement",
            ),
        ),
    ),
    Act(
        "unavailable",
        "assistant",
        "says that what is wanted isn't available then",
        (
            rule(
                "available unavailable availability openings vacancies booked sold full free left stock",
                r"\b(?:is|are|was|were|has|have|seems?)(?:n't| not| no longer)(?: currently| going to "
                r"be| be)? available\b|\bunavailable\b"
                rf"|\bno (?:availability|openings?|vacanc(?:y|ies)|free (?:{NOUNS_FREE})"
                rf"|(?:{NOUNS_FREE})(?: are| is)? (?:available|left|free|open))\b"
                rf"|(?:\bnot|n't) have (?:any )?(?:availability|openings?|vacanc\w+|(?:{NOUNS_FREE}) "
                rf"(?:available|left|free))"
                r"|\bfully booked\b|\ball booked\b|\bbooked (?:up|solid|out)\b|\bsold out\b|\b(?:is"
                r"|are|was|were)(?: already| all| completely)? full\b"
                r"|\bout of stock\b|\bnone (?:is|are) (?:available|left|free)\b",
                0.9,
                unless=IF
                + (
                    r"|information|full (?:name|address|price|list|refund|of\b)|\bif\b|you're all "
                    r"booked|you are all booked|\bnot (?:fully|sold)"
                ),
                mood="statement",
            ),
        ),
    ),
    Act(
        "none_found",
        "assistant",
        "says that a search found nothing",
        (
            rule(
                CUES,
                rf"{INABLE} (?:{SEEK})\b(?! (?:out|the (?:file|code|error|problem|cause|reason|line)))",
                0.95,
                unless=rf"{IF}|information|policy|phone number|\bdetails?\b",
            ),
            rule(
                "no not none nothing any don't didn't doesn't aren't isn't zero",
                r"\bthere (?:are|were|do not seem to be|don't seem to be|aren't|are not|appears? to be"
                r"|seems? to be)(?: currently| unfortunately| actually)?"
                r" (?:no|not any|any|none|nothing|zero)\b(?! (?:charge|cost|fees?|need|problem|extra"
                r"|restrictions?|additional|stops?|transfers?"
                r"|layovers?|pets|animals|age|kids|children|live|fees?|refunds?|meals?|smoking|alcohol"
                r"|vegetarian|vegan|gluten|wait|cover|entrance|admission|difference|doubt|reason"
                r"|guarantee|worr|way|code|error|limit|rush|hurry|better|such thing))"
                r"|\b(?:i|we)(?:'ve| have| am|'m)?(?: currently| also)? (?:found|find|see|show|showing"
                r"|have|seeing) (?:no|not any|nothing|zero)\b(?! (?:charge|cost|fee|problem"
                r"|information|info|record|details"
                r"|stops?|transfers?|idea|access|way|error|longer|record|memory|option but|choice but))"
                r"|\b(?:i|we|it|that|search|there) (?:did|do|does)(?:n't| not)(?: seem to| appear to)? "
                r"(?:find|see|have|return|show|locate[d]?|list) (?:any|anything|a single)\b(?! "
                r"(?:information|info|details|record|data|idea|way))"
                r"|\bno (?:other |such |available |more )?(?:\w+ ){0,3}(?:match(?:es|ed|ing)?|meets?"
                r"|fits?|(?:were|was|are) found|found|that (?:match|meet|fit))\b"
                r"|\b(?:none|nothing) (?:of (?:them|those|these) )?(?:match\w*|came up|was found|found"
                r"|in (?:that|this|the)|that (?:match|meet|fit)|listed|available in)"
                r"|\bno (?:results?|matches|listings?|hits)\b|\bi (?:don't|do not) (?:have|see|show) "
                r"any\b(?! (?:information|info|details|record|data|idea|other questions))",
                0.9,
                unless=(
                    rf"{IF}|\bno (?:problem|worries)\b|\bif (?:there|you|no)\b|\b(?:information|policy"
                    rf"|available at|availability|openings|vacanc)|\bno doubt\b|\bno (?:tables?|rooms?"
                    rf"|seats?|slots?|openings?|tickets) (?:at|on|for|left)\b"
                ),
                mood="statement",
            ),
        ),
    ),
    Act(
        "doesnt_know",
        "assistant",
        "says that it doesn't know what was asked",
        (
            rule(
                CUES,
                rf"{INABLE} (?:{TELL})\b(?! (?:the|a|an|any) (?:error|booking|appointment|table|room|ticket|log|file))",
                0.9,
                unless=rf"{IF}|\b(?:can't|cannot) (?:say|recommend) (?:enough|it enough)",
                mood="statement",
            ),
            rule(
                "information info know idea sure details detail listed access record records data "
                "aware certain familiar specified mentioned given provided shown stated indicated",
                r"\b(?:i|we)(?:'m| am| are|'re)? ?(?:do not|don't|not)\b(?: currently| actually| "
                r"really| even| quite)? (?:know\b|sure\b|aware\b|certain\b|familiar\b)"
                r"|\b(?:i|we) (?:do not|don't) have (?:any |that |the |this |specific |enough |more "
                r"|further |a |access )*(?:information|info|details?|data|records?|access|listing)\b"
                r"|\bno (?:information|info|details|data|record)\b|\b(?:is|are|was)(?: not|n't) "
                r"(?:listed|given|provided|shown|specified|stated|mentioned|indicated|in my (?:data"
                r"|system|database|records))\b"
                r"|\b(?:i|we)(?:'ve| have) no (?:idea|way of knowing|information|details)\b|\bnot "
                r"mentioned (?:anywhere|there|in)",
                0.85,
                unless=(
                    rf"{IF}|\bdon't have any (?!information|info|details|data|record|idea|way)|\bnot "
                    rf"sure (?:i|what you|which)|\bdon't know (?:your|which|what you|where you|how "
                    rf"many)|not have (?:a|an) (?!record|listing)|not aware of any|\bany (?:information"
                    rf"|details) (?:you|that you)"
                ),
                mood="statement",
            ),
        ),
    ),
    Act(
        "refuses",
        "assistant",
        "refuses, or says that it isn't made for what was asked",
        (
            rule(
                CUES,
                rf"{INABLE} (?:{HELP})\b",
                0.9,
                unless=IF + r"|can't help (?:but|it|noticing)|\bfurther\b|until|anything else",
                mood="statement",
            ),
            rule(
                "allowed permitted beyond outside scope policy designed support ai authorized "
                "supposed equipped guidelines rules",
                r"\b(?:i'm|i am|we're|we are) (?:not|only) (?:allowed|permitted|designed"
                r"|authorized|supposed|equipped)\b"
                r"|\b(?:beyond|outside)(?: of)? (?:my|our|the scope|what i)\b|\bas an ai\b|\bagainst "
                r"(?:our|the|my) (?:policy|policies|guidelines|rules)\b"
                r"|\b(?:i|we) (?:do not|don't|only) support\b",
                0.85,
                unless=IF,
                mood="statement",
            ),
        ),
    ),
    Act(
        "refers",
        "assistant",
        "sends the user elsewhere",
        (
            rule(
                "call calling contact contacting reach reaching ask asking check consult consulting "
                "email emailing inquire inquiring",
                r"\b(?:you(?:'ll| will| would|'d)? (?:have|need|want|can|may|should|could|might want"
                r"|would have|would need)(?: to)?(?: directly)?|please|"
                r"(?:i'd|i would|i)? ?(?:suggest|recommend|advise)(?: that)?(?: you)?|best (?:to|if "
                r"you)|try|feel free to) "
                r"(?:call(?:ing)?|contact(?:ing)?|reach(?:ing)? out|ask(?:ing)? (?:the|them|at|your"
                r"|your local|a)|check(?:ing)? (?:with|their|the (?:website|site))|consult(?:ing)?"
                r"|email(?:ing)?|inquir(?:e|ing))\b"
                r"(?! me\b| back\b| us back)",
                0.85,
                unless=(
                    r"\d{3}|^if\b|\bcall the (?:method|function|base)\b|\bask (?:me|us)\b|contact me"
                    r"|call me|\breach out to me"
                ),
                mood="statement",
            ),
        ),
    ),
    Act(
        "says_no",
        "assistant",
        "answers a question with no",
        (
            rule(
                "no not nope won't didn't don't doesn't isn't aren't unfortunately sorry can't cannot wasn't hasn't",
                r"^(?:(?:sorry|unfortunately|i'm sorry|i am sorry|i'm afraid|i am afraid|oh|well|hmm"
                r"|apologies|my apologies)[,.! ]+(?:but )?)*"
                r"(?:no\b(?! (?:problem|worries|need|charge|cost))|nope\b|(?:the |this |that |these "
                r"|those |it|they|there|he|she|there's|your |you )\w*(?: \w+){0,4}? "
                r"(?:does|do|is|are|has|have|was|were|did|can|will|would)(?:n't| not|not)\b|(?:it|they"
                r"|that|there|he|she|this)(?:'s|'re)? (?:not|isn't|aren't|doesn't|don't|can't|cannot"
                r"|won't|wasn't|hasn't|haven't)\b)",
                0.85,
                unless=(
                    r"\bno (?:problem|worries|charge|fee|cost|extra)\b|\bdo not (?:worry|hesitate)"
                    r"|don't worry|not a problem|not only|why not|no need"
                ),
                mood="statement",
            ),
        ),
        after=frozenset({"asks"}),
    ),
]
