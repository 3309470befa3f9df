"""What the numbers, labels, findings and reasons of sampling mean."""

from __future__ import annotations

from core.socket import MODE, REASON, Definition, by_name
from core.uncertainty.estimators import DEFINITIONS as OF_ESTIMATORS

STABLE, VARIES, UNSTABLE, UNDEFINED = "Stable", "Varies", "Unstable", "Undefined"
LABELS = (STABLE, VARIES, UNSTABLE, UNDEFINED)
DEFAULT_STABLE = 0.8
MEANING_RULE = (
    "Two answers mean the same where at least half of the shorter one's words of content, other than those of the "
    "question, are in the other, no number contradicts, and both or neither deny; each sample joins the first "
    "meaning that fits."
)
MEANING_ENTROPY = "semantic_entropy_content"
# Columns of a question and the estimator each holds.
COLUMN_ESTIMATORS = {
    "entropy": MEANING_ENTROPY,
    "agreement": "agreement_text",
    "agreement_rouge_l": "agreement_rouge_l",
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

# The context test: how far an estimator may fall and still hold, in standard deviations between questions.
CONTEXT_MARGIN = 0.2
PASSES, FAILS, UNTOLD = "Passes", "Fails", "Cannot be told"

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
    Definition("mc_confidence", "MC dropout confidence",
        "Confidence as `MCDropoutConfidence` gives it: how close the samples are to each other. Dropout is simulated by "
        "sampling at random temperatures.",
        formula="1 − embedding variance", range="[0, 1]", direction="higher = the samples say the same",
        undefined_when="embeddings are not measured, or there are fewer than two samples"),
    Definition("differs_by_chance", "Chance that the answer is not the common one",
        "Probability that the answer is not what most samples say if it is one more sample: each of the samples and the "
        "answer is as likely as any other to be the answer shown.",
        formula="1 − size of the largest meaning / (n + 1), the answer counted too; 1 where two are equally large", range="[0, 1]",
        undefined_when="nothing was sampled"),
    Definition("context_test", "Context test",
        "Whether an estimator moves the right way when the passages are changed. With the supporting passages left "
        "out it passes where uncertainty clearly rises. With as many passages of other questions added it passes "
        "where uncertainty clearly rises, or where a fall by more than "
        f"{CONTEXT_MARGIN:g} standard deviations between questions is clearly excluded. It fails where uncertainty "
        "clearly falls. Else it cannot be told. Clearly: p ≤ 0.05, by exchanging within questions, adjusted for the "
        "estimators in the table (Holm).",
        formula="mean over questions of uncertainty with the changed passages − with the same passages",
        direction="higher = more uncertain after the change",
        undefined_when="an estimator has no value before or after: a question whose samples are all refusals is left out",
        source="after Soudani et al. 2025, arXiv 2505.07459; margin and rule: own"),
)  # fmt: skip

FINDINGS = by_name(
    Definition("unstable_answer", "Unstable answer", "No meaning holds half of the samples: the answer changes with sampling.",
        MODE,
        advice="Do not rely on a single sampled answer here: read the samples, or let the model abstain."),
    Definition("baseline_disagrees", "Samples disagree with the baseline",
        "The answer's meaning is not the one that most samples have.", MODE,
        advice="Compare the answer that is shown with the consensus of the samples: the model mostly says something else."),
    Definition("stable_ungrounded", "Stable but ungrounded",
        "The samples agree, but less than half of the answer's claims have a supporting passage.", MODE,
        advice="A stable answer is not a supported one: check these answers against their sources before anyone relies on them."),
    Definition("surer_with_unrelated", "Uncertainty falls with unrelated passages",
        "With passages of other questions added, an estimator reports less uncertainty.", MODE,
        advice="This estimator reports less uncertainty for longer prompts, whatever they contain: do not compare its values "
        "between prompts of different length; use an estimator that passes."),
    Definition("surer_without_support", "Uncertainty falls without support",
        "With the supporting passages left out, an estimator reports less uncertainty.", MODE,
        advice="This estimator does not detect missing evidence: do not use it to decide when to answer."),
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
    Definition("no_answer", "No answer", "The answer is missing, empty or a refusal: nothing supports it.", REASON),
    Definition("no_support", "No known support",
        "No passage is known to support the answer: none is gold, has a claim of it, or changes it when left out.",
        REASON),
    Definition("nothing_left", "Nothing left", "Every passage supports the answer: without them none is left.", REASON),
    Definition("few_unrelated", "Too few unrelated passages",
        "The run has too few passages of questions that share none with this one.", REASON),
)  # fmt: skip

DEFINITIONS = (
    *METRICS.values(), *FINDINGS.values(), *QUADRANTS.values(), *OF_ESTIMATORS, *REASONS.values(),
)  # fmt: skip
