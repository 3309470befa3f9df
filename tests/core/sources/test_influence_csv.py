import csv
import gzip
import io
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.influence import analyse, compare_reported
from core.sources.formats import INFLUENCE_CSV, import_file
from core.sources.formats.influence import group_rows, position_within
from core.sources.mapping import PUBLISHED_COLUMNS

NOTES = ("Auto-detected from field names: Influence CSV (influence-csv).",)
HEADER = "query,doc_id,retrieval_rank,influence_score\n"
CLEAN = HEADER + "q,0,1,0.5\nq,1,2,0.25\nq,2,3,0\n"


def read(text, **options):
    data = text.encode() if isinstance(text, str) else text
    return import_file(data, "f.csv", INFLUENCE_CSV, **options)


def issues(imported):
    return [(i.row, i.column, i.value, i.severity) for i in imported.report.issues]


def published_frame():
    """43 questions x 10 in the published shape: 16 empty baselines, 8 inert, 19 ordinary."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(43):
        if number < 16:
            answer, rouge = "", np.zeros(10)
        elif number < 24:
            answer, rouge = f"Answer {number}.", np.ones(10)
        else:
            answer, rouge = f"Answer {number}.", rng.choice([1.0, 1.0, 0.75, 0.5, 0.2], 10)
            rouge[number % 10] = 0.4  # never constant
        influence = 1 - rouge
        # As the tool does it: ranks by a stable sort, so ties stand in row order.
        rank = np.empty(10, dtype=int)
        rank[np.argsort(-influence, kind="stable")] = np.arange(1, 11)
        rho = spearmanr(np.arange(1, 11), rank)
        share = influence / influence.sum() if influence.sum() else influence
        entropy = -sum(s * np.log(s) for s in share if s > 0)
        rows += [
            [f"question {number}?", answer, rho.statistic, rho.pvalue, share.max(), entropy,
             bool(rho.statistic < 0.7), i, "", i + 1, round(16.05 - i, 2), rouge[i], influence[i], rank[i]]
            for i in range(10)
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=PUBLISHED_COLUMNS)


@pytest.fixture(scope="module")
def published():
    frame = published_frame()
    return frame, import_file(frame.to_csv(index=False).encode(), "published")


def test_the_published_shape_imports_without_a_remark(published):
    _, imported = published
    report = imported.report
    assert (report.n_rows, report.n_kept, report.n_issues, report.notes) == (430, 430, 0, NOTES)
    assert len(imported.run.queries) == 43
    assert imported.run.passages["passage_id"].head(3).to_list() == ["0", "1", "2"]
    assert imported.run.passages["text"].isna().all()
    assert imported.run.queries["reported_divergent"].dtype == "boolean"


def test_its_24_artefacts_are_undefined_with_their_reasons(published):
    _, imported = published
    headline = Diagnosis(imported.run).summary()
    assert headline["undefined_reasons"] == {"empty_baseline": 16, "inert": 8}
    assert (headline["n_queries"], headline["n_defined"], headline["n_empty_answers"]) == (43, 19, 16)


def test_its_own_verdicts_change_for_the_reasons_known(published):
    _, imported = published
    compared = compare_reported(imported.run, analyse(imported.run))
    assert len(compared) == 43
    assert compared["reported_rho"].head(24).to_list() == pytest.approx([1] * 24)
    changed = compared[compared["changed"]]
    counts = changed["cause"].value_counts().to_dict()
    assert (counts["empty_baseline"], counts["inert"]) == (16, 8)
    assert set(counts) <= {"empty_baseline", "inert", "ties"}


def test_its_defined_rhos_are_those_of_average_ranks(published):
    frame, imported = published
    found = analyse(imported.run).queries.set_index("question")["rho"]
    for question, rows in frame.groupby("query", sort=False):
        influence = rows["influence_score"].to_numpy()
        if np.ptp(influence) == 0:
            assert np.isnan(found[question])
        else:
            expected = spearmanr(rows["retrieval_rank"], rankdata(-influence)).statistic
            assert found[question] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.replace(",", ";").encode(),
        lambda text: text.replace(",", "\t").encode("utf-16"),
        lambda text: text.replace(",", ";").replace(".", ",").encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: ("# a comment, with a comma\n" + text).encode(),
    ],
)
def test_every_way_of_writing_gives_the_same_run(write):
    run, expected = read(write(CLEAN)).run, read(CLEAN).run
    pd.testing.assert_frame_equal(run.passages, expected.passages)
    pd.testing.assert_frame_equal(run.queries, expected.queries)


def test_decimal_commas_are_noted_and_not_read_from_comma_files():
    assert (
        "Commas in numbers were read as decimal points."
        in read(CLEAN.replace(",", ";").replace(".", ",")).report.notes
    )
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        read('query,influence_score\nq,"0,5"\n')


def test_a_path_and_its_bytes_give_the_same_run(tmp_path):
    path = tmp_path / "f.csv.gz"
    path.write_bytes(gzip.compress(CLEAN.encode()))
    from_path = import_file(path, "f.csv")
    assert from_path.run.run_id == read(CLEAN).run.run_id != read(CLEAN + "r,0,1,0\n").run.run_id
    assert import_file(path).run.name == "f.csv.gz"


def test_manifest():
    manifest = read(CLEAN + "q,3,x,0\n").run.manifest
    assert manifest["source"] == "upload"
    dataset = dict(manifest["dataset"])
    assert (dataset["rows"], dataset["kept"], dataset["rejected"]) == (4, 3, 1)
    assert len(dataset["digest"]) == 64


def test_every_problem_names_row_column_value():
    text = (
        CLEAN
        + "q,3,abc,0.1\nq,4,nan,0.1\nq,5,inf,0.1\nq,6,7,1.5\nq,7,8,-0.1\nq,8,9,high\nq,0,10,0.1\n,9,10,0.1\nq,10\nq,11,12,0.5,x\nq,,12,0.1\nq,12,-3,0\n"
    )
    imported = read(text)
    assert issues(imported) == [
        (5, "retrieval_rank", "abc", "error"),
        (6, "retrieval_rank", "nan", "error"),
        (7, "retrieval_rank", "inf", "error"),
        (8, "influence_score", "1.5", "error"),
        (9, "influence_score", "-0.1", "error"),
        (10, "influence_score", "high", "error"),
        (11, "doc_id", "0", "error"),
        (12, "query", "", "error"),
        (13, None, "q,10", "error"),
        (14, None, "q,11,12,0.5,x", "error"),
        (15, "doc_id", "", "error"),
        (16, "retrieval_rank", "-3", "error"),
    ]
    report = imported.report
    assert (report.n_rows, report.n_kept, report.n_rejected) == (15, 3, 12)
    assert report.rejected["row"].tolist() == list(range(5, 17))
    first = report.rejected.iloc[0]
    assert (first["query"], first["doc_id"], first["retrieval_rank"]) == ("q", "3", "abc")
    assert first["reason"] == "retrieval_rank: expected a number, 1 for the first passage"
    assert any("1 question;" in note for note in report.notes)


def test_the_first_of_several_reasons_stands_in_the_list():
    imported = read(CLEAN + ",3,x,7\n")
    assert [i.column for i in imported.report.issues] == ["query", "influence_score", "retrieval_rank"]
    assert imported.report.rejected["reason"].tolist() == ["query: expected a question"]


def test_columns_called_row_and_reason_stay_apart():
    rejected = read("row,reason,query,influence_score\nA,B,q,7\nC,D,q,0\n").report.rejected
    assert rejected.to_dict("records") == [
        {"row": 2, "reason": "influence_score: expected a number from 0 to 1", "row (file)": "A",
         "reason (file)": "B", "query": "q", "influence_score": "7"}
    ]  # fmt: skip


def test_blank_influence_keeps_the_row_and_undoes_the_question():
    imported = read(CLEAN.replace("0.25", ""))
    assert issues(imported) == [(3, "influence_score", "", "warning")]
    assert analyse(imported.run).queries["reason"].to_list() == ["incomplete"]


def test_influence_from_rouge_or_from_answers():
    by_rouge = read("query,rouge_l\nq,0.2\nq,1\nq,0.5\n")
    assert by_rouge.run.passages["influence_score"].to_list() == pytest.approx([0.8, 0, 0.5])
    assert by_rouge.run.passages["passage_id"].to_list() == ["p1", "p2", "p3"]
    assert by_rouge.run.passages["retrieval_rank"].to_list() == [1, 2, 3]
    assert len(by_rouge.report.notes) == 3
    by_answer = read(
        "query,baseline_answer,ablated_answer\nq,one two,one two\nq,one two,one six\nq,one two,\n"
    )
    assert analyse(by_answer.run).passages["influence"].to_list() == pytest.approx([0, 0.5, 1])
    assert by_answer.run.passages["ablated_status"].to_list() == ["answered", "answered", "empty"]


def test_a_blank_ablated_answer_beside_a_number_was_not_recorded():
    text = "query,baseline_answer,ablated_answer,influence_score\nq,one two,,0.5\nq,one two,,1\nq,one two,one two,0\n"
    run = read(text).run
    assert run.passages["ablated_answer"].isna().tolist() == [True, False, False]
    assert analyse(run).passages["influence"].to_list() == pytest.approx([0.5, 1, 0])


def test_answers_present_blank_absent():
    some = read("query,answer,influence_score\na,,0.1\nb,I don't know.,0.1\nc,Yes,0.1\n").run.queries
    assert some["answer_status"].to_list() == ["empty", "abstained", "answered"]
    blank = read("query,answer,influence_score\na,,0.1\nb,,0.1\n").run.queries
    assert blank["answer"].to_list() == ["", ""] and set(blank["answer_status"]) == {"empty"}
    absent = read("query,influence_score\na,0.1\n").run.queries
    assert absent["answer"].isna().all() and absent["answer_status"].isna().all()


def test_warnings_keep_their_rows():
    text = (
        "query,doc_id,passage,retrieval_rank,retrieval_score,rouge_l,influence_score,spearman_rho,is_divergent\n"
        "q,0,same,1,high,0.5,0.5,0.3,True\n"
        "q,1,same,2,inf,0.5,0.2,0.4,maybe\n"
        "q,2,other,2,1.5,,0.1,0.3,True\n"
    )
    imported = read(text)
    assert sorted(issues(imported), key=lambda i: (i[0], i[1])) == [
        (2, "retrieval_score", "high", "warning"),
        (3, "influence_score", "0.2", "warning"),  # not 1 - rouge_l
        (3, "is_divergent", "maybe", "warning"),
        (3, "is_divergent", "maybe", "warning"),  # no truth value, and not that of the first row
        (3, "passage", "same", "warning"),
        (3, "retrieval_score", "inf", "warning"),
        (3, "spearman_rho", "0.4", "warning"),
        (4, "retrieval_rank", "2", "warning"),
    ]
    assert imported.report.n_kept == 3
    assert imported.run.queries["reported_rho"].to_list() == [0.3]
    assert imported.run.passages["retrieval_score"].to_list()[2] == 1.5


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("spearman_rho", "1.05"),
        ("spearman_rho", "-1.05"),
        ("spearman_pvalue", "-0.05"),
        ("dominance_ratio", "1.05"),
        ("influence_entropy", "-0.05"),
        ("influence_rank", "0.95"),
    ],
)
def test_a_value_little_out_of_range_is_left_out_with_a_warning(column, value):
    head = HEADER.replace("\n", f",{column}\n")
    imported = read(head + f"q,0,1,0.5,{value}\nq,1,2,0.25,{value}\n")
    assert issues(imported) == [(2, column, value, "warning"), (3, column, value, "warning")]
    assert imported.report.n_kept == 2
    tables = (imported.run.queries, imported.run.passages)
    reported = [table[name] for table in tables for name in table if name.startswith("reported_")]
    assert not any(values.notna().any() for values in reported)


def test_an_influence_little_out_of_range_costs_its_row():
    imported = read(HEADER + "q,0,1,1.05\nq,1,2,-0.05\nq,2,3,1.0\nq,3,4,0\n")
    assert issues(imported) == [
        (2, "influence_score", "1.05", "error"),
        (3, "influence_score", "-0.05", "error"),
    ]
    assert imported.run.passages["influence_score"].to_list() == [1.0, 0.0]


def test_ranks_from_zero_are_shifted_only_if_all_are():
    shifted = read(HEADER + "q,0,0,0.5\nq,1,1,0.2\nr,0,0,0.1\n")
    assert shifted.run.passages["retrieval_rank"].to_list() == [1, 2, 1]
    assert any("count from 0" in note for note in shifted.report.notes)
    mixed = read(HEADER + "q,0,0,0.5\nq,1,1,0.2\nr,0,1,0.1\n")
    assert issues(mixed) == [(2, "retrieval_rank", "0", "error")]


def test_two_runs_of_one_question_become_two_questions():
    imported = read(HEADER + "q,0,1,0.5\nq,1,2,0.1\nr,0,1,0\nq,0,1,0.7\nq,1,2,0.3\n")
    assert imported.run.queries["query_id"].to_list() == ["q0001", "q0002", "q0001-2"]
    assert imported.run.queries["question"].to_list() == ["q", "r", "q"]
    assert imported.run.passages["query_id"].to_list() == ["q0001", "q0001", "q0002", "q0001-2", "q0001-2"]
    assert any("separate runs: 1 question" in note for note in imported.report.notes)


def test_own_ids_are_kept():
    run = read("query_id,query,influence_score\nx,same?,0\ny,same?,0.1\nx,same?,0.2\n").run
    assert run.queries["query_id"].to_list() == ["x", "y"]
    assert run.passages["query_id"].to_list() == ["x", "y", "x"]


def test_reference_answers():
    text = 'query,reference_answers,influence_score\na,"[""x"", ""y""]",0\nb,just one,0\nc,,0\nd,[odd,0\n'
    assert read(text).run.queries["reference_answers"].to_list() == [["x", "y"], ["just one"], None, ["[odd"]]


def test_a_mapping_of_ones_own():
    text = "frage,wirkung,farbe\nq,0.5,0.1\nq,0.2,0.1\n"
    imported = read(text, mapping={"question": "frage", "influence_score": "wirkung"})
    assert imported.run.queries["question"].to_list() == ["q"]
    assert "Columns not used: farbe." in imported.report.notes
    with pytest.raises(InputError, match="no column for the question"):
        read(text)


def test_another_mapping_gives_another_run_id():
    text = "query,other,doc_id,influence_score\nq,o,0,0.5\nq,o,1,0.25\n"
    fields = {"question": "query", "passage_id": "doc_id", "influence_score": "influence_score"}
    first, again = read(text, mapping=fields), read(text, mapping=dict(fields))
    assert first.run.run_id == again.run.run_id == read(text).run.run_id
    assert read(text, mapping=fields | {"question": "other"}).run.run_id != first.run.run_id


@pytest.mark.parametrize("marks", [("simulated", "live"), ("live", "simulated"), ("simulated", "")])
def test_a_partly_simulated_file_makes_a_simulated_run(marks):
    rows = [f"q,{place},{place + 1},0.5,{mark}\n" for place, mark in enumerate(marks)]
    imported = read(HEADER.replace("\n", ",data_source\n") + "".join(rows))
    assert imported.run.simulated and len(imported.run.passages) == 2
    assert imported.report.notes[-1].startswith("The file says that its data are simulated")
    real = read(HEADER.replace("\n", ",data_source\n") + "q,0,1,0.5,upload\nq,1,2,0.5,\n")
    assert not real.run.simulated


def test_what_the_file_allows():
    report = read(CLEAN).report
    assert report.enables == ("influence vs retrieval",)
    assert "word diff of ablated answers: needs ablated_answer" in report.missing
    assert any(text.startswith("noise floor") for text in report.missing)


def test_a_question_with_thousands_of_passages_is_a_mapping_error():
    text = CLEAN + "".join(f"wrong,{i},{i + 1},0.5\n" for i in range(201))
    report = read(text).report
    assert (report.n_kept, report.n_rejected) == (3, 201)
    assert report.issues[0].expected == "a question with at most 200 passages"


def test_hostile_text_is_only_text():
    run = read("query,passage,influence_score\n=cmd|' /C calc'!A0,<script>alert(1)</script>,0.5\n").run
    assert run.queries["question"].to_list() == ["=cmd|' /C calc'!A0"]
    assert run.passages["text"].to_list() == ["<script>alert(1)</script>"]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("", "empty"),
        ("only\none\n", "one column"),
        (HEADER, "no rows"),
        ("a,b\n1,2\n", "no column for the question"),
        ("query,b\n1,2\n", "no column for the influence"),
        (
            HEADER + "q,0,x,0.5\nq,1,y,0.5\n",
            "None of the 2 rows of f.csv can be used: row 2, column retrieval_rank",
        ),
        (HEADER + "q,0\n", "None of the 1 rows of f.csv can be used: row 2"),
    ],
)
def test_files_of_no_use_are_one_sentence(data, word):
    with pytest.raises(InputError, match=word):
        read(data)


cell = st.sampled_from(
    ["", "q", "r", "0", "1", "2", "0.5", "nan", "inf", "-1", "1e400", "True", "=x", "é", "[", '["a"]', "a\nb"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(cell, min_size=6, max_size=7), min_size=1, max_size=8))
def test_any_cells_give_a_run_or_one_sentence_and_lose_nothing(rows):
    out = io.StringIO(newline="")
    header = ["query", "baseline_answer", "doc_id", "retrieval_rank", "influence_score", "reference_answers"]
    csv.writer(out).writerows([header, *rows])
    try:
        imported = read(out.getvalue())
    except InputError as error:
        assert "f.csv" in str(error)
        return
    report = imported.report
    assert report.n_kept == len(imported.run.passages) >= 1
    assert report.n_rows == report.n_kept + len(report.rejected)
    assert report.n_rows == sum(any(row) for row in rows)
    analyse(imported.run)


def test_a_large_file_takes_no_loop_over_rows():
    n = 20_000
    number = np.repeat(np.arange(n // 10), 10)
    frame = pd.DataFrame(
        {
            "query": "question " + pd.Series(number).astype(str),
            "doc_id": np.tile(np.arange(10), n // 10),
            "retrieval_rank": np.tile(np.arange(1, 11), n // 10),
            "influence_score": np.random.default_rng(0).random(n).round(3),
        }
    )

    def seconds(part):
        data = part.to_csv(index=False).encode()
        start = time.perf_counter()
        imported = import_file(data, "f")
        assert imported.report.n_kept == len(part)
        return time.perf_counter() - start

    seconds(frame.head(100))
    # 10 µs a row would be 0.2 s; a Python loop over rows and columns takes 20 times as long.
    assert seconds(frame) < 3


def group(question, passage):
    array = None if passage is None else np.array(passage, dtype=np.int64)
    g = group_rows(np.array(question, dtype=np.int64), array)
    return g.group.tolist(), g.question.tolist(), g.run.tolist()


@pytest.mark.parametrize(
    ("question", "passage", "expected"),
    [
        # One block each; questions need not be sorted.
        ([0, 0, 1, 1], [0, 1, 0, 1], ([0, 0, 1, 1], [0, 1], [1, 1])),
        ([0, 1, 0, 1], [0, 0, 1, 1], ([0, 1, 0, 1], [0, 1], [1, 1])),
        # Two blocks that repeat passages are two runs …
        ([0, 0, 1, 0, 0], [0, 1, 0, 0, 1], ([0, 0, 1, 2, 2], [0, 1, 0], [1, 1, 2])),
        # … and two blocks that do not are one question.
        ([0, 0, 1, 0, 0], [0, 1, 0, 2, 3], ([0, 0, 1, 0, 0], [0, 1], [1, 1])),
        # All passages again, back to back: two runs.
        ([0, 0, 0, 0], [0, 1, 0, 1], ([0, 0, 1, 1], [0, 0], [1, 2])),
        # A stray repeated row is a duplicate, not a run.
        ([0, 0, 0], [0, 1, 0], ([0, 0, 0], [0], [1])),
        ([0, 0, 0, 0], [0, 0, 1, 1], ([0, 0, 0, 0], [0], [1])),
        ([0, 0, 1, 0], [0, 1, 0, 0], ([0, 0, 1, 0], [0, 1], [1, 1])),
        # Nothing tells runs apart.
        ([0, 0, 1, 0, 0], None, ([0, 0, 1, 0, 0], [0, 1], [1, 1])),
        ([], [], ([], [], [])),
    ],
)
def test_runs_of_the_same_question(question, passage, expected):
    assert group(question, passage) == expected


def test_a_question_that_comes_again_is_a_run_of_its_own():
    g = group_rows(np.array([0, 0, 1, 1, 0, 0, 0, 0]), np.array([0, 1, 0, 1, 0, 1, 0, 1]))
    assert g.run.tolist() == [1, 1, 2, 3]


def test_position_within():
    assert position_within(np.array([0, 1, 0, 1, 1])).tolist() == [0, 0, 1, 1, 2]
