"""The assistant gives instructions, or explains a cause."""

import re

from pollex.agents.embedded.events.acts.act import Act, rule

VERBS = (
    r"add|use|set|change|replace|remove|run|open|click|select|install|check(?! in| out)|try|make|put"
    r"|move|delete|wrap|call|pass|return|move|create|enable|disable|increase|raise|restart|update"
    r"|upgrade|switch|turn|start|stop|go to|drop"
    r"|ensure|verify(?! the following)|look|keep|declare|convert|initialize|initialise|clear|rename"
    r"|copy|write|wash|lock|dry|flip|stir|restore|unlock|swap|hold|tighten|loosen|build|reset|unplug"
    r"|plug|press|hold|boil|mix|cut|let it|cook|place|send|post|store|configure|take|compare|log"
)

CUES = " ".join(re.findall(r"[a-z]+", re.sub(r"\(\?![^)]*\)", "", VERBS)))

ACTS = [
    Act(
        "instructs",
        "assistant",
        "tells the user what to do",
        (
            rule(
                CUES,
                rf"^(?:(?:then|next|now|so|first|second|instead|finally|please|just|also|and|or|in that "
                rf"case|if [^,]{{3,60}}|to [^,]{{3,60}})[, ]+)*(?:{VERBS})\b (?!me\b|us\b|care\b)",
                0.85,
                unless=(
                    r"\benjoy\b|\bconfirm|\b(?:check|verify) (?:in |out )?(?:date|is)\b|^(?:check|take"
                    r"|have) (?:care|that out)|\bcall (?:me|us)\b|^(?:let|send|give|post|show) me\b"
                    r"|^make sure you (?:have fun|enjoy)|^set[.!]"
                ),
                mood="statement",
            ),
            rule(
                "should need have must can could",
                rf"\byou (?:should|need to|have to|must|can|could) (?:\w+ly |also |either |just )?(?:{VERBS})\b",
                0.8,
                unless=r"\bcontact\b|\bcall (?:them|the|us)\b",
                mood="statement",
            ),
        ),
    ),
    Act(
        "explains",
        "assistant",
        "explains a cause",
        (
            rule(
                "because reason why means caused cause due culprit hence since happens",
                r"\bbecause\b|\bthe (?:reason|cause|culprit|root cause)\b.{0,30}\b(?:is|was)\b"
                r"|\bthat(?:'s| is) why\b|\bwhich means\b|\bthis means\b|\bcaused by\b|\b(?:is|are"
                r"|was) due to\b|\bhence\b|\bthis happens\b|\bwhat happens is\b",
                0.85,
                unless=r"\bsorry\b|\bunable\b|\bjust because\b",
                mood="statement",
            ),
        ),
    ),
]
