"""What the log-probabilities of given answers mean, and why they may be undefined."""

from __future__ import annotations

from core.socket import MODE, REASON, Definition, by_name

_SHARE = {
    "range": "[0, 1]",
    "direction": "higher = the measure points to the evidence; compare with its chance level, not with 0",
    "undefined_when": "no gold passage was retrieved, or a value is missing",
}

METRICS = by_name(
    Definition("logprob_drop", "Drop of the answer", "How much likelier this passage makes the answer that was given.",
        formula="log p(answer | all passages) − log p(answer | all but this one)", unit="nats", range="any number",
        direction="higher = the answer depends on it more; ln 2 = 0.69 doubles its probability; below 0 the passage makes it less likely",
        undefined_when="the answer was not scored: run the step likelihood",
        source="leave-one-out log-probability as in Cohen-Wang et al. 2024, arXiv 2409.00729"),
    Definition("reference_logprob_drop", "Drop of the reference answer",
        "How much likelier this passage makes the first reference answer.",
        formula="log p(reference | all passages) − log p(reference | all but this one)", unit="nats",
        range="any number", direction="higher = the passage makes the correct answer likelier; below 0 less likely",
        undefined_when="there is no reference answer, or it was not scored"),
    Definition("gold_by_retrieval", "Gold first: retriever", "Is the retriever's first passage a gold one?",
        formula="gold among the first / the first, mean over questions", **_SHARE),
    Definition("gold_by_rouge", "Gold first: ROUGE-L",
        "Is the passage that changes the words of the answer most a gold one?",
        formula="gold among the most influential / the most influential (ties broken at random), mean over questions",
        **_SHARE),
    Definition("gold_by_answer", "Gold first: own answer",
        "Is the passage that raises the probability of the answer most a gold one?",
        formula="gold among those of the largest drop, mean over questions", **_SHARE),
    Definition("gold_by_reference", "Gold first: reference",
        "Is the passage that raises the probability of the reference answer most a gold one?",
        formula="gold among those of the largest drop, mean over questions", **_SHARE),
    Definition("n_approximate", "Approximate drops",
        "Passages whose drops are only estimated, by the quick screen: the prompt is read once.",
        direction="0 = everything was read exactly (step likelihood with --exactness exact)"),
    Definition("screen_off", "Screen off by",
        "How far the quick screen is off on passages that it did not put first.",
        formula="mean of |estimated − exact drop| over passages drawn at random and read exactly", unit="nats",
        range="[0, ∞)", direction="lower = the estimates can be trusted more",
        undefined_when="none was checked (--exactness screen)"),
    Definition("screen_order", "Screen in the same order",
        "Do the quick screen and exact reading put two passages of a question in the same order?",
        formula="share of pairs drawn at random and read exactly", range="[0, 1]",
        direction="higher = better; 0.5 is chance", undefined_when="no pair was checked (--exactness screen)"),
    Definition("n_scored", "Answers scored", "Answers whose log-probability is known with and without each passage."),
)  # fmt: skip

MODES = by_name(
    Definition("misleading", "Misleading passage",
        "The answer is incorrect, and the passage that raises its probability most at least doubles it and at least "
        "halves that of the reference answer.", MODE,
        undefined_when="the answer is correct or no answer, or one of the two was not scored",
        advice="Read the passage: it makes the incorrect answer likelier and the correct one less likely. Filter it out, "
        "or rank it lower."),
    Definition("ignored", "Ignored evidence",
        "The answer is not correct, and the passage that raises the reference answer most at least doubles its "
        "probability without making the given answer any likelier.", MODE,
        undefined_when="the answer is correct, or one of the two was not scored",
        advice="The evidence is in the prompt, but the answer does not use it: try fewer passages, the evidence first, "
        "or a stronger model."),
)  # fmt: skip

REASONS = by_name(
    Definition("without_passages", "Without passages", "The question has no passage.", REASON),
    Definition("without_answer", "Without an answer", "There is no answer to score.", REASON),
    Definition("without_reference", "Without a reference answer", "There is no reference answer.", REASON),
    Definition("without_text", "Without text", "The text of a passage is not known, so it cannot be read.", REASON),
    Definition("not_read", "Not scored", "Not scored: run the step likelihood.", REASON),
    Definition("partly_read", "Partly scored",
        "A log-probability is missing: the prompt does not fit into the model's context, or scoring failed.", REASON),
)  # fmt: skip

DEFINITIONS = (*METRICS.values(), *MODES.values(), *REASONS.values())
