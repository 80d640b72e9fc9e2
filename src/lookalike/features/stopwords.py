"""English words that say little about what a text is about: articles, pronouns, auxiliaries,
prepositions, conjunctions and the commonest adverbs, in lower case, with the pieces that are left
when a contraction is cut at its apostrophe.
"""

__all__ = ["ENGLISH"]

ENGLISH = frozenset(
    """
    a an the this that these those such same other another each every either neither both all any
    some no none few many much more most less least several own
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    one ones who whom whose which what whatever whoever
    be am is are was were been being do does did doing done have has had having
    will would shall should can could may might must ought need dare cannot
    about above across after against along amid among around as at before behind below beneath
    beside besides between beyond by despite down during except for from in inside into like near of
    off on onto out outside over per since than through throughout till to toward towards under
    underneath until up upon via versus with within without
    and but or nor so yet if unless because although though while whereas whether once
    again also already always almost even ever far further hence here how however indeed instead
    just maybe moreover never nevertheless not now often only otherwise perhaps quite rather really
    seldom sometimes somewhat soon still then there thereby therefore therein thus together too very
    well when whenever where whereby wherein wherever why
    don doesn didn isn aren wasn weren won wouldn shan shouldn couldn mustn hasn haven hadn
    d ll m re s t ve
    """.split()
)
