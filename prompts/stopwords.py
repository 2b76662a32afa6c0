"""English words that say nothing about a domain."""

STOPWORDS = frozenset(
    """
    a about above after again against all already also am an and another any anything are as at back be because been
    before being below between both but by came can cannot come could did do does doing done down during each either
    else enough ever every everything few first for from further gave get gets give given gives go goes going gone
    good got had has have having he her here hers him his how i if in instead into is it its itself just keep keeps
    kept know known knows last less let like likes made make makes many may me might mine more most much must my
    need needs neither never new next no none nor not nothing now of off often on once one only or other others our
    out over own per put rather really said same say says see seen shall she should show shows since so some someone
    something still such take takes than that the their them then there these they thing things this those though
    through to together too toward towards two under until up upon us use used uses using very want wants was way
    well were what whatever when where whether which while who whom whose why will with within without work works
    would yet you your
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
