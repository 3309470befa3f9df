import html
import re
from dataclasses import replace

import numpy as np
import pytest

from core.charts.claims import claims_heatmap
from core.charts.claims.heatmap import heatmap_cells
from core.charts.theme import STYLES, alt_text
from tests.core.charts.chart_claims import SENTENCE, one_answer
from tests.core.charts.chart_runs import HOSTILE, shown_strings

# U(c): 0.45, 0.9, 0.6, 0.75 (and of the last, irrelevant one 0.9).
MATRIX = [[0.9, 0.2], [0.1, 0.1], [None, 0.4], [0.5, 0.0], [0.1, 0.1]]
STATES = ["unsupported", "fragile", "unscored", "fragile", "irrelevant"]
LONG = "The Forth Bridge in Scotland opened in 1890."


def five_claims(**options):
    return one_answer(MATRIX, irrelevant=[(0, 4)], **options)


def both_kinds():
    """Two claims; without p1 the answer says nothing, without p2 it stays as it is, p3 was not left out."""
    texts = ["Unwin planned the town.", "It opened in 1903."]
    same = " ".join(texts)
    return one_answer(
        [[0.9, 0.8, 0.1], [0.1, None, None]], texts=[texts], ablated=[["I don't know.", same, None]]
    )


def traces(figure):
    return {trace.name.rsplit(" (", 1)[0]: trace for trace in figure.data if trace.name}


def heatmaps(figure):
    return [trace for trace in figure.data if trace.type == "heatmap"]


def test_rows_are_in_order_of_uncertainty_with_irrelevant_claims_last():
    cells = heatmap_cells(five_claims())
    assert [row.name for row in cells.rows] == ["C2", "C4", "C3", "C1", "C5"]
    assert [row.style for row in cells.rows] == STATES
    assert [row.uncertainty for row in cells.rows] == pytest.approx([0.9, 0.75, 0.6, 0.45, 0.9])
    assert [row.verdict for row in cells.rows] == [
        "NOT_SUPPORTED",
        "SUPPORTED",
        "UNSCORED",
        "SUPPORTED",
        "IRRELEVANT",
    ]
    assert cells.columns == ("P1", "P2")
    assert cells.grey.tolist() == [False] * 4 + [True]
    assert cells.states == {"fragile": 2, "unsupported": 1, "unscored": 1, "irrelevant": 1}


def test_cells_by_hand():
    cells = heatmap_cells(five_claims())
    assert np.array_equal(
        cells.values, [[0.1, 0.1], [0.5, 0], [np.nan, 0.4], [0.9, 0.2], [0.1, 0.1]], equal_nan=True
    )
    assert (cells.labels == "unknown").all()


def test_hover_says_claim_passage_judgement_sentence_and_judge():
    cells = heatmap_cells(five_claims(title="Bridges"))
    assert cells.hover[1][0] == (
        f"C4: Claim 4 is so.<br>P1: Bridges<br>Probability 0.50: supports<br>Judge: a judge<br>“{SENTENCE}”"
    )
    assert "Not scored by a judge" in cells.hover[2][0]
    assert "Probability 0.40: no support" in cells.hover[2][1]


def test_a_judge_is_named_by_forty_letters_at_most():
    for name, shown in (("j" * 40, "j" * 40), ("j" * 41, "j" * 39 + "…")):
        assert f"Judge: {shown}<br>" in heatmap_cells(five_claims(judge=name)).hover[1][0]


def test_hover_of_the_verdict_names_state_scores_and_pairs():
    answer = one_answer([[0.2, 0.3, 0.1]], joint=[("q1", "c1", "p1", "p3", 0.71)])
    (row,) = heatmap_cells(answer).rows
    assert row.style == "joint"
    assert row.hover == (
        "C1: Claim 1 is so.<br>supported, joint<br>U(c) 0.80, best support 0.30<br>P1 + P3 together: 0.71"
    )


def test_text_figure():
    figure = claims_heatmap(five_claims())
    relevant, grey = heatmaps(figure)
    assert (relevant.zmin, relevant.zmax, grey.zmin, grey.zmax) == (0, 1, 0, 1)
    assert list(relevant.y) == [0, 1, 2, 3] and list(grey.y) == [4]
    assert relevant.showscale and not grey.showscale
    assert list(relevant.colorbar.tickvals) == [0, 0.5, 1]
    assert relevant.colorbar.ticktext[1] == "probability 0.5: supports"
    by_name = traces(figure)
    assert (list(by_name["Not scored"].x), list(by_name["Not scored"].y)) == ([0], [2])
    assert by_name["Not scored"].marker.symbol == STYLES["unscored"].symbol
    (ticks,) = (t for t in figure.data if t.type == "scatter" and t.mode == "text")
    assert sorted(zip(ticks.y, ticks.x, strict=True)) == [(1, 0), (3, 0)]
    assert alt_text(figure) == (
        "5 claims against the passages in retrieval order: 2 fragile, 1 unsupported, 1 unscored, "
        "1 irrelevant. Probabilities of support 0.00 to 0.90; 1 cell not scored."
    )


def test_nothing_is_missing_of_an_irrelevant_claim():
    figure = claims_heatmap(one_answer([[0.9, None], [None, None]], irrelevant=[(0, 1)]))
    crosses = traces(figure)["Not scored"]
    assert (list(crosses.x), list(crosses.y)) == ([1], [0])
    assert alt_text(figure).endswith("1 cell not scored.")
    hover = [cell for trace in heatmaps(figure) for row in trace.text for cell in row]
    assert ["Not scored by" in cell for cell in hover] == [False, True, False, False]
    assert ["Irrelevant: no checkable" in cell for cell in hover] == [False, False, True, True]


def test_the_column_of_verdicts_tells_states_by_symbol_and_verdicts_by_letter():
    by_name = traces(claims_heatmap(five_claims()))
    assert list(by_name["Fragile"].y) == [1, 3]
    assert by_name["Fragile"].text[0] == " <b>S</b><br> 0.75"
    assert by_name["Unsupported"].text[0].startswith(" <b>N</b>")
    assert by_name["Irrelevant"].text[0].startswith(" <b>I</b>")
    assert by_name["Unscored"].text[0].startswith(" <b>?</b>")
    assert len({by_name[s.capitalize()].marker.symbol for s in STATES}) == 4
    assert {by_name[s.capitalize()].xaxis for s in STATES} == {"x2"}


def test_no_cell_changes_sides_of_the_threshold_by_rounding():
    (trace,) = heatmaps(claims_heatmap(one_answer([[0.49999, 0.2]])))
    assert trace.z[0][0] < 0.5


@pytest.mark.parametrize("threshold", [0.3, 1.0])
def test_the_scale_jumps_at_the_threshold(threshold):
    (trace,) = heatmaps(claims_heatmap(one_answer([[0.9, 0.2]], threshold=threshold)))
    places = [at for at, _ in trace.colorscale]
    assert places == [0, threshold, threshold, 1]
    assert f"probability {threshold:g}: supports" in trace.colorbar.ticktext


def test_causal_figure():
    figure = claims_heatmap(both_kinds(), "causal")
    (trace,) = heatmaps(figure)
    # C2 (U 0.9) is on top; gone without p1, kept without p2, unknown for p3.
    assert np.array_equal(trace.z, [[2, 0, np.nan], [2, 0, np.nan]], equal_nan=True)
    assert not trace.showscale
    ends = [at for at, _ in trace.colorscale]
    assert (
        ends == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1])
        and len({color for _, color in trace.colorscale}) == 3
    )
    assert {"= kept", "× gone", "? unknown"} <= set(traces(figure))
    letters = {t.text[0] for t in figure.data if t.type == "scatter" and t.mode == "text"}
    assert letters == {"=", "×", "?"}
    assert "changes or removes a claim in 2 cells and is unknown in 2." in alt_text(figure)
    assert "Without P1 the claim is: gone" in trace.text[0][0]


def test_both_marks_agreement_and_disagreement():
    by_name = traces(claims_heatmap(both_kinds(), "both"))
    places = {
        name: list(zip(by_name[name].y, by_name[name].x, strict=True)) for name in by_name if ";" in name
    }
    assert places == {
        "Supports; gone or changed without it": [(1, 0)],
        "Supports; kept without it": [(1, 1)],
        "No support; gone or changed without it": [(0, 0)],
    }
    assert len({by_name[name].marker.symbol for name in places}) == 3


def test_an_unscored_cell_whose_removal_matters_has_a_mark_of_its_own():
    answer = one_answer([[None, 0.1]], texts=[["Unwin planned it."]], ablated=[["I don't know.", None]])
    by_name = traces(claims_heatmap(answer, "both"))
    assert list(by_name["Not scored; gone or changed without it"].x) == [0]


def test_without_removals_there_is_no_causal_picture():
    figure = claims_heatmap(five_claims(), "causal")
    assert not figure.data
    assert "left out" in alt_text(figure)
    assert heatmaps(claims_heatmap(five_claims(), "both"))


def test_of_large_matrices_the_most_uncertain_claims_are_drawn_and_that_is_said():
    m = np.random.default_rng(3).random((200, 150))
    m[0, 0] = np.nan
    answer = one_answer(m.tolist(), ablated=[["I don't know."] * 30 + [None] * 120])
    causal, both = claims_heatmap(answer, "causal"), claims_heatmap(answer, "both")
    assert "changes or removes a claim in 1,800 cells and is unknown in 1,800." in alt_text(causal)
    assert max(np.max(t.marker.size) for t in both.data if ";" in (t.name or "")) < 10
    figure = claims_heatmap(answer)
    (trace,) = heatmaps(figure)
    assert np.shape(trace.z) == (60, 60)
    drawn = {int(label[1:]) - 1 for label in figure.layout.yaxis.ticktext}
    u = answer.matrix.uncertainty
    assert min(u[i] for i in drawn) >= max(u[i] for i in set(range(200)) - drawn)
    assert alt_text(figure).startswith("200 claims against the passages")
    assert alt_text(figure).endswith("Drawn are the 60 most uncertain claims against the first 60 passages.")
    assert len(figure.to_json()) < 1_000_000
    assert figure.layout.height <= 1_800


def test_the_most_cells_drawn_one_by_one_stay_below_two_megabytes():
    texts = [[f"{i} " + "word " * 60 for i in range(60)]]
    figure = claims_heatmap(one_answer(np.full((60, 60), 0.4).tolist(), texts=texts, title="t" * 300))
    assert np.shape(heatmaps(figure)[0].z) == (60, 60)
    assert len(figure.to_json()) < 2_000_000


@pytest.mark.parametrize(
    ("columns", "step", "size", "signs"), [(12, 1, 9, 12), (13, 2, 9, 13), (20, 3, 9, 20), (21, 3, 5.4, 0)]
)
def test_of_many_passages_some_have_a_label_and_cells_no_sign(columns, step, size, signs):
    """The second claim is not scored anywhere, so it has a cross in each cell."""
    figure = claims_heatmap(one_answer([[0.9] * columns, [None] * columns]))
    across = figure.layout.xaxis
    assert list(across.tickvals) == list(range(0, columns, step))
    assert across.ticktext[:2] == ("P1", f"P{1 + step}") and across.range == (-0.5, columns - 0.5)
    assert traces(figure)["Not scored"].marker.size == pytest.approx(size)
    assert sum(len(trace.text) for trace in figure.select_traces({"mode": "text"})) == signs


@pytest.mark.parametrize(
    ("rows", "height", "head", "text"),
    [
        (25, 105 + 40 * 25 + 22, "RAFE<br>U(c)", " <b>N</b><br> 0.70"),
        (26, 105 + 22 * 26 + 22, "RAFE", " <b>N</b>"),
        (60, 105 + 22 * 60 + 22, "RAFE", " <b>N</b>"),
    ],
)
def test_many_claims_have_lower_rows(rows, height, head, text):
    figure = claims_heatmap(one_answer([[0.3]] * rows))
    assert (figure.layout.height, figure.layout.xaxis2.ticktext) == (height, (head,))
    assert set(figure.data[0].text) == {text}


@pytest.mark.parametrize(("rows", "claim", "sentence"), [(20, 119, 199), (21, 59, 79)])
def test_texts_of_hover_boxes_are_shorter_where_there_are_many(rows, claim, sentence):
    """Up to 1,000 cells."""
    answer = one_answer([[0.3] * 50] * rows, texts=[[f"{i:02}{'x' * 300}" for i in range(rows)]])
    answer = replace(answer, sentences=np.full((rows, 50), "y" * 300, dtype=object))
    hover = heatmap_cells(answer).hover[0][0].replace("<br>", "")
    assert f"{'x' * (claim - 2)}…" in hover and f"“{'y' * sentence}…”" in hover
    assert "x" * (claim - 1) not in hover and "y" * (sentence + 1) not in hover


@pytest.mark.parametrize(
    ("text", "rows", "label"),
    [
        ("aaaa bbbb cccc dd", 1, "C1 aaaa bbbb cccc<br>dd"),
        ("aaaa bbbb ccccc", 1, "C1 aaaa bbbb<br>ccccc"),
        ("aaaa bbbb", 26, "C1 aaaa bbbb"),
        ("aaaa bbbb", 40, "C1 aaaa bbbb"),
        ("aaaa bbbb", 41, "C1"),
    ],
)
def test_labels_of_rows_have_lines_of_seventeen_characters(text, rows, label):
    figure = claims_heatmap(one_answer([[0.3]] * rows, texts=[[text] * rows]))
    assert figure.layout.yaxis.ticktext[0] == label


def test_labels_of_rows_stay_short():
    figure = claims_heatmap(one_answer([[0.3]], texts=[[LONG]]))
    (label,) = figure.layout.yaxis.ticktext
    assert label.startswith("C1 The Forth")
    assert all(len(line) <= 17 for line in label.split("<br>"))
    many = claims_heatmap(one_answer([[0.3]] * 50, texts=[[f"{LONG} {i}" for i in range(50)]]))
    assert many.layout.yaxis.ticktext[0] == "C1"


def test_everything_unscored_is_crossed_and_never_zero():
    figure = claims_heatmap(one_answer([[None, None], [None, None]]))
    (trace,) = heatmaps(figure)
    assert np.isnan(np.asarray(trace.z, dtype=float)).all()
    assert len(traces(figure)["Not scored"].x) == 4
    assert "Probabilities of support none known; 4 cells not scored." in alt_text(figure)


def test_only_irrelevant_claims():
    figure = claims_heatmap(one_answer([[0.2]], irrelevant=[(0, 0)]))
    assert len(heatmaps(figure)) == 1
    assert "1 irrelevant" in alt_text(figure)


@pytest.mark.parametrize("shown", ["text", "causal", "both"])
def test_no_claims_or_no_passages_give_one_sentence(shown):
    nothing = one_answer([], n_passages=2)
    alone = one_answer([[], []])
    for answer, word in ((nothing, "no claims"), (alone, "no passages")):
        figure = claims_heatmap(answer, shown)
        assert not figure.data
        assert word in alt_text(figure)


def test_unknown_kind_of_evidence():
    with pytest.raises(ValueError, match="shown must be one of text, causal, both, got 'all'"):
        claims_heatmap(five_claims(), "all")


@pytest.mark.parametrize("shown", ["text", "causal", "both"])
def test_hostile_text_arrives_escaped(shown):
    answer = one_answer(
        [[0.9, None], [0.2, 0.1]],
        texts=[[HOSTILE, f"2 {HOSTILE}"]],
        title=HOSTILE,
        judge=HOSTILE,
        ablated=[[HOSTILE, "I don't know."]],
    )
    found = shown_strings(claims_heatmap(answer, shown))
    ours = re.compile(r"</?b>|<br>|<extra></extra>")
    assert any("&lt;script&gt;" in text for _, text in found)
    for key, text in found:
        assert "<" not in ours.sub("", text), (key, text)
        assert "$" not in text
        assert "bold</b>" not in text
        assert not re.search(r"[\x00-\x1f\u202e]", text)
        assert len(html.unescape(text)) < 900
