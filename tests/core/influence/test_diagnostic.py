"""What the diagnostic declares, and the files that it writes."""

import csv
import io

from core.influence import analyse
from core.influence.diagnostic import INFLUENCE, influence_csv, questions_csv
from core.socket import Need, QuestionColumn
from tests.core.influence.test_analysis import make


def test_what_is_shown_of_a_question():
    assert INFLUENCE.columns == (
        QuestionColumn("label", "Label"),
        QuestionColumn("rho", "ρ", bounds=(-1.0, 1.0)),
        # nDCG and dominance move with the number of passages alone.
        QuestionColumn("influence_ndcg", "nDCG by influence", bounds=(0.0, 1.0), by_passages=True),
        QuestionColumn("dominance", "Dominance", bounds=(0.0, 1.0), by_passages=True),
        QuestionColumn("influences", "Influence by retrieval rank", pattern="list", bounds=(0.0, 1.0)),
    )


def test_what_can_be_set_and_what_it_needs():
    threshold, published, measure = INFLUENCE.settings
    assert (threshold.name, threshold.default) == ("influence_threshold", 0.7)
    assert (threshold.low, threshold.high, threshold.step) == (-1.0, 1.0, 0.05)
    assert (published.name, published.default) == ("as_published", False)
    assert (measure.name, measure.default) == ("influence", "rouge")
    assert measure.choices == ("rouge", "logprob", "surrogate", "shapley")
    first, second = INFLUENCE.needs
    assert first == Need("passages", "The run has no passages.")
    assert (second.table, second.step, second.other) == ("passages", "influence", "ablations")
    assert second.column == ("ablated_answer", "influence_score", "logprob_drop")
    assert [(one.name, one.ending) for one in INFLUENCE.exports] == [("csv", ".csv"), ("queries-csv", ".csv")]


class Stand(dict):
    """What the exports take of a run's analyses."""

    def __init__(self, run):
        super().__init__(influence=analyse(run))
        self.run = run


def written(content):
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def test_the_rows_of_the_file_by_hand():
    run = make(
        [[0.75, 0.25, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0]],
        query={"answer": ["a", "b", "c"]},
        passage={"text": [f"t{i}" for i in range(8)], "retrieval_score": [float(i) for i in range(8)]},
    )
    head, *rows = written(influence_csv(Stand(run)))
    assert head == [
        "query", "baseline_answer", "spearman_rho", "spearman_pvalue", "dominance_ratio", "influence_entropy",
        "is_divergent", "doc_id", "passage", "retrieval_rank", "retrieval_score", "rouge_l",
        "influence_score", "influence_rank", "label", "reason", "data_source",
    ]  # fmt: skip
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    assert columns["baseline_answer"] == ("a",) * 3 + ("b",) * 3 + ("c",) * 2
    assert columns["spearman_rho"] == ("1.0",) * 3 + ("-1.0",) * 3 + ("",) * 2
    assert columns["dominance_ratio"] == ("0.75",) * 6 + ("",) * 2
    assert columns["is_divergent"] == ("False",) * 3 + ("True",) * 3 + ("",) * 2
    assert columns["label"] == ("Aligned",) * 3 + ("Divergent",) * 3 + ("Undefined",) * 2
    assert columns["reason"] == ("",) * 6 + ("too_few_passages",) * 2
    assert columns["doc_id"] == ("0", "1", "2", "0", "1", "2", "0", "1")
    assert columns["passage"] == tuple(f"t{i}" for i in range(8))
    assert columns["retrieval_rank"] == ("1.0", "2.0", "3.0", "1.0", "2.0", "3.0", "1.0", "2.0")
    assert columns["influence_score"] == ("0.75", "0.25", "0.0", "0.0", "0.25", "0.75", "0.0", "0.0")
    assert columns["rouge_l"] == ("0.25", "0.75", "1.0", "1.0", "0.75", "0.25", "1.0", "1.0")
    assert columns["influence_rank"] == ("1.0", "2.0", "3.0", "3.0", "2.0", "1.0", "1.5", "1.5")


def test_the_file_of_questions_has_a_row_for_each():
    head, *rows = written(questions_csv(Stand(make([[0.9, 0.5, 0.1], [0.0, 0.0, 0.0]]))))
    assert [dict(zip(head, row, strict=True))["reason"] for row in rows] == ["", "inert"]
