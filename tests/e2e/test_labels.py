"""From a file of judged answers to a certified threshold: the way of whoever comes with labels."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from core.cli import main
from core.conformal import certify_threshold
from tests.e2e.driving import main_text, upload
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_two_hundred_judged_answers_give_a_certified_threshold_in_two_clicks(app, new_page, tmp_path, capsys):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"question": [f"What is {i}?" for i in range(200)], "answer": "Paris"})
    frame["confidence"] = rng.random(200).round(2)
    frame["correct"] = rng.random(200) < frame["confidence"] + 0.4
    path = tmp_path / "judged.csv"
    frame.to_csv(path, index=False)
    # From Python, and from the command.
    expected = certify_threshold(frame["confidence"], frame["correct"], 0.1, 0.1).threshold
    assert expected is not None and 0 < expected < 1
    assert main(["calibrate", str(path), "--store", str(tmp_path / "c.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certified_threshold"] == expected

    page = new_page()
    upload(page, app, path.name, path.read_text())
    # One click: does the confidence mean what it says, and from where on can be answered?
    page.get_by_test_id("stSidebar").get_by_role("link", name="Confidence").click()
    page.wait_for_url("**/confidence**")
    settle(page)
    assert page.get_by_label(re.compile("of 200 labelled answers against their confidence")).count()
    said = f"Answer from a confidence of {expected:.2f} on"
    assert said in main_text(page)
    # Two: the threshold to move, and its certificate.
    page.get_by_role("link", name="Move the threshold: answer or withhold").click()
    page.wait_for_url("**/conformal**")
    settle(page)
    assert page.get_by_test_id("stMain").get_by_role("slider", name="Confidence threshold").count()
    text = main_text(page)
    assert said in text and "the lowest that is certified" in text and "over 200 labelled answers" in text
