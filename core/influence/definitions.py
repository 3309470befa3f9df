"""What the numbers, labels, failure modes and reasons of influence mean."""

from __future__ import annotations

from core.influence.measures import MEASURES
from core.socket import MODE, REASON, Definition, by_name

METRICS = by_name(
    Definition("influence", "Influence",
        "How much the answer changes when this one passage is left out, or another measure: see the setting.",
        formula="; ".join(f"{one.title}: {one.formula}" for one in MEASURES.values()),
        range="[0, 1] by words; by the others any number, of nats or, for subsets whose answers were generated, of "
        "ROUGE-L F1",
        direction="higher = the passage mattered more; below 0 = it spoke against the answer, "
        "which counts in ranks and as 0 in shares, dominance, entropy and nDCG",
        undefined_when="the baseline is empty, or the measure was not taken",
        source="Lin 2004 (ROUGE-L); leave-one-out and surrogate as in Cohen-Wang et al. 2024, arXiv 2409.00729; "
        "Shapley 1953"),
    Definition("influence_rank", "Influence rank", "Rank by influence; ties share the average rank.",
        formula="average rank of influence, descending", range="[1, k]",
        direction="1 = most influential", undefined_when="influence is undefined"),
    Definition("rho", "Rank agreement ρ",
        "Does the model use the passages in the order the retriever gave them?",
        formula="Spearman's ρ of retrieval rank and influence rank (average ranks)", range="[−1, 1]",
        direction="higher = used in the order of retrieval",
        undefined_when="the influence is constant, or k < 3", source="Spearman 1904"),
    Definition("p_value", "p-value of ρ",
        "How often an unrelated order would agree or disagree at least this much.",
        formula="two-sided t approximation, k − 2 degrees of freedom", range="[0, 1]",
        direction="lower = less likely by chance", undefined_when="ρ is undefined"),
    Definition("chance_band", "Chance band",
        "Where ρ falls when the question's own influences, ties and all, come in random order.",
        formula="middle 95 % of ρ over random orders", range="[−1, 1]",
        undefined_when="ρ is undefined", source="permutation null"),
    Definition("attainable_rho", "Attainable ρ",
        "The largest ρ that any order could reach with this question's tied influences.",
        formula="ρ of the two orders, each sorted", range="(0, 1]",
        direction="below the threshold the label would be Divergent whatever the retriever did",
        undefined_when="ρ is undefined"),
    Definition("label", "Label", "Aligned: ρ ≥ τ. Divergent: ρ < τ. Undefined: no ρ, or ties that keep ρ below τ.",
        undefined_when="ρ is undefined, or attainable ρ < τ (unless labels are as published)"),
    Definition("influence_ndcg", "nDCG by influence",
        "Does the retriever put first what the model uses? Sees a single passage that carries the answer.",
        formula="DCG of the order of retrieval / DCG of the order of influence; gain = influence, "
        "discount 1 / log2(1 + rank)", range="(0, 1]",
        direction="higher = what the model uses comes first; compare with its chance level, not with 0",
        undefined_when="the influences sum to 0", source="Järvelin & Kekäläinen 2002",
        advice="Where the order of use cannot be told from a random one, give fewer or shorter passages, so that each matters more, or "
        "ask more questions."),
    Definition("influence_ndcg_excess", "Excess over chance",
        "How much of the nDCG that is possible beyond chance the retriever reaches, over the run.",
        formula="(mean nDCG − mean by chance) / (1 − mean by chance)", range="at most 1",
        direction="0 = a random order, 1 = the order of use itself",
        undefined_when="chance alone gives 1: no question tells its passages apart"),
    Definition("rank_biased_overlap", "Rank-biased overlap",
        "Agreement of the two orders that weighs the top most.",
        formula="extrapolated RBO, p = 0.9, ties as expected overlap", range="[0, 1]",
        direction="higher = more alike", undefined_when="the influence is constant",
        source="Webber, Moffat, Zobel 2010, eq. 32"),
    Definition("dominance", "Dominance ratio",
        "Share of all influence that falls on the most influential passage.",
        formula="max / sum of influence", range="[1/k, 1]",
        direction="higher = one passage carries the answer", undefined_when="the influences sum to 0"),
    Definition("entropy", "Influence entropy", "How evenly influence is spread over the passages.",
        formula="−Σ s ln s, s = influence / sum", unit="nats", range="[0, ln k]",
        direction="higher = spread over more passages", undefined_when="the influences sum to 0",
        source="Shannon 1948"),
    Definition("entropy_normalised", "Normalised entropy", "Influence entropy as a share of its maximum ln k.",
        formula="entropy / ln k", range="[0, 1]", direction="higher = spread over more passages",
        undefined_when="the influences sum to 0, or k < 2"),
    Definition("noise_quantile", "Noise floor", "How far the answer moves when no passage is left out.",
        formula="1 − ROUGE-L F1(baseline, repeat), the largest of R repeats; from 19 repeats on, the value that one more "
        "exceeds in at most 5 %", range="[0, 1]",
        direction="lower = steadier model",
        undefined_when="no repeats were run, or influence is not measured by words"),
    Definition("above_noise", "Passages above noise",
        "Influence above the noise floor of the question. Without any effect a passage is above it with probability 1 / (R + 1), "
        "R repeats: 50 % for 1, 25 % for 3; for at most 5 % it takes 19.",
        direction="only what exceeds the count by chance is influence",
        undefined_when="no repeats were run, or influence is not measured by words"),
    Definition("reported_verdicts", "Reported verdicts",
        "Labels that an imported file states, compared with those recomputed from its own scores.",
        undefined_when="the file states no verdict",
        advice="Published figures stay comparable with labels as published; what is undefined has no verdict."),
)  # fmt: skip

REASONS = by_name(
    Definition("error", "Error", "The model call failed.", REASON),
    Definition("empty_baseline", "Empty baseline", "The baseline answer is empty, so nothing can change it.",
        REASON),
    *(one.reason for one in MEASURES.values()),
    Definition("incomplete", "Incomplete",
        "At least one ablation is missing, so the passages cannot be ranked.", REASON),
    Definition("too_few_passages", "Too few passages",
        "Fewer than three passages: a rank correlation says nothing.", REASON),
    Definition("inert", "Inert", "No single passage changes the answer: all influences are 0.", REASON),
    Definition("all_equal", "All equal", "All influences are equal, so there is no order to compare.", REASON),
    Definition("no_retrieval_order", "No retrieval order",
        "All retrieval ranks are equal, so there is no order to compare.", REASON),
    Definition("ties_cannot_reach", "Ties cannot reach τ",
        "With these tied influences no order reaches the threshold: the label would be Divergent whatever the "
        "retriever did. ρ keeps its value.", REASON),
)  # fmt: skip

MODES = by_name(
    Definition("ignored_top_hit", "Ignored top hit",
        "Retrieval rank ≤ 3 and influence strictly below that of k − 3 other passages (k ≥ 6).",
        MODE,
        advice="The retriever puts text first that the model does not use: reword the search, or re-rank."),
    Definition("buried_evidence", "Buried evidence", "Influence rank ≤ 3 and retrieval rank ≥ k − 2 (k ≥ 6).",
        MODE,
        advice="What the model uses comes last: where it is the right text, re-rank or reword the search."),
    Definition("over_reliance", "Over-reliance", "Dominance ratio ≥ 0.8.", MODE,
        advice="Expected of a question that one fact answers: check that the passage is the right one."),
    Definition("inverted", "Inverted order",
        "ρ below the lower 5 % point of random orders of this question's own influences.", MODE,
        advice="Check that scores are sorted best first, and whether the model favours the end of its prompt."),
    Definition("inert", "Inert", "No single removal changes the answer (all influences 0).", MODE,
        advice="Check whether a passage supports the answer: if several do, removing one leaves the others; if none does, the "
        "model answered from memory or invented it."),
    Definition("parametric", "Parametric", "Closed-book answer ≈ baseline (ROUGE-L F1 ≥ 0.9).", MODE,
        advice="The model gives this answer without any passage, and it may be wrong: its influence says nothing about retrieval."),
    Definition("redundant", "Redundant or invented", "Inert to every single removal, but not parametric.", MODE,
        advice="Check whether a passage supports the answer: if several do, removing one leaves the others; if none does, the "
        "answer is probably invented."),
    Definition("harmful_passage", "Harmful passage", "Leaving the passage out makes an incorrect answer correct.",
        MODE, advice="Without this passage the answer is correct: read it. Before you filter it, try the fixes: any change "
        "of the prompt makes some answers correct, and their placebo shows how many."),
    Definition("missed_evidence", "Missed evidence", "A gold passage exists that was not retrieved.", MODE,
        advice="No model can use a passage it was not given: reword the search, or combine keywords with embeddings."),
)  # fmt: skip

# Modes that random orders of the same influences show as well.
ORDER_MODES = ("ignored_top_hit", "buried_evidence", "inverted")
# Modes that name passages, not only questions.
PER_PASSAGE = ("ignored_top_hit", "buried_evidence", "harmful_passage")

DEFINITIONS = (*METRICS.values(), *MODES.values(), *REASONS.values())

LABELS = ("Aligned", "Divergent", "Undefined")
DEFAULT_THRESHOLD = 0.7
