"""The numbers computed from a run, the failure modes and the reasons for no number, defined once.

The glossary page, the tooltips and the docs are generated from here; `core.schema` has the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A number computed from a run: what it means, its range, its direction and its source."""

    name: str
    title: str
    meaning: str
    formula: str = ""
    unit: str = ""
    range: str = ""
    direction: str = ""
    undefined_when: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Mode:
    """A failure mode: its rule in words, what it usually means, and what to try."""

    name: str
    title: str
    rule: str
    advice: str
    per_passage: bool = False


@dataclass(frozen=True, slots=True)
class UndefinedReason:
    """Why a number has no value for a question: a short code and one sentence."""

    name: str
    meaning: str


UNDEFINED_REASONS: Mapping[str, UndefinedReason] = {
    reason.name: reason
    for reason in (
        UndefinedReason("error", "No answer could be had from the model."),
        UndefinedReason("empty_baseline", "The baseline answer is empty, so nothing can change it."),
        UndefinedReason(
            "no_ablations", "The passages were never left out one by one: no influence is known."
        ),
        UndefinedReason("incomplete", "At least one ablation is missing, so the passages cannot be ranked."),
        UndefinedReason("too_few_passages", "Fewer than three passages: a rank correlation says nothing."),
        UndefinedReason("inert", "Leaving out any one passage changes nothing: all influences are 0."),
        UndefinedReason("all_equal", "All influences are equal, so there is no order to compare."),
        UndefinedReason(
            "no_retrieval_order", "All retrieval ranks are equal, so there is no order to compare."
        ),
    )
}

RETRIEVAL_REASONS: Mapping[str, UndefinedReason] = {
    reason.name: reason
    for reason in (
        UndefinedReason("no_gold", "No gold passage is known for the question."),
        UndefinedReason("gold_not_marked", "There are gold passages, but which ones is not known."),
        UndefinedReason("gold_not_counted", "How many gold passages the collection holds is not known."),
        UndefinedReason(
            "gold_miscounted", "More gold passages were retrieved than the collection is said to hold."
        ),
        UndefinedReason("tied_ranks", "A gold passage shares its retrieval rank with one that is not gold."),
        UndefinedReason("gold_not_retrieved", "No gold passage is among those retrieved."),
        UndefinedReason("fewer_than_k", "No question has as many passages as the depth asks for."),
    )
}

MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("ignored_top_hit", "Ignored top hit",
             "Retrieval rank ≤ 3 and influence rank ≥ k − 2 (k ≥ 6).",
             "The retriever puts text first that the model does not use: look at the query wording or re-rank.",
             per_passage=True),
        Mode("buried_evidence", "Buried evidence",
             "Influence rank ≤ 3 and retrieval rank ≥ k − 2 (k ≥ 6).",
             "What the model uses stands last: a re-ranker or a better query would lift it; a smaller k would lose it.",
             per_passage=True),
        Mode("over_reliance", "Over-reliance", "Dominance ratio ≥ 0.8.",
             "One passage carries the answer: check that it deserves it."),
        Mode("inverted", "Inverted order", "ρ < 0.",
             "The model uses the passages in the reverse of the retriever's order."),
        Mode("inert", "Inert", "No single removal changes the answer (all influences 0).",
             "Either the answer is redundant in the passages or the model did not need them: see parametric and redundant."),
        Mode("parametric", "Parametric", "Closed-book answer ≈ baseline (ROUGE-L F1 ≥ 0.9).",
             "The model knows the answer without any passage; its influence scores say nothing about retrieval."),
        Mode("redundant", "Redundant", "Inert to every single removal, but not parametric.",
             "Several passages probably carry the same evidence, so that removing one leaves the others: look at the texts."),
        Mode("harmful_passage", "Harmful passage", "Leaving the passage out turns a wrong answer right.",
             "This passage misleads the model: filter it or rank it lower.", per_passage=True),
        Mode("missed_evidence", "Missed evidence", "A gold passage exists that was not retrieved.",
             "The retriever missed the evidence: no generator can make up for that."),
    )
}  # fmt: skip

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("influence", "Influence", "How much the answer changes when this one passage is left out.",
               "1 − ROUGE-L F1(baseline, ablated)", "", "[0, 1]", "higher = the passage mattered more",
               "the baseline is empty or the ablated answer is missing",
               "Lin 2004 (ROUGE-L); leave-one-out as in Cohen-Wang et al. 2024, arXiv 2409.00729"),
        Metric("influence_rank", "Influence rank", "Place in the order of use; ties share the average rank.",
               "average rank of influence, descending", "", "[1, k]", "1 = most influential", "influence is undefined", ""),
        Metric("rho", "Rank agreement ρ", "Does the model use the passages in the order the retriever gave them?",
               "Spearman's ρ of retrieval rank and influence rank (average ranks)", "", "[−1, 1]",
               "higher = used in the order of retrieval", "the influence is constant, or k < 3", "Spearman 1904"),
        Metric("p_value", "p-value of ρ", "How often an unrelated order would agree or disagree at least this much.",
               "two-sided t approximation, k − 2 degrees of freedom", "", "[0, 1]", "lower = less likely by chance",
               "ρ is undefined", ""),
        Metric("chance_band", "Chance band", "Where ρ falls when the order of use has nothing to do with retrieval.",
               "95 % point of ρ over random orders of k passages", "", "[−1, 1]", "", "k < 3", "permutation null"),
        Metric("rank_biased_overlap", "Rank-biased overlap", "Agreement of the two orders that weighs the top most.",
               "extrapolated RBO, p = 0.9, ties as expected overlap", "", "[0, 1]", "higher = more alike",
               "the influence is constant", "Webber, Moffat, Zobel 2010, eq. 32"),
        Metric("dominance", "Dominance ratio", "Share of all influence that falls on the most influential passage.",
               "max / sum of influence", "", "[1/k, 1]", "higher = one passage carries the answer",
               "the influences sum to 0", ""),
        Metric("entropy", "Influence entropy", "How evenly influence is spread over the passages.",
               "−Σ s ln s, s = influence / sum", "nats", "[0, ln k]", "higher = spread over more passages",
               "the influences sum to 0", "Shannon 1948"),
        Metric("entropy_normalised", "Normalised entropy", "Influence entropy as a share of its maximum ln k.",
               "entropy / ln k", "", "[0, 1]", "higher = spread over more passages",
               "the influences sum to 0, or k < 2", ""),
        Metric("noise_quantile", "Noise floor", "How far the answer moves when nothing is left out at all.",
               "95 % point of 1 − ROUGE-L F1(baseline, repeat) over R repeats", "", "[0, 1]", "lower = steadier model",
               "no repeats were run", ""),
        Metric("hit_at_k", "Hit at k", "Is a gold passage among the first k that the retriever gave?",
               "1 if any of the first k is gold, else 0; the mean is a share of questions", "", "[0, 1]",
               "higher = found more often", "no gold passage is known", ""),
        Metric("recall_at_k", "Recall at k", "How much of the evidence is among the first k passages?",
               "gold passages among the first k / gold passages in the collection", "", "[0, 1]",
               "higher = more was found", "no gold passage is known, or how many there are is not",
               "Manning, Raghavan, Schütze 2008, chapter 8"),
        Metric("mrr", "Mean reciprocal rank", "How far up does the first gold passage stand?",
               "mean over questions of 1 / place of the first gold passage, 0 where none was retrieved", "", "[0, 1]",
               "higher = further up", "no gold passage is known", "Voorhees 1999, TREC-8"),
        Metric("ndcg_at_k", "nDCG at k", "How close are the first k passages to the order with all gold ones in front?",
               "Σ 1 / log₂(place + 1) over gold passages, divided by its largest possible value", "", "[0, 1]",
               "higher = more gold passages, further up", "no gold passage is known, or how many there are is not",
               "Järvelin, Kekäläinen 2002; discount of Burges et al. 2005"),
        Metric("gold_most_influential", "Evidence used most", "Does the answer rest on a gold passage more than on any other?",
               "1 if no other passage is as influential as the best gold one, else 0", "", "[0, 1]",
               "higher = what was found is also used", "no gold passage was retrieved, or the influence is constant or unknown", ""),
    )
}  # fmt: skip

LABELS = ("Aligned", "Divergent", "Undefined")
DEFAULT_THRESHOLD = 0.7
