"""What a simulation plants in its questions, drawn for many questions at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.arrays import Bools, Floats, Ints

# Ordinary words, longer than four letters, no two with the same stem.
WORDS = tuple(
    """
    acorn album alley amber anchor angle apple apron arrow atlas attic autumn bacon badge
    bagel bamboo banjo barrel basil basket beach beacon beard bench berry birch blanket
    blossom board border bottle brick bridge broom brush bucket bundle butter button cabin
    cable cactus camel candle canvas canyon carbon cargo carpet carrot castle cavern cedar
    cello chain chalk chapel cheese cherry chest chimney cinnamon circle citrus clarinet
    cliff clock clover coast cobalt coconut comet compass copper coral cotton cradle crane
    crater cricket crystal cupboard curtain cushion dagger daisy delta desert diamond dolphin
    donkey dragon drawer drummer eagle easel elbow elephant emerald engine falcon feather
    fence fernery ferry fiddle field finger flame flute forest fossil fountain garden garlic
    ginger giraffe glacier globe goblet grape granite gravel guitar hammer harbour harvest
    hazel hedge heron hollow honey horizon hotel island ivory jacket jasmine jelly jungle
    kennel kettle kitten ladder lagoon lantern lemon lettuce lizard locket magnet mango
    marble market meadow melon mirror monkey mountain muffin mustard napkin needle nickel
    nutmeg ocean olive onion orbit orchard otter oyster paddle palace panther paper parcel
    parrot pebble pencil pepper piano pigeon pillow pinecone planet plaster pocket pollen
    potato prairie puddle pumpkin puppet quarry quilt rabbit radish raven ribbon river robin
    rocket saddle saffron salmon sandal satin scarf shadow shell shovel silver spider spinach
    squirrel statue stream sugar summer sunset table tablet teapot temple thimble thunder
    tiger timber tomato tractor trumpet tulip tunnel turnip turtle umbrella valley vanilla
    velvet village vinegar violin wagon walnut water whale wheat willow window winter yogurt
    zebra
    """.split()
)
ANSWER_WORDS = 20
INERT = ("inert", "redundant", "parametric")
SAMPLES = 10
CLAIMS = 2  # of an answer: its two sentences
# What is planted in a claim: a passage, only two, or none supports it.
SUPPORTED, TOGETHER, NOWHERE = range(3)
LEVEL = (0.2, 1.0)  # the confidence is uniform here, and an answer is correct with exactly that probability
# That a correct answer has a higher level than an incorrect one: the integral of x (1 − y) over all y < x, by
# that over all x and y.
AUROC_OF_LEVEL = 7 / 9
# Words replaced when an influential passage is left out: influences from 0.2 to 0.9.
_STRENGTHS = np.arange(4, 19)
_CLAIM_KINDS = {True: (0.8, 0.05, 0.15), False: (0.4, 0.1, 0.5)}  # by whether the answer is correct
_GOLD_FOUND = {True: 0.95, False: 0.6}
_GOLD_LEADS = 0.7  # chance that the gold passage is the most influential one, where one is
_UNSCORED = 0.01
_STOPPED, _DOUBTED = {True: 0.05, False: 0.5}, {True: 0.1, False: 0.4}


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What was planted in n questions with k passages each.

    Attributes
    ----------
    case : ndarray of str, shape (n,)
        The planted case.
    empty, correct : ndarray of bool, shape (n,)
        Whether there is no answer; whether there is one and it is correct.
    level : ndarray, shape (n,)
        The probability with which the answer was drawn to be correct.
    words : ndarray of int, shape (n, len(WORDS))
        The question's own order of all words: those of the answer, of the second and the third meaning of its
        samples, of the closed-book answer, three that nobody says, and the rest.
    replaced : ndarray, shape (n, k)
        Words that leaving a passage out replaces, by retrieval rank; NaN without an answer.
    gold : ndarray of int, shape (n,)
        Column of the gold passage; -1 where it was not retrieved.
    twice : ndarray of bool, shape (n, k)
        Whether a passage holds the whole evidence, which another holds too.
    kinds : ndarray of int, shape (n, CLAIMS)
        What is planted in each claim of the answer.
    supports, scored : ndarray of bool, shape (n, CLAIMS, k)
        Whether a passage supports a claim; whether the verifier gave the cell a score.
    meanings : ndarray of int, shape (n, SAMPLES)
        Meaning of each sample, from 1, that of the answer.
    shares : ndarray, shape (n, 3)
        Probability of each meaning.
    drop, reference_drop : ndarray, shape (n, k)
        Of the log-probability of the answer and of the reference answer, in nats.
    misleading, ignored : ndarray of bool, shape (n,)
        Whether a passage misleads to an incorrect answer; whether the gold passage does not raise it.
    stopped, doubted : ndarray of bool, shape (n,)
        Whether a critical and a warning verdict were planted on the answer.
    """

    case: NDArray[np.str_]
    empty: Bools
    correct: Bools
    level: Floats
    words: Ints
    replaced: Floats
    gold: Ints
    twice: Bools
    kinds: Ints
    supports: Bools
    scored: Bools
    meanings: Ints
    shares: Floats
    drop: Floats
    reference_drop: Floats
    misleading: Bools
    ignored: Bools
    stopped: Bools
    doubted: Bools


def draw_truth(case: NDArray[np.str_], passages: int, influential: int, rng: np.random.Generator) -> Truth:
    """Plant a truth in questions of the given cases; the same state of ``rng`` gives the same truth."""
    n, k = len(case), passages
    words = rng.permuted(np.tile(np.arange(len(WORDS), dtype=np.int16), (n, 1)), axis=1)
    replaced = _strengths(case, k, influential, rng)
    moves = replaced > 0
    level, empty = rng.uniform(*LEVEL, n), case == "empty"
    correct = (rng.random(n) < level) & ~empty

    leads = moves.any(axis=1) & (rng.random(n) < _GOLD_LEADS)
    found = rng.random(n) < _by(correct, _GOLD_FOUND)
    # Where it is not the most influential one, its rank is most often one of the first.
    anywhere = (k * rng.random(n) ** 2).astype(np.int64)
    twice = (rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1) < 2) & (case == "redundant")[:, None]
    anywhere = np.where(twice.any(axis=1), twice.argmax(axis=1), anywhere)
    gold = np.where(found, np.where(leads, np.nan_to_num(replaced).argmax(axis=1), anywhere), -1)
    has_gold = np.arange(k) == gold[:, None]

    kinds, supports = _claims(correct, moves, has_gold, twice, rng)
    scored = rng.random(supports.shape) >= _UNSCORED

    first = 0.35 + 0.6 * level
    shares = np.column_stack([first, 0.65 * (1 - first), 0.35 * (1 - first)])
    meanings = 1 + (rng.random((n, SAMPLES, 1)) > shares.cumsum(axis=1)[:, None, :2]).sum(axis=2)

    none = -np.abs(rng.normal(0, 0.05, (n, k))) - 1e-3
    drop = np.where(moves, 6 * np.nan_to_num(replaced) / ANSWER_WORDS - none, none)
    drop[empty] = np.nan
    reference_drop = np.where(
        has_gold, rng.uniform(1, 3, (n, k)), np.clip(rng.normal(0, 0.1, (n, k)), -0.3, 0.3)
    )
    top = np.nan_to_num(drop, nan=-1.0).argmax(axis=1)
    wrong = ~correct & ~empty
    misleading = wrong & moves.any(axis=1) & (top != gold) & (rng.random(n) < 0.4)
    reference_drop[misleading, top[misleading]] = rng.uniform(-2, -1, int(misleading.sum()))
    ignored = wrong & found & (drop[np.arange(n), gold] <= 0)
    stopped = empty | (rng.random(n) < _by(correct, _STOPPED))
    doubted = ~empty & (rng.random(n) < _by(correct, _DOUBTED))
    return Truth(
        case, empty, correct, level, words, replaced, gold, twice, kinds, supports, scored, meanings, shares,
        drop, reference_drop, misleading, ignored, stopped, doubted,
    )  # fmt: skip


def _by(which: Bools, values: dict[bool, float]) -> Floats:
    return np.where(which, values[True], values[False])


def _strengths(case: NDArray[np.str_], k: int, influential: int, rng: np.random.Generator) -> Floats:
    """How many words each passage's removal replaces, by retrieval rank."""
    n = len(case)
    anyhow = rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1)
    # Both ends of the prompt before its middle: 1st, last, 2nd, last but one …
    ends = [i // 2 if i % 2 == 0 else k - 1 - i // 2 for i in range(k)]
    places = np.where((case == "aligned")[:, None], np.arange(k), anyhow)
    places[case == "position"] = ends
    drawn = rng.permuted(np.tile(_STRENGTHS, (n, 1)), axis=1)
    strongest_first = -np.sort(-drawn[:, :influential], axis=1)
    result = np.zeros((n, k))
    np.put_along_axis(result, places[:, :influential], strongest_first, axis=1)
    # At least two are equal, and at least one is not, or there would be no order to compare.
    tied = anyhow < min(max(2, influential), k - 1)
    result = np.where((case == "ties")[:, None], tied * drawn[:, :1], result)
    result[np.isin(case, INERT)] = 0.0
    result[case == "empty"] = np.nan
    return result


def _claims(
    correct: Bools, moves: Bools, has_gold: Bools, twice: Bools, rng: np.random.Generator
) -> tuple[Ints, Bools]:
    """Return what is planted in each claim, and which passages support it by themselves."""
    n, k = moves.shape
    u = rng.random((n, CLAIMS))
    likely = np.where(correct[:, None], _CLAIM_KINDS[True], _CLAIM_KINDS[False]).cumsum(axis=1)
    kinds = (u[:, :, None] > likely[:, None, :2]).sum(axis=2)
    # A correct answer has its first claim, which holds the reference answer, from the gold passage.
    from_gold = has_gold & correct[:, None]
    kinds[from_gold.any(axis=1), 0] = SUPPORTED
    redundant = np.asarray(twice.any(axis=1))
    kinds[redundant] = SUPPORTED
    chance = rng.random((n, CLAIMS, k))
    supports: Bools = chance < np.where(moves, 0.6, 0.04)[:, None, :]
    supports[:, 0] |= from_gold
    first = np.argmin(chance - moves[:, None, :], axis=2)
    one = np.arange(k) == first[:, :, None]
    supports |= one & ~supports.any(axis=2, keepdims=True)
    supports = np.where(redundant[:, None, None], twice[:, None, :], supports)
    return kinds, supports & (kinds == SUPPORTED)[:, :, None]
