"""What the numbers, states and reasons of attribution mean."""

from __future__ import annotations

from core.attribution.methods import METHODS, PREDICT
from core.socket import REASON, Definition, by_name

METHOD = "Attribution methods"

METRICS = by_name(
    Definition("attribution", "Attribution score",
        "How much the answer gains from a passage, over random subsets of the others.",
        formula="weight of the passage in a sparse linear model of the answer's score under random subsets; from 48 "
        "subsets on with pairs of passages", unit="nats of the answer's log-probability, else ROUGE-L F1",
        direction="higher = the passage helped the answer more; below 0 = it spoke against it",
        undefined_when="no subset was measured",
        source="Cohen-Wang et al. 2024, arXiv 2409.00729"),
    Definition("shapley", "Shapley value",
        "A passage's share of what all passages together add to the answer.",
        formula="mean contribution when passages arrive in random order", direction="higher = more of the credit",
        undefined_when="Shapley values were not measured", source="Shapley 1953"),
    Definition("lds", "LDS (linear datamodelling score)",
        "How well the scores predict what leaving passages out does, on subsets that they were not fitted to.",
        formula="Spearman's ρ of the sum of the kept passages' scores (and pairs) and the measured score, over held-out "
        "random subsets", range="[−1, 1]", direction="higher = better; 0 by chance",
        undefined_when="fewer than 8 subsets, or the answer's score never changes",
        source="Park et al. 2023; Cohen-Wang et al. 2024, §3"),
    Definition("readable", "Bars can be read",
        "The 95 % interval of the LDS lies above 0. Else do not read the bars of this answer; with fewer than 16 subsets "
        "it cannot be told of a single answer.",
        direction="no by mistake in at most 1 of 40 answers whose scores say nothing",
        undefined_when="the LDS is undefined",
        advice="Do not read these bars. Measure more subsets of the passages, where there are more, or read the claims."),
    Definition("concordance", "Removals told apart",
        "Of two removals, how often the scores say which one changes the answer more.",
        formula="share of pairs of held-out subsets in the right order, predicted ties half", range="[0, 1]",
        direction="higher = better; 0.5 by chance", undefined_when="the LDS is undefined"),
    Definition("ceiling", "Ceiling of the LDS",
        "The LDS that measuring the same subsets again reaches: no attribution can do better.",
        range="[−1, 1]", direction="an LDS near it is as good as it gets",
        undefined_when="nothing was measured twice; a log-probability is the same each time"),
    Definition("top_drop", "Lost without the first passage",
        "What the answer's score loses without the passage of the highest score, beside a random passage.",
        formula="score with all − score without it", direction="higher than for a random passage = the first is the right one",
        undefined_when="there is only one passage, or no score"),
    Definition("either", "Either is enough",
        "Two passages hold the same evidence: leaving out both costs more than the sum of leaving out each.",
        formula="I(ij) − I(i) − I(j) > 0 over random subsets, corrected for all pairs of the question",
        undefined_when="fewer than about 48 subsets, or only two passages",
        advice="Leaving out one passage shows no influence here: read the score by random subsets, or drop both together."),
    Definition("both", "Needs both",
        "Two passages are needed together: leaving out either costs as much as leaving out both.",
        formula="I(ij) − I(i) − I(j) < 0 over random subsets, corrected for all pairs of the question",
        undefined_when="fewer than about 48 subsets, or only two passages",
        advice="Keep such passages together: a smaller k or another order that loses one of them loses the answer."),
    Definition("near_duplicates", "Near-duplicates",
        "Passages with a cosine similarity of 0.9 or more; they are also left out together.",
        advice="Remove duplicates when you index: they take places in the prompt and hide each other's influence."),
    Definition("settled", "Order settled",
        "How many of the first three places are told apart from all behind them.",
        range="0 to 3", direction="wrong in at most 5 % of answers, whenever drawing stops",
        source="de la Peña 1999; Ville's inequality"),
    Definition("passage_share", "Share of the passages",
        "Part of the variance of the score that differences between the passages explain, whatever their place.",
        formula="adjusted for as many random columns", range="at most 1", direction="0 by chance",
        undefined_when="the passages were not measured in other orders"),
    Definition("slot_share", "Share of the place",
        "Part of the variance of the score that differences between the places of the prompt explain, whatever passage stands there.",
        formula="adjusted for as many random columns", range="at most 1", direction="0 by chance",
        undefined_when="the passages were not measured in other orders",
        advice="The model reads some places more than others: put the best passage there, or give fewer passages."),
    Definition("swap", "Swap of neighbours (placebo)",
        "How much the score changes where two neighbouring passages change places: no evidence is gained or lost.",
        formula="mean |score − score with all in order|",
        direction="an influence below it cannot be told from any edit of the prompt",
        undefined_when="the passages were not measured in other orders"),
    Definition("claim_disagreement", "Influence against support",
        "The passage that makes a claim likeliest does not support it, while another one does.",
        undefined_when="claims were not read under the subsets, or no passage matters to the claim",
        advice="Read these claims: the words fit one passage, but the model took them from elsewhere."),
)  # fmt: skip

REASONS = by_name(
    Definition("not_measured", "Not measured", "No subset of the passages was measured: run the step attribution.", REASON),
    Definition("no_answer", "No answer", "There is no answer to attribute.", REASON),
    Definition("too_few_masks", "Too few subsets", "Fewer than 8 subsets to judge by: with 1 or 2 passages there are no more.",
        REASON),
    Definition("constant", "Nothing matters", "The score of the answer is the same under every subset: no passage matters.",
        REASON),
    Definition("all_equal", "All scores equal", "The model of the subsets gives all of them the same score.", REASON),
    Definition("incomplete", "Incomplete", "Some subsets could not be measured.", REASON),
    Definition("shares_credit", "Shares credit", "Shares of credit are not meant to predict, and are not judged by it.", REASON),
)  # fmt: skip

METHOD_DEFINITIONS = tuple(
    Definition(f"method_{one.name}", one.title, one.meaning, METHOD,
               direction="predicts what leaving passages out does" if one.answers == PREDICT else "shares the credit")
    for one in METHODS.values()
)  # fmt: skip

DEFINITIONS = (*METRICS.values(), *REASONS.values(), *METHOD_DEFINITIONS)
