"""What the numbers, states, verdicts and labels of claims mean."""

from __future__ import annotations

from core.socket import REASON, Definition, by_name

STATE, VERDICT, QUADRANT, CAUSAL, ERROR = (
    "States of a claim",
    "Verdicts on a claim",
    "Influence vs support",
    "Leave-one-out effect on a claim",
    "Planted errors",
)


def _ragchecker(
    name: str, title: str, meaning: str, of: str = "the answer's claims", **given: str
) -> Definition:
    usual = {
        "formula": f"mean over {of}",
        "range": "[0, 1]",
        "direction": "higher is better",
        "undefined_when": "the answer has no claims, or there is no reference",
        "source": "Ru et al. 2024, RAGChecker, arXiv 2408.08067",
    }
    return Definition(name, title, meaning, **{**usual, **given})


METRICS = by_name(
    Definition("claim_uncertainty", "Claim uncertainty U",
        "How little redundant evidence a claim has: with one supporting passage of ten it is 0.9, so read it beside the support maximum.",
        formula="1 − mean support over the scored passages; of an answer, the mean over its relevant claims",
        range="[0, 1]", direction="higher = more fragile", undefined_when="no passage was scored",
        source="Claim-evidence matrix of rag_uncertainty"),
    Definition("support_maximum", "Support maximum", "How well the best single passage supports a claim.",
        formula="maximum over the scored passages", range="[0, 1]",
        direction="higher = better supported", undefined_when="no passage was scored"),
    Definition("any_support", "Any support",
        "Probability that some passage supports a claim if passages were independent. Passages that repeat each other are not, so it is too high for them.",
        formula="1 − Π (1 − support) over the scored passages", range="[0, 1]",
        direction="higher = better supported", undefined_when="no passage was scored"),
    Definition("joint_support", "Joint support",
        "Whether two passages together support a claim that neither supports alone. Such a claim counts as supported.",
        formula="probability that the verifier gives to both texts, one after the other; pairs among the three best passages",
        range="[0, 1]", direction="higher = better supported", undefined_when="no pair was verified"),
    Definition("grounding", "Grounding", "Share of an answer's claims that the retrieved passages support.",
        formula="supported / (supported + not supported); irrelevant and unscored claims are in neither; the 95 % interval of the mean over answers is Student's t (Wilson's where all are equal)",
        range="[0, 1]", direction="higher = more of the answer is supported",
        undefined_when="no relevant claim was scored; the answer is empty, failed or an abstention",
        source="RAFE, after SAFE: Wei et al. 2024, arXiv 2403.18802"),
    Definition("passage_importance", "Passage importance", "How much of the answer a passage supports.",
        formula="mean support over the relevant claims scored against it", range="[0, 1]",
        direction="higher = supports more of the answer",
        undefined_when="no relevant claim was scored against it",
        source="Claim-evidence matrix of rag_uncertainty"),
    Definition("f1_at_k", "F1@K",
        "Precision of the claims, and whether there are as many as a good answer should have.",
        formula="2PR / (P + R), P = S / (S + N), R = min(S / K, 1) for S supported and N unsupported claims; 0 when S = 0",
        range="[0, 1]", direction="higher is better", undefined_when="no relevant claim was scored",
        source="Wei et al. 2024, arXiv 2403.18802, section 5"),
    Definition("causal_effect", "Leave-one-out effect",
        "On how many passages a claim depends: without one of them the answer says it differently, or not at all.",
        formula="changed + gone, among the passages that were left out", unit="passages",
        range="[0, k]", direction="higher = depends on more passages",
        undefined_when="no passage was left out"),
    Definition("quadrant", "Influence vs support",
        "Whether a passage changes the answer, and whether it supports it: four combinations, four repairs.",
        formula="influence above noise (or above 0 without repeats) × supports a relevant claim",
        undefined_when="influence or support is unknown"),
    _ragchecker("precision", "Precision (RAGChecker)",
        "Share of the answer's claims that the reference answer entails."),
    _ragchecker("recall", "Recall (RAGChecker)", "Share of the reference's claims that the answer entails.",
        of="the reference's claims"),
    _ragchecker("f1", "F1 (RAGChecker)", "Precision and recall in one number.",
        formula="2PR / (P + R); 0 when both are 0", undefined_when="precision or recall is undefined"),
    _ragchecker("claim_recall", "Claim recall", "Share of the reference's claims that some passage entails.",
        of="the reference's claims", undefined_when="the reference has no claims, or there are no passages"),
    _ragchecker("context_precision", "Context precision",
        "Share of the passages that entail some claim of the reference.", of="the passages",
        undefined_when="the reference has no claims, or there are no passages"),
    _ragchecker("context_utilization", "Context utilisation",
        "Of the reference's claims that were retrieved, the share that the answer says.",
        of="the reference's claims that some passage entails",
        direction="higher = what was retrieved is used",
        undefined_when="no claim of the reference was retrieved"),
    _ragchecker("noise_sensitivity_in_relevant", "Noise sensitivity, relevant passages",
        "Share of the answer's claims that are incorrect and come from a relevant passage.",
        direction="lower is better"),
    _ragchecker("noise_sensitivity_in_irrelevant", "Noise sensitivity, irrelevant passages",
        "Share of the answer's claims that are incorrect and come from irrelevant passages only.",
        direction="lower is better"),
    _ragchecker("hallucination", "Hallucination",
        "Share of the answer's claims that are incorrect and in no passage.", direction="lower is better"),
    _ragchecker("self_knowledge", "Self-knowledge",
        "Share of the answer's claims that are correct and in no passage.", direction=""),
    _ragchecker("faithfulness", "Faithfulness", "Share of the answer's claims that some passage entails.",
        undefined_when="the answer has no claims, or there are no passages"),
)  # fmt: skip

STATES = by_name(
    Definition("well supported", "Well supported", "Two passages or more support the claim, each on its own.",
        STATE),
    Definition("fragile", "Fragile",
        "Exactly one passage supports the claim. It may be correct, but nothing confirms that passage.", STATE,
        advice="Nothing confirms that passage. Where it matters, check the claim against a second source."),
    Definition("joint", "Joint",
        "No passage supports the claim on its own, but two do together; it counts as SUPPORTED.", STATE),
    Definition("unsupported", "Unsupported", "Every passage was checked, and none supports the claim.", STATE,
        advice="Read these first."),
    Definition("unscored", "Unscored",
        "Not known: no support was found, but the verifier failed on some or all passages.", STATE,
        advice="Verify the missing cells; unscored is not unsupported."),
    Definition("irrelevant", "Irrelevant",
        "A refusal, a greeting or talk about the answer: it has no checkable claim and enters no mean.",
        STATE),
)  # fmt: skip

VERDICTS = by_name(
    Definition("SUPPORTED", "SUPPORTED",
        "A retrieved passage supports the claim, or two together do.", VERDICT),
    Definition("NOT_SUPPORTED", "NOT SUPPORTED",
        "Every passage was checked; none supports the claim, and neither does any pair that was tried.",
        VERDICT),
    Definition("IRRELEVANT", "IRRELEVANT",
        "There is nothing in it to check; it is in neither count.", VERDICT),
    Definition("UNSCORED", "UNSCORED",
        "No support was found, but the verifier failed on some passages, or there are none; it is in neither count.",
        VERDICT),
)  # fmt: skip

CAUSAL_LABELS = by_name(
    Definition("kept", "Kept", "Without the passage the answer still says it.", CAUSAL),
    Definition("changed", "Changed",
        "Without the passage the answer says it with another number or name, or the opposite.", CAUSAL),
    Definition("gone", "Gone", "Without the passage the answer no longer says it.", CAUSAL),
    Definition("unknown", "Unknown", "The answer without the passage is missing or cannot be compared.",
        CAUSAL),
)  # fmt: skip

QUADRANTS = by_name(
    Definition("used evidence", "Used evidence",
        "Leaving the passage out changes the answer, and it supports a claim.", QUADRANT,
        advice="As it should be."),
    Definition("distractor", "Distractor",
        "Leaving the passage out changes the answer, but it supports no claim.", QUADRANT,
        advice="It changes the answer without supporting it: read the passage, then filter or re-rank."),
    Definition("redundant or wasted", "Redundant or wasted",
        "The passage supports a claim, but leaving it out changes nothing.", QUADRANT,
        advice="Other passages say the same, or the model does not use it: try a smaller k."),
    Definition("idle", "Idle", "The passage neither supports a claim nor changes the answer.", QUADRANT,
        advice="It only costs tokens: try a smaller k or a better query."),
    Definition("undefined", "Undefined",
        "Influence or support of the passage is unknown, or the answer has no claims.", QUADRANT),
)  # fmt: skip

REASONS = by_name(
    Definition("not_run", "Not run", "Claims were not extracted from the answer.", REASON),
    Definition("error", "Error", "The model call failed.", REASON),
    Definition("empty", "Empty", "The answer is empty, so it claims nothing.", REASON),
    Definition("abstained", "Abstained",
        "The model declined to answer: neither correct nor incorrect, and nothing to support.", REASON),
    Definition("no_claims", "No claims", "No claim was found in the answer.", REASON),
    Definition("no_relevant_claims", "No relevant claims", "The answer has no checkable claim.", REASON),
    Definition("no_passages", "No passages", "The question has no passages.", REASON),
    Definition("unscored", "Unscored", "The verifier failed on every claim; that is not the same as no support.", REASON),
    Definition("no_answer_claims", "No answer claims", "The answer has no claims to compare.", REASON),
    Definition("no_reference_claims", "No reference claims", "The reference answer has no claims to compare.",
        REASON),
    Definition("no_reference", "No reference", "The answer was not compared with a reference answer.", REASON),
    Definition("nothing_retrieved", "Nothing retrieved",
        "No claim of the reference answer is in the passages.", REASON),
)  # fmt: skip

PLANTED = by_name(
    Definition("errors", "All errors", "Claims that no passage supports, whatever is wrong with them.", ERROR),
    Definition("number", "Number changed", "The passage says it with another number.", ERROR),
    Definition("date", "Date changed", "The passage says it with another date or year.", ERROR),
    Definition("name", "Name changed", "The passage says it of another person, place or thing.", ERROR),
    Definition("negated", "Negated", "The passage says the opposite.", ERROR),
    Definition("overclaimed", "Overclaimed", "The passage says less: some, often, thought to be.", ERROR),
    Definition("wrong_passage", "From a wrong passage",
        "A retrieved passage says it, but of something else.", ERROR),
    Definition("in_no_passage", "In no passage", "Correct in the world, but no passage says it.", ERROR),
    Definition("two_passages", "Two passages together",
        "No error: two passages support the claim together, and neither does alone.", ERROR),
    Definition("none", "No error", "A passage supports the claim; to flag it is a false alarm.", ERROR),
)  # fmt: skip

_TABLES = (METRICS, STATES, VERDICTS, CAUSAL_LABELS, QUADRANTS, REASONS, PLANTED)
DEFINITIONS = tuple(one for table in _TABLES for one in table.values())
