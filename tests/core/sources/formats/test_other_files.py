"""The small files that stand for what other tools and data sets write, from the doors through which they come."""

import pytest

from core.errors import InputError
from core.sources.dataset import load_dataset
from core.sources.formats import import_file
from tests.core.sources.test_dataset_file import SAMPLES

FILES = SAMPLES.parent / "tests/data/files"
# File: format as a run (None: a data set only), and its number of questions.
RUNS = {
    "langsmith-runs.jsonl": ("langsmith", 1),
    "langsmith-runs.csv": ("langsmith", 1),
    "langfuse-trace.json": ("langfuse", 1),
    "trulens-records.json": ("trulens", 1),
    "trulens-events.csv": ("trulens-events", 1),
    "mtrag-tasks.jsonl": ("mtrag", 2),
    "samples.parquet": ("ragas", 2),
    "squad-2.json": (None, 3),
    "hotpotqa.json": (None, 1),
    "testset.jsonl": (None, 2),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_file_is_read_as_a_run_and_as_a_data_set(name):
    file_format, n = RUNS[name]
    dataset = load_dataset(FILES / name)
    assert len(dataset.questions) == n and dataset.report.n_errors == 0
    assert all(question.passages or question.documents for question in dataset.questions)
    if file_format is None:
        with pytest.raises(InputError, match=f"core analyze {name} --out RUN"):
            import_file(FILES / name)
        return
    imported = import_file(FILES / name)
    assert imported.run.manifest["dataset"]["format"] == file_format
    assert len(imported.run.queries) == n and imported.report.n_issues == 0
