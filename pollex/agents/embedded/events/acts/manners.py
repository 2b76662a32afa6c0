"""The assistant apologizes, takes something back, or says goodbye."""

from pollex.agents.embedded.events.acts.act import Act, rule

ACTS = [
    Act(
        "apologizes",
        "assistant",
        "says sorry",
        (
            rule(
                "sorry apologize apologise apologies apology regret forgive",
                r"\b(?:sorry|apologi[sz]e|apologies|my apology|(?:i|we) regret|forgive me)\b",
                0.95,
                unless=(
                    r"\bsorry to hear\b|\bbetter safe than sorry\b|\bno need to (?:apologi|be sorry)"
                    r"|sorry for yourself|never be sorry"
                ),
            ),
        ),
    ),
    Act(
        "takes_back",
        "assistant",
        "takes back what it said before",
        (
            rule(
                "mistake error bad wrong misread misunderstood misspoke mixed overlooked missed "
                "corrected correction catch right confusion incorrect misunderstanding",
                r"\bmy (?:mistake|error|bad)\b|\bi (?:was wrong|made (?:a|an) (?:mistake|error)"
                r"|misread|misunderstood|misspoke|mixed|overlooked|missed|stand corrected|gave you the "
                r"wrong|blamed the wrong)\b"
                r"|^correction\b|\bsorry (?:about|for) (?:the|my|that|any) (?:confusion|error|mistake"
                r"|misunderstanding|mix)|\bapologi(?:ze|se|es) for (?:the|my|that|any) (?:confusion"
                r"|error|mistake|misunderstanding|mix)"
                r"|\bgood catch\b|\byou(?:'re| are) (?:absolutely |quite |completely |of course "
                r")?right\b(?! (?:to (?:be|ask)|now|here))|\bthat was (?:wrong|incorrect|my)\b",
                0.9,
                unless=r"\bif (?:i|you)\b|\bare you right\b|\bmake sure\b",
                mood="statement",
            ),
        ),
    ),
    Act(
        "says_bye",
        "assistant",
        "says goodbye",
        (
            rule(
                "goodbye bye farewell care have welcome pleasure enjoy",
                r"\b(?:good ?bye|bye|farewell|take care|have (?:a|an) (?:very |really )?(?:good|great"
                r"|nice|wonderful|pleasant|lovely|fantastic|safe|amazing|awesome|blessed|fabulous"
                r"|terrific|excellent)"
                r"|enjoy your (?:day|evening|weekend|night|trip|stay|visit|time|meal|movie|flight"
                r"|event|ride)|you(?:'re| are) (?:very |most |quite |always )?welcome|my pleasure)\b",
                0.9,
                mood="statement",
            ),
        ),
    ),
]
