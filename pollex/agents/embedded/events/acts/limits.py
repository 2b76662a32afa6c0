"""The user rules advice out, meets new trouble with it, or solves the problem alone."""

from pollex.agents.embedded.events.acts.act import Act, rule

ADVISED = frozenset(
    [("instructs"), "explains", "gives_code", "takes_back", "offers_other", "proposes", "asks_back", "refers"]
)

ACTS = [
    Act(
        "rules_out",
        "user",
        "says that what the assistant advises is not possible there",
        (
            rule(
                "excluded option possible allowed install installed change touch use add can't cannot "
                "can won't policy rejects source"
                " frozen packages stated said wrote exist exists permitted ruled out available access "
                "rights permission don't nothing forbidden supported",
                r"\b(?:is|are|was|were|that's|both) (?:not (?:an option|possible|allowed|permitted"
                r"|available (?:here|there|to)|supported)|excluded|ruled out|out of the question"
                r"|frozen|forbidden)\b"
                r"|\b(?:i|we) (?:can't|cannot|can not|may not|must not|mustn't|am not allowed to|are "
                r"not allowed to|won't|don't want to|do not want to|would rather not) "
                r"(?:install|change|touch|use|add|buy|update|upgrade|modify|edit|move|rename|replace"
                r"|remove|buy|open|switch|do that|alter|reach|go)\b"
                r"|\bnothing can be (?:installed|changed|added)\b|\bno new (?:packages?|libraries"
                r"|parts|tools|accounts?)\b|\bas (?:i )?(?:stated|said|wrote|mentioned)\b"
                r"|\b(?:does not|doesn't|do not|don't) exist\b|\bexists? (?:not|only)\b|\bi (?:don't"
                r"|do not) have (?:its |the |a |any |that )?(?:source|rights?|access|permission|tools?"
                r"|key|option|button|setting|menu)\b",
                0.85,
                unless=(
                    r"^if\b|\bcan't wait\b|\bis it not possible\b|\bhow can\b|\bwhy can't\b|\bcan't "
                    r"(?:add|say) (?:up|more)\b"
                ),
                mood="statement",
            ),
        ),
        after=ADVISED,
    ),
    Act(
        "new_trouble",
        "user",
        "reports that the advice brought new trouble",
        (
            rule(
                "now but instead different another new error with gives exception",
                r"\b(?:but )?now (?:it|i|the|every|all|we|there|my|a|they)\b.{0,60}\b(?:error"
                r"|exception|throws?|fails?|crash\w*|wrong|broken|missing|hangs?|freez\w*|blank|empty"
                r"|worse|slow\w*|leaks?|40\d|50\d|refuses?|complains?|asks? for|nothing|not|n't"
                r"|doesn't|can't|won't|stopped|dead|red)\b"
                r"|\b(?:a|another|one more|different|new) (?:different |new |other )?(?:error"
                r"|exception|problem|crash|fault|warning)\b(?! (?:than|from) )|\bbut (?:now|then) "
                r".{0,50}\b(?:error|exception|throws?|fails?|crash\w*|wrong|worse|slow\w*|broken"
                r"|stopped)\b"
                r"|\bno (?:exception|error|crash|warning),? but\b|\b(?:gone|works),? but\b|\bwith "
                r"(?:this|that) i (?:get|have)\b.{0,60}\b(?:error|exception)|\bgives (?:an? )?(?:error"
                r"|exception|warning)\b",
                0.85,
                unless=(
                    r"^if\b|\bnow it works\b|\bno more\b|\bany (?:new|other) (?:error|problem)|\bis "
                    r"there\b|\bnot a (?:new )?problem\b|\bwithout (?:an?|any) (?:error|problem)"
                ),
                mood="statement",
            ),
        ),
        after=ADVISED,
    ),
    Act(
        "solves_alone",
        "user",
        "found the answer without the assistant",
        (
            rule(
                "found saw figured turned turns solved meantime myself ourselves colleague neighbor "
                "brother sister boss wife husband friend google docs manual forum stack site",
                r"\bi (?:found|saw|spotted|see|figured) (?:it|the \w+)(?: out)?(?: myself| in the "
                r"meantime| meanwhile| now| on my own| by accident)\b|\b(?:found|solved|fixed|figured) "
                r"(?:it|that)(?: out)? (?:myself|ourselves|alone|on my own|by myself|without)\b"
                r"|\b(?:saw|found) it in the meantime\b|\b(?:it )?turn(?:ed|s) out\b|\bmy (?:colleague"
                r"|friend|neighbor|brother|sister|boss|wife|husband) (?:found|fixed|solved|figured"
                r"|spotted)\b|\b(?:google|the docs|the manual|a forum|stack overflow|another site) "
                r"(?:had|told me|gave me|says how|helped)\b",
                0.85,
                unless=(
                    r"\bif i\b|\bdid you\b|\bthanks to you\b|\bturned out (?:well|great|fine|good"
                    r"|nice)\b|\bhow (?:it|this|that) (?:turns|turned) out\b|\byour\b"
                ),
                mood="statement",
            ),
        ),
        after=ADVISED,
    ),
]
