"""What the numbers, verdicts and reasons of validation mean."""

from __future__ import annotations

from core.socket import MODE, REASON, Definition, by_name
from core.validation.analysis import NO_ANSWER, NO_TEXTS, NOT_VALIDATED, VALIDATOR_FAILED
from core.validation.types import Code

CODES, VALIDATORS, BANDS = "Reasons of validators", "Validators", "Bands of confidence"
_NONE_LABELLED = "no answer that was validated is known to be correct or incorrect"
_BY_RULE = "A rule of thumb, not a probability."

METRICS = by_name(
    Definition("passed", "Passes validation", "No validator objects to the answer.",
        undefined_when="the answer was not validated"),
    Definition("stopped", "Stopped", "A validator calls the answer critical: users see a fallback instead.",
        undefined_when="the answer was not validated"),
    Definition("incorrect_stopped", "Incorrect stopped",
        "Incorrect answers that validation stops. An incorrect answer counts as hallucinated.",
        formula="chance: answers stopped × share of incorrect ones among the labelled; p by Fisher's exact test, two-sided",
        range="[0, 1]", direction="higher = more hallucinated answers are kept from the user",
        undefined_when=_NONE_LABELLED),
    Definition("correct_stopped", "Correct stopped", "Answers that were stopped although they are correct.",
        range="[0, 1]", direction="lower is better", undefined_when=_NONE_LABELLED),
    Definition("incorrect_flagged", "Incorrect answers flagged",
        "Answers that a validator objects to, among the incorrect ones. One that flags by chance flags the same "
        "share of the correct answers.",
        formula="p by Fisher's exact test, two-sided",
        undefined_when=_NONE_LABELLED),
    Definition("context_score", "Context score",
        "Confidence from the number of passages and the gravest objection of a validator. " + _BY_RULE,
        formula="0.2 without passages, 0.5 with one, 0.8 with more; + 0.1 passed; − 0.2 no citation; − 0.15 low overlap; "
        "− 0.1 otherwise; 0.1 without ground and without stated uncertainty",
        range="[0, 1]", direction="higher = more confident", undefined_when="the answer was not validated"),
    Definition("overlap", "Evidence overlap",
        "Share of the answer's words of content that its best passage has.", range="[0, 1]",
        direction="higher = more of the answer is in a passage",
        undefined_when="the answer claims nothing, or there is no passage"),
    Definition("uncertain", "Uncertainty expressed", "The answer says itself that it is not certain."),
    Definition("fallback", "Fallbacks", "Answers that are replaced by a fallback text."),
)  # fmt: skip

LABELS = by_name(
    Definition("low", "Low", "Confidence below 0.4.", BANDS),
    Definition("medium", "Medium", "Confidence from 0.4 to below 0.7.", BANDS),
    Definition("high", "High", "Confidence of 0.7 and more.", BANDS),
    Definition("CitationRequired", "CitationRequired",
        "The answer must cite, and only passages that it was given.", VALIDATORS),
    Definition("EvidenceOverlap", "EvidenceOverlap", "The answer's words must be in a passage.", VALIDATORS),
    Definition("NumericUnits", "NumericUnits",
        "Numbers and dates of the answer must be in a passage or the question, units converted.", VALIDATORS),
    Definition("ConfidenceValidator", "ConfidenceValidator",
        "An answer without ground must say that it is uncertain; no answer may be empty.", VALIDATORS),
    Definition("EthicsAdapter", "EthicsAdapter",
        "A function of your own must let the answer through; without one it says nothing.", VALIDATORS),
)  # fmt: skip

REASONS_OF_VALIDATORS = by_name(
    Definition(Code.MISSING_CITATION, "Missing citation", "The answer cites no source.", CODES),
    Definition(Code.UNKNOWN_CITATION, "Unknown citation", "The answer cites passages that it was not given.", CODES),
    Definition(Code.LOW_OVERLAP, "Low overlap", "Too few of the answer's words are in a passage.", CODES),
    Definition(Code.UNSUPPORTED_NUMBER, "Unsupported number", "A number or date is in no passage.", CODES),
    Definition(Code.MISSING_UNCERTAINTY, "Missing uncertainty",
        "No passage supports the answer, and it does not say that it is uncertain.", CODES),
    Definition(Code.MISSING_UNCERTAINTY_NO_CONTEXT, "Missing uncertainty, no passages",
        "Nothing was retrieved, and the answer does not say that it is uncertain.", CODES),
    Definition(Code.OTHER_LANGUAGE, "Other language",
        "A passage is in another language than the answer, so their words cannot be compared.", CODES),
    Definition(Code.OVERCONFIDENT, "Overconfident", "The answer claims to be certain, and no passage supports it.", CODES),
    Definition(Code.EMPTY_ANSWER, "Empty answer", "The answer has no word.", CODES),
    Definition(Code.GUARD_REJECTED, "Rejected by the guard", "Your own function does not let the answer through.", CODES),
    Definition(Code.GUARD_FAILED, "Guard failed", "Your own function raised an exception.", CODES),
    Definition(Code.OTHER, "Other", "The reason of another validator, from a file.", CODES),
)  # fmt: skip

FINDINGS = by_name(
    Definition("answers_stopped", "Answers stopped", "Validation replaces these answers by a fallback.", MODE,
        advice="Read them: where an answer is correct, the objection is a false alarm or the passages lack its evidence; where "
        "it is incorrect, the fallback is the better reply."),
    Definition("answers_objected", "Answers with objections", "A validator objects to these answers.", MODE,
        advice="Start with the most frequent reason: read some of its answers and decide whether the objection is right."),
    Definition("stops_incorrect", "Incorrect, stopped",
        "Validation stops incorrect answers more often than as many stops at random.", MODE),
    Definition("gate_fails", "Incorrect, not stopped",
        "Validation does not separate incorrect from correct answers: it stops surely less than 25 percentage points "
        "more of them, or more of the correct ones.", MODE, advice="Do not use these validators as a gate here."),
    Definition("gate_unclear", "Incorrect, not stopped",
        "Too few labelled answers to say whether validation stops more of the incorrect ones.", MODE,
        advice="Label more answers before using these validators as a gate."),
    Definition("reliable_objection", "Reliable objection",
        "The validator objects to incorrect answers more often than to correct ones.", MODE),
    Definition("unreliable_objection", "Unreliable objection",
        "The validator objects to correct answers as often as to incorrect ones, or more often.", MODE,
        advice="Ignore its objections here. A prompt that asks for what it checks may change that."),
    Definition("validation_incomplete", "Answers not validated", "A validator raised an exception on these answers.", MODE,
        advice="Run the step again; if that fails, report the answer."),
)  # fmt: skip

REASONS = by_name(
    Definition(NOT_VALIDATED, "Not validated", "No validator has seen this answer.", REASON),
    Definition(VALIDATOR_FAILED, "Validator failed", "A validator raised an exception on this answer.", REASON),
    Definition(NO_ANSWER, "No answer", "There is no answer to validate: the model call failed.", REASON),
    Definition(NO_TEXTS, "Passages without text", "The run has no text of the passages to compare with.", REASON),
)  # fmt: skip

DEFINITIONS = (
    *METRICS.values(), *LABELS.values(), *REASONS_OF_VALIDATORS.values(), *FINDINGS.values(), *REASONS.values(),
)  # fmt: skip
