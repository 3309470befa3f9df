"""The verdict on runs for which a person can say what is wrong, and how it is made of findings."""

import dataclasses

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import BAD, GOOD, UNCLEAR, Diagnostic, Finding, Need
from core.verdict import Clause, text_of, verdict
from tests.core import verdict_runs as runs

TEXTS = {
    runs.buried_evidence: (
        "What the model uses is retrieved later than chance would put it (mean nDCG 0.54 against 0.63 by chance, "
        "30 questions), and in 30 of 30 questions the model relies on a passage from the end of the retrieved "
        "list (89–100 %; 67 % by chance).",
        "Retrieval puts a gold passage first in none of 30 questions (0–11 %; 10 % by chance), but it is the most "
        "influential passage in all 30 (89–100 %; 10 % by chance).",
        "90 % of 30 answers are correct (95 % interval 74–97 %).",
    ),
    runs.lazy_retriever: (
        "Retrieval puts a gold passage first in only 10 % of 30 questions (3–26 %; 10 % by chance), but it is "
        "the most influential passage in all 30 (89–100 %; 10 % by chance).",
        "The order in which the model uses the passages is indistinguishable from a random one (mean nDCG 0.62 against 0.63 by "
        "chance, 30 questions); about 2,900 questions would be needed to tell.",
        "90 % of 30 answers are correct (95 % interval 74–97 %).",
    ),
    runs.parametric_model: (
        "In 24 of 30 questions the answer is the same without any passage (63–90 %).",
        "What the model uses is retrieved earlier than chance would put it (mean nDCG 1.00 against 0.45 by "
        "chance, 6 questions).",
    ),
    runs.harmful_passage: (
        "15 of 30 answers are wrong (95 % interval 33–67 %).",
        "In 12 of 30 questions leaving out one passage makes an incorrect answer correct (25–58 %).",
        "What the model uses is retrieved earlier than chance would put it (mean nDCG 0.85 against 0.45 by "
        "chance, 30 questions).",
    ),
    runs.redundant_passages: (
        "In 20 of 30 questions no single removal changes the answer, but leaving out all passages does "
        "(49–81 %).",
        "What the model uses is retrieved earlier than chance would put it (mean nDCG 1.00 against 0.45 by "
        "chance, 10 questions).",
    ),
    runs.random_order: (
        "Nothing here can be told from chance: the order in which the model uses the passages is "
        "indistinguishable from a random one (mean nDCG 0.81 against 0.83 by chance, 30 questions); about 79 questions would be needed to "
        "tell.",
    ),
    runs.nothing_wrong: (
        "Nothing serious was found: 97 % of 30 answers are correct (95 % interval 83–99 %).",
        "What the model uses is retrieved earlier than chance would put it (mean nDCG 0.99 against 0.62 by "
        "chance, 30 questions).",
        "Retrieval puts a gold passage first in all 30 questions (89–100 %; 10 % by chance), and it is the most "
        "influential passage in all 30 (89–100 %; 10 % by chance).",
    ),
    runs.too_few_questions: (
        "Nothing here can be told from chance: the order in which the model uses the passages is "
        "indistinguishable from a random one (mean nDCG 0.63 against 0.72 by chance, 6 questions); about 27 questions would be needed to "
        "tell.",
    ),
    runs.answers_only: (
        "Nothing can be diagnosed yet.",
        "The run has no passages.",
        "No gold passage is known: mark them with is_gold in the passages, or give gold fragments with the "
        "questions.",
    ),
    runs.never_left_out: (
        "Nothing serious was found: 90 % of 30 answers are correct (95 % interval 74–97 %).",
        "Retrieval puts a gold passage first in all 30 questions (89–100 %; 10 % by chance).",
    ),
    runs.mostly_empty: (
        "25 of 30 answers are empty, so all else is about the other 5.",
        "The order in which the model uses the passages is indistinguishable from a random one (mean nDCG 0.82 against 0.83 by "
        "chance, 5 questions); about 230 questions would be needed to tell.",
        "All 5 answers are correct (95 % interval 57–100 %).",
    ),
    runs.no_questions: ("The run has no questions.",),
}  # fmt: skip
ADVICE = {
    runs.buried_evidence: "Check that scores are sorted best first",
    runs.lazy_retriever: "re-rank, reword the search, or try another retriever",
    runs.parametric_model: "The model gives this answer without any passage",
    runs.harmful_passage: "Without this passage the answer is correct",
    runs.redundant_passages: "Check whether a passage supports the answer",
    runs.random_order: "fewer or shorter passages",
    runs.nothing_wrong: "",
    runs.too_few_questions: "repeat the unchanged calls",
    runs.answers_only: "",
    runs.never_left_out: "",
    runs.mostly_empty: "a larger model",
    runs.no_questions: "",
}


@pytest.mark.parametrize("made", TEXTS, ids=lambda made: made.__name__)
def test_what_a_person_would_say(made):
    run = made()
    diagnosis = Diagnosis(run)
    found = verdict(diagnosis)
    assert found.texts == TEXTS[made]
    assert ADVICE[made] in found.advice and bool(ADVICE[made]) == bool(found.advice)
    for clause in (clause for sentence in found.sentences for clause in sentence):
        assert set(clause.query_ids) <= set(run.queries["query_id"])
        if clause.finding:  # its proof is there
            assert clause.finding in {one.name for one in diagnosis.findings_of(clause.diagnostic)}


def test_a_run_whose_evidence_is_not_used_says_so():
    places = [0] * 27 + [5] * 3
    used = [place if i < 6 else 3 for i, place in enumerate(places)]
    found = verdict(Diagnosis(runs.made(runs.peaks(used), gold=places)))
    assert found.texts[0] == (
        "Retrieval puts a gold passage first in 90 % of 30 questions (74–97 %; 10 % by chance), but it is "
        "the most influential passage in only 20 % of 30 (10–37 %; 10 % by chance; about 130 questions would be needed to "
        "tell)."
    )
    assert "a larger model" in found.advice


def test_no_sentence_says_that_more_questions_would_not_help():
    """From 30 questions whose first and last passage matter in turn, the verdict said that more would not help.

    The difference that was seen is nil; that does not show that the difference is.
    """
    found = verdict(Diagnosis(runs.made([[0.9, 0.4, 0.1], [0.1, 0.4, 0.9]] * 15)))
    assert found.texts[0].endswith("too few questions to tell.")


# --- findings nobody has heard of


def told(*findings, other=()):
    """The verdict on a run of two questions, from the findings of two diagnostics."""
    run = Run.create(
        {"source": "upload"}, queries=pd.DataFrame({"query_id": ["a", "b"], "question": ["?", "?"]})
    )
    diagnostics = [
        Diagnostic(name, name, "?", lambda d: d, lambda a: (), lambda a, found=found: found)
        for name, found in (("x", findings), ("y", other))
    ]
    return verdict(Diagnosis(run, diagnostics=diagnostics))


def finding(clause, severity="medium", tone=BAD, topic="", **more):
    more = {"name": clause, "sentence": f"{clause.capitalize()} it is.", "n": 1, "of": 2} | more
    return Finding(severity=severity, tone=tone, clause=clause, topic=topic, **more)


def test_what_is_wrong_comes_first_then_what_is_unclear_then_what_is_in_order_then_what_is_slight():
    slight, good, unclear = (
        finding("slight", "low"),
        finding("good", "low", GOOD),
        finding("unclear", tone=UNCLEAR),
    )
    grave = finding("grave", "high", query_ids=("b",), advice="Mend it.")
    found = told(slight, good, unclear, finding("bad"), other=[grave])
    assert found.texts == ("Grave.", "Bad.", "Unclear.")
    assert found.sentences[0] == (Clause("Grave", "y", "grave", ("b",)),)
    assert found.advice == "Mend it."
    assert told(slight, good, unclear).texts == ("Unclear.", "Good.", "Slight.")
    assert told(slight, good).texts == ("Nothing serious was found: good.", "Slight.")


def test_a_topic_is_one_sentence_of_its_two_gravest_in_the_order_of_the_diagnostic():
    parts = [finding("good", "low", GOOD, "t"), finding("slight", "low", BAD, "t"), finding("bad", topic="t")]
    assert told(*parts).texts == ("Good, but bad.",)
    assert told(*parts[1:]).texts == ("Slight, and bad.",)
    # The same word for the topic of another diagnostic is another topic.
    assert told(parts[0], other=[parts[2]]).texts == ("Bad.", "Good.")


def test_without_a_clause_the_sentence_is_told_where_it_matters():
    plain = dataclasses.replace(finding("bad"), clause="")
    assert told(plain).texts == ("Bad it is.",)
    assert told(dataclasses.replace(plain, severity="low")).texts == ("Nothing stands out.",)


def test_chance_is_the_opening_only_where_it_was_tested_and_explains_all():
    open_ = finding("open", tone=UNCLEAR, p_value=0.3)
    assert told(open_).texts == ("Nothing here can be told from chance: open.",)
    assert told(dataclasses.replace(open_, p_value=None)).texts == ("Open.",)
    assert told(open_, finding("slight", "low")).texts == (
        "Nothing here can be told from chance: open.",
        "Slight.",
    )
    assert told(finding("slight", "low", p_value=0.01)).texts == ("Slight.",)
    assert told(open_, finding("bad")).texts == ("Bad.", "Open.")
    assert told(open_, finding("good", "low", GOOD)).texts == ("Open.", "Good.")


def test_what_lacks_is_said_where_nothing_else_can_be():
    run = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ["a"], "question": ["?"]}))
    lacking = Diagnostic("x", "X", "?", lambda d: d, lambda a: (), needs=(Need("claims", "No claims yet."),))
    found = verdict(Diagnosis(run, diagnostics=[lacking]))
    assert found.texts == ("Nothing can be diagnosed yet.", "No claims yet.")
    assert found.sentences[1][0].diagnostic == "x"


def test_a_sentence_reads_as_one():
    assert text_of((Clause("A is so"), Clause("but b is not"))) == "A is so, but b is not."
