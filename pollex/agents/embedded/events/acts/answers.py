"""The user takes or turns down what the assistant put forward, or doesn't mind."""

from pollex.agents.embedded.events.acts.act import Act, rule

PUT_FORWARD = frozenset({"offers", "offers_other", "proposes", "confirms"})
OPENING = r"^(?:(?:oh|ok|okay|well|hmm|um|uh|ah|so|and|then|wow|i think|i guess|thanks|thank you|hi)[,.! ]+)*"
GOOD = (
    r"good|great|perfect|fine|nice|lovely|awesome|wonderful|excellent|okay|ok|right|correct|amazing"
    r"|interesting|fun|alright|cool|fantastic"
)
YES = (
    r"yes|yeah|yep|yup|ya|sure(?: thing)?|absolutely|definitely|certainly|of course|correct|exactly"
    r"|indeed|please do|go ahead|go for it|do it|"
    rf"(?:that|this|it|one|which)?(?:'s|'ll| is| would| will| one)?(?: all| also| just| really| "
    rf"definitely)*(?:sounds?|looks?|seems?) (?:\w+ )?(?:{GOOD})"
    rf"|(?:that|this|it|they|everything)(?: one| time)?(?:'s|'ll| is| will| would| should| can)(?: all| "
    rf"also| just| really| very| quite| be| absolutely)* (?:work|do|{GOOD})"
    rf"|(?:that|this|it|\w+day|\d[\w:. ]{0, 8})(?: one| time)?[, ]+(?:yeah, that )?(?:works|does|suits"
    rf"|fits)|works for me|i(?:'ll| will) (?:take|go with|have) |let(?:'s| us) (?:do|go with|book|take"
    rf"|try that|try it)|i(?:'d| would) (?:love|like) (?:that|to\b(?! (?:know|find|see|hear|search|look"
    rf"|go to))|it\b)|i like (?:it|that|this)\b|i love (?:it|that|this)\b"
    rf"|(?:{GOOD})(?=$|[,.! ]+(?:please|thanks|thank|that|i|go|do|let|can|book|yes|what|and|how|could|$))"
)
NO = (
    r"no(?=$|[,.!;]| (?:thanks?|thank|i|it|it's|that|that's|this|please|not|there|need|we|but|just"
    r"|sorry|can|do|don't|make|way|the)\b)|nope|nah|not (?:really|now|yet|today|right now|at (?:the"
    r"|this) (?:moment|time)|interested|quite|exactly|this time|just yet)|no thanks?|never ?mind"
)
DISLIKE = (
    r"\bi(?:'m| am| do|'d| would)? ?(?:don't|do not|did not|didn't|would rather not|am not|not|won't"
    r"|will not|wouldn't) (?:really )?(?:want|like|need|think so|care for|wish|interested|prefer"
    r"|looking for|into|enjoy|feel like|a (?:big )?fan)\b"
    r"|\b(?:that|it|this|those|they)(?: one)?(?: really)? ?(?:doesn't|does not|won't|will not|isn't|is "
    r"not|'s not|wouldn't|would not|don't|aren't|are not) (?:really |quite |going to )?(?:work|suit"
    r"|do\b|good|right|what|my|a good|for me|correct|interest|fit|sound)"
    r"|\bnot (?:interested|a fan|my (?:thing|type|kind|style|taste)|what i|into|for me|in the mood)\b"
    r"|\btoo (?:expensive|far|late|early|long|small|big|pricey|much)\b"
)
CLOSING = r"\bthat(?:'s| is| will be| would be|'ll be)? (?:about |just )?(?:all|it|everything)\b|\b(?:bye|goodbye)\b"

ACTS = [
    Act(
        "accepts",
        "user",
        "takes what the assistant put forward",
        (
            rule(
                "exactly yes yeah yep yup ya sure absolutely definitely certainly course correct "
                "exactly indeed please go do sounds sound looks seems works work does suits fits fine "
                "good great perfect nice lovely awesome"
                " wonderful excellent okay ok right cool i'll let's love like amazing interesting alright fantastic",
                rf"{OPENING}(?:{YES})(?=$|[\s,.!;?)])",
                0.9,
                unless=(
                    rf"\bbut (?:i|not|can|could|make|is|what|it)\b|{CLOSING}|{DISLIKE}|^(?:great|good"
                    rf"|okay|ok|nice|perfect|thanks)[,.! ]*(?:and )?(?:what|where|how|when|which|is|do"
                    rf"|does|can you|could you|i need|i also|i want)\b|\binstead\b|^(?:okay|ok"
                    rf"|great)[.!]? (?:no|not)\b"
                ),
            ),
        ),
        after=PUT_FORWARD,
    ),
    Act(
        "rejects",
        "user",
        "turns down what the assistant put forward",
        (
            rule(
                "no nope nah not never",
                rf"{OPENING}(?:sorry[, ]+|actually[, ]+)?(?:{NO})",
                0.9,
                unless=(
                    rf"{CLOSING}|^no (?:preference|problem|worries|specific|particular)|\b(?:don't|do "
                    rf"not|doesn't) (?:care|mind|matter|have (?:a|any) pref)|\bnothing (?:else|more)\b"
                    rf"|^no[,. ]+thanks?(?: you)?[,. ]+(?:bye|good)"
                ),
                mood="statement",
            ),
            rule(
                "don't not didn't won't wouldn't doesn't isn't too aren't",
                DISLIKE,
                0.85,
                unless=(
                    rf"\b(?:don't|do not|doesn't) (?:care|mind|matter|have (?:a|any) pref)|{CLOSING}"
                    rf"|\bnot too\b|anything else|\bno more\b|\bif\b"
                ),
                mood="statement",
            ),
        ),
        after=PUT_FORWARD,
    ),
    Act(
        "doesnt_mind",
        "user",
        "says that any will do",
        (
            rule(
                "preference preferences picky fussy particular specific matter care mind any anything "
                "anywhere whatever up choose pick decide surprise either",
                r"\bno (?:preferences?|particular|specific)\b|\b(?:don't|do not|dont) (?:really "
                r")?(?:care|mind|have (?:a|any|an) (?:\w+ )?(?:preference|particular|specific|idea))"
                r"|\b(?:doesn't|does not|doesnt|won't) (?:really )?matter\b|\bany(?:thing|where|time| "
                r"\w+)? (?:is|will be|would be|works|will do|'s|will work) ?(?:fine|ok|okay|good|great"
                r"|do|for me)?"
                r"|\bwhatever (?:you|is|works)|\bup to you\b|\bsurprise me\b|\byou (?:choose|pick"
                r"|decide)\b|\bnot (?:picky|particular|fussy)\b|\beither (?:one )?(?:is|would be|works"
                r"|will do|one)\b",
                0.9,
                unless=r"\bdon't mind me\b|\bdo you (?:mind|care)\b|\bas long as\b.*\bnot\b|\bif you don't mind\b",
            ),
        ),
    ),
]
