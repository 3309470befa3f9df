"""What Overview, Influence and Retrieval say of the recorded runs themselves: true labels, links that arrive."""

import re
import shutil

import pytest

from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.run import Run
from core.socket import REASON, Finding
from core.verdict import verdict
from core.worklist import Filter, key_of, select, worklist
from tests.app.conftest import ROOT
from ui import headlines


@pytest.fixture
def sample(tmp_path):
    """Put one of the recorded runs where the first is looked for."""

    def put(name="recorded_run"):
        shutil.copytree(ROOT / "sample_data" / name, tmp_path / "samples" / "recorded_run")
        return Diagnosis(Run.load(ROOT / "sample_data" / name))

    return put


def shown(block):
    """Yield the elements of a page in order, without what a closed container holds."""
    for child in block.children.values():
        if getattr(child, "children", None) is not None and child.type not in ("metric",):
            if child.type not in ("expandable", "expander"):
                yield from shown(child)
        else:
            yield child


def opening(app):
    """The text of a page above its list of questions."""
    texts = []
    for one in shown(app.main):
        if one.type == "subheader" and one.value == "Questions":
            break
        if one.type == "metric":
            texts += [one.label, str(one.value)]
        elif one.type == "page_link":
            texts.append(one.proto.label)
        elif isinstance(getattr(one, "value", None), str):
            texts.append(one.value)
    return " ".join(texts)


@pytest.mark.parametrize("diagnostic", DIAGNOSTICS, ids=lambda one: one.name)
def test_a_reason_is_the_text_of_the_diagnostic_that_gives_it(diagnostic):
    """On Confidence an empty answer read with Uncertainty's words: the first definition of a name won."""
    for definition in diagnostic.definitions:
        if definition.kind == REASON:
            assert headlines.reason(definition.name, diagnostic.name) is definition


def test_a_reason_that_is_passed_on_is_still_found():
    assert headlines.reason("inert", "retrieval_quality").meaning.startswith(
        "No single passage changes the answer"
    )


def test_the_overview_leads_with_the_split_and_every_link_arrives(sample, open_app, healthy):
    """Links read "See missed evidence" and led to the top of a page whose list was 5,000 px below."""
    diagnosis = sample()
    app = healthy(open_app())
    figures = [one.proto.id for one in app.get("plotly_chart")]
    assert "ladder" in figures[0] and len(figures) == 2
    links = {link.proto.label: link.proto for link in app.get("page_link")}
    assert not [label for label in links if label.startswith("See ")]
    frame = worklist(diagnosis)
    for clause in (clause for sentence in verdict(diagnosis).sentences for clause in sentence):
        one = next(f for f in diagnosis.findings_of(clause.diagnostic) if f.name == clause.finding)
        if not one.query_ids:  # it speaks of no question: its proof is its page
            assert any(link.page == clause.diagnostic for link in links.values())
            continue
        link = next(link for link in links.values() if f"finding={key_of(one)}" in link.query_string)
        assert link.page == "workbench" and re.match(r"Read the ([\d,]+ questions|question) ", link.label)
        listed, problems = select(diagnosis, frame, Filter(finding=key_of(one)), {})
        assert not problems and str(len(listed)) in link.label
        assert set(listed["query_id"]) == set(one.query_ids)
    assert "Read the 57 questions with an incorrect answer" in links
    assert "Read the 18 questions that lack a gold passage" in links
    assert "Read the 23 questions where gold is not first" in links


@pytest.mark.parametrize("page", ["overview", "influence", "retrieval_quality"])
def test_a_page_opens_with_350_words_and_two_figures(page, sample, open_app, healthy):
    sample()
    app = healthy(open_app(page))
    said = opening(app)
    assert len(said.split()) <= 350, said
    charts = [one for one in shown(app.main) if one.type == "plotly_chart"]
    assert len(charts) <= 2


def test_influence_that_was_not_tried_is_an_empty_state(sample, open_app, healthy, texts):
    """The worked answers had "0 of 32 harmful" and six empty figures."""
    sample("worked_answers")
    app = healthy(open_app("influence"))
    assert "No passage was left out of a prompt" in texts(app).replace("\\", "")
    assert not app.get("plotly_chart") and not app.metric
    # On the page of claims they were "Distractor, 0 of 190 passages".
    assert "Distractor" not in texts(healthy(open_app("claims")))


def test_a_question_is_told_no_mode_that_its_run_does_not_have(sample, open_app, healthy, texts):
    """47 of 72 questions carried *Buried evidence* or *Ignored top hit* where the run had neither (p = 1)."""
    diagnosis = sample()
    q = diagnosis["influence"].queries
    buried = q.loc[q["buried_evidence"] & ~q["redundant"], "query_id"].iloc[0]
    assert "buried_evidence" not in {one.name for one in diagnosis.findings()}
    app = healthy(open_app("workbench", question=buried))
    assert "Buried evidence:" not in texts(app)
    # 27 of 72 answers are not what most samples say, where chance gives 51.5.
    other = diagnosis["uncertainty"].queries
    told = other["baseline_in_largest"].eq(False).fillna(False) & other["stability"].ne("Unstable")
    assert told.any() and "baseline_disagrees" not in {one.name for one in diagnosis.findings()}
    app = healthy(open_app("workbench", question=other.loc[told, "query_id"].iloc[0]))
    assert "The answer says something else" in texts(app) and "Samples disagree" not in texts(app)


def test_a_mode_that_chance_explains_is_no_advice(sample, open_app, healthy, texts):
    """17 of 64 *Ignored top hit* (p = 0.34) read "reword the search, or re-rank"."""
    sample()
    said = texts(healthy(open_app("influence"))).replace("\\", "")
    assert said.count("No more than by chance: nothing to change.") == 3
    assert "The retriever puts text first that the model does not use" not in said


def test_chips_say_each_thing_once(sample, open_app, healthy):
    """*Incorrect* stood twice; *Redundant* where no passage supports the answer."""
    sample()
    app = healthy(open_app("workbench", question="q13"))
    chips = [one.value for one in app.markdown if "-badge[" in one.value]
    assert len([one for one in chips if one.endswith(" Incorrect]")]) == 1
    assert any(one.endswith(" Redundant or invented]") for one in chips)


@pytest.mark.parametrize(
    ("question", "said"),
    [("q13", "none supports this answer: it is probably invented"), ("q11", "**Redundant:**"),
     ("q55", "only several passages together support"), ("q19", "not even the only one that supports")],
)  # fmt: skip
def test_why_no_single_passage_matters(question, said, sample, open_app, healthy, texts):
    """*Redundant: several passages probably carry the same evidence* stood where no passage supports the claim."""
    diagnosis = sample()
    row = diagnosis["influence"].queries.set_index("query_id").loc[question]
    assert row["redundant"]
    shown_texts = texts(healthy(open_app("workbench", question=question)))
    assert said in shown_texts and "probably carry the same" not in shown_texts


def test_cards_are_those_of_the_diagnostics_with_the_gravest_findings():
    """The first four of a fixed order were shown: a further diagnostic pushed a card off."""
    found = [Finding("late", "Something is wrong.", 1, 9, diagnostic=name) for name in "dbd"]
    assert headlines.gravest(["a", "b", "c", "d"], found) == ["d", "b", "a", "c"]
    assert headlines.gravest(["c", "a"], []) == ["c", "a"]
