"""Phrases of users in good and bad conversations, one row for each signal."""

from __future__ import annotations

from pollex.agents.embedded.signals.signal import words

SIGNALS = [
    words(
        "thanks",
        "user",
        "The user thanks the assistant.",
        r"(?<!no )\b(thank|thanks|thx|ty|tysm|cheers|appreciate\w*|grateful)\b",
        +1,
    ),
    words(
        "praise",
        "user",
        "The user praises the answer.",
        r"\b(great|perfect\w*|awesome|excellent|amazing|wonderful|fantastic|brilliant|nice|lovely|neat"
        r"|impressive|superb?"
        r"|cool|beautiful|love (it|that|this)|(good|nice) (job|work|catch|point|idea)|well done|very helpful)\b",
        +1,
    ),
    words(
        "agreement",
        "user",
        "The user agrees with the assistant.",
        r"^\W{0,9}(yes|yeah|yep|yup|sure|ok|okay|sounds (good|great|fine|right)|that works|correct|right"
        r"|exactly|please do"
        r"|go ahead|alright|fine|indeed|true|agreed)\b",
        +1,
    ),
    words(
        "success",
        "user",
        "The user confirms a working solution.",
        r"\b(works|worked|working now|fixed|solved|resolved|that did it|did the trick|helps|helped|pass(es|ed)?|green"
        r"|got it|makes sense|that'?s it(?! for |\W{1,9}(?:thank|thx|bye))|i see|no more (errors?|warnings?))\b",
        +1,
    ),
    words(
        "complete",
        "user",
        "The user declares the request complete.",
        r"\b(that'?s|that is|that will be|that'll be|thats) (all|everything)|\ball (i|we) need|\bnothing else",
        +1,
    ),
    words(
        "correction",
        "user",
        "The user corrects the assistant.",
        r"^\W{0,9}(no|nope|nah|wait)\b(?!,? (thank|that'?s all|thats all|that is all|problem|worries))"
        r"|\b(i (meant|said|asked|wanted|mentioned)|not what|actually|instead|wrong|incorrect|that'?s not"
        r"|as i (said|wrote))\b",
        -1,
    ),
    words(
        "complaint",
        "user",
        "The user complains about the lack of progress.",
        r"\b(still\b.{0,30}\b(not|no|the same|get|gets|fail\w*|see|broken|crash\w*|n'?t)|same (error|problem"
        r"|issue|result"
        r"|exception|thing)|already (told|said|tried|gave|did|have|posted|shared)"
        r"|not work|useless|frustrat|annoy|ridiculous|waste|terrible|worse|worst|never ?mind"
        r"|forget it|come on\b|seriously\b|what the\b|hell\b|disappoint|giv(e|ing) up|not help)"
        r"|(does|did|do|is|wo)n'?t (work|help)",
        -1,
    ),
    words(
        "again",
        "user",
        "The user asks for the same thing again.",
        r"\b(again|once more|repeat|retry|try (it )?another|second time|one more time)\b",
        -1,
    ),
    words(
        "confusion",
        "user",
        "The user doubts the assistant's meaning.",
        r"\b(not sure|unclear|confus\w+|lost|huh|don'?t (know|understand|get)|what do you mean|i thought"
        r"|makes no sense)\b"
        r"|\?\?",
        -1,
    ),
    words("negation", "user", "The user says no to something.", r"\b(not|no|never|none|cannot)\b|n'?t\b", -1),
    words("courtesy", "user", "The user phrases requests politely.", r"\bplease\b|\b(could|would|can|will) you\b"),
    words(
        "farewell",
        "user",
        "The user says goodbye.",
        r"\b(bye|goodbye|good night|see you|cya|have a (nice|good|great|lovely))\b",
        +1,
    ),
    words("exclamation", "user", "The user exclaims.", r"!"),
    words("user_question", "user", "The user asks questions.", r"\?"),
    words(
        "alternatives",
        "user",
        "The user asks for an alternative.",
        r"\b(another|other|others|different|else|alternatives?|what about|how about|any other)\b",
        -1,
    ),
    words(
        "need",
        "user",
        "The user states a need.",
        r"\b(need|want|looking for|would like|i'?d like|trying to|have to|my goal)\b",
    ),
    words(
        "report",
        "user",
        "The user reports the outcome of a try.",
        r"\b(tried|ran|run|changed|added|removed|set|put|did|checked|tested|now (it|i|the)|got|gives?|shows?"
        r"|says?|prints?)\b",
    ),
    words(
        "evidence",
        "user",
        "The user shares concrete evidence.",
        r"```|^[ \t]{0,9}at \S{1,200}\(|\b\w*(exception|error)\b|\b\w+\.\w+\(|\blog(s|ged)?\b|\bline \d+",
        0,
    ),
    words(
        "next_topic",
        "user",
        "The user moves on to a further request.",
        r"\b(also|next|another (thing|question)|one more|additionally|besides|by the way|btw|while (we|i)"
        r"|then can you)\b",
    ),
    words(
        "leaving",
        "user",
        "The user goes elsewhere for help.",
        r"\b(look elsewhere|ask (my|a|someone|the|in)|stack ?overflow|colleague|support (team|desk)|myself"
        r"|anyway|on my own"
        r"|some other time|call them|later)\b",
        -1,
    ),
]
