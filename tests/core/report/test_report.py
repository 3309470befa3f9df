"""The report: what it says, that no text of the data acts in it, and its figures."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from bench.tiled import tiled
from core.answers.diagnostic import ANSWERS
from core.attribution.diagnostic import ATTRIBUTION
from core.charts import theme
from core.claims.diagnostic import CLAIMS
from core.cli.app import main
from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.influence.diagnostic import INFLUENCE
from core.losses.diagnostic import LOSSES
from core.report.page import report_html
from core.report.svg import figure_html
from core.retrieval_quality.diagnostic import RETRIEVAL_QUALITY
from core.run import Run
from core.socket import Diagnostic, Number, Setting
from core.sources.simulation import SimulationOptions, simulate

HOSTILE = "</style></svg><script>alert(1)</script><img src=x onerror=alert(2)> javascript:alert(3) {{ 7*7 }} \"'&amp;"


class Page(HTMLParser):
    """Every element with its attributes, the text, and the style."""

    def __init__(self, data):
        super().__init__()
        self.tags, self.attributes, self.text, self.style, self._open = [], [], "", "", []
        self.feed(data.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attributes]
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.text += data

    def headings(self):
        return [found for found in re.findall(r"[^\n]+", self.text) if found]


def hostile_run(text=HOSTILE, n=3):
    ids = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame(
        {
            "query_id": ids, "question": [f"{text} {i}" for i in range(n)], "answer": text,
            "answer_status": "answered", "reference_answers": [["Paris", text]] + [["Rome"]] * (n - 1),
            "kind": text,
        }
    )  # fmt: skip
    passages = pd.DataFrame(
        {
            "query_id": np.repeat(ids, 2), "passage_id": ["p1", "p2"] * n, "title": text, "text": text,
            "retrieval_rank": [1.0, 2.0] * n, "is_gold": [True, False] * n,
        }
    )  # fmt: skip
    return Run.create(
        {"source": "live", "name": text, "model": {"name": text}}, queries=queries, passages=passages
    )


def small(run):
    """A few diagnostics: the report loops over whichever there are."""
    return Diagnosis(run, diagnostics=[ANSWERS, LOSSES, ATTRIBUTION, INFLUENCE, RETRIEVAL_QUALITY])


def test_no_text_of_the_data_acts():
    page = Page(report_html(small(hostile_run()), small(hostile_run().renamed("Other"))))
    assert not set(page.tags) & {"script", "img", "iframe", "link", "object", "base", "form", "a:href"}
    for tag, name, value in page.attributes:
        assert not name.startswith("on") and name not in ("src", "style", "xlink:href"), (tag, name)
        assert name != "href" or value.startswith("#"), value
    assert page.tags.count("style") == page.tags.count("html") == 1
    # The texts are there as they are, the name in the title too; a template reads none of them.
    assert page.text.count(HOSTILE) > 10 and "49" not in re.findall(r"javascript:alert\(3\) (\S+)", page.text)


def test_the_policy_allows_its_own_style_and_nothing_else():
    page = Page(report_html(small(hostile_run())))
    policy = next(
        value for tag, name, value in page.attributes if tag == "meta" and "default-src" in (value or "")
    )
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
    assert "url(" not in page.style and "@import" not in page.style


def test_what_acts_on_a_reader_or_a_parser_is_replaced():
    data = report_html(small(hostile_run("a\x1b[2J\u202eb\x0cc"))).decode()
    assert not set(data) & set("\x1b\u202e\x0c") and "a�[2J�b" in data


def test_it_says_verdict_findings_questions_and_origin_in_this_order():
    page = Page(report_html(small(hostile_run())))
    order = [
        "Verdict",
        "2 of 3 answers are wrong.",
        "Retrieval quality",
        "Questions most worth reading",
        "Set-up of the run",
    ]
    places = [page.text.rindex(one) for one in order]
    assert places == sorted(places)
    # Each question with its passages, folded; what is right is not marked wrong.
    assert page.tags.count("details") >= 3 and page.text.count("gold passage") >= 3
    assert page.text.count("Rank 1: ") == 3 and "3 of 3, those with the gravest findings first." in page.text


def test_long_texts_and_many_questions_are_cut():
    data = report_html(Diagnosis(hostile_run("w" * 50_000, n=30), diagnostics=[ANSWERS]))
    page = Page(data)
    assert len(data) < 600_000 and "(47,000 more characters)" in page.text
    assert page.text.count("Answer (id ") == 20


def test_a_run_with_nothing_has_a_report():
    page = Page(report_html(Diagnosis(Run.create({"source": "live"}))))
    assert "The run has no questions." in page.text and "Not diagnosed" in page.text


def test_of_two_runs_what_changed_comes_first():
    better, before = hostile_run("Paris and Rome").renamed("New"), hostile_run("x")
    better = better.derive({}, queries=better.queries.assign(question=before.queries["question"]))
    page = Page(report_html(small(better), small(before)))
    assert page.text.index("Run B is correct in 2 more of 3 questions") < page.text.rindex("Verdict")
    assert "All that follows is about B · New." in page.text and "A · x" in page.text


def test_of_two_runs_the_questions_that_became_worse_are_listed():
    good, bad = hostile_run("Paris and Rome"), hostile_run("x")
    bad = bad.derive({}, queries=bad.queries.assign(question=good.queries["question"]))

    def said(now, before):
        page = report_html(*(Diagnosis(one, diagnostics=[ANSWERS]) for one in (now, before)))
        return Page(page).text.split("What became worse")[1].split("All numbers")[0]

    worse, better = said(bad, good), said(good, bad)
    # Of the first question "x" is a reference answer, too.
    assert "0 questions became correct, 2 stopped being correct" in worse
    assert [worse.count(f"Paris and Rome {i}") for i in range(3)] == [0, 1, 1]
    assert "2 questions became correct, 0 stopped" in better and "Answer A" not in better


def test_two_runs_without_a_number_in_common_have_nothing_that_became_worse():
    nothing = Diagnosis(Run.create({"source": "live"}), diagnostics=[ANSWERS])
    page = Page(report_html(nothing, nothing))
    assert (
        "The runs have no number in common to compare." in page.text and "What became worse" not in page.text
    )


def paragraphs(data):
    """The text of every paragraph, and of every cell of a table, in order."""
    return [
        " ".join(re.sub("<[^>]+>", "", one).split())
        for one in re.findall(
            r"<(?:p|td|th|dt|dd)\b[^>]*>(.*?)</(?:p|td|th|dt|dd)>", data.decode(), re.DOTALL
        )
    ]


def test_a_question_is_shown_with_its_passages_in_their_order():
    run = hostile_run("Text", n=1)
    passages = pd.DataFrame(
        {
            "query_id": "q0", "passage_id": ["p1", "p2", "p3"], "title": ["One", None, "Three"],
            "text": ["first", "w" * 3_000, "w" * 3_001], "retrieval_rank": [2.0, 1.0, 3.0],
            "is_gold": pd.array([True, False, None], dtype="boolean"),
        }
    )  # fmt: skip
    run = run.derive(
        {}, passages=passages, queries=run.queries.assign(answer=None, reference_answers=[["Paris", "Rome"]])
    )
    found = paragraphs(report_html(Diagnosis(run, diagnostics=[ANSWERS])))
    start = found.index("Answer (id q0)")
    assert found[start:][:4] == [
        "Answer (id q0)",
        "—",
        "Reference answers",
        "Paris Rome",
    ]
    shown = found[start : found.index("Model")]
    assert shown[shown.index("Rank 1: p2") :][:6] == [
        "Rank 1: p2", "w" * 3_000, "Rank 2: One · gold passage", "first", "Rank 3: Three", "w" * 3_000 + " … (1 more character)",
    ]  # fmt: skip


def test_the_origin_says_all_that_is_known_of_it():
    manifest = {
        "source": "live", "run_id": "r1", "created": "2026-01-02", "cost": {"prompt_tokens": 12_345},
        "environment": {"python": "3.11", "packages": {"numpy": "2.0"}},
    }  # fmt: skip
    found = paragraphs(report_html(Diagnosis(Run.create(manifest), diagnostics=[ANSWERS])))
    expected = {
        "Run": "r1", "Created": "2026-01-02", "Source": "live", "Python": "3.11", "numpy": "2.0",
        "Cost: prompt tokens": "12,345",
    }  # fmt: skip
    assert {title: found[found.index(title) + 1] for title in expected} == expected
    assert "Parent run" not in found and "Packages" not in found


def test_numbers_without_a_value_are_not_listed():
    numbers = (
        Number("a", "On a card", 1.5, place="card"), Number("b", "In a row", 2, place="row"),
        Number("c", "Unknown", None, place="card"), Number("d", "Data only", 4, place="data"),
        Number("e", "Of the set-up", 5, place="setup"), Number("f", "By name", {"x": 1}, place="row"),
    )  # fmt: skip
    toy = Diagnostic("toy", "Toy", "?", lambda d: d, lambda a: numbers)
    run = Run.create({"source": "live"}, queries=pd.DataFrame({"query_id": ["q"], "question": ["Why?"]}))
    page = Page(report_html(Diagnosis(run, diagnostics=[toy])))
    assert "All numbers (2)" in page.text
    assert all(title in page.text for title in ("On a card", "In a row"))
    assert not any(title in page.text for title in ("Unknown", "Data only", "By name"))


def test_settings_stand_beside_their_defaults():
    toy = Diagnostic(
        "toy", "Toy", "?", lambda d: d, lambda a: (),
        settings=(
            Setting("from", "From", 0.7, ""), Setting("all", "All", False, ""), Setting("by", "By", "", ""),
        ),
    )  # fmt: skip
    run = Run.create({"source": "live"}, queries=pd.DataFrame({"query_id": ["q"], "question": ["Why?"]}))
    data = report_html(Diagnosis(run, {"from": 0.85, "all": True}, diagnostics=[toy])).decode()
    row = r'<tr><td>([^<]+)</td><td data-of="Value">([^<]+)</td><td data-of="Default">([^<]+)</td>'
    assert re.findall(row, data) == [("From", "0.85", "0.7"), ("All", "on", "off"), ("By", "—", "—")]


def test_a_simulated_run_is_marked_and_the_command_writes_the_file(tmp_path, capsys):
    simulate(SimulationOptions(queries=10, passages=3)).save(tmp_path / "run")
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "run"), "--out", str(out)]) == 0
    assert f"{out.stat().st_size:,} bytes" in capsys.readouterr().out
    page = Page(out.read_bytes())
    assert "SIMULATED DATA" in page.text and page.tags.count("figure") >= 8
    assert all(one.title in page.text for one in DIAGNOSTICS)
    assert main(["report", str(tmp_path / "run"), "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["report", *[str(tmp_path / "run")] * 3, "--out", str(tmp_path / "b.html")]) == 2
    assert capsys.readouterr().err == "Error: Give one run, or two to compare, got 3.\n"


def test_every_diagnostic_names_figures_that_there_are():
    import importlib

    for one in DIAGNOSTICS:
        module = importlib.import_module(f"core.charts.{one.name}")
        assert 1 <= len(one.figures) <= 2 and all(callable(getattr(module, name)) for name in one.figures)


def numbers(svg, pattern):
    return [[float(value) for value in found] for found in re.findall(pattern, svg)]


def test_bars_and_marks_are_where_their_values_say():
    figure = theme.new_figure("Alt.", "Count", "", height=240)
    figure.add_bar(x=[5, 10], y=["a", "b"], orientation="h", marker={"color": "#123456"})
    figure.add_scatter(x=[0, 5], y=["a", "b"], mode="markers", marker={"size": 10, "symbol": "square"})
    figure.update_xaxes(range=[0, 10])
    svg = figure_html(figure, "k")
    ((x0, low, x1, high, back), (_, low_b, x2, high_b, _)) = numbers(
        svg.split('fill="#123456"')[0], r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H([\d.]+)z"
    )
    assert x2 - x0 == pytest.approx(2 * (x1 - x0), abs=0.2) and back == x0  # 10 is twice 5, from the same 0
    assert abs(low - high) == pytest.approx(abs(low_b - high_b), abs=0.2) and low > low_b  # a is below b
    ticks = numbers(
        svg, r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle" font-size="12"><tspan[^>]*>\d+<'
    )
    assert [tick for tick, _ in ticks] == pytest.approx([x0 + i / 5 * (x2 - x0) for i in range(6)], abs=0.2)


def test_stacked_bars_begin_where_the_last_ended():
    figure = theme.new_figure("Alt.", "", "Count", height=240)
    for value in (3, 2):
        figure.add_bar(x=[1.0], y=[value])
    figure.update_layout(barmode="stack")
    figure.update_yaxes(range=[0, 5])
    first, second = numbers(figure_html(figure, "k"), r"M[\d.]+ ([\d.]+)H[\d.]+V([\d.]+)H[\d.]+z")
    assert second[0] == first[1] and first[0] - first[1] == pytest.approx(
        1.5 * (second[0] - second[1]), abs=0.3
    )


def test_figures_show_texts_of_the_data_as_they_are():
    figure = theme.new_figure("Alt.", "x", "y")
    said = "a < b & <script>"
    figure.add_bar(x=[1], y=[theme.safe_text(said)], orientation="h", name=theme.safe_text(said))
    figure.add_scatter(x=[1], y=[theme.safe_text(said)], name="other", mode="markers")
    figure.add_annotation(x=1, y=0, xref="paper", text=f"<b>{theme.safe_text(said)}</b>")
    svg = figure_html(figure, "k")
    assert "<script" not in svg and svg.count("a &lt; b &amp; &lt;script&gt;") == 3


def test_marks_at_one_place_are_drawn_once():
    rng = np.random.default_rng(0)
    figure = theme.new_figure("Alt.", "x", "y")
    figure.add_scatter(x=rng.integers(0, 9, 50_000), y=rng.integers(0, 9, 50_000), mode="markers")
    assert len(figure_html(figure, "k")) < 20_000
    assert isinstance(figure, go.Figure)


@pytest.mark.slow
def test_5000_questions_make_a_file_that_can_be_sent():
    """With the figures that have a mark for each question or passage; all diagnostics: 0.3 MB, a minute."""
    shown = [ANSWERS, LOSSES, ATTRIBUTION, INFLUENCE, CLAIMS]
    data = report_html(Diagnosis(tiled(5_000), diagnostics=shown))
    assert b"<svg" in data and len(data) < 1_000_000
