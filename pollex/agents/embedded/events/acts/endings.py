"""The user gives up, closes, thanks, or says that it works."""

from pollex.agents.embedded.events.acts.act import Act, rule

ACTS = [
    Act(
        "gives_up",
        "user",
        "gives up, or goes elsewhere",
        (
            rule(
                "mind nevermind forget nvm elsewhere myself bother give skip cancel leave pass close "
                "drop own hand done somewhere without another colleague else",
                r"\bnever ?mind\b|\bnvm\b|(?<!never )(?<!not )(?<!don't )\bforget (?:it|about it|that"
                r"|about that)\b|\bi(?:'ll| will|'d rather|'m going to| am going to| guess i'll| think "
                r"i'll) (?:just )?(?:do|find|look|try|check|figure|call|contact|ask|go|use|buy|order"
                r"|search|handle|sort|book|rewrite|write|roll|revert|leave|live)\b[^.?!]*\b(?:myself"
                r"|elsewhere|somewhere else|on my own|somebody else|someone else|colleague|without it"
                r"|by hand|as it is|another (?:site|app|company|agency|shop|bank|service))\b"
                r"|\bdon't bother\b|\bi give up\b|\bskip (?:it|that)\b|\bcancel (?:it|that|this)\b"
                r"|\bi(?:'ll| will) (?:pass|look elsewhere|leave it|close this|drop it|live without "
                r"it)\b|\bleave it\b(?! (?:to|at|in|on|as|with))|\b(?:i'm|i am) done (?:here|with "
                r"this)\b",
                0.9,
                unless=(
                    r"\bcan i cancel\b|\bif i\b|\bdon't give up\b|\bdoes not give up\b|\bpossible to "
                    r"cancel\b|\bcancel (?:it|that) (?:later|if)\b|\bwill pass (?:it|this|that)\b"
                ),
                mood="statement",
            ),
        ),
        after=frozenset(
            {
                "fails",
                "unavailable",
                "none_found",
                "doesnt_know",
                "refuses",
                "offers",
                "offers_other",
                "instructs",
                "explains",
                "asks_back",
                "proposes",
                "confirms",
                "refers",
                "says_no",
                "takes_back",
                "anything_else",
                "done",
            }
        ),
    ),
    Act(
        "leaves",
        "user",
        "says that this is all, or goodbye",
        (
            rule(
                "that's that all bye goodbye nothing set done everything it farewell covers thats "
                "that'll more further go",
                r"\bthat(?:'s|s| is| will be| would be|'ll be|'ll)? (?:about |just )?(?:all|it"
                r"|everything)\b(?! (?:sounds|works|is|looks|right|good|correct|takes|about))"
                r"|\b(?:good ?bye|bye|farewell)\b|\bnothing (?:else|more|further)\b|\bi(?:'m| am) "
                r"(?:all )?(?:set|done|good to go)\b|\b(?:all|everything) i (?:need|needed|wanted)\b"
                r"|\bno(?:thing)? (?:more|further) (?:questions|help)\b|\bcovers it\b|\bdone for "
                r"(?:now|today)\b",
                0.9,
                unless=r"\bis that all\b|\bis that it\b|\bthat all\?|\bcan you\b|\bcould you\b|\bi also\b|\bbut i\b",
                mood="statement",
            ),
            rule(
                "no nope",
                r"^(?:no|nope|nah)[,.! ]*(?:thanks?|thank you|i(?:'m| am) (?:good|fine|ok|okay|all)"
                r"|not (?:today|now|at the moment)|not right now)",
                0.85,
            ),
        ),
    ),
    Act(
        "thanks",
        "user",
        "thanks",
        (
            rule(
                "thank thanks thx appreciate ty cheers",
                r"\b(?:thank|thanks|thx|appreciate|cheers)\b",
                0.95,
                unless=r"\bno thank|no,? thanks",
            ),
        ),
    ),
    Act(
        "works_now",
        "user",
        "reports that the advice helped",
        (
            rule(
                "was pass more fixed solved resolved worked works working gone green trick did runs "
                "passes builds compiles",
                r"\b(?:that|it|this|which)(?:'s| has| is| did)? (?:fixed|solved|resolved|did (?:it|the "
                r"trick)|done it|was it|worked)\b|\b(?:it|that|this|everything|all tests|all|both"
                r"|now(?: it)?) (?:now )?(?:works|worked|is working|is fixed|is gone|runs|passes"
                r"|builds|compiles)\b|^(?:(?:yes|yep|ok|okay|k|great|thanks|nice|perfect|awesome|aha"
                r"|confirmed)[,.! ]+)*(?:works|worked|fixed|solved|resolved)\b|\bno (?:more|longer) "
                r"(?:an? )?(?:error|crash|fail|warn|hang)|\b(?:problem|issue|error|warning|exception"
                r"|leak)s? (?:is |are |was )?(?:gone|solved|fixed|resolved)\b|\bdid the trick\b"
                r"|\b(?:is|are|all) green\b|\bworks (?:now|fine|great|perfectly)\b|\bthat did it\b",
                0.9,
                unless=(
                    r"n't\b|\bnot\b|\bbut (?:still|now|not)\b|\bonly (?:if|when)\b|\bif\b|works (?:for "
                    r"me|on|in the|from)\b|\bcould\b|\bwould\b|\bused to\b|\bbefore\b|\bthat "
                    r"works\b.{0,4}$|\bhow (?:it|this|that) works\b|\bruns out\b|\bworks at\b"
                ),
                mood="statement",
            ),
        ),
        after=frozenset({"instructs", "explains", "asks_back", "takes_back", "gives_code", "offers_other", "proposes"}),
    ),
]
