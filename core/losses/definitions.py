"""What the stages, fixes and numbers of *losses* mean, and what to do about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.losses.arms import ARMS, FEWER, REVERSED
from core.losses.ladder import (
    ABSENT,
    BURIED,
    DISTRACTED,
    DOUBTFUL,
    GROUNDED,
    LUCK,
    PIPELINE,
    PLACE,
    READING,
    RETRIEVAL,
    UNKNOWN,
    UNSPLIT,
    WITHOUT,
)
from core.socket import Definition

STAGE, ARM = "Stages", "Fixes that are tried"


@dataclass(frozen=True, slots=True)
class Cause:
    """A stage in the words of the verdict: who loses, what was seen, what to do."""

    who: str
    plural: bool
    seen: str
    advice: str


CAUSES: Mapping[str, Cause] = {
    READING: Cause("reading", False, "stay so even with the evidence sentences alone",
        "Try a larger model or another prompt."),
    RETRIEVAL: Cause("retrieval", False, "become {good} once the missing gold passages are added",
        "Work on retrieval: reword the search, combine keywords with embeddings, or retrieve more candidates and re-rank."),
    PLACE: Cause("the order of the passages", False, "become {good} once gold comes first",
        "Re-rank the passages, so that the evidence comes first."),
    DISTRACTED: Cause("distracting passages", True, "become {good} with the gold passages alone",
        "Filter out passages that do not answer the question, before the model reads them."),
    BURIED: Cause("long passages", True, "become {good} with the evidence sentences alone",
        "Cut shorter passages, or pick the sentences that matter before you ask."),
    ABSENT: Cause("missing documents", True, "have no gold passage in the documents",
        "Add documents that answer these questions, or let the model say that it does not know."),
    DOUBTFUL: Cause("the judging of answers", False, "state the reference answer, or rightly say that they do not know",
        "Read these answers and correct the labels or the reference answers first."),
}  # fmt: skip
# What a fix that helps asks for; no product has a gold passage, so the first four are limits.
_ADVICE = {
    **{arm: CAUSES[stage].advice for arm, stage in PIPELINE.items()},
    FEWER: "Lower k, and compare the two runs.",
    REVERSED: "Put the best passage last, and compare the two runs.",
}


def _stage(name: str, meaning: str, advice: str = "") -> Definition:
    return Definition(name, name[:1].upper() + name[1:], meaning, STAGE, advice=advice)


DEFINITIONS = (
    _stage(DOUBTFUL, "The answer was judged wrong, but its claims entail the reference answer; or it says that it does not know where the documents hold no answer.", CAUSES[DOUBTFUL].advice),
    _stage(ABSENT, "No gold passage of the question is in the documents. To say \"I don't know\" would be right.", CAUSES[ABSENT].advice),
    _stage(RETRIEVAL, "A gold passage was not retrieved; adding it in the place of the last passage fixes the answer.", CAUSES[RETRIEVAL].advice),
    _stage(PLACE, "Moving the gold passages to the front fixes the answer.", CAUSES[PLACE].advice),
    _stage(DISTRACTED, "Sending only the gold passages fixes the answer.", CAUSES[DISTRACTED].advice),
    _stage(BURIED, "Sending only the sentences with the evidence fixes the answer.", CAUSES[BURIED].advice),
    _stage(READING, "Not even sending only the sentences with the evidence fixes the answer.", CAUSES[READING].advice),
    _stage(UNKNOWN, "The fixes were not all tried on this question: a call failed or was not made, or no gold passage with its text is known.", "Try the fixes; mark gold passages, or find them by asking with each passage alone."),
    _stage(GROUNDED, "Right, not without the passages, and still right under the placebo."),
    _stage(WITHOUT, "Right, and the answer without any passage is right, too: the model knew it."),
    _stage(LUCK, "Right, but not under the placebo: another order of the other passages loses it."),
    _stage(UNSPLIT, "Right; the placebo was not asked, or its answer could not be judged."),
    *(Definition(arm.name, arm.title, arm.meaning, ARM, advice=_ADVICE.get(arm.name, "")) for arm in ARMS),
    Definition("losses", "Where answers are lost", "The first fix, in the order of the pipeline, that fixes an answer is where it was lost.",
        formula="documents → gold added → gold first → gold alone → gold sentences alone", undefined_when="the answer is not judged",
        advice="Work on the stage that loses most, and compare its fix with the placebo."),
    Definition("net", "Net gain of a fix", "Answers that the fix makes right, less those that it breaks.", unit="answers", direction="higher = the fix helps",
        formula="fixed − broken; 95 % interval of two paired shares; exact McNemar test against the run and against the placebo (and of gold sentences against gold alone), the largest p-value, Holm over all fixes",
        undefined_when="the fix was not tried", source="McNemar 1947; Bonett & Price 2012"),
)  # fmt: skip
