"""What the numbers, labels, findings and reasons of sampling mean."""

from __future__ import annotations

from core.diagnosis import MODE, REASON, Definition, by_name
from core.uncertainty.estimators import DEFINITIONS as OF_ESTIMATORS

STABLE, VARIES, UNSTABLE, UNDEFINED = "Stable", "Varies", "Unstable", "Undefined"
LABELS = (STABLE, VARIES, UNSTABLE, UNDEFINED)
DEFAULT_STABLE = 0.8
MEANING_RULE = (
    "Two answers mean the same where at least half of the shorter one's words of content, beside those of the "
    "question, are in the other, no number contradicts, and both or neither deny; each sample joins the first "
    "meaning that fits."
)
MEANING_ENTROPY = "semantic_entropy_content"
# Columns of a question and the estimator each holds.
COLUMN_ESTIMATORS = {
    "entropy": MEANING_ENTROPY,
    "agreement": "agreement_text",
    "mean_rouge": "mean_pairwise_rouge",
    "sum_eigen": "sum_eigen_jaccard",
    "degree": "degree_jaccard",
    "lexical_diversity": "lexical_diversity",
    "embedding_variance": "embedding_variance",
}
# Every two of these that were measured are compared: each further one costs power.
COMPARED = (
    "agreement_text", "agreement_typical", "agreement_cosine_jaccard", "embedding_variance",
    "sum_eigen_jaccard", "degree_jaccard", "mean_pairwise_rouge", MEANING_ENTROPY,
    "weighted_entropy_content", "semantic_entropy_exact", "distinct_answers", "answer_length",
)  # fmt: skip

METRICS = by_name(
    Definition("stability", "Stability",
        "Stable: the largest meaning holds at least the set share of the samples. Unstable: no meaning holds half "
        "of them. Varies: between the two.",
        undefined_when="there are fewer than two samples, or all refuse or are empty"),
    Definition("meaning_share", "Share of the largest meaning",
        "How many of the samples say what most of them say.", formula="size of the largest meaning / n",
        range="[1/n, 1]", direction="higher = more stable", undefined_when="there are fewer than two samples"),
    Definition("n_meanings", "Meanings", "How many different things the samples say; refusals are one of them.",
        range="1 to n", direction="higher = less stable"),
    Definition("meanings_low", "Fewest meanings in any order",
        "The fewest meanings that 200 random orders of the samples give: each joins the first that fits, so where "
        "likeness is a chain the order decides.", range="1 to n"),
    Definition("meanings_high", "Most meanings in any order",
        "The most meanings that 200 random orders of the samples give.", range="1 to n"),
    Definition("entropy", "Semantic entropy", "How evenly the samples are spread over meanings.",
        formula="−Σ s ln s, s = share of the samples in a meaning", unit="nats", range="[0, ln n]",
        direction="higher = less stable",
        undefined_when="there are fewer than two samples, or all refuse or are empty",
        source="Farquhar et al. 2024, Nature 630"),
    Definition("entropy_normalised", "Normalised semantic entropy", "Semantic entropy as a share of its maximum.",
        formula="entropy / ln n", range="[0, 1]", direction="higher = less stable",
        undefined_when="there are fewer than two samples"),
    Definition("agreement", "Agreement with the samples", "How far the answer agrees with its own samples.",
        formula="mean of Jaccard and ROUGE-L between the answer and each sample", range="[0, 1]",
        direction="higher = the samples say the same; low also where the answer is much longer than they are",
        undefined_when="the answer is a refusal or empty, or nothing was sampled",
        source="own; after Lin, Trivedi, Sun 2023"),
    Definition("baseline_in_largest", "Answer is the common one",
        "Whether the answer says what most samples say; of equally large meanings, any one.",
        undefined_when="there is no answer, or nothing was sampled"),
)  # fmt: skip

FINDINGS = by_name(
    Definition("unstable_answer", "Unstable answer", "No meaning holds half of the samples: the answer changes with sampling.",
        MODE,
        advice="Trust none of these answers by itself: read the samples; give the model better passages, or let it abstain."),
    Definition("baseline_disagrees", "Samples disagree with the baseline",
        "The answer's meaning is not the one that most samples have.", MODE,
        advice="The answer that is shown is not what the model mostly says: compare it with the consensus."),
    Definition("stable_ungrounded", "Stable but ungrounded",
        "The samples agree, but less than half of the answer's claims have a supporting passage.", MODE,
        advice="Agreement is no evidence: check these answers against their sources before anybody relies on them."),
)  # fmt: skip

QUADRANTS = by_name(
    Definition("Stable, grounded", "Stable, grounded",
        "The samples agree, and passages support at least half of the answer's claims.", MODE),
    Definition("Stable, ungrounded", "Stable, ungrounded",
        "The samples agree, but passages support less than half of the answer's claims: a confident hallucination, or "
        "knowledge that the passages lack.", MODE),
    Definition("Not stable, grounded", "Not stable, grounded",
        "The samples differ, though passages support at least half of this answer's claims.", MODE),
    Definition("Not stable, ungrounded", "Not stable, ungrounded",
        "The samples differ, and passages support less than half of the answer's claims.", MODE),
)  # fmt: skip

REASONS = by_name(
    Definition("not_sampled", "Not sampled", "The question was not asked again.", REASON),
)  # fmt: skip

DEFINITIONS = (
    *METRICS.values(), *FINDINGS.values(), *QUADRANTS.values(), *OF_ESTIMATORS, *REASONS.values(),
)  # fmt: skip
