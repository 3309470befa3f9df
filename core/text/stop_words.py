"""Words that say nothing about a subject: articles, pronouns, auxiliaries, prepositions, and their like."""

ENGLISH = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing don down during each either else ever every few
    for from further get got had has have having he her here hers herself him himself his how i if in into
    is it its itself just ll may me might mine more most must my myself neither no nor not now of off on once
    one only onto or other ought our ours ourselves out over own per re s same shall she should so some such
    t than that the their theirs them themselves then there these they this those through thus to too under
    until up upon us ve very was we were what when where whether which while who whom whose why will with
    within without would yet you your yours yourself yourselves
    """.split()
)
VIETNAMESE = frozenset(
    "là của và các những một được đã đang sẽ bị trong ở có cho với này đó thì mà về tại từ khi như cũng rằng "
    "vào ra do bởi theo nếu đến".split()
)
# Simplified, as folded texts are.
CHINESE = frozenset("的了是在和与有被于为之其而及以这那个一他她它们就都也着")
STOP_WORDS = ENGLISH | VIETNAMESE | CHINESE
