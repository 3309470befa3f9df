"""Attribution of an answer to its passages, with pairs, place, and a figure for how far it can be trusted."""

from core.attribution.attribute import Attribution, Game, attribute, placed, swapped
from core.attribution.faithfulness import Faithfulness, judged
from core.attribution.methods import METHODS, Fit, Method
from core.attribution.pairs import Pair, interacting
from core.attribution.place import Split, split
from core.attribution.settling import settled

__all__ = [
    "METHODS",
    "Attribution",
    "Faithfulness",
    "Fit",
    "Game",
    "Method",
    "Pair",
    "Split",
    "attribute",
    "interacting",
    "judged",
    "placed",
    "settled",
    "split",
    "swapped",
]
