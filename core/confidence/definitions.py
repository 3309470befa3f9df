"""What the numbers, bands and reasons of the confidence mean."""

from __future__ import annotations

from core.context_score import GREEN, NO_BAND, ORANGE, RED
from core.socket import MODE, REASON, Definition, by_name

BANDS = "Confidence bands"
_LABELS = "no answer with a confidence has a label, or all or none of them are correct"

METRICS = by_name(
    Definition("confidence", "Confidence",
        "How confident one can be in the answer: a weighted sum of signals, each brought to [0, 1] by its declared "
        "range, then mapped by the calibration, if there is one.",
        formula="0.45 · similarity + 0.35 · lexical / 100 + 0.20 · stated confidence, unless other weights are chosen",
        range="[0, 1]", direction="higher = more confident",
        undefined_when="there is no answer, or a signal with a weight is missing"),
    Definition("similarity", "Similarity",
        "Mean cosine of the question with its 3 most similar passages, by the packaged embedding model; negative "
        "means count as 0. A file may bring its own.", range="[0, 1]", direction="higher = more confident",
        undefined_when="no passage has a text"),
    Definition("lexical", "Lexical score",
        "Mean BM25 of the 3 best passages, in per cent of the largest score that any text could have for the question "
        "among the passages of the run. A file may bring its own.",
        formula="100 · BM25 / Σ idf · (k₁ + 1)", range="0 to 100", direction="higher = more confident",
        undefined_when="no word of the question is in the passages"),
    Definition("llm_score", "Stated confidence", "How likely its answer is correct, as the model itself says.",
        range="[0, 1]", direction="higher = more confident", undefined_when="the model was not asked, or its reply "
        "could not be read", source="Tian et al. 2023, arXiv 2305.14975"),
    Definition("passes", "Reach the threshold", "The confidence, rounded half-up to two places, reaches the threshold.",
        undefined_when="the answer has no confidence"),
    Definition("ece", "Calibration error (ECE)",
        "Mean gap of confidence and accuracy over bins of equal width. By chance a confidence that is exactly right has "
        "some, too.", range="[0, 1]", direction="lower is better", undefined_when="no answer has a label",
        source="Naeini, Cooper, Hauskrecht 2015"),
    Definition("mce", "Largest calibration error (MCE)", "The largest gap of confidence and accuracy of a bin; one "
        "answer alone in its bin can make it.", range="[0, 1]", direction="lower is better",
        undefined_when="no answer has a label", source="Naeini, Cooper, Hauskrecht 2015"),
    Definition("brier", "Brier score", "Mean squared difference of confidence and correctness.", range="[0, 1]",
        formula="reliability − resolution + uncertainty + within the bins",
        direction="lower is better; who always states the share of correct answers has the chance baseline",
        undefined_when="no answer has a label", source="Brier 1950; Murphy 1973"),
    Definition("auroc", "Confidence AUROC", "Probability that a correct answer has a higher confidence than an "
        "incorrect one; ties count half.", range="[0, 1]", direction="higher is better; 0.5 by chance",
        undefined_when=_LABELS),
    Definition("aurc", "Confidence AURC", "Mean share of incorrect answers when only the most confident are "
        "given, over all shares given.", range="[0, 1]", direction="lower is better; the share of incorrect answers by "
        "chance", undefined_when="no answer has a label", source="Geifman, Uziel, El-Yaniv 2019"),
    Definition("combined_uncertainty", "Combined uncertainty",
        "Uncertainty of retrieval, sampling and conformal prediction in one number. Where the conformal score is an "
        "agreement with the samples, its last two parts see the same samples.",
        formula="0.2 · U_retrieval + 0.4 · (1 − agreement with the samples) + 0.4 · (1 − confidence of the conformal "
        "score); U_retrieval is the entropy of the softmax of the retrieval scores, divided by log k",
        range="[0, 1]", direction="higher = more uncertain", undefined_when="one of its parts is"),
    Definition("is_reliable", "Reliable by the combined decision",
        "The confidence of MC dropout, 1 − embedding variance of the samples, exceeds 0.7 and the conformal verdict is In "
        "line.", undefined_when="neither of the two fails and one is not known: the embeddings are measured on request"),
    Definition("is_reliable_strict", "Reliable by the stricter decision",
        "The agreement with the samples, their mean likeness in words, exceeds 0.7 and the conformal verdict is In line. "
        "Stricter, since paraphrases share few words.", undefined_when="neither of the two fails and one is not known"),
    Definition("weights", "Weights", "How much each signal counts; they sum to 1."),
)  # fmt: skip

LABELS = by_name(
    Definition(RED.word, "Low", "A confidence below 0.4.", BANDS),
    Definition(ORANGE.word, "Medium", "A confidence from 0.4 to below 0.7.", BANDS),
    Definition(GREEN.word, "High", "A confidence of 0.7 or more.", BANDS),
    Definition(NO_BAND.word, "Undefined", "The answer has no confidence.", BANDS),
)

_BY_CALIBRATION = "Calibrate the confidence on labelled answers; moving the threshold does not correct it."
FINDINGS = by_name(
    Definition("overconfident", "Overconfident", "The mean confidence is higher than the share of correct answers.", MODE,
        advice=_BY_CALIBRATION),
    Definition("underconfident", "Underconfident", "The mean confidence is lower than the share of correct answers.", MODE,
        advice=_BY_CALIBRATION),
    Definition("confidence_ranks", "Confidence ranks correct answers higher", "Correct answers have the higher "
        "confidence, beyond chance.", MODE),
    Definition("confidence_backwards", "Confidence is backwards", "Incorrect answers have the higher confidence, beyond "
        "chance.", MODE, advice="Do not use this confidence: choose other signals, or learn their weights."),
    Definition("confidence_blind", "Confidence unclear", "Whether correct answers have the higher confidence cannot be "
        "told from these labels.", MODE, advice="Label more answers before you rely on this confidence."),
    Definition("wrong_answers_stopped", "Threshold stops incorrect answers", "Fewer incorrect answers reach the threshold "
        "than would by chance.", MODE),
    Definition("wrong_answers_pass", "Incorrect answers pass", "Incorrect answers reach the threshold, as many as by "
        "chance or more.", MODE,
        advice="Do not use this confidence as a gate: choose other signals, or learn their weights."),
    Definition("threshold_stops_nothing", "Threshold stops nothing", "Every labelled answer reaches the threshold, "
        "incorrect ones too.", MODE,
        advice="Raise the threshold until it stops some incorrect answers; What if? shows what each costs."),
    Definition("range_mismatch", "Signal out of its range", "The values of a signal contradict its declared range.", MODE,
        advice="Declare the range that the signal has: its weight means nothing otherwise."),
    Definition("constant_signal", "Constant signal", "A signal with a weight has one value for all answers.", MODE,
        advice="Give it no weight, or ask another model: it moves every confidence alike."),
)  # fmt: skip

REASONS = by_name(
    Definition("no_answer", "No answer", "The answer is missing, empty or a refusal.", REASON),
    Definition("no_signal", "Signal missing", "A signal with a weight has no value for this answer.", REASON),
    Definition(
        "no_weights", "Weights unusable", "The chosen weights, or the calibration, cannot be used.", REASON
    ),
)

DEFINITIONS = (*METRICS.values(), *LABELS.values(), *FINDINGS.values(), *REASONS.values())
