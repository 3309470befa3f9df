"""The page Retrieval quality, where gold passages are known and where not."""

from pathlib import Path

CSV = (Path(__file__).parent / "influence.csv").read_bytes()


def test_with_gold_passages_metrics_and_places_are_shown(open_app, healthy, texts, recorded):
    app = healthy(open_app("retrieval_quality"))
    metrics = next(frame.value for frame in app.dataframe if "left_out" in frame.value)
    # The first passage of all four questions is gold.
    first = metrics[(metrics["metric"] == "Hit at k") & (metrics["k"] == 1)].iloc[0]
    assert (first["mean"], first["n"]) == (1.0, 4)
    # q1: the gold passage changes the answer most; q2: least; q3 and q4 have no order of use.
    assert "In **50 %** of 2 questions the gold passage is the one that changes the answer most" in texts(app)


def test_without_gold_passages_one_sentence_says_what_is_needed(open_app, healthy, texts):
    app = open_app("data")
    app.file_uploader(key="data_upload").upload("influence.csv", CSV)
    app.run()
    app.switch_page("pages/retrieval_quality.py")
    app = healthy(app.run())
    assert "No gold passage is known" in texts(app).replace("\\", "")
    assert not any("gold passage" in box.label for box in app.expander)
