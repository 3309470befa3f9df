"""The table of estimators: what it declares, and its outcome in every degenerate case."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.uncertainty import ESTIMATORS, TEXT_ONLY, Samples, score
from core.uncertainty.analysis import _FROM_MODELS
from core.uncertainty.estimators import ANSWER, DEFINITIONS, QUESTION, REASONS

FROM_A_RUN = {"embeddings", "logprobs", *_FROM_MODELS}
UNCERTAIN = {name for name, one in ESTIMATORS.items() if one.rises_with == "uncertainty"}


def full(texts, baseline=False):
    """Samples of which everything was measured, each text's embedding its own axis."""
    ids = [sorted(set(texts)).index(text) for text in texts]
    return Samples(
        texts,
        baseline,
        embeddings=np.eye(len(texts))[ids],
        entailment=np.equal.outer(ids, ids).astype(float),
        logprobs=[-1.0] * len(texts),
        p_true=0.9,
        verbalised=0.8,
        contradiction=[[0.0] * (len(texts) - 1)],
    )


def values(samples, names=None):
    return {name: found.values[0] for name, found in score([samples], names).items()}


def reasons(samples, level=None):
    found = score([samples])
    return {
        s.reasons[0] for s in found.values() if s.estimator.samples and level in (None, s.estimator.level)
    }


def test_every_estimator_declares_itself():
    assert len({one.title for one in ESTIMATORS.values()}) == len(ESTIMATORS)
    for name, one in ESTIMATORS.items():
        assert one.name == name and one.meaning.endswith(".") and one.range
        assert one.rises_with in ("uncertainty", "confidence") and one.level in (QUESTION, ANSWER)
        assert set(one.needs) <= set(Samples.__dataclass_fields__)
        assert one.calls(10) == 10 * one.samples + one.extra_calls
    assert {d.name for d in DEFINITIONS} == {*ESTIMATORS, *REASONS}
    assert {name for name, one in ESTIMATORS.items() if one.is_baseline} == {
        "answer_length",
        "distinct_answers",
    }
    alone = {name: one.calls(10) for name, one in ESTIMATORS.items() if not one.samples}
    assert alone == {"p_true": 1, "verbalised": 1, "answer_length": 0}
    agree = {name for name in ESTIMATORS if name.startswith("agreement_")}
    assert {*ESTIMATORS} - UNCERTAIN == {*agree, "mean_pairwise_rouge", "p_true", "verbalised"}
    eccentric = {name for name in ESTIMATORS if name.startswith("answer_eccentricity_")}
    assert {name for name, one in ESTIMATORS.items() if one.level == ANSWER} == {
        *agree, *eccentric, *alone, "contradiction_rate",
    }  # fmt: skip
    # A run can hold what each needs, or nothing would ever show it.
    assert {need for one in ESTIMATORS.values() for need in one.needs} == FROM_A_RUN


def test_what_was_not_measured_is_undefined():
    found = score([Samples(["Paris", "Rome"])])
    missing = {name for name, s in found.items() if s.reasons[0] == "not_measured"}
    assert missing == set(ESTIMATORS) - set(TEXT_ONLY)
    assert all(math.isnan(found[name].values[0]) == (name in missing) for name in found)


def test_all_identical():
    found = values(full(["Paris"] * 10))
    assert not any(math.isnan(value) for value in found.values())
    zero = [n for n in found if n.startswith(("degree", "eccentricity", "answer_ecc", "semantic_entropy"))]
    for name in (*zero, "embedding_variance", "mean_distance", "std_distance", "weighted_entropy_exact"):
        assert found[name] == pytest.approx(0, abs=1e-9), name
    for name in found:
        if name.startswith(("sum_eigen", "semantic_sets", "agreement", "distinct")):
            assert found[name] == pytest.approx(1), name


def test_all_different():
    found = values(full(list("abcdefghij")))
    assert not any(math.isnan(value) for value in found.values())
    for name in found:
        if name.startswith(("sum_eigen", "semantic_sets", "distinct")):
            assert found[name] == pytest.approx(10), name
        if name.startswith(("agreement", "mean_pairwise")):
            assert found[name] == pytest.approx(0), name
        if name.startswith(("semantic_entropy", "weighted_entropy", "kernel_entropy")):
            assert found[name] == pytest.approx(math.log(10)), name
    assert found["embedding_variance"] == pytest.approx(0.9)


def test_one_sample_says_nothing():
    assert reasons(full(["Paris"])) == {"one_sample"} and reasons(Samples([])) == {
        "one_sample",
        "not_measured",
    }
    # An answer at temperature 0 with one sample can agree with it; that one sample says nothing of the question.
    both = full(["Paris", "Paris"], baseline=True)
    assert reasons(both, ANSWER) == {None} and reasons(both, QUESTION) == {"one_sample"}
    assert values(full(["Paris"]))["p_true"] == 0.9


def test_all_empty_and_all_refusals():
    assert reasons(full(["", " ", "?"]), QUESTION) == {"all_empty"}
    assert reasons(full(["", " ", "?"]), ANSWER) == {"empty_answer"}
    refusals = full(["I don't know.", "I do not know", ""])
    assert reasons(refusals, QUESTION) == {"all_abstained"} and reasons(refusals, ANSWER) == {
        "abstained_answer"
    }
    assert reasons(full(["Paris", "", ""], baseline=True), ANSWER) == {"all_empty"}


def test_one_refusal_among_ten_is_one_other_answer():
    texts = ["Paris"] * 9 + ["I don't know whether it is Paris."]
    found = values(full(texts))
    expected = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    for rule in ("exact", "rouge_l", "cosine", "entailment"):
        assert found[f"semantic_sets_{rule}"] == 2
        assert found[f"semantic_entropy_{rule}"] == pytest.approx(expected)
    for kind in ("jaccard", "rouge_l", "cosine", "entailment"):
        # The refusal names Paris, but it is not the answer "Paris".
        assert found[f"agreement_{kind}"] == pytest.approx(8 / 9) and found[
            f"sum_eigen_{kind}"
        ] == pytest.approx(2)


def test_refusals_are_alike_however_they_are_worded():
    found = values(full(["Paris", "I don't know.", "The passages do not mention it.", ""]))
    assert found["semantic_sets_exact"] == found["semantic_sets_rouge_l"] == 3
    assert found["sum_eigen_jaccard"] == pytest.approx(3)


def test_a_baseline_is_no_sample():
    texts = ["Rome", "Paris", "Paris", "Paris"]
    found = values(full(texts, baseline=True))
    assert found["semantic_sets_exact"] == 1 and found["embedding_variance"] == pytest.approx(0)
    assert found["agreement_text"] == 0 and found["answer_eccentricity_jaccard"] > 0.5
    assert values(full(texts))["semantic_sets_exact"] == 2
    assert found["weighted_entropy_exact"] == 0


def test_the_mixes_are_means():
    found = values(Samples(["St Petersburg", "Petersburg", "Moscow"], embeddings=[[1, 0], [1, 0], [0, 1]]))
    # Jaccard 1/2 and 0; ROUGE-L 2/3 and 0; cosine 1 and 0.
    assert found["agreement_text"] == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert found["agreement_cosine_jaccard"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert found["agreement_all"] == pytest.approx((1 / 4 + 1 / 3 + 1 / 2) / 3)


OUTCOMES = ["Paris", "Paris, France", "Rome", "", "?", "I don't know", "巴黎", "không biết"]


@given(st.lists(st.sampled_from(OUTCOMES), max_size=6), st.booleans())
def test_any_mix_of_outcomes_has_a_value_or_a_reason(texts, baseline):
    samples = full(texts, baseline)
    n = len(samples.sampled)
    ends = {
        "0": 0,
        "1": 1,
        "n": n,
        "ln n": math.log(max(1, n)),
        "√n": math.sqrt(n),
        "1 − 1/n": 1 - 1 / max(1, n),
    }
    for name, found in score([samples]).items():
        value, (reason,), limits = found.values[0], found.reasons, found.estimator.range
        assert math.isnan(value) == (reason in REASONS), name
        parts = limits.strip("[]()").split(", ") if limits[0] in "[(" else limits.split(" to ")
        if len(parts) == 2 and not math.isnan(value) and {*parts} <= {*ends}:
            assert ends[parts[0]] - 1e-9 <= value <= ends[parts[1]] + 1e-9, name


def test_missing_numbers_are_named():
    samples = Samples(["Paris", "Rome"], logprobs=[-1.0, math.nan], p_true=math.nan)
    found = score([samples], ["weighted_entropy_exact", "p_true"])
    assert [s.reasons[0] for s in found.values()] == ["missing_values"] * 2
    # A verifier that failed on one pair has not said that the two differ.
    failed = Samples(["Paris", "Rome"], entailment=[[1, math.nan], [0, 1]], embeddings=[[1.0], [math.nan]])
    kinds = [
        name for name, one in ESTIMATORS.items() if len({*one.needs} & {"entailment", "embeddings"}) == 1
    ]
    found = score([failed], [name for name in kinds if "logprobs" not in ESTIMATORS[name].needs])
    assert {s.reasons[0] for s in found.values()} == {"missing_values"}
    # The log-probability of a baseline is not asked for.
    assert values(Samples(["Rome", "Paris", "Oslo"], True, logprobs=[math.nan, -1, -1]))[
        "weighted_entropy_exact"
    ] == pytest.approx(math.log(2))


def test_the_order_of_the_samples_does_not_matter():
    texts = ["Paris", "in Paris", "Rome", "Paris, France", "the city of Rome", "I don't know"]
    first, rest = texts[0], texts[1:]
    one, other = (values(Samples([first, *some]), TEXT_ONLY) for some in (rest, rest[::-1]))
    assert one == pytest.approx(other, abs=1e-9)


def test_uncertainty_is_turned():
    questions = [Samples(["Paris", "Paris"]), Samples(["Paris", "Rome"])]
    for name, found in score(questions, TEXT_ONLY).items():
        if name not in ("answer_length", "lexical_diversity"):
            assert found.uncertainty[0] < found.uncertainty[1], name
    assert "agreement_text" not in UNCERTAIN


def test_arrays_of_another_length_are_refused():
    with pytest.raises(ValueError, match="embeddings has 1 rows for 2 texts"):
        Samples(["Paris", "Rome"], embeddings=[[1.0]])
