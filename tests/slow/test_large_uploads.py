"""Files that are too large, or merely large: a result or one sentence, never a hang."""

import numpy as np
import pandas as pd
import pytest

from bench.influence_csv import OURS, make_frame, reading
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.sources.formats import import_file

pytestmark = pytest.mark.slow
MEGABYTE = 1 << 20


def test_an_import_takes_at_most_three_times_its_file(tmp_path):
    # 400,000 rows; the fixed costs that a small file shows are not counted. It was 7.3 times before.
    paths = [tmp_path / "large.csv", tmp_path / "small.csv"]
    for path, n_questions in zip(paths, (40_000, 2_000), strict=True):
        make_frame(n_questions).to_csv(path, index=False)
    assert reading(OURS, *paths).peak < 3


def test_two_hundred_thousand_rows_are_read_and_measured():
    n, k = 20_000, 10
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "query": np.repeat(np.arange(n), k),
            "doc_id": np.tile(np.arange(k), n),
            "retrieval_rank": np.tile(np.arange(1, k + 1), n),
            "influence_score": generator.integers(0, 20, n * k) / 20,
        }
    )
    imported = import_file(frame.to_csv(index=False).encode(), "large.csv")
    assert imported.report.n_rows == imported.report.n_kept == 200_000
    found = Diagnosis(imported.run).summary()
    assert found["n_queries"] == n and abs(found["mean_rho"]) < 0.01


@pytest.mark.parametrize(
    ("head", "repeated", "message"),
    [
        (b"query,retrieval_rank,influence_score\n", b"x", "large|long|column|row"),
        (b"", b"only one column\n", "column"),
        (b'query,retrieval_rank,influence_score\n"', b"a,1,0.5\n", "quot|long|large|row"),
        (b"", b"\x00\x01\x02\x03", "binary|text|table"),
    ],
    ids=["one line", "one column", "open quotation mark", "binary"],
)
def test_two_hundred_megabytes_of_the_wrong_thing_are_refused_in_one_sentence(head, repeated, message):
    content = head + repeated * (200 * MEGABYTE // len(repeated))
    with pytest.raises(InputError, match=f"(?i){message}") as caught:
        import_file(content, "large.csv")
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)
