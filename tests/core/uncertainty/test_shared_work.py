"""Equal texts and equal graphs are measured once, and nothing changes by that."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.overlap import by_outcome, rouge_l_matrix
from core.uncertainty import score, spectral
from core.uncertainty.clusters import greedy_clusters, order_dependence
from core.uncertainty.samples import Samples
from core.uncertainty.similarity import content, jaccard

TEXTS = st.sampled_from(
    ["Paris", "in Paris", "not in Paris", "in 1914", "1914 or 1915", "", "?!", "I don't know.", "the", "不知道", "阿姆斯特丹", "Не", "Ὀ", "½"]
)  # fmt: skip


@given(st.lists(TEXTS, min_size=2, max_size=7), st.sampled_from(["", "When, in 1914?"]))
def test_repeated_samples_are_as_alike_as_if_each_were_compared(texts, question):
    samples = Samples(texts, baseline=True, question=question)
    for kind, direct in (
        ("jaccard", jaccard(texts)),
        ("content", content(texts, question)),
        ("rouge_l", np.nan_to_num(rouge_l_matrix(texts))),
    ):
        np.testing.assert_array_equal(samples.likeness(kind), direct, err_msg=kind)
        np.testing.assert_array_equal(samples.similarity(kind), by_outcome(direct, samples.status))


@pytest.mark.parametrize("name", ["sum_eigen", "eccentricity", "kernel_language_entropy"])
@given(seed=st.integers(0, 50), n=st.integers(0, 6))
def test_a_graph_measured_again_has_the_same_value(name, seed, n):
    measure, graph = getattr(spectral, name), np.random.default_rng(seed).random((n, n))
    first, again, alone = measure(graph), measure(graph[:, ::-1][:, ::-1]), measure.__wrapped__(graph)
    assert first == again == alone or np.isnan([first, again, alone]).all()


def test_graphs_of_the_same_numbers_and_another_shape_or_option_are_others():
    with pytest.raises(ValueError, match="square"):
        spectral.sum_eigen(np.ones((1, 4)))
    assert spectral.sum_eigen(np.ones((2, 2))) == pytest.approx(1)
    pair = np.kron(np.eye(2), np.ones((2, 2)))
    assert spectral.eccentricity(pair, 1.0) == pytest.approx(1) and spectral.eccentricity(pair, 0.0) == 0


def test_questions_measured_together_have_the_values_of_each_alone():
    questions = [
        Samples(["Paris", "in Paris", "Rome"], baseline=True, logprobs=[np.nan, -1.0, -2.0]),
        Samples(["Rome", "", "I don't know."], baseline=True, logprobs=[np.nan, -1.0, -0.5]),
        Samples(["Paris", "in Paris", "Rome", "not Rome"], entailment=np.eye(4), p_true=0.3),
        Samples(["Oslo", "Rome"], entailment=[[1.0, np.nan], [0.0, 1.0]], embeddings=np.eye(2)),
        Samples(["Oslo", "Rome"], entailment=[[1.0, 0.9], [0.6, 1.0]], embeddings=np.eye(2)),
        Samples(["Oslo", "Rome"], entailment=np.eye(2), embeddings=[[0.6, 0.0, 0.8], [1.0, 0.0, 0.0]]),
        Samples([]),
        Samples(["It has 2 arches. It fell in 1914.", "2 arches", "in 1914"], baseline=True),
    ]
    together, alone = score(questions), [score([one]) for one in questions]
    for name, found in together.items():
        np.testing.assert_array_equal(found.values, [one[name].values[0] for one in alone], err_msg=name)
        assert found.reasons == tuple(one[name].reasons[0] for one in alone), name
    assert together["agreement_entailment"].values[4] == 0.75  # of both directions
    assert together["agreement_cosine"].values[5] == pytest.approx(0.6)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_groups_and_their_order_are_those_of_each_question_alone(n):
    half = np.random.default_rng(n).random((6, n, n)) > 0.6
    same = half | half.transpose(0, 2, 1) | np.eye(n, dtype=bool)
    assert greedy_clusters(same).tolist() == [greedy_clusters(one).tolist() for one in same]
    assert np.transpose(order_dependence(same)).tolist() == [[*order_dependence(one)] for one in same]
