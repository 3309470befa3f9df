"""What the numbers, verdicts and reasons of conformal prediction mean."""

from __future__ import annotations

from core.socket import MODE, REASON, Definition, by_name

CALIBRATION, TEST, NEW = "Calibration", "Test", "New"
IN_LINE, FLAGGED, UNDEFINED = "In line", "Flagged", "Undefined"
OF_CORRECT, OF_DISTANCE, OF_SETS = "coverage_correct", "coverage_distance", "coverage_sets"
OF_SCORE = "coverage_score"
DEFAULT_ALPHA = 0.1
DELTA = 0.1  # probability that a certified threshold breaks its promise
DRIFT_LEVEL = 0.05  # probability of a false alarm, ever
ROLES, VERDICTS = "Roles in calibration", "Conformal verdicts"

METRICS = by_name(
    Definition("alpha", "Error rate α", "How often a promise may be broken: 0.1 promises 9 in 10.",
        range="(0, 1)", direction="lower = stronger promise, more labels needed"),
    Definition("threshold", "Conformal threshold",
        "The score that a new case exceeds with a probability of at most α.",
        formula="the ⌈(n + 1)(1 − α)⌉-th smallest of n calibration scores; +∞ where that exceeds n",
        undefined_when="n labels cannot certify α: at least ⌈(1 − α) / α⌉ are needed",
        source="Vovk, Gammerman, Shafer 2005"),
    Definition("score", "Nonconformity score",
        "How unlike the calibration cases an answer is, by a signal that needs no reference answer.",
        direction="higher = less typical"),
    Definition("p_value", "Conformal p-value",
        "Share of the correct calibration answers of the same group, the new one among them, that are no more typical.",
        formula="(1 + #{scores ≥ s}) / (n + 1)", range="(0, 1]",
        direction="lower = less like the correct answers; flagged where it is at most α",
        undefined_when="the question calibrates, it has no score, or there are too few labels"),
    Definition(OF_CORRECT, "Correct answers kept",
        "Of answers that are as good as the correct ones in calibration, at most a share of α is flagged, in every "
        "group with a threshold of its own. It does not say how many of the others are flagged.",
        undefined_when="no correct answer is known among the tested questions"),
    Definition(OF_SCORE, "Usual scores",
        "At least 1 − α of the answers to questions like those in calibration score no higher than the threshold, "
        "correct or not.",
        undefined_when="no question but those that calibrate has a score"),
    Definition(OF_DISTANCE, "Distance to the truth",
        "At least 1 − α of new answers are no further from a reference answer (1 − ROUGE-L) than the threshold.",
        undefined_when="no reference answer is known among the tested questions"),
    Definition(OF_SETS, "Sets that hold a correct answer",
        "With probability at least 1 − α the set of sampled meanings holds a correct answer; questions in which no "
        "sample is correct count as missed.",
        undefined_when="nothing was sampled, or no reference answer is known"),
    Definition("set_size", "Answers in the set", "Meanings among the samples that are frequent enough to be in the "
        "prediction set; refusals are in none.", range="0 to the number of meanings", direction="lower = more useful",
        source="Sadinle, Lei, Wasserman 2019; Li et al. 2023 (TRAQ)"),
    Definition("certified", "Certified threshold",
        f"From this confidence on at most α of the answers are wrong, with probability {1 - DELTA:.0%} over the "
        "labelled questions.",
        formula="fixed sequence of exact binomial tests, from a number of surest answers down a fixed grid",
        undefined_when="no threshold passes: the note says how many labels might do",
        source="Angelopoulos et al. 2021 (Learn then Test)"),
    Definition("kept_claims", "Claims that can be kept",
        "Claims supported above the threshold; with probability at least 1 − α all kept claims of an answer are right.",
        undefined_when="no claim of an answer was compared with a reference answer",
        source="Mohri & Hashimoto 2024"),
    Definition("drift", "Drift alarm",
        "Whether the scores of new questions look like those of a calibration store: a bet against it gains "
        f"{1 / DRIFT_LEVEL:.0f} times its stake with probability at most {DRIFT_LEVEL:.0%} if they do, however often "
        "one looks. It sees a change of level, not of spread.",
        undefined_when="questions of the run itself calibrate: the order of a file says nothing of time",
        formula="Simple Jumper martingale on randomised online p-values",
        source="Vovk et al. 2021, arXiv 2102.10439"),
)  # fmt: skip

LABELS = by_name(
    Definition(CALIBRATION, "Calibration", "The thresholds are calibrated on this question.", ROLES),
    Definition(TEST, "Test", "Whether it is correct is known and was not used to calibrate: it checks the promise.", ROLES),
    Definition(NEW, "New", "Whether it is correct is not known.", ROLES),
    Definition(IN_LINE, "In line", "The answer is as typical as correct ones are: p > α.", VERDICTS),
    Definition(FLAGGED, "Flagged", "The answer is less typical than 1 − α of the correct ones: p ≤ α.", VERDICTS),
)  # fmt: skip

FINDINGS = by_name(
    Definition("stale_calibration", "Stale calibration",
        "The calibration was made with another model, prompt, retriever or score than the run has now.", MODE,
        advice="Calibrate again with this set-up: thresholds of another one promise nothing."),
    Definition("score_drift", "Scores drift",
        "The scores of new questions are higher or lower than those in calibration. A change of their spread alone is "
        "not seen.", MODE,
        advice="Label some of the recent questions and calibrate on them; until then the promises are void."),
    Definition("coverage_short", "Promise broken",
        "Fewer cases are covered than the exact band allows.", MODE,
        advice="Calibration and test questions differ: calibrate on questions like those that are asked."),
    Definition("answers_flagged", "Answers flagged",
        "Answers that are less typical than correct ones.", MODE,
        advice="Withhold these answers or send them to a person."),
    Definition("no_certificate", "Nothing certified",
        "No confidence can be certified, from which on at most α of the answers are wrong.", MODE,
        advice="Label more questions, or allow a higher α."),
    Definition("certificate", "Certified threshold found",
        "From a certified confidence on at most α of the answers are wrong.", MODE),
    Definition("few_labels", "Too few labels",
        "The calibration has too few correct answers for a finite threshold.", MODE,
        advice="Label more questions or allow a higher α."),
)  # fmt: skip

REASONS = by_name(
    Definition("not_calibrated", "Not calibrated", "No question of the run calibrates, and no store was given.", REASON),
    Definition("few_labels", "Too few labels",
        "Too few correct answers of its group calibrate: the threshold is not finite.", REASON),
    Definition("no_score", "No score", "The chosen score has no value for this answer.", REASON),
)  # fmt: skip

DEFINITIONS = (*METRICS.values(), *LABELS.values(), *FINDINGS.values(), *REASONS.values())
