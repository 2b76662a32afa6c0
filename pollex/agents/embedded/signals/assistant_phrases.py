"""Phrases of assistants in good and bad conversations, one row for each signal."""

from __future__ import annotations

from pollex.agents.embedded.signals.signal import words

SIGNALS = [
    words(
        "apology",
        "assistant",
        "The assistant apologises.",
        r"\b(sorry|apolog\w+|my (mistake|bad|fault|error)|oops|misspoke|(the|any) confusion|regret)\b",
        -1,
    ),
    words(
        "refusal",
        "assistant",
        "The assistant fails at the request.",
        r"\b(unable|can'?t|cannot|could ?n[o']t|couldn'?t|could not|not (able|possible|available|supported)"
        r"|unfortunately"
        r"|i'?m afraid|won'?t|did ?n[o']t|did not|unsuccessful|failed|does ?n[o']t|do ?n[o']t (have|know|support)"
        r"|no (other|such|more)|there (is|are) no|not find)\b",
        -1,
    ),
    words(
        "offer",
        "assistant",
        "The assistant offers further help.",
        r"\b(anything else|something else|else (i|we) can|further (help|assist\w*|questions)|let me know|need anything"
        r"|any other|more help|happy to help)\b",
    ),
    words(
        "confirmation_request",
        "assistant",
        "The assistant asks for confirmation.",
        r"\bconfirm\b|\bis (that|this) (correct|right|ok|okay|accurate)|\b(correct|right)\?|\b(did|do) you mean\b"
        r"|\bjust to (check|confirm|be sure)",
    ),
    words(
        "done",
        "assistant",
        "The assistant reports a completed action.",
        r"\b(booked|reserved|confirmed|scheduled|added|created|updated|done|successful|successfully|all set|purchased"
        r"|playing|sent|completed|made|saved|set up|fixed|changed|removed|enabled)\b",
        +1,
    ),
    words(
        "finding",
        "assistant",
        "The assistant presents a finding.",
        r"\b(found|here('s| is| are)|there (is|are)|i (have|see|suggest|recommend|noticed)|how about|what about"
        r"|the (reason|cause|culprit|problem|issue|bug) is|the result)\b",
        +1,
    ),
    words(
        "cause",
        "assistant",
        "The assistant explains the cause.",
        r"\b(because|since|therefore|that'?s why|the (reason|cause|root cause|culprit)|causes?|caused by|due to|hence"
        r"|which means|this means|so the)\b",
        +1,
    ),
    words(
        "hedge",
        "assistant",
        "The assistant hedges the answer.",
        r"\b(might|maybe|perhaps|possibly|could be|not sure|probably|depends|generally|typically|usually"
        r"|often|may|several"
        r" (things|reasons|possib\w+)|various|in general|best practices?)\b",
        -1,
    ),
    words(
        "warmth",
        "assistant",
        "The assistant speaks warmly.",
        r"\b(have a (great|nice|good|wonderful|lovely)|enjoy|glad|happy to|(you'?re|you are) welcome"
        r"|my pleasure|no problem"
        r"|of course|certainly|absolutely|great|perfect|wonderful|excellent|sure|understood|good question)\b",
    ),
    words(
        "clarifying_question",
        "assistant",
        "The assistant asks a clarifying question.",
        r"\?\W{0,9}$|\b(could|can|would) you (share|show|post|tell|provide|clarify|describe|paste)|\b(which"
        r"|what) \w+[^.!?\n]{0,200}\?",
    ),
    words("specifics", "assistant", "The assistant gives concrete figures.", r"\d", +1),
    words(
        "steps",
        "assistant",
        "The assistant lists steps.",
        r"^[ \t]{0,9}(\d{1,3}[.)]|[-*•])\s|\bfirst\b[\s\S]{0,500}?\bthen\b|\bstep \d|\bfollow(ing)? steps\b",
    ),
    words("code", "assistant", "The assistant shows code.", r"```|`[^`\n]{1,200}`"),
    words(
        "citation",
        "assistant",
        "The assistant refers to sources.",
        r"\[\d+\]|https?:|\baccording to\b|\bsources?\b|\bdocs?\b|\bdocumentation\b|\breference\b|\bspecification\b",
    ),
    words(
        "verification",
        "assistant",
        "The assistant proposes a check of the result.",
        r"\b(verify|check (that|whether|if|it)|to (confirm|prove)|test (it|that|this|with)"
        r"|you should (now )?see|run (it|the|this)"
        r"|breakpoint|log(ging)? (the|a|line)|assert|reproduce)\b",
    ),
    words(
        "self_correction",
        "assistant",
        "The assistant corrects an earlier statement.",
        r"\b(you'?re right|you are right|good catch|i was wrong|i misread|i stand corrected|i overlooked"
        r"|i missed|my earlier"
        r"|on second thought|correction)\b",
    ),
    words(
        "pointing",
        "assistant",
        "The assistant points at the exact place.",
        r"\b(this line|that line|the line|line \d+|in your (code|snippet|trace|log|config|method)|your `"
        r"|the call (to|of)|here:)",
        +1,
    ),
    words(
        "disclaimer",
        "assistant",
        "The assistant speaks of itself as a machine.",
        r"\b(as an ai|language model|i (don'?t|do not) have access|i'?m (just|only) (a|an)|beyond my"
        r"|outside (of )?my)\b",
        -1,
    ),
    words(
        "choice",
        "assistant",
        "The assistant offers a choice of options.",
        r"\b(options?|either|alternatively|you (can|could) (also|either)|or you|two ways|choose|prefer(red"
        r"|ence)?|if you prefer"
        r"|would you (like|rather))\b",
    ),
    words("assistant_exclamation", "assistant", "The assistant exclaims.", r"!"),
]
