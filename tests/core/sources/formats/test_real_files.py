"""Files that real tools wrote (tests/slow/test_peers.py writes them anew) are imported as they should be."""

import pytest

from core.sources.formats import import_file
from core.sources.formats.records import records_of
from tests.core.sources.formats.fuzz import FILES
from tests.core.sources.formats.peers.facts import ANSWERS, CORRECT, PASSAGES, QUESTIONS

FORMAT_OF = {"ragas": "ragas", "deepeval": "deepeval"}


TOOLS = ("ragas", "deepeval", "langchain", "llamaindex", "haystack")


@pytest.mark.parametrize(
    "path", [p for p in sorted(FILES.iterdir()) if p.name.split("-")[0] in TOOLS], ids=lambda path: path.name
)
def test_everything_is_where_it_belongs(path):
    tool = path.name.split("-")[0]
    imported = import_file(path)
    assert imported.run.manifest["dataset"]["format"] == FORMAT_OF.get(tool, "openinference")
    assert imported.report.n_issues == 0
    records = sorted(records_of(imported.run), key=lambda record: QUESTIONS.index(record.question))
    assert [r.answer for r in records] == ANSWERS
    assert [[p.text for p in r.passages] for r in records] == PASSAGES
    if tool in FORMAT_OF:
        assert [r.references for r in records] == [(text,) for text in CORRECT]
        assert [[p.is_gold for p in r.passages] for r in records] == [[True, False]] * 2
