"""What the retrieval metrics mean, and why they may be undefined."""

from __future__ import annotations

from core.socket import REASON, Definition, by_name

METRICS = by_name(
    Definition("hit_at_k", "Hit at k", "Is a gold passage among the first k that the retriever gave?",
        formula="1 if any of the first k is gold, else 0; the mean is a share of questions",
        range="[0, 1]", direction="higher = found more often",
        undefined_when="no gold passage is known"),
    Definition("recall_at_k", "Recall at k", "How much of the evidence is among the first k passages?",
        formula="gold passages among the first k / gold passages in the collection", range="[0, 1]",
        direction="higher = more was found",
        undefined_when="no gold passage is known, or how many there are is not",
        source="Manning, Raghavan, Schütze 2008, chapter 8"),
    Definition("mrr", "Mean reciprocal rank", "How far up does the first gold passage stand?",
        formula="mean over questions of 1 / place of the first gold passage, 0 where none was retrieved",
        range="[0, 1]", direction="higher = further up", undefined_when="no gold passage is known",
        source="Voorhees 1999, TREC-8"),
    Definition("ndcg_at_k", "nDCG at k",
        "How close are the first k passages to the order with all gold ones in front?",
        formula="Σ 1 / log₂(place + 1) over gold passages, divided by its largest possible value",
        range="[0, 1]", direction="higher = more gold passages, further up",
        undefined_when="no gold passage is known, or how many there are is not",
        source="Järvelin, Kekäläinen 2002; discount of Burges et al. 2005"),
    Definition("gold_most_influential", "Gold used most",
        "Is a gold passage the most influential one?",
        formula="1 if no other passage is as influential as the best gold one, else 0", range="[0, 1]",
        direction="higher = what was found is also used",
        undefined_when="no gold passage was retrieved, or the influence is constant or unknown",
        advice="Where gold was in the prompt but another passage moves the answer more: try a larger model, another prompt, "
        "or fewer and shorter passages."),
)  # fmt: skip

FINDINGS = by_name(
    Definition("hit_at_1", "Gold passage first", "Does the retriever put a gold passage in the first place (hit at 1)?",
        undefined_when="no gold passage is known",
        advice="Where gold comes late: re-rank, reword the search, or try another retriever."),
    Definition("missed_evidence", "Missed evidence", "A gold passage exists that was not retrieved.",
        undefined_when="how many gold passages the collection holds is not known",
        advice="No model can use a passage it was not given: reword the search, or combine keywords with embeddings."),
)  # fmt: skip

REASONS = by_name(
    Definition("no_gold", "No gold", "No gold passage is known for the question.", REASON),
    Definition("gold_not_marked", "Gold not marked", "There are gold passages, but which ones is not known.",
        REASON),
    Definition("gold_not_counted", "Gold not counted",
        "How many gold passages the collection holds is not known.", REASON),
    Definition("gold_miscounted", "Gold miscounted",
        "More gold passages were retrieved than the collection is said to hold.", REASON),
    Definition("tied_ranks", "Tied ranks",
        "A gold passage shares its retrieval rank with one that is not gold.", REASON),
    Definition("gold_not_retrieved", "Gold not retrieved", "No gold passage is among those retrieved.", REASON),
    Definition("fewer_than_k", "Fewer than k", "No question has as many passages as the depth asks for.",
        REASON),
)  # fmt: skip

DEFINITIONS = (*METRICS.values(), *FINDINGS.values(), *REASONS.values())
