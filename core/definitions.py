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


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a state, verdict or label means, and what to do about it."""

    name: str
    meaning: str
    advice: str = ""


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

CLAIM_REASONS: Mapping[str, UndefinedReason] = {
    reason.name: reason
    for reason in (
        UndefinedReason("not_run", "No claims were looked for in the answer."),
        UndefinedReason("error", "No answer could be had from the model."),
        UndefinedReason("empty", "The answer is empty, so it claims nothing."),
        UndefinedReason("abstained", "The model declined to answer: neither right nor wrong, and nothing to be supported."),
        UndefinedReason("no_claims", "No claim was found in the answer."),
        UndefinedReason("no_relevant_claims", "The answer only talks about itself: nothing in it could be supported."),
        UndefinedReason("no_passages", "There are no passages that could support the claims."),
        UndefinedReason("unscored", "No claim could be judged; that is not the same as no support."),
        # RAGChecker's metrics have these, too.
        UndefinedReason("no_answer_claims", "The answer has no claims to compare."),
        UndefinedReason("no_reference_claims", "The reference answer has no claims to compare."),
        UndefinedReason("no_reference", "The answer was not compared with a reference answer."),
        UndefinedReason("nothing_retrieved", "No claim of the reference answer is in the passages."),
    )
}  # fmt: skip

CLAIM_STATES: Mapping[str, Meaning] = {
    state.name: state
    for state in (
        Meaning("well supported", "Two passages or more support the claim, each by itself."),
        Meaning("fragile", "Exactly one passage supports the claim: right perhaps, but it rests on that one."),
        Meaning("joint", "No passage supports the claim by itself, but two do together; it counts as SUPPORTED."),
        Meaning("unsupported", "Every passage was judged, and none supports the claim.", "Read these first."),
        Meaning("unscored", "Not known: no support was found, but some or all passages could not be judged.",
                "Judge the missing cells; this is not the same as unsupported."),
        Meaning("irrelevant", "A refusal, a greeting or talk about the answer: nothing to be supported. It enters no mean."),
    )
}  # fmt: skip

CLAIM_VERDICTS: Mapping[str, Meaning] = {
    verdict.name: verdict
    for verdict in (
        Meaning("SUPPORTED", "The retrieved passages support the claim: one of them, or two together."),
        Meaning("NOT_SUPPORTED", "Every passage was judged, and neither one nor a pair that was tried supports the claim."),
        Meaning("IRRELEVANT", "The claim says nothing that could be supported; it is in neither count."),
        Meaning("UNSCORED", "No support was found, but some passages could not be judged, or there are none; it is in neither count."),
    )
}  # fmt: skip

QUADRANTS: Mapping[str, Meaning] = {
    quadrant.name: quadrant
    for quadrant in (
        Meaning("used evidence", "Leaving the passage out changes the answer, and it supports a claim.",
                "As it should be."),
        Meaning("distractor", "Leaving the passage out changes the answer, but it supports no claim.",
                "It moves the answer without backing it: read the passage, and filter or re-rank."),
        Meaning("redundant or wasted", "The passage supports a claim, but leaving it out changes nothing.",
                "Other passages say the same, or the model does not use it: a smaller k may do."),
        Meaning("idle", "The passage neither supports a claim nor changes the answer.",
                "It costs tokens only: a smaller k or a better query."),
        Meaning("undefined", "Influence or support of the passage is not known, or the answer claims nothing."),
    )
}  # fmt: skip

CAUSAL_LABELS: Mapping[str, Meaning] = {
    label.name: label
    for label in (
        Meaning("kept", "Without the passage the answer still says it."),
        Meaning("changed", "Without the passage the answer says it with another number or name, or the opposite."),
        Meaning("gone", "Without the passage the answer no longer says it."),
        Meaning("unknown", "The answer without the passage is missing, or cannot be compared."),
    )
}  # fmt: skip

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

_RAGCHECKER = "Ru et al. 2024, RAGChecker, arXiv 2408.08067"

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
        Metric("claim_uncertainty", "Claim uncertainty U", "How little redundant evidence a claim has: with one supporting "
               "passage of ten it is 0.9, so read it beside the support maximum.",
               "1 − mean support over the scored passages; of an answer, the mean over its relevant claims", "", "[0, 1]",
               "higher = more fragile", "no passage was scored", "Claim-evidence matrix of rag_uncertainty"),
        Metric("support_maximum", "Support maximum", "How well the best single passage supports a claim.",
               "maximum over the scored passages", "", "[0, 1]", "higher = better supported", "no passage was scored", ""),
        Metric("any_support", "Any support", "Chance that some passage supports a claim, were passages independent; "
               "repeated passages are not, so it flatters them.",
               "1 − Π (1 − support) over the scored passages", "", "[0, 1]", "higher = better supported", "no passage was scored", ""),
        Metric("joint_support", "Joint support", "Whether two passages together support a claim that neither supports alone. "
               "Such a claim counts as supported.", "probability that the judge gives to the pair, one text after the other; "
               "pairs of the three best passages", "", "[0, 1]", "higher = better supported", "no pair was judged", ""),
        Metric("grounding", "Grounding", "Share of an answer's claims that the retrieved passages support.",
               "supported / (supported + not supported); irrelevant and unscored claims are in neither; the 95 % interval of the "
               "mean over answers is Student's t (Wilson's where all are equal)", "", "[0, 1]",
               "higher = more of the answer is backed", "no relevant claim was scored; the answer is empty, in error or an abstention",
               "RAFE, after SAFE: Wei et al. 2024, arXiv 2403.18802"),
        Metric("passage_importance", "Passage importance", "How much of the answer a passage supports.",
               "mean support over the relevant claims scored against it", "", "[0, 1]", "higher = supports more of the answer",
               "no relevant claim was scored against it", "Claim-evidence matrix of rag_uncertainty"),
        Metric("f1_at_k", "F1@K", "Precision of the claims, and whether there are as many as a good answer is expected to hold.",
               "2PR / (P + R), P = S / (S + N), R = min(S / K, 1) for S supported and N unsupported claims; 0 when S = 0",
               "", "[0, 1]", "higher is better", "no relevant claim was scored", "Wei et al. 2024, arXiv 2403.18802, section 5"),
        Metric("causal_effect", "Removals that undo a claim", "How many passages a claim rests on by experiment: without them "
               "the answer says it differently, or not at all.", "changed + gone, among the passages that were left out", "passages",
               "[0, k]", "higher = rests on more passages", "no passage was left out", ""),
        Metric("quadrant", "Quadrant", "What a passage was good for: whether it moves the answer, and whether it backs it.",
               "influence above noise (or above 0 without repeats) × supports a relevant claim", "", "", "",
               "influence or support is unknown", ""),
        Metric("precision", "Precision (RAGChecker)", "Share of the answer's claims that the reference answer entails.",
               "mean over the answer's claims", "", "[0, 1]", "higher is better", "the answer has no claims, or there is no reference",
               _RAGCHECKER),
        Metric("recall", "Recall (RAGChecker)", "Share of the reference's claims that the answer entails.",
               "mean over the reference's claims", "", "[0, 1]", "higher is better", "as for precision", _RAGCHECKER),
        Metric("f1", "F1 (RAGChecker)", "Precision and recall in one.", "2PR / (P + R); 0 when both are 0", "", "[0, 1]",
               "higher is better", "either is undefined", _RAGCHECKER),
        Metric("claim_recall", "Claim recall", "Share of the reference's claims that some passage entails.",
               "mean over the reference's claims", "", "[0, 1]", "higher = more was retrieved",
               "the reference has no claims, or there are no passages", _RAGCHECKER),
        Metric("context_precision", "Context precision", "Share of the passages that entail some claim of the reference.",
               "mean over the passages", "", "[0, 1]", "higher = less of the context is beside the point",
               "as for claim recall", _RAGCHECKER),
        Metric("context_utilization", "Context utilisation", "Of what was retrieved of the reference, the share that the answer says.",
               "mean over the reference's claims that some passage entails", "", "[0, 1]", "higher = what was found is used",
               "no claim of the reference was retrieved", _RAGCHECKER),
        Metric("noise_sensitivity_in_relevant", "Noise sensitivity, relevant passages",
               "Share of the answer's claims that are wrong and come from a relevant passage.",
               "mean over the answer's claims", "", "[0, 1]", "lower is better", "as for precision", _RAGCHECKER),
        Metric("noise_sensitivity_in_irrelevant", "Noise sensitivity, irrelevant passages",
               "Share of the answer's claims that are wrong and come from irrelevant passages only.",
               "mean over the answer's claims", "", "[0, 1]", "lower is better", "as for precision", _RAGCHECKER),
        Metric("hallucination", "Hallucination", "Share of the answer's claims that are wrong and in no passage.",
               "mean over the answer's claims", "", "[0, 1]", "lower is better", "as for precision", _RAGCHECKER),
        Metric("self_knowledge", "Self-knowledge", "Share of the answer's claims that are right and in no passage.",
               "mean over the answer's claims", "", "[0, 1]", "", "as for precision", _RAGCHECKER),
        Metric("faithfulness", "Faithfulness", "Share of the answer's claims that some passage entails.",
               "mean over the answer's claims", "", "[0, 1]", "higher is better", "the answer has no claims, or there are no passages",
               _RAGCHECKER),
    )
}  # fmt: skip

LABELS = ("Aligned", "Divergent", "Undefined")
DEFAULT_THRESHOLD = 0.7
