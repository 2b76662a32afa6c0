"""Promises in replies: what the assistant says that it, or somebody, will do, and nobody has done."""

import re

ENGLISH_PROMISE = r"""
    \b(?:i|we)(?:['’]ll|\ will|(?:['’](?:m|re)|\ am|\ are)\ going\ to)\ (?:also\ |then\ |now\ )?
        (?:pass\b.{0,40}?\b(?:on|along)\b|forward\b|escalate\b|look\ into|get\ back\ to\ you|follow\ up|relay\b
        |(?:let|inform|notify|tell|ask|check\ with)\ (?:the|our|my|a)\ \w+)
    | \b(?:someone|somebody|(?:a|one\ of\ (?:our|my))\ \w+|(?:our|the|my)\ \w+(?:\ team)?|they)\ will\ (?:soon\ )?
        (?:get\ back\ to|contact|call|reach\ out|be\ in\ touch|follow\ up|take\ care)\b
"""
GERMAN_PROMISE = r"""
    \b(?:ich|wir)\ (?:leiten?|geben?|werden?)\b.{0,60}?\bweiter(?:leiten|geben)?\b
    | \b(?:jemand|ein\ kollege|eine\ kollegin|unser\ \w+|das\ team)\ (?:meldet\ sich|wird\ sich\b.{0,40}?\bmelden)\b
"""
FRENCH_PROMISE = r"""
    \bje\ (?:vais\ |le\ |la\ |les\ )*(?:transmets?|transmettr(?:e|ai)|ferai\ suivre|faire\ suivre)\b
    | \b(?:quelqu['’]un|un\ (?:collègue|conseiller)|notre\ équipe)\ (?:va\ )?(?:vous\ |te\ )?
        (?:re)?(?:contacter|rappeler|contactera|rappellera)\b
"""
SPANISH_PROMISE = r"""
    \b(?:pasaré|transmitiré|reenviaré|trasladaré|escalaré)\b
    | \b(?:alguien|un\ (?:compañero|agente)|nuestro\ equipo)\ (?:se\ pondrá\ en\ contacto|(?:te|le|lo|la)\ \w+rá)\b
"""
ITALIAN_PROMISE = r"""
    \b(?:inoltrerò|trasmetterò|passerò)\b
    | \b(?:qualcuno|un\ collega|il\ nostro\ \w+)\ (?:ti|la|vi|lo)\ (?:ri)?(?:contatterà|chiamerà)\b
"""
DUTCH_PROMISE = r"""
    \bik\ (?:geef|stuur|zal)\b.{0,50}?\bdoor(?:geven|sturen)?\b
    | \b(?:iemand|een\ collega|ons\ team)\ (?:neemt|zal)\b.{0,40}?\bcontact\b
"""
PORTUGUESE_PROMISE = r"""
    \b(?:vou|irei)\ (?:encaminhar|repassar|transmitir)\b
    | \b(?:alguém|um\ colega|(?:a\ )?nossa\ equipe)\ (?:entrará|vai\ entrar)\ em\ contato\b
"""
PROMISE_PATTERN = re.compile(
    "|".join(
        (
            ENGLISH_PROMISE,
            GERMAN_PROMISE,
            FRENCH_PROMISE,
            SPANISH_PROMISE,
            ITALIAN_PROMISE,
            DUTCH_PROMISE,
            PORTUGUESE_PROMISE,
        )
    ),
    re.IGNORECASE | re.VERBOSE,
)


def makes_promise(reply: str) -> bool:
    """Tell whether a reply promises that something will be passed on, or that somebody will see to it."""
    return PROMISE_PATTERN.search(reply) is not None
