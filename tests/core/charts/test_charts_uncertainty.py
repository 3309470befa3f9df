from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from core.charts.theme import alt_text
from core.charts.uncertainty import (
    answer_scatter,
    entropy_agreement,
    entropy_variance,
    estimator_leaderboard,
    leaderboard,
    risk_coverage,
    scatter,
    stability_grounding,
)
from core.charts.uncertainty import coverage as coverage_module
from core.conditions import matching
from core.diagnosis import Diagnosis
from core.uncertainty import measure
from tests.core.charts.chart_samples import sampled, sampled_run

# Two samples with the same words, two that share none with any other.
FOUR = ["a b", "c d", "e f", "A b."]
# The first and third answers are correct, and their samples say the same; the others have nothing in common.
JUDGED = sampled(
    [["yes", "yes"], ["one", "two"], ["no", "no"], ["red", "blue"]],
    answers=["yes", "green", "no", "four"],
    references=["yes", "five", "no", "six"],
)


@pytest.mark.parametrize(
    ("similarity", "coordinates", "explained"),
    [
        # Two equal ones and one that is unlike: on a line, √2 apart, about their mean.
        (
            [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
            [[-(2**0.5) / 3, 0], [-(2**0.5) / 3, 0], [8**0.5 / 3, 0]],
            (1, 0),
        ),
        # Squared distances 1, 1, 2: a right triangle with its right angle at the second.
        (
            [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]],
            [[-(0.5**0.5), -(2**0.5) / 6], [0, 2**0.5 / 3], [0.5**0.5, -(2**0.5) / 6]],
            (0.75, 0.25),
        ),
        ([[1, 1], [1, 1]], [[0, 0], [0, 0]], (0, 0)),
    ],
)
def test_projection_by_hand(similarity, coordinates, explained):
    found, shares = scatter.projection(np.array(similarity, dtype=float))
    assert found == pytest.approx(np.array(coordinates), abs=1e-9)
    assert shares == pytest.approx(explained, abs=1e-9)


def test_points_of_a_question_by_hand():
    analysis = sampled([FOUR, FOUR], temperature=[0.3, 0.5, 0.7, 0.9] * 2, top_p=0.9)
    data = scatter._data(analysis, "q1")
    assert data.points["n"].tolist() == [2, 1, 1] and data.points["meaning"].tolist() == [1, 2, 3]
    assert data.points["is_consensus"].tolist() == [True, False, False]
    # Three different answers that share nothing: squared distances are 2 (1 − 0).
    at = data.points[["x", "y"]].to_numpy()
    assert [float(((at[i] - at[j]) ** 2).sum()) for i, j in ((0, 1), (0, 2), (1, 2))] == pytest.approx(
        [2] * 3
    )
    assert sum(data.explained) == pytest.approx(1)
    assert data.points["hover"][0] == (
        "a b<br>A b.<br>2 of 4 samples<br>Meaning 1, 2 samples<br>Temperature 0.3 to 0.9, top_p 0.9<br>"
        "Most typical answer<br>As many meanings in 2 questions"
    )
    assert data.door == "where=uncertainty.queries.n_meanings%3A3"


def test_scatter_tells_meanings_by_colour_and_shape():
    figure = answer_scatter(sampled([FOUR]), "q1")
    *meanings, typical = figure.data
    assert [trace.name for trace in meanings] == [
        "Meaning 1 (2 samples)", "Meaning 2 (1 sample)", "Meaning 3 (1 sample)",
    ]  # fmt: skip
    assert all(trace.cliponaxis is False for trace in figure.data)
    assert len({t.marker.symbol for t in meanings}) == len({t.marker.color for t in meanings}) == 3
    # The area grows with the number of samples.
    assert meanings[0].marker.size[0] ** 2 == pytest.approx(2 * meanings[1].marker.size[0] ** 2)
    assert typical.marker.symbol == "star" and typical.x[0] == meanings[0].x[0]
    assert typical.marker.color == "white" and typical.marker.line.width == 1.5
    assert (
        figure.layout.xaxis.title.text.startswith("Dimension 1 (") and "%" in figure.layout.xaxis.title.text
    )
    assert alt_text(figure).startswith("4 samples of this question")
    assert "3 different answers with 3 meanings, the largest with 2 samples" in alt_text(figure)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (1, ["a" * 119 + "…"]),
        (2, ["a" * 59 + "…"] * 2),
        (3, ["a" * 39 + "…"] * 3),
        (4, ["a" * 39 + "…"] * 3 + ["and 1 more wording"]),
        (5, ["a" * 39 + "…"] * 3 + ["and 2 more wordings"]),
    ],
)
def test_at_most_three_wordings_of_an_answer_share_120_characters(n, said):
    wordings = ["a" * 130 + end for end in ("", ".", "!", "?", ",")]
    hover = scatter._data(sampled([[*wordings[:n], "b", "c"]]), "q1").points["hover"][0]
    assert hover.partition(f"<br>{n} of {n + 2} samples")[0].replace("<br>", "") == "".join(said)


def test_many_meanings_share_the_last_look():
    texts = [chr(97 + i) * 3 for i in range(9)]
    names = [trace.name for trace in answer_scatter(sampled([texts]), "q1").data]
    assert names[4:] == ["Meaning 5 (1 sample)", "Other meanings (4 samples)", "Most typical answer"]


@pytest.mark.parametrize("texts", [["a b"], ["a b", "c d"], ["a b"] * 9, ["", "", ""]])
def test_fewer_than_three_different_answers_have_no_scatter(texts):
    figure = answer_scatter(sampled([texts]), "q1")
    assert not figure.data and alt_text(figure).startswith("Fewer than three different answers")


@pytest.mark.parametrize("query_id", ["q2", "nobody"])
def test_a_question_without_samples(query_id):
    figure = answer_scatter(sampled([FOUR, []]), query_id)
    assert not figure.data and alt_text(figure).startswith("Fewer than")


def test_entropy_and_agreement_by_hand():
    figure = entropy_agreement(JUDGED)
    assert [trace.name for trace in figure.data] == ["Correct (2 questions)", "Incorrect (2 questions)"]
    right, wrong = figure.data
    assert (list(right.x), list(right.y)) == ([0], [1])  # both at one place
    assert list(wrong.x) == pytest.approx([0.693]) and list(wrong.y) == [0]
    assert right.marker.symbol != wrong.marker.symbol
    diagnosis = Diagnosis(JUDGED.run)
    condition = "uncertainty.queries.entropy:-0.0005..0.0005,agreement:0.9995..1.0005,correct:True"
    assert matching(diagnosis, condition) == ("q1", "q3")


def test_answers_without_a_reference_have_a_form_of_their_own():
    analysis = sampled([["yes", "yes"]] * 3, answers=["yes"] * 3, references=["yes", "", ""])
    right, unknown = entropy_agreement(analysis).data
    assert unknown.name == "No label (2 questions)"
    # A missing label is no condition; alone, a place is one.
    assert right.customdata[0][0] == "question=q1" and unknown.customdata[0][0] == ""
    (alone,) = entropy_agreement(sampled([["yes", "yes"]] * 3)).data
    assert alone.customdata[0][0].startswith("where=uncertainty.queries.entropy")


def test_questions_without_these_numbers_are_counted():
    figure = entropy_agreement(sampled([["yes", "no"], ["one"], []]))
    assert alt_text(figure).endswith("2 without these numbers.")
    nothing = entropy_agreement(sampled([["yes"]]))
    assert not nothing.data and alt_text(nothing).startswith("No question has both")


def test_correct_answers_are_told_first_whichever_come_first():
    analysis = sampled([["one", "two"], ["yes", "yes"]], answers=["five", "yes"], references=["six", "yes"])
    assert alt_text(entropy_agreement(analysis)) == (
        "Semantic entropy against agreement of 2 questions: 1 correct, median entropy 0.00 nats and agreement "
        "1.00; 1 incorrect, median entropy 0.69 nats and agreement 0.00; 0 without these numbers."
    )


def test_grounding_by_hand():
    run = sampled_run([["yes", "yes"], ["one", "two", "three"], ["no", "no"], ["red", "red"]])
    measured = measure(run)
    analysis = measured.labelled(grounding=pd.Series([1.0, 0.25, 0.25, np.nan]))
    figure = stability_grounding(analysis)
    assert [trace.name for trace in figure.data] == [
        "Stable, grounded (1 question)", "Stable, ungrounded (1 question)", "Not stable, ungrounded (1 question)",
    ]  # fmt: skip
    assert [(list(t.x), list(t.y)) for t in figure.data] == [
        ([1], [1]),
        ([1], [0.25]),
        (pytest.approx([0.333]), [0.25]),
    ]
    assert [trace.customdata[0][0] for trace in figure.data] == ["question=q1", "question=q3", "question=q2"]
    # Two of three are stable, two ungrounded.
    assert "stable, ungrounded 1 (1.3 by chance)" in alt_text(figure)
    assert alt_text(figure).endswith("1 without both.")
    assert figure.layout.shapes[0].x0 == 0.8 and figure.layout.shapes[1].y0 == 0.5
    assert len({trace.marker.symbol for trace in figure.data}) == 3
    nothing = stability_grounding(measured.labelled())
    assert not nothing.data and alt_text(nothing).startswith("No question has both samples and claims")


def embedded(samples, vectors):
    return measure(sampled_run(samples), lambda texts: np.array([vectors[text] for text in texts])).labelled()


def test_the_plane_of_embedded_samples_is_their_pca():
    rng = np.random.default_rng(4)
    names = list("abcdef")
    vectors = {
        name: row / np.linalg.norm(row) for name, row in zip(names, rng.normal(size=(6, 5)), strict=True)
    }
    analysis = embedded([[*names, "a"]], vectors)
    found = scatter._data(analysis, "q1")
    pca = PCA(n_components=2).fit(np.array([vectors[name] for name in [*names, "a"]]))
    assert found.explained == pytest.approx(pca.explained_variance_ratio_)
    expected = pca.transform(np.array([vectors[name] for name in names]))
    hovers = [hover.partition("<br>")[0] for hover in found.points["hover"]]
    at = found.points[["x", "y"]].to_numpy()[[hovers.index(name) for name in names]]
    assert np.abs(at) == pytest.approx(np.abs(expected))
    assert "by cosine of embeddings" in alt_text(answer_scatter(analysis, "q1"))


def test_entropy_and_embedding_variance():
    vectors = {"yes": [1.0, 0.0], "no": [-1.0, 0.0], "maybe": [0.0, 1.0]}
    (trace,) = entropy_variance(embedded([["yes", "no"], ["maybe", "maybe"]], vectors)).data
    assert sorted(zip(trace.x, trace.y, strict=True)) == [(0, 0), (pytest.approx(0.693), 1)]
    assert "embedding variance 1.00" in trace.customdata[1][1]
    nothing = entropy_variance(sampled([["yes", "no"]]))
    assert not nothing.data and "embeddings of its samples" in alt_text(nothing)


def test_risk_and_coverage_by_hand():
    data = coverage_module._data(JUDGED)
    best = data.curves[0]
    assert best.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert best.risk == pytest.approx([0, 0, 1 / 3, 0.5])
    assert data.error_rate == 0.5 and data.n == 4
    assert best.wrong["query_id"].tolist() == ["q2", "q4"] and best.wrong["coverage"].tolist() == [0.75, 1.0]
    assert {curve.title for curve in data.curves[2:]} == {"Different answers", "Length of the answer"}
    figure = risk_coverage(JUDGED)
    random = next(trace for trace in figure.data if trace.name == "Random order (50 %)")
    assert list(random.y) == [50, 50]
    band, curve, wrong = figure.data[0], figure.data[1], figure.data[-1]
    # Wilson's intervals of 0 in 1, 0 in 2, 1 in 3 and 2 in 4: there along the upper ends, back along the lower.
    assert band.fill == "toself" and list(band.x) == [25, 50, 75, 100, 100, 75, 50, 25]
    assert list(band.y) == pytest.approx([79.35, 65.76, 79.23, 85.0, 15.0, 6.15, 0, 0], abs=0.01)
    assert list(curve.x) == [25, 50, 75, 100] and list(curve.y) == pytest.approx([0, 0, 100 / 3, 50])
    assert (
        wrong.cliponaxis is False
        and list(wrong.x) == [75, 100]
        and list(wrong.y) == pytest.approx([100 / 3, 50])
    )
    assert figure.layout.xaxis.range == (0, 101)
    assert figure.layout.yaxis.range == pytest.approx((-2, 90), abs=0.01)  # 5 above the band
    assert [data[0] for data in figure.data[-1].customdata] == ["question=q2", "question=q4"]


def test_leaderboard_by_hand():
    data = leaderboard._data(JUDGED)
    assert len(data) == 8 + 2 and data["auroc"].is_monotonic_decreasing
    assert data["auroc"][0] == 1.0
    length = data.set_index("name").loc["answer_length"]
    assert length["auroc"] == 0.5 and length["is_baseline"]  # one word each
    figure = estimator_leaderboard(JUDGED)
    shapes = {trace.name.split(" (")[0]: trace.marker.symbol for trace in figure.data}
    assert shapes["Trivial baseline"] == "star"
    assert figure.layout.shapes[0].x0 == 0.5
    door, hover = figure.data[0].customdata[0]
    assert door == "where=uncertainty.queries.correct%3AFalse"
    assert "1.000" in hover and "4 answers, 2 incorrect" in hover and "guessing 0.50" in hover
    assert matching(Diagnosis(JUDGED.run), "uncertainty.queries.correct:False") == ("q2", "q4")


@pytest.mark.parametrize(
    ("auroc", "low", "start"),
    [(0.6, 0.5, 0.43), (0.6, 0.3, 0.28), (0.35, np.nan, 0.33)],
)
def test_the_leaderboard_begins_below_guessing_and_below_every_interval(auroc, low, start):
    board = pd.DataFrame(
        {
            "name": ["best", "length"], "title": ["Semantic entropy by probability, words of content", "Length"], "is_baseline": [False, True],
            "auroc": [0.9, auroc], "auroc_low": [0.8, low], "auroc_high": [0.97, 0.7],
            "p_value": [0.01, 0.3], "n": 90, "n_wrong": 20,
        }
    )  # fmt: skip
    correct = pd.array([True, False, False, None], dtype="boolean")
    judged = SimpleNamespace(leaderboard=board, queries=pd.DataFrame({"correct": correct}), not_judged=None)
    figure = estimator_leaderboard(judged)
    assert figure.layout.xaxis.range == pytest.approx((start, 1.02)) and figure.layout.xaxis.dtick == 0.1
    # Cut at the comma alone, though it is wider than a line elsewhere.
    assert figure.layout.yaxis.ticktext == ("Semantic entropy by probability,<br>words of content", "Length")
    assert all(trace.cliponaxis is False for trace in figure.data)
    assert {trace.name: list(trace.x) for trace in figure.data} == {
        "Beyond chance (1)": [0.9], "Trivial baseline (1)": [auroc],
    }  # fmt: skip
    hover = figure.data[0].customdata[0][1]
    assert "90 answers, 20 incorrect<br>2 questions with an incorrect answer<br>" in hover


@pytest.mark.parametrize(
    ("p", "auroc", "beyond"), [(0.049, 0.6, 1), (0.05, 0.6, 0), (0.01, 0.5, 0), (0.01, 0.4, 0)]
)
def test_what_is_beyond_chance_is_better_than_guessing_and_told_from_it(p, auroc, beyond):
    board = pd.DataFrame(
        {
            "name": ["one"], "title": ["One"], "is_baseline": [False], "auroc": [auroc], "auroc_low": [0.3],
            "auroc_high": [0.9], "p_value": [p], "n": 90, "n_wrong": 20,
        }
    )  # fmt: skip
    judged = SimpleNamespace(leaderboard=board, queries=JUDGED.queries, not_judged=None)
    (trace,) = estimator_leaderboard(judged).data
    assert trace.name == ("Beyond chance (1)" if beyond else "Not beyond chance (1)")


def test_five_incorrect_answers_that_it_is_surest_of_have_a_mark():
    analysis = sampled([["yes", "yes"]] * 8, references=["yes"] * 2 + ["no"] * 6)
    marks = risk_coverage(analysis).data[-1]
    assert [door for door, _ in marks.customdata] == [f"question=q{i}" for i in range(3, 8)]


@pytest.mark.parametrize("draw", [risk_coverage, estimator_leaderboard])
@pytest.mark.parametrize("references", [None, ["yes", "no"]])
def test_estimators_that_cannot_be_judged_say_why(draw, references):
    analysis = sampled([["yes", "yes"], ["no", "no"]], answers=["yes", "no"], references=references)
    figure = draw(analysis)
    assert not figure.data and alt_text(figure) == analysis.not_judged
