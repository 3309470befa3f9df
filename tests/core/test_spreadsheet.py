import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.spreadsheet import neutralise, neutralise_text, restore

RISKY = ["=1+1", "+1", "-1", "@a", "\t=1", "\tplain", "\rx", " =1", "\n=1", "＝1", "＋1", "－1", "＠a",
         "\u00a0=1", "\u3000=1", "\ufeff=1", "\u200b=1", "\x0b=1", "\x1f@"]  # fmt: skip


@pytest.mark.parametrize("text", RISKY)
def test_formulas_get_an_apostrophe(text):
    assert neutralise(pd.Series([text], dtype="str"))[0] == "'" + text
    assert neutralise_text(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a=1", "plain", "1-2", "it's", "'quoted", "<script>", "５", "'"])
def test_other_text_stays(text):
    assert neutralise(pd.Series([text], dtype="str"))[0] == text
    assert neutralise_text(text) == text


def test_missing_stays_missing():
    assert neutralise(pd.Series(["=a", None], dtype="str")).isna().tolist() == [False, True]


@given(st.lists(st.text(st.sampled_from("'=+-@ \t\r\n＝ab\u00a0"), max_size=6)))
def test_round_trip_is_exact(texts):
    series = pd.Series(texts, dtype="str")
    safe = neutralise(series)
    assert restore(safe).to_list() == texts
    assert [neutralise_text(text) for text in texts] == safe.to_list()
